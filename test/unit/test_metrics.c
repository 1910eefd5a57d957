#include "metrics/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "metrics/process_metrics.h"

#define TAIL                                                                                                           \
    "# HELP certroll_metrics_dropped_updates_total Updates dropped because a metric has too many series.\n"            \
    "# TYPE certroll_metrics_dropped_updates_total counter\n"                                                          \
    "certroll_metrics_dropped_updates_total 0\n"

/* --- a strict reader of the format, written from its specification and not from the code under test --- */

struct page {
    char family[128];
    char type[16];
    struct cr_strvec families;
    struct cr_strvec samples; /* name and labels of each */
    double last_bucket;
    double last_bound;
    char last_bucket_of[512];
};

static void page_cleanup(struct page *p)
{
    cr_strvec_dispose(&p->families);
    cr_strvec_dispose(&p->samples);
}

static size_t name_len(const char *s, bool colon)
{
    size_t n = 0;
    for (; (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') || s[n] == '_' || (colon && s[n] == ':') ||
           (n && s[n] >= '0' && s[n] <= '9');
         n++)
        continue;
    return n;
}

/* Behind the closing quote, or NULL. */
static const char *read_value(const char *s)
{
    if (*s++ != '"')
        return NULL;
    for (; *s && *s != '"'; s++) {
        if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7E)
            return NULL;
        if (*s == '\\' && !strchr("\\\"n", *++s))
            return NULL;
    }
    return *s == '"' ? s + 1 : NULL;
}

/* Behind the closing brace, or NULL. le receives the bound of a bucket, rest the other labels. */
static const char *read_labels(const char *s, char *le, struct cr_buf *rest)
{
    for (s++; *s != '}';) {
        size_t n = name_len(s, false);
        const char *value = s + n + 1;
        const char *end = n && s[n] == '=' ? read_value(value) : NULL;
        if (!end)
            return NULL;
        if (n == 2 && memcmp(s, "le", 2) == 0)
            snprintf(le, 40, "%.*s", (int)(end - value - 2), value + 1);
        else
            cr_buf_printf(rest, "%.*s,", (int)(end - s), s);
        s = end;
        if (*s == ',' && s[1] != '}')
            s++;
        else if (*s != '}')
            return NULL;
    }
    return s + 1;
}

static bool suffix_allowed(const struct page *p, const char *suffix)
{
    if (strcmp(p->type, "histogram") != 0)
        return !*suffix;
    return cr_streq(suffix, "_bucket") || cr_streq(suffix, "_sum") || cr_streq(suffix, "_count");
}

/* Buckets of one series stand together, bounds and counts ascend, +Inf equals _count. */
static void check_bucket(struct page *p, const char *suffix, const char *rest, const char *le, double value)
{
    double bound = strtod(le, NULL);
    if (cr_streq(suffix, "_bucket")) {
        bool first = strcmp(p->last_bucket_of, rest) != 0 || isinf(p->last_bound);
        assert_true(*le != '\0');
        assert_true(first || (bound > p->last_bound && value >= p->last_bucket));
        snprintf(p->last_bucket_of, sizeof p->last_bucket_of, "%s", rest);
        p->last_bound = bound;
        p->last_bucket = value;
    } else {
        assert_string_equal(le, "");
        assert_true(isinf(p->last_bound));
        assert_string_equal(p->last_bucket_of, rest);
        if (cr_streq(suffix, "_count"))
            assert_true(value == p->last_bucket);
    }
}

static void read_sample(struct page *p, const char *line)
{
    char le[40] = "";
    CR_CLEANUP(cr_buf) struct cr_buf rest = {0};
    size_t n = name_len(line, true);
    if (!n || !cr_starts_with(line, p->family))
        fail_msg("sample outside of its family %s: %s", p->family, line);
    cr_autofree char *suffix = cr_strndup(line + strlen(p->family), n - strlen(p->family));
    if (!suffix_allowed(p, suffix))
        fail_msg("suffix: %s", line);
    const char *end = line[n] == '{' ? read_labels(line + n, le, &rest) : line + n;
    if (!end || *end != ' ')
        fail_msg("labels: %s", line);
    cr_autofree char *key = cr_strndup(line, (size_t)(end - line));
    if (!cr_strvec_add_unique(&p->samples, key))
        fail_msg("twice: %s", line);
    char *stop;
    double value = strtod(end + 1, &stop);
    if (stop == end + 1 || *stop)
        fail_msg("value: %s", line);
    if (cr_streq(p->type, "histogram"))
        check_bucket(p, suffix, cr_buf_text(&rest), le, value);
}

