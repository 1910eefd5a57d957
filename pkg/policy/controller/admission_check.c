#include "policy/controller/admission_check.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/digest_key.h"
#include "kube/event.h"

enum {
    REQUEST_MS = 5000,
    FIRST_MS = 1000, /* a policy that was just applied takes about a second to be effective */
    MAX_MS = 30 * 1000,
};

struct cr_admission_check {
    struct cr_start_check *check;
    struct cr_client *client; /* our own */
    struct cr_recorder *recorder;
    struct cr_metric *guards;
    char *ns;
    char *lease;
    char *account; /* the check's thread; NULL: not known */
};

/* "system:serviceaccount:certroll-system:certroll-operator": who the API server says that we are
 * (authentication.k8s.io/v1 SelfSubjectReview, which anybody may ask). For people only. Owned, or NULL. */
static char *ask_for_account(struct cr_client *client)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *answer =
        cr_client_raw(client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "application/json",
                      "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}", &err);
    return cr_strdup_or_null(cr_json_string_at(answer, "status", "userInfo", "username"));
}

static const char *account_of(struct cr_admission_check *check)
{
    if (!check->account)
        check->account = ask_for_account(check->client);
    return check->account ? check->account : "this account";
}

/* Whether the Secret would be made, or is there already, which the API server finds after admission. */
static bool admits(const struct cr_admission_check *check, const char *name, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *secret = cr_json_new_object();
    cr_json_set_string(secret, "apiVersion", "v1");
    cr_json_set_string(secret, "kind", "Secret");
    cr_json_set_string(secret, "type", "Opaque");
    cr_json_set_string(cr_json_object_in(secret, "metadata"), "name", name);
    struct cr_error refused = {0};
    if (cr_client_try_create(check->client, &cr_res_secrets, check->ns, secret, &refused) ||
        refused.kind == CR_ERR_CONFLICT)
        return true;
    *err = refused;
    return false;
}

/* The problem of a request that the API server answered with neither yes nor no. */
static bool unknown(struct cr_admission_check *check, const struct cr_error *answer, struct cr_error *err)
{
    return cr_error_set(err, answer->kind,
                        "nothing is written before it is known that an admission policy guards %s: %s",
                        account_of(check), answer->text);
}

static bool holds(void *arg, struct cr_error *err)
{
    struct cr_admission_check *check = arg;
    struct cr_error answer = {0};
    if (!admits(check, CR_DIGEST_KEY_SECRET, &answer))
        return unknown(check, &answer, err);
    if (admits(check, CR_ADMISSION_CHECK_SECRET, &answer))
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "no admission policy guards %s, so nothing is written: apply that of "
                            "manifests/base/admission.yaml, which matches accounts with certroll-operator in their "
                            "name, or do without it by --require-admission-policy=false",
                            account_of(check));
    if (answer.kind != CR_ERR_FORBIDDEN)
        return unknown(check, &answer, err);
    cr_metric_set(check->guards, NULL, 1);
    cr_log(CR_LOG_INFO, "an admission policy guards this account", {"account", account_of(check)});
    return true;
}

/* An API server that is out of reach takes no Event either. */
static void on_refused(void *arg, const struct cr_error *why)
{
    struct cr_admission_check *check = arg;
    cr_log(CR_LOG_WARN, "not started", {"error", why->text});
    const struct cr_event event = {
        .api_version = "coordination.k8s.io/v1",
        .kind = "Lease",
        .ns = check->ns,
        .name = check->lease,
        .warning = true,
        .reason = "NotGuarded",
        .message = why->text,
    };
    if (why->kind != CR_ERR_TRANSIENT && why->kind != CR_ERR_CANCELLED)
        cr_recorder_emit(check->recorder, &event);
}

static void cancel(void *arg)
{
    struct cr_admission_check *check = arg;
    cr_client_cancel(check->client);
}

struct cr_admission_check *cr_admission_check_new(struct cr_client *client, struct cr_metrics *metrics, const char *ns,
                                                  const char *lease)
{
    struct cr_admission_check *check = cr_new(struct cr_admission_check);
    check->ns = cr_strdup(ns);
    check->lease = cr_strdup(lease);
    check->client = cr_client_new_dedicated(client, REQUEST_MS);
    check->recorder = cr_recorder_new(check->client, "certroll");
    check->guards = cr_metrics_gauge(metrics, "certroll_admission_policy_guards",
                                     "Whether an admission policy was seen to guard the operator's account. As long as "
                                     "it is 0, nothing is written; absent: --require-admission-policy=false.",
                                     NULL);
    cr_metric_set(check->guards, NULL, 0);
    check->check = cr_start_check_new(&(struct cr_start_check_options){.holds = holds,
                                                                       .on_refused = on_refused,
                                                                       .cancel = cancel,
                                                                       .arg = check,
                                                                       .first_ms = FIRST_MS,
                                                                       .max_ms = MAX_MS});
    return check;
}

void cr_admission_check_free(struct cr_admission_check *check)
{
    if (!check)
        return;
    cr_start_check_free(check->check);
    cr_recorder_free(check->recorder);
    cr_client_free(check->client);
    free(check->account);
    free(check->lease);
    free(check->ns);
    free(check);
}

struct cr_start_check *cr_admission_check_start_check(struct cr_admission_check *check)
{
    return check->check;
}
