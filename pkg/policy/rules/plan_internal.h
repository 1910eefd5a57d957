/* Shared by the parts of the plan; not for others. What takes a const context or consumer looks, and returns what it
 * finds: it asks for no other plan, and changes neither the plan nor the status. */
#ifndef CR_POLICY_RULES_PLAN_INTERNAL_H
#define CR_POLICY_RULES_PLAN_INTERNAL_H

#include "base/buffer.h"
#include "base/strmap.h"
#include "policy/rules/decide.h"
#include "evidence/diff.h"
#include "policy/rules/plan.h"
#include "workload/sidecar.h"
#include "evidence/sidecar_sighting.h"
#include "workload/rollout.h"
#include "policy/rules/schedule.h"
#include "workload/shutdown_hook.h"

/* What one pending change means to one consumer. */
struct plan_change {
    bool concerns;        /* the consumer uses the Secret, in a role that changed */
    unsigned classes;     /* CR_CLASS_* that it must be, or was, restarted for; 0: it reloads */
    bool reloads_cas;     /* it takes up CAs that changed, or a leaf of another CA, without a restart */
    bool demanded;        /* by the decision, not only by the fall-back */
    bool covered;         /* the template already carries them */
    bool is_immutable;    /* the Secret was immutable: its kubelets give the old content to new pods, too */
    bool leaf_changed;    /* a leaf that it serves */
    bool leaf_presented;  /* a leaf that it presents as a client, and that its page shows */
    unsigned trust_roles; /* in which it uses CAs that changed: CR_ROLE_BIT */
    unsigned
        notified; /* CR_CLASS_* that its certroll-sidecar notifies it of, and that its page can show by their digests */
    bool not_accepted; /* its software takes no such leaf: time alone proves nothing */
    int64_t since_ms;
    int64_t max_delay_ms;
};

/* What one pod has of one change. */
struct plan_evidence {
    enum cr_evidence evidence;
    enum cr_shown leaf; /* what is seen of it */
    enum cr_shown trust;
    int64_t old_leaf_ms; /* when it was last seen to have an old leaf of the Secret; 0: it has not */
    int64_t old_trust_ms;
    int64_t old_ms; /* the later of the two */
    bool found;     /* its certroll-sidecar has found all that it notifies the program of: its volume is refreshed */
};

/* Pods that a restart has replaced, while their shutdown manager lets their connections go. Borrowed from the world. */
struct plan_drain {
    size_t pods;
    const struct cr_world_ending *last;  /* of them, the one that may take longest; NULL: there is none */
    const struct cr_world_ending *stuck; /* one that should have ended, and is still there; NULL: none is */
    int64_t old_trust_ms;                /* how long old pods may go on with CAs that changed; 0: no longer */
    int64_t unrefreshed_ms;              /* likewise pods that were deleted before they could reload these */
    int64_t look_again_ms;               /* when time alone ends something of it; 0: not by time */
};

/* What is known of one consumer while the plan is made. */
struct plan_consumer {
    const struct cr_policy_consumer *spec;
    const struct cr_world_consumer *world;
    struct cr_consumer_status *status; /* borrowed from the plan */
    const struct cr_json *pod_spec;
    struct cr_sidecar_container sidecar; /* of the pod template */
    struct cr_shutdown_hooks hooks;      /* likewise */
    struct plan_drain drain;
    struct cr_decision decision;
    bool concerned;              /* a pending change touches it */
    struct plan_change *changes; /* parallel to the context's; NULL when not concerned */
    bool needs_restart;
    bool restarted;         /* its template carries all that it must be restarted for */
    struct cr_gate held_by; /* a Secret it uses cannot be used now: nothing disruptive may happen */
    bool uses_none;         /* of the Secrets of the policy */
    bool change_held;       /* and it broke in the middle of a rotation, which therefore waits */
    struct cr_rollout rollout;
    int64_t since_ms;               /* of the latest change that touches it */
    int64_t first_ms;               /* of the first of them, with those that were superseded */
    struct plan_evidence *evidence; /* pods × changes, see cr_plan_evidence_at */
    bool evicts;                    /* a restart by evictions has begun for these changes, and is on record */
    struct cr_budget_verdict taken; /* the way by which its evictions begin with this very plan */
    bool under_way;                 /* a restart of it by this policy is: it takes pods away */
    bool begins;                    /* with this very plan */
    bool unseen_late; /* while idle: a pod has not shown in time what it should, or shows something else */
};

