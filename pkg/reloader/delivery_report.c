#include "reloader/delivery_report.h"

#include <stdio.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "tlsreload/event.h"

#define PRODUCT "certroll-reloader"

static const char *path_of(const struct cr_reloader_material *material)
{
    return material->certificate ? material->certificate : material->trust;
}

static void write_event(const struct cr_reloader_material *material, const struct cr_delivery *before,
                        const struct cr_delivery *now, struct cr_buf *out)
{
    bool delivered = now->state == CR_DELIVERY_DELIVERED;
    const struct cr_tlsreload_event event = {
        .reloaded = delivered,
        .at_ms = cr_clock_wall_ms(),
        .certificate = path_of(material),
        .leaf = now->delivered.leaf,
        .before = before->delivered.leaf,
        .trust_changed = before->is_delivered && !cr_streq(before->delivered.trust, now->delivered.trust),
        .problem = delivered ? "" : now->words,
    };
    cr_tlsreload_event_json(&event, PRODUCT, CERTROLL_VERSION, out);
}

static void report_delivered(const struct cr_reloader_material *material, const struct cr_delivery *now,
                             const char *event)
{
    char took[CR_TIME_TEXT];
    cr_duration_format(now->took_ms < 0 ? 0 : now->took_ms, took);
    cr_log(CR_LOG_INFO, "delivered", {"material", material->name}, {"leaf", now->delivered.leaf},
           {"trust", now->delivered.trust}, {"proven", now->leaf_proven || now->trust_proven ? "true" : "false"},
           {"took", now->took_ms < 0 ? NULL : took}, {"ocsf", event});
}

static void report_failure(const struct cr_reloader_material *material, const struct cr_delivery *now,
                           const char *event)
{
    char attempts[16];
    snprintf(attempts, sizeof attempts, "%u", now->attempts);
    cr_log(CR_LOG_WARN, now->state == CR_DELIVERY_REFUSED ? "refused" : "failing", {"material", material->name},
           {"error", now->words}, {"attempts", attempts}, {"delivered", now->delivered.leaf}, {"ocsf", event});
}

static bool is_reported(const struct cr_delivery *before, const struct cr_delivery *now)
{
    if (now->state == CR_DELIVERY_DELIVERED)
        return before->state != now->state || !before->is_delivered;
    return now->state != CR_DELIVERY_PENDING && (before->state != now->state || !cr_streq(before->words, now->words));
}

void cr_delivery_report(const struct cr_delivery_worker_options *options, const struct cr_delivery *before,
                        const struct cr_delivery *now)
{
    if (!is_reported(before, now))
        return;
    CR_CLEANUP(cr_buf) struct cr_buf event = CR_BUF_INIT(0);
    write_event(options->material, before, now, &event);
    bool reloaded = now->attempts > 0; /* else it was there already, which is no event */
    if (now->state == CR_DELIVERY_DELIVERED) {
        cr_reloader_metrics_delivered(options->metrics, now);
        report_delivered(options->material, now, reloaded ? cr_buf_text(&event) : NULL);
    } else {
        report_failure(options->material, now, cr_buf_text(&event));
    }
}