static void read_help(struct page *p, const char *line)
{
    const char *name = line + strlen("# HELP ");
    size_t n = name_len(name, true);
    assert_true(n && name[n] == ' ');
    snprintf(p->family, sizeof p->family, "%.*s", (int)n, name);
    p->type[0] = '\0';
    if (!cr_strvec_add_unique(&p->families, p->family))
        fail_msg("two HELP lines for %s", p->family);
    for (const char *c = name + n; *c; c++)
        if (*c == '\\' && *++c != '\\' && *c != 'n')
            fail_msg("escape in: %s", line);
}

static void read_type(struct page *p, const char *line)
{
    char name[128];
    assert_int_equal(sscanf(line, "# TYPE %127s %15s", name, p->type), 2);
    assert_string_equal(name, p->family);
    assert_true(cr_streq(p->type, "counter") || cr_streq(p->type, "gauge") || cr_streq(p->type, "histogram"));
    p->last_bucket_of[0] = '\0';
    p->last_bound = INFINITY;
}

static void check_page(const char *text)
{
    __attribute__((cleanup(page_cleanup))) struct page p = {0};
    assert_true(cr_ends_with(text, "\n"));
    cr_autofree char *copy = cr_strdup(text);
    char *save = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (cr_starts_with(line, "# HELP "))
            read_help(&p, line);
        else if (cr_starts_with(line, "# TYPE "))
            read_type(&p, line);
        else if (*line == '#' || !*p.type)
            fail_msg("unexpected line: %s", line);
        else
            read_sample(&p, line);
    }
}

static char *written(struct cr_metrics *metrics)
{
    struct cr_buf out = {0};
    cr_metrics_write(metrics, &out);
    char *text = cr_buf_steal(&out);
    check_page(text);
    return text;
}

/* --- tests --- */

static void an_empty_registry_says_only_that_nothing_was_dropped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, TAIL);
    cr_metrics_free(NULL);
}

static void metrics_are_ordered_by_name_and_series_by_labels(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *b = cr_metrics_gauge(metrics, "b_seconds", "B.", NULL);
    struct cr_metric *a = cr_metrics_counter(metrics, "a_total", "A.", CR_LABELS("x", "y"));
    cr_metric_add(a, CR_LABELS("2", "1"), 1);
    cr_metric_add(a, CR_LABELS("1", "2"), 2);
    cr_metric_add(a, CR_LABELS("1", "1"), 3);
    cr_metric_add(a, CR_LABELS("2", "1"), 0.5);
    cr_metric_set(b, NULL, 7);
    cr_metric_add(b, NULL, -10);
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, "# HELP a_total A.\n# TYPE a_total counter\n"
                              "a_total{x=\"1\",y=\"1\"} 3\na_total{x=\"1\",y=\"2\"} 2\na_total{x=\"2\",y=\"1\"} 1.5\n"
                              "# HELP b_seconds B.\n# TYPE b_seconds gauge\nb_seconds -3\n" TAIL);
    cr_autofree char *again = written(metrics);
    assert_string_equal(again, text);
}

static void a_metric_without_labels_is_shown_from_the_start(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const double bounds[] = {1};
    cr_metrics_counter(metrics, "a_total", "A.", NULL);
    cr_metrics_counter(metrics, "b_total", "B.", CR_LABELS("x"));
    cr_metrics_histogram(metrics, "c_seconds", "C.", NULL, bounds, 1);
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, "# HELP a_total A.\n# TYPE a_total counter\na_total 0\n"
                              "# HELP b_total B.\n# TYPE b_total counter\n"
                              "# HELP c_seconds C.\n# TYPE c_seconds histogram\n"
                              "c_seconds_bucket{le=\"1\"} 0\nc_seconds_bucket{le=\"+Inf\"} 0\n"
                              "c_seconds_sum 0\nc_seconds_count 0\n" TAIL);
}

