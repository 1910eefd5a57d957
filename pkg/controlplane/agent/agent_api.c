/* The agent's requests to the API server. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/object.h"
#include "controlplane/agent/agent_internal.h"
#include "controlplane/agent/order.h"

/* --- contact --- */

bool cr_node_agent_may_ask(const struct cr_node_agent *agent)
{
    return cr_contact_may_ask(&agent->contact, cr_clock_monotonic_ms());
}

static void log_lost(const struct cr_node_agent *agent, const char *what, const struct cr_error *err)
{
    bool lost = cr_contact_is_lost(&agent->contact, cr_clock_monotonic_ms());
    cr_log(lost ? CR_LOG_ERROR : CR_LOG_WARN,
           lost ? "contact with the API server is lost: it is asked on, each 30 s"
                : "the API server does not do what it is asked for: it is asked again",
           {"for", what}, {"error", err->text});
}

void cr_node_agent_note_answer(struct cr_node_agent *agent, const char *what, bool answered, const struct cr_error *err)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    if (answered) {
        int64_t away_ms = cr_contact_made(&agent->contact, now_ms);
        char text[CR_TIME_TEXT];
        cr_duration_format(away_ms, text);
        if (away_ms)
            cr_log(CR_LOG_INFO, "the API server is within reach again", {"after", text});
    } else {
        cr_metric_add(agent->metrics.api_errors, CR_LABELS(what), 1);
        if (cr_contact_failed(&agent->contact, cr_node_act_is_under_way(&agent->report.act), now_ms))
            log_lost(agent, what, err);
    }
    int64_t since_ms = agent->contact.since_ms;
    cr_metric_set(agent->metrics.unreachable, NULL, since_ms ? (double)(now_ms - since_ms) / 1000 : 0);
}

/* That an object is not there, or another by now, is an answer. */
static bool is_answer(const struct cr_error *err)
{
    return err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_CONFLICT;
}

/* --- what is known of the report --- */

static void forget(struct cr_node_agent *agent)
{
    cr_node_report_dispose(&agent->known);
    agent->has_known = false;
}

/* Takes object. */
static void know(struct cr_node_agent *agent, struct cr_json *object)
{
    struct cr_error err = {0};
    struct cr_node_report fresh;
    if (cr_node_report_decode(object, &fresh, &err)) {
        cr_node_report_dispose(&agent->known);
        agent->known = fresh;
        agent->has_known = true;
    }
    cr_json_free(object);
}

/* A watch may lag behind our own writes, and one that was started again may lag behind itself. */
static bool is_newer(const struct cr_node_agent *agent, const struct cr_json *object)
{
    return !agent->has_known || !cr_streq(agent->known.uid, cr_obj_uid(object)) ||
           cr_decimal_less(agent->known.resource_version, cr_obj_resource_version(object));
}

static void take_from_informer(struct cr_node_agent *agent)
{
    CR_CLEANUP(cr_snapshot)
    struct cr_snapshot *snapshot = cr_store_get(cr_informer_store(agent->informer), NULL, agent->options.node);
    if (snapshot && is_newer(agent, snapshot->json)) {
        struct cr_json *object = cr_json_copy(snapshot->json);
        cr_resource_stamp(&cr_res_node_reports, object);
        know(agent, object);
    }
}

bool cr_node_agent_refresh(struct cr_node_agent *agent)
{
    struct cr_error err = {0};
    struct cr_json *object = cr_client_get(agent->client, &cr_res_node_reports, NULL, agent->options.node, &err);
    cr_node_agent_note_answer(agent, "report", object || is_answer(&err), &err);
    if (object)
        know(agent, object);
    else if (err.kind == CR_ERR_NOT_FOUND)
        forget(agent);
    return object != NULL;
}

/* --- the Node, and a report of it --- */

static void ask_node(struct cr_node_agent *agent, const char *kubelet_process)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json)
    struct cr_json *node = cr_client_get(agent->client, &cr_res_nodes, NULL, agent->options.node, &err);
    if (!node && err.kind == CR_ERR_NOT_FOUND)
        cr_error_wrap(&err, "there is no Node of this name (--node-name)");
    cr_node_agent_note_answer(agent, "node", node != NULL, &err);
    if (!node)
        return;
    cr_strset(&agent->node_uid, cr_obj_uid(node));
    cr_strset(&agent->kubelet_version, cr_json_string_at(node, "status", "nodeInfo", "kubeletVersion"));
    cr_strset(&agent->asked_for, cr_or_empty(kubelet_process));
}

