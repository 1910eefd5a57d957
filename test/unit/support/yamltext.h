/* Objects of tests, written as YAML: what a reader of Kubernetes manifests is used to. */
#ifndef TEST_SUPPORT_YAMLTEXT_H
#define TEST_SUPPORT_YAMLTEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/yaml.h"

/* Owned. Ends the test program when the text is wrong. */
static inline struct cr_json *test_yaml(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_yaml_parse(text, strlen(text), &err);
    if (!json) {
        fprintf(stderr, "the test's own YAML: %s\n%s\n", err.text, text);
        abort();
    }
    return json;
}

#endif
