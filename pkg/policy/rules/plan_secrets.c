/* What changed in the Secrets, against what is remembered of them. What pods should not get is a problem, and holds. */
#include "policy/rules/plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "catalogue/usage.h"
#include "pki/paths.h"

static void name_rotation(const struct cr_policy *policy, const struct cr_secret_status *secret,
                          const char *resource_version, char id[24])
{
    cr_autofree char *seed = cr_asprintf("%s/%s/%s/%s", policy->uid, secret->name, cr_or_empty(resource_version),
                                         secret->pending.target.leaf);
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(seed, strlen(seed), hex);
    snprintf(id, 24, "%.12s", hex);
}

/* A served leaf of this fingerprint is stale, unless it is the one that is wanted now. */
static void remember_old_leaf(struct cr_pending_change *pending, const char *leaf)
{
    if (leaf[0] && pending->old_leaves.len < CR_OLD_LEAVES_MAX)
        cr_strvec_add_unique(&pending->old_leaves, leaf);
}

static void forget_leaf(struct cr_strvec *leaves, const char *leaf)
{
    struct cr_strvec kept = {0};
    for (size_t i = 0; i < leaves->len; i++)
        if (strcmp(leaves->items[i], leaf) != 0)
            cr_strvec_add(&kept, leaves->items[i]);
    cr_strvec_dispose(leaves);
    *leaves = kept;
}

/* --- opaque material --- */

/* What cannot be digested now (its key is out of reach) is remembered as it was. */
static void keep_opaque(struct cr_material *to, const struct cr_material *from)
{
    if (!cr_streq(to->opaque, CR_OPAQUE_UNREAD))
        return;
    memcpy(to->opaque, from->opaque, sizeof to->opaque);
    cr_strvec_dispose(&to->opaque_keys);
    cr_strvec_copy(&to->opaque_keys, &from->opaque_keys);
}

/* First sight of the opaque material alone: it could not be digested before, or the key that did is gone. */
static void meet_opaque(struct plan_ctx *ctx, struct cr_material *remembered, const struct cr_material *now)
{
    if (cr_streq(now->opaque, CR_OPAQUE_UNREAD) || cr_opaque_comparable(remembered->opaque, now->opaque))
        return;
    memcpy(remembered->opaque, now->opaque, sizeof remembered->opaque);
    cr_strvec_dispose(&remembered->opaque_keys);
    cr_strvec_copy(&remembered->opaque_keys, &now->opaque_keys);
    ctx->plan->record_first = true;
}

/* Which entries changed, in addition to those of a change that it overtakes. One that is not known makes it any. */
static void note_opaque_keys(struct cr_pending_change *pending, const struct cr_material *before,
                             const struct cr_material *now)
{
    bool any = (pending->changes & CR_CHANGE_OPAQUE) && !pending->opaque_keys.len;
    if (!(cr_diff(before, now) & CR_CHANGE_OPAQUE))
        return;
    if (any || !cr_diff_opaque_keys(before, now, &pending->opaque_keys))
        cr_strvec_dispose(&pending->opaque_keys);
    pending->changes |= CR_CHANGE_OPAQUE;
}

/* --- a change --- */

/* Times of the history and of conditions have whole seconds. */
static int64_t whole_seconds(int64_t now_ms)
{
    return now_ms - now_ms % 1000;
}

/* The first is that of those that came one after the other without a pause as long as it takes to coalesce them. */
static void set_since(struct cr_pending_change *pending, int64_t since_ms, int64_t pause_ms)
{
    bool goes_on = pending->set && since_ms >= pending->first_ms && since_ms - pending->since_ms < pause_ms;
    pending->first_ms = goes_on ? pending->first_ms : since_ms;
    pending->since_ms = since_ms;
}

static void set_target(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now,
                       unsigned changes)
{
    struct cr_pending_change *pending = &secret->pending;
    cr_material_dispose(&pending->target);
    cr_material_copy(&pending->target, now->material);
    forget_leaf(&pending->old_leaves, now->material->leaf);
    set_since(pending, cr_plan_unrecorded_since_ms(ctx, secret, now), ctx->world->policy->restart.coalesce_ms);
    pending->set = true;
    pending->changes = changes;
    pending->was_immutable = pending->was_immutable || secret->immutable;
    secret->immutable = now->immutable;
    name_rotation(ctx->world->policy, secret, now->resource_version, pending->id);
    cr_strset(&secret->observed_resource_version, now->resource_version);
    ctx->plan->record_first = true;
}

