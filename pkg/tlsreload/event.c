#include "tlsreload/event.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

enum { TEXT_MAX = 1024 };

/* What others wrote (paths, names in certificates) need not be UTF-8; JSON must. */
static void put(struct cr_buf *out, const char *key, const char *value)
{
    cr_autofree char *clean = cr_text_clip(value, TEXT_MAX);
    cr_buf_printf(out, "\"%s\":", key);
    cr_text_quote(clean, out);
}

static void put_class(struct cr_buf *out)
{
    cr_buf_puts(out, "\"category_uid\":5,\"category_name\":\"Discovery\",\"class_uid\":5019,"
                     "\"class_name\":\"Device Config State Change\",\"activity_id\":1,\"activity_name\":\"Log\","
                     "\"type_uid\":501901,\"type_name\":\"Device Config State Change: Log\"");
}

static void put_result(struct cr_buf *out, const struct cr_tlsreload_event *event)
{
    if (event->reloaded) {
        cr_buf_puts(out, ",\"severity_id\":1,\"severity\":\"Informational\",\"status_id\":1,\"status\":\"Success\","
                         "\"state_id\":2,\"state\":\"Enabled\",\"message\":\"TLS configuration reloaded\"");
        return;
    }
    cr_buf_puts(out, ",\"severity_id\":3,\"severity\":\"Medium\",\"status_id\":2,\"status\":\"Failure\","
                     "\"state_id\":99,\"state\":\"Refused\",\"message\":\"TLS configuration not reloaded, the one of "
                     "before stays in use\",");
    put(out, "status_detail", event->problem);
}

static void put_device(struct cr_buf *out)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        strcpy(host, "unknown"); /* the schema wants one name */
    cr_buf_puts(out, ",\"device\":{\"type_id\":1,\"type\":\"Server\",");
    put(out, "hostname", host);
    cr_buf_puts(out, "}");
}

static void put_metadata(struct cr_buf *out, const char *product, const char *version)
{
    cr_buf_puts(out, ",\"metadata\":{\"version\":\"1.8.0\",\"product\":{\"vendor_name\":\"certroll\",");
    put(out, "name", product);
    cr_buf_puts(out, ",");
    put(out, "version", version);
    cr_buf_puts(out, "}}");
}

static void put_material(struct cr_buf *out, const struct cr_tlsreload_event *event)
{
    cr_buf_puts(out, ",\"unmapped\":{");
    put(out, "certificate", event->certificate);
    cr_buf_puts(out, ",");
    put(out, "leaf", event->leaf);
    cr_buf_puts(out, ",");
    put(out, "leaf_before", event->before);
    cr_buf_printf(out, ",\"trust_changed\":%s}", event->trust_changed ? "true" : "false");
}

void cr_tlsreload_event_json(const struct cr_tlsreload_event *event, const char *product, const char *version,
                             struct cr_buf *out)
{
    cr_buf_puts(out, "{");
    put_class(out);
    cr_buf_printf(out, ",\"time\":%" PRId64, event->at_ms);
    put_result(out, event);
    put_device(out);
    put_metadata(out, product, version);
    put_material(out, event);
    cr_buf_puts(out, "}");
}
