/* What the catalogue knows, as parts of the sentences in which a decision gives its reason. */
#ifndef CR_CATALOGUE_WORDS_H
#define CR_CATALOGUE_WORDS_H

#include "catalogue/catalogue.h"

/* "Rate Limit (envoyproxy/ratelimit)". */
void cr_component_title(const struct cr_component *component, char *out, size_t size);

/* Who notifies a program that reads again only when it is notified. */
enum cr_notifier {
    CR_NOTIFIER_NONE,
    CR_NOTIFIER_SIDECAR,
    CR_NOTIFIER_UNNAMED, /* named elsewhere in the sentence */
};

/* What a capability does in words: "reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start". */
void cr_capability_phrase(const struct cr_capability *capability, enum cr_role role, const char *parameter,
                          enum cr_notifier notifier, char *out, size_t size);
/* "server leaf", "client CA", …: how a role is called in a sentence. */
const char *cr_role_words(enum cr_role role);

#endif
