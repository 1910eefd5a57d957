#include "codec/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/json.h"

/* --- what a plain scalar of YAML means. --- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_one_of(text, words);
}

static bool is_true(const char *text)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};
    return is_one_of(text, words);
}

static bool is_false(const char *text)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};
    return is_one_of(text, words);
}

/* Booleans of YAML 1.1, which kubectl reads; strings of YAML 1.2. */
static bool is_boolean_of_1_1(const char *text)
{
    static const char *const words[] = {"yes", "Yes", "YES", "no",  "No",  "NO", "on",
                                        "On",  "ON",  "off", "Off", "OFF", NULL};
    return is_one_of(text, words);
}

static const char *skip_sign(const char *text)
{
    return *text == '-' || *text == '+' ? text + 1 : text;
}

/* .inf, -.Inf, .NaN, … */
static bool is_not_finite(const char *text)
{
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    return is_one_of(skip_sign(text), infinities) || is_one_of(text, nans);
}

static bool only(const char *text, const char *digits)
{
    return *text && text[strspn(text, digits)] == '\0';
}

/* 0 when text is no integer of the core schema, else its base; *digits is where the digits begin. */
static int integer_base(const char *text, const char **digits)
{
    *digits = text + 2;
    if (cr_starts_with(text, "0o"))
        return only(*digits, "01234567") ? 8 : 0;
    if (cr_starts_with(text, "0x"))
        return only(*digits, "0123456789abcdefABCDEF") ? 16 : 0;
    *digits = skip_sign(text);
    return only(*digits, "0123456789") ? 10 : 0;
}

static struct cr_json *integer(const char *text, const char *digits, int base, const char **problem)
{
    if (base == 10 && digits[0] == '0' && digits[1]) {
        *problem = "a number with leading zeros: quote it, or drop the zeros";
        return NULL;
    }
    errno = 0;
    long long n = strtoll(digits, NULL, base);
    if (errno || n > CR_JSON_MAX_INT) {
        *problem = "an integer beyond 2^53: quote it";
        return NULL;
    }
    return cr_json_new_int(*text == '-' ? -n : n);
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *text)
{
    static const char digits[] = "0123456789";
    const char *p = skip_sign(text);
    size_t whole = strspn(p, digits);
    p += whole;
    size_t fraction = 0;
    if (*p == '.') {
        fraction = strspn(p + 1, digits);
        p += 1 + fraction;
    }
    if (!whole && !fraction)
        return false;
    if (*p == 'e' || *p == 'E')
        return only(skip_sign(p + 1), digits);
    return !*p;
}

static struct cr_json *floating(const char *text, const char **problem)
{
    double d = strtod(text, NULL);
    if (isfinite(d))
        return cr_json_new_double(d);
    *problem = "a number out of range";
    return NULL;
}

/* The value of an unquoted scalar in the core schema of YAML 1.2. NULL and a static *problem when the text means
 * different things to different readers, or no JSON number holds it. */
static struct cr_json *yaml_plain_scalar(const char *text, const char **problem)
{
    const char *digits;
    int base = integer_base(text, &digits);
    *problem = NULL;
    if (is_null(text))
        return cr_json_new_null();
    if (is_true(text) || is_false(text))
        return cr_json_new_bool(is_true(text));
    if (base)
        return integer(text, digits, base, problem);
    if (is_float(text))
        return floating(text, problem);
    if (is_boolean_of_1_1(text))
        *problem = "yes, no, on or off: write true or false, or quote it";
    else if (is_not_finite(text))
        *problem = "an infinity or not-a-number, which JSON does not have";
    return *problem ? NULL : cr_json_new_string(text);
}

struct frame {
    struct cr_json *container; /* borrowed from the tree */
    bool mapping;
    char *key; /* owned: the key of the value that comes next */
    size_t keys;
};

struct reader {
    yaml_parser_t parser;
    struct cr_error *err;
    struct cr_json *root; /* owned */
    struct frame frames[CR_YAML_MAX_DEPTH];
    size_t depth;
    size_t nodes;
};

