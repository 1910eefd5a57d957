#include "metrics_page.h"

#include "base/log.h"
#include "base/strings.h"
#include "net/tls_made.h"

static bool is_served(const struct flags *flags)
{
    return *flags->metrics_address && !cr_streq(flags->metrics_address, "0");
}

static bool make_tls(struct metrics_page *page, const struct flags *flags, struct cr_metrics *metrics,
                     struct cr_error *err)
{
    if (flags->metrics_files.certificate) {
        page->files = cr_tls_serving_new(&flags->metrics_files, "certroll-operator", metrics, err);
        return page->files != NULL;
    }
    cr_log(CR_LOG_INFO, "the metrics have a certificate that was made in memory, which no scraper can verify",
           {"flag", "--metrics-tls-cert-file"});
    page->made = cr_tls_made_new("certroll-operator", err);
    return page->made != NULL;
}

bool metrics_page_init(struct metrics_page *page, const struct flags *flags, struct cr_loop *loop,
                       struct cr_client *client, struct cr_metrics *metrics, struct cr_error *err)
{
    *page = (struct metrics_page){0};
    if (flags->metrics_open || !is_served(flags))
        return true;
    if (flags->metrics_auth != METRICS_AUTH_NONE)
        page->guard =
            cr_access_guard_new(&(struct cr_access_guard_options){.loop = loop, .client = client, .path = "/metrics"});
    return make_tls(page, flags, metrics, err) || cr_error_wrap(err, "TLS of the metrics");
}

void metrics_page_dispose(struct metrics_page *page)
{
    cr_tlsreload_free(page->made);
    cr_tls_serving_free(page->files);
    cr_access_guard_free(page->guard);
}

struct cr_tlsreload *metrics_page_tls(const struct metrics_page *page)
{
    return page->files ? cr_tls_serving_reload(page->files) : page->made;
}
