/* metav1.LabelSelector as C values (kubernetes.io/docs/concepts/overview/working-with-objects/labels): all requirements
 * must hold. Read once, matched against many objects. */
#ifndef CR_API_SELECTOR_H
#define CR_API_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"

enum cr_selector_operator {
    CR_SELECTOR_IN,
    CR_SELECTOR_NOT_IN, /* also true for an object without such a label */
    CR_SELECTOR_EXISTS,
    CR_SELECTOR_DOES_NOT_EXIST,
};

struct cr_selector_requirement {
    char *key;
    enum cr_selector_operator operator;
    struct cr_strvec values; /* of In and NotIn */
};

struct cr_selector {
    struct cr_selector_requirement *items;
    size_t len; /* 0: there is no selector, and nothing matches */
};
void cr_selector_dispose(struct cr_selector *selector);
CR_DEFINE_DISPOSE(cr_selector, struct cr_selector, cr_selector_dispose)

/* From the member `key` of node; absent is no selector. Errors (Invalid) name the field: an empty selector, which would
 * match everything, an operator with values that it does not take or without those that it needs, what is no key or
 * value of a label (label.h): the API server refuses to list by it. out is to be disposed of in any case. */
struct cr_node;
bool cr_selector_decode(const struct cr_node *node, const char *key, struct cr_selector *out,
                        struct cr_error *err) CR_MUST_USE;

/* As a list's labelSelector: "app=shop,tier in (a,b),!old". Owned. */
char *cr_selector_text(const struct cr_selector *selector);

/* labels: metadata.labels, NULL when there are none. */
bool cr_selector_matches(const struct cr_selector *selector, const struct cr_json *labels);

#endif
