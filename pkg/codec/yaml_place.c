#include "codec/yaml_place.h"

#include <string.h>

#include <yaml.h>

#include "base/strings.h"
#include "codec/yaml.h"

struct finder {
    yaml_parser_t parser;
    const char *text;
    size_t len;
    struct cr_error *err;
};

static void finder_cleanup(struct finder *f)
{
    yaml_parser_delete(&f->parser);
}

static void event_cleanup(yaml_event_t *event)
{
    yaml_event_delete(event);
}
#define EVENT __attribute__((cleanup(event_cleanup))) yaml_event_t

static bool next_event(struct finder *f, yaml_event_t *event)
{
    const yaml_parser_t *p = &f->parser;
    if (yaml_parser_parse(&f->parser, event))
        return true;
    if (p->error == YAML_MEMORY_ERROR)
        return cr_error_set(f->err, CR_ERR_TRANSIENT, "no memory to parse YAML");
    return cr_error_set(f->err, CR_ERR_INVALID, "not YAML: %s at line %zu", p->problem ? p->problem : "unknown problem",
                        p->problem_mark.line + 1);
}

static bool expect(struct finder *f, yaml_event_type_t type)
{
    EVENT event = {0};
    if (!next_event(f, &event))
        return false;
    return event.type == type || cr_error_set(f->err, CR_ERR_INVALID, "not YAML of one document");
}

/* libyaml counts characters, not bytes. */
static size_t byte_of(const struct finder *f, yaml_mark_t mark)
{
    size_t at = 0;
    for (size_t i = 0; i < mark.index && at < f->len; i++) {
        at++;
        while (at < f->len && ((unsigned char)f->text[at] & 0xc0) == 0x80)
            at++;
    }
    return at;
}

/* What is left of a node of which the first event was read. */
static bool skip_rest(struct finder *f, const yaml_event_t *first)
{
    size_t depth = first->type == YAML_MAPPING_START_EVENT || first->type == YAML_SEQUENCE_START_EVENT;
    while (depth) {
        EVENT event = {0};
        if (!next_event(f, &event))
            return false;
        if (event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SEQUENCE_START_EVENT)
            depth++;
        else if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT)
            depth--;
    }
    return true;
}

static enum cr_yaml_shape shape_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT: {
        yaml_scalar_style_t style = event->data.scalar.style;
        bool block = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
        return block ? CR_YAML_BLOCK_SCALAR : CR_YAML_SCALAR;
    }
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE ? CR_YAML_FLOW_MAPPING
                                                                          : CR_YAML_BLOCK_MAPPING;
    default:
        return CR_YAML_SEQUENCE;
    }
}

/* The value that is looked for, of which the first event was read. */
static bool found(struct finder *f, const yaml_event_t *event, struct cr_yaml_place *out)
{
    out->shape = shape_of(event);
    out->start = byte_of(f, event->start_mark);
    out->end = byte_of(f, event->end_mark);
    if (event->type != YAML_MAPPING_START_EVENT)
        return true;
    EVENT first = {0};
    if (!next_event(f, &first))
        return false;
    out->empty = first.type == YAML_MAPPING_END_EVENT;
    out->first = byte_of(f, first.start_mark);
    return true;
}

/* In a mapping with its first event read: goes up to the value of the key and reads the first event of that value; or
 * goes to the end of the mapping (*there false). */
static bool seek(struct finder *f, const char *key, yaml_event_t *value, size_t *key_end, bool *there)
{
    for (;;) {
        EVENT name = {0};
        if (!next_event(f, &name))
            return false;
        *there = name.type != YAML_MAPPING_END_EVENT;
        if (!*there)
            return true;
        if (name.type != YAML_SCALAR_EVENT)
            return cr_error_set(f->err, CR_ERR_INVALID, "a key that is no scalar at line %zu",
                                name.start_mark.line + 1);
        *key_end = byte_of(f, name.end_mark);
        if (cr_streq((const char *)name.data.scalar.value, key))
            return next_event(f, value);
        EVENT other = {0};
        if (!next_event(f, &other) || !skip_rest(f, &other))
            return false;
    }
}

static bool walk(struct finder *f, const char *const *path, struct cr_yaml_place *out)
{
    if (!expect(f, YAML_STREAM_START_EVENT) || !expect(f, YAML_DOCUMENT_START_EVENT) ||
        !expect(f, YAML_MAPPING_START_EVENT))
        return false;
    for (; *path; path++) {
        EVENT value = {0};
        bool there = false;
        if (!seek(f, *path, &value, &out->key_end, &there))
            return false;
        if (!there)
            return true;
        if (!path[1])
            return found(f, &value, out);
        if (value.type != YAML_MAPPING_START_EVENT)
            return true;
    }
    return true;
}

bool cr_yaml_find(const char *text, size_t len, const char *const *path, struct cr_yaml_place *out,
                  struct cr_error *err)
{
    *out = (struct cr_yaml_place){.shape = CR_YAML_ABSENT};
    if (len > CR_YAML_MAX_BYTES)
        return cr_error_set(err, CR_ERR_INVALID, "YAML of %zu bytes, more than the %d that are read", len,
                            CR_YAML_MAX_BYTES);
    __attribute__((cleanup(finder_cleanup))) struct finder f = {.text = text, .len = len, .err = err};
    if (!yaml_parser_initialize(&f.parser))
        return cr_error_set(err, CR_ERR_TRANSIENT, "no memory to parse YAML");
    yaml_parser_set_encoding(&f.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&f.parser, (const unsigned char *)text, len);
    return walk(&f, path, out);
}
