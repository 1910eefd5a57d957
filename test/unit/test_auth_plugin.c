/* Credentials of a plugin: when it is run, who waits for it, and what becomes of its answers. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
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
#include "kube/auth.h"
#include "kube/exec_plugin.h"
#include "support/testcerts.h"

enum { PATIENCE_MS = 30 * 1000 };

#define CREDENTIAL "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":"
/* A shell's: counts its runs in ./runs, and prints t1, t2, … */
#define COUNT    "echo run >> runs; n=$(wc -l < runs); "
#define PRINT(s) "echo '" CREDENTIAL s "}'"

/* The plugin is a script in a folder of the test's own, in which it also runs. */
struct fixture {
    char folder[64];
    struct cr_auth *auth;
    struct cr_auth_user user;
    struct cr_loop *loop;
    pthread_t thread;
    atomic_int changes;
    char *cert_notified; /* read when nothing runs */
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void on_changed(void *arg, const struct cr_kube_config *config)
{
    struct fixture *f = arg;
    cr_strset(&f->cert_notified, config->cert_pem);
    atomic_fetch_add(&f->changes, 1);
}

static char *in_folder(const struct fixture *f, const char *name)
{
    return cr_asprintf("%s/%s", f->folder, name);
}

static void put(const struct fixture *f, const char *name, const char *text)
{
    cr_autofree char *path = in_folder(f, name);
    cr_autofree char *fresh = cr_asprintf("%s.new", path);
    FILE *file = fopen(fresh, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(fresh, path), 0);
}

static size_t count_lines(const struct fixture *f, const char *name)
{
    cr_autofree char *path = in_folder(f, name);
    FILE *file = fopen(path, "r");
    size_t lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

static struct cr_kube_config *config_with_plugin(const struct fixture *f)
{
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->source = cr_strdup("test");
    config->server = cr_strdup("https://h");
    config->exec = cr_new(struct cr_exec_plugin);
    config->exec->command = cr_strdup("/bin/sh");
    config->exec->api_version = cr_strdup("client.authentication.k8s.io/v1");
    cr_autofree char *script = cr_asprintf("cd %s && . ./script", f->folder);
    cr_strvec_add(&config->exec->args, "-c");
    cr_strvec_add(&config->exec->args, script);
    return config;
}

static void open_fixture(struct fixture *f, const char *script)
{
    *f = (struct fixture){.folder = "/tmp/certroll-plugin-XXXXXX"};
    assert_non_null(mkdtemp(f->folder));
    put(f, "script", script);
    f->loop = cr_loop_new();
    f->auth = cr_auth_new(config_with_plugin(f));
    f->user = (struct cr_auth_user){.on_changed = on_changed, .arg = f};
    cr_auth_join(f->auth, &f->user);
    atomic_store(&f->changes, 0);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void close_fixture(struct fixture *f)
{
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_auth_leave(f->auth, &f->user);
    cr_auth_free(f->auth);
    cr_loop_free(f->loop);
    free(f->cert_notified);
    static const char *const names[] = {"script", "runs", "pid"};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        cr_autofree char *path = in_folder(f, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->folder), 0);
}

static bool get(struct fixture *f, int wait_ms, struct cr_credential *out, struct cr_error *err)
{
    *err = (struct cr_error){0};
    return cr_auth_get(f->auth, &f->user, cr_clock_monotonic_ms() + wait_ms, out, err);
}

/* The generation of the token. */
static uint64_t assert_token(struct fixture *f, const char *expected)
{
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    struct cr_error err;
    if (!get(f, PATIENCE_MS, &credential, &err))
        fail_msg("%s", err.text);
    assert_string_equal(credential.token, expected);
    return credential.generation;
}

/* --- one run for all --- */

static void *ask(void *arg)
{
    assert_token(arg, "t1");
    return NULL;
}

static void many_who_ask_wait_for_one_run(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, COUNT "sleep 0.2; " PRINT("{\"token\":\"t'$n'\"}"));
    pthread_t threads[8];
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &f), 0);
    for (size_t i = 0; i < cr_array_len(threads); i++)
        pthread_join(threads[i], NULL);
    assert_token(&f, "t1"); /* without an end it is kept */
    assert_int_equal(count_lines(&f, "runs"), 1);
    close_fixture(&f);
}

