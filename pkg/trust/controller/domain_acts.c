#include "trust/controller/domain_acts.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/object.h"

/* A canary lasts ten minutes (domain_objects.h): renewed while it can still be used for this long. */
enum { CANARY_LIFE_MS = 10 * 60 * 1000, CANARY_LEFT_MS = 3 * 60 * 1000 };

char *cr_domain_key(const struct cr_domain *domain)
{
    return cr_asprintf("%s/%s", cr_or_empty(domain->ns), domain->name);
}

static void log_act(const struct cr_domain *domain, const char *msg, const struct cr_domain_object *object,
                    const char *what, const struct cr_error *err)
{
    cr_autofree char *title = cr_domain_title(domain);
    cr_autofree char *about =
        object ? cr_asprintf("%s %s%s%s", object->kind, cr_or_empty(object->ns), object->ns ? "/" : "", object->name)
               : NULL;
    cr_log(err ? CR_LOG_WARN : CR_LOG_INFO, msg, {"domain", title}, {"object", about}, {"what", what},
           {"error", err ? err->text : NULL});
}

/* --- objects --- */

static const char *words_of(const struct cr_domain_write *write)
{
    switch (write->leaf) {
    case CR_LEAF_ACT_MIRROR:
        return "the leaf of its source";
    case CR_LEAF_ACT_ISSUE:
        return "a new leaf";
    case CR_LEAF_ACT_PUT_BACK:
        return "the previous leaf";
    case CR_LEAF_ACT_KEEP:
        break;
    }
    return "trust";
}

static bool is_for_a_person(const struct cr_error *err)
{
    return err->kind == CR_ERR_FORBIDDEN || err->kind == CR_ERR_INVALID;
}

/* The next rounds go by it. CR_TRUST_FINE: what was remembered is over. */
static void remember(const struct cr_domain_actor *actor, const struct cr_domain *domain,
                     const struct cr_domain_object *object, enum cr_trust_reason reason, const char *words)
{
    cr_autofree char *key = cr_domain_refused_key(domain, object);
    if (!reason) {
        cr_memory_drop_note(actor->memory, key);
        return;
    }
    cr_memory_take_note(actor->memory, key,
                        &(struct cr_note_input){.at_ms = cr_clock_monotonic_ms(), .reason = reason, .text = words});
}

/* A policy that has not read this version yet says nothing of it. */
static void note_version(struct cr_domain_gathered *gathered, const struct cr_domain_object *object,
                         const char *version, int64_t now_ms)
{
    struct cr_domain_object_status *status =
        cr_domain_status_object_add(gathered->status, object->kind, object->ns, object->name);
    cr_strset(&status->written_version, version);
    status->written_ms = now_ms;
}

static bool write_one(const struct cr_domain_actor *actor, struct cr_domain_gathered *gathered,
                      const struct cr_domain_write *write, struct cr_error *err)
{
    const struct cr_domain *domain = gathered->world.domain;
    const struct cr_domain_object *object = &gathered->list[write->object];
    int64_t now_ms = cr_clock_wall_ms();
    CR_CLEANUP(cr_domain_written) struct cr_domain_written written = {0};
    cr_autofree char *wrote = cr_domain_wrote_key(domain, object);
    if (cr_domain_objects_write(gathered->objects, write, now_ms, &written, err)) {
        remember(actor, domain, object, written.reason, written.text);
        if (written.version) {
            note_version(gathered, object, written.version, now_ms);
            cr_autofree char *content = cr_domain_objects_content(gathered->objects, write->object);
            cr_memory_take_note(actor->memory, wrote,
                                &(struct cr_note_input){.about = written.version, .text = content});
            log_act(domain, "published", object, words_of(write), NULL);
        }
        return true;
    }
    cr_memory_drop_note(actor->memory, wrote); /* when the answer was lost, it may have been written */
    if (!is_for_a_person(err))
        return false;
    log_act(domain, "the API server refuses what is to be published", object, words_of(write), err);
    remember(actor, domain, object, err->kind == CR_ERR_FORBIDDEN ? CR_TRUST_FORBIDDEN : CR_TRUST_INVALID, err->text);
    cr_error_clear(err);
    return true;
}

static bool write_all(const struct cr_domain_actor *actor, struct cr_domain_gathered *gathered,
                      const struct cr_domain_plan *plan, struct cr_error *err)
{
    struct cr_error first = {0};
    int64_t end_ms = cr_clock_monotonic_ms() + CR_DOMAIN_WORK_MS;
    bool any = false; /* one that fails again and again keeps none of the others from being tried */
    for (size_t i = 0; i < plan->writes_len && (!any || cr_clock_monotonic_ms() < end_ms); i++) {
        struct cr_error failed = {0};
        if (write_one(actor, gathered, &plan->writes[i], &failed))
            any = true;
        else if (first.kind == CR_ERR_NONE)
            first = failed;
    }
    if (first.kind != CR_ERR_NONE)
        *err = first;
    return first.kind == CR_ERR_NONE;
}