/* Secrets with a leaf that the pods of a consumer may show. */
struct plan_leaves {
    bool *of_policy; /* parallel to policy->secrets; NULL: it asks for no names */
    size_t len;      /* with those of others */
};

struct plan_ctx {
    const struct cr_world *world;
    struct cr_plan *plan;
    struct cr_secret_change *changes;  /* active: pending and without a problem */
    struct cr_secret_status **pending; /* parallel to changes; borrowed from the plan's status */
    size_t changes_len;
    struct plan_leaves *leaves_of; /* per consumer that asks for names */
    struct cr_strmap *leaves_for;  /* a name that consumers ask for → bool[], parallel to policy->secrets: what the
                                    * Secret holds now has a leaf for it. So each leaf is searched once for a name */
    struct plan_consumer *consumers;
    size_t consumers_len;
    int begun; /* restarts in this plan that count for the limits */
    bool rollout_failed;
    struct cr_schedule schedule; /* of the policy's windows, where there is a restart to begin */
};

/* plan_secrets.c: what changed, against what is remembered. Sets record_first. */
void cr_plan_secrets(struct plan_ctx *ctx);
/* What an annotation says about these classes of the material: the changes of those classes that it names with another
 * digest. Nothing can be said of opaque material by another key, or without one. */
unsigned cr_plan_changes_since(const char *annotation, const struct cr_material *material, unsigned classes);
/* plan_unrecorded.c: how restarts that never came on record differ from what the Secret holds now, and from all that
 * is on record. CR_CHANGE_* bits; 0: there are none. */
unsigned cr_plan_unrecorded(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_world_secret *now);
/* When the first such restart was done, if the Secret has not been written since: what else it holds may have come
 * later than that restart. None: now. */
int64_t cr_plan_unrecorded_since_ms(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                                    const struct cr_world_secret *now);
/* plan_names.c: the leaves that consumers may show to clients that ask for a name, by their Secrets. Call it before all
 * functions below. */
void cr_plan_names_make(struct plan_ctx *ctx);
void cr_plan_names_dispose(struct plan_ctx *ctx);
/* What becomes of a leaf of this Secret without a name in use, by its annotation; otherwise: without an annotation. */
enum cr_on_missing_name cr_plan_on_missing_name(const struct plan_ctx *ctx, const char *secret,
                                                enum cr_on_missing_name otherwise);
/* In words, which names in use that leaf of the Secret is not for, so that it is held; NULL: none. Owned. */
char *cr_plan_missing_names(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_material *leaf);
/* Adds to a condition the problems of names in use that hold nothing. Returns the reason of the first, static; NULL:
 * there are none. */
const char *cr_plan_add_host_warnings(const struct plan_ctx *ctx, struct cr_buf *text);
/* In words, the names in use that leaves of a consumer with onMissingName Report are not for, which are only reported:
 * "web: the leaf of ...". */