/* --- in the loop --- */

struct asked {
    struct fixture *f;
    struct cr_auth_wait *wait;
    bool cancel;
    atomic_int answer;
    atomic_int ended;
};

static void on_ended(void *arg)
{
    struct asked *asked = arg;
    asked->wait = NULL;
    atomic_fetch_add(&asked->ended, 1);
}

static void ask_in_loop(void *arg)
{
    struct asked *asked = arg;
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    struct cr_error err = {0};
    const struct cr_auth_wait_options options = {.loop = asked->f->loop, .on_ended = on_ended, .arg = asked};
    int answer = cr_auth_ask(asked->f->auth, &options, &asked->wait, &credential, &err);
    if (asked->cancel)
        cr_auth_wait_cancel(cr_steal(&asked->wait));
    atomic_store(&asked->answer, answer + 1);
}

static int answer_in_loop(struct asked *asked)
{
    atomic_store(&asked->answer, 0);
    cr_loop_post(asked->f->loop, ask_in_loop, asked);
    while (!atomic_load(&asked->answer))
        usleep(1000);
    return atomic_load(&asked->answer) - 1;
}

static void the_loop_never_waits_and_is_notified_of_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "sleep 3; " PRINT("{\"token\":\"t\"}"));
    struct asked stays = {.f = &f};
    struct asked goes = {.f = &f, .cancel = true};
    int64_t start = cr_clock_monotonic_ms();
    assert_int_equal(answer_in_loop(&stays), CR_AUTH_PENDING);
    assert_int_equal(answer_in_loop(&goes), CR_AUTH_PENDING);
    assert_in_range(cr_clock_monotonic_ms() - start, 0, 2500);
    while (!atomic_load(&stays.ended))
        usleep(1000);
    assert_int_equal(answer_in_loop(&stays), CR_AUTH_READY);
    close_fixture(&f);
    assert_int_equal(atomic_load(&stays.ended), 1);
    assert_int_equal(atomic_load(&goes.ended), 0);
}

/* The post is on its way already: it must not reach a caller that has cancelled since. */
static void a_wait_may_be_cancelled_at_any_moment(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "exit 1");
    struct asked asked = {.f = &f};
    struct cr_credential none;
    struct cr_error err;
    const struct cr_auth_wait_options options = {.loop = f.loop, .on_ended = on_ended, .arg = &asked};
    cr_loop_stop(f.loop);
    pthread_join(f.thread, NULL);
    assert_int_equal(cr_auth_ask(f.auth, &options, &asked.wait, &none, &err), CR_AUTH_PENDING);
    assert_false(get(&f, PATIENCE_MS, &none, &err)); /* the run has ended, and posted */
    cr_auth_wait_cancel(asked.wait);
    assert_int_equal(pthread_create(&f.thread, NULL, run_loop, f.loop), 0);
    close_fixture(&f);
    assert_int_equal(atomic_load(&asked.ended), 0);
}

/* --- renewal --- */

static void put_expiring(struct fixture *f, const char *token, int64_t in_ms)
{
    char end[CR_TIME_TEXT];
    cr_time_format_micro(cr_clock_wall_ms() + in_ms, end);
    cr_autofree char *script =
        cr_asprintf(COUNT PRINT("{\"token\":\"%s\",\"expirationTimestamp\":\"%s\"}") "\n", token, end);
    put(f, "script", script);
}

