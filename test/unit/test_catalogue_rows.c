/* The built-in catalogue against test/testdata/catalogue-rows.txt, which was written by hand from the sources: each row
 * is in the catalogue, and the catalogue has no other. */
#include "catalogue/catalogue_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

#define ROWS CERTROLL_SOURCE_DIR "/test/testdata/catalogue-rows.txt"

/* --- the list --- */

static void read_list(struct cr_strvec *out)
{
    FILE *file = fopen(ROWS, "re");
    assert_non_null(file);
    char line[4096];
    while (fgets(line, sizeof line, file)) {
        size_t len = strcspn(line, "\n");
        assert_int_equal(line[len], '\n'); /* whole lines only */
        line[len] = '\0';
        if (len && line[0] != '#' && !cr_strvec_add_unique(out, line))
            fail_msg("the list has this row twice: %s", line);
    }
    assert_int_equal(fclose(file), 0);
}

/* --- the catalogue as rows --- */

static void put_list(struct cr_buf *buf, const struct cr_strvec *list, const char *before)
{
    for (size_t i = 0; i < list->len; i++)
        cr_buf_printf(buf, "%s%s", i ? ", " : before, list->items[i]);
}

static void put_parameters(struct cr_buf *buf, const struct cr_use *use)
{
    const struct cr_strvec *lists[] = {&use->flags, &use->env, &use->config, &use->paths};
    size_t start = buf->len;
    for (size_t i = 0; i < cr_array_len(lists); i++)
        put_list(buf, lists[i], buf->len > start ? ", " : "");
    if (buf->len == start)
        cr_buf_puts(buf, "-");
}

static void put_roles(struct cr_buf *buf, unsigned roles)
{
    const char *separator = "";
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++) {
        if (!(roles & CR_ROLE_BIT(role)))
            continue;
        cr_buf_printf(buf, "%s%s", separator, cr_role_name((enum cr_role)role));
        separator = "+";
    }
}

static void put_versions(struct cr_buf *buf, const struct cr_version_range *range)
{
    static const char *const operators[] = {
        [CR_VERSION_GE] = ">=", [CR_VERSION_GT] = ">", [CR_VERSION_LE] = "<=", [CR_VERSION_LT] = "<"};
    for (size_t i = 0; i < range->len; i++) {
        const int *part = range->items[i].version.part;
        cr_buf_printf(buf, "%s%s%d.%d.%d", i ? "," : "", operators[range->items[i].op], part[0], part[1], part[2]);
    }
}

static void put_condition(struct cr_buf *buf, const struct cr_rule *rule)
{
    size_t start = buf->len;
    if (rule->has_versions)
        put_versions(buf, &rule->versions);
    put_list(buf, &rule->tags, buf->len > start ? " tags " : "tags ");
    put_list(buf, &rule->mentions, buf->len > start ? " mentions " : "mentions ");
    put_list(buf, &rule->pod_mentions, buf->len > start ? " podMentions " : "podMentions ");
    put_list(buf, &rule->settings, buf->len > start ? " setting " : "setting ");
    if (buf->len == start)
        cr_buf_puts(buf, "otherwise");
}

static void put_head(struct cr_buf *buf, const struct cr_component *component, const struct cr_use *use)
{
    cr_buf_printf(buf, "%s | %s | ", component->name, component->distribution);
    put_parameters(buf, use);
    cr_buf_puts(buf, " | ");
    put_roles(buf, use->roles);
}

static void add_row(struct cr_strvec *out, const struct cr_component *component, const struct cr_use *use,
                    const struct cr_rule *rule)
{
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    put_head(&buf, component, use);
    cr_buf_puts(&buf, " | ");
    put_condition(&buf, rule);
    char delay[CR_TIME_TEXT] = "-";
    if (rule->max_delay_ms)
        cr_duration_format(rule->max_delay_ms, delay);
    cr_buf_printf(&buf, " | %s | %s | %s | %s", cr_method_name(rule->method), delay,
                  rule->trigger ? rule->trigger : "-", cr_confidence_names[rule->confidence]);
    if (!cr_strvec_add_unique(out, cr_buf_text(&buf)))
        fail_msg("the catalogue has this row twice: %s", cr_buf_text(&buf));
}

static void add_hands_on(struct cr_strvec *out, const struct cr_component *component, const struct cr_use *use)
{
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    put_head(&buf, component, use);
    cr_buf_puts(&buf, " | - | HandsOn | - | - | -");
    cr_strvec_add(out, cr_buf_text(&buf));
}

static void list_component(struct cr_strvec *out, const struct cr_component *component)
{
    for (size_t i = 0; i < component->uses_len; i++) {
        const struct cr_use *use = &component->uses[i];
        for (size_t k = 0; k < use->rules_len; k++)
            add_row(out, component, use, &use->rules[k]);
        if (use->hands_on)
            add_hands_on(out, component, use);
    }
}

/* The list writes versions as people do; the catalogue's are compared in full. */
static void spell_versions_out(const char *row, struct cr_buf *out)
{
    for (const char *p = row; *p;) {
        struct cr_version_range range;
        size_t len = strspn(p, "<>=.,0123456789");
        cr_autofree char *word = cr_strndup(p, len);
        struct cr_error err = {0};
        bool begins = p == row || p[-1] == ' ';
        if (begins && (*p == '<' || *p == '>') && cr_version_range_parse(word, &range, &err)) {
            put_versions(out, &range);
            p += len;
        } else {
            cr_buf_printf(out, "%c", *p++);
        }
    }
}

static void test_the_catalogue_has_the_rows_of_the_list_and_no_other(void **state)
{
    (void)state;
    CR_CLEANUP(cr_strvec) struct cr_strvec list = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec rows = {0};
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    if (!catalogue)
        fail_msg("%s", err.text);
    read_list(&list);
    for (size_t i = 0; i < catalogue->len; i++)
        list_component(&rows, &catalogue->items[i]);
    CR_CLEANUP(cr_strvec) struct cr_strvec wanted = {0};
    for (size_t i = 0; i < list.len; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf row = CR_BUF_INIT(0);
        spell_versions_out(list.items[i], &row);
        cr_strvec_add(&wanted, cr_buf_text(&row));
    }
    int wrong = 0;
    for (size_t i = 0; i < wanted.len; i++)
        if (!cr_strvec_has(&rows, wanted.items[i]) && ++wrong)
            print_error("missing: %s\n", wanted.items[i]);
    for (size_t i = 0; i < rows.len; i++)
        if (!cr_strvec_has(&wanted, rows.items[i]) && ++wrong)
            print_error("not in the list: %s\n", rows.items[i]);
    assert_int_equal(wrong, 0);
    assert_int_equal(rows.len, list.len);
}

/* Whoever reads the table must find why a claim is made. */
static void test_every_row_has_a_source_and_every_image_one_entry(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    assert_non_null(catalogue);
    CR_CLEANUP(cr_strvec) struct cr_strvec images = {0};
    for (size_t i = 0; i < catalogue->len; i++) {
        const struct cr_component *component = &catalogue->items[i];
        for (size_t k = 0; k < component->images.len; k++)
            if (!cr_strvec_add_unique(&images, component->images.items[k]))
                fail_msg("%s: two entries have the image %s", component->name, component->images.items[k]);
        for (size_t k = 0; k < component->uses_len; k++)
            for (size_t n = 0; n < component->uses[k].rules_len; n++)
                assert_true(strlen(component->uses[k].rules[n].source) > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_catalogue_has_the_rows_of_the_list_and_no_other),
        cmocka_unit_test(test_every_row_has_a_source_and_every_image_one_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
