/* What is in a namespace, as the rules of discovery look at it. Private to pkg/controllers. */
#ifndef CR_CONTROLLERS_TOWN_H
#define CR_CONTROLLERS_TOWN_H

#include "controllers/cache.h"
#include "rotation/discover.h"

/* Owned; its view borrows from snapshots that it keeps. */
struct cr_town *cr_town_new(struct cr_cache *cache, const char *ns);
void cr_town_free(struct cr_town *town);
CR_DEFINE_CLEANUP(cr_town, struct cr_town, cr_town_free)
const struct cr_view *cr_town_view(const struct cr_town *town);

#endif