static void supersede(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    struct cr_pending_change *pending = &secret->pending;
    char outcome[] = "Superseded";
    struct cr_rotation_record record = {.secret = secret->name,
                                        .changes = pending->changes,
                                        .started_ms = pending->since_ms,
                                        .finished_ms = whole_seconds(ctx->world->now_ms),
                                        .outcome = outcome};
    memcpy(record.id, pending->id, sizeof record.id);
    cr_status_history_add(&ctx->plan->status, &record);

    /* Some consumers may hold the settled state, some the superseded one: the change is against both. */
    unsigned changes = cr_diff(&secret->settled, now->material) | cr_diff(&pending->target, now->material) |
                       cr_plan_unrecorded(ctx, secret, now);
    /* Settled opaque material by another key can be compared with nothing: what was pending of it stays so. */
    if (!cr_opaque_comparable(secret->settled.opaque, now->material->opaque))
        changes |= pending->changes & CR_CHANGE_OPAQUE;
    remember_old_leaf(pending, pending->target.leaf);
    remember_old_leaf(pending, secret->settled.leaf);
    note_opaque_keys(pending, &secret->settled, now->material);
    note_opaque_keys(pending, &pending->target, now->material);
    pending->superseded_ms = pending->superseded_ms ? pending->superseded_ms : pending->since_ms;
    set_target(ctx, secret, now, changes);
}

unsigned cr_plan_changes_since(const char *annotation, const struct cr_material *material, unsigned mask)
{
    static const struct {
        unsigned class;
        const char *word;
        unsigned change;
    } classes[] = {{CR_CLASS_LEAF, "leaf=", CR_CHANGE_LEAF_RENEWED},
                   {CR_CLASS_TRUST, "trust=", CR_CHANGE_TRUST_REPLACED},
                   {CR_CLASS_OPAQUE, "opaque=", CR_CHANGE_OPAQUE}};
    unsigned changes = 0;
    for (size_t k = 0; k < cr_array_len(classes); k++)
        if ((mask & classes[k].class) && strstr(annotation, classes[k].word) &&
            !cr_restart_annotation_covers(annotation, material, classes[k].class))
            changes |= classes[k].change;
    if (cr_streq(material->opaque, CR_OPAQUE_UNREAD) || cr_restart_annotation_is_rekeyed(annotation, material))
        changes &= ~(unsigned)CR_CHANGE_OPAQUE;
    return changes;
}

/* What templates that we restarted before say, when the status remembers nothing: it was lost, or the policy is new. */
static unsigned changes_since_annotation(const struct cr_world *world, const struct cr_material *material,
                                         const char *secret)
{
    char annotation[CR_ANNOTATION_NAME];
    cr_restart_annotation_name(secret, annotation);
    unsigned changes = 0;
    for (size_t i = 0; i < world->policy->consumers_len; i++) {
        const char *value = cr_restart_annotation_of(world->consumers[i].workload, annotation);
        changes |= value ? cr_plan_changes_since(value, material, ~0u) : 0u;
    }
    return changes;
}

static void first_sight(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    cr_material_copy(&secret->settled, now->material);
    secret->has_settled = true;
    secret->trust_by = secret->leaf_by = CR_SETTLED_FIRST_SIGHT;
    secret->settled_ms = whole_seconds(ctx->world->now_ms);
    secret->immutable = now->immutable;
    cr_strset(&secret->observed_resource_version, now->resource_version);
    ctx->plan->record_first = true;
    unsigned changes = changes_since_annotation(ctx->world, now->material, secret->name);
    if (changes)
        set_target(ctx, secret, now, changes);
}

/* Another policy with this Secret and one of our consumers is in the middle of a change of it: what was before is
 * known, and what it does not finish falls to us. */
static bool adopt(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    const struct cr_secret_status *memory =
        cr_plan_under_way_elsewhere(ctx->world, (size_t)(now - ctx->world->secrets));
    if (!memory)
        return false;
    cr_material_copy(&secret->settled, &memory->settled);
    secret->has_settled = true;
    secret->trust_by = memory->trust_by;
    secret->leaf_by = memory->leaf_by;
    secret->settled_ms = memory->settled_ms;
    secret->changed_ms = memory->changed_ms;
    secret->immutable = now->immutable;
    cr_strvec_copy(&secret->pending.old_leaves, &memory->pending.old_leaves);
    cr_strset(&secret->observed_resource_version, now->resource_version);
    ctx->plan->record_first = true;
    return true;
}

/* It became immutable as it was: kubelets that have read it since look at it no more. */
static void note_immutable(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    if (secret->immutable == now->immutable)
        return;
    secret->immutable = now->immutable;
    ctx->plan->record_first = true;
}

