#include "policy/rules/conflict.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* A status with this many consumers no longer lists those that have converged. */
enum { LISTED_MAX = 100 };

/* What a policy has to say for itself. */
struct claim {
    bool leaving;
    int64_t created_ms;
    const char *policy;
};

/* What is kept of another policy. */
struct rival {
    char *name;
    struct cr_policy_status memory; /* of the Secrets in its pairs */
    size_t pairs;                   /* that refer to it */
};

/* One Secret of one consumer. */
struct pair {
    struct rival *rival; /* NULL: nobody has it but us, or remembers anything */
    bool lost;           /* the rival has it; else it is ours, and what the rival remembers is taken over */
    bool other_keys;
    bool converged;
    struct claim best;
};

struct cr_conflicts {
    const struct cr_policy *self;
    const struct cr_strvec *const *uses;
    size_t secrets_len;
    size_t consumers_len;
    struct pair **pairs; /* per consumer, parallel to the Secrets; NULL: no other policy has the consumer */
    struct rival **rivals;
    size_t rivals_len;
};

bool cr_conflict_takes_part(const struct cr_policy *policy)
{
    return policy->mode == CR_MODE_ENFORCE && !policy->deleting;
}

static bool same_keys(const struct cr_policy_secret *a, const struct cr_policy_secret *b)
{
    return cr_streq(a->certificate, b->certificate) && cr_streq(a->private_key, b->private_key) &&
           cr_streq(a->trust, b->trust);
}

static bool beats(const struct claim *a, const struct claim *b)
{
    if (a->leaving != b->leaving)
        return a->leaving;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return strcmp(a->policy, b->policy) < 0;
}

static bool has_converged(const struct cr_policy_status *status, const struct cr_policy_consumer *consumer)
{
    for (size_t i = 0; i < status->consumers_len; i++) {
        const struct cr_consumer_status *entry = &status->consumers[i];
        if (cr_streq(entry->target, consumer->target) && cr_streq(entry->kind, consumer->kind))
            return entry->state == CR_CONSUMER_IDLE || entry->state == CR_CONSUMER_CONVERGED;
    }
    return status->consumers_len >= LISTED_MAX;
}

/* --- what is kept --- */

static void rival_free(struct rival *rival)
{
    cr_policy_status_dispose(&rival->memory);
    free(rival->name);
    free(rival);
}

struct cr_conflicts *cr_conflicts_new(const struct cr_policy *self, const struct cr_strvec *const *uses)
{
    struct cr_conflicts *conflicts = cr_new(struct cr_conflicts);
    conflicts->self = self;
    conflicts->uses = uses;
    conflicts->secrets_len = self->secrets_len;
    conflicts->consumers_len = self->consumers_len;
    conflicts->pairs = cr_calloc(self->consumers_len, sizeof(struct pair *));
    return conflicts;
}

void cr_conflicts_free(struct cr_conflicts *conflicts)
{
    if (!conflicts)
        return;
    for (size_t i = 0; i < conflicts->rivals_len; i++)
        rival_free(conflicts->rivals[i]);
    free(conflicts->rivals);
    for (size_t i = 0; i < conflicts->consumers_len; i++)
        free(conflicts->pairs[i]);
    free(conflicts->pairs);
    free(conflicts);
}

size_t cr_conflicts_kept(const struct cr_conflicts *conflicts)
{
    return conflicts->rivals_len;
}

/* Those that no pair refers to any more go. */
static void forget_unused(struct cr_conflicts *conflicts)
{
    size_t kept = 0;
    for (size_t i = 0; i < conflicts->rivals_len; i++) {
        if (conflicts->rivals[i]->pairs)
            conflicts->rivals[kept++] = conflicts->rivals[i];
        else
            rival_free(conflicts->rivals[i]);
    }
    conflicts->rivals_len = kept;
}

/* --- one more policy --- */

struct addition {
    const struct cr_policy *policy;
    struct cr_policy_status *status;
    struct rival *rival;
};

static void refer(struct pair *pair, struct rival *rival)
{
    if (pair->rival)
        pair->rival->pairs--;
    pair->rival = rival;
    rival->pairs++;
}

static void lose(struct pair *pair, const struct addition *to, const struct claim *claim,
                 const struct cr_policy_consumer *consumer)
{
    refer(pair, to->rival);
    pair->lost = true;
    pair->converged = has_converged(to->status, consumer);
    pair->best = *claim;
}

/* The pair stays ours: a policy in the middle of a change is preferred. */
static void take_over(struct pair *pair, const struct addition *from, const struct cr_secret_status *memory)
{
    if (!memory || (pair->rival && !memory->pending.set))
        return;
    refer(pair, from->rival);
}

