/* Status of a ControlPlanePolicy, to JSON and leniently back: what is broken reads as absent. Each member is always
 * there, if only as null, since it is written as a merge patch. */
#include <string.h>

#include "api/control_plane.h"
#include "api/status_fields.h"
#include "base/alloc.h"
#include "base/strings.h"

/* As in the schema: 64 fingerprints and their commas. */
enum { LIST_MAX = 64 * CR_SHA256_HEX };

const char *const cr_control_plane_condition_types[CR_CONTROL_PLANE_CONDITIONS] = {"Ready",   "Converged", "Rotating",
                                                                                   "Blocked", "Degraded",  "Conflict"};

/* --- memory --- */

static void dispose_authority(struct cr_control_plane_authority *authority)
{
    free(authority->trusted);
    free(authority->pending);
    free(authority->known);
    free(authority->issuing);
    free(authority->removable);
}

void cr_control_plane_status_dispose(struct cr_control_plane_status *status)
{
    dispose_authority(&status->cluster);
    dispose_authority(&status->etcd);
    dispose_authority(&status->front_proxy);
    free(status->service_accounts.verifying);
    free(status->service_accounts.known);
    free(status->service_accounts.signing);
    free(status->service_accounts.tokens);
    free(status->service_accounts.removable);
    free(status->nodes.example);
    free(status->namespaces.example);
    free(status->token_secrets.example);
    free(status->workloads.example);
    for (size_t i = 0; i < status->consumers_len; i++) {
        free(status->consumers[i].component);
        free(status->consumers[i].message);
    }
    free(status->consumers);
    free(status->restarting_node);
    free(status->restarting_component);
    free(status->restarting_token);
    free(status->failed_node);
    free(status->failed_component);
    free(status->failed_token);
    free(status->failed_state);
    free(status->root_ca);
    free(status->signing_key);
    free(status->handled_retry);
    free(status->next);
    cr_conditions_dispose(status->conditions, CR_CONTROL_PLANE_CONDITIONS);
    *status = (struct cr_control_plane_status){0};
}

void cr_control_plane_status_keep(struct cr_control_plane_status *to, const struct cr_control_plane_status *from)
{
    to->restarting_node = cr_strdup_or_null(from->restarting_node);
    to->restarting_component = cr_strdup_or_null(from->restarting_component);
    to->restarting_token = cr_strdup_or_null(from->restarting_token);
    to->restarting_since_ms = from->restarting_since_ms;
    to->restarting_revoked = from->restarting_revoked;
    to->failed_node = cr_strdup_or_null(from->failed_node);
    to->failed_component = cr_strdup_or_null(from->failed_component);
    to->failed_token = cr_strdup_or_null(from->failed_token);
    to->failed_state = cr_strdup_or_null(from->failed_state);
    to->handled_retry = cr_strdup_or_null(from->handled_retry);
    to->root_ca = cr_strdup_or_null(from->root_ca);
    to->root_ca_since_ms = from->root_ca_since_ms;
    to->signing_key = cr_strdup_or_null(from->signing_key);
    to->signing_key_since_ms = from->signing_key_since_ms;
    memcpy(to->conditions, from->conditions, sizeof to->conditions);
    cr_conditions_own(to->conditions, CR_CONTROL_PLANE_CONDITIONS);
}

void cr_control_plane_status_condition(struct cr_control_plane_status *status, const char *type, bool value,
                                       const char *reason, const char *message, int64_t generation, int64_t now_ms)
{
    cr_conditions_update(status->conditions, cr_control_plane_condition_types, CR_CONTROL_PLANE_CONDITIONS,
                         &(struct cr_condition_text){type, value, reason, message, false}, generation, now_ms);
}

/* --- written --- */

static void set_or_null(struct cr_json *object, const char *key, const char *text, size_t max)
{
    cr_json_set(object, key, cr_json_new_null());
    cr_status_set_text(object, key, text, max);
}