char *cr_plan_reported_names(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* How many endpoints all consumers have, and how many of these have a serverName that some leaf is for which they may
 * show. */
struct plan_names_checked {
    size_t endpoints, names;
};
struct plan_names_checked cr_plan_names_checked(const struct plan_ctx *ctx);
/* In words, which names of a leaf the next leaf is not for; NULL: it is for all of them. Owned. */
char *cr_plan_lost_names(const struct cr_material *before, const struct cr_material *now);
/* What is reported of a consumer and stops no restart. */
struct plan_warning {
    enum cr_warning_bit bit;
    char *(*words)(const struct plan_ctx *ctx, const struct plan_consumer *consumer); /* owned; NULL: there is none */
};
enum { CR_PLAN_WARNINGS = 2 };
extern const struct plan_warning cr_plan_warnings[CR_PLAN_WARNINGS];
/* plan_consumers.c: what is decided and demanded for each consumer; then acts for it. */
void cr_plan_consumers(struct plan_ctx *ctx);
/* The last restart, whoever did it, as the workload's template (an Argo Rollout's spec) says; 0: it says none. */
int64_t cr_plan_restarted_at_ms(const struct cr_json *workload);
void cr_plan_consumers_dispose(struct plan_ctx *ctx);
/* The annotation of the consumer's template for a Secret, which says what it was restarted for; NULL: there is none. */
const char *cr_plan_restart_annotation(const struct plan_consumer *consumer, const char *secret);
/* Where a consumer stands, and what holds it there. A value: who makes one does not change the consumer. */
struct plan_stand {
    enum cr_consumer_state state;
    struct cr_gate gate; /* owned */
};
void cr_plan_stand_dispose(struct plan_stand *stand);
CR_DEFINE_DISPOSE(plan_stand, struct plan_stand, cr_plan_stand_dispose)
struct plan_stand cr_plan_stand(enum cr_consumer_state state);
/* Takes gate. */
struct plan_stand cr_plan_stand_by(enum cr_consumer_state state, struct cr_gate gate);
/* By a gate that holds a restart: Blocked or Pending. Takes gate, which is not open. */
struct plan_stand cr_plan_held(struct cr_gate gate);
/* Takes stand. */
void cr_plan_set_stand(struct cr_consumer_status *status, struct plan_stand stand);
/* When the consumer last moved: the change, its restart, or the newest pod. */
int64_t cr_plan_last_progress_ms(const struct plan_consumer *consumer);
/* plan_restart.c: does what is to be done for a consumer that is concerned. */
struct plan_stand cr_plan_act(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index);
/* Its kind is restarted by a time and not by its pod template: an Argo Rollout. */
bool cr_plan_restarts_by_time(const struct plan_consumer *consumer);
/* The rotations that this consumer is, or was, restarted for, by id: "a,b". Owned. */
char *cr_plan_rotations_of(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The plan comes again when the gate may be open by time alone. */
void cr_plan_note_wait(struct plan_ctx *ctx, const struct cr_gate *gate);
/* New pods were evicted CR_PLAN_EVICTIONS_MAX times and still serve the old leaf. */
struct plan_stand cr_plan_still_stale(void);
/* plan_others.c: pairs of Secret and consumer that another policy has. */
bool cr_plan_is_others(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change);
/* The other policy has not yet brought the consumer the material of this change. */
bool cr_plan_waits_for_other(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change);
/* What the other policy remembers of the Secret; NULL: the pair is this policy's, or the other policy remembers
 * nothing. */
const struct cr_secret_status *cr_plan_memory_of_other(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                                       size_t change);
/* Where a consumer stands that is idle but for another policy; false: it waits for none. */
bool cr_plan_wait_for_others(struct plan_ctx *ctx, const struct plan_consumer *consumer, struct plan_stand *stand);
/* In words, if a consumer is not concerned because another policy has its pair. Owned; NULL: that is not the reason. */
char *cr_plan_others_reason(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The memory of a policy that is, or is about to be, in the middle of a change of this Secret for one of our consumers,
 * whichever policy has the pair; NULL: none is. The Secret is there and can be used. */
const struct cr_secret_status *cr_plan_under_way_elsewhere(const struct cr_world *world, size_t secret);
/* How many such pairs there are; the first few in words. */
size_t cr_plan_conflicts(const struct plan_ctx *ctx, struct cr_buf *text);
/* plan_breaker.c: counts the last restart by certroll, as the template shows it. */
void cr_plan_count_restart(struct plan_ctx *ctx, struct plan_consumer *consumer);
/* Counts evictions of the consumer that begin now. */
void cr_plan_count_evictions(const struct plan_ctx *ctx, struct plan_consumer *consumer);
/* Whether a trust domain publishes the Secret of change k and has not recorded its version yet, for at most most_ms:
 * what another program has written there may be corrected meanwhile. */
bool cr_plan_awaits_record(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t k, int64_t most_ms);
/* When to look again at a restart that is held by what would let a stage of a trust domain's rotation go: what was
 * published a moment ago may be on the domain's record soon; or late, when the API server refuses writes. 0: nothing is
 * to come. */
int64_t cr_plan_record_comes_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The consumer is to be restarted for the distrust of a CA; again: it was, and a new pod has what was before. */
bool cr_plan_distrusts(const struct plan_ctx *ctx, const struct plan_consumer *consumer, bool again);
/* What the status says of the same workload; NULL: nothing. */
const struct cr_consumer_status *cr_plan_on_record(const struct cr_policy_status *status,
                                                   const struct cr_consumer_status *consumer);

/* All counted restarts of the consumer are on record: another one may overwrite what its template shows. */
bool cr_plan_restarts_are_recorded(const struct cr_policy_status *recorded, const struct cr_consumer_status *consumer);
/* plan_gate.c: what is to be done, so which gates are asked. */
enum plan_occasion {
    PLAN_TO_ACT = 1 << 0,        /* anything, also a probe; of the policy alone: the consumer may be NULL */
    PLAN_TO_PROPOSE = 1 << 1,    /* a restart, in mode Plan */
    PLAN_TO_BEGIN = 1 << 2,      /* a restart */
    PLAN_TO_GO_ON = 1 << 3,      /* with evictions that have begun */
    PLAN_TO_EVICT_NEXT = 1 << 4, /* the next pod, when that may go on */
    PLAN_TO_REPAIR = 1 << 5,     /* a new pod that came up with the old leaf */
};
struct plan_answer {
    struct cr_gate gate;          /* what stands in the way; open: nothing does */
    struct cr_budget_verdict way; /* that budgets leave, where they were asked */
};
/* Changes nothing. The caller disposes of the answer, and sees to it that the plan comes again (cr_plan_note_wait). */
struct plan_answer cr_plan_ask(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                               enum plan_occasion occasion);
/* PLAN_TO_REPAIR: whether that pod may be evicted. */
struct plan_answer cr_plan_ask_repair(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                      const struct cr_world_pod *pod);
void cr_plan_answer_dispose(struct plan_answer *answer);
CR_DEFINE_DISPOSE(plan_answer, struct plan_answer, cr_plan_answer_dispose)
/* The gates of other files, for the table in plan_gate.c. Each is owned by the caller. */
struct plan_question {
    const struct plan_ctx *ctx;
    const struct plan_consumer *consumer;
    const struct cr_budget_verdict *way; /* NULL: it is not asked for yet */
    const struct cr_world_pod *pod;      /* that a repair would evict; NULL on other occasions */
};
struct cr_gate cr_plan_breaker(const struct plan_question *q);  /* it was restarted too often lately */
struct cr_gate cr_plan_budget(const struct plan_question *q);   /* PodDisruptionBudgets let a restart go on */
struct cr_gate cr_plan_only_pod(const struct plan_question *q); /* singleReplica does not let the only pod go */
/* New pods that come by evictions surely have the new Secret, or can show it. */
struct cr_gate cr_plan_unverifiable_gate(const struct plan_question *q);
/* Kubelets have the new Secret for new pods, as far as old pods can show it. At most 2 s beyond restart.coalesce. */
struct cr_gate cr_plan_kubelet_cache_gate(const struct plan_question *q);
/* Which of the policy's windows is open, or opens next. There is one. */
struct cr_schedule cr_plan_schedule(const struct plan_ctx *ctx);
/* The workload is paused, so a restart of it waits or stands. */
struct cr_gate cr_plan_paused(void);
/* Until when further changes are waited for (restart.coalesce). */
int64_t cr_plan_coalesced_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* plan_limit.c: whether a restart of this consumer is under way, as it is now; of those that this plan begins, see
 * cr_plan_begin. */
bool cr_plan_is_under_way(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Counts a restart of the consumer that is in the plan. */
void cr_plan_begin(struct plan_ctx *ctx, struct plan_consumer *consumer);
void cr_plan_list_under_way(struct plan_ctx *ctx);
/* All leaves that are remembered of a Secret. */
void cr_plan_add_leaves(const struct cr_secret_status *secret, struct cr_strvec *out);
/* plan_evidence.c: evidence per pod and change. */
struct plan_found {
    struct plan_evidence *evidence; /* owned; pods × changes */
    struct cr_pod_counts pods;
    struct cr_strvec examples; /* pods without evidence, and why */
    int64_t look_again_ms;     /* when a pod without evidence has it, or is late, by the time alone; 0: none */
};
struct plan_found cr_plan_evidence(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* What the pod is known to have of the change. */
const struct plan_evidence *cr_plan_evidence_at(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                                                size_t pod, size_t change);
/* All pods that should be there are, and have the new material of this change. */
bool cr_plan_pods_have(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change);
/* Of a consumer with pods that have not: what is missing is that all are of the present template, which is known to
 * reload. */
bool cr_plan_awaits_template(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Of a consumer without pods: when the next delay ends that it is given for a change. 0: all have ended. */
int64_t cr_plan_delay_left_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
bool cr_plan_enough_pods(const struct plan_consumer *consumer);
/* When every program that reloads by itself should have taken up a change. */
int64_t cr_plan_deadline_ms(const struct plan_consumer *consumer, const struct plan_change *change);
/* The latest deadline of all its changes is over. */
bool cr_plan_past_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* plan_trust.c: what is seen of the CAs that pods verify their peers against. Of one change, for all pods of a
 * consumer. */
struct plan_trust_look {
    struct cr_trust_change change; /* its target is NULL: nothing can be seen */
    struct cr_strvec mounts;       /* where pods have the Secret */
    struct cr_strvec other_leaves; /* of Secrets that have trust of their own */
};
void cr_plan_trust_look_make(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                             struct plan_trust_look *out);
void cr_plan_trust_look_dispose(struct plan_trust_look *look);
void cr_plan_look_at_trust(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                           const struct cr_world_pod *pod, size_t change, const struct plan_trust_look *look,
                           struct cr_shown_leaf *out);
/* The same of a leaf that is presented. */
void cr_plan_look_at_page_leaf(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                               const struct cr_world_pod *pod, size_t change, struct cr_shown_leaf *out);
/* A look at the pod may show something of the change, beside the leaf that it serves. */
bool cr_plan_can_see_trust(const struct plan_consumer *consumer, const struct cr_world_pod *pod, size_t change);
/* The CA that a canary should be of, among all that its changes have brought: one at a time, the same for all consumers
 * of a change. Borrowed; NULL: none is needed. */
const char *cr_plan_canary_ca(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The Secret as it was read: what is remembered of it has no subjects and serial numbers. */
const struct cr_material *cr_plan_target(const struct plan_ctx *ctx, size_t change);
/* plan_trigger.c: what the pages of pods' sidecars show. Of the classes that a sidecar notifies of, those of a change
 * that such a page can show: it shows nothing of another chain under the same leaf. */
unsigned cr_plan_notified(const struct plan_ctx *ctx, size_t change, unsigned trigger_classes);
/* For one change, for all pods of a consumer. */
struct plan_trigger_look {
    char trust[CR_SHA256_HEX];
    char settled_trust[CR_SHA256_HEX];
    struct cr_strvec others; /* leaves of the policy's other Secrets that have the same CAs */
    struct cr_strvec others_settled;
};
void cr_plan_trigger_look_make(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change,
                               struct plan_trigger_look *out);
void cr_plan_trigger_look_dispose(struct plan_trigger_look *look);
/* Adds what the page shows of the leaf and of the CAs, as far as the sidecar notifies the program of them, to what was
 * seen of them directly, which counts more. *found: see plan_evidence. */
void cr_plan_look_at_sidecar(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                             const struct cr_world_pod *pod, size_t change, const struct plan_trigger_look *look,
                             struct cr_shown_leaf *leaf, struct cr_shown_leaf *trust, bool *found);
/* The port of the page that may show one of its changes; 0: none may. */
int cr_plan_sidecar_port(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The fall-back: what reloads by its decision and was seen with old material past the deadline is restarted,
 * unless verify.onTimeout forbids. Of these classes that can be seen: */
enum { CR_PLAN_FALLS_BACK = CR_CLASS_LEAF | CR_CLASS_TRUST };
struct plan_fall_back {
    bool any;              /* it is restarted for something that it was to be reloaded for */
    unsigned *classes;     /* owned; CR_CLASS_* by change, that it is restarted for besides; NULL: it may not be */
    char *reason;          /* owned; NULL: as it was decided */
    int64_t look_again_ms; /* when the next deadline is over; 0: all are */
};
struct plan_fall_back cr_plan_fall_back(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* plan_kubelet_cache.c: what this old pod shows decides whether the gate waits for its kubelet, so it is worth a nudge
 * and a probe. */
bool cr_plan_awaits_kubelet(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod);
/* plan_follow_up.c: nudges, probes and evictions. */
void cr_plan_follow_up(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index);
/* How long to wait between two probes of a pod that is probed in `places` places, age_ms after the first one. */
int64_t cr_plan_probe_pause_ms(const struct plan_consumer *consumer, int64_t age_ms, size_t places);
/* A new pod that serves the old leaf may be evicted now, as far as pauses, refusals, windows and the other pods go.
 * held: owned; what a person must do first, if that is why it may not. */
bool cr_plan_repair_is_due(struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod_index,
                           struct cr_gate *held);
/* When the pod's endpoints were probed: the time of the one that was probed the longest ago. 0: one never was. */
int64_t cr_plan_asked_ms(const struct plan_consumer *consumer, const struct cr_world_pod *pod);
bool cr_plan_pod_is_new(const struct plan_ctx *ctx, const struct plan_consumer *consumer,
                        const struct cr_world_pod *pod, size_t change);
/* Compares by the API server's clock, which all pods share. A container that restarts in an old pod does not count,
 * since its volume may be old. */
bool cr_plan_created_since(const struct cr_world_pod *pod, int64_t since_ms);
/* The pod was lately seen to have the old material of this change: that counts for what happens now, not for what was a
 * while ago. */
bool cr_plan_seen_old_lately(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod,
                             size_t change);
/* Which of the policy's Secrets a change is of. */
static inline size_t cr_plan_secret_of(const struct plan_ctx *ctx, size_t change)
{
    return (size_t)(ctx->changes[change].secret - ctx->world->policy->secrets);
}
/* plan_settle.c: what has converged becomes what is remembered. */
void cr_plan_settle(struct plan_ctx *ctx);
/* Its pods have the new material of this very change, and no old one is left to come back. */
bool cr_plan_has(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change);
/* Of the policy's i-th Secret: whether a pod that no consumer stands for may have what was there before the last change
 * (cr_world.uncovered). Should its workload use the Secret again, the pod is a consumer's again, and the change is
 * still pending for it. */
bool cr_plan_is_uncovered(const struct plan_ctx *ctx, size_t i, const struct cr_secret_status *secret);
/* The workload is not there, and pods of it may be, which it takes over when it is made again (kubectl delete
 * --cascade=orphan). Known once it is known where the consumer stands. */
bool cr_plan_is_missed(const struct plan_consumer *consumer);
/* plan_budget.c: which way budgets let a restart take now; an Evict without a pod says that all are replaced. Owned. */
struct cr_budget_verdict cr_plan_way(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Its only pod goes away before another is ready, and singleReplica: Warn lets it. */
bool cr_plan_leaves_gap(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Fewer of its pods are not ready than its own update strategy may take away at once, which counts as one at least. */
bool cr_plan_can_spare_a_pod(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* plan_evict.c: how many of its pods are ready, without those that an eviction has taken. */
int cr_plan_ready_pods(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Whether evictions have begun for the present changes, and are on record. */
bool cr_plan_evictions_began(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* For a change that was to be reloaded, pods were evicted (the fall-back), and those are followed to the end. */
bool cr_plan_was_evicted_for(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t change);
/* Evictions have begun, and there are pods that must go, or are not back yet. */
bool cr_plan_evictions_go_on(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The rollout as it is, or failed, if its pods were not all ready again in time. */
struct plan_rollout {
    struct cr_rollout rollout;
    int64_t look_again_ms; /* when that time is over; 0: it is, or there is none */
};
struct plan_rollout cr_plan_evict_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* Evicts the first pod, which `way` has chosen, unless it has to wait for a moment; cr_plan_evict_on evicts what
 * follows, once that is on record. Where evictions begin, the way is taken. */
struct plan_stand cr_plan_evict_first(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index,
                                      struct cr_budget_verdict *way);
struct plan_stand cr_plan_evict_on(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index);
/* This process has evicted the pod, and the cache does not show that yet. */
bool cr_plan_pod_is_gone(const struct plan_ctx *ctx, const struct cr_world_pod *pod);
/* Plans again when such a pod that is still there counts as not evicted after all. */
void cr_plan_await_gone(struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* The pod replaces one that was evicted for the present changes. */
bool cr_plan_came_by_eviction(const struct plan_consumer *consumer, const struct cr_world_pod *pod);
/* A restart must replace the pod. */
bool cr_plan_pod_must_go(const struct plan_ctx *ctx, const struct plan_consumer *consumer, size_t pod);
/* plan_drain.c: which old pods still drain. */
struct plan_drain cr_plan_find_drain(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* An old pod drains, or should have ended and is still there. */
bool cr_plan_drains(const struct plan_consumer *consumer);
/* While old pods drain the restart is not over, and this is where the consumer stands. */
struct plan_stand cr_plan_draining(const struct plan_consumer *consumer);
/* No old pod runs any more, as far as this change is concerned. */
bool cr_plan_old_pods_have_ended(const struct plan_consumer *consumer, size_t change);
/* How long the end of a pod may take, where a new pod comes only after it. 0: no longer than usual. */
int64_t cr_plan_drain_allowance_ms(const struct plan_consumer *consumer);
/* Its shutdown manager's times cannot hold in its pods: "web: container envoy: ...". Owned; NULL: they can. */
char *cr_plan_misfit(const struct plan_consumer *consumer);
/* plan_verification.c: looks at what pods show of settled material where it was not seen yet. Sets the state of idle
 * consumers. Call it when it is known what has settled. */
void cr_plan_verification(struct plan_ctx *ctx);
/* plan_conditions.c: what is reported, and of it what has an Event of its own when it comes up. */
#define CR_PLAN_LEAF_EXPIRED      "LeafExpired"
#define CR_PLAN_LEAF_EXPIRES_SOON "LeafExpiresSoon"
struct plan_reported {
    char *unmanaged;          /* owned; which pods belong to no workload; NULL: none */
    const char *hosts_reason; /* static; of names in use that hold nothing; NULL: none, or something is worse */
    char *hosts;              /* owned */
    struct plan_held_leaf {
        const struct cr_secret_status *secret; /* borrowed from the plan */
        char *end;                             /* owned; when the leaf in use ends, and that the next one is held */
    } * held;
    size_t held_len;
};
struct plan_reported cr_plan_conditions(struct plan_ctx *ctx);
void cr_plan_reported_dispose(struct plan_reported *reported);
CR_DEFINE_DISPOSE(plan_reported, struct plan_reported, cr_plan_reported_dispose)
/* Pods should have been seen with what their Secrets hold by now. plan_conditions.c */
bool cr_plan_is_late(const struct plan_ctx *ctx, const struct plan_consumer *consumer);
/* plan_progress.c: Reconciling and Stalled, by what the other conditions found. */
struct plan_progress {
    struct plan_stuck {
        const char *reason;    /* borrowed; NULL: nothing has to be mended, but for what holds consumers */
        const char *condition; /* the one that says it in words */
    } stuck;
    const char *unmet; /* borrowed; what the policy names and may still come; NULL: all is there */
};
void cr_plan_progress(struct plan_ctx *ctx, const struct plan_progress *progress);
/* Plans again after this time; an earlier time wins; at least one millisecond. */
void cr_plan_requeue(struct cr_plan *plan, int64_t after_ms);
/* The same, for a restart that is due then. */
void cr_plan_requeue_restart(struct cr_plan *plan, int64_t after_ms);
/* The sooner of two waits; 0: there is none. */
static inline int64_t cr_plan_sooner_ms(int64_t a_ms, int64_t b_ms)
{
    return a_ms && (!b_ms || a_ms < b_ms) ? a_ms : b_ms;
}
/* How long to wait for a wall-clock time. The clock may be set meanwhile, so it is looked at each hour. */
int64_t cr_plan_by_clock_ms(int64_t after_ms);
/* An event wakes the policy when the consumer's wait ends; the look is a precaution (look_again.h). first_ms: its first
 * pause. */
int64_t cr_plan_precaution_ms(const struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms);
void cr_plan_look_again(struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms);
void cr_plan_look_again_restart(struct plan_ctx *ctx, const struct plan_consumer *consumer, int64_t first_ms);
/* plan_events.c: what the status on record does not say yet. Call it when the status of the plan is complete. */
void cr_plan_events(struct plan_ctx *ctx, const struct plan_reported *reported);
/* Whether acting is allowed at all: not suspended, not in Plan mode. */
bool cr_plan_may_act(const struct plan_ctx *ctx);

/* Appends one element to a counted array of the plan. */
#define PLAN_PUSH(array, len, ...)                                                                                     \
    do {                                                                                                               \
        (array) = cr_reallocarray((array), (len) + 1, sizeof *(array));                                                \
        (array)[(len)++] = (__typeof__(*(array)))__VA_ARGS__;                                                          \
    } while (0)

#endif