static void histograms_cumulate_and_end_in_inf(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const double bounds[] = {0.005, 0.1, 2.5};
    struct cr_metric *h = cr_metrics_histogram(metrics, "h_seconds", "H.", CR_LABELS("op"), bounds, 3);
    static const double values[] = {0.001, 0.005 /* a bound belongs to its bucket */, 0.05, 2.5, 100};
    for (size_t i = 0; i < cr_array_len(values); i++)
        cr_metric_observe(h, CR_LABELS("get"), values[i]);
    cr_metric_observe(h, CR_LABELS("get"), (double)NAN);
    cr_metric_observe(h, CR_LABELS("list"), 0.0625);
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, "# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
                              "h_seconds_bucket{op=\"get\",le=\"0.005\"} 2\n"
                              "h_seconds_bucket{op=\"get\",le=\"0.1\"} 3\n"
                              "h_seconds_bucket{op=\"get\",le=\"2.5\"} 4\n"
                              "h_seconds_bucket{op=\"get\",le=\"+Inf\"} 5\n"
                              "h_seconds_sum{op=\"get\"} 102.556\n"
                              "h_seconds_count{op=\"get\"} 5\n"
                              "h_seconds_bucket{op=\"list\",le=\"0.005\"} 0\n"
                              "h_seconds_bucket{op=\"list\",le=\"0.1\"} 1\n"
                              "h_seconds_bucket{op=\"list\",le=\"2.5\"} 1\n"
                              "h_seconds_bucket{op=\"list\",le=\"+Inf\"} 1\n"
                              "h_seconds_sum{op=\"list\"} 0.0625\n"
                              "h_seconds_count{op=\"list\"} 1\n" TAIL);
}

static void values_and_help_are_escaped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_gauge(metrics, "m", "One\\two\nthree \"four\".", CR_LABELS("x"));
    cr_metric_set(m, CR_LABELS("a\\b\"c\nd"), 1);
    cr_metric_set(m, CR_LABELS("\xFF\xC3\xA9\r\x01"), 2);
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, "# HELP m One\\\\two\\nthree \"four\".\n# TYPE m gauge\n"
                              "m{x=\"?????\"} 2\nm{x=\"a\\\\b\\\"c\\nd\"} 1\n" TAIL);
}

static void values_that_look_alike_when_joined_are_apart(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("a", "b"));
    cr_metric_add(m, CR_LABELS("x\",b=\"y", ""), 1);
    cr_metric_add(m, CR_LABELS("x", "y"), 2);
    cr_autofree char *text = written(metrics);
    assert_non_null(strstr(text, "m_total{a=\"x\",b=\"y\"} 2\n"));
    assert_non_null(strstr(text, "m_total{a=\"x\\\",b=\\\"y\",b=\"\"} 1\n"));
}

static void numbers_are_short_and_exact(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1.0 / 3, "0.3333333333333333"},
                 {1795241421.123, "1795241421.123"},
                 {9007199254740992, "9007199254740992"},
                 {1e300, "1e+300"},
                 {-0.25, "-0.25"},
                 {(double)INFINITY, "+Inf"},
                 {-(double)INFINITY, "-Inf"}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
        cr_metric_set(cr_metrics_gauge(metrics, "m", "M.", NULL), NULL, cases[i].value);
        cr_autofree char *text = written(metrics);
        cr_autofree char *want = cr_asprintf("\nm %s\n", cases[i].text);
        if (!strstr(text, want))
            fail_msg("want %s in %s", want, text);
    }
}

static void updates_of_the_wrong_kind_are_ignored(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const double bounds[] = {1};
    struct cr_metric *c = cr_metrics_counter(metrics, "c_total", "C.", NULL);
    struct cr_metric *g = cr_metrics_gauge(metrics, "g", "G.", NULL);
    struct cr_metric *h = cr_metrics_histogram(metrics, "h", "H.", NULL, bounds, 1);
    cr_autofree char *before = written(metrics);
    cr_metric_set(c, NULL, 5);
    cr_metric_observe(c, NULL, 5);
    cr_metric_add(c, NULL, -1);
    cr_metric_add(c, NULL, (double)NAN);
    cr_metric_observe(g, NULL, 5);
    cr_metric_add(h, NULL, 5);
    cr_metric_set(h, NULL, 5);
    cr_metric_add(NULL, NULL, 1);
    cr_metric_set(NULL, CR_LABELS("x"), 1);
    cr_metric_observe(NULL, NULL, 1);
    cr_metric_remove(NULL, NULL);
    cr_autofree char *after = written(metrics);
    assert_string_equal(before, after);
}

static void missing_values_are_empty(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("a", "b"));
    cr_metric_add(m, CR_LABELS("x"), 1);
    cr_metric_add(m, NULL, 1);
    cr_autofree char *text = written(metrics);
    assert_non_null(strstr(text, "m_total{a=\"\",b=\"\"} 1\nm_total{a=\"x\",b=\"\"} 1\n"));
}