/* --- errors --- */

static bool refuse(struct reader *r, yaml_mark_t at, const char *what)
{
    return cr_error_set(r->err, CR_ERR_INVALID, "not YAML that can be read: %s at line %zu, column %zu", what,
                        at.line + 1, at.column + 1);
}

static bool parser_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *what = p->problem ? p->problem : "unknown problem";
    if (p->error == YAML_MEMORY_ERROR)
        return cr_error_set(r->err, CR_ERR_TRANSIENT, "no memory to parse YAML");
    if (p->error == YAML_READER_ERROR)
        return cr_error_set(r->err, CR_ERR_INVALID, "not YAML: %s at byte %zu", what, p->problem_offset);
    return cr_error_set(r->err, CR_ERR_INVALID, "not YAML: %s at line %zu, column %zu", what, p->problem_mark.line + 1,
                        p->problem_mark.column + 1);
}

/* --- events --- */

/* A kubeconfig carries keys: what libyaml lets us reach of its copies is wiped. */
static void event_cleanup(yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        explicit_bzero(event->data.scalar.value, event->data.scalar.length);
    yaml_event_delete(event);
}

static void wipe_range(yaml_char_t *start, const yaml_char_t *end)
{
    if (start)
        explicit_bzero(start, (size_t)(end - start));
}

static void reader_cleanup(struct reader *r)
{
    wipe_range(r->parser.raw_buffer.start, r->parser.raw_buffer.end);
    wipe_range(r->parser.buffer.start, r->parser.buffer.end);
    yaml_parser_delete(&r->parser);
    for (size_t i = 0; i < r->depth; i++)
        free(r->frames[i].key);
    cr_json_free_secret(r->root);
}

static bool next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) || parser_error(r);
}

static bool expect(struct reader *r, yaml_event_type_t type)
{
    __attribute__((cleanup(event_cleanup))) yaml_event_t event = {0};
    if (!next_event(r, &event))
        return false;
    return event.type == type || refuse(r, event.start_mark, "something unexpected");
}

/* --- nodes --- */

static struct frame *top(struct reader *r)
{
    return r->depth ? &r->frames[r->depth - 1] : NULL;
}

static bool key_is_next(struct reader *r)
{
    const struct frame *f = top(r);
    return f && f->mapping && !f->key;
}

/* Takes value and returns it, now owned by the tree. */
static struct cr_json *place(struct reader *r, struct cr_json *value)
{
    struct frame *f = top(r);
    if (!f)
        return r->root = value;
    if (!f->mapping)
        return cr_json_add(f->container, value);
    cr_json_set(f->container, f->key, value);
    free(cr_steal(&f->key));
    return value;
}

static bool take_key(struct reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct frame *f = top(r);
    if (plain && strcmp(text, "<<") == 0)
        return refuse(r, event->start_mark, "a merge key");
    if (plain && !*text)
        return refuse(r, event->start_mark, "an empty key");
    if (++f->keys > CR_YAML_MAX_KEYS)
        return refuse(r, event->start_mark, "a mapping of more than 1000 keys");
    if (cr_json_get(f->container, text))
        return refuse(r, event->start_mark, "a key that was there before");
    f->key = cr_strdup(text);
    return true;
}

static bool scalar(struct reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const char *tag = (const char *)event->data.scalar.tag;
    /* "!" and !!str make a string of a plain scalar. */
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !tag;
    if (tag && !cr_streq(tag, "!") && !cr_streq(tag, YAML_STR_TAG))
        return refuse(r, event->start_mark, "a tag other than !!str");
    if (strlen(text) != event->data.scalar.length)
        return refuse(r, event->start_mark, "a NUL in a string");
    if (key_is_next(r))
        return take_key(r, event);
    const char *problem = NULL;
    struct cr_json *value = plain ? yaml_plain_scalar(text, &problem) : cr_json_new_string(text);
    if (!value)
        return refuse(r, event->start_mark, problem);
    place(r, value);
    return true;
}