static void set_time_or_null(struct cr_json *object, const char *key, int64_t wall_ms)
{
    cr_json_set(object, key, cr_json_new_null());
    cr_status_set_time(object, key, wall_ms);
}

/* That there is none is a state, too, and one that can be looked for. */
static void set_list(struct cr_json *object, const char *key, const char *list)
{
    cr_status_set_text(object, key, cr_or_empty(list), LIST_MAX);
}

static void encode_authority(const struct cr_control_plane_authority *authority, struct cr_json *status,
                             const char *key)
{
    struct cr_json *object = cr_json_object_in(status, key);
    set_list(object, "trusted", authority->trusted);
    set_list(object, "pending", authority->pending);
    set_list(object, "known", authority->known);
    set_list(object, "issuing", authority->issuing);
    set_list(object, "removable", authority->removable);
    set_time_or_null(object, "notAfter", authority->not_after_ms);
}

static void encode_keys(const struct cr_control_plane_keys *keys, struct cr_json *status)
{
    struct cr_json *object = cr_json_object_in(status, "serviceAccounts");
    set_list(object, "verifying", keys->verifying);
    set_list(object, "known", keys->known);
    set_list(object, "signing", keys->signing);
    set_list(object, "tokens", keys->tokens);
    set_list(object, "removable", keys->removable);
}

static void encode_count(const struct cr_control_plane_count *count, struct cr_json *status, const char *key)
{
    struct cr_json *object = cr_json_object_in(status, key);
    cr_json_set_int(object, "total", count->total);
    cr_json_set_int(object, "converged", count->converged);
    set_or_null(object, "example", count->example, CR_STATUS_SENTENCE_MAX);
}

static struct cr_json *encode_consumers(const struct cr_control_plane_status *status)
{
    struct cr_json *array = cr_json_new_array();
    for (size_t i = 0; i < status->consumers_len && i < CR_CONTROL_PLANE_CONSUMERS_MAX; i++) {
        const struct cr_control_plane_consumer_status *consumer = &status->consumers[i];
        struct cr_json *object = cr_json_add(array, cr_json_new_object());
        cr_status_set_text(object, "component", cr_or_empty(consumer->component), CR_STATUS_WORD_MAX);
        cr_json_set_int(object, "nodes", consumer->nodes);
        cr_json_set_int(object, "loaded", consumer->loaded);
        cr_json_set_int(object, "soon", consumer->soon);
        cr_json_set_int(object, "restartNeeded", consumer->restart_needed);
        cr_json_set_int(object, "unknown", consumer->unknown);
        cr_status_set_text(object, "message", consumer->message, CR_STATUS_SENTENCE_MAX);
    }
    return array;
}

static void encode_restarting(const struct cr_control_plane_status *status, struct cr_json *out)
{
    if (!status->restarting_token) {
        cr_json_set(out, "restarting", cr_json_new_null());
        return;
    }
    struct cr_json *object = cr_json_object_in(out, "restarting");
    cr_autofree char *what =
        cr_asprintf("%s on %s", cr_or_empty(status->restarting_component), cr_or_empty(status->restarting_node));
    cr_json_set_string(object, "what", what);
    set_or_null(object, "node", status->restarting_node, CR_STATUS_WORD_MAX);
    set_or_null(object, "component", status->restarting_component, CR_STATUS_WORD_MAX);
    set_or_null(object, "token", status->restarting_token, CR_STATUS_WORD_MAX);
    cr_json_set(object, "since", cr_json_new_null());
    cr_status_set_time_micro(object, "since", status->restarting_since_ms);
    cr_json_set_bool(object, "revoked", status->restarting_revoked);
}