static void a_removed_series_is_gone(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_gauge(metrics, "m", "M.", CR_LABELS("policy"));
    cr_metric_set(m, CR_LABELS("a"), 1);
    cr_metric_set(m, CR_LABELS("b"), 2);
    cr_metric_remove(m, CR_LABELS("a"));
    cr_metric_remove(m, CR_LABELS("never"));
    cr_autofree char *text = written(metrics);
    assert_null(strstr(text, "policy=\"a\""));
    assert_non_null(strstr(text, "m{policy=\"b\"} 2\n"));
}

static void series_are_capped_and_the_rest_is_counted(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("n"));
    struct cr_metric *other = cr_metrics_counter(metrics, "other_total", "O.", CR_LABELS("n"));
    for (int i = 0; i < CR_METRICS_MAX_SERIES + 3; i++) {
        cr_autofree char *n = cr_asprintf("%d", i);
        cr_metric_add(m, CR_LABELS(n), 1);
    }
    cr_metric_add(m, CR_LABELS("0"), 1);     /* a series that is there goes on */
    cr_metric_add(other, CR_LABELS("x"), 1); /* as does another metric */
    struct cr_buf out = {0};
    cr_metrics_write(metrics, &out);
    cr_autofree char *text = cr_buf_steal(&out);
    assert_non_null(strstr(text, "certroll_metrics_dropped_updates_total 3\n"));
    assert_non_null(strstr(text, "m_total{n=\"0\"} 2\n"));
    assert_non_null(strstr(text, "m_total{n=\"19999\"} 1\n"));
    assert_null(strstr(text, "m_total{n=\"20000\"}"));
    assert_non_null(strstr(text, "other_total{n=\"x\"} 1\n"));
    cr_metric_remove(m, CR_LABELS("0"));
    cr_metric_add(m, CR_LABELS("20000"), 1);
    out = (struct cr_buf){0};
    cr_metrics_write(metrics, &out);
    cr_autofree char *later = cr_buf_steal(&out);
    assert_non_null(strstr(later, "m_total{n=\"20000\"} 1\n"));
}

static void count_page(void *arg)
{
    cr_metric_add(arg, NULL, 1);
}

static void collectors_are_asked_before_each_page(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    cr_metrics_collect(metrics, count_page, cr_metrics_counter(metrics, "pages_total", "P.", NULL));
    cr_metrics_collect(NULL, count_page, NULL);
    cr_autofree char *first = written(metrics);
    assert_non_null(strstr(first, "pages_total 1\n"));
    cr_autofree char *second = written(metrics);
    assert_non_null(strstr(second, "pages_total 2\n"));
}

static void labels_longer_than_any_room_on_the_stack_are_whole(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_gauge(metrics, "m", "M.", CR_LABELS("a", "b", "c"));
    for (size_t len = 200; len <= CR_METRICS_MAX_VALUE; len++) { /* each end of the room, and of the first memory */
        char value[CR_METRICS_MAX_VALUE + 1] = "";
        memset(value, '"', len);
        value[len] = '\0';
        cr_metric_set(m, CR_LABELS("x", value, "y"), (double)len);
        cr_autofree char *text = written(metrics);
        assert_int_equal(strlen(strstr(text, "m{")), strlen("m{a=\"x\",b=\"\",c=\"y\"} 200\n" TAIL) + 2 * len);
        cr_metric_remove(m, CR_LABELS("x", value, "y"));
        cr_autofree char *without = written(metrics);
        assert_null(strstr(without, "m{"));
    }
}

static double value_of(const char *page, const char *name)
{
    cr_autofree char *head = cr_asprintf("\n%s ", name);
    const char *at = strstr(page, head);
    return at ? strtod(at + strlen(head), NULL) : -1;
}

static void the_process_is_described_as_prometheus_clients_do(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_process_metrics) struct cr_process_metrics *process = cr_process_metrics_new(metrics);
    cr_autofree char *before = written(metrics);
    int more[2];
    assert_int_equal(pipe(more), 0);
    cr_autofree char *page = written(metrics);
    close(more[0]);
    close(more[1]);
    assert_true(value_of(page, "process_open_fds") == value_of(before, "process_open_fds") + 2);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(value_of(page, "process_max_fds") == (double)limit.rlim_cur);
    assert_true(value_of(page, "process_resident_memory_bytes") > 1e6);
    assert_true(value_of(page, "process_virtual_memory_bytes") > value_of(page, "process_resident_memory_bytes"));
    double started = value_of(page, "process_start_time_seconds");
    double now = (double)time(NULL);
    assert_true(started > now - 3600 && started <= now + 1);
    double cpu = value_of(page, "process_cpu_seconds_total");
    assert_true(cpu >= 0 && cpu < 3600);
}

