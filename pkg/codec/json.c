#include "codec/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cJSON.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

/* struct cr_json is cJSON under another name: these casts are the only place that knows. */
static cJSON *node(struct cr_json *j)
{
    return (cJSON *)(void *)j;
}

static const cJSON *const_node(const struct cr_json *j)
{
    return (const cJSON *)(const void *)j;
}

static struct cr_json *wrap(cJSON *n)
{
    return (struct cr_json *)(void *)n;
}

static const struct cr_json *const_wrap(const cJSON *n)
{
    return (const struct cr_json *)(const void *)n;
}

/* Before main, so that no thread can see cJSON's own allocator: out of memory ends the program (alloc.h). */
__attribute__((constructor)) static void install_allocator(void)
{
    cJSON_Hooks hooks = {.malloc_fn = cr_malloc, .free_fn = free};
    cJSON_InitHooks(&hooks);
}

/* --- parsing --- */

/* C strings end at a NUL, so "a\u0000b" would read as "a", a different name. Kubernetes stores such strings and any
 * user may write one into an annotation, so one must not make a whole list unreadable either: the escape becomes
 * U+FFFD, which is as long. Runs only over texts that were scanned before. */
static void replace_nul_escapes(char *text, size_t len)
{
    for (size_t i = 0; i + 6 <= len; i++) {
        if (text[i] != '\\')
            continue;
        if (memcmp(text + i, "\\u0000", 6) == 0)
            memcpy(text + i, "\\ufffd", 6);
        i++; /* the escaped character: "\\u0000" in the text is a backslash and five characters */
    }
}

static struct cr_json *parse_plain(const char *data, size_t len, struct cr_error *err)
{
    const char *end = NULL;
    struct cr_json *j = wrap(cJSON_ParseWithLengthOpts(data, len, &end, false));
    if (!j)
        cr_error_set(err, CR_ERR_INVALID, "not JSON: the parser gave up");
    return j;
}

struct cr_json *cr_json_parse_scanned(const char *data, size_t len, const struct cr_json_scan *scan,
                                      struct cr_error *err)
{
    if (!scan->nul_escapes)
        return parse_plain(data, len, err);
    CR_CLEANUP(cr_buf) struct cr_buf copy = {.secret = true};
    if (!cr_buf_append(&copy, data, len)) {
        cr_error_set(err, CR_ERR_INVALID, "not JSON: too long");
        return NULL;
    }
    replace_nul_escapes(copy.data, copy.len);
    return parse_plain(copy.data, copy.len, err);
}

struct cr_json *cr_json_parse(const char *data, size_t len, struct cr_error *err)
{
    return cr_json_parse_parts(data, len, &(struct cr_json_parts){0}, err);
}

struct cr_json *cr_json_parse_within(const char *data, size_t len, struct cr_json_budget *budget, struct cr_error *err)
{
    return cr_json_parse_parts(data, len, &(struct cr_json_parts){.budget = budget}, err);
}

struct cr_json *cr_json_parse_printed(const char *text, size_t len)
{
    return parse_plain(text, len, NULL);
}

void cr_json_free(struct cr_json *j)
{
    cJSON_Delete(node(j));
}

static void wipe(cJSON *n)
{
    for (; n; n = n->next) {
        if (n->valuestring && !(n->type & cJSON_IsReference))
            explicit_bzero(n->valuestring, strlen(n->valuestring));
        wipe(n->child);
    }
}

void cr_json_free_secret(struct cr_json *j)
{
    if (!j)
        return;
    cJSON *n = node(j);
    if (n->valuestring && !(n->type & cJSON_IsReference))
        explicit_bzero(n->valuestring, strlen(n->valuestring));
    wipe(n->child);
    cJSON_Delete(n);
}

/* --- text --- */

/* The holder of a reference neither frees nor wipes it. */
struct cr_json *cr_json_new_text(const char *text, size_t len)
{
    cJSON *n = cJSON_CreateNull();
    n->type = cJSON_Raw | cJSON_IsReference;
    n->valuestring = (char *)(uintptr_t)text;
    n->valuedouble = (double)len;
    return wrap(n);
}

const char *cr_json_text(const struct cr_json *j, size_t *len)
{
    if (!j || !cJSON_IsRaw(const_node(j)))
        return NULL;
    *len = (size_t)const_node(j)->valuedouble;
    return const_node(j)->valuestring;
}

