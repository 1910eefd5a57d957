/* Where a rotation is, for people: its stage, how long each took, and what became of it. Nothing is decided by it but
 * that leaves are held back past a deadline. */
#include "trust/rules/domain_plan_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

/* --- which stage --- */

static enum cr_stage before(const struct domain_ctx *ctx)
{
    const struct cr_domain_status *status = ctx->world->status;
    return status->stage == CR_STAGE_HELD ? status->held_stage : status->stage;
}

static bool is_ending(const struct domain_ctx *ctx)
{
    return ctx->plan->promote_ca || ctx->plan->delete_staging || ctx->has_next;
}

static enum cr_stage by_evidence(const struct domain_ctx *ctx)
{
    if (ctx->grows || ctx->waits || (!ctx->trusted && !ctx->trust_arrived))
        return CR_STAGE_TRUSTING;
    if (ctx->switches || ctx->holds || !ctx->leaf_arrived || is_ending(ctx))
        return CR_STAGE_SWITCHING;
    if (ctx->shrinks || !ctx->arrived || ctx->plan->writes_len)
        return CR_STAGE_RETIRING;
    return CR_STAGE_IDLE;
}

/* It goes back only when there is something new to publish: a policy that has not read our last write yet says for a
 * moment of nothing that it has arrived. */
static enum cr_stage stage_now(const struct domain_ctx *ctx)
{
    enum cr_stage stage = by_evidence(ctx);
    bool news = ctx->grows || ctx->waits || ctx->switches;
    if (stage == CR_STAGE_IDLE || news || before(ctx) < stage)
        return stage;
    return before(ctx);
}

/* All that a person put back has arrived, and nothing else is on its way. */
static bool stands_put_back(const struct domain_ctx *ctx)
{
    return ctx->is_put_back && ctx->arrived && !ctx->waits && !ctx->holds && !ctx->plan->writes_len;
}

/* --- how long it takes --- */

static void add_time(struct domain_ctx *ctx, enum cr_stage stage)
{
    struct cr_domain_status *status = &ctx->plan->status;
    int64_t took = ctx->world->now_ms - status->stage_since_ms;
    took = took > 0 ? took : 0;
    if (stage == CR_STAGE_TRUSTING)
        status->trusting_ms += took;
    else if (stage == CR_STAGE_SWITCHING)
        status->switching_ms += took;
}

/* What a person asks for is on record before the first write for it, so a restart after that belongs to it. Other
 * rotations are on record from the first plan after their first write, when the policy of a busy operator may have
 * acted already. A restart's time is in whole seconds. */
enum { WHOLE_SECOND_MS = 1000, BEFORE_RECORD_MS = 3 * 1000 };

static bool is_within_rotation(const struct cr_domain_status *status, int64_t restarted_ms, int64_t written_ms)
{
    if (!restarted_ms)
        return false;
    bool is_written_in_it = written_ms && written_ms >= status->rotation_since_ms;
    return restarted_ms + WHOLE_SECOND_MS > status->rotation_since_ms ||
           (is_written_in_it && restarted_ms + BEFORE_RECORD_MS >= written_ms);
}

/* Objects are in the order of the world's. */
static void note_restarts(struct domain_ctx *ctx)
{
    struct cr_domain_status *status = &ctx->plan->status;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct cr_domain_evidence *evidence = cr_domain_evidence_of(ctx, i);
        if (evidence && is_within_rotation(status, evidence->restarted_ms, status->objects[i].written_ms))
            status->restarted = true;
    }
}

enum outcome { CONVERGED, INCOMPLETE, SUPERSEDED, PUT_BACK };
static const char *const outcome_names[] = {
    [CONVERGED] = "Converged", [INCOMPLETE] = "Incomplete", [SUPERSEDED] = "Superseded", [PUT_BACK] = "PutBack"};