static bool open_container(struct reader *r, const yaml_event_t *event, bool mapping, const char *tag)
{
    if (tag && !cr_streq(tag, mapping ? YAML_MAP_TAG : YAML_SEQ_TAG))
        return refuse(r, event->start_mark, "a tag other than that of the node's own kind");
    if (key_is_next(r))
        return refuse(r, event->start_mark, "a key that is no scalar");
    if (r->depth == CR_YAML_MAX_DEPTH)
        return refuse(r, event->start_mark, "nodes nested more than 64 deep");
    struct cr_json *container = place(r, mapping ? cr_json_new_object() : cr_json_new_array());
    r->frames[r->depth++] = (struct frame){.container = container, .mapping = mapping};
    return true;
}

static bool has_anchor(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL;
    default:
        return false;
    }
}

static bool is_end(const yaml_event_t *event)
{
    return event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT;
}

/* One event of a document's content. */
static bool node(struct reader *r, const yaml_event_t *event)
{
    if (is_end(event)) {
        r->depth--;
        return true;
    }
    if (has_anchor(event))
        return refuse(r, event->start_mark, "an anchor or alias");
    if (++r->nodes > CR_YAML_MAX_NODES)
        return refuse(r, event->start_mark, "more than 100000 nodes");
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(r, event, false, (const char *)event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_container(r, event, true, (const char *)event->data.mapping_start.tag);
    default:
        return refuse(r, event->start_mark, "something unexpected");
    }
}

/* After DOCUMENT-START: exactly one node. */
static bool document(struct reader *r)
{
    do {
        __attribute__((cleanup(event_cleanup))) yaml_event_t event = {0};
        if (!next_event(r, &event) || !node(r, &event))
            return false;
    } while (r->depth);
    return expect(r, YAML_DOCUMENT_END_EVENT);
}

/* A text may end in "---" with nothing behind; kubectl would silently drop more than that. */
static bool rest_is_empty(struct reader *r, bool *more)
{
    __attribute__((cleanup(event_cleanup))) yaml_event_t event = {0};
    *more = false;
    if (!next_event(r, &event))
        return false;
    if (event.type == YAML_STREAM_END_EVENT)
        return true;
    __attribute__((cleanup(event_cleanup))) yaml_event_t content = {0};
    if (!next_event(r, &content))
        return false;
    if (content.type != YAML_SCALAR_EVENT || content.data.scalar.length || content.data.scalar.anchor)
        return refuse(r, event.start_mark, "a second document");
    *more = true;
    return expect(r, YAML_DOCUMENT_END_EVENT);
}

static bool stream(struct reader *r)
{
    if (!expect(r, YAML_STREAM_START_EVENT))
        return false;
    __attribute__((cleanup(event_cleanup))) yaml_event_t first = {0};
    if (!next_event(r, &first))
        return false;
    if (first.type == YAML_STREAM_END_EVENT)
        return true;
    if (!document(r))
        return false;
    bool more = true;
    while (more)
        if (!rest_is_empty(r, &more))
            return false;
    return true;
}

struct cr_json *cr_yaml_parse(const char *text, size_t len, struct cr_error *err)
{
    if (len > CR_YAML_MAX_BYTES) {
        cr_error_set(err, CR_ERR_INVALID, "YAML of %zu bytes, more than the %d that are read", len, CR_YAML_MAX_BYTES);
        return NULL;
    }
    __attribute__((cleanup(reader_cleanup))) struct reader r = {.err = err};
    if (!yaml_parser_initialize(&r.parser)) {
        cr_error_set(err, CR_ERR_TRANSIENT, "no memory to parse YAML");
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text ? text : ""), text ? len : 0);
    if (!stream(&r))
        return NULL;
    /* Nothing, or only comments. */
    if (!r.root || cr_json_is_null(r.root))
        return cr_json_new_object();
    return cr_steal(&r.root);
}
