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

static struct cr_json_members walk(const char *text, size_t len, char opener)
{
    struct cr_json_members m = {.at = text, .end = text + len};
    skip_space(&m);
    if (m.at < m.end && *m.at == opener)
        m.at++;
    else
        m.at = m.end;
    return m;
}

struct cr_json_members cr_json_members_of(const char *text, size_t len)
{
    return walk(text, len, '{');
}

struct cr_json_members cr_json_elements_of(const char *text, size_t len)
{
    return walk(text, len, '[');
}

/* Behind the comma in front of what comes next. */
static void skip_comma(struct cr_json_members *m)
{
    skip_space(m);
    if (m->at < m->end && *m->at == ',') {
        m->at++;
        skip_space(m);
    }
}

bool cr_json_elements_next(struct cr_json_members *elements, struct cr_json_slice *value)
{
    skip_comma(elements);
    if (elements->at >= elements->end || *elements->at == ']')
        return false;
    value->text = elements->at;
    skip_value(elements);
    value->len = (size_t)(elements->at - value->text);
    return true;
}

bool cr_json_members_next(struct cr_json_members *members, struct cr_json_slice *key, struct cr_json_slice *value)
{
    skip_comma(members);
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

/* --- members that are no part of the tree --- */

static bool is(const struct cr_json_slice *slice, const char *text)
{
    return slice->len == strlen(text) && memcmp(slice->text, text, slice->len) == 0;
}

/* The first of that key, as the parser has it. False also when a key in front of it is not plain: it may be the same.
 */
bool cr_json_members_find(const struct cr_json_slice *object, const char *name, struct cr_json_slice *value)
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

/* An empty slice behind the text: there is none. */
static struct cr_json_slice find(const char *data, size_t len, const char *const *path)
{
    const struct cr_json_slice none = {data + len, 0};
    struct cr_json_slice value = {data, len};
    if (!path)
        return none;
    for (; *path; path++) {
        struct cr_json_slice object = value;
        if (!cr_json_members_find(&object, *path, &value))
            return none;
    }
    return value;
}

/* Puts the text up to the value, and a null in its place; *from is behind it then. */
static bool put_null(struct cr_buf *rest, const char **from, const struct cr_json_slice *value)
{
    size_t len = (size_t)(value->text - *from);
    const char *begin = *from;
    *from = value->text + value->len;
    return cr_buf_append(rest, begin, len) && (!value->len || cr_buf_append(rest, "null", 4));
}

/* The text with nulls where the two values were. */
static struct cr_json *parse_rest(const char *data, size_t len, const struct cr_json_slice *one,
                                  const struct cr_json_slice *other, const struct cr_json_scan *scan,
                                  struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf rest = {.secret = true};
    bool in_order = one->text <= other->text;
    const char *from = data;
    if (!put_null(&rest, &from, in_order ? one : other) || !put_null(&rest, &from, in_order ? other : one) ||
        !cr_buf_append(&rest, from, (size_t)(data + len - from))) {
        cr_error_set(err, CR_ERR_INVALID, "not JSON: too long");
        return NULL;
    }
    return cr_json_parse_scanned(rest.data, rest.len, scan, err);
}

/* The object that has the last key of the path, which *path is then. */
static struct cr_json *holder(struct cr_json *j, const char *const **path)
{
    for (; (*path)[1]; (*path)++)
        j = cr_json_edit(j, **path);
    return j;
}

static void put_text(struct cr_json *j, const char *const *path, const struct cr_json_slice *value)
{
    struct cr_json *object = holder(j, &path);
    cr_json_set(object, *path, cr_json_new_text(value->text, value->len));
}

static void leave_out(struct cr_json *j, const char *const *path)
{
    struct cr_json *object = holder(j, &path);
    cr_json_remove(object, *path);
}

/* The values of a part that is no empty slice and stays out of the tree, but for one null. */
static size_t values_beside(const struct cr_json_slice *part)
{
    struct cr_json_scan scan;
    return part->len && cr_json_scan(part->text, part->len, &scan) ? scan.values - 1 : 0;
}

/* Before there is memory for any value. */
static bool spend(struct cr_json_budget *budget, size_t values, struct cr_error *err)
{
    budget->exceeded = values > budget->values;
    if (budget->exceeded)
        return cr_error_set(err, CR_ERR_INVALID, "JSON of %zu values, more than the %zu that are read", values,
                            budget->values);
    budget->values -= values;
    return true;
}

struct cr_json *cr_json_parse_parts(const char *data, size_t len, const struct cr_json_parts *parts,
                                    struct cr_error *err)
{
    struct cr_json_scan scan;
    struct cr_json_budget usual = {.values = CR_JSON_VALUES_MAX};
    struct cr_json_budget *budget = parts->budget ? parts->budget : &usual;
    budget->exceeded = false;
    if (!cr_json_scan(data, len, &scan)) {
        cr_error_set(err, CR_ERR_INVALID, "not JSON: %s at byte %zu of %zu", scan.problem, scan.offset, len);
        return NULL;
    }
    const struct cr_json_slice apart = find(data, len, parts->apart);
    const struct cr_json_slice without = find(data, len, parts->without);
    if (!spend(budget, scan.values - values_beside(&apart) - values_beside(&without), err))
        return NULL;
    if (!apart.len && !without.len)
        return cr_json_parse_scanned(data, len, &scan, err);
    struct cr_json *j = parse_rest(data, len, &apart, &without, &scan, err);
    if (j && without.len)
        leave_out(j, parts->without);
    if (j && apart.len)
        put_text(j, parts->apart, &apart);
    return j;
}

struct cr_json *cr_json_parse_apart(const char *data, size_t len, const char *const *path, struct cr_error *err)
{
    return cr_json_parse_parts(data, len, &(struct cr_json_parts){.apart = path}, err);
}