/* With their milliseconds: they are compared with when processes and pods began. */
static void encode_followed(const struct cr_control_plane_status *status, struct cr_json *out)
{
    struct cr_json *object = cr_json_object_in(out, "followed");
    set_or_null(object, "rootCA", status->root_ca, CR_STATUS_WORD_MAX);
    cr_json_set(object, "rootCASince", cr_json_new_null());
    cr_status_set_time_micro(object, "rootCASince", status->root_ca_since_ms);
    set_or_null(object, "signingKey", status->signing_key, CR_STATUS_WORD_MAX);
    cr_json_set(object, "signingKeySince", cr_json_new_null());
    cr_status_set_time_micro(object, "signingKeySince", status->signing_key_since_ms);
}

static void encode_problem(const struct cr_control_plane_status *status, struct cr_json *out)
{
    set_or_null(
        out, "problem",
        cr_conditions_problem(status->conditions, cr_control_plane_condition_types, CR_CONTROL_PLANE_CONDITIONS),
        CR_STATUS_WORD_MAX);
}

struct cr_json *cr_control_plane_status_encode(const struct cr_control_plane_status *status)
{
    struct cr_json *out = cr_json_new_object();
    cr_json_set_int(out, "observedGeneration", status->observed_generation);
    encode_authority(&status->cluster, out, "cluster");
    encode_authority(&status->etcd, out, "etcd");
    encode_authority(&status->front_proxy, out, "frontProxy");
    encode_keys(&status->service_accounts, out);
    encode_count(&status->nodes, out, "nodes");
    encode_count(&status->namespaces, out, "namespaces");
    encode_count(&status->token_secrets, out, "tokenSecrets");
    encode_count(&status->workloads, out, "workloads");
    cr_json_set(out, "consumers", encode_consumers(status));
    encode_restarting(status, out);
    set_or_null(out, "failedNode", status->failed_node, CR_STATUS_WORD_MAX);
    set_or_null(out, "failedComponent", status->failed_component, CR_STATUS_WORD_MAX);
    set_or_null(out, "failedToken", status->failed_token, CR_STATUS_WORD_MAX);
    set_or_null(out, "failedState", status->failed_state, CR_STATUS_WORD_MAX);
    set_or_null(out, "handledRetry", status->handled_retry, CR_STATUS_WORD_MAX);
    encode_followed(status, out);
    set_or_null(out, "next", status->next, CR_STATUS_SENTENCE_MAX);
    encode_problem(status, out);
    cr_json_set(out, "conditions", cr_conditions_encode(status->conditions, CR_CONTROL_PLANE_CONDITIONS));
    return out;
}

/* --- read --- */

static void decode_authority(const struct cr_json *json, struct cr_control_plane_authority *out)
{
    out->trusted = cr_status_text_or_null(json, "trusted");
    out->pending = cr_status_text_or_null(json, "pending");
    out->known = cr_status_text_or_null(json, "known");
    out->issuing = cr_status_text_or_null(json, "issuing");
    out->removable = cr_status_text_or_null(json, "removable");
    out->not_after_ms = cr_status_time_or_0(json, "notAfter");
}

static void decode_keys(const struct cr_json *json, struct cr_control_plane_keys *out)
{
    out->verifying = cr_status_text_or_null(json, "verifying");
    out->known = cr_status_text_or_null(json, "known");
    out->signing = cr_status_text_or_null(json, "signing");
    out->tokens = cr_status_text_or_null(json, "tokens");
    out->removable = cr_status_text_or_null(json, "removable");
}

static int64_t count_or_0(const struct cr_json *json, const char *key)
{
    int64_t count = cr_json_int(cr_json_get(json, key), 0);
    return count > 0 ? count : 0;
}

static void decode_count(const struct cr_json *json, struct cr_control_plane_count *out)
{
    out->total = count_or_0(json, "total");
    out->converged = count_or_0(json, "converged");
    out->example = cr_status_text_or_null(json, "example");
}