/* --- CAs --- */

static const char *token_of(const struct cr_domain *domain)
{
    return domain->rotate == CR_ROTATE_CA ? domain->rotate_token : NULL;
}

static bool act_on_cas(struct cr_domain_gathered *gathered, const struct cr_domain_plan *plan, struct cr_error *err)
{
    const struct cr_domain *domain = gathered->world.domain;
    const char *what = plan->first_ca        ? "a first CA is made"
                       : plan->stage_next_ca ? "the next CA is made, in staging"
                       : plan->promote_ca    ? "the next CA is the current one"
                                             : "staging is deleted";
    bool done = plan->first_ca ? cr_domain_objects_first_ca(gathered->objects, cr_clock_wall_ms(), err)
                : plan->stage_next_ca
                    ? cr_domain_objects_stage_next_ca(gathered->objects, token_of(domain), cr_clock_wall_ms(), err)
                : plan->promote_ca ? cr_domain_objects_promote_ca(gathered->objects, err)
                                   : cr_domain_objects_delete_staging(gathered->objects, err);
    if (done)
        log_act(domain, what, NULL, NULL, NULL);
    return done;
}

bool cr_domain_act(const struct cr_domain_actor *actor, struct cr_domain_gathered *gathered,
                   const struct cr_domain_plan *plan, bool *did, struct cr_error *err)
{
    bool makes_ca = plan->first_ca || plan->stage_next_ca;
    *did = makes_ca || plan->writes_len || plan->promote_ca || plan->delete_staging;
    if (!*did)
        return true;
    return !makes_ca && plan->writes_len ? write_all(actor, gathered, plan, err) : act_on_cas(gathered, plan, err);
}

/* --- status --- */

/* A merge patch keeps what it does not name: members that are gone must be named with null. */
static void null_the_gone(struct cr_json *after, const struct cr_json *before)
{
    for (const struct cr_json *member = cr_json_first(before); member; member = cr_json_next(member))
        if (!cr_json_get(after, cr_json_key(member)))
            cr_json_set(after, cr_json_key(member), cr_json_new_null());
}

bool cr_domain_act_status(const struct cr_domain_actor *actor, const struct cr_domain *domain,
                          const char *resource_version, const struct cr_domain_status *before,
                          const struct cr_domain_status *after, struct cr_json **written, struct cr_error *err)
{
    *written = NULL;
    CR_CLEANUP(cr_json) struct cr_json *old_json = cr_domain_status_encode(before);
    CR_CLEANUP(cr_json) struct cr_json *new_json = cr_domain_status_encode(after);
    if (cr_json_equal(old_json, new_json))
        return true;
    null_the_gone(new_json, old_json);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(patch, "metadata");
    cr_json_set_string(metadata, "uid", domain->uid);
    cr_json_set_string(metadata, "resourceVersion", resource_version);
    cr_json_set(patch, "status", cr_steal(&new_json));
    const struct cr_resource *resource = domain->cluster ? &cr_res_cluster_domains : &cr_res_domains;
    *written = cr_client_merge_patch(actor->client, resource, domain->ns, domain->name, "status", patch, err);
    if (*written) {
        cr_autofree char *key = cr_domain_key(domain);
        cr_own_writes_add(actor->own_writes, key, resource->kind, *written, cr_clock_monotonic_ms());
        return true;
    }
    cr_autofree char *title = cr_domain_title(domain);
    return cr_error_wrap(err, "cannot write the status of %s %s", resource->kind, title);
}

/* --- canaries --- */

static void make_canary(const struct cr_domain_actor *actor, const struct cr_domain_gathered *gathered, size_t ca)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf certificate = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf key = CR_BUF_INIT(0);
    key.secret = true;
    int64_t now_ms = cr_clock_wall_ms();
    if (!cr_domain_objects_canary(gathered->objects, ca, now_ms, &certificate, &key, &err))
        return; /* its key is not held: nobody can ask by it */
    struct cr_probe_client *client = cr_probe_client_new(certificate.data, certificate.len, key.data, key.len, &err);
    if (client)
        cr_canaries_put(actor->canaries, gathered->world.cas[ca].fingerprint, client, now_ms + CANARY_LIFE_MS);
    else
        log_act(gathered->world.domain, "a canary cannot be used", NULL, NULL, &err);
}

int64_t cr_domain_act_canaries(const struct cr_domain_actor *actor, const struct cr_domain_gathered *gathered)
{
    const struct cr_domain_world *world = &gathered->world;
    if (!actor->canaries || world->domain->authority != CR_AUTHORITY_ISSUE)
        return 0;
    int64_t now_ms = cr_clock_wall_ms();
    for (size_t i = 0; i < world->cas_len; i++)
        if (!cr_canaries_has(actor->canaries, world->cas[i].fingerprint, now_ms, now_ms + CANARY_LEFT_MS))
            make_canary(actor, gathered, i);
    return CANARY_LIFE_MS - CANARY_LEFT_MS;
}
