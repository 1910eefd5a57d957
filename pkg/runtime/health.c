#include "runtime/health.h"

#include "base/strings.h"

static const char text_plain[] = "text/plain; charset=utf-8";

static int ok_or_why_not(struct cr_buf *body)
{
    if (body->len)
        return 503;
    cr_buf_puts(body, "ok\n");
    return 200;
}

/* That it answers proves that the loop runs; election has a thread of its own. */
static int healthz(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_health *health = arg;
    struct cr_error err = {0};
    *content_type = text_plain;
    if (health->election && !cr_leader_election_alive(health->election, &err))
        cr_buf_printf(body, "%s\n", err.text);
    return ok_or_why_not(body);
}

static bool may_act(const struct cr_health *health, struct cr_error *err)
{
    return (!health->start_check || cr_start_check_passed(health->start_check, err)) &&
           (!health->election || cr_leader_election_ready(health->election, err));
}

/* A cache that comes later, with a policy, has to be filled before that policy is acted on, and nothing else waits for
 * it: or a user who writes policies in one namespace could keep the operator from being ready. */
static bool is_waited_for(const struct cr_health *health, struct cr_informer *informer, struct cr_error *err)
{
    return !cr_informer_ready(informer, err) && !(health->filled && cr_informer_begins(informer));
}

/* A standby is ready, too: when it could take over. */
static int readyz(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_health *health = arg;
    *content_type = text_plain;
    if (health->stopping)
        cr_buf_puts(body, "shutting down\n");
    for (size_t i = 0; i < health->informers_len; i++) {
        struct cr_error err = {0};
        if (is_waited_for(health, health->informers[i], &err))
            cr_buf_printf(body, "%s\n", err.text);
    }
    struct cr_error err = {0};
    if (!may_act(health, &err))
        cr_buf_printf(body, "%s\n", err.text);
    return ok_or_why_not(body);
}

/* Informers of one resource (a namespace each) are one series. The first of them stands for all. */
static void set_informer(const struct cr_health *health, size_t index)
{
    const char *plural = cr_informer_resource(health->informers[index])->plural;
    double objects = 0;
    bool healthy = true;
    for (size_t i = 0; i < health->informers_len; i++) {
        if (!cr_streq(cr_informer_resource(health->informers[i])->plural, plural))
            continue;
        if (i < index)
            return;
        struct cr_error err = {0};
        objects += (double)cr_store_len(cr_informer_store(health->informers[i]));
        healthy = cr_informer_ready(health->informers[i], &err) && healthy;
    }
    cr_metric_set(health->informer_objects, CR_LABELS(plural), objects);
    cr_metric_set(health->informer_healthy, CR_LABELS(plural), healthy);
}

void cr_health_forget(const struct cr_health *health, const struct cr_resource *resource)
{
    cr_metric_remove(health->informer_objects, CR_LABELS(resource->plural));
    cr_metric_remove(health->informer_healthy, CR_LABELS(resource->plural));
}

static int metrics_page(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_health *health = arg;
    *content_type = "text/plain; version=0.0.4; charset=utf-8";
    for (size_t i = 0; i < health->informers_len; i++)
        set_informer(health, i);
    if (health->metrics)
        cr_metrics_write(health->metrics, body);
    return 200;
}

void cr_health_serve_probes(struct cr_http_server *server, struct cr_health *health)
{
    cr_http_server_handle(server, "/healthz", healthz, health);
    cr_http_server_handle(server, "/readyz", readyz, health);
}

void cr_health_serve_metrics(struct cr_http_server *server, struct cr_health *health)
{
    if (health->guard)
        cr_http_server_handle_guarded(server, "/metrics", metrics_page, health, cr_access_guard_check, health->guard);
    else
        cr_http_server_handle(server, "/metrics", metrics_page, health);
    cr_http_server_make_one_at_a_time(server, "/metrics");
}

void cr_health_serve_all(struct cr_http_server *server, struct cr_health *health)
{
    cr_health_serve_probes(server, health);
    cr_health_serve_metrics(server, health);
}
