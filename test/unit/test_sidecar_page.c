#include "evidence/sidecar_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

#define HEX(digit) digit digit digit digit digit digit digit digit
#define SHA(digit) HEX(digit) HEX(digit) HEX(digit) HEX(digit) HEX(digit) HEX(digit) HEX(digit) HEX(digit)
#define HEAD       "{\"apiVersion\": \"sidecar.certroll.dev/v1\", \"startedAt\": \"2026-11-21T10:00:00Z\", \"materials\": "
#define ONE(more)  HEAD "[{\"name\": \"web\", \"state\": \"Pending\"" more "}]}"

static bool read_page(const char *text, struct cr_sidecar_sighting *seen, struct cr_error *err)
{
    return cr_sidecar_page_read(text, strlen(text), seen, err);
}

static void test_a_whole_page(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "[{\"name\": \"web\", \"state\": \"Failing\","
             " \"found\": {\"leaf\": \"" SHA("a") "\", \"trust\": \"" SHA(
                 "b") "\", \"at\": \"2026-11-21T10:00:00Z\"},"
                      " \"delivered\": {\"leaf\": \"" SHA("c") "\", \"trust\": \"" SHA(
                          "d") "\", \"leafProven\": true, \"trustProven\": false},"
                               " \"served\": {\"leaf\": \"" SHA(
                                   "e") "\"}, \"attempts\": 3, \"message\": \"connection refused\"},"
                                        " {\"name\": \"ca\", \"state\": \"Delivered\", \"found\": {\"leaf\": \"\", "
                                        "\"trust\": \"" SHA("1") "\"},"
                                                                 " \"delivered\": {\"leaf\": null, \"trust\": \"" SHA(
                                                                     "1") "\", \"trustProven\": true}, \"served\": "
                                                                          "null, \"message\": \"\"}],"
                                                                          " \"later\": {}}";
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    assert_true(read_page(text, &seen, &err));
    assert_true(seen.read);
    assert_int_equal(seen.len, 2);
    const struct cr_sidecar_entry *web = &seen.entries[0], *ca = &seen.entries[1];
    assert_string_equal(web->name, "web");
    assert_int_equal(web->state, CR_SIDECAR_FAILING);
    assert_string_equal(web->found_leaf, SHA("a"));
    assert_string_equal(web->found_trust, SHA("b"));
    assert_string_equal(web->delivered_leaf, SHA("c"));
    assert_string_equal(web->delivered_trust, SHA("d"));
    assert_true(web->leaf_proven);
    assert_false(web->trust_proven);
    assert_string_equal(web->served_leaf, SHA("e"));
    assert_string_equal(web->words, "connection refused");
    assert_int_equal(ca->state, CR_SIDECAR_DELIVERED);
    assert_string_equal(ca->found_leaf, "");
    assert_string_equal(ca->delivered_trust, SHA("1"));
    assert_true(ca->trust_proven);
    assert_string_equal(ca->served_leaf, "");
}

