#include "sidecar/page.h"

#include "base/clock.h"
#include "codec/json.h"

/* Left out: it has not happened. */
static void set_time(struct cr_json *object, const char *key, int64_t wall_ms)
{
    char text[CR_TIME_TEXT];
    if (!wall_ms)
        return;
    cr_time_format(wall_ms, text);
    cr_json_set_string(object, key, text);
}

/* Left out: there is no such part. */
static void set_digest(struct cr_json *object, const char *key, const char *digest)
{
    if (digest[0])
        cr_json_set_string(object, key, digest);
}

static struct cr_json *add_digests(struct cr_json *entry, const char *key, const struct cr_delivery_digests *digests,
                                   int64_t at_ms)
{
    struct cr_json *object = cr_json_object_in(entry, key);
    set_digest(object, "leaf", digests->leaf);
    set_digest(object, "trust", digests->trust);
    set_time(object, "at", at_ms);
    return object;
}

/* Refused is a final state for readers of the page; but a program that was notified of something in between may have
 * that. */
static bool is_unknown(const struct cr_delivery *d)
{
    return d->state == CR_DELIVERY_REFUSED && d->unsure;
}

static void add_delivered(struct cr_json *entry, const struct cr_delivery *d)
{
    static const struct cr_delivery_digests none;
    bool known = !is_unknown(d);
    struct cr_json *delivered = add_digests(entry, "delivered", known ? &d->delivered : &none, d->delivered_ms);
    cr_json_set_bool(delivered, "leafProven", known && d->leaf_proven);
    cr_json_set_bool(delivered, "trustProven", known && d->trust_proven);
}

static void add_entry(struct cr_json *materials, const struct cr_sidecar_view *view)
{
    const struct cr_delivery *d = &view->delivery;
    struct cr_json *entry = cr_json_add(materials, cr_json_new_object());
    cr_json_set_string(entry, "name", view->name);
    cr_json_set_string(entry, "state", cr_delivery_state_name(d->state));
    add_digests(entry, "found", &d->found, d->found_ms);
    add_delivered(entry, d);
    struct cr_json *served = cr_json_object_in(entry, "served");
    set_digest(served, "leaf", d->served);
    set_time(served, "at", d->served_ms);
    cr_json_set_int(entry, "attempts", d->attempts);
    cr_json_set_string(entry, "message", d->words);
}

void cr_sidecar_page_write(const struct cr_sidecar_view *views, size_t len, int64_t started_ms, struct cr_buf *out)
{
    CR_CLEANUP(cr_json) struct cr_json *page = cr_json_new_object();
    cr_json_set_string(page, "apiVersion", CR_SIDECAR_PAGE_VERSION);
    set_time(page, "startedAt", started_ms);
    struct cr_json *materials = cr_json_array_in(page, "materials");
    for (size_t i = 0; i < len; i++)
        add_entry(materials, &views[i]);
    cr_autofree char *text = cr_json_print(page);
    cr_buf_puts(out, text);
    cr_buf_puts(out, "\n");
}
