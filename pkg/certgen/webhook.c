/* The caBundles of a webhook that one of the leaves serves. The API server reads them by a watch, at once. */
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "certgen/job_internal.h"
#include "codec/base64.h"
#include "kube/object.h"

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

bool cr_certgen_webhook_write(struct cr_certgen_run *run, const char *bundle, struct cr_error *err)
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
