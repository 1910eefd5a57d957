/* Evidence per pod: does it have the new material? Pure; facts about the pod and a probe in, a verdict out. */
#ifndef CR_ROTATION_EVIDENCE_H
#define CR_ROTATION_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strvec.h"

enum cr_evidence { CR_EVIDENCE_VERIFIED, CR_EVIDENCE_INFERRED, CR_EVIDENCE_STALE, CR_EVIDENCE_UNKNOWN };
const char *cr_evidence_name(enum cr_evidence evidence);

enum cr_probe_seen {
    CR_SEEN_NOTHING, /* not probed: no port named in the policy */
    CR_SEEN_LEAF,
    CR_SEEN_UNREACHABLE,
    CR_SEEN_NOT_TLS,
};

struct cr_evidence_input {
    /* The pending changes of the Secrets that this consumer uses, for leaves that it serves. */
    const struct cr_strvec *expected; /* fingerprints of the new leaves */
    const struct cr_strvec *old;      /* fingerprints of the leaves before */
    bool leaf_changed;                /* else the leaf proves nothing about this change */
    bool restarted;                   /* the consumer's decision is Restart */
    bool pod_is_new;                  /* carries the restart annotation */
    int64_t pod_started_ms;           /* wall; 0: not started */
    int64_t since_ms;                 /* when the change was written down */
    int64_t now_ms;
    int64_t max_delay_ms; /* longest delay of what hot-reloads */
    enum cr_probe_seen seen;
    const char *leaf; /* fingerprint seen */
};

/* Longest time between a Secret's change and its appearance in a volume without a nudge: the kubelet's resync period
 * (60-90 s at the default syncFrequency, pkg/kubelet/pod_workers.go) plus the watch's delay. */
enum { CR_KUBELET_REFRESH_MS = 95 * 1000 };

/* why: "" or one line for a person (stale, unknown). */
enum cr_evidence cr_evidence_judge(const struct cr_evidence_input *input, char why[160]);

#endif
