#include "inspect.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

enum { COLUMNS = 7, GAP = 2 };

/* A table whose columns are as wide as what is in them. */
struct table {
    char *(*rows)[COLUMNS]; /* owned, each cell */
    size_t len;
};

static void table_dispose(struct table *table)
{
    for (size_t i = 0; i < table->len; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            free(table->rows[i][c]);
    free(table->rows);
}
CR_DEFINE_DISPOSE(table, struct table, table_dispose)

/* Takes the cells; those that are not given are empty. */
static void add_row(struct table *table, char *const cells[COLUMNS])
{
    table->rows = cr_reallocarray(table->rows, table->len + 1, sizeof *table->rows);
    for (size_t c = 0; c < COLUMNS; c++)
        table->rows[table->len][c] = cells[c] ? cells[c] : cr_strdup("");
    table->len++;
}

static void print_table(const struct table *table, FILE *out)
{
    size_t width[COLUMNS] = {0};
    for (size_t i = 0; i < table->len; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            width[c] = strlen(table->rows[i][c]) > width[c] ? strlen(table->rows[i][c]) : width[c];
    for (size_t i = 0; i < table->len; i++) {
        size_t last = COLUMNS - 1;
        while (last > 0 && !*table->rows[i][last])
            last--;
        for (size_t c = 0; c < last; c++)
            fprintf(out, "%-*s", (int)(width[c] ? width[c] + GAP : 0), table->rows[i][c]);
        fprintf(out, "%s\n", table->rows[i][last]);
    }
}

/* "3d", "-2h": people want to know how long, not when. Owned. */
static char *duration(int64_t end_ms, int64_t now_ms)
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{INT64_C(86400000), "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}};
    int64_t left_ms = end_ms - now_ms;
    int64_t size_ms = left_ms < 0 ? -left_ms : left_ms;
    size_t i = 0;
    while (i + 1 < cr_array_len(units) && size_ms < 2 * units[i].ms)
        i++;
    return end_ms ? cr_asprintf("%lld%s", (long long)(left_ms / units[i].ms), units[i].name) : cr_strdup("-");
}

static void print_components(const struct cr_node_report *report, int64_t now_ms, FILE *out)
{
    CR_CLEANUP(table) struct table table = {0};
    add_row(&table, (char *[COLUMNS]){cr_strdup("COMPONENT"), cr_strdup("VERSION"), cr_strdup("RUNS FOR"),
                                      cr_strdup("HEALTH"), cr_strdup("RESTART"), NULL, NULL});
    for (size_t i = 0; i < report->components_len; i++) {
        const struct cr_node_component *one = &report->components[i];
        char *age = one->running && one->started_ms ? duration(now_ms, one->started_ms) : cr_strdup("-");
        add_row(&table,
                (char *[COLUMNS]){cr_strdup(one->name), cr_strdup(one->version ? one->version : "-"), age,
                                  cr_asprintf("%s%s%s", cr_node_health_name(one->health),
                                              one->health_message ? ": " : "", cr_or_empty(one->health_message)),
                                  one->restart ? cr_strdup(one->restart)
                                               : cr_asprintf("no: %s", cr_or_empty(one->restart_refused)),
                                  NULL, NULL});
    }
    print_table(&table, out);
}

/* Where it is, or why it is nowhere. Owned. */
static char *place_of(const struct cr_node_file *file)
{
    const char *mark = file->signs_and_trusts ? " (signs and is trusted)"
                       : file->alone          ? " (mounted alone)"
                       : file->own            ? " (its own)"
                                              : "";
    return cr_asprintf("%s%s%s%s", file->path ? file->path : cr_or_empty(file->place), mark, file->problem ? ": " : "",
                       cr_or_empty(file->problem));
}

static void print_files(const struct cr_node_report *report, int64_t now_ms, FILE *out)
{
    CR_CLEANUP(table) struct table table = {0};
    add_row(&table,
            (char *[COLUMNS]){cr_strdup("COMPONENT"), cr_strdup("PARAMETER"), cr_strdup("ROLE"), cr_strdup("METHOD"),
                              cr_strdup("LOADED"), cr_strdup("ENDS IN"), cr_strdup("FILE")});
    for (size_t i = 0; i < report->files_len; i++) {
        const struct cr_node_file *one = &report->files[i];
        const char *evidence = one->evidence == CR_NODE_EVIDENCE_VERIFIED ? ", seen" : "";
        add_row(&table,
                (char *[COLUMNS]){cr_strdup(one->component),
                                  cr_asprintf("%s%s%s", cr_or_empty(one->via), one->via ? " " : "", one->parameter),
                                  cr_strdup(cr_role_name(one->role)), cr_strdup(cr_method_name(one->method)),
                                  cr_asprintf("%s%s", cr_node_loaded_name(one->loaded), evidence),
                                  duration(one->not_after_ms, now_ms), place_of(one)});
    }
    print_table(&table, out);
}

static void print_others(const struct cr_node_report *report, int64_t now_ms, FILE *out)
{
    for (size_t i = 0; i < report->cas_len; i++) {
        cr_autofree char *rest = duration(report->cas[i].not_after_ms, now_ms);
        fprintf(out, "CA %.16s… %s, ends in %s\n", report->cas[i].fingerprint, cr_or_empty(report->cas[i].subject),
                rest);
    }
    for (size_t i = 0; i < report->tokens_len; i++)
        fprintf(out, "tokens of pods signed by key %.16s…: %lld\n", report->tokens[i].key ? report->tokens[i].key : "?",
                (long long)report->tokens[i].tokens);
    for (size_t i = 0; i < report->troubles.len; i++)
        fprintf(out, "trouble: %s\n", report->troubles.items[i]);
}

void inspect_print(const struct cr_node_report *report, int64_t now_ms, FILE *out)
{
    print_components(report, now_ms, out);
    fputc('\n', out);
    print_files(report, now_ms, out);
    fputc('\n', out);
    print_others(report, now_ms, out);
}

void inspect_print_json(const struct cr_node_report *report, FILE *out)
{
    CR_CLEANUP(cr_json) struct cr_json *status = cr_node_report_encode_status(report);
    cr_autofree char *text = cr_json_print(status);
    fprintf(out, "%s\n", text);
}
