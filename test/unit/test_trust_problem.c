/* Reasons why something is not published: each has a name, and a sentence that names the object and what to do. */
#include "api/trust_problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

static void each_name_is_its_own_and_is_read_again(void **state)
{
    (void)state;
    for (int i = CR_TRUST_FINE + 1; i < CR_TRUST_REASONS; i++) {
        enum cr_trust_reason again = CR_TRUST_FINE;
        const char *name = cr_trust_reason_name((enum cr_trust_reason)i);
        assert_true(name[0] >= 'A' && name[0] <= 'Z' && !strpbrk(name, " -_"));
        assert_true(cr_trust_reason_parse(name, &again));
        assert_int_equal(again, i);
    }
    enum cr_trust_reason kept = CR_TRUST_NO_CA;
    static const char *const others[] = {"", "Foo", "notours", NULL};
    for (size_t i = 0; i < cr_array_len(others); i++)
        assert_false(cr_trust_reason_parse(others[i], &kept));
    assert_int_equal(kept, CR_TRUST_NO_CA);
    assert_string_equal(cr_trust_reason_name(CR_TRUST_FINE), "");
    assert_string_equal(cr_trust_reason_name(CR_TRUST_REASONS), "");
}

static void what_is_wrong_with_material_has_the_same_name_here(void **state)
{
    (void)state;
    for (int i = CR_MATERIAL_OK; i <= CR_MATERIAL_TOO_COSTLY; i++) {
        enum cr_material_problem problem = (enum cr_material_problem)i;
        assert_string_equal(cr_trust_reason_name(cr_trust_reason_of_material(problem)),
                            cr_material_problem_name(problem));
    }
}

static void only_what_belongs_to_others_is_foreign(void **state)
{
    (void)state;
    for (int i = CR_TRUST_FINE; i < CR_TRUST_REASONS; i++)
        assert_int_equal(cr_trust_is_foreign((enum cr_trust_reason)i),
                         i == CR_TRUST_NOT_OURS || i == CR_TRUST_OTHER_DOMAIN);
}

static void each_sentence_names_the_object_and_what_to_do(void **state)
{
    (void)state;
    static const struct cr_trust_about about = {.object = "Secret shop/web",
                                                .owner = "shop/other",
                                                .wanted = "shop/mesh",
                                                .detail = "the API server's words",
                                                .ca = "CN=new",
                                                .leaf = "Secret shop/api",
                                                .client = "OpenSSL",
                                                .component = "trust-domains"};
    static const struct {
        enum cr_trust_reason reason;
        const char *words[3];
    } cases[] = {
        {CR_TRUST_NOT_OURS, {"Secret shop/web", "certroll.dev/trust-domain: shop/mesh"}},
        {CR_TRUST_OTHER_DOMAIN, {"Secret shop/web", "'shop/other'", "change it to shop/mesh"}},
        {CR_TRUST_TARGET_IS_SOURCE, {"Secret shop/web", "spec.secretSelector"}},
        {CR_TRUST_IMMUTABLE, {"Secret shop/web", "publish under another name"}},
        {CR_TRUST_FORBIDDEN, {"the API server's words", "manifests/components/trust-domains"}},
        {CR_TRUST_SOURCE_UNUSABLE, {"Secret shop/web", "the API server's words"}},
        {CR_TRUST_NEEDS_ISSUER, {"'CN=new' is no root", "OpenSSL", "in Secret shop/web"}},
        {CR_TRUST_WOULD_CUT_OFF, {"Secret shop/web keeps its bundle", "OpenSSL", "the leaf of Secret shop/api"}},
        {CR_TRUST_BUNDLE_TOO_COSTLY, {"Secret shop/web keeps every CA", "stand behind them"}},
        {CR_TRUST_INVALID, {"the API server's words"}},
        {CR_TRUST_NO_CA, {"the API server's words"}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_trust_problem_text(cases[i].reason, &about);
        for (size_t k = 0; k < cr_array_len(cases[i].words) && cases[i].words[k]; k++)
            if (!strstr(text, cases[i].words[k]))
                fail_msg("%s: '%s' without '%s'", cr_trust_reason_name(cases[i].reason), text, cases[i].words[k]);
    }
}

/* Who knows less says less, and nothing that is not so. */
static void without_a_component_or_a_leaf_the_detail_stands_alone(void **state)
{
    (void)state;
    static const enum cr_trust_reason reasons[] = {CR_TRUST_FORBIDDEN, CR_TRUST_WOULD_CUT_OFF};
    for (size_t i = 0; i < cr_array_len(reasons); i++) {
        cr_autofree char *text = cr_trust_problem_text(reasons[i], &(struct cr_trust_about){.detail = "no"});
        assert_string_equal(text, "no");
    }
}

/* Who reads a reason in a status finds it in the runbook. */
static void each_reason_is_in_the_runbook(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    FILE *file = fopen(CERTROLL_SOURCE_DIR "/docs/operations.md", "re");
    assert_non_null(file);
    char part[4096];
    for (size_t len; (len = fread(part, 1, sizeof part, file)) > 0;)
        assert_true(cr_buf_append(&page, part, len));
    (void)fclose(file);
    const char *from = strstr(cr_buf_text(&page), "### Why something is not published");
    assert_non_null(from);
    for (int i = CR_TRUST_FINE + 1; i < CR_TRUST_REASONS; i++) {
        cr_autofree char *name = cr_asprintf("`%s`", cr_trust_reason_name((enum cr_trust_reason)i));
        if (!strstr(from, name))
            fail_msg("%s", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_is_its_own_and_is_read_again),
        cmocka_unit_test(what_is_wrong_with_material_has_the_same_name_here),
        cmocka_unit_test(only_what_belongs_to_others_is_foreign),
        cmocka_unit_test(each_sentence_names_the_object_and_what_to_do),
        cmocka_unit_test(each_reason_is_in_the_runbook),
        cmocka_unit_test(without_a_component_or_a_leaf_the_detail_stands_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
