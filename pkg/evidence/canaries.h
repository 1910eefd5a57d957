/* Canaries: client certificates of CAs whose keys a trust domain holds, for probes that ask whether a server trusts
 * that CA. In memory only; the domain's reconcile makes them, probes of policies use them. Thread-safe. */
#ifndef CR_EVIDENCE_CANARIES_H
#define CR_EVIDENCE_CANARIES_H

#include <stdint.h>

#include "base/cleanup.h"
#include "net/tls_probe.h"

struct cr_canaries;
struct cr_canaries *cr_canaries_new(void);
void cr_canaries_free(struct cr_canaries *canaries);
CR_DEFINE_CLEANUP(cr_canaries, struct cr_canaries, cr_canaries_free)

/* ca: the CA certificate's fingerprint. Takes the client. not_after_ms: wall clock; the first call of has or hold after
 * it drops the canary, so that keys do not accumulate where no probe ever runs. */
void cr_canaries_put(struct cr_canaries *canaries, const char *ca, struct cr_probe_client *client,
                     int64_t not_after_ms);
/* Whether one is there now that lasts until then. */
bool cr_canaries_has(struct cr_canaries *canaries, const char *ca, int64_t now_ms, int64_t until_ms);
/* One that is valid at now_ms, for as long as it is held: give it back with release. NULL: none. */
const struct cr_probe_client *cr_canaries_hold(struct cr_canaries *canaries, const char *ca, int64_t now_ms);
void cr_canaries_release(struct cr_canaries *canaries, const struct cr_probe_client *client);

#endif
