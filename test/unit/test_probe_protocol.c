#include "base/probe_protocol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"

static void each_has_a_word_and_what_is_none_has_not(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CR_PROBE_PROTOCOLS; i++)
        assert_true(*cr_probe_protocol_name((enum cr_probe_protocol)i));
    assert_string_equal(cr_probe_protocol_name(CR_PROBE_PROTOCOLS), "");
    assert_string_equal(cr_probe_protocol_name((enum cr_probe_protocol) - 1), "");
}

/* Owned. path: below the top of the checkout. */
static char *read_page(const char *path)
{
    enum { MOST = 1024 * 1024 };
    cr_autofree char *whole = cr_asprintf("%s/%s", CERTROLL_SOURCE_DIR, path);
    FILE *file = fopen(whole, "re");
    assert_non_null(file);
    char *page = cr_calloc(1, MOST);
    assert_true(fread(page, 1, MOST - 1, file) > 0 && feof(file));
    assert_int_equal(fclose(file), 0);
    return page;
}

static void the_crd_allows_these(void **state)
{
    (void)state;
    static const char field[] = "protocol: &protocol\n";
    cr_autofree char *crd = read_page("crds/certroll.dev_certrotationpolicies.yaml");
    CR_CLEANUP(cr_buf) struct cr_buf list = CR_BUF_INIT(0);
    for (unsigned i = 0; i < CR_PROBE_PROTOCOLS; i++)
        cr_buf_printf(&list, "%s%s", i ? ", " : "enum: [", cr_probe_protocol_names[i]);
    cr_buf_puts(&list, "]\n");
    const char *schema = strstr(crd, field);
    assert_non_null(schema);
    const char *words = strstr(schema, "enum: [");
    assert_non_null(words);
    if (strncmp(words, list.data, list.len) != 0)
        fail_msg("verify.protocol of the CRD is not %s", list.data);
}

/* Of the file that the sidecar reads, which has no schema. */
static void the_sidecar_s_page_names_these(void **state)
{
    (void)state;
    cr_autofree char *page = read_page("docs/sidecar.md");
    CR_CLEANUP(cr_buf) struct cr_buf list = CR_BUF_INIT(0);
    for (unsigned i = 0; i < CR_PROBE_PROTOCOLS; i++)
        cr_buf_printf(&list, "%s`%s`",
                      !i                            ? "`protocol`: "
                      : i + 1 == CR_PROBE_PROTOCOLS ? " or "
                                                    : ", ",
                      cr_probe_protocol_names[i]);
    cr_buf_puts(&list, ". ");
    if (!strstr(page, list.data))
        fail_msg("docs/sidecar.md does not say %s", list.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_word_and_what_is_none_has_not),
        cmocka_unit_test(the_crd_allows_these),
        cmocka_unit_test(the_sidecar_s_page_names_these),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
