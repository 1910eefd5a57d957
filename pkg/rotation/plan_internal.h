/* Shared by the parts of the plan; not for others. */
#ifndef CR_ROTATION_PLAN_INTERNAL_H
#define CR_ROTATION_PLAN_INTERNAL_H

#include "rotation/decide.h"
#include "rotation/diff.h"
#include "rotation/plan.h"
#include "rotation/rollout.h"

/* What is known of one consumer while the plan is made. */
struct plan_consumer {
    const struct cr_policy_consumer *spec;
    const struct cr_world_consumer *world;
    struct cr_consumer_status *status; /* borrowed from the plan */
    const struct cr_json *pod_spec;
    struct cr_decision decision;
    bool concerned;      /* a pending change touches it */
    bool restarted;      /* its template already carries all that it must be restarted for */
    bool needs_restart;
    unsigned *classes;   /* per active change: what it must be (or was) restarted for */
    char *held_by;       /* a Secret it uses cannot be used now: nothing disruptive may happen */
    bool change_held;    /* and it broke in the middle of a rotation, which therefore waits */
    struct cr_rollout rollout;
    int64_t since_ms;    /* of the latest change that touches it */
    int64_t max_delay_ms;
    bool leaf_changed;   /* a leaf that it serves */
    struct cr_strvec expected;
    struct cr_strvec old;
    enum cr_evidence *evidence; /* per pod */
};

struct plan_ctx {
    const struct cr_world *world;
    struct cr_plan *plan;
    struct cr_secret_change *changes; /* active: pending and without a problem */
    struct cr_secret_status **pending; /* parallel to changes; borrowed from the plan's status */
    size_t changes_len;
    struct plan_consumer *consumers;
    size_t consumers_len;
    int restarting; /* consumers under restart: the concurrency gate */
};

/* plan_secrets.c: what changed, against what is remembered. Sets record_first. */
void cr_plan_secrets(struct plan_ctx *ctx);
/* plan_consumers.c: decision, evidence and state of each consumer, and what to do. */
void cr_plan_consumers(struct plan_ctx *ctx);
void cr_plan_consumers_dispose(struct plan_ctx *ctx);
/* plan_evidence.c: evidence per pod; nudges, probes and evictions. */
void cr_plan_evidence(struct plan_ctx *ctx, struct plan_consumer *consumer);
void cr_plan_care(struct plan_ctx *ctx, struct plan_consumer *consumer, size_t index);
/* plan_settle.c: what has converged becomes what is remembered. */
void cr_plan_settle(struct plan_ctx *ctx);
/* plan_conditions.c */
void cr_plan_conditions(struct plan_ctx *ctx);

/* An earlier time wins; at least one millisecond. */
void cr_plan_requeue(struct cr_plan *plan, int64_t after_ms);
/* About the policy, because of one of its Secrets. Takes message. */
void cr_plan_say_secret(struct cr_plan *plan, bool warning, const struct cr_secret_status *secret, const char *reason,
                        char *message);
/* About a consumer's workload. Takes message. */
void cr_plan_say_workload(struct cr_plan *plan, bool warning, size_t consumer, const char *reason, char *message);
/* Whether acting is allowed at all: not suspended, not in Plan mode. */
bool cr_plan_may_act(const struct plan_ctx *ctx);
/* After so long an old leaf that is still served shows that hot reload did not happen. */
int64_t cr_plan_deadline_ms(const struct plan_consumer *consumer);
bool cr_plan_past_deadline(const struct plan_ctx *ctx, const struct plan_consumer *consumer);

/* Appends one element to a counted array of the plan. */
#define PLAN_PUSH(array, len, ...)                                                                                     \
    do {                                                                                                               \
        (array) = cr_reallocarray((array), (len) + 1, sizeof *(array));                                                \
        (array)[(len)++] = (__typeof__(*(array)))__VA_ARGS__;                                                          \
    } while (0)

#endif