static void a_token_is_renewed_before_its_end_while_it_still_serves(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "exit 1");
    put_expiring(&f, "first", 15 * 1000);
    assert_token(&f, "first");
    put(&f, "script", COUNT "sleep 600"); /* does not answer: no caller waits for it */
    int64_t renewed = cr_clock_monotonic_ms() + PATIENCE_MS;
    while (count_lines(&f, "runs") < 2 && cr_clock_monotonic_ms() < renewed) {
        assert_token(&f, "first");
        usleep(50 * 1000);
    }
    assert_int_equal(count_lines(&f, "runs"), 2);
    int64_t start = cr_clock_monotonic_ms();
    assert_token(&f, "first");
    assert_in_range(cr_clock_monotonic_ms() - start, 0, 1000);
    close_fixture(&f);
}

/* Some plugins mean "do not keep it" by that; kubectl then runs them for each request. */
static void what_has_ended_already_is_used_for_a_moment(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "exit 1");
    put_expiring(&f, "ended", -1000);
    assert_token(&f, "ended");
    assert_token(&f, "ended");
    assert_int_equal(count_lines(&f, "runs"), 1);
    close_fixture(&f);
}

static void a_refusal_has_it_run_again_once(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, COUNT PRINT("{\"token\":\"t'$n'\"}"));
    uint64_t first = assert_token(&f, "t1");
    assert_true(cr_auth_refused(f.auth, first));
    assert_true(cr_auth_refused(f.auth, first)); /* of a second request at the same time */
    uint64_t second = assert_token(&f, "t2");
    assert_true(second > first);
    assert_true(cr_auth_refused(f.auth, first));   /* late: there are newer ones */
    assert_false(cr_auth_refused(f.auth, second)); /* it is not the token's fault */
    assert_token(&f, "t2");
    assert_int_equal(count_lines(&f, "runs"), 2);
    close_fixture(&f);
}

static void a_refused_token_serves_on_when_there_is_no_other(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, COUNT "[ $n = 1 ] || exit 1; " PRINT("{\"token\":\"t'$n'\"}"));
    uint64_t first = assert_token(&f, "t1");
    assert_true(cr_auth_refused(f.auth, first));
    assert_token(&f, "t1");
    assert_int_equal(count_lines(&f, "runs"), 2);
    close_fixture(&f);
}

static void a_new_certificate_is_notified_once(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "client"});
    struct fixture f;
    open_fixture(&f, COUNT "cat answer");
    CR_CLEANUP(cr_json) struct cr_json *answer = cr_json_new_object();
    cr_json_set_string(answer, "apiVersion", "client.authentication.k8s.io/v1");
    cr_json_set_string(answer, "kind", "ExecCredential");
    struct cr_json *status = cr_json_object_in(answer, "status");
    cr_json_set_string(status, "clientCertificateData", cert->cert_pem);
    cr_json_set_string(status, "clientKeyData", cert->key_pem);
    cr_autofree char *text = cr_json_print(answer);
    put(&f, "answer", text);
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    struct cr_error err;
    if (!get(&f, PATIENCE_MS, &credential, &err))
        fail_msg("%s", err.text);
    assert_null(credential.token);
    assert_int_equal(atomic_load(&f.changes), 1);
    assert_string_equal(f.cert_notified, cert->cert_pem);
    assert_true(cr_auth_refused(f.auth, credential.generation));
    CR_CLEANUP(cr_credential) struct cr_credential again = {0};
    assert_true(get(&f, PATIENCE_MS, &again, &err));
    assert_int_equal(count_lines(&f, "runs"), 2);
    assert_int_equal(atomic_load(&f.changes), 1); /* the same one: connections stay */
    cr_autofree char *path = in_folder(&f, "answer");
    unlink(path);
    close_fixture(&f);
}

/* --- trouble --- */

