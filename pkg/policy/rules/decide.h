/* The decision per consumer: material × role × capability × usage. Pure. */
#ifndef CR_POLICY_RULES_DECIDE_H
#define CR_POLICY_RULES_DECIDE_H

#include "api/policy.h"
#include "api/status.h"
#include "codec/json.h"
#include "catalogue/catalogue.h"

/* One Secret of the policy that has a pending change. */
struct cr_secret_change {
    const struct cr_policy_secret *secret;
    unsigned changes;     /* CR_CHANGE_* */
    const char *key_type; /* of the new leaf, cr_material.key_type; NULL or "": not known */
    /* CR_ROLE_BIT of those in which a leaf with that key is met; 0: serverLeaf and clientLeaf, since it is not known
     * which leaves the CAs of the Secret verify. */
    unsigned key_roles;
    /* Keys of opaque material that changed. NULL or empty: any may have. */
    const struct cr_strvec *opaque_keys;
    /* The Secret was immutable and was replaced under its name: mounts do not refresh (see usage.h). */
    bool was_immutable;
};

struct cr_decide_input {
    const struct cr_policy_consumer *consumer;
    const struct cr_json *pod_spec; /* of the workload's template */
    const struct cr_catalogue *catalogue;
    const struct cr_secret_change *changes; /* only Secrets with changes != 0 */
    size_t changes_len;
};

struct cr_decision_secret {
    bool used;                  /* the pod template uses this Secret */
    enum cr_decision_kind kind; /* of this Secret alone */
    unsigned restart_classes;   /* CR_CLASS_* that force a restart */
    unsigned reload_classes;    /* CR_CLASS_* taken up without one */
    unsigned trigger_classes;   /* of those, the ones that its certroll-sidecar must notify it of */
    bool reloads;               /* something of it takes up what changed without one, also beside a restart */
    unsigned roles;             /* CR_ROLE_BIT mask of the roles this Secret plays */
    int64_t max_delay_ms;       /* longest delay of what reloads */
    bool refreshes;             /* some mount of it refreshes by itself: nudging helps */
    bool not_accepted;          /* some software takes no leaf with such a key: it will not take it up */
};

struct cr_decision {
    enum cr_decision_kind kind; /* the strictest */
    char *reason;       /* owned; one sentence, names component, parameter and role that decided, and what changed */
    char *component;    /* owned; NULL: unknown */
    char *not_accepted; /* owned clause: the software takes no leaf with such a key; NULL: it does, or unknown */
    bool unknown;       /* a restart only because the capability is unknown or unverified */
    struct cr_decision_secret *secrets; /* owned; parallel to the input's changes */
    size_t secrets_len;
};
void cr_decision_dispose(struct cr_decision *decision);
CR_DEFINE_DISPOSE(cr_decision, struct cr_decision, cr_decision_dispose)

/* Rules:
 * - a Secret that the template does not use decides None for that consumer, and the reason says so;
 * - SubPath and Env decide Restart whatever the component can do; init containers that run once decide Restart, too,
 * unless the catalogue knows that they only name the files to another container (contour bootstrap);
 * - a leaf with a key that the software is known not to accept is reported beside the decision, which does not change;
 * - only roles with a class that changed count (LeafRenewed touches serverLeaf and clientLeaf, Trust* touches clientCA
 *   and serverCA);
 * - only the changed keys of opaque material count: those that the template picks (items, subPath, env), or that a
 *   parameter points to. A volume with all keys concerns software that is not known, or of which the catalogue or the
 *   policy (reload.opaque) says that it reads opaque material;
 * - policy overrides by role beat the catalogue;
 * - Watch, PerHandshake, Poll decide HotReload; ApiWatch HotReload; Signal, HTTP, Command decide Trigger when a
 * sidecar in the pod (sidecar.h) has the leaf, or the CAs, of this Secret in a volume that refreshes, else Restart;
 * Unknown and unverified mean Restart; an unknown component or version takes the strictest;
 * - what only the sidecar mounts counts as a usage by the containers that read what it makes of it; its own usage
 *   decides nothing;
 * - several containers, roles and Secrets: the strictest decides, and the reason names it first, then what would have
 * reloaded. */
void cr_decide(const struct cr_decide_input *input, struct cr_decision *out);

/* The decision for an Ingress or a Gateway: HotReload by ApiWatch of the leaves that it names. object: itself; the
 * input's pod_spec and catalogue are not read. */
void cr_decide_by_api(const struct cr_decide_input *input, const struct cr_json *object, struct cr_decision *out);

/* The software of the consumer that is known not to take leaves with a key of this type (cr_material.key_type) in one
 * of these roles (CR_ROLE_BIT), as far as it plays them with this Secret: its own leaf, or one that it verifies. Owned,
 * in words; NULL: all take it, or that is not known. */
char *cr_decide_refuses_key(const struct cr_policy_consumer *consumer, const struct cr_json *pod_spec,
                            const struct cr_catalogue *catalogue, const struct cr_policy_secret *secret,
                            const char *key_type, unsigned roles);

#endif
