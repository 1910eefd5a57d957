#include "net/tls_serving.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"

struct cr_tls_serving {
    struct cr_tlsreload *tls;
    char *product;
    struct cr_metric *reloads;
    struct cr_metric *last_successful;
    struct cr_metric *not_after;
    struct cr_tlsreload_state counted; /* what reloads has of it; in the thread that writes the page */
};

bool cr_tls_files_check(const struct cr_tls_files *files, const char *flags, struct cr_error *err)
{
    if (files->certificate && !files->private_key)
        return cr_error_set(err, CR_ERR_INVALID, "%stls-cert-file needs %stls-private-key-file, its key", flags, flags);
    if (files->private_key && !files->certificate)
        return cr_error_set(err, CR_ERR_INVALID, "%stls-private-key-file needs %stls-cert-file, its certificate", flags,
                            flags);
    if (files->client_ca && !files->certificate)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%sclient-ca-file needs %stls-cert-file: clients show certificates in TLS only", flags,
                            flags);
    return true;
}

/* In the watcher's thread. */
static void log_event(void *arg, const struct cr_tlsreload_event *event)
{
    const struct cr_tls_serving *serving = arg;
    CR_CLEANUP(cr_buf) struct cr_buf ocsf = CR_BUF_INIT(0);
    cr_tlsreload_event_json(event, serving->product, CERTROLL_VERSION, &ocsf);
    if (event->reloaded)
        cr_log(CR_LOG_INFO, "TLS material reloaded", {"certificate", event->certificate}, {"leaf", event->leaf},
               {"before", event->before}, {"trust", event->trust_changed ? "changed" : NULL},
               {"ocsf", cr_buf_text(&ocsf), .json = true});
    else
        cr_log(CR_LOG_WARN, "TLS material refused, what was served before stays", {"certificate", event->certificate},
               {"leaf", event->leaf}, {"error", event->problem}, {"ocsf", cr_buf_text(&ocsf), .json = true});
}

static void collect(void *arg)
{
    struct cr_tls_serving *serving = arg;
    struct cr_tlsreload_state now;
    cr_tlsreload_state(serving->tls, &now);
    cr_metric_add(serving->reloads, CR_LABELS("success"), (double)(now.reloads - serving->counted.reloads));
    cr_metric_add(serving->reloads, CR_LABELS("refused"), (double)(now.failures - serving->counted.failures));
    cr_metric_set(serving->last_successful, NULL, !now.failing);
    cr_metric_set(serving->not_after, NULL, (double)now.not_after_ms / 1000);
    serving->counted = now;
}

static void count_in(struct cr_tls_serving *serving, struct cr_metrics *metrics)
{
    serving->reloads =
        cr_metrics_counter(metrics, "certroll_tls_reloads_total",
                           "Changes of the files of this page's own TLS, by what became of them.", CR_LABELS("result"));
    serving->last_successful = cr_metrics_gauge(metrics, "certroll_tls_last_reload_successful",
                                                "Whether what the files hold is what is served.", NULL);
    serving->not_after =
        cr_metrics_gauge(metrics, "certroll_tls_not_after_timestamp_seconds",
                         "When the certificate that is served ends, in seconds since the epoch.", NULL);
    cr_metrics_collect(metrics, collect, serving);
}

struct cr_tls_serving *cr_tls_serving_new(const struct cr_tls_files *files, const char *product,
                                          struct cr_metrics *metrics, struct cr_error *err)
{
    CR_CLEANUP(cr_tls_serving) struct cr_tls_serving *serving = cr_new(struct cr_tls_serving);
    serving->product = cr_strdup(product);
    const struct cr_tlsreload_options options = {
        .certificate = files->certificate,
        .private_key = files->private_key,
        .client_ca = files->client_ca,
        .clients = files->client_ca ? CR_TLSRELOAD_CLIENTS_REQUIRE : CR_TLSRELOAD_CLIENTS_NONE,
        .on_event = log_event,
        .arg = serving,
    };
    serving->tls = cr_tlsreload_new(&options, err);
    if (!serving->tls || !cr_tlsreload_start(serving->tls, err))
        return NULL;
    count_in(serving, metrics);
    return cr_steal(&serving);
}

void cr_tls_serving_free(struct cr_tls_serving *serving)
{
    if (!serving)
        return;
    cr_tlsreload_free(serving->tls); /* ends the thread that logs events */
    free(serving->product);
    free(serving);
}

struct cr_tlsreload *cr_tls_serving_reload(struct cr_tls_serving *serving)
{
    return serving->tls;
}
