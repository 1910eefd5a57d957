/* What the page of a pod's certroll-sidecar shows of one Secret. Pure: a page in, verdicts out. */
#ifndef CR_EVIDENCE_SIDECAR_SIGHTING_H
#define CR_EVIDENCE_SIDECAR_SIGHTING_H

#include "base/strvec.h"
#include "evidence/sidecar_page.h"
#include "evidence/sighting.h"

struct cr_sidecar_question {
    const char *leaf;                           /* the new one; "": the Secret has none */
    const struct cr_strvec *old_leaves;         /* those that count as old; may be NULL */
    const char *settled_leaf;                   /* "": none is on record */
    const char *trust;                          /* digest of the new CAs; "": the Secret has none */
    const char *settled_trust;                  /* "": none is on record */
    const struct cr_strvec *others;             /* leaves of the policy's other Secrets with these CAs; may be NULL */
    const struct cr_strvec *others_settled;     /* the same, with the settled ones */
    int port;                                   /* of the page, for people */
    int64_t since_ms;                           /* what was seen before says nothing */
    const struct cr_sidecar_sighting *sighting; /* NULL: not looked at */
};

/* What is shown of the leaf and of the CAs. CR_SHOWN_NEW: delivered, and seen in a handshake. CR_SHOWN_DELIVERED:
 * delivered, and nothing can show more. CR_SHOWN_OLD: an old leaf was seen served, which goes for the leaf alone.
 * CR_SHOWN_UNKNOWN: all else; why says what. Never CR_SHOWN_NOTHING. */
struct cr_sidecar_shown {
    struct cr_shown_leaf leaf, trust;
    bool leaf_found, trust_found; /* the kubelet has refreshed its volume */
};

/* A part of a material of the page is of this Secret by the leaf beside it; CAs alone are of this Secret by the leaf
 * that a port shows; when none is, by its CAs, unless beside them is the leaf of another Secret that has these. CAs
 * alone that are the new ones are of this Secret in any case. If several have a part, all must have the new one; one
 * old leaf counts more than all that is unknown. The page reports what the sidecar refuses: a new pod would get the
 * same, so nothing of that is old. */
void cr_sidecar_judge(const struct cr_sidecar_question *question, struct cr_sidecar_shown *out);

#endif
