#include "api/node.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

/* NULL when absent or null. */
static const struct cr_json *member(const struct cr_node *node, const char *key)
{
    const struct cr_json *value = cr_json_get(node->json, key);
    return cr_json_is_null(value) ? NULL : value;
}

static bool refuse(const struct cr_node *node, const char *key, struct cr_error *err, const char *what)
{
    return cr_error_set(err, CR_ERR_INVALID, "%s%s%s %s", node->path, *node->path ? "." : "", key, what);
}

/* A path that is too long is cut: it is for people. */
static void set_path(struct cr_node *node, const char *fmt, ...) CR_PRINTF(2, 3);
static void set_path(struct cr_node *node, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(node->path, sizeof node->path, fmt, args);
    va_end(args);
}

static void child_path(const struct cr_node *node, const char *key, struct cr_node *out)
{
    set_path(out, "%s%s%s", node->path, *node->path ? "." : "", key);
}

bool cr_node_object(const struct cr_node *node, const char *key, struct cr_node *out, struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (value && !cr_json_is_object(value))
        return refuse(node, key, err, "must be an object");
    child_path(node, key, out);
    out->json = value;
    return true;
}

bool cr_node_array(const struct cr_node *node, const char *key, size_t max, struct cr_node *out, struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (value && !cr_json_is_array(value))
        return refuse(node, key, err, "must be a list");
    child_path(node, key, out);
    if (cr_json_len(value) > max)
        return cr_error_set(err, CR_ERR_INVALID, "%s has %zu elements; at most %zu are allowed", out->path,
                            cr_json_len(value), max);
    out->json = value;
    return true;
}

bool cr_node_item(const struct cr_node *array, const struct cr_json *item, size_t index, struct cr_node *out,
                  struct cr_error *err)
{
    set_path(out, "%s[%zu]", array->path, index);
    if (!cr_json_is_object(item))
        return cr_error_set(err, CR_ERR_INVALID, "%s must be an object", out->path);
    out->json = item;
    return true;
}

bool cr_node_has(const struct cr_node *node, const char *key)
{
    return member(node, key) != NULL;
}

bool cr_node_string(const struct cr_node *node, const char *key, const char *fallback, char **slot,
                    struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (value && !cr_json_is_string(value))
        return refuse(node, key, err, "must be a string");
    if (value && !*cr_or_empty(cr_json_string(value)))
        return refuse(node, key, err, "must not be empty");
    cr_strset(slot, value ? cr_json_string(value) : fallback);
    return true;
}

bool cr_node_must_have(const struct cr_node *node, const char *key, struct cr_error *err)
{
    return cr_node_has(node, key) || refuse(node, key, err, "is required");
}

bool cr_node_required(const struct cr_node *node, const char *key, char **slot, struct cr_error *err)
{
    return cr_node_must_have(node, key, err) && cr_node_string(node, key, NULL, slot, err);
}

bool cr_node_list(const struct cr_node *node, const char *key, size_t max, struct cr_strvec *out, struct cr_error *err)
{
    struct cr_node array = {0};
    if (!cr_node_array(node, key, max, &array, err))
        return false;
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        const char *text = cr_json_string(item);
        if (!text || !*text)
            return cr_error_set(err, CR_ERR_INVALID, "%s must be a list of strings, none of them empty", array.path);
        cr_strvec_add(out, text);
    }
    return true;
}

bool cr_node_strings(const struct cr_node *node, const char *key, size_t max, struct cr_strvec *out,
                     struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec all = {0};
    bool ok = cr_node_list(node, key, max, &all, err);
    for (size_t i = 0; i < all.len; i++)
        cr_strvec_add_unique(out, all.items[i]);
    return ok;
}

bool cr_node_bool(const struct cr_node *node, const char *key, bool fallback, bool *out, struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (value && !cr_json_is_bool(value))
        return refuse(node, key, err, "must be true or false");
    *out = cr_json_bool(value, fallback);
    return true;
}

bool cr_node_int(const struct cr_node *node, const char *key, struct cr_node_range range, int *out,
                 struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    int64_t number = value ? cr_json_int(value, INT64_MIN) : range.fallback;
    if (number < range.least || number > range.most) {
        char what[96];
        snprintf(what, sizeof what, "%s %lld to %lld",
                 value ? "must be an integer from" : "is required: an integer from", (long long)range.least,
                 (long long)range.most);
        return refuse(node, key, err, what);
    }
    *out = (int)number;
    return true;
}

static bool refuse_duration(const struct cr_node *node, const char *key, struct cr_node_range range,
                            struct cr_error *err)
{
    char least[CR_TIME_TEXT];
    char most[CR_TIME_TEXT];
    char what[CR_TIME_TEXT * 2 + 64];
    cr_duration_format(range.least, least);
    cr_duration_format(range.most, most);
    snprintf(what, sizeof what, "must be a duration from %s to %s, written such as 10s, 5m or 1h30m", least, most);
    return refuse(node, key, err, what);
}

bool cr_node_duration(const struct cr_node *node, const char *key, struct cr_node_range range, int64_t *out_ms,
                      struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (!value) {
        *out_ms = range.fallback;
        return true;
    }
    int64_t ms = 0;
    const char *text = cr_json_string(value);
    if (!text || !cr_duration_parse(text, &ms, NULL) || ms < range.least || ms > range.most)
        return refuse_duration(node, key, range, err);
    *out_ms = ms;
    return true;
}

static bool refuse_word(const struct cr_node *node, const char *key, const char *const *words, size_t count,
                        struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf what = CR_BUF_INIT(0);
    cr_buf_puts(&what, "must be one of ");
    for (size_t i = 0; i < count; i++)
        cr_buf_printf(&what, "%s%s", i ? ", " : "", words[i]);
    return refuse(node, key, err, cr_buf_text(&what));
}

bool cr_node_enum(const struct cr_node *node, const char *key, const char *const *words, size_t count,
                  unsigned fallback, unsigned *out, struct cr_error *err)
{
    const struct cr_json *value = member(node, key);
    if (!value) {
        *out = fallback;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (cr_streq(words[i], cr_json_string(value))) {
            *out = (unsigned)i;
            return true;
        }
    }
    return refuse_word(node, key, words, count, err);
}
