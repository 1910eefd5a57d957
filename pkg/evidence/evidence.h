/* Evidence per pod: does it have the new material? Pure; facts about the pod and probes in, a verdict out. */
#ifndef CR_EVIDENCE_EVIDENCE_H
#define CR_EVIDENCE_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "evidence/sighting.h"

enum cr_evidence { CR_EVIDENCE_VERIFIED, CR_EVIDENCE_INFERRED, CR_EVIDENCE_STALE, CR_EVIDENCE_UNKNOWN };
const char *cr_evidence_name(enum cr_evidence evidence);

struct cr_evidence_input {
    /* What the pod's endpoints show of the leaf that changed; NULL: nothing to ask, or the leaf proves nothing about
     * this change. */
    const struct cr_shown_leaf *shown;
    /* The same of the CAs; NULL: they did not change, or cannot be seen. What was not looked at since counts as not
     * seen until time decides. */
    const struct cr_shown_leaf *trust;
    bool trust_alone;       /* and nothing else changed for it */
    bool trust_notified;    /* by the pod's certroll-sidecar: then time proves nothing of it */
    bool restarted;         /* the consumer's decision is Restart */
    bool pod_is_new;        /* carries the restart annotation */
    int64_t pod_started_ms; /* wall; 0: not started */
    int64_t since_ms;       /* when the change was written down */
    int64_t now_ms;
    int64_t max_delay_ms; /* longest delay of what hot-reloads */
};

/* Longest time between a Secret's change and its appearance in a volume without a nudge: the kubelet's resync period
 * (60-90 s at the default syncFrequency, pkg/kubelet/pod_workers.go) plus the watch's delay. */
enum { CR_KUBELET_REFRESH_MS = 95 * 1000 };

/* why: "" or one line for a person (stale, unknown). */
enum cr_evidence cr_evidence_judge(const struct cr_evidence_input *input, char why[CR_SHOWN_WHY]);

#endif
