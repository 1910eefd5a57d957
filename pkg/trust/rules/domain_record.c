/* What is on record of each object. What is published there now and is not on record was written just now, for all that
 * is known: by certroll, which was killed before it recorded that, or by another program. Then evidence that counts the
 * time since our last write is wrong, so it does not count before this is on record. */
#include "trust/rules/domain_plan_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* --- another writer --- */

#define DAY_MS (24 * 3600LL * 1000)
enum { DOUBLINGS_MAX = 4 };

static const char *published_leaf(const struct cr_domain_object *object)
{
    return object->published.found ? object->published.fingerprint : "";
}

static bool is_on_record(const struct cr_domain_object_status *record, const char *trust, const char *leaf)
{
    return strcmp(record->trust, trust) == 0 && strcmp(record->leaf, leaf) == 0;
}

bool cr_domain_is_as_recorded(const struct cr_domain_world *world, const struct cr_domain_object *object,
                              const struct cr_domain_object_status *record)
{
    char trust[CR_SHA256_HEX];
    cr_domain_trust_digest(world, object, trust);
    return is_on_record(record, trust, published_leaf(object));
}

int64_t cr_domain_other_writer_until_ms(const struct cr_domain_world *world,
                                        const struct cr_domain_object_status *record)
{
    if (record->overwritten < 2 || world->status->observed_generation != world->domain->generation)
        return 0;
    int doublings = record->overwritten - 2 < DOUBLINGS_MAX ? record->overwritten - 2 : DOUBLINGS_MAX;
    int64_t until_ms = record->overwritten_ms + (CR_OVERWRITTEN_HOLD_MS << doublings);
    return until_ms > world->now_ms ? until_ms : 0;
}

static void forget_other_writer(struct cr_domain_object_status *record)
{
    record->overwritten = 0;
    record->overwritten_ms = 0;
    cr_strset(&record->overwritten_by, NULL);
}

void cr_domain_forget_other_writers(struct cr_domain_status *status)
{
    for (size_t i = 0; i < status->objects_len; i++)
        forget_other_writer(&status->objects[i]);
}

static void note_other_writer(struct domain_ctx *ctx, const struct cr_domain_object *object,
                              struct cr_domain_object_status *record)
{
    const struct cr_domain_world *world = ctx->world;
    if (record->overwritten && world->now_ms - record->overwritten_ms > DAY_MS)
        forget_other_writer(record);
    if (!object->changed_by)
        return;
    /* Only the bundle that was put right beside its leaf: that makes nothing worse. */
    if (cr_domain_has_other_writer(object) && strcmp(record->leaf, published_leaf(object)) == 0)
        return;
    record->overwritten += record->overwritten < CR_OVERWRITTEN_MAX;
    record->overwritten_ms = world->now_ms;
    cr_strset(&record->overwritten_by, object->changed_by);
    cr_autofree char *title = cr_domain_object_title(object);
    cr_domain_say(ctx, true, "Overwritten",
                  cr_asprintf("%s: '%s' has overwritten what was published there", title, object->changed_by));
}

/* --- each --- */

static void note(struct domain_ctx *ctx, size_t at, struct cr_domain_object_status *record)
{
    const struct cr_domain_object *object = &ctx->world->objects[at];
    char trust[CR_SHA256_HEX];
    if (object->unknown || cr_domain_is_foreign(object))
        return; /* what was ours there stays on record */
    note_other_writer(ctx, object, record);
    if (cr_domain_is_missed(ctx, at)) {
        /* So does this; and what is created again is new, also when it is the same. */
        ctx->plan->record_first = ctx->plan->record_first || record->written_ms;
        record->written_ms = 0;
        return;
    }
    cr_domain_trust_digest(ctx->world, object, trust);
    const char *leaf = published_leaf(object);
    bool same = is_on_record(record, trust, leaf);
    if (cr_domain_is_there(ctx, at) && (!same || !record->written_ms)) {
        ctx->unrecorded[at] = true;
        ctx->plan->record_first = true;
        record->written_ms = ctx->world->now_ms;
        /* Our own write, whose record was lost: the restarts that it asks for are those of the rotation. What was there
         * as it should be before it was ours, no policy has to read again. */
        if (record->written_version && !object->changed_by && object->version)
            cr_strset(&record->written_version, object->version);
    }
    /* A clock that was set back must not make it one of the future. */
    if (record->written_ms > ctx->world->now_ms)
        record->written_ms = ctx->world->now_ms;
    memcpy(record->trust, trust, sizeof record->trust);
    memcpy(record->leaf, leaf, strlen(leaf) + 1);
    record->leaf_not_after_ms = object->published.found ? object->published.not_after_ms : 0;
}

/* In the world's order; what the domain does not write any more goes. */
void cr_domain_plan_objects(struct domain_ctx *ctx)
{
    const struct cr_domain_world *world = ctx->world;
    struct cr_domain_status *status = &ctx->plan->status;
    struct cr_domain_object_status *before = status->objects;
    size_t before_len = status->objects_len;
    status->objects = cr_calloc(world->objects_len + 1, sizeof *status->objects);
    status->objects_len = world->objects_len;
    for (size_t i = 0; i < world->objects_len; i++) {
        const struct cr_domain_object *object = &world->objects[i];
        struct cr_domain_object_status *record = &status->objects[i];
        for (size_t k = 0; k < before_len && !record->kind; k++) {
            if (!cr_streq(before[k].kind, object->kind) || !cr_streq(before[k].ns, object->ns) ||
                !cr_streq(before[k].name, object->name))
                continue;
            *record = before[k];
            before[k] = (struct cr_domain_object_status){0};
        }
        if (!record->kind)
            *record = (struct cr_domain_object_status){
                .kind = cr_strdup(object->kind), .ns = cr_strdup_or_null(object->ns), .name = cr_strdup(object->name)};
        note(ctx, i, record);
    }
    for (size_t k = 0; k < before_len; k++)
        cr_domain_object_status_dispose(&before[k]);
    free(before);
}
