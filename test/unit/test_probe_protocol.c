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
#include "support/checkoutfile.h"

static void each_has_a_word_and_what_is_none_has_not(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CR_PROBE_PROTOCOLS; i++)
        assert_true(*cr_probe_protocol_name((enum cr_probe_protocol)i));
    assert_string_equal(cr_probe_protocol_name(CR_PROBE_PROTOCOLS), "");
    assert_string_equal(cr_probe_protocol_name((enum cr_probe_protocol) - 1), "");
}

static void the_crd_allows_these(void **state)
{
    (void)state;
    static const char field[] = "protocol: &protocol\n";
    cr_autofree char *crd = test_checkout_file("crds/certroll.dev_certrotationpolicies.yaml");
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
    cr_autofree char *page = test_checkout_file("docs/sidecar.md");
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