/* --- new values --- */

struct cr_json *cr_json_new_object(void)
{
    return wrap(cJSON_CreateObject());
}

struct cr_json *cr_json_new_array(void)
{
    return wrap(cJSON_CreateArray());
}

struct cr_json *cr_json_new_string(const char *s)
{
    return wrap(cJSON_CreateString(s ? s : ""));
}

struct cr_json *cr_json_new_int(int64_t n)
{
    return wrap(cJSON_CreateNumber((double)n));
}

struct cr_json *cr_json_new_double(double d)
{
    return wrap(cJSON_CreateNumber(d));
}

struct cr_json *cr_json_new_bool(bool b)
{
    return wrap(cJSON_CreateBool(b));
}

struct cr_json *cr_json_new_null(void)
{
    return wrap(cJSON_CreateNull());
}

struct cr_json *cr_json_copy(const struct cr_json *j)
{
    return j ? wrap(cJSON_Duplicate(const_node(j), true)) : NULL;
}

/* --- reading --- */

const struct cr_json *cr_json_get(const struct cr_json *j, const char *key)
{
    const cJSON *n = const_node(j);
    if (!key || !cJSON_IsObject(n))
        return NULL;
    for (const cJSON *c = n->child; c; c = c->next)
        if (c->string && strcmp(c->string, key) == 0)
            return const_wrap(c);
    return NULL;
}

const struct cr_json *cr_json_at_keys(const struct cr_json *j, const char *const *keys)
{
    for (; j && *keys; keys++)
        j = cr_json_get(j, *keys);
    return j;
}

const char *cr_json_string(const struct cr_json *j)
{
    return cr_json_is_string(j) ? const_node(j)->valuestring : NULL;
}

int64_t cr_json_int(const struct cr_json *j, int64_t fallback)
{
    if (!cr_json_is_number(j))
        return fallback;
    double d = const_node(j)->valuedouble;
    bool exact = fabs(d) <= (double)CR_JSON_MAX_INT && d == (double)(int64_t)d;
    return exact ? (int64_t)d : fallback;
}

bool cr_json_bool(const struct cr_json *j, bool fallback)
{
    return cr_json_is_bool(j) ? cJSON_IsTrue(const_node(j)) : fallback;
}

bool cr_json_is_object(const struct cr_json *j)
{
    return cJSON_IsObject(const_node(j));
}

bool cr_json_is_array(const struct cr_json *j)
{
    return cJSON_IsArray(const_node(j));
}

bool cr_json_is_string(const struct cr_json *j)
{
    return cJSON_IsString(const_node(j));
}

bool cr_json_is_number(const struct cr_json *j)
{
    return cJSON_IsNumber(const_node(j));
}

bool cr_json_is_bool(const struct cr_json *j)
{
    return cJSON_IsBool(const_node(j));
}

bool cr_json_is_null(const struct cr_json *j)
{
    return cJSON_IsNull(const_node(j));
}

const struct cr_json *cr_json_first(const struct cr_json *j)
{
    return cr_json_is_object(j) || cr_json_is_array(j) ? const_wrap(const_node(j)->child) : NULL;
}

const struct cr_json *cr_json_next(const struct cr_json *child)
{
    return child ? const_wrap(const_node(child)->next) : NULL;
}

const char *cr_json_key(const struct cr_json *child)
{
    return child ? const_node(child)->string : NULL;
}

size_t cr_json_len(const struct cr_json *j)
{
    size_t len = 0;
    for (const struct cr_json *c = cr_json_first(j); c; c = cr_json_next(c))
        len++;
    return len;
}

/* --- equality --- */

static bool equal_arrays(const struct cr_json *a, const struct cr_json *b)
{
    const struct cr_json *x = cr_json_first(a);
    const struct cr_json *y = cr_json_first(b);
    for (; x && y; x = cr_json_next(x), y = cr_json_next(y))
        if (!cr_json_equal(x, y))
            return false;
    return !x && !y;
}

/* The member of that key, looked for from one on, and from the first one after the last. */
static const struct cr_json *get_from(const struct cr_json *object, const struct cr_json *from, const char *key)
{
    const struct cr_json *c = from;
    while (c && strcmp(key, cr_json_key(c)) != 0)
        c = cr_json_next(c);
    return c ? c : cr_json_get(object, key);
}

