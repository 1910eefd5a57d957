#include "kube/auth.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kube/config_internal.h"

/* A CA and a token in files of a folder of the test's own. */
struct files {
    char folder[64];
    char *ca;
    char *token;
    int changes;
    char *ca_notified;
    struct cr_auth_user user;
};

static void put(const char *path, const char *text)
{
    /* Renamed into place, as the kubelet does: a reader never sees half of it. */
    cr_autofree char *fresh = cr_asprintf("%s.new", path);
    FILE *file = fopen(fresh, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(fresh, path), 0);
}

static void on_changed(void *arg, const struct cr_kube_config *config)
{
    struct files *files = arg;
    files->changes++;
    cr_strset(&files->ca_notified, config->ca_pem);
}

static struct cr_auth *auth_of(struct files *files)
{
    *files = (struct files){.folder = "/tmp/certroll-auth-XXXXXX"};
    assert_non_null(mkdtemp(files->folder));
    files->ca = cr_asprintf("%s/ca.crt", files->folder);
    files->token = cr_asprintf("%s/token", files->folder);
    put(files->ca, "CA");
    put(files->token, "first");
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->source = cr_strdup("test");
    config->server = cr_strdup("https://h");
    config->ca_file = cr_strdup(files->ca);
    config->token_file = cr_strdup(files->token);
    config->ca_pem = cr_strdup("CA");
    config->token = cr_strdup("first");
    struct cr_auth *auth = cr_auth_new(config);
    files->user = (struct cr_auth_user){.on_changed = on_changed, .arg = files};
    cr_auth_join(auth, &files->user);
    assert_string_equal(files->ca_notified, "CA");
    files->changes = 0;
    return auth;
}

static void files_dispose(struct files *files)
{
    unlink(files->ca);
    unlink(files->token);
    rmdir(files->folder);
    free(files->ca);
    free(files->token);
    free(files->ca_notified);
}

enum { PATIENCE_MS = 30 * 1000 };

static void on_changed_ignored(void *arg, const struct cr_kube_config *config)
{
    (void)arg;
    (void)config;
}

/* A user that has not joined: enough to ask. */
static struct cr_auth_user any_user = {.on_changed = on_changed_ignored};

static void assert_token(struct cr_auth *auth, const char *expected)
{
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    struct cr_error err = {0};
    if (!cr_auth_get(auth, &any_user, cr_clock_monotonic_ms() + PATIENCE_MS, &credential, &err))
        fail_msg("%s", err.text);
    assert_string_equal(credential.token, expected);
}

static void a_new_token_is_taken_after_a_refusal_and_not_with_each_request(void **state)
{
    (void)state;
    struct files files;
    CR_CLEANUP(cr_auth) struct cr_auth *auth = auth_of(&files);
    put(files.token, "second");
    assert_token(auth, "first"); /* read less than a minute ago */
    assert_true(cr_auth_refused(auth, 0));
    assert_token(auth, "second");
    assert_int_equal(files.changes, 0);
    files_dispose(&files);
}

static void a_new_ca_is_notified_once(void **state)
{
    (void)state;
    struct files files;
    CR_CLEANUP(cr_auth) struct cr_auth *auth = auth_of(&files);
    put(files.ca, "CA2");
    cr_auth_reread(auth);
    cr_auth_reread(auth);
    assert_int_equal(files.changes, 1);
    assert_string_equal(files.ca_notified, "CA2");
    files_dispose(&files);
}

static void files_that_cannot_be_read_change_nothing(void **state)
{
    (void)state;
    struct files files;
    CR_CLEANUP(cr_auth) struct cr_auth *auth = auth_of(&files);
    unlink(files.token);
    put(files.ca, "");
    cr_auth_reread(auth);
    assert_token(auth, "first");
    assert_int_equal(files.changes, 0);
    put(files.token, "second");
    cr_auth_reread(auth);
    assert_token(auth, "second");
    files_dispose(&files);
}

static void without_files_there_is_no_hope_after_a_refusal(void **state)
{
    (void)state;
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->source = cr_strdup("test");
    CR_CLEANUP(cr_auth) struct cr_auth *auth = cr_auth_new(config);
    assert_false(cr_auth_refused(auth, 0));
    CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
    assert_true(cr_auth_get(auth, &any_user, 0, &credential, NULL));
    assert_null(credential.token);
}

enum { ROUNDS = 300 };

static void *ask(void *auth)
{
    for (int i = 0; i < ROUNDS; i++) {
        CR_CLEANUP(cr_credential) struct cr_credential credential = {0};
        if (!cr_auth_get(auth, &any_user, 0, &credential, NULL) ||
            (strcmp(credential.token, "first") != 0 && strcmp(credential.token, "second") != 0))
            abort();
        if (i % 3 == 0)
            cr_auth_reread(auth);
    }
    return NULL;
}

static void many_threads_may_ask_while_files_change(void **state)
{
    (void)state;
    struct files files;
    CR_CLEANUP(cr_auth) struct cr_auth *auth = auth_of(&files);
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, auth), 0);
    for (int i = 0; i < ROUNDS; i++) {
        put(files.token, i % 2 ? "first" : "second");
        put(files.ca, i % 2 ? "CA" : "CA2");
    }
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    files_dispose(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_token_is_taken_after_a_refusal_and_not_with_each_request),
        cmocka_unit_test(a_new_ca_is_notified_once),
        cmocka_unit_test(files_that_cannot_be_read_change_nothing),
        cmocka_unit_test(without_files_there_is_no_hope_after_a_refusal),
        cmocka_unit_test(many_threads_may_ask_while_files_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
