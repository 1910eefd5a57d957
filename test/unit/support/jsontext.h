/* JSON of tests: as text, and as a file of test/testdata. Ends the test on failure. */
#ifndef TEST_SUPPORT_JSONTEXT_H
#define TEST_SUPPORT_JSONTEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "codec/json.h"

/* Owned. */
static inline struct cr_json *test_json(const char *text)
{
    struct cr_error err = {0};
    struct cr_json *json = cr_json_parse(text, strlen(text), &err);
    if (!json)
        fail_msg("the test's own JSON: %s in %s", err.text, text);
    return json;
}

/* Owned. name: of a file of test/testdata. */
static inline struct cr_json *test_json_file(const char *name)
{
    static char text[64 * 1024];
    cr_autofree char *path = cr_asprintf("%s/test/testdata/%s", CERTROLL_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    return test_json(text);
}

static inline void test_json_is_as_in_file(const struct cr_json *json, const char *name)
{
    CR_CLEANUP(cr_json) struct cr_json *expected = test_json_file(name);
    if (cr_json_equal(json, expected))
        return;
    cr_autofree char *text = cr_json_print(json);
    fprintf(stderr, "encoded: %s\n", text); /* whole: cmocka cuts its messages */
    fail_msg("test/testdata/%s is not what is encoded", name);
}

#endif
