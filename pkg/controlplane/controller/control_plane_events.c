#include "controlplane/controller/control_plane_events.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/strings.h"

void cr_control_plane_events_dispose(struct cr_control_plane_events *events)
{
    for (size_t i = 0; i < events->len; i++)
        free(events->items[i].message);
    *events = (struct cr_control_plane_events){0};
}

/* Takes message. */
static void say(struct cr_control_plane_events *out, bool warning, const char *reason, char *message)
{
    if (out->len == CR_CONTROL_PLANE_EVENTS_MAX) {
        free(message);
        return;
    }
    out->items[out->len++] = (struct cr_control_plane_event){warning, reason, message};
}

const struct cr_condition *cr_control_plane_condition(const struct cr_control_plane_status *status, const char *type)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (status->conditions[i].reason && cr_streq(cr_control_plane_condition_types[i], type))
            return &status->conditions[i];
    return NULL;
}

/* --- restarts --- */

static const char *message_of(const struct cr_control_plane_status *status, const char *type)
{
    const struct cr_condition *condition = cr_control_plane_condition(status, type);
    return condition && condition->status ? cr_or_empty(condition->message) : "";
}

static void say_restarts(const struct cr_control_plane_status *before, const struct cr_control_plane_status *after,
                         struct cr_control_plane_events *out)
{
    if (cr_streq(before->restarting_token, after->restarting_token))
        return;
    if (before->restarting_token && before->restarting_revoked) {
        say(out, false, "TakenBack",
            cr_asprintf("the restart of %s on %s was taken back before it began",
                        cr_or_empty(before->restarting_component), cr_or_empty(before->restarting_node)));
    } else if (before->restarting_token) {
        bool failed = cr_streq(after->failed_token, before->restarting_token);
        const char *why = failed ? message_of(after, "Degraded") : "";
        say(out, failed, failed ? "RestartFailed" : "Restarted",
            cr_asprintf("%s on %s %s%s%s", cr_or_empty(before->restarting_component),
                        cr_or_empty(before->restarting_node), failed ? "did not come back" : "has what its files have",
                        *why ? ": " : "", why));
    }
    if (after->restarting_token)
        say(out, false, "Restarting",
            cr_asprintf("%s on %s is restarted", cr_or_empty(after->restarting_component),
                        cr_or_empty(after->restarting_node)));
}

/* --- conditions --- */

static bool is_true(const struct cr_condition *condition)
{
    return condition && condition->status;
}

/* bad: True is a problem, and another reason for it is news. */
static void say_condition(const struct cr_control_plane_status *before, const struct cr_control_plane_status *after,
                          const char *type, bool bad, struct cr_control_plane_events *out)
{
    const struct cr_condition *was = cr_control_plane_condition(before, type);
    const struct cr_condition *is = cr_control_plane_condition(after, type);
    if (!is_true(is) || (is_true(was) && (!bad || cr_streq(was->reason, is->reason))))
        return;
    say(out, bad, type, cr_asprintf("%s: %s", is->reason, cr_or_empty(is->message)));
}

static void say_not_ready(const struct cr_control_plane_status *before, const struct cr_control_plane_status *after,
                          struct cr_control_plane_events *out)
{
    const struct cr_condition *was = cr_control_plane_condition(before, "Ready");
    const struct cr_condition *is = cr_control_plane_condition(after, "Ready");
    if (!is || is->status || (was && !was->status && cr_streq(was->reason, is->reason)))
        return;
    say(out, true, "NotReady", cr_asprintf("%s: %s", is->reason, cr_or_empty(is->message)));
}

/* --- what is safe --- */

/* The first sight of them is no change. */
static void say_list(const char *pki, const char *words, const char *before, const char *after, const char *reason,
                     struct cr_control_plane_events *out)
{
    if (before && after && *after && !cr_streq(before, after))
        say(out, false, reason, cr_asprintf("%s: %s %s", pki, words, after));
}

static void say_authority(const char *pki, const struct cr_control_plane_authority *before,
                          const struct cr_control_plane_authority *after, struct cr_control_plane_events *out)
{
    say_list(pki, "everybody has loaded", before->trusted, after->trusted, "Trusted", out);
    say_list(pki, "no leaf in use needs", before->removable, after->removable, "Removable", out);
}

static void say_keys(const struct cr_control_plane_keys *before, const struct cr_control_plane_keys *after,
                     struct cr_control_plane_events *out)
{
    static const char pki[] = "service accounts";
    say_list(pki, "every API server verifies by", before->verifying, after->verifying, "Trusted", out);
    say_list(pki, "tokens are signed with", before->signing, after->signing, "Signing", out);
    say_list(pki, "no token in use is of", before->removable, after->removable, "Removable", out);
}

void cr_control_plane_events_of(const struct cr_control_plane_status *before,
                                const struct cr_control_plane_status *after, struct cr_control_plane_events *out)
{
    *out = (struct cr_control_plane_events){0};
    say_restarts(before, after, out);
    say_not_ready(before, after, out);
    say_condition(before, after, "Conflict", true, out);
    say_condition(before, after, "Blocked", true, out);
    say_condition(before, after, "Degraded", true, out);
    say_authority("cluster", &before->cluster, &after->cluster, out);
    say_authority("etcd", &before->etcd, &after->etcd, out);
    say_authority("front proxy", &before->front_proxy, &after->front_proxy, out);
    say_keys(&before->service_accounts, &after->service_accounts, out);
    say_condition(before, after, "Converged", false, out);
}