/* A restart may be seen for the first time here: a plan that acts is not recorded. */
static void finish(struct domain_ctx *ctx, enum outcome outcome)
{
    note_restarts(ctx);
    struct cr_domain_status *status = &ctx->plan->status;
    int64_t now = ctx->world->now_ms;
    bool retired = before(ctx) == CR_STAGE_RETIRING;
    cr_autofree char *result = cr_strdup(outcome_names[outcome]);
    struct cr_domain_rotation record = {.what = status->what,
                                        .started_ms = status->rotation_since_ms,
                                        .finished_ms = now,
                                        .trusting_ms = status->trusting_ms,
                                        .switching_ms = status->switching_ms,
                                        .retiring_ms = retired ? now - status->stage_since_ms : 0,
                                        .restarted = status->restarted,
                                        .outcome = result};
    memcpy(record.id, status->rotation, sizeof record.id);
    cr_domain_status_history_add(status, &record);
    char took[CR_TIME_TEXT];
    int64_t seconds = (now - status->rotation_since_ms) / 1000;
    cr_duration_format(seconds > 0 ? seconds * 1000 : 0, took);
    cr_domain_say(
        ctx, outcome == INCOMPLETE, outcome == CONVERGED ? "RotationConverged" : "RotationEnded",
        cr_asprintf("Rotation %s (%s): %s after %s", status->rotation, cr_or_empty(status->what), result, took));
    status->rotation[0] = '\0';
    cr_strset(&status->what, NULL);
    status->rotation_since_ms = status->trusting_ms = status->switching_ms = 0;
    status->restarted = false;
}

/* --- which rotation --- */

bool cr_domain_was_listed(const struct domain_ctx *ctx, const char *ca)
{
    const struct cr_domain_status *status = ctx->world->status;
    for (size_t i = 0; i < status->cas_len; i++)
        if (strcmp(status->cas[i].fingerprint, ca) == 0)
            return true;
    return false;
}

/* The later ones stand above the earlier ones: a rotation is called by the highest that has been part of it. */
enum what { BUNDLES, LEAVES, CA, FIRST };
static const char *const what_names[] = {[BUNDLES] = "Bundles", [LEAVES] = "Leaves", [CA] = "CA", [FIRST] = "First"};
static const char *const what_begins[] = {[BUNDLES] = "what is published is to arrive where it is missing",
                                          [LEAVES] = "other leaves of the same CAs",
                                          [CA] = "another set of CAs",
                                          [FIRST] = "the first CAs"};

/* A bundle gets a CA that the status does not list yet, or loses one that it lists. What another program has put into a
 * bundle or taken out of it is neither. */
static bool changes_cas(const struct domain_ctx *ctx, const struct cr_domain_write *write)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (write->bundle[ca] != cr_domain_has_ca(&ctx->world->objects[write->object], ca) &&
            write->bundle[ca] != cr_domain_was_listed(ctx, ctx->world->cas[ca].fingerprint))
            return true;
    return false;
}

/* The status does not list yet what has become the CA, or still lists one that is nowhere. */
static bool has_other_cas(const struct domain_ctx *ctx)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (cr_domain_was_listed(ctx, ctx->world->cas[ca].fingerprint) ? !ctx->current[ca] && !ctx->anywhere[ca]
                                                                       : ctx->current[ca])
            return true;
    return false;
}

static bool is_at_hand(const struct domain_ctx *ctx, const char *fingerprint)
{
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (strcmp(ctx->world->cas[ca].fingerprint, fingerprint) == 0)
            return true;
    return false;
}

/* That one has been taken out is seen only by the status that lists it still. */
static bool has_lost_ca(const struct domain_ctx *ctx)
{
    const struct cr_domain_status *status = ctx->world->status;
    for (size_t i = 0; i < status->cas_len; i++)
        if (!is_at_hand(ctx, status->cas[i].fingerprint) && status->cas[i].not_after_ms > ctx->world->now_ms)
            return true;
    return false;
}

