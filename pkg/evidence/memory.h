/* What the process knows beside the API server: when a pod was last nudged and what probes of it saw. Losing it costs
 * a nudge and a handshake more, never a restart. Thread-safe. */
#ifndef CR_EVIDENCE_MEMORY_H
#define CR_EVIDENCE_MEMORY_H

#include <stdint.h>

#include "api/policy.h"
#include "base/cleanup.h"
#include "evidence/sidecar_page.h"
#include "evidence/trust_sighting.h"

struct cr_pod_memory {
    int nudges; /* for the change of nudged_since_ms */
    int64_t nudged_ms;
    int64_t nudged_since_ms;
    int64_t evicted_ms; /* monotonic; 0: it was not */
};

struct cr_memory;
struct cr_memory *cr_memory_new(void);
void cr_memory_free(struct cr_memory *memory);
CR_DEFINE_CLEANUP(cr_memory, struct cr_memory, cr_memory_free)

/* A copy; all zero for a pod that is not known. */
struct cr_pod_memory cr_memory_pod(struct cr_memory *memory, const char *uid);
/* Sightings are keyed by what was asked: port, name, protocol and client Secret. So two policies that ask different
 * endpoints of the same pods do not take each other's answers. started_ms: the pod's start; another start is another
 * process with another view of its files, and what was seen of the earlier process no longer counts. index: of the
 * endpoint. */
void cr_memory_probed(struct cr_memory *memory, const char *uid, int64_t started_ms,
                      const struct cr_policy_verify *verify, size_t index, const struct cr_sighting *sighting);
/* out: as many as verify has endpoints; all zero where nothing was seen. */
void cr_memory_sightings(struct cr_memory *memory, const char *uid, int64_t started_ms,
                         const struct cr_policy_verify *verify, struct cr_sighting *out);
/* The same for what the pod trusts, see trust_memory.h: for one endpoint; for verify.certsPage, which takes the page's
 * content; and a copy of it all, to be disposed of. at_ms: wall clock, when the look began. */
void cr_memory_saw_trust(struct cr_memory *memory, const char *uid, int64_t started_ms,
                         const struct cr_policy_verify *verify, size_t index, const struct cr_endpoint_trust *trust,
                         int64_t at_ms);
void cr_memory_saw_page(struct cr_memory *memory, const char *uid, int64_t started_ms,
                        const struct cr_policy_verify *verify, struct cr_trust_sighting *page, int64_t at_ms);
void cr_memory_trust(struct cr_memory *memory, const char *uid, int64_t started_ms,
                     const struct cr_policy_verify *verify, int64_t now_ms, struct cr_trust_sighting *out);
/* What the page of its certroll-sidecar said, see sidecar_memory.h: takes the sighting; and a copy, to be disposed of.
 */
void cr_memory_saw_sidecar(struct cr_memory *memory, const char *uid, int64_t started_ms,
                           struct cr_sidecar_sighting *sighting);
void cr_memory_sidecar(struct cr_memory *memory, const char *uid, int64_t started_ms, int64_t now_ms, bool awaited,
                       struct cr_sidecar_sighting *out);
/* since_ms: the time of the change; nudges for other changes no longer count. now_ms: wall clock. */
void cr_memory_nudged(struct cr_memory *memory, const char *uid, int64_t since_ms, int64_t now_ms);
/* now_ms: monotonic. */
void cr_memory_evicted(struct cr_memory *memory, const char *uid, int64_t now_ms);
void cr_memory_forget_pod(struct cr_memory *memory, const char *uid);

/* Per policy or consumer, by a key of the caller's. */
struct cr_note {
    int64_t at_ms;
    int count;   /* how often it was taken */
    int reason;  /* one of the caller's enum; 0: none */
    char *about; /* digest or version of what it is about. Owned; NULL: none */
    char *text;  /* Owned; NULL: none */
};
/* A copy, to be disposed of; all zero when there is none. */
struct cr_note cr_memory_note(struct cr_memory *memory, const char *key);
void cr_note_dispose(struct cr_note *note);
CR_DEFINE_DISPOSE(cr_note, struct cr_note, cr_note_dispose)
struct cr_note_input {
    int64_t at_ms;
    int reason;
    const char *about, *text; /* copied; NULL: none */
};
/* Replaces what was noted, and counts one more. */
void cr_memory_take_note(struct cr_memory *memory, const char *key, const struct cr_note_input *input);
/* Sets only the time, and counts one more. */
void cr_memory_note_time(struct cr_memory *memory, const char *key, int64_t at_ms);
void cr_memory_drop_note(struct cr_memory *memory, const char *key);
/* Drops all keys that start with the prefix. */
void cr_memory_forget_keys(struct cr_memory *memory, const char *prefix);

#endif
