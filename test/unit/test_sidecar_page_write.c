/* What the sidecar writes is what the operator reads. */
#include "sidecar/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "codec/json.h"
#include "evidence/sidecar_page.h"

static void fill(char out[CR_SHA256_HEX], char letter)
{
    memset(out, letter, CR_SHA256_HEX - 1);
}

static struct cr_sidecar_view view_of(const char *name)
{
    struct cr_sidecar_view view = {.name = name, .delivery = {.state = CR_DELIVERY_FAILING}};
    struct cr_delivery *d = &view.delivery;
    fill(d->found.leaf, 'a');
    fill(d->found.trust, 'b');
    fill(d->found.chain, 'c');
    fill(d->delivered.leaf, 'd');
    fill(d->delivered.trust, 'e');
    fill(d->served, 'f');
    d->found_ms = 1795324889212;
    d->delivered_ms = 1795324889212 - 60000;
    d->served_ms = d->found_ms;
    d->leaf_proven = true;
    d->attempts = 3;
    memcpy(d->words, "a \"trigger\" failed", sizeof "a \"trigger\" failed");
    return view;
}

static void every_field_is_where_the_contract_has_it(void **state)
{
    (void)state;
    const struct cr_sidecar_view view = view_of("web");
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_sidecar_page_write(&view, 1, 1795324889212, &text);
    CR_CLEANUP(cr_json) struct cr_json *page = cr_json_parse(cr_buf_text(&text), text.len, &err);
    assert_non_null(page);
    assert_string_equal(cr_json_string_at(page, "apiVersion"), "sidecar.certroll.dev/v1");
    assert_string_equal(cr_json_string_at(page, "startedAt"), "2026-11-22T05:21:29Z");
    const struct cr_json *entry = cr_json_first(cr_json_get(page, "materials"));
    assert_string_equal(cr_json_string_at(entry, "name"), "web");
    assert_string_equal(cr_json_string_at(entry, "state"), "Failing");
    assert_string_equal(cr_json_string_at(entry, "found", "leaf"), view.delivery.found.leaf);
    assert_string_equal(cr_json_string_at(entry, "found", "trust"), view.delivery.found.trust);
    assert_string_equal(cr_json_string_at(entry, "found", "at"), "2026-11-22T05:21:29Z");
    assert_string_equal(cr_json_string_at(entry, "delivered", "leaf"), view.delivery.delivered.leaf);
    assert_string_equal(cr_json_string_at(entry, "delivered", "at"), "2026-11-22T05:20:29Z");
    assert_true(cr_json_bool_at(entry, false, "delivered", "leafProven"));
    assert_false(cr_json_bool_at(entry, true, "delivered", "trustProven"));
    assert_string_equal(cr_json_string_at(entry, "served", "leaf"), view.delivery.served);
    assert_int_equal(cr_json_int_at(entry, 0, "attempts"), 3);
    assert_string_equal(cr_json_string_at(entry, "message"), "a \"trigger\" failed");
}

static void the_operator_reads_it(void **state)
{
    (void)state;
    const struct cr_sidecar_view views[] = {view_of("web"), {.name = "new", .delivery = {.took_ms = -1}}};
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_sidecar_page_write(views, cr_array_len(views), 1795324889212, &text);
    if (!cr_sidecar_page_read(cr_buf_text(&text), text.len, &seen, &err))
        fail_msg("%s", err.text);
    assert_int_equal(seen.len, 2);
    const struct cr_sidecar_entry *web = &seen.entries[0];
    assert_string_equal(web->found_leaf, views[0].delivery.found.leaf);
    assert_string_equal(web->found_trust, views[0].delivery.found.trust);
    assert_string_equal(web->delivered_leaf, views[0].delivery.delivered.leaf);
    assert_string_equal(web->delivered_trust, views[0].delivery.delivered.trust);
    assert_string_equal(web->served_leaf, views[0].delivery.served);
    assert_true(web->leaf_proven);
    assert_false(web->trust_proven);
    assert_string_equal(seen.entries[1].found_leaf, "");
    assert_string_equal(seen.entries[1].delivered_leaf, "");
}

static void what_was_told_and_refused_since_is_not_delivered(void **state)
{
    (void)state;
    static const struct {
        enum cr_delivery_state state;
        bool unsure, shown;
    } cases[] = {
        {CR_DELIVERY_REFUSED, true, false},
        {CR_DELIVERY_REFUSED, false, true},
        {CR_DELIVERY_FAILING, true, true}, /* not at rest: nobody takes it for what the program has now */
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_sidecar_view view = view_of("web");
        view.delivery.state = cases[i].state;
        view.delivery.unsure = cases[i].unsure;
        CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        cr_sidecar_page_write(&view, 1, 1795324889212, &text);
        assert_true(cr_sidecar_page_read(cr_buf_text(&text), text.len, &seen, NULL));
        assert_string_equal(seen.entries[0].delivered_leaf, cases[i].shown ? view.delivery.delivered.leaf : "");
        assert_string_equal(seen.entries[0].delivered_trust, cases[i].shown ? view.delivery.delivered.trust : "");
        assert_int_equal(seen.entries[0].leaf_proven, cases[i].shown);
        assert_string_equal(seen.entries[0].found_leaf, view.delivery.found.leaf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_where_the_contract_has_it),
        cmocka_unit_test(the_operator_reads_it),
        cmocka_unit_test(what_was_told_and_refused_since_is_not_delivered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
