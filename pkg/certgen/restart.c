/* Deployments that read certificates only at their start, rolled as `kubectl rollout restart` does. */
#include "api/consumer_kind.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/job_internal.h"

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

/* With one replica the old pod may end before the new one serves, and with Recreate it always does. */
static void warn_of_a_gap(const struct cr_certgen_run *run, const struct cr_json *deployment, const char *name)
{
    bool recreates = cr_streq(cr_json_string_at(deployment, "spec", "strategy", "type"), "Recreate");
    int64_t replicas = cr_json_int_at(deployment, 1, "spec", "replicas");
    if (replicas == 1 || recreates)
        cr_certgen_say(run, "warning: Deployment %s/%s has %s: there may be a gap while it restarts", run->job->set->ns,
                       name, recreates ? "the strategy Recreate" : "one replica");
}

static bool restart_one(const struct cr_certgen_run *run, const char *name, const char *at, struct cr_error *err)
{
    const char *ns = run->job->set->ns;
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    struct cr_json *template = cr_json_object_in(cr_json_object_in(patch, "spec"), "template");
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(template, "metadata"), "annotations");
    cr_json_set_string(annotations, RESTARTED_AT, at);
    struct cr_error why = {0};
    const struct cr_resource *resource = &cr_consumer_kind_of("Deployment")->resource;
    CR_CLEANUP(cr_json)
    struct cr_json *patched = cr_client_merge_patch(run->job->client, resource, ns, name, NULL, patch, &why);
    if (patched) {
        cr_certgen_say(run, "Deployment %s/%s: restarted", ns, name);
        warn_of_a_gap(run, patched, name);
        return true;
    }
    if (why.kind == CR_ERR_NOT_FOUND) {
        cr_certgen_say(run, "Deployment %s/%s: not there, so not restarted", ns, name);
        return true;
    }
    *err = why;
    return cr_error_wrap(err, "restarting Deployment %s/%s", ns, name);
}

/* The same value when it is tried again: one rollout. */
bool cr_certgen_restart_at(const struct cr_certgen_run *run, int64_t now_ms, struct cr_error *err)
{
    char at[CR_TIME_TEXT];
    cr_time_format(now_ms, at);
    const struct cr_strvec *names = &run->job->set->restarts;
    for (size_t i = 0; i < names->len; i++)
        if (!restart_one(run, names->items[i], at, err))
            return false;
    return true;
}