static const char *leaf_on_record(const struct cr_domain_status *status, const struct cr_domain_object *object)
{
    for (size_t i = 0; i < status->objects_len; i++)
        if (cr_streq(status->objects[i].kind, object->kind) && cr_streq(status->objects[i].ns, object->ns) &&
            cr_streq(status->objects[i].name, object->name))
            return status->objects[i].leaf;
    return NULL;
}

/* A plan that acts is not recorded, so that a leaf has moved may be seen only by the record that lacks it. */
static bool has_new_leaf(const struct domain_ctx *ctx, size_t at)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    const char *before = leaf_on_record(ctx->world->status, object);
    return ctx->unrecorded[at] && before && object->published.found && !object->changed_by &&
           strcmp(before, object->published.fingerprint) != 0;
}

static enum what what_moves(const struct domain_ctx *ctx)
{
    enum what what = ctx->has_next || ctx->plan->promote_ca || has_other_cas(ctx) || has_lost_ca(ctx) ? CA : BUNDLES;
    for (size_t i = 0; i < ctx->plan->writes_len; i++)
        if (changes_cas(ctx, &ctx->plan->writes[i]))
            what = CA;
    for (size_t i = 0; i < ctx->world->objects_len; i++) {
        const struct domain_leaf *leaf = &ctx->leaves[i];
        bool moves = leaf->waits || leaf->act != CR_LEAF_ACT_KEEP;
        if (moves && leaf->switches_ca)
            what = CA;
        else if ((moves || has_new_leaf(ctx, i)) && what != CA)
            what = LEAVES;
    }
    return what;
}

/* A CA that was not there when the rotation under way began. */
static bool is_overtaken(const struct domain_ctx *ctx)
{
    if (!cr_streq(ctx->plan->status.what, what_names[CA]) || !ctx->grows)
        return false;
    for (size_t ca = 0; ca < ctx->world->cas_len; ca++)
        if (ctx->newest[ca] && !ctx->anywhere[ca] && !cr_domain_was_listed(ctx, ctx->world->cas[ca].fingerprint))
            return true;
    return false;
}

static enum what what_of(const struct cr_domain_status *status)
{
    for (int what = FIRST; what > BUNDLES; what--)
        if (cr_streq(status->what, what_names[what]))
            return (enum what)what;
    return BUNDLES;
}

static void begin(struct domain_ctx *ctx, enum what moves)
{
    struct cr_domain_status *status = &ctx->plan->status;
    cr_autofree char *seed =
        cr_asprintf("%s/%lld", cr_or_empty(ctx->world->domain->uid), (long long)ctx->world->now_ms);
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(seed, strlen(seed), hex);
    snprintf(status->rotation, sizeof status->rotation, "%.12s", hex);
    status->rotation_since_ms = ctx->world->now_ms;
    enum what what = ctx->world->status->cas_len ? moves : FIRST;
    cr_strset(&status->what, what_names[what]);
    cr_domain_say(ctx, false, "RotationBegun", cr_asprintf("Rotation %s: %s", status->rotation, what_begins[what]));
}

static void name_rotation(struct domain_ctx *ctx)
{
    struct cr_domain_status *status = &ctx->plan->status;
    if (*status->rotation && is_overtaken(ctx)) {
        finish(ctx, SUPERSEDED);
        status->stage_since_ms = ctx->world->now_ms;
    }
    enum what what = what_moves(ctx);
    if (!*status->rotation)
        begin(ctx, what);
    else if (what > what_of(status))
        cr_strset(&status->what, what_names[what]);
    note_restarts(ctx);
}

/* --- held --- */

/* While what was just written goes on record nothing is known of it. */
static bool is_recording(const struct domain_ctx *ctx)
{
    for (size_t i = 0; i < ctx->world->objects_len; i++)
        if (ctx->unrecorded[i])
            return true;
    return false;
}