/* Most objects have their keys in one order, API servers write them sorted: what is looked for follows what was found
 * last, even where one of them has a key that the other lacks. So it takes linear time. */
static bool equal_objects(const struct cr_json *a, const struct cr_json *b)
{
    if (cr_json_len(a) != cr_json_len(b))
        return false;
    const struct cr_json *next = cr_json_first(b);
    for (const struct cr_json *x = cr_json_first(a); x; x = cr_json_next(x)) {
        const struct cr_json *other = get_from(b, next, cr_json_key(x));
        if (!other || !cr_json_equal(x, other))
            return false;
        next = cr_json_next(other);
    }
    return true;
}

bool cr_json_equal(const struct cr_json *a, const struct cr_json *b)
{
    if (!a || !b)
        return a == b;
    const cJSON *x = const_node(a);
    const cJSON *y = const_node(b);
    int type = x->type & 0xFF;
    if (type != (y->type & 0xFF))
        return false;
    switch (type) {
    case cJSON_String:
        return strcmp(x->valuestring, y->valuestring) == 0;
    case cJSON_Number:
        return x->valuedouble == y->valuedouble;
    case cJSON_Array:
        return equal_arrays(a, b);
    case cJSON_Object:
        return equal_objects(a, b);
    default:
        return true;
    }
}

/* --- building --- */

struct cr_json *cr_json_set(struct cr_json *object, const char *key, struct cr_json *value)
{
    if (!cr_json_is_object(object) || !key || !value) {
        cr_json_free(value);
        return NULL;
    }
    cJSON *old = node(cr_json_edit(object, key));
    if (!old) {
        cJSON_AddItemToObject(node(object), key, node(value));
        return value;
    }
    cJSON *item = node(value);
    free(item->string);
    item->string = cr_strdup(key);
    cJSON_ReplaceItemViaPointer(node(object), old, item);
    return value;
}

void cr_json_set_string(struct cr_json *object, const char *key, const char *value)
{
    if (value)
        cr_json_set(object, key, cr_json_new_string(value));
}

void cr_json_set_int(struct cr_json *object, const char *key, int64_t value)
{
    cr_json_set(object, key, cr_json_new_int(value));
}

void cr_json_set_bool(struct cr_json *object, const char *key, bool value)
{
    cr_json_set(object, key, cr_json_new_bool(value));
}

struct cr_json *cr_json_object_in(struct cr_json *object, const char *key)
{
    struct cr_json *member = cr_json_edit(object, key);
    return cr_json_is_object(member) ? member : cr_json_set(object, key, cr_json_new_object());
}

struct cr_json *cr_json_array_in(struct cr_json *object, const char *key)
{
    struct cr_json *member = cr_json_edit(object, key);
    return cr_json_is_array(member) ? member : cr_json_set(object, key, cr_json_new_array());
}

struct cr_json *cr_json_add(struct cr_json *array, struct cr_json *value)
{
    if (!cr_json_is_array(array) || !value) {
        cr_json_free(value);
        return NULL;
    }
    cJSON_AddItemToArray(node(array), node(value));
    return value;
}

void cr_json_add_string(struct cr_json *array, const char *value)
{
    if (value)
        cr_json_add(array, cr_json_new_string(value));
}

void cr_json_remove(struct cr_json *object, const char *key)
{
    cJSON *member = node(cr_json_edit(object, key));
    if (member)
        cJSON_Delete(cJSON_DetachItemViaPointer(node(object), member));
}

struct cr_json *cr_json_take(struct cr_json *object, const char *key)
{
    cJSON *member = node(cr_json_edit(object, key));
    return member ? wrap(cJSON_DetachItemViaPointer(node(object), member)) : NULL;
}

struct cr_json *cr_json_take_first(struct cr_json *j)
{
    cJSON *child = j ? node(j)->child : NULL;
    return child ? wrap(cJSON_DetachItemViaPointer(node(j), child)) : NULL;
}

struct cr_json *cr_json_edit(struct cr_json *object, const char *key)
{
    if (!key || !cr_json_is_object(object))
        return NULL;
    for (cJSON *c = node(object)->child; c; c = c->next)
        if (c->string && strcmp(c->string, key) == 0)
            return wrap(c);
    return NULL;
}