static void compare(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    if (!secret->has_settled && !adopt(ctx, secret, now)) {
        first_sight(ctx, secret, now);
        return;
    }
    if (secret->pending.set) {
        meet_opaque(ctx, &secret->pending.target, now->material);
        /* A clock that was set back must not make the change one of the future. */
        if (secret->pending.since_ms > ctx->world->now_ms) {
            secret->pending.since_ms = ctx->world->now_ms;
            if (secret->pending.first_ms > ctx->world->now_ms)
                secret->pending.first_ms = ctx->world->now_ms;
            ctx->plan->record_first = true;
        }
        if (cr_diff(&secret->pending.target, now->material) || cr_plan_unrecorded(ctx, secret, now))
            supersede(ctx, secret, now);
        return;
    }
    meet_opaque(ctx, &secret->settled, now->material);
    unsigned changes = cr_diff(&secret->settled, now->material) | cr_plan_unrecorded(ctx, secret, now);
    if (!changes) {
        note_immutable(ctx, secret, now);
        return;
    }
    remember_old_leaf(&secret->pending, secret->settled.leaf);
    note_opaque_keys(&secret->pending, &secret->settled, now->material);
    set_target(ctx, secret, now, changes);
}

static void set_problem(struct cr_secret_status *secret, const char *reason, const char *message)
{
    cr_strset(&secret->problem_reason, reason);
    cr_strset(&secret->problem_message, message);
}

/* It was good when it was read; no write to the Secret happens when its certificate ends. */
static bool has_expired(const struct plan_ctx *ctx, const struct cr_world_secret *now)
{
    return now->material->has_leaf && now->material->not_after_ms < ctx->world->now_ms;
}

static char *say_expired(const struct plan_ctx *ctx, const struct cr_world_secret *now)
{
    const struct cr_policy_secret *names = &ctx->world->policy->secrets[now - ctx->world->secrets];
    char when[CR_TIME_TEXT];
    cr_time_format(now->material->not_after_ms, when);
    return cr_asprintf("the certificate in %s expired at %s", cr_or_empty(names->certificate), when);
}

/* Status keeps only the first names of a leaf, and of one from before they were kept it has none. */
static void recall_names(struct cr_material *remembered, const struct cr_material *now)
{
    if (!now->has_leaf || !cr_streq(remembered->leaf, now->leaf))
        return;
    cr_strvec_dispose(&remembered->names);
    cr_strvec_copy(&remembered->names, &now->names);
}

/* Pods go on with the leaf that they have. What was there before it was ever looked at is what they have: it is
 * remembered, so that the next one is a change. False: it is for all names in use. */
static bool hold_for_names(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    recall_names(&secret->settled, now->material);
    recall_names(&secret->pending.target, now->material);
    cr_autofree char *missing = cr_plan_missing_names(ctx, secret, now->material);
    if (!missing)
        return false;
    set_problem(secret, CR_PROBLEM_NAME_MISSING, missing);
    secret->problem_not_after_ms = now->material->not_after_ms;
    if (!secret->has_settled)
        compare(ctx, secret, now);
    return true;
}

/* Material that was there and is gone. It is far more often a mistake than a wish: the pods have the last good one, and
 * a new pod would start without, or not start at all. */
static const char *const meant = "If that is meant, take the Secret out of the policy and add it again";

static bool has_entry(const struct cr_material *m, const char *name, size_t len)
{
    for (size_t i = 0; i < m->opaque_keys.len; i++)
        if (cr_opaque_key_len(m->opaque_keys.items[i]) == len && strncmp(m->opaque_keys.items[i], name, len) == 0)
            return true;
    return false;
}

static bool picks(const struct cr_json *workload, const char *secret, const char *key)
{
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    cr_usage_collect(cr_json_at(workload, "spec", "template", "spec"), secret, &usages);
    for (size_t i = 0; i < usages.len; i++)
        if (cr_strvec_has(&usages.items[i].keys, key))
            return true;
    return false;
}

/* The name of a consumer with pods that would not start without this key; NULL: none. */
static const char *picked_by(const struct plan_ctx *ctx, const char *secret, const char *key)
{
    const struct cr_policy *policy = ctx->world->policy;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (ctx->world->consumers[i].found && picks(ctx->world->consumers[i].workload, secret, key))
            return policy->consumers[i].name;
    return NULL;
}

/* An entry beside the certificates may go (an issuer was configured to write no keystore any more), unless one needs
 * it. */
static char *vanished_entry(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                            const struct cr_material *now)
{
    const struct cr_material *before = &secret->settled;
    if (now->opaque[0] && !now->opaque_keys.len)
        return NULL; /* too many to distinguish them */
    /* Remembered by other names of the policy (keys.opaque), or by a key that is lost: what is missing now may just not
     * be looked at any more. Without a key now, the names still show it. */
    if (!cr_streq(now->opaque, CR_OPAQUE_UNREAD) && !cr_opaque_comparable(before->opaque, now->opaque))
        return NULL;
    for (size_t i = 0; i < before->opaque_keys.len; i++) {
        const char *element = before->opaque_keys.items[i];
        if (has_entry(now, element, cr_opaque_key_len(element)))
            continue;
        cr_autofree char *key = cr_strndup(element, cr_opaque_key_len(element));
        const char *consumer = picked_by(ctx, secret->name, key);
        if (consumer)
            return cr_asprintf("%s, which consumer %s takes, is gone; nothing is done until it is back. %s", key,
                               consumer, meant);
    }
    return NULL;
}

