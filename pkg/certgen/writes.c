/* The writes of a job. Each follows the plan and has what was read as its precondition. */
#include "certgen/job_internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/leaf.h"
#include "codec/base64.h"
#include "kube/object.h"

/* The caBundles of a webhook that one of the leaves serves. The API server reads them by a watch, at once. */

static const struct cr_resource webhooks = {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                            "MutatingWebhookConfiguration"};

static bool is_current(const struct cr_json *object, const char *bundle)
{
    for (const struct cr_json *c = cr_json_first(cr_json_get(object, "webhooks")); c; c = cr_json_next(c))
        if (!cr_streq(cr_json_string_at(c, "clientConfig", "caBundle"), bundle))
            return false;
    return true;
}

/* A list is replaced as a whole, so all of it is in the patch, and the precondition identifies the list that was read.
 */
static struct cr_json *new_patch(const struct cr_json *object, const char *bundle)
{
    struct cr_json *patch = cr_json_new_object();
    cr_json_set_string(cr_json_object_in(patch, "metadata"), "resourceVersion", cr_obj_resource_version(object));
    struct cr_json *list = cr_json_array_in(patch, "webhooks");
    for (const struct cr_json *c = cr_json_first(cr_json_get(object, "webhooks")); c; c = cr_json_next(c)) {
        struct cr_json *webhook = cr_json_add(list, cr_json_copy(c));
        cr_json_set_string(cr_json_object_in(webhook, "clientConfig"), "caBundle", bundle);
    }
    return patch;
}

/* The webhook's caBundles become `bundle` (PEM). It says what is not there. */
static bool certgen_webhook_write(struct cr_certgen_run *run, const char *bundle, struct cr_error *err)
{
    const char *name = run->job->set->webhook;
    struct cr_error why = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_client_get(run->job->client, &webhooks, NULL, name, &why);
    if (!object && why.kind == CR_ERR_NOT_FOUND) {
        cr_certgen_say_once(run, "MutatingWebhookConfiguration %s: not there, so no caBundle is written", name);
        return true;
    }
    cr_autofree char *text = cr_base64_encode(bundle, strlen(bundle));
    if (object && is_current(object, text))
        return true;
    CR_CLEANUP(cr_json) struct cr_json *patch = object ? new_patch(object, text) : NULL;
    CR_CLEANUP(cr_json)
    struct cr_json *written =
        patch ? cr_client_merge_patch(run->job->client, &webhooks, NULL, name, NULL, patch, &why) : NULL;
    if (written) {
        cr_certgen_say(run, "MutatingWebhookConfiguration %s: caBundle written", name);
        return true;
    }
    *err = why;
    return cr_error_wrap(err, "MutatingWebhookConfiguration %s (--no-webhook leaves it alone)", name);
}

/* What was written is what would be read now. */
static void note_written(struct cr_certgen_run *run, size_t i, const struct cr_certgen_write *write, char *version)
{
    struct cr_certgen_found *found = &run->found[i];
    run->wrote = true;
    found->found = true;
    found->has_opaque |= write->opaque != NULL;
    if (write->rotation)
        cr_strset(&found->rotation, write->rotation);
    for (size_t k = 0; k < cr_array_len(found->data); k++) {
        if (!write->data[k].data)
            continue;
        cr_buf_reset(&found->data[k]);
        cr_buf_puts(&found->data[k], write->data[k].data);
    }
    cr_strset(&found->version, version);
    free(run->written[i].version);
    run->written[i] = (struct cr_certgen_written){.version = version, .at_ms = cr_clock_wall_ms()};
    run->written_ms = cr_clock_monotonic_ms();
}

static bool write_secret(struct cr_certgen_run *run, size_t i, const struct cr_certgen_write *write, const char *what,
                         struct cr_error *err)
{
    char *version = NULL;
    if (!cr_certgen_store_write(run->job->store, i, &run->found[i], write, &version, err))
        return false;
    cr_autofree char *title = cr_certgen_store_title(run->job->store, i);
    cr_certgen_say(run, "%s: %s", title, what);
    note_written(run, i, write, version);
    return true;
}

