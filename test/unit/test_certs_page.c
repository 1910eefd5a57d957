#include "evidence/certs_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/strings.h"

/* As Envoy 1.40 says it, cut to what is read and what must not matter. */
static const char envoy[] =
    "{\"certificates\":["
    "{\"ca_cert\":[{\"path\":\"/certs/ca.crt\",\"serial_number\":\"0a1b\",\"subject_alt_names\":[],"
    "\"days_until_expiration\":\"9\",\"valid_from\":\"2026-11-21T00:00:00Z\"},"
    "{\"path\":\"/certs/ca.crt\",\"serial_number\":\"ABCD\"}],"
    "\"cert_chain\":[{\"path\":\"/certs/tls.crt\",\"serial_number\":\"00\",\"ocsp_details\":{}}]},"
    "{\"ca_cert\":[],\"cert_chain\":[{\"path\":\"<inline>\",\"serial_number\":\"ff\"}]},"
    "{\"ca_cert\":[{\"path\":\"<inline>\",\"serial_number\":\"1\"}]}]}";

static bool read_page(const char *text, struct cr_trust_sighting *out, struct cr_error *err)
{
    *out = (struct cr_trust_sighting){0};
    return cr_certs_page_read(text, strlen(text), out, err);
}

static void assert_serials(const struct cr_strvec *serials, const char *expected)
{
    cr_autofree char *joined = cr_strvec_join(serials, ",");
    assert_string_equal(joined, expected);
}

static void the_page_of_envoy_is_read(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
    if (!read_page(envoy, &seen, &err))
        fail_msg("%s", err.text);
    assert_true(seen.page_read);
    assert_int_equal(seen.contexts_len, 3);
    assert_serials(&seen.contexts[0].cas, "a1b,abcd");
    assert_serials(&seen.contexts[0].leaves, "0");
    assert_string_equal(seen.contexts[0].ca_path, "/certs/ca.crt");
    assert_serials(&seen.contexts[1].cas, "");
    assert_serials(&seen.contexts[1].leaves, "ff");
    assert_null(seen.contexts[1].ca_path);
    assert_serials(&seen.contexts[2].cas, "1");
    assert_serials(&seen.contexts[2].leaves, "");
    assert_null(seen.contexts[2].ca_path);
}

static void a_page_without_certificates_is_one(void **state)
{
    static const char *const pages[] = {"{}", "{\"certificates\":[]}"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(pages); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        assert_true(read_page(pages[i], &seen, &err));
        assert_true(seen.page_read);
        assert_int_equal(seen.contexts_len, 0);
    }
}

/* A page that is half understood could be taken as proof of what it does not show. */
static void what_is_no_such_page_is_refused_as_a_whole(void **state)
{
    static const struct {
        const char *page;
        const char *words;
    } cases[] = {
        {"", "it is not JSON"},
        {"<html>admin</html>", "it is not JSON"},
        {"{\"certificates\":[", "it is not JSON"},
        {"[]", "it is not a page of certificates"},
        {"\"certificates\"", "it is not a page of certificates"},
        {"{\"certificates\":{}}", "it is not a page of certificates"},
        {"{\"certificates\":[7]}", "it is not a page of certificates"},
        {"{\"certificates\":[{\"ca_cert\":{}}]}", "it is not a page of certificates"},
        {"{\"certificates\":[{\"ca_cert\":[{}]}]}", "it is not a page of certificates"},
        {"{\"certificates\":[{\"ca_cert\":[{\"serial_number\":\"\"}]}]}", "it is not a page of certificates"},
        {"{\"certificates\":[{\"ca_cert\":[{\"serial_number\":12}]}]}", "it is not a page of certificates"},
        {"{\"certificates\":[{\"ca_cert\":[{\"serial_number\":\"1\"}]},"
         "{\"cert_chain\":[{\"serial_number\":\"0x1\"}]}]}",
         "it is not a page of certificates"},
        {"{\"certificates\":[{\"cert_chain\":[{\"serial_number\":\"12345678901234567890123456789012345678901\"}]}]}",
         "it is not a page of certificates"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        if (read_page(cases[i].page, &seen, &err) || !strstr(err.text, cases[i].words))
            fail_msg("'%s': '%s'", cases[i].page, err.text);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_false(seen.page_read);
        assert_int_equal(seen.contexts_len, 0);
    }
}

/* count contexts with so many CAs each; alike: the same in all. Owned text. */
static char *page_of(size_t count, size_t cas, bool alike)
{
    struct cr_buf text = {0};
    cr_buf_puts(&text, "{\"certificates\":[");
    for (size_t i = 0; i < count; i++) {
        cr_buf_printf(&text, "%s{\"ca_cert\":[", i ? "," : "");
        for (size_t c = 0; c < cas; c++)
            cr_buf_printf(&text, "%s{\"serial_number\":\"%zx\"}", c ? "," : "", alike ? c : i * cas + c);
        cr_buf_puts(&text, "]}");
    }
    cr_buf_puts(&text, "]}");
    return cr_buf_steal(&text);
}

static void what_is_kept_has_bounds_and_alike_ones_are_kept_once(void **state)
{
    static const struct {
        const char *rule;
        size_t count, cas;
        bool alike;
        size_t kept; /* 0: refused */
    } cases[] = {
        {"as many contexts as are kept", CR_CERTS_CONTEXTS_MAX, 1, false, CR_CERTS_CONTEXTS_MAX},
        {"one more", CR_CERTS_CONTEXTS_MAX + 1, 1, false, 0},
        {"a gateway with a thousand upstreams of one CA", 1000, 2, true, 1},
        {"as many serial numbers as are kept", 1, CR_CERTS_SERIALS_MAX, false, 1},
        {"one more in a context", 1, CR_CERTS_SERIALS_MAX + 1, false, 0},
        {"too many in all", 2, CR_CERTS_SERIALS_MAX - 1, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        cr_autofree char *text = page_of(cases[i].count, cases[i].cas, cases[i].alike);
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        bool read = read_page(text, &seen, &err);
        if (read != (cases[i].kept != 0) || seen.contexts_len != cases[i].kept)
            fail_msg("%s: %zu kept, '%s'", cases[i].rule, seen.contexts_len, err.text);
        if (!read)
            assert_string_equal(err.text, "it has more certificates than are looked at");
    }
}

/* Two bytes of text could become 144 of memory. */
static void a_page_of_more_json_values_than_are_read_is_refused(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, "{\"x\":[0");
    for (int i = 3; i < CR_CERTS_VALUES_MAX; i++)
        cr_buf_puts(&text, ",0");
    cr_buf_puts(&text, "]}");
    for (int more = 0; more < 2; more++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        bool read = read_page(text.data, &seen, &err);
        assert_int_equal(read, !more);
        assert_string_equal(err.text, more ? "it has more than 40000 JSON values" : "");
        cr_buf_cut(&text, text.len - 2);
        cr_buf_puts(&text, ",0]}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_of_envoy_is_read),
        cmocka_unit_test(a_page_without_certificates_is_one),
        cmocka_unit_test(what_is_no_such_page_is_refused_as_a_whole),
        cmocka_unit_test(a_page_of_more_json_values_than_are_read_is_refused),
        cmocka_unit_test(what_is_kept_has_bounds_and_alike_ones_are_kept_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
