#include "sidecar/pages.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "sidecar/page.h"

enum { OK = 200, UNAVAILABLE = 503 };

struct cr_pages {
    const struct cr_sidecar_config *config;
    struct cr_metrics *metrics;
    struct cr_sidecar_metrics registered;
    struct cr_delivery_worker *workers[CR_SIDECAR_MATERIALS_MAX]; /* owned; one for each material, in their order */
    int64_t started_ms;
};

static struct cr_sidecar_view view_of(const struct cr_pages *pages, size_t i)
{
    struct cr_sidecar_view view = {.name = pages->config->materials[i].name};
    cr_delivery_worker_view(pages->workers[i], &view.delivery);
    return view;
}

static int serve_status(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_pages *pages = arg;
    size_t len = pages->config->materials_len;
    cr_autofree struct cr_sidecar_view *views = cr_calloc(len, sizeof *views);
    for (size_t i = 0; i < len; i++)
        views[i] = view_of(pages, i);
    *content_type = "application/json";
    cr_sidecar_page_write(views, len, pages->started_ms, body);
    return OK;
}

static int serve_metrics(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_pages *pages = arg;
    *content_type = "text/plain; version=0.0.4; charset=utf-8";
    cr_metrics_write(pages->metrics, body);
    return OK;
}

static int serve_health(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_pages *pages = arg;
    int status = OK;
    (void)content_type;
    for (size_t i = 0; i < pages->config->materials_len; i++) {
        struct cr_sidecar_view view = view_of(pages, i);
        if (pages->config->materials[i].outputs_len && !view.delivery.has_outputs) {
            status = UNAVAILABLE;
            cr_buf_printf(body, "%s: no outputs yet: %s\n", view.name, view.delivery.words);
        }
    }
    if (status == OK)
        cr_buf_puts(body, "ok\n");
    return status;
}

struct cr_pages *cr_pages_start(const struct cr_sidecar_config *config, struct cr_metrics *metrics,
                                const char *state_folder, struct cr_error *err)
{
    struct cr_pages *pages = cr_new(struct cr_pages);
    pages->config = config;
    pages->metrics = metrics;
    pages->started_ms = cr_clock_wall_ms();
    cr_sidecar_metrics_register(&pages->registered, metrics);
    for (size_t i = 0; i < config->materials_len; i++) {
        const struct cr_delivery_worker_options options = {
            .material = &config->materials[i], .metrics = &pages->registered, .state_folder = state_folder};
        pages->workers[i] = cr_delivery_worker_start(&options, err);
        if (!pages->workers[i]) {
            cr_pages_free(pages);
            return NULL;
        }
    }
    return pages;
}

/* All are asked to end before the first is waited for. */
void cr_pages_free(struct cr_pages *pages)
{
    if (!pages)
        return;
    for (size_t i = 0; i < CR_SIDECAR_MATERIALS_MAX; i++)
        if (pages->workers[i])
            cr_delivery_worker_stop(pages->workers[i]);
    for (size_t i = 0; i < CR_SIDECAR_MATERIALS_MAX; i++)
        cr_delivery_worker_free(pages->workers[i]);
    free(pages);
}

void cr_pages_serve(struct cr_pages *pages, struct cr_http_server *server)
{
    cr_http_server_handle(server, "/status", serve_status, pages);
    cr_http_server_handle(server, "/metrics", serve_metrics, pages);
    cr_http_server_make_one_at_a_time(server, "/status");
    cr_http_server_make_one_at_a_time(server, "/metrics");
}

void cr_pages_serve_health(struct cr_pages *pages, struct cr_http_server *server)
{
    cr_http_server_handle(server, "/healthz", serve_health, pages);
}