static void decide_pair(struct pair *pair, const struct addition *addition, const struct cr_policy_secret *secret,
                        const struct cr_policy_consumer *consumer)
{
    const struct cr_policy_secret *its = cr_policy_secret_of(addition->policy, secret->name);
    if (!its)
        return;
    const struct claim claim = {
        .leaving = its->leaving, .created_ms = addition->policy->created_ms, .policy = addition->rival->name};
    bool other_keys = !same_keys(its, secret);
    if (beats(&claim, &pair->best)) {
        lose(pair, addition, &claim, consumer);
        pair->other_keys = other_keys;
    } else if (!pair->lost && !other_keys) {
        take_over(pair, addition, cr_status_secret(addition->status, secret->name));
    }
}

static struct pair *make_pairs(const struct cr_policy *self)
{
    struct pair *pairs = cr_calloc(self->secrets_len, sizeof *pairs);
    for (size_t s = 0; s < self->secrets_len; s++)
        pairs[s].best =
            (struct claim){.leaving = self->secrets[s].leaving, .created_ms = self->created_ms, .policy = self->name};
    return pairs;
}

static void decide_consumer(struct cr_conflicts *conflicts, size_t c, const struct addition *addition)
{
    const struct cr_policy *self = conflicts->self;
    const struct cr_policy_consumer *consumer = &self->consumers[c];
    if (!conflicts->uses[c] || !cr_policy_consumer_of(addition->policy, consumer->kind, consumer->target))
        return;
    if (!conflicts->pairs[c])
        conflicts->pairs[c] = make_pairs(self);
    for (size_t s = 0; s < self->secrets_len; s++)
        if (cr_strvec_has(conflicts->uses[c], self->secrets[s].name))
            decide_pair(&conflicts->pairs[c][s], addition, &self->secrets[s], consumer);
}

/* Whether a pair with this Secret refers to the rival. */
static bool needs(const struct cr_conflicts *conflicts, const struct rival *rival, size_t secret)
{
    for (size_t c = 0; c < conflicts->consumers_len; c++)
        if (conflicts->pairs[c] && conflicts->pairs[c][secret].rival == rival)
            return true;
    return false;
}

static void keep_memory(const struct cr_conflicts *conflicts, const struct addition *addition)
{
    for (size_t s = 0; addition->rival->pairs && s < conflicts->secrets_len; s++)
        if (needs(conflicts, addition->rival, s))
            cr_status_move_secret(&addition->rival->memory, addition->status, conflicts->self->secrets[s].name);
}

void cr_conflicts_add(struct cr_conflicts *conflicts, const struct cr_policy *rival, struct cr_policy_status *status)
{
    if (!cr_conflict_takes_part(conflicts->self) || !cr_conflict_takes_part(rival))
        return;
    struct rival *kept = cr_new(struct rival);
    kept->name = cr_strdup(rival->name);
    conflicts->rivals = cr_reallocarray(conflicts->rivals, conflicts->rivals_len + 1, sizeof(struct rival *));
    conflicts->rivals[conflicts->rivals_len++] = kept;
    const struct addition addition = {.policy = rival, .status = status, .rival = kept};
    for (size_t c = 0; c < conflicts->consumers_len; c++)
        decide_consumer(conflicts, c, &addition);
    keep_memory(conflicts, &addition);
    forget_unused(conflicts);
}

/* --- what came of it --- */

static struct cr_world_other other_of(const struct pair *pair, const char *secret)
{
    if (!pair->rival)
        return (struct cr_world_other){0};
    return (struct cr_world_other){.policy = pair->lost ? pair->rival->name : NULL,
                                   .memory = cr_status_secret(&pair->rival->memory, secret),
                                   .other_keys = pair->other_keys,
                                   .converged = pair->converged};
}

static bool any_rival(const struct pair *pairs, size_t len)
{
    for (size_t i = 0; pairs && i < len; i++)
        if (pairs[i].rival)
            return true;
    return false;
}

struct cr_world_other *cr_conflicts_of(const struct cr_conflicts *conflicts, size_t consumer)
{
    const struct pair *pairs = conflicts->pairs[consumer];
    if (!any_rival(pairs, conflicts->secrets_len))
        return NULL;
    struct cr_world_other *others = cr_calloc(conflicts->secrets_len, sizeof *others);
    for (size_t s = 0; s < conflicts->secrets_len; s++)
        others[s] = other_of(&pairs[s], conflicts->self->secrets[s].name);
    return others;
}
