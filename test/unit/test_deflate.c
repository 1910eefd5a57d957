#include "codec/deflate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

/* len bytes that do not repeat soon, the same each time. */
static char *text_of(size_t len)
{
    char *text = cr_calloc(len + 1, 1);
    uint32_t state = 1;
    for (size_t i = 0; i < len; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)(' ' + (state >> 16) % 94);
    }
    return text;
}

static void what_is_deflated_is_inflated_as_it_was(void **state)
{
    (void)state;
    static const struct {
        size_t text_len;
        size_t model_len;
    } cases[] = {{0, 0},
                 {1, 0},
                 {0, 100},
                 {3000, 0},
                 {3000, 1},
                 {3000, 3000},
                 {10, 3000},
                 {3000, CR_DEFLATE_MODEL_MAX + 5000},
                 {2000000, CR_DEFLATE_MODEL_MAX}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = text_of(cases[i].text_len);
        cr_autofree char *model = text_of(cases[i].model_len);
        size_t size = 0;
        cr_autofree void *data = cr_deflate(text, cases[i].text_len, model, cases[i].model_len, &size);
        cr_autofree char *again = cr_inflate(data, size, model, cases[i].model_len, cases[i].text_len);
        assert_memory_equal(again, text, cases[i].text_len + 1);
    }
}

static void a_text_like_its_model_costs_next_to_nothing(void **state)
{
    (void)state;
    cr_autofree char *model = text_of(3000);
    cr_autofree char *text = text_of(3000);
    memcpy(text + 1000, "another value", 13);
    size_t size = 0;
    cr_autofree void *data = cr_deflate(text, 3000, model, 3000, &size);
    assert_true(size < 100);
    size_t alone = 0;
    cr_autofree void *plain = cr_deflate(text, 3000, NULL, 0, &alone);
    assert_true(alone > 1000);
}

/* As in the store: only the end of a model is kept. */
static void of_a_long_model_only_its_end_counts(void **state)
{
    (void)state;
    enum { LONG = CR_DEFLATE_MODEL_MAX + 5000 };
    cr_autofree char *model = text_of(LONG);
    const char *end = model + LONG - CR_DEFLATE_MODEL_MAX;
    size_t size = 0;
    cr_autofree void *data = cr_deflate(end, 3000, model, LONG, &size);
    cr_autofree char *again = cr_inflate(data, size, end, CR_DEFLATE_MODEL_MAX, 3000);
    assert_memory_equal(again, end, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_deflated_is_inflated_as_it_was),
        cmocka_unit_test(a_text_like_its_model_costs_next_to_nothing),
        cmocka_unit_test(of_a_long_model_only_its_end_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