static struct cr_pem_input text_entry(const char *text)
{
    return (struct cr_pem_input){text, strlen(text)};
}

static bool write_opaque(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    size_t len = (size_t)run->job->set->secrets[i].opaque_bytes;
    cr_autofree unsigned char *bytes = cr_malloc(len);
    ssize_t n = getrandom(bytes, len, 0);
    bool ok = n == (ssize_t)len || cr_error_set(err, CR_ERR_TRANSIENT, "the kernel gives no random bytes");
    ok = ok && write_secret(run, i, &(struct cr_certgen_write){.opaque = bytes}, "created", err);
    explicit_bzero(bytes, len);
    return ok;
}

static bool write_trust(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    struct cr_certgen_write write = {0};
    write.data[CR_CERTGEN_DATA_TRUST] = text_entry(run->plan.bundle);
    cr_autofree char *what = cr_asprintf("trusts %zu CAs: the new one first", run->plan.bundle_len);
    run->replaced |= run->found[i].data[CR_CERTGEN_DATA_TRUST].len > 0; /* before the answer, which may be lost */
    return write_secret(run, i, &write, what, err);
}

static bool write_leaf(struct cr_certgen_run *run, size_t i, struct cr_error *err)
{
    const struct cr_certgen_set *set = run->job->set;
    CR_CLEANUP(cr_certgen_leaf) struct cr_certgen_leaf leaf = {0};
    if (!cr_certgen_leaf_issue(set, &set->secrets[i], run->authority, cr_clock_wall_ms(), &leaf, err))
        return false;
    bool replaces = run->found[i].found;
    struct cr_certgen_write write = {.rotation = run->job->rotation};
    write.data[CR_CERTGEN_DATA_CERTIFICATE] = text_entry(leaf.certificate);
    write.data[CR_CERTGEN_DATA_PRIVATE_KEY] = (struct cr_pem_input){leaf.key.data, leaf.key.len};
    if (!replaces)
        write.data[CR_CERTGEN_DATA_TRUST] = text_entry(run->plan.bundle);
    char until[CR_TIME_TEXT];
    cr_time_format(leaf.not_after_ms, until);
    cr_autofree char *what = cr_asprintf("%s, until %s", replaces ? "a new leaf" : "created", until);
    run->replaced |= replaces; /* before the answer, which may be lost: then the leaf is found to be there */
    return write_secret(run, i, &write, what, err);
}

static bool write_each(struct cr_certgen_run *run, size_t task,
                       bool (*write)(struct cr_certgen_run *run, size_t i, struct cr_error *err), struct cr_error *err)
{
    for (size_t i = 0; i < run->plan.len; i++) {
        const bool *todo = (const bool *)((const char *)&run->plan.tasks[i] + task);
        if (*todo && !write(run, i, err))
            return false;
    }
    return true;
}

/* Trust first, for the webhook as well: the ca.crt of its Secret, which does not shrink within a run. */
static bool write_webhook(struct cr_certgen_run *run, struct cr_error *err)
{
    const struct cr_certgen_set *set = run->job->set;
    if (!set->webhook || !run->job->client)
        return true;
    const struct cr_pem_input published = cr_certgen_entry(&run->found[set->webhook_secret], CR_CERTGEN_DATA_TRUST);
    const char *bundle = published.len ? published.data : run->plan.bundle; /* the Secret is about to be created */
    return !bundle || certgen_webhook_write(run, bundle, err);
}

#define TASK(name) offsetof(struct cr_certgen_task, name)

bool cr_certgen_write_opaque(struct cr_certgen_run *run, struct cr_error *err)
{
    return write_each(run, TASK(opaque), write_opaque, err);
}

bool cr_certgen_write_trust(struct cr_certgen_run *run, struct cr_error *err)
{
    return write_each(run, TASK(trust), write_trust, err) && write_webhook(run, err);
}

bool cr_certgen_write_leaves(struct cr_certgen_run *run, struct cr_error *err)
{
    return write_each(run, TASK(leaf), write_leaf, err);
}
