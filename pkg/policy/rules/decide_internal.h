/* What the rules of a decision found, for the words; not for others. */
#ifndef CR_POLICY_RULES_DECIDE_INTERNAL_H
#define CR_POLICY_RULES_DECIDE_INTERNAL_H

#include "catalogue/words.h"
#include "policy/rules/decide.h"
#include "evidence/diff.h"
#include "workload/sidecar.h"
#include "catalogue/usage.h"

/* Why a finding decides as it does, the weakest ground for a restart first: the reason names the strongest. */
enum cr_ground {
    CR_GROUND_RELOADS,      /* its capability: by itself */
    CR_GROUND_NOTIFIED,     /* when its pod's certroll-sidecar notifies it */
    CR_GROUND_UNKNOWN,      /* unknown, or not verified */
    CR_GROUND_NOT_NOTIFIED, /* it could be notified, but nothing is there to notify it */
    CR_GROUND_CAPABILITY,   /* it reads once */
    CR_GROUND_INIT,         /* an init container has run and is gone */
    CR_GROUND_FIXED,        /* subPath, environment and what was immutable never refresh */
};

/* One role that a changed file plays in one container. */
struct cr_finding {
    size_t secret; /* index into the input's changes */
    const struct cr_usage *usage;
    const struct cr_component *component; /* NULL: unknown */
    const char *parameter;                /* NULL: not known */
    char key[64];                         /* "": not known */
    enum cr_role role;
    enum cr_class class;
    struct cr_capability capability;
    bool overridden;   /* the policy said so */
    bool not_accepted; /* a leaf with a key of a type that it does not take */
    bool is_immutable; /* the Secret was immutable: its kubelets look at it no more */
    enum cr_ground ground;
};

struct cr_findings {
    struct cr_finding *items;
    size_t len;
    struct cr_sidecar_container sidecar; /* of the pod */
};

/* Without a restart. */
static inline bool cr_finding_reloads(const struct cr_finding *finding)
{
    return finding->ground == CR_GROUND_RELOADS || finding->ground == CR_GROUND_NOTIFIED;
}

/* Looks at containers and init containers; NULL: there is none. */
const struct cr_json *cr_container_named(const struct cr_json *pod_spec, const char *name);

/* The class of a file by its key, or by its role when the key is not known. */
enum cr_class cr_class_of(const struct cr_policy_secret *secret, const char *key, enum cr_role role);

/* decide_sidecar.c: reduces the usages of a Secret to those that count. What only the sidecar mounts is a usage by
 * the containers that read what it makes of it; beside others, its own usage decides nothing, unless it is for the
 * certificate of its page. */
void cr_decide_usages(const struct cr_decide_input *input, const struct cr_sidecar_container *sidecar,
                      const struct cr_policy_secret *secret, struct cr_usage_list *usages);
/* passed_on: cr_sidecar_classes of the finding's Secret. */
enum cr_notifier cr_decide_notifier(const struct cr_finding *finding, unsigned passed_on);

/* decide_keys.c: whether the component is known not to take the new leaf's key in this role. */
bool cr_finding_refuses_key(const struct cr_finding *finding, const struct cr_program *program,
                            const struct cr_secret_change *change);
/* Owned, NULL when every key is taken. */
char *cr_decide_not_accepted(const struct cr_decide_input *input, const struct cr_findings *findings);

enum { CR_REASON_MAX = 400 };
/* Owned, at most CR_REASON_MAX bytes. deciding: NULL when there are no findings (nothing that changed concerns it). */
char *cr_decide_reason(const struct cr_decide_input *input, const struct cr_decision *decision,
                       const struct cr_findings *findings, const struct cr_finding *deciding);

#endif
