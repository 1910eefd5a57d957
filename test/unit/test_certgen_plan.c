#include "certgen/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/leaf.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

enum { A, B, HMAC, SECRETS };

static const char set_text[] = "commonName: shop\n"
                               "secrets:\n"
                               "- {name: a, dnsNames: [a.shop]}\n"
                               "- {name: b, dnsNames: [b.shop]}\n"
                               "- {name: hmac, opaque: {key: k}}\n";

/* A generation of the set's CA. */
struct generation {
    struct cr_private_key *key;
    struct cr_authority *authority;
};

struct scene {
    struct cr_certgen_set *set;
    struct generation cas[4];
    struct cr_certgen_found found[SECRETS];
    const char *rotation;
    struct cr_certgen_plan plan;
    struct cr_error err;
};

static int set_up(void **state)
{
    struct scene *s = cr_new(struct scene);
    const struct cr_certgen_place place = {.ns = "shop", .cluster_domain = "cluster.local"};
    s->set = cr_certgen_set_read("shop", set_text, strlen(set_text), &place, &s->err);
    assert_non_null(s->set);
    for (size_t i = 0; i < cr_array_len(s->cas); i++) {
        s->cas[i].authority = cr_certgen_authority_new(s->set, cr_clock_wall_ms(), &s->cas[i].key, &s->err);
        assert_non_null(s->cas[i].authority);
    }
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    for (size_t i = 0; i < cr_array_len(s->cas); i++) {
        cr_authority_free(s->cas[i].authority);
        cr_private_key_free(s->cas[i].key);
    }
    for (size_t i = 0; i < SECRETS; i++)
        cr_certgen_found_dispose(&s->found[i]);
    cr_certgen_plan_dispose(&s->plan);
    cr_certgen_set_free(s->set);
    free(s);
    return 0;
}

static void put(struct cr_certgen_found *found, int entry, const char *text)
{
    cr_buf_reset(&found->data[entry]);
    cr_buf_puts(&found->data[entry], text);
    found->found = true;
}

/* cas: digits, the generations in ca.crt; "" leaves it out. */
static void publish(struct scene *s, size_t secret, int generation, const char *cas)
{
    CR_CLEANUP(cr_certgen_leaf) struct cr_certgen_leaf leaf = {0};
    assert_true(cr_certgen_leaf_issue(s->set, &s->set->secrets[secret], s->cas[generation].authority,
                                      cr_clock_wall_ms(), &leaf, &s->err));
    put(&s->found[secret], CR_CERTGEN_DATA_CERTIFICATE, leaf.certificate);
    put(&s->found[secret], CR_CERTGEN_DATA_PRIVATE_KEY, leaf.key.data);
    CR_CLEANUP(cr_buf) struct cr_buf trust = CR_BUF_INIT(0);
    for (const char *c = cas; *c; c++)
        cr_buf_puts(&trust, cr_authority_certificate(s->cas[*c - '0'].authority));
    if (trust.len)
        put(&s->found[secret], CR_CERTGEN_DATA_TRUST, trust.data);
}

/* authority: a generation, or -1 for none. */
static bool try_plan(struct scene *s, int authority, bool overwrite)
{
    cr_certgen_plan_dispose(&s->plan);
    const struct cr_certgen_question question = {
        .set = s->set,
        .found = s->found,
        .overwrite = overwrite,
        .rotation = s->rotation,
        .authority = authority < 0 ? NULL : cr_authority_certificate(s->cas[authority].authority),
        .now_ms = cr_clock_wall_ms(),
    };
    return cr_certgen_plan_make(&question, &s->plan, &s->err);
}

static void plan(struct scene *s, int authority, bool overwrite)
{
    if (!try_plan(s, authority, overwrite))
        fail_msg("%s", s->err.text);
}

/* "T.": of a the bundle is written; "L": the leaf; "O": the opaque entry. Secrets in their order. */
static void expect_tasks(const struct scene *s, const char *want)
{
    char got[32] = "";
    for (size_t i = 0; i < s->plan.len; i++) {
        const struct cr_certgen_task *task = &s->plan.tasks[i];
        strcat(got, i ? " " : "");
        strcat(got, task->trust ? "T" : "");
        strcat(got, task->leaf ? "L" : "");
        strcat(got, task->opaque ? "O" : "");
        strcat(got, !task->trust && !task->leaf && !task->opaque ? "-" : "");
    }
    assert_string_equal(got, want);
}