static void long_values_are_cut(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("x"));
    char value[1000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    cr_metric_add(m, CR_LABELS(value), 1);
    cr_autofree char *text = written(metrics);
    value[CR_METRICS_MAX_VALUE] = '\0';
    cr_autofree char *want = cr_asprintf("m_total{x=\"%s\"} 1\n", value);
    assert_non_null(strstr(text, want));
}

static void a_registration_against_the_rules_gives_a_no_op(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const double falling[] = {2, 1};
    const double endless[] = {1, (double)INFINITY};
    assert_null(cr_metrics_counter(NULL, "m_total", "M.", NULL));
    assert_null(cr_metrics_counter(metrics, "", "M.", NULL));
    assert_null(cr_metrics_counter(metrics, "1m", "M.", NULL));
    assert_null(cr_metrics_counter(metrics, "m-n", "M.", NULL));
    assert_null(cr_metrics_counter(metrics, "m", "M.", CR_LABELS("a:b")));
    assert_null(cr_metrics_counter(metrics, "m", "M.", CR_LABELS("__a")));
    assert_null(cr_metrics_counter(metrics, "m", "M.", CR_LABELS("le")));
    assert_null(cr_metrics_counter(metrics, "m", "M.", CR_LABELS("a", "b", "c", "d", "e", "f", "g")));
    assert_null(cr_metrics_histogram(metrics, "m", "M.", NULL, falling, 2));
    assert_null(cr_metrics_histogram(metrics, "m", "M.", NULL, endless, 2));
    cr_autofree char *text = written(metrics);
    assert_string_equal(text, TAIL);
}

static void the_same_metric_may_be_registered_twice_but_no_other_of_its_name(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    struct cr_metric *m = cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("a"));
    assert_ptr_equal(cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("a")), m);
    assert_null(cr_metrics_gauge(metrics, "m_total", "M.", CR_LABELS("a")));
    assert_null(cr_metrics_counter(metrics, "m_total", "M.", CR_LABELS("b")));
    assert_null(cr_metrics_counter(metrics, "m_total", "M.", NULL));
}

struct load {
    struct cr_metrics *metrics;
    struct cr_metric *counter, *histogram;
};

static void *hammer(void *arg)
{
    struct load *load = arg;
    for (int i = 0; i < 500; i++) {
        cr_metric_add(load->counter, CR_LABELS(i % 2 ? "odd" : "even"), 1);
        cr_metric_observe(load->histogram, NULL, i);
        if (i % 100 == 0) {
            CR_CLEANUP(cr_buf) struct cr_buf out = {0};
            cr_metrics_write(load->metrics, &out);
        }
    }
    return NULL;
}

static void many_threads_lose_no_update(void **state)
{
    (void)state;
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const double bounds[] = {10, 100};
    struct load load = {metrics, cr_metrics_counter(metrics, "c_total", "C.", CR_LABELS("n")),
                        cr_metrics_histogram(metrics, "h", "H.", NULL, bounds, 2)};
    pthread_t threads[4];
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &load), 0);
    for (size_t i = 0; i < cr_array_len(threads); i++)
        pthread_join(threads[i], NULL);
    cr_autofree char *text = written(metrics);
    assert_non_null(strstr(text, "c_total{n=\"even\"} 1000\nc_total{n=\"odd\"} 1000\n"));
    assert_non_null(strstr(text, "h_bucket{le=\"+Inf\"} 2000\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_registry_says_only_that_nothing_was_dropped),
        cmocka_unit_test(metrics_are_ordered_by_name_and_series_by_labels),
        cmocka_unit_test(a_metric_without_labels_is_shown_from_the_start),
        cmocka_unit_test(histograms_cumulate_and_end_in_inf),
        cmocka_unit_test(values_and_help_are_escaped),
        cmocka_unit_test(values_that_look_alike_when_joined_are_apart),
        cmocka_unit_test(numbers_are_short_and_exact),
        cmocka_unit_test(updates_of_the_wrong_kind_are_ignored),
        cmocka_unit_test(missing_values_are_empty),
        cmocka_unit_test(a_removed_series_is_gone),
        cmocka_unit_test(series_are_capped_and_the_rest_is_counted),
        cmocka_unit_test(collectors_are_asked_before_each_page),
        cmocka_unit_test(labels_longer_than_any_room_on_the_stack_are_whole),
        cmocka_unit_test(the_process_is_described_as_prometheus_clients_do),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(a_registration_against_the_rules_gives_a_no_op),
        cmocka_unit_test(the_same_metric_may_be_registered_twice_but_no_other_of_its_name),
        cmocka_unit_test(many_threads_lose_no_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