static void test_what_is_no_such_page_is_refused_as_a_whole(void **state)
{
    (void)state;
    static const char no_page[] = "it is not a sidecar's page of version sidecar.certroll.dev/v1";
    static const struct {
        const char *rule, *text, *says;
    } cases[] = {
        {"no JSON", "<html>", "it is not JSON"},
        {"nothing", "", "it is not JSON"},
        {"an array", "[]", no_page},
        {"another version", "{\"apiVersion\": \"sidecar.certroll.dev/v2\", \"materials\": []}", no_page},
        {"no version", "{\"materials\": []}", no_page},
        {"no materials", "{\"apiVersion\": \"sidecar.certroll.dev/v1\"}", no_page},
        {"materials that are no list", HEAD "{}}", no_page},
        {"a material that is none", HEAD "[7]}", no_page},
        {"no name", HEAD "[{\"state\": \"Pending\"}]}", no_page},
        {"a long name", HEAD "[{\"name\": \"" SHA("n") "\", \"state\": \"Pending\"}]}", no_page},
        {"no state", HEAD "[{\"name\": \"web\"}]}", no_page},
        {"another state", HEAD "[{\"name\": \"web\", \"state\": \"Fine\"}]}", no_page},
        {"a digest in capitals", ONE(", \"found\": {\"leaf\": \"" SHA("A") "\"}"), no_page},
        {"a short digest", ONE(", \"found\": {\"leaf\": \"abc\"}"), no_page},
        {"a digest that is a number", ONE(", \"found\": {\"leaf\": 7}"), no_page},
        {"found that is none", ONE(", \"found\": \"x\""), no_page},
        {"delivered that is none", ONE(", \"delivered\": []"), no_page},
        {"served that is none", ONE(", \"served\": 1"), no_page},
        {"a proof that is a word", ONE(", \"delivered\": {\"leafProven\": \"true\"}"), no_page},
        {"a message that is none", ONE(", \"message\": {}"), no_page},
        {"the second material", HEAD "[{\"name\": \"a\", \"state\": \"Pending\"}, {\"name\": \"b\"}]}", no_page},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
        if (read_page(cases[i].text, &seen, &err) || seen.read || seen.len || seen.entries)
            fail_msg("%s: accepted", cases[i].rule);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!cr_streq(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].rule, err.text);
    }
}

static char *page_of(size_t materials)
{
    char *text = cr_strdup(HEAD "[");
    for (size_t i = 0; i < materials; i++) {
        char *more = cr_asprintf("%s%s{\"name\": \"m%zu\", \"state\": \"Pending\"}", text, i ? ", " : "", i);
        free(text);
        text = more;
    }
    char *whole = cr_asprintf("%s]}", text);
    free(text);
    return whole;
}

static void test_more_than_is_kept_is_refused(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    cr_autofree char *most = page_of(CR_SIDECAR_ENTRIES_MAX);
    assert_true(read_page(most, &seen, &err));
    assert_int_equal(seen.len, CR_SIDECAR_ENTRIES_MAX);
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting none = {0};
    cr_autofree char *more = page_of(CR_SIDECAR_ENTRIES_MAX + 1);
    assert_false(read_page(more, &none, &err));
    assert_string_equal(err.text, "it has more materials than are looked at");

    char *long_page = cr_malloc(CR_SIDECAR_PAGE_MAX + 2);
    memset(long_page, ' ', CR_SIDECAR_PAGE_MAX + 1);
    long_page[CR_SIDECAR_PAGE_MAX + 1] = '\0';
    struct cr_error longer = {0};
    assert_false(read_page(long_page, &none, &longer));
    assert_string_equal(longer.text, "it is longer than a sidecar's page can be");
    free(long_page);
}

static void test_words_of_a_pod_are_harmless(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    assert_true(read_page(ONE(", \"message\": \"two\\nlines, a \\u001b[31mcolour, caf\\u00e9\""), &seen, &err));
    assert_string_equal(seen.entries[0].words, "two.lines, a .[31mcolour, caf.");
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting cut = {0};
    assert_true(read_page(ONE(", \"message\": \"" SHA("x") SHA("y") SHA("z") "\""), &cut, &err));
    assert_int_equal(strlen(cut.entries[0].words), CR_SIGHTING_WORDS - 1);
}

static void test_a_copy_is_its_own(void **state)
{
    (void)state;
    struct cr_error err = {0};
    struct cr_sidecar_sighting seen = {.at_ms = 7};
    assert_true(read_page(ONE(""), &seen, &err));
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting copy;
    cr_sidecar_sighting_copy(&copy, &seen);
    cr_sidecar_sighting_dispose(&seen);
    assert_int_equal(copy.at_ms, 7);
    assert_true(copy.read);
    assert_string_equal(copy.entries[0].name, "web");
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting empty;
    cr_sidecar_sighting_copy(&empty, &seen);
    assert_int_equal(empty.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_page),
        cmocka_unit_test(test_what_is_no_such_page_is_refused_as_a_whole),
        cmocka_unit_test(test_more_than_is_kept_is_refused),
        cmocka_unit_test(test_words_of_a_pod_are_harmless),
        cmocka_unit_test(test_a_copy_is_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