static void expect_bundle(const struct scene *s, const char *cas)
{
    CR_CLEANUP(cr_buf) struct cr_buf want = CR_BUF_INIT(0);
    for (const char *c = cas; *c; c++)
        cr_buf_puts(&want, cr_authority_certificate(s->cas[*c - '0'].authority));
    assert_non_null(s->plan.bundle);
    assert_string_equal(s->plan.bundle, want.data);
}

static void expect_warning(const struct scene *s, const char *words)
{
    cr_autofree char *all = cr_strvec_join(&s->plan.warnings, "\n");
    if (words ? !strstr(all, words) : s->plan.warnings.len > 0)
        fail_msg("want a warning with \"%s\", got: %s", cr_or_empty(words), all);
}

/* What is there in the beginning, what is asked, and what is to be done. */
static void the_rules(void **state)
{
    static const struct {
        const char *rule;
        int leaf_a, leaf_b; /* generation; -1: the Secret is not there */
        const char *trust_a, *trust_b;
        bool hmac, overwrite;
        int authority;
        bool needs_authority;
        const char *tasks, *bundle;
    } cases[] = {
        {"nothing is there", -1, -1, "", "", false, false, -1, true, "L L O", NULL},
        {"and a CA is made", -1, -1, "", "", false, false, 1, false, "L L O", "1"},
        {"what is there is left alone", 0, 0, "0", "0", true, false, -1, false, "- - -", NULL},
        {"an opaque entry needs no CA", 0, 0, "0", "0", false, false, -1, false, "- - O", NULL},
        {"a missing leaf needs another CA", 0, -1, "0", "", true, false, -1, true, "- L -", NULL},
        {"and all must trust it", 0, -1, "0", "", true, false, 1, false, "T L -", "10"},
        {"made, it is done", 0, 1, "10", "10", true, false, 1, false, "- - -", "10"},
        {"overwrite needs a CA", 0, 0, "0", "0", true, true, -1, true, "L L -", NULL},
        {"overwrite: trust and leaves, no opaque entry", 0, 0, "0", "0", true, true, 1, false, "TL TL -", "10"},
        {"trust is published", 0, 0, "10", "10", true, true, 1, false, "L L -", "10"},
        {"one leaf is published", 1, 0, "10", "10", true, true, 1, false, "- L -", "10"},
        {"overwritten", 1, 1, "10", "10", true, true, 1, false, "- - -", "10"},
        {"the CA before the previous one goes", 1, 1, "10", "10", true, true, 2, false, "TL TL -", "21"},
        {"killed between two leaves: both CAs stay", 1, 0, "10", "10", true, true, 2, false, "TL TL -", "210"},
        {"killed between two bundles", 0, 0, "10", "0", true, true, 2, false, "TL TL -", "20"},
        {"a bundle does not shrink in a run", 2, 2, "210", "210", true, true, 2, false, "- - -", "21"},
        {"a Secret without ca.crt", 0, 0, "", "0", true, true, 1, false, "TL TL -", "10"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct scene *s = *state;
        for (size_t k = 0; k < SECRETS; k++)
            cr_certgen_found_dispose(&s->found[k]);
        if (cases[i].leaf_a >= 0)
            publish(s, A, cases[i].leaf_a, cases[i].trust_a);
        if (cases[i].leaf_b >= 0)
            publish(s, B, cases[i].leaf_b, cases[i].trust_b);
        s->found[HMAC].found = s->found[HMAC].has_opaque = cases[i].hmac;
        print_message("%s\n", cases[i].rule);
        plan(s, cases[i].authority, cases[i].overwrite);
        expect_tasks(s, cases[i].tasks);
        assert_int_equal(s->plan.needs_authority, cases[i].needs_authority);
        if (cases[i].bundle)
            expect_bundle(s, cases[i].bundle);
        else
            assert_null(s->plan.bundle);
        expect_warning(s, NULL);
    }
}

/* Of two leaves, what a run of the same rotation has left: pods may present the CA 0 until they have read the Secrets.
 */
static void what_a_rotation_has_issued_stays(void **state)
{
    static const struct {
        int leaf_b;
        const char *issued_a, *issued_b; /* the rotation; NULL: none is on record */
        int authority;
        const char *tasks, *bundle;
    } cases[] = {
        {1, "now", "now", -1, "- - -", NULL},
        {0, "now", NULL, 2, "T TL -", "210"},
        {1, "before", "before", 2, "TL TL -", "21"},
        {1, NULL, NULL, 2, "TL TL -", "21"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct scene *s = *state;
        publish(s, A, 1, "10");
        publish(s, B, cases[i].leaf_b, "10");
        cr_strset(&s->found[A].rotation, cases[i].issued_a);
        cr_strset(&s->found[B].rotation, cases[i].issued_b);
        s->found[HMAC].found = s->found[HMAC].has_opaque = true;
        s->rotation = "now";
        plan(s, cases[i].authority, true);
        expect_tasks(s, cases[i].tasks);
        assert_false(s->plan.needs_authority);
        if (cases[i].bundle)
            expect_bundle(s, cases[i].bundle);
    }
}

static void a_set_that_does_not_fit_together_is_reported(void **state)
{
    struct scene *s = *state;
    publish(s, A, 1, "10");
    publish(s, B, 0, "0");
    s->found[HMAC].found = s->found[HMAC].has_opaque = true;
    plan(s, -1, false);
    expect_tasks(s, "- - -");
    expect_warning(s, "the leaf in Secret a is not trusted by ca.crt of Secret b; --overwrite mends that");
}

/* Nothing can keep it trusted, and it must not keep the rotation from being done. */
static void a_leaf_without_its_ca_is_replaced_and_reported(void **state)
{
    struct scene *s = *state;
    publish(s, A, 3, "0");
    publish(s, B, 0, "0");
    s->found[HMAC].found = s->found[HMAC].has_opaque = true;
    plan(s, 1, true);
    expect_tasks(s, "TL TL -");
    expect_bundle(s, "10");
    expect_warning(s, "Secret a: its leaf verifies against no CA of the set");
}

static void what_cannot_be_read_is_replaced_and_reported(void **state)
{
    struct scene *s = *state;
    publish(s, A, 0, "0");
    publish(s, B, 0, "0");
    put(&s->found[B], CR_CERTGEN_DATA_TRUST, "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n");
    put(&s->found[B], CR_CERTGEN_DATA_PRIVATE_KEY, "none");
    s->found[HMAC].found = s->found[HMAC].has_opaque = true;
    plan(s, 1, true);
    expect_tasks(s, "TL TL -");
    expect_bundle(s, "10");
    expect_warning(s, "Secret b: ca.crt");
    expect_warning(s, "Secret b: tls.key");
}

/* Made empty by a person, or by a copy that went wrong: it is left alone, but not in silence. */
static void a_secret_without_a_leaf_is_reported(void **state)
{
    struct scene *s = *state;
    publish(s, A, 0, "0");
    s->found[B].found = true;
    s->found[HMAC].found = s->found[HMAC].has_opaque = true;
    plan(s, -1, false);
    expect_tasks(s, "- - -");
    expect_warning(s, "Secret b: there is no leaf in it; --overwrite makes another");
    plan(s, 1, true);
    expect_tasks(s, "TL TL -");
}

static void what_somebody_else_writes_is_refused(void **state)
{
    struct scene *s = *state;
    publish(s, A, 0, "0");
    publish(s, B, 0, "0");
    s->found[A].owner = cr_strdup("cert-manager's Certificate a");
    s->found[HMAC].found = s->found[HMAC].has_opaque = true;
    plan(s, -1, false); /* left alone, its owner does not matter */
    assert_false(try_plan(s, 1, true));
    assert_int_equal(s->err.kind, CR_ERR_INVALID);
    assert_string_equal(s->err.text, "NotOurs: Secret a is not written: it belongs to cert-manager's Certificate a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_rules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_rotation_has_issued_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_set_that_does_not_fit_together_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_leaf_without_its_ca_is_replaced_and_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_replaced_and_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_secret_without_a_leaf_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_somebody_else_writes_is_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
