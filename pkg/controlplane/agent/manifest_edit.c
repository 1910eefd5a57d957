#include "controlplane/agent/manifest_edit.h"

#include <string.h>

#include "api/label.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "codec/yaml_place.h"
#include "controlplane/agent/manifest_text.h"

/* How much deeper keys stand that are added; kubeadm's way. */
enum { STEP = 2 };

/* Bytes [at, at + removed) of the text give way to `put`. */
struct splice {
    size_t at;
    size_t removed;
    struct cr_buf put;
};

static void splice_cleanup(struct splice *splice)
{
    cr_buf_dispose(&splice->put);
}

struct edit {
    const char *text;
    size_t len;
    const char *entry; /* "name": "value", which is YAML of any style as well as JSON */
    const char *value; /* quoted */
    struct cr_error *err;
};

static bool refuse(const struct edit *edit, const char *why)
{
    return cr_error_set(edit->err, CR_ERR_INVALID, "the manifest cannot be annotated without touching more of it: %s",
                        why);
}

/* --- what is written --- */

/* The string as JSON has it. Owned. */
static char *quoted(const char *text)
{
    CR_CLEANUP(cr_json) struct cr_json *string = cr_json_new_string(text);
    return cr_json_print(string);
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static bool may_be_set(const char *name, const char *value, struct cr_error *err)
{
    if (!cr_label_key_is_valid(name))
        return cr_error_set(err, CR_ERR_INVALID, "the manifest gets no annotation \"%.100s\": it is no name of one",
                            is_printable(name) ? name : "?");
    if (strlen(value) > CR_MANIFEST_VALUE_MAX || !is_printable(value))
        return cr_error_set(err, CR_ERR_INVALID,
                            "the manifest gets no value of %s that is not at most %d printable characters", name,
                            CR_MANIFEST_VALUE_MAX);
    return true;
}

/* --- where it is written --- */

/* Behind the brace, with the blanks that the first entry has before it: on a line of its own where that is. */
static void into_braces(const struct edit *edit, const struct cr_yaml_place *braces, const char *entry,
                        struct splice *out)
{
    size_t blanks = 0;
    while (braces->end + blanks < edit->len && strchr(" \t\r\n", edit->text[braces->end + blanks]))
        blanks++;
    out->at = braces->end;
    if (braces->empty)
        cr_buf_puts(&out->put, entry);
    else
        cr_buf_printf(&out->put, "%.*s%s,%s", (int)blanks, edit->text + braces->end, entry, blanks ? "" : " ");
}

/* Where the line begins that a byte is in. */
static size_t line_of(const struct edit *edit, size_t at)
{
    while (at && edit->text[at - 1] != '\n')
        at--;
    return at;
}

/* On a line of its own, the next after that of the mapping's own key. */
static bool onto_line(const struct edit *edit, const struct cr_yaml_place *block, struct splice *out,
                      size_t *indentation, const char **line_end)
{
    const char *end = memchr(edit->text + block->key_end, '\n', edit->len - block->key_end);
    size_t line = line_of(edit, block->first);
    if (!end || (size_t)(end + 1 - edit->text) > line)
        return refuse(edit, "the first key of a mapping is on the line of another");
    *indentation = block->first - line;
    for (size_t i = line; i < block->first; i++)
        if (edit->text[i] != ' ')
            return refuse(edit, "something stands before the first key of a mapping");
    *line_end = end > edit->text && end[-1] == '\r' ? "\r\n" : "\n";
    out->at = (size_t)(end + 1 - edit->text);
    return true;
}

static bool into_block(const struct edit *edit, const struct cr_yaml_place *block, const char *key, struct splice *out)
{
    size_t indentation = 0;
    const char *line_end = NULL;
    if (!onto_line(edit, block, out, &indentation, &line_end))
        return false;
    if (key)
        cr_buf_printf(&out->put, "%*s%s:%s%*s", (int)indentation, "", key, line_end, STEP, "");
    cr_buf_printf(&out->put, "%*s%s%s", (int)indentation, "", edit->entry, line_end);
    return true;
}

/* In the place of a scalar; of one that is empty behind its colon. */
static void into_scalar(const struct cr_yaml_place *scalar, const char *text, struct splice *out)
{
    bool nothing = scalar->start == scalar->end;
    out->at = scalar->start;
    out->removed = scalar->end - scalar->start;
    cr_buf_printf(&out->put, "%s%s", nothing ? " " : "", text);
}

static bool find(const struct edit *edit, const char *const *path, struct cr_yaml_place *out)
{
    return cr_yaml_find(edit->text, edit->len, path, out, edit->err) ||
           cr_error_wrap(edit->err, "the manifest cannot be read");
}

/* There are no annotations. */
static bool into_metadata(const struct edit *edit, struct splice *out)
{
    struct cr_yaml_place metadata;
    if (!find(edit, (const char *const[]){"metadata", NULL}, &metadata))
        return false;
    if (metadata.shape == CR_YAML_BLOCK_MAPPING)
        return into_block(edit, &metadata, "annotations", out);
    cr_autofree char *entry = cr_asprintf("\"annotations\": {%s}", edit->entry);
    into_braces(edit, &metadata, entry, out);
    return true;
}

/* The annotation is not there. */
static bool into_annotations(const struct edit *edit, struct splice *out)
{
    struct cr_yaml_place annotations;
    if (!find(edit, (const char *const[]){"metadata", "annotations", NULL}, &annotations))
        return false;
    switch (annotations.shape) {
    case CR_YAML_ABSENT:
        return into_metadata(edit, out);
    case CR_YAML_BLOCK_MAPPING:
        return into_block(edit, &annotations, NULL, out);
    case CR_YAML_FLOW_MAPPING:
        into_braces(edit, &annotations, edit->entry, out);
        return true;
    case CR_YAML_SCALAR: {
        cr_autofree char *mapping = cr_asprintf("{%s}", edit->entry);
        into_scalar(&annotations, mapping, out);
        return true;
    }
    default:
        return refuse(edit, "its annotations are no mapping");
    }
}

static bool where(const struct edit *edit, const char *name, struct splice *out)
{
    struct cr_yaml_place place;
    if (!find(edit, (const char *const[]){"metadata", "annotations", name, NULL}, &place))
        return false;
    if (place.shape == CR_YAML_ABSENT)
        return into_annotations(edit, out);
    if (place.shape == CR_YAML_BLOCK_SCALAR)
        return refuse(edit, "the annotation's value is a block of lines");
    into_scalar(&place, edit->value, out);
    return true;
}

/* --- what it must mean --- */

static bool are_sound(const struct edit *edit, const struct cr_json *pod, const char *name)
{
    const struct cr_json *annotations = cr_json_at(pod, "metadata", "annotations");
    if (annotations && !cr_json_is_null(annotations) && !cr_json_is_object(annotations))
        return refuse(edit, "its annotations are no mapping");
    const struct cr_json *value = cr_json_get(annotations, name);
    if (value && !cr_json_is_null(value) && !cr_json_is_string(value))
        return refuse(edit, "the annotation's value is no text");
    return true;
}

/* Owned. */
static struct cr_json *with_annotation(const struct cr_json *pod, const char *name, const char *value)
{
    const struct cr_json *old = cr_json_get(pod, "metadata");
    struct cr_json *annotations = cr_json_is_object(cr_json_get(old, "annotations"))
                                      ? cr_json_copy(cr_json_get(old, "annotations"))
                                      : cr_json_new_object();
    cr_json_set(annotations, name, cr_json_new_string(value));
    struct cr_json *metadata = cr_json_copy(old);
    cr_json_set(metadata, "annotations", annotations);
    struct cr_json *wanted = cr_json_copy(pod);
    cr_json_set(wanted, "metadata", metadata);
    return wanted;
}

static bool means(const struct edit *edit, const struct cr_buf *text, const struct cr_json *wanted)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *pod = cr_manifest_parse(text->data, text->len, &err);
    if (!pod)
        return refuse(edit, err.text);
    return cr_json_equal(pod, wanted) || refuse(edit, "it would mean another Pod");
}

