/* Which trust domains an event concerns, and which Secrets they want: determined by what each domain's last reconcile
 * read and would write, so that what a selector adds is included. Thread-safe. */
#ifndef CR_CLUSTER_DOMAIN_INDEX_H
#define CR_CLUSTER_DOMAIN_INDEX_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/strvec.h"

struct cr_domain_index;
struct cr_domain_index *cr_domain_index_new(void);
void cr_domain_index_free(struct cr_domain_index *index);
CR_DEFINE_CLEANUP(cr_domain_index, struct cr_domain_index, cr_domain_index_free)

/* key: "ns/name", of the cluster kind "/name". secrets: "ns/name" of each Secret that it reads or writes, none twice;
 * empty: the domain is gone. True: other Secrets than before. */
bool cr_domain_index_put(struct cr_domain_index *index, const char *key, const struct cr_strvec *secrets);

/* --- whom it concerns: each adds keys of domains, none twice --- */

void cr_domain_index_of_secret(struct cr_domain_index *index, const char *ns, const char *name, struct cr_strvec *keys);
/* A policy of the namespace, which may cover any Secret there. */
void cr_domain_index_of_namespace(struct cr_domain_index *index, const char *ns, struct cr_strvec *keys);

/* --- what all of them want --- */

bool cr_domain_index_wants_secret(struct cr_domain_index *index, const char *ns, const char *name);
/* Each once, under a lock: visit does little and does not call the index. */
void cr_domain_index_visit_secrets(struct cr_domain_index *index,
                                   void (*visit)(void *arg, const char *ns, const char *name), void *arg);

#endif
