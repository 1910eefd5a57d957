#include "codec/json_text.h"

#include <string.h>

#include "base/buffer.h"
#include "codec/json_scan.h"

/* --- members --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct cr_json_members *m)
{
    while (m->at < m->end && is_space(*m->at))
        m->at++;
}

/* From its quote to behind the other. */
static void skip_string(struct cr_json_members *m)
{
    for (m->at++; m->at < m->end && *m->at != '"'; m->at++)
        if (*m->at == '\\')
            m->at++;
    m->at++;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == '}' || c == ']' || is_space(c);
}

/* Brackets outside of strings come in pairs: the text was checked. */
static void skip_value(struct cr_json_members *m)
{
    size_t depth = 0;
    do {
        char c = *m->at;
        if (c == '"') {
            skip_string(m);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        m->at++;
    } while (m->at < m->end && (depth || !ends_scalar(*m->at)));
}

struct cr_json_members cr_json_members_of(const char *text, size_t len)
{
    struct cr_json_members m = {.at = text, .end = text + len};
    skip_space(&m);
    if (m.at < m.end && *m.at == '{')
        m.at++;
    else
        m.at = m.end;
    return m;
}

bool cr_json_members_next(struct cr_json_members *members, struct cr_json_slice *key, struct cr_json_slice *value)
{
    skip_space(members);
    if (members->at < members->end && *members->at == ',') {
        members->at++;
        skip_space(members);
    }
    if (members->at >= members->end || *members->at != '"')
        return false;
    key->text = members->at + 1;
    skip_string(members);
    key->len = (size_t)(members->at - key->text) - 1;
    skip_space(members);
    members->at++; /* the colon */
    skip_space(members);
    value->text = members->at;
    skip_value(members);
    value->len = (size_t)(members->at - value->text);
    return true;
}

bool cr_json_slice_is_plain(const struct cr_json_slice *slice)
{
    return !memchr(slice->text, '\\', slice->len);
}

/* --- a member apart --- */

static bool is(const struct cr_json_slice *slice, const char *text)
{
    return slice->len == strlen(text) && memcmp(slice->text, text, slice->len) == 0;
}

/* The first of that key, as the parser has it. False also when a key in front of it is not plain: it may be the same.
 */
static bool find_member(const struct cr_json_slice *object, const char *name, struct cr_json_slice *value)
{
    struct cr_json_members members = cr_json_members_of(object->text, object->len);
    struct cr_json_slice key;
    while (cr_json_members_next(&members, &key, value)) {
        if (!cr_json_slice_is_plain(&key))
            return false;
        if (is(&key, name))
            return true;
    }
    return false;
}

static bool find(const char *data, size_t len, const char *const *path, struct cr_json_slice *value)
{
    *value = (struct cr_json_slice){data, len};
    for (; *path; path++) {
        struct cr_json_slice object = *value;
        if (!find_member(&object, *path, value))
            return false;
    }
    return true;
}

/* The text with a null where the value was. */
static struct cr_json *parse_rest(const char *data, size_t len, const struct cr_json_slice *value, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf rest = {.secret = true};
    const char *behind = value->text + value->len;
    if (!cr_buf_append(&rest, data, (size_t)(value->text - data)) || !cr_buf_append(&rest, "null", 4) ||
        !cr_buf_append(&rest, behind, (size_t)(data + len - behind))) {
        cr_error_set(err, CR_ERR_INVALID, "not JSON: too long");
        return NULL;
    }
    return cr_json_parse(rest.data, rest.len, err);
}

static void put_text(struct cr_json *j, const char *const *path, const struct cr_json_slice *value)
{
    for (; path[1]; path++)
        j = cr_json_edit(j, *path);
    cr_json_set(j, *path, cr_json_new_text(value->text, value->len));
}

struct cr_json *cr_json_parse_apart(const char *data, size_t len, const char *const *path, struct cr_error *err)
{
    struct cr_json_scan scan;
    struct cr_json_slice value;
    if (!cr_json_scan(data, len, &scan) || !find(data, len, path, &value))
        return cr_json_parse(data, len, err);
    struct cr_json *j = parse_rest(data, len, &value, err);
    if (j)
        put_text(j, path, &value);
    return j;
}
