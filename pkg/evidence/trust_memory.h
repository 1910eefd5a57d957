/* What was seen of the trust of one pod, keyed by what was asked: so two policies that ask different endpoints of the
 * pod do not take each other's answers. Only pods with changes of trust have any. Not thread-safe. */
#ifndef CR_EVIDENCE_TRUST_MEMORY_H
#define CR_EVIDENCE_TRUST_MEMORY_H

#include "base/cleanup.h"
#include "evidence/trust_sighting.h"

struct cr_trust_memory;
void cr_trust_memory_free(struct cr_trust_memory *memory);
CR_DEFINE_CLEANUP(cr_trust_memory, struct cr_trust_memory, cr_trust_memory_free)

/* *memory: NULL as long as nothing was seen. started_ms: the pod's start; another start is another process. at_ms: wall
 * clock, of the beginning of the look. Bounded: the oldest makes room. */
void cr_trust_memory_keep_endpoint(struct cr_trust_memory **memory, int64_t started_ms,
                                   const struct cr_verify_endpoint *endpoint, const struct cr_endpoint_trust *trust,
                                   int64_t at_ms);
/* For verify.certsPage: takes page_read, contexts and words. */
void cr_trust_memory_keep_page(struct cr_trust_memory **memory, int64_t started_ms,
                               const struct cr_policy_verify *verify, struct cr_trust_sighting *page, int64_t at_ms);
/* A copy of all that verify asks for, owned; all zero where a part of it was not seen by this process of the pod. What
 * was seen later than now_ms was seen by another clock. Forgets what is older than CR_TRUST_KEPT_MS: a policy that
 * needs it asks more often. */
enum { CR_TRUST_KEPT_MS = 15 * 60 * 1000 };
void cr_trust_memory_recall(struct cr_trust_memory **memory, int64_t started_ms, const struct cr_policy_verify *verify,
                            int64_t now_ms, struct cr_trust_sighting *out);

#endif
