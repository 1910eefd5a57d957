/* Executes the plan of a trust domain: objects, CAs, status, canaries. Each write carries a precondition, so that it
 * can be the last before a crash, and repeated. Called in workers; each call blocks for its requests. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_ACTS_H
#define CR_TRUST_CONTROLLER_DOMAIN_ACTS_H

#include "evidence/canaries.h"
#include "trust/controller/domain_world.h"
#include "runtime/own_writes.h"

/* After this time a domain leaves its worker to others. An RSA key of 4,096 bits takes a second or two, and each of 64
 * leaves may have one. */
enum { CR_DOMAIN_WORK_MS = 2000 };

struct cr_domain_actor {
    struct cr_client *client;
    struct cr_memory *memory;         /* of domains */
    struct cr_own_writes *own_writes; /* of domains, by key */
    struct cr_canaries *canaries;     /* NULL: none are made */
};

/* Does the first of these that the plan asks for: make a CA, write objects, promote the next CA, delete staging. The
 * result of each write is noted in gathered->status. *did: something was done, so the plan must be made again. With
 * several objects, it tries those that can be begun within CR_DOMAIN_WORK_MS, and stops at the first that succeeds; the
 * next plan has the others again. The first error that must be retried is returned. What the API server refuses for
 * good is remembered, and is no error. */
bool cr_domain_act(const struct cr_domain_actor *actor, struct cr_domain_gathered *gathered,
                   const struct cr_domain_plan *plan, bool *did, struct cr_error *err) CR_MUST_USE;

/* Writes `after` when it differs from `before` in what is encoded; resourceVersion is the precondition. *written: owned
 * new object, NULL when nothing differed. domain: its name, uid, and whether it is of the cluster kind are read. */
bool cr_domain_act_status(const struct cr_domain_actor *actor, const struct cr_domain *domain,
                          const char *resource_version, const struct cr_domain_status *before,
                          const struct cr_domain_status *after, struct cr_json **written,
                          struct cr_error *err) CR_MUST_USE;

/* Makes a canary for each CA whose key is held and that has none. Returns in how many ms to call it again. */
int64_t cr_domain_act_canaries(const struct cr_domain_actor *actor, const struct cr_domain_gathered *gathered);

/* "ns/name" or "/name", owned. */
char *cr_domain_key(const struct cr_domain *domain);

#endif