/* Goes with its Node. Owned. */
static struct cr_json *new_report(const struct cr_node_agent *agent)
{
    struct cr_json *object = cr_json_new_object();
    cr_resource_stamp(&cr_res_node_reports, object);
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    cr_json_set_string(metadata, "name", agent->options.node);
    struct cr_json *owner = cr_json_add(cr_json_array_in(metadata, "ownerReferences"), cr_json_new_object());
    cr_json_set_string(owner, "apiVersion", "v1");
    cr_json_set_string(owner, "kind", "Node");
    cr_json_set_string(owner, "name", agent->options.node);
    cr_json_set_string(owner, "uid", agent->node_uid);
    cr_json_object_in(object, "spec");
    return object;
}

static void create(struct cr_node_agent *agent)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = new_report(agent);
    struct cr_json *made = cr_client_create(agent->client, &cr_res_node_reports, NULL, object, &err);
    cr_node_agent_note_answer(agent, "report", made || is_answer(&err), &err);
    if (!made)
        return;
    cr_log(CR_LOG_INFO, "the node's report is made", {"node", agent->options.node});
    know(agent, made);
}

void cr_node_agent_learn(struct cr_node_agent *agent, const char *kubelet_process)
{
    bool synced = cr_informer_synced(agent->informer);
    if (synced)
        take_from_informer(agent);
    /* The kubelet's version may be another after its restart. */
    bool asked = agent->node_uid && cr_streq(agent->asked_for, cr_or_empty(kubelet_process));
    if (!asked && cr_node_agent_may_ask(agent))
        ask_node(agent, kubelet_process);
    if (synced && !agent->has_known && agent->node_uid && cr_node_agent_may_ask(agent) &&
        !cr_node_agent_refresh(agent) && cr_node_agent_may_ask(agent))
        create(agent);
}

/* --- its status --- */

/* A fifth earlier at times, so that nodes do not write in one beat. */
static int64_t next_renewal_ms(const struct cr_node_agent *agent)
{
    int64_t renew_ms = cr_node_report_renew_ms(&agent->report);
    return cr_clock_monotonic_ms() + cr_random_between(renew_ms * 4 / 5, renew_ms);
}

/* Owned: the status as text, without when it was looked. */
static char *essence_of(const struct cr_json *status)
{
    CR_CLEANUP(cr_json) struct cr_json *copy = cr_json_copy(status);
    cr_json_remove(copy, "seen");
    return cr_json_print(copy);
}

static bool patch(struct cr_node_agent *agent, const struct cr_json *status, const char *resource_version)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *body = cr_json_new_object();
    struct cr_json *metadata = cr_json_object_in(body, "metadata");
    cr_json_set_string(metadata, "uid", agent->known.uid);
    cr_json_set_string(metadata, "resourceVersion", resource_version);
    cr_json_set(body, "status", cr_json_copy(status));
    struct cr_json *made =
        cr_client_merge_patch(agent->client, &cr_res_node_reports, NULL, agent->options.node, "status", body, &err);
    cr_node_agent_note_answer(agent, "status", made || is_answer(&err), &err);
    if (made)
        know(agent, made);
    else if (is_answer(&err))
        (void)cr_node_agent_refresh(agent);
    return made != NULL;
}

static bool write_status(struct cr_node_agent *agent, struct cr_json *status, const char *resource_version)
{
    if (!patch(agent, status, resource_version))
        return false;
    free(agent->written);
    agent->written = essence_of(status);
    agent->renew_ms = next_renewal_ms(agent);
    return true;
}

void cr_node_agent_write(struct cr_node_agent *agent)
{
    if (!agent->has_known || !agent->has_report || !cr_node_agent_may_ask(agent))
        return;
    CR_CLEANUP(cr_json) struct cr_json *status = cr_node_report_encode_status(&agent->report);
    cr_autofree char *essence = essence_of(status);
    bool due = cr_clock_monotonic_ms() >= agent->renew_ms || !cr_streq(essence, agent->written) ||
               !cr_node_act_equal(&agent->known.act, &agent->report.act);
    if (due)
        (void)write_status(agent, status, NULL);
}

bool cr_node_agent_write_exactly(struct cr_node_agent *agent)
{
    CR_CLEANUP(cr_json) struct cr_json *status = cr_node_report_encode_status(&agent->report);
    cr_autofree char *version = cr_strdup_or_null(agent->known.resource_version);
    return write_status(agent, status, version);
}