static void decode_consumer(const struct cr_json *json, struct cr_control_plane_status *status)
{
    const char *component = cr_json_string(cr_json_get(json, "component"));
    if (!component || !*component || status->consumers_len == CR_CONTROL_PLANE_CONSUMERS_MAX)
        return;
    status->consumers[status->consumers_len++] =
        (struct cr_control_plane_consumer_status){.component = cr_strdup(component),
                                                  .nodes = count_or_0(json, "nodes"),
                                                  .loaded = count_or_0(json, "loaded"),
                                                  .soon = count_or_0(json, "soon"),
                                                  .restart_needed = count_or_0(json, "restartNeeded"),
                                                  .unknown = count_or_0(json, "unknown"),
                                                  .message = cr_status_text_or_null(json, "message")};
}

static void decode_consumers(const struct cr_json *array, struct cr_control_plane_status *status)
{
    if (!cr_json_is_array(array) || !cr_json_len(array))
        return;
    status->consumers = cr_calloc(CR_CONTROL_PLANE_CONSUMERS_MAX, sizeof *status->consumers);
    for (const struct cr_json *c = cr_json_first(array); c; c = cr_json_next(c))
        decode_consumer(c, status);
}

/* One that does not say what and where is none: what is under way then is read off the reports. */
static void decode_restarting(const struct cr_json *json, struct cr_control_plane_status *out)
{
    const char *node = cr_json_string(cr_json_get(json, "node"));
    const char *component = cr_json_string(cr_json_get(json, "component"));
    const char *token = cr_json_string(cr_json_get(json, "token"));
    if (!node || !component || !token)
        return;
    out->restarting_node = cr_strdup(node);
    out->restarting_component = cr_strdup(component);
    out->restarting_token = cr_strdup(token);
    out->restarting_since_ms = cr_status_time_or_0(json, "since");
    out->restarting_revoked = cr_json_bool(cr_json_get(json, "revoked"), false);
}

static void decode_followed(const struct cr_json *json, struct cr_control_plane_status *out)
{
    out->root_ca = cr_status_text_or_null(json, "rootCA");
    out->root_ca_since_ms = cr_status_time_or_0(json, "rootCASince");
    out->signing_key = cr_status_text_or_null(json, "signingKey");
    out->signing_key_since_ms = cr_status_time_or_0(json, "signingKeySince");
}

void cr_control_plane_status_decode(const struct cr_json *status, struct cr_control_plane_status *out)
{
    *out = (struct cr_control_plane_status){0};
    out->observed_generation = count_or_0(status, "observedGeneration");
    decode_authority(cr_json_get(status, "cluster"), &out->cluster);
    decode_authority(cr_json_get(status, "etcd"), &out->etcd);
    decode_authority(cr_json_get(status, "frontProxy"), &out->front_proxy);
    decode_keys(cr_json_get(status, "serviceAccounts"), &out->service_accounts);
    decode_count(cr_json_get(status, "nodes"), &out->nodes);
    decode_count(cr_json_get(status, "namespaces"), &out->namespaces);
    decode_count(cr_json_get(status, "tokenSecrets"), &out->token_secrets);
    decode_count(cr_json_get(status, "workloads"), &out->workloads);
    decode_consumers(cr_json_get(status, "consumers"), out);
    decode_restarting(cr_json_get(status, "restarting"), out);
    decode_followed(cr_json_get(status, "followed"), out);
    out->failed_node = cr_status_text_or_null(status, "failedNode");
    out->failed_component = cr_status_text_or_null(status, "failedComponent");
    out->failed_token = cr_status_text_or_null(status, "failedToken");
    out->failed_state = cr_status_text_or_null(status, "failedState");
    out->handled_retry = cr_status_text_or_null(status, "handledRetry");
    out->next = cr_status_text_or_null(status, "next");
    cr_conditions_decode(cr_json_get(status, "conditions"), out->conditions, cr_control_plane_condition_types,
                         CR_CONTROL_PLANE_CONDITIONS);
}
