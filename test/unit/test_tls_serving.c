#include "net/tls_serving.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "support/testcerts.h"

enum { PATIENCE_MS = 30 * 1000 };

/* --- flags --- */

static void files_go_together(void **state)
{
    static const struct {
        struct cr_tls_files files;
        const char *flags;
        const char *error; /* NULL: none */
    } cases[] = {
        {{0}, "--", NULL},
        {{"a", "b", NULL}, "--", NULL},
        {{"a", "b", "c"}, "--metrics-", NULL},
        {{"a", NULL, NULL}, "--metrics-", "--metrics-tls-cert-file needs --metrics-tls-private-key-file, its key"},
        {{NULL, "b", NULL}, "--", "--tls-private-key-file needs --tls-cert-file, its certificate"},
        {{NULL, "b", "c"}, "--", "--tls-private-key-file needs --tls-cert-file, its certificate"},
        {{NULL, NULL, "c"}, "--metrics-", "--metrics-client-ca-file needs --metrics-tls-cert-file"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        bool ok = cr_tls_files_check(&cases[i].files, cases[i].flags, &err);
        assert_int_equal(ok, cases[i].error == NULL);
        if (!ok) {
            assert_int_equal(err.kind, CR_ERR_INVALID);
            if (!cr_starts_with(err.text, cases[i].error))
                fail_msg("%s", err.text);
        }
    }
}

/* --- what is logged --- */

/* The files as a kubelet has them: all change at one moment. */
struct fixture {
    char *folder, *certificate, *private_key, *client_ca, *log;
    int versions;
    int stderr_fd; /* where it went before */
    struct test_cert *ca, *leaf;
    struct cr_metrics *metrics;
    struct cr_tls_serving *serving;
};

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *version_path(const struct fixture *f, int version, const char *name)
{
    return cr_asprintf("%s/%d/%s", f->folder, version, name);
}

static void put_version(struct fixture *f, const char *certificate, const char *private_key, const char *client_ca)
{
    const char *const names[] = {"", "tls.crt", "tls.key", "ca.crt"};
    const char *const texts[] = {NULL, certificate, private_key, client_ca};
    f->versions++;
    for (size_t i = 0; i < cr_array_len(names); i++) {
        cr_autofree char *path = version_path(f, f->versions, names[i]);
        if (texts[i])
            put_file(path, texts[i]);
        else
            assert_int_equal(mkdir(path, 0700), 0);
    }
    cr_autofree char *target = cr_asprintf("%d", f->versions);
    cr_autofree char *beside = cr_asprintf("%s/..data_tmp", f->folder);
    cr_autofree char *data = cr_asprintf("%s/..data", f->folder);
    assert_int_equal(symlink(target, beside), 0);
    assert_int_equal(rename(beside, data), 0);
}

static void remove_versions(const struct fixture *f)
{
    const char *const names[] = {"tls.crt", "tls.key", "ca.crt", ""};
    for (int version = 1; version <= f->versions; version++) {
        for (size_t i = 0; i < cr_array_len(names); i++) {
            cr_autofree char *path = version_path(f, version, names[i]);
            (void)remove(path);
        }
    }
    cr_autofree char *data = cr_asprintf("%s/..data", f->folder);
    unlink(data);
}

static int set_up(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    f->folder = cr_strdup("/tmp/certroll-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->certificate = cr_asprintf("%s/..data/tls.crt", f->folder);
    f->private_key = cr_asprintf("%s/..data/tls.key", f->folder);
    f->client_ca = cr_asprintf("%s/..data/ca.crt", f->folder);
    f->log = cr_asprintf("%s/log", f->folder);
    f->ca = test_cert_new(&(struct test_cert_spec){.cn = "CA", .ca = true});
    f->leaf = test_cert_new(&(struct test_cert_spec){.cn = "one", .issuer = f->ca});
    put_version(f, f->leaf->cert_pem, f->leaf->key_pem, f->ca->cert_pem);
    f->metrics = cr_metrics_new();
    f->stderr_fd = dup(STDERR_FILENO);
    int log = open(f->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(log >= 0 && dup2(log, STDERR_FILENO) >= 0);
    close(log);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    cr_tls_serving_free(f->serving);
    dup2(f->stderr_fd, STDERR_FILENO);
    close(f->stderr_fd);
    cr_metrics_free(f->metrics);
    test_cert_free(f->ca);
    test_cert_free(f->leaf);
    remove_versions(f);
    unlink(f->log);
    assert_int_equal(rmdir(f->folder), 0);
    free(f->certificate);
    free(f->private_key);
    free(f->client_ca);
    free(f->log);
    free(f->folder);
    free(f);
    return 0;
}

static void serve(struct fixture *f)
{
    const struct cr_tls_files files = {f->certificate, f->private_key, f->client_ca};
    struct cr_error err = {0};
    f->serving = cr_tls_serving_new(&files, "certroll-test", f->metrics, &err);
    if (!f->serving)
        fail_msg("%s", err.text);
}

/* The value on the page, whole, as text. Owned. */
static char *shown(const struct fixture *f, const char *series)
{
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page);
    cr_autofree char *line = cr_asprintf("\n%s ", series);
    const char *at = strstr(cr_buf_text(&page), line);
    if (!at)
        fail_msg("%s is not on the page", series);
    at += strlen(line);
    return cr_strndup(at, strcspn(at, "\n"));
}

static void assert_shown(const struct fixture *f, const char *series, const char *value)
{
    cr_autofree char *found = shown(f, series);
    if (!cr_streq(found, value))
        fail_msg("%s: %s, not %s", series, found, value);
}

/* The log's last line once it has so many. */
static struct cr_json *wait_line(const struct fixture *f, size_t count)
{
    for (int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS; cr_clock_monotonic_ms() < end; poll(NULL, 0, 10)) {
        FILE *log = fopen(f->log, "r");
        assert_non_null(log);
        char line[8192] = "";
        size_t lines = 0;
        while (lines < count && fgets(line, sizeof line, log))
            lines += strchr(line, '\n') != NULL;
        (void)fclose(log);
        if (lines < count)
            continue;
        struct cr_error err = {0};
        struct cr_json *json = cr_json_parse(line, strlen(line), &err);
        if (!json)
            fail_msg("%s: %s", err.text, line);
        return json;
    }
    fail_msg("the log has no line %zu", count);
    return NULL;
}

static void change_leaf(struct fixture *f, const char *cn)
{
    test_cert_free(f->leaf);
    f->leaf = test_cert_new(&(struct test_cert_spec){.cn = cn, .issuer = f->ca, .until_s = 7 * 24 * 3600});
    put_version(f, f->leaf->cert_pem, f->leaf->key_pem, f->ca->cert_pem);
}

static void assert_event(const struct cr_json *line, const char *level, const char *severity, const char *status)
{
    assert_string_equal(cr_json_string_at(line, "level"), level);
    assert_int_equal(cr_json_int_at(line, 0, "ocsf", "class_uid"), 5019);
    assert_string_equal(cr_json_string_at(line, "ocsf", "severity"), severity);
    assert_string_equal(cr_json_string_at(line, "ocsf", "status"), status);
    assert_string_equal(cr_json_string_at(line, "ocsf", "metadata", "product", "name"), "certroll-test");
    assert_string_equal(cr_json_string_at(line, "ocsf", "metadata", "product", "version"), CERTROLL_VERSION);
}

static void at_the_start_nothing_has_become_of_anything(void **state)
{
    struct fixture *f = *state;
    serve(f);
    assert_shown(f, "certroll_tls_reloads_total{result=\"success\"}", "0");
    assert_shown(f, "certroll_tls_reloads_total{result=\"refused\"}", "0");
    assert_shown(f, "certroll_tls_last_reload_successful", "1");
    cr_autofree char *until = shown(f, "certroll_tls_not_after_timestamp_seconds");
    double left = strtod(until, NULL) - (double)cr_clock_wall_ms() / 1000;
    assert_true(left > 23 * 3600 && left <= 24 * 3600);
}

static void a_reload_is_logged_and_counted(void **state)
{
    struct fixture *f = *state;
    serve(f);
    struct cr_tlsreload_state before;
    cr_tlsreload_state(cr_tls_serving_reload(f->serving), &before);
    change_leaf(f, "two");
    CR_CLEANUP(cr_json) struct cr_json *line = wait_line(f, 1);
    assert_string_equal(cr_json_string_at(line, "msg"), "TLS material reloaded");
    assert_string_equal(cr_json_string_at(line, "before"), before.leaf);
    assert_string_not_equal(cr_json_string_at(line, "leaf"), before.leaf);
    assert_null(cr_json_string_at(line, "trust"));
    assert_event(line, "info", "Informational", "Success");
    for (int i = 0; i < 2; i++) /* also to who looks again */
        assert_shown(f, "certroll_tls_reloads_total{result=\"success\"}", "1");
    assert_shown(f, "certroll_tls_last_reload_successful", "1");
    cr_autofree char *until = shown(f, "certroll_tls_not_after_timestamp_seconds");
    assert_true(strtod(until, NULL) - (double)cr_clock_wall_ms() / 1000 > 6 * 24 * 3600);
}

static void what_is_refused_is_reported_until_it_is_mended(void **state)
{
    struct fixture *f = *state;
    serve(f);
    put_version(f, "no certificate", f->leaf->key_pem, f->ca->cert_pem);
    CR_CLEANUP(cr_json) struct cr_json *refused = wait_line(f, 1);
    assert_string_equal(cr_json_string_at(refused, "msg"), "TLS material refused, what was served before stays");
    assert_non_null(strstr(cr_json_string_at(refused, "error"), f->certificate));
    assert_event(refused, "warn", "Medium", "Failure");
    assert_shown(f, "certroll_tls_reloads_total{result=\"refused\"}", "1");
    assert_shown(f, "certroll_tls_last_reload_successful", "0");
    change_leaf(f, "three");
    CR_CLEANUP(cr_json) struct cr_json *mended = wait_line(f, 2);
    assert_event(mended, "info", "Informational", "Success");
    assert_shown(f, "certroll_tls_reloads_total{result=\"refused\"}", "1");
    assert_shown(f, "certroll_tls_last_reload_successful", "1");
}

static void other_client_cas_are_logged_as_such(void **state)
{
    struct fixture *f = *state;
    serve(f);
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other", .ca = true});
    put_version(f, f->leaf->cert_pem, f->leaf->key_pem, other->cert_pem);
    CR_CLEANUP(cr_json) struct cr_json *line = wait_line(f, 1);
    assert_string_equal(cr_json_string_at(line, "trust"), "changed");
    assert_string_equal(cr_json_string_at(line, "before"), cr_json_string_at(line, "leaf"));
}

static void what_cannot_be_served_is_refused_at_the_start(void **state)
{
    struct fixture *f = *state;
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other"});
    put_version(f, f->leaf->cert_pem, other->key_pem, f->ca->cert_pem);
    const struct cr_tls_files files = {f->certificate, f->private_key, NULL};
    struct cr_error err = {0};
    assert_null(cr_tls_serving_new(&files, "certroll-test", f->metrics, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_non_null(strstr(err.text, f->private_key));
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(f->metrics, &page); /* and a reader of the metrics does not read what is gone */
    assert_null(strstr(cr_buf_text(&page), "certroll_tls"));
}

#define with_files(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_go_together),
        with_files(at_the_start_nothing_has_become_of_anything),
        with_files(a_reload_is_logged_and_counted),
        with_files(what_is_refused_is_reported_until_it_is_mended),
        with_files(other_client_cas_are_logged_as_such),
        with_files(what_cannot_be_served_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
