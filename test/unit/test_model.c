#include "codec/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "codec/deflate.h"

static const char first[] = "Deployment bench/web: restarted, because tls.crt of Secret bench/web is another";
static const char second[] = "CertRotationPolicy bench/web: all pods are verified";

static size_t size_by(const struct cr_model *model, const char *text)
{
    size_t size = 0;
    cr_autofree void *data = cr_model_deflate(model, text, strlen(text), &size);
    cr_autofree char *again = cr_model_inflate(model, data, size, strlen(text));
    assert_string_equal(again, text);
    return size;
}

static void what_resembles_its_text_is_small(void **state)
{
    (void)state;
    CR_CLEANUP(cr_model) struct cr_model *model = cr_model_new(first, strlen(first));
    assert_true(size_by(NULL, first) > 40);
    assert_true(size_by(model, first) < 10 && size_by(model, second) > 20);
}

static void it_lives_as_long_as_a_holder_keeps_it(void **state)
{
    (void)state;
    struct cr_model *model = cr_model_new(first, strlen(first));
    CR_CLEANUP(cr_model) struct cr_model *held = cr_model_ref(model);
    cr_model_unref(model);
    assert_true(size_by(held, first) < 10);
    assert_null(cr_model_ref(NULL));
    cr_model_unref(NULL);
}

/* As deflating would cut it, too, this shows only that the right end is kept. */
static void of_more_than_counts_the_beginning_goes(void **state)
{
    (void)state;
    enum { LONG = CR_DEFLATE_MODEL_MAX };
    cr_autofree char *text = cr_malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        text[i] = (char)('a' + i * i % 26);
    cr_autofree char *longer = cr_asprintf("%s%.*s", first, (int)LONG, text);
    CR_CLEANUP(cr_model) struct cr_model *cut = cr_model_new(longer, strlen(first) + LONG);
    CR_CLEANUP(cr_model) struct cr_model *alone = cr_model_new(text, LONG);
    assert_int_equal(size_by(cut, first), size_by(alone, first));
    cr_autofree char *before = cr_asprintf("%.*s%s", (int)LONG, text, second);
    CR_CLEANUP(cr_model) struct cr_model *end = cr_model_new(before, LONG + strlen(second));
    assert_true(size_by(end, second) < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_resembles_its_text_is_small),
        cmocka_unit_test(it_lives_as_long_as_a_holder_keeps_it),
        cmocka_unit_test(of_more_than_counts_the_beginning_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