static bool is_held(struct domain_ctx *ctx)
{
    const struct cr_domain_status *status = &ctx->plan->status;
    if (is_recording(ctx))
        return ctx->world->status->stage == CR_STAGE_HELD;
    if (ctx->failed)
        return true;
    if (ctx->plan->writes_len || ctx->plan->promote_ca || ctx->plan->delete_staging)
        return false; /* it goes on */
    int64_t deadline = status->stage_since_ms + ctx->world->domain->evidence.stage_deadline_ms;
    if (ctx->world->now_ms > deadline)
        return true;
    cr_domain_requeue_at(ctx, deadline + 1);
    return false;
}

static void say_held(struct domain_ctx *ctx, enum cr_stage stage, bool held)
{
    bool was = ctx->world->status->stage == CR_STAGE_HELD;
    if (held && !was)
        cr_domain_say(ctx, true, "Held",
                      cr_asprintf("%s is held: %s; all CAs that are in use stay trusted", cr_stage_name(stage),
                                  stands_put_back(ctx) ? "the previous leaves are back"
                                  : ctx->failed        ? "a consumer cannot get there without a person"
                                                       : "evidence is missing past spec.evidence.stageDeadline"));
    if (!held && was)
        cr_domain_say(ctx, false, "WentOn", cr_asprintf("It goes on: %s", cr_stage_name(stage)));
}

/* --- all of it --- */

static void enter(struct domain_ctx *ctx, enum cr_stage stage)
{
    struct cr_domain_status *status = &ctx->plan->status;
    if (stage == before(ctx))
        return;
    add_time(ctx, before(ctx));
    status->stage_since_ms = ctx->world->now_ms;
    if (stage != CR_STAGE_IDLE)
        cr_domain_say(ctx, false, cr_stage_name(stage),
                      cr_asprintf("Rotation %s: %s", status->rotation, cr_stage_name(stage)));
}

static void set_stage(struct domain_ctx *ctx, enum cr_stage stage, bool held)
{
    struct cr_domain_status *status = &ctx->plan->status;
    say_held(ctx, stage, held);
    status->stage = held ? CR_STAGE_HELD : stage;
    status->held_stage = held ? stage : CR_STAGE_IDLE;
}

/* A rotation that a person has taken back is over, though what it replaced is still waited for. */
static void stand(struct domain_ctx *ctx)
{
    if (*ctx->plan->status.rotation)
        finish(ctx, PUT_BACK);
    if (before(ctx) != CR_STAGE_SWITCHING)
        ctx->plan->status.stage_since_ms = ctx->world->now_ms;
    set_stage(ctx, CR_STAGE_SWITCHING, true);
}

static void set_idle(struct domain_ctx *ctx)
{
    if (*ctx->plan->status.rotation) {
        if (before(ctx) != CR_STAGE_RETIRING)
            add_time(ctx, before(ctx));
        finish(ctx, cr_domain_has_problem(ctx) ? INCOMPLETE : CONVERGED);
    }
    if (before(ctx) != CR_STAGE_IDLE)
        ctx->plan->status.stage_since_ms = ctx->world->now_ms;
    set_stage(ctx, CR_STAGE_IDLE, false);
}

/* The rest comes with the plan after a new CA is there, and while nothing may be written nothing moves. */
void cr_domain_plan_stage(struct domain_ctx *ctx)
{
    if (!ctx->may_record || ctx->plan->stage_next_ca || ctx->plan->first_ca)
        return;
    enum cr_stage stage = stage_now(ctx);
    if (stands_put_back(ctx)) {
        stand(ctx);
        return;
    }
    if (stage == CR_STAGE_IDLE || (!*ctx->plan->status.rotation && !ctx->has_next && ctx->plan->delete_staging)) {
        set_idle(ctx);
        return;
    }
    name_rotation(ctx);
    enter(ctx, stage);
    set_stage(ctx, stage, is_held(ctx));
}