static bool rewrite(const struct edit *edit, const char *name, const struct cr_json *wanted, struct cr_buf *out)
{
    __attribute__((cleanup(splice_cleanup))) struct splice splice = {.put = CR_BUF_INIT(0)};
    if (!where(edit, name, &splice))
        return false;
    size_t behind = splice.at + splice.removed;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(CR_YAML_MAX_BYTES);
    if (!cr_buf_append(&text, edit->text, splice.at) || !cr_buf_append(&text, splice.put.data, splice.put.len) ||
        !cr_buf_append(&text, edit->text + behind, edit->len - behind))
        return refuse(edit, "it would be too long");
    if (!means(edit, &text, wanted))
        return false;
    return cr_buf_append(out, text.data, text.len) || refuse(edit, "it would be too long");
}

bool cr_manifest_annotate(const char *text, size_t len, const char *name, const char *value, struct cr_buf *out,
                          bool *changed, struct cr_error *err)
{
    if (!may_be_set(name, value, err))
        return false;
    CR_CLEANUP(cr_json) struct cr_json *pod = cr_manifest_parse(text, len, err);
    if (!pod)
        return false;
    cr_autofree char *quoted_name = quoted(name);
    cr_autofree char *quoted_value = quoted(value);
    cr_autofree char *entry = cr_asprintf("%s: %s", quoted_name, quoted_value);
    struct edit edit = {.text = text, .len = len, .entry = entry, .value = quoted_value, .err = err};
    if (!are_sound(&edit, pod, name))
        return false;
    *changed = !cr_streq(cr_json_string_at(pod, "metadata", "annotations", name), value);
    if (!*changed)
        return cr_buf_append(out, text, len) || refuse(&edit, "it is too long");
    CR_CLEANUP(cr_json) struct cr_json *wanted = with_annotation(pod, name, value);
    return rewrite(&edit, name, wanted, out);
}