/* In words, what was in the Secret and is missed now; NULL: nothing. Owned. */
static char *say_vanished(const struct plan_ctx *ctx, const struct cr_secret_status *secret,
                          const struct cr_material *now)
{
    /* What was only added by a change that is still pending may be taken back. */
    const struct cr_material *before = &secret->settled;
    if (!secret->has_settled)
        return NULL;
    if (cr_material_has_trust(before) && !cr_material_has_trust(now))
        return cr_asprintf("the trust (ca.crt) that it had is gone; nothing is done until it is back. %s", meant);
    if (before->has_leaf && !now->has_leaf)
        return cr_asprintf("the certificate and key that it had are gone; nothing is done until they are back. %s",
                           meant);
    return vanished_entry(ctx, secret, now);
}

/* --- one Secret --- */

/* Only the clock makes a leaf valid; then the Secret is read from the API server. */
static void await_validity(struct plan_ctx *ctx, const struct cr_world_secret *now)
{
    enum { LEAST_MS = 30 * 1000, MOST_MS = 60 * 60 * 1000 };
    int64_t left_ms = now->refused_not_before_ms - CR_CLOCK_SKEW_MS - ctx->world->now_ms;
    left_ms = left_ms < MOST_MS ? left_ms : MOST_MS; /* the clock may be set meanwhile */
    cr_plan_requeue(ctx->plan, left_ms > 0 ? left_ms : LEAST_MS);
}

static void look_at(struct plan_ctx *ctx, struct cr_secret_status *secret, const struct cr_world_secret *now)
{
    secret->problem_not_after_ms = 0;
    if (!now->found) {
        set_problem(secret, CR_PROBLEM_NOT_FOUND,
                    "it does not exist; nothing is done until it does, and what was remembered of it stays");
        return;
    }
    if (now->problem != CR_MATERIAL_OK || !now->material) {
        set_problem(secret, cr_material_problem_name(now->problem), cr_or_empty(now->problem_text));
        secret->problem_not_after_ms = now->refused_not_after_ms;
        if (now->problem == CR_MATERIAL_NOT_YET)
            await_validity(ctx, now);
        return;
    }
    if (has_expired(ctx, now)) {
        cr_autofree char *words = say_expired(ctx, now);
        set_problem(secret, cr_material_problem_name(CR_MATERIAL_EXPIRED), words);
        secret->problem_not_after_ms = now->material->not_after_ms;
        return;
    }
    cr_autofree char *gone = say_vanished(ctx, secret, now->material);
    if (gone) {
        set_problem(secret, cr_material_problem_name(CR_MATERIAL_INCOMPLETE), gone);
        return;
    }
    if (hold_for_names(ctx, secret, now))
        return;
    set_problem(secret, NULL, NULL);
    if (!secret->has_settled) {
        compare(ctx, secret, now);
        return;
    }
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    cr_material_copy(&material, now->material);
    keep_opaque(&material, secret->pending.set ? &secret->pending.target : &secret->settled);
    struct cr_world_secret known = *now;
    known.material = &material;
    compare(ctx, secret, &known);
}

void cr_plan_secrets(struct plan_ctx *ctx)
{
    const struct cr_policy *policy = ctx->world->policy;
    struct cr_policy_status *status = &ctx->plan->status;
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    for (size_t i = 0; i < policy->secrets_len; i++)
        cr_strvec_add(&names, policy->secrets[i].name);
    cr_status_keep_secrets(status, &names);

    for (size_t i = 0; i < policy->secrets_len; i++) {
        struct cr_secret_status *secret = cr_status_secret_add(status, policy->secrets[i].name);
        secret->selected = policy->secrets[i].selected;
        look_at(ctx, secret, &ctx->world->secrets[i]);
    }

    ctx->changes = cr_calloc(policy->secrets_len, sizeof *ctx->changes);
    ctx->pending = cr_calloc(policy->secrets_len, sizeof(struct cr_secret_status *));
    for (size_t i = 0; i < policy->secrets_len; i++) {
        struct cr_secret_status *secret = cr_status_secret(status, policy->secrets[i].name);
        if (!secret->pending.set || secret->problem_reason)
            continue;
        ctx->pending[ctx->changes_len] = secret;
        ctx->changes[ctx->changes_len++] = (struct cr_secret_change){.secret = &policy->secrets[i],
                                                                     .changes = secret->pending.changes,
                                                                     .opaque_keys = &secret->pending.opaque_keys,
                                                                     .was_immutable = secret->pending.was_immutable};
    }
}