static void a_failure_is_reported_to_all_and_tried_again_after_a_pause(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, COUNT "echo 'log in first' >&2; exit 7");
    struct cr_credential none;
    struct cr_error err;
    for (int i = 0; i < 5; i++) {
        assert_false(get(&f, PATIENCE_MS, &none, &err));
        assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
        assert_string_equal(err.text, "credential plugin '/bin/sh': failed with exit status 7: log in first");
    }
    assert_int_equal(count_lines(&f, "runs"), 1);
    put(&f, "script", PRINT("{\"token\":\"t\"}"));
    int64_t end = cr_clock_monotonic_ms() + PATIENCE_MS;
    struct cr_credential got = {0};
    while (!get(&f, PATIENCE_MS, &got, &err) && cr_clock_monotonic_ms() < end)
        usleep(50 * 1000);
    assert_string_equal(got.token, "t");
    cr_credential_dispose(&got);
    close_fixture(&f);
}

static void a_caller_that_cannot_wait_that_long_gets_an_error_and_the_plugin_goes_on(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, COUNT "sleep 3; " PRINT("{\"token\":\"t'$n'\"}"));
    struct cr_credential none;
    struct cr_error err;
    int64_t start = cr_clock_monotonic_ms();
    assert_false(get(&f, 50, &none, &err));
    assert_in_range(cr_clock_monotonic_ms() - start, 50, 2500);
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_string_equal(err.text, "test: the credential plugin has not answered yet");
    assert_token(&f, "t1");
    close_fixture(&f);
}

static void *wait_for_ever(void *arg)
{
    struct cr_credential none;
    struct cr_error *err = cr_new(struct cr_error);
    if (get(arg, 10 * 60 * 1000, &none, err))
        abort();
    return err;
}

static void a_cancelled_user_waits_no_longer_and_another_does(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "until [ -e runs ]; do sleep 0.02; done; " PRINT("{\"token\":\"t\"}"));
    struct cr_auth_user other = {.on_changed = on_changed, .arg = &f};
    cr_auth_join(f.auth, &other);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &f), 0);
    usleep(50 * 1000); /* most of the time it waits by then */
    cr_auth_cancel(f.auth, &f.user);
    void *ended = NULL;
    pthread_join(thread, &ended);
    cr_autofree struct cr_error *cancelled = ended;
    assert_int_equal(cancelled->kind, CR_ERR_CANCELLED);
    put(&f, "runs", "");
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    struct cr_error err = {0};
    assert_true(cr_auth_get(f.auth, &other, cr_clock_monotonic_ms() + PATIENCE_MS, &credential, &err));
    cr_auth_leave(f.auth, &other);
    close_fixture(&f);
}

static pid_t read_pid(const struct fixture *f)
{
    cr_autofree char *path = in_folder(f, "pid");
    FILE *file = fopen(path, "r");
    int pid = 0;
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return (pid_t)pid;
}

static void a_plugin_that_runs_is_killed_at_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, "echo $$ > pid; exec sleep 600");
    struct cr_credential none;
    struct cr_error err;
    assert_false(get(&f, 10, &none, &err));
    pid_t pid = 0;
    while ((pid = read_pid(&f)) == 0)
        usleep(1000);
    int64_t start = cr_clock_monotonic_ms();
    close_fixture(&f);
    assert_in_range(cr_clock_monotonic_ms() - start, 0, 10000);
    assert_int_not_equal(kill(pid, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_who_ask_wait_for_one_run),
        cmocka_unit_test(the_loop_never_waits_and_is_notified_of_the_end),
        cmocka_unit_test(a_wait_may_be_cancelled_at_any_moment),
        cmocka_unit_test(a_token_is_renewed_before_its_end_while_it_still_serves),
        cmocka_unit_test(what_has_ended_already_is_used_for_a_moment),
        cmocka_unit_test(a_refusal_has_it_run_again_once),
        cmocka_unit_test(a_refused_token_serves_on_when_there_is_no_other),
        cmocka_unit_test(a_new_certificate_is_notified_once),
        cmocka_unit_test(a_failure_is_reported_to_all_and_tried_again_after_a_pause),
        cmocka_unit_test(a_caller_that_cannot_wait_that_long_gets_an_error_and_the_plugin_goes_on),
        cmocka_unit_test(a_cancelled_user_waits_no_longer_and_another_does),
        cmocka_unit_test(a_plugin_that_runs_is_killed_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
