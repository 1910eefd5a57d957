#include "api/selector.h"

#include "api/label.h"
#include "api/node.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* As in the schema. */
enum { LABELS_MAX = 16, EXPRESSIONS_MAX = 16, VALUES_MAX = 32 };

static const char *const operators[] = {
    [CR_SELECTOR_IN] = "In",
    [CR_SELECTOR_NOT_IN] = "NotIn",
    [CR_SELECTOR_EXISTS] = "Exists",
    [CR_SELECTOR_DOES_NOT_EXIST] = "DoesNotExist",
};

void cr_selector_dispose(struct cr_selector *selector)
{
    for (size_t i = 0; i < selector->len; i++) {
        free(selector->items[i].key);
        cr_strvec_dispose(&selector->items[i].values);
    }
    free(selector->items);
    *selector = (struct cr_selector){0};
}

static bool check_key(const char *key, const char *path, struct cr_error *err)
{
    return cr_label_key_is_valid(key) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s: '%s' is no key of a label: at most 63 letters, digits, '-', '_' and '.', the first and "
                        "last a letter or digit; before it, if at all, a DNS name and '/'",
                        path, key);
}

static bool check_value(const char *value, const char *path, struct cr_error *err)
{
    return cr_label_value_is_valid(value) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s: '%s' is no value of a label: at most 63 letters, digits, '-', '_' and '.', the first and "
                        "last a letter or digit",
                        path, value);
}

static bool takes_values(enum cr_selector_operator operator)
{
    return operator== CR_SELECTOR_IN || operator== CR_SELECTOR_NOT_IN;
}

static struct cr_selector_requirement *add(struct cr_selector *selector)
{
    selector->items = cr_reallocarray(selector->items, selector->len + 1, sizeof *selector->items);
    struct cr_selector_requirement *added = &selector->items[selector->len++];
    *added = (struct cr_selector_requirement){0};
    return added;
}

static bool decode_labels(const struct cr_node *node, struct cr_selector *out, struct cr_error *err)
{
    struct cr_node labels;
    if (!cr_node_object(node, "matchLabels", &labels, err))
        return false;
    if (cr_json_len(labels.json) > LABELS_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "%s has %zu labels; at most %d are allowed", labels.path,
                            cr_json_len(labels.json), LABELS_MAX);
    for (const struct cr_json *c = cr_json_first(labels.json); c; c = cr_json_next(c)) {
        if (!cr_json_is_string(c))
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s must be a string", labels.path, cr_json_key(c));
        if (!check_key(cr_json_key(c), labels.path, err) || !check_value(cr_json_string(c), labels.path, err))
            return false;
        struct cr_selector_requirement *added = add(out);
        added->key = cr_strdup(cr_json_key(c));
        cr_strvec_add(&added->values, cr_json_string(c));
    }
    return true;
}

static bool decode_values(const struct cr_node *node, struct cr_selector_requirement *out, struct cr_error *err)
{
    struct cr_node values;
    if (!cr_node_array(node, "values", VALUES_MAX, &values, err))
        return false;
    if (takes_values(out->operator) != (cr_json_len(values.json) > 0))
        return cr_error_set(err, CR_ERR_INVALID, "%s: In and NotIn need values; Exists and DoesNotExist take none",
                            node->path);
    for (const struct cr_json *c = cr_json_first(values.json); c; c = cr_json_next(c)) {
        if (!cr_json_is_string(c))
            return cr_error_set(err, CR_ERR_INVALID, "%s must be strings", values.path);
        if (!check_value(cr_json_string(c), values.path, err))
            return false;
        cr_strvec_add(&out->values, cr_json_string(c));
    }
    return true;
}

static bool decode_expression(const struct cr_node *node, struct cr_selector *out, struct cr_error *err)
{
    struct cr_selector_requirement *added = add(out);
    unsigned operator= 0;
    if (!cr_node_required(node, "key", &added->key, err) || !check_key(added->key, node->path, err))
        return false;
    if (!cr_node_has(node, "operator"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.operator is required", node->path);
    if (!cr_node_enum(node, "operator", operators, cr_array_len(operators), 0, &operator, err))
        return false;
    added->operator=(enum cr_selector_operator) operator;
    return decode_values(node, added, err);
}

static bool decode_expressions(const struct cr_node *node, struct cr_selector *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(node, "matchExpressions", EXPRESSIONS_MAX, &array, err))
        return false;
    size_t index = 0;
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item), index++) {
        struct cr_node expression;
        if (!cr_node_item(&array, item, index, &expression, err) || !decode_expression(&expression, out, err))
            return false;
    }
    return true;
}

bool cr_selector_decode(const struct cr_node *node, const char *key, struct cr_selector *out, struct cr_error *err)
{
    struct cr_node selector;
    *out = (struct cr_selector){0};
    if (!cr_node_object(node, key, &selector, err))
        return false;
    if (!selector.json)
        return true;
    if (!decode_labels(&selector, out, err) || !decode_expressions(&selector, out, err))
        return false;
    /* To Kubernetes it would select everything. */
    return out->len ||
           cr_error_set(err, CR_ERR_INVALID, "%s is empty: give matchLabels or matchExpressions", selector.path);
}

static bool holds(const struct cr_selector_requirement *requirement, const struct cr_json *labels)
{
    const struct cr_json *label = cr_json_get(labels, requirement->key);
    bool listed = label && cr_strvec_has(&requirement->values, cr_or_empty(cr_json_string(label)));
    switch (requirement->operator) {
    case CR_SELECTOR_IN:
        return listed;
    case CR_SELECTOR_NOT_IN:
        return !listed;
    case CR_SELECTOR_EXISTS:
        return label != NULL;
    case CR_SELECTOR_DOES_NOT_EXIST:
        return label == NULL;
    }
    return false;
}

bool cr_selector_matches(const struct cr_selector *selector, const struct cr_json *labels)
{
    for (size_t i = 0; i < selector->len; i++)
        if (!holds(&selector->items[i], labels))
            return false;
    return selector->len > 0;
}

static void add_text(const struct cr_selector_requirement *requirement, struct cr_buf *text)
{
    cr_autofree char *values = cr_strvec_join(&requirement->values, ",");
    switch (requirement->operator) {
    case CR_SELECTOR_IN:
        cr_buf_printf(text, requirement->values.len == 1 ? "%s=%s" : "%s in (%s)", requirement->key, values);
        return;
    case CR_SELECTOR_NOT_IN:
        cr_buf_printf(text, "%s notin (%s)", requirement->key, values);
        return;
    case CR_SELECTOR_EXISTS:
        cr_buf_puts(text, requirement->key);
        return;
    case CR_SELECTOR_DOES_NOT_EXIST:
        cr_buf_printf(text, "!%s", requirement->key);
        return;
    }
}

char *cr_selector_text(const struct cr_selector *selector)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < selector->len; i++) {
        cr_buf_puts(&text, i ? "," : "");
        add_text(&selector->items[i], &text);
    }
    return cr_buf_steal(&text);
}
