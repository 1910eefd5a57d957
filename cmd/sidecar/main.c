/* certroll-sidecar: flags and wiring only. */
#include <malloc.h>
#include <stdio.h>

#include "base/log.h"
#include "base/strings.h"
#include "check.h"
#include "flags.h"
#include "metrics/metrics.h"
#include "metrics/process_metrics.h"
#include "net/http_server_tls.h"
#include "net/tls_serving.h"
#include "sidecar/config.h"
#include "sidecar/pages.h"
#include "sidecar/relay.h"
#include "sys/loop.h"
#include "sys/process.h"

enum { EXIT_NOT_STARTED = 1, EXIT_USAGE = 2 };

/* A sidecar stands in every pod: one arena for all threads, and what is free goes back at once. */
static void save_memory(void)
{
    enum { GIVE_BACK = 64 * 1024 };
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, GIVE_BACK);
    (void)mallopt(M_TRIM_THRESHOLD, GIVE_BACK);
}

static void on_terminate(void *arg)
{
    cr_loop_stop(arg);
}

static bool run_once(const struct cr_sidecar_config *config, struct cr_error *err)
{
    for (size_t i = 0; i < config->materials_len; i++)
        if (!cr_delivery_worker_once(&config->materials[i], err))
            return cr_error_wrap(err, "material %s", config->materials[i].name);
    return true;
}

/* what: "the page". */
static bool listen_on(struct cr_http_server *server, const char *address, const char *what, struct cr_error *err)
{
    char port[16];
    if (cr_streq(address, "0"))
        return true;
    if (!cr_http_server_listen(server, address, err))
        return false;
    snprintf(port, sizeof port, "%d", cr_http_server_port(server));
    cr_log(CR_LOG_INFO, "serving", {"what", what}, {"address", address}, {"port", port});
    return true;
}

/* *tls stays NULL for plain HTTP. */
static bool make_tls(const struct flags *flags, struct cr_metrics *metrics, struct cr_tls_serving **tls,
                     struct cr_error *err)
{
    if (!flags->files.certificate)
        return true;
    cr_log(CR_LOG_WARN, "the page speaks TLS, and the operator plain HTTP only: it reports changes as not verified",
           {"address", flags->address});
    *tls = cr_tls_serving_new(&flags->files, "certroll-sidecar", metrics, err);
    return *tls || cr_error_wrap(err, "TLS of the page");
}

static bool serve(const struct flags *flags, struct cr_pages *pages, struct cr_http_server *page,
                  struct cr_http_server *health, struct cr_error *err)
{
    cr_pages_serve(pages, page);
    if (!flags->health_address)
        cr_pages_serve_health(pages, page);
    else
        cr_pages_serve_health(pages, health);
    return listen_on(page, flags->address, "page", err) &&
           (!flags->health_address || listen_on(health, flags->health_address, "health", err));
}

static bool run(const struct flags *flags, const struct cr_sidecar_config *config, struct cr_error *err)
{
    cr_log(CR_LOG_INFO, "starting", {"version", CERTROLL_VERSION}, {"config", flags->config});
    /* In the order in which they need each other; they go in the opposite one. */
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_process_metrics) struct cr_process_metrics *process = cr_process_metrics_new(metrics);
    cr_metrics_set_build_info(metrics);
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    cr_loop_on_terminate(loop, on_terminate, loop);
    CR_CLEANUP(cr_tls_serving) struct cr_tls_serving *tls = NULL;
    if (!make_tls(flags, metrics, &tls, err))
        return false;
    CR_CLEANUP(cr_pages) struct cr_pages *pages = cr_pages_start(config, metrics, flags->state_folder, err);
    if (!pages)
        return false;
    CR_CLEANUP(cr_relay) struct cr_relay *relay = NULL;
    CR_CLEANUP(cr_http_server) struct cr_http_server *health = cr_http_server_new(loop);
    CR_CLEANUP(cr_http_server) struct cr_http_server *page = cr_http_server_new(loop);
    if (tls)
        cr_http_server_use_tls(page, cr_tls_serving_reload(tls));
    if (config->envoy_admin)
        relay = cr_relay_start(page, loop, config->envoy_admin, err);
    if ((config->envoy_admin && !relay) || !serve(flags, pages, page, health, err))
        return false;
    cr_loop_run(loop);
    return true;
}

/* The exit status; err is set unless it is 0. */
static int start(const struct flags *flags, struct cr_error *err)
{
    CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config;
    if (!cr_sidecar_config_load(flags->config, &config, err))
        return EXIT_USAGE;
    if (flags->check) {
        check_print(&config, stdout);
        return 0;
    }
    return (flags->once ? run_once(&config, err) : run(flags, &config, err)) ? 0 : EXIT_NOT_STARTED;
}

int main(int argc, char **argv)
{
    save_memory();
    struct cr_error err = {0};
    struct flags flags;
    if (!flags_parse(argc, argv, &flags, &err)) {
        fprintf(stderr, "certroll-sidecar: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (flags.help || flags.version) {
        fputs(flags.help ? flags_help : "certroll-sidecar " CERTROLL_VERSION "\n", stdout);
        return 0;
    }
    cr_log_set_level(flags.log_level);
    cr_process_forbid_cores();
    int status = start(&flags, &err);
    if (status)
        cr_log(CR_LOG_ERROR, "cannot run", {"error", err.text});
    return status;
}
