/* Where a policy's Secrets are read from. The cache is the test's own: that one lags behind, or has not read a Secret
 * through the names of a policy, cannot be had on demand. */
#include "cluster/secret_source.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "cluster/secret_reader.h"
#include "kube/object.h"
#include "pki/paths.h"
#include "support/fakeapi.h"
#include "support/testcerts.h"
#include "support/yamltext.h"

struct cr_cache {
    struct cr_secret_refs *refs;
    struct cr_secret_reader *reader;
    struct cr_store *store;
    struct cr_packed *cached; /* NULL: it knows of no such Secret */
};

struct cr_packed *cr_cache_secret_packed(struct cr_cache *cache, const char *ns, const char *name)
{
    assert_string_equal(ns, "ns");
    assert_string_equal(name, "web-tls");
    return cr_packed_ref(cache->cached);
}

void cr_cache_project_secret(struct cr_cache *cache, struct cr_snapshot *snapshot)
{
    cr_secret_reader_project_now(cache->reader, snapshot->json, snapshot);
}

struct cr_secret_refs *cr_cache_secret_refs(struct cr_cache *cache)
{
    return cache->refs;
}

/* --- a Secret --- */

static struct test_cert *leaf;
static struct test_cert *early; /* valid from tomorrow */

static int make_certificates(void **state)
{
    (void)state;
    leaf = test_cert_new(&(struct test_cert_spec){.cn = "web"});
    early = test_cert_new(&(struct test_cert_spec){.cn = "web", .from_s = 86400, .until_s = 2 * 86400});
    return 0;
}

static int free_certificates(void **state)
{
    (void)state;
    test_cert_free(leaf);
    test_cert_free(early);
    return 0;
}

static struct cr_json *secret(const char *version, const struct test_cert *cert, const char *hmac)
{
    struct cr_json *json = test_yaml("{apiVersion: v1, kind: Secret, metadata: {name: web-tls, namespace: ns}}");
    cr_json_set_string(cr_json_object_in(json, "metadata"), "resourceVersion", version);
    struct cr_json *data = cr_json_object_in(json, "data");
    cr_autofree char *crt = cr_base64_encode(cert->cert_pem, strlen(cert->cert_pem));
    cr_autofree char *key = cr_base64_encode(cert->key_pem, strlen(cert->key_pem));
    cr_json_set_string(data, "tls.crt", crt);
    cr_json_set_string(data, "tls.key", key);
    cr_json_set_string(data, "hmac", hmac);
    return json;
}

static char name[] = "web-tls", crt_name[] = "tls.crt", key_name[] = "tls.key", ca_name[] = "ca.crt",
            other_name[] = "o";
static const struct cr_policy_secret names = {
    .name = name, .certificate = crt_name, .private_key = key_name, .trust = ca_name};
static const struct cr_policy_secret other_names = {
    .name = name, .certificate = crt_name, .private_key = key_name, .trust = other_name};

/* --- a source --- */

enum { ANSWERS_MAX = 4 };

struct fixture {
    struct fake_answer script[ANSWERS_MAX];
    size_t len;
    char *bodies[ANSWERS_MAX];
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_cache cache;
    struct cr_secret_source *source;
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

#define SECRET_PATH "GET /api/v1/namespaces/ns/secrets/web-tls "
#define KEY_PATH    "GET /api/v1/namespaces/own/secrets/certroll-digest-key "

/* Takes json. */
static void will_answer(struct fixture *f, const char *expect, struct cr_json *json)
{
    f->bodies[f->len] = cr_json_print(json);
    f->script[f->len] = (struct fake_answer){.expect = expect, .body = f->bodies[f->len]};
    f->len++;
    cr_json_free(json);
}

static void will_refuse(struct fixture *f, const char *expect, int status, const char *reason)
{
    f->bodies[f->len] = cr_asprintf("{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"%s\"}", reason);
    f->script[f->len] = (struct fake_answer){.expect = expect, .status = status, .body = f->bodies[f->len]};
    f->len++;
}

static void add_policy(struct fixture *f, const char *keys)
{
    cr_autofree char *text =
        cr_asprintf("{metadata: {name: p, namespace: ns}, spec: {secrets: [{name: web-tls%s}]}}", keys);
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(text);
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(json, NULL);
    assert_non_null(policy);
    cr_secret_refs_add(f->cache.refs, policy);
}

/* Takes json. */
static void cache_keeps(struct fixture *f, struct cr_json *json, bool read)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = cr_snapshot_new(json);
    if (read)
        cr_cache_project_secret(&f->cache, snapshot);
    cr_packed_unref(f->cache.cached);
    f->cache.cached = cr_store_pack(f->cache.store, snapshot);
}

/* Takes json; NULL: it is gone. */
static void cache_has(struct fixture *f, struct cr_json *json)
{
    if (json) {
        cache_keeps(f, json, true);
        return;
    }
    cr_packed_unref(f->cache.cached);
    f->cache.cached = NULL;
}

static void begin(struct fixture *f, const char *own_namespace)
{
    assert_true(fake_api_start(&f->api, f->script, f->len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->cache.refs = cr_secret_refs_new();
    f->cache.reader = cr_secret_reader_new(f->cache.refs);
    f->cache.store = cr_store_new();
    add_policy(f, "");
    f->source = cr_secret_source_new(&f->cache, f->client, own_namespace);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void end(struct fixture *f)
{
    if (atomic_load(&f->api.answered) != f->len)
        fail_msg("%zu requests instead of %zu", atomic_load(&f->api.answered), f->len);
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_secret_source_free(f->source);
    cr_packed_unref(f->cache.cached);
    cr_store_free(f->cache.store);
    cr_secret_reader_free(f->cache.reader);
    cr_secret_refs_free(f->cache.refs);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    for (size_t i = 0; i < f->len; i++)
        free(f->bodies[i]);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

/* The version that is got; NULL: there is none. */
static const char *get(struct fixture *f, const struct cr_policy_secret *through, const char *not_before)
{
    static char version[32];
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = NULL;
    struct cr_error err = {0};
    if (!cr_secret_source_get(f->source, "ns", through, not_before, &view, &err))
        fail_msg("%s", err.text);
    if (!view)
        return NULL;
    snprintf(version, sizeof version, "%s", view->resource_version);
    return version;
}

/* --- rules --- */

static void what_the_cache_read_is_taken_from_it(void **state)
{
    (void)state;
    struct fixture f = {0};
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    assert_string_equal(get(&f, &names, NULL), "7");
    assert_string_equal(get(&f, &names, "7"), "7");
    assert_string_equal(get(&f, &names, "6"), "7");
    cache_has(&f, NULL);
    assert_null(get(&f, &names, "7"));
    end(&f);
}

static void a_cache_that_lags_behind_what_is_on_record_is_not_believed(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *cached;
        const char *on_record;
        bool asks;
    } cases[] = {
        {"older", "7", "8", true},
        {"older, with a digit less", "99", "100", true},
        {"newer, with a digit more", "100", "99", false},
        {"longer than any number", "99999999999999999999998", "99999999999999999999999", true},
        {"no numbers", "a", "b", false},
        {"empty", "7", "", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f = {0};
        if (cases[i].asks)
            will_answer(&f, SECRET_PATH, secret("200", leaf, NULL));
        begin(&f, "own");
        cache_has(&f, secret(cases[i].cached, leaf, NULL));
        const char *got = get(&f, &names, cases[i].on_record);
        if (!cr_streq(got, cases[i].asks ? "200" : cases[i].cached))
            fail_msg("%s: %s", cases[i].rule, got);
        end(&f);
    }
}

/* After a restore of etcd the older one may be the truth: the answer is taken as it is. */
static void what_the_api_server_says_is_the_truth_even_when_it_is_older(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("3", leaf, NULL));
    begin(&f, "own");
    cache_has(&f, secret("3", leaf, NULL));
    assert_string_equal(get(&f, &names, "8"), "3");
    end(&f);
}

/* A pod template may name a version that never comes. */
static void of_the_same_lag_the_api_server_is_asked_once_in_a_while(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    will_answer(&f, SECRET_PATH, secret("8", leaf, NULL));
    will_answer(&f, SECRET_PATH, secret("9", leaf, NULL));
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    for (int i = 0; i < 100; i++) {
        assert_string_equal(get(&f, &names, "99999999999999999999"), "7");
        assert_string_equal(get(&f, &names, NULL), "7"); /* another policy's */
    }
    assert_string_equal(get(&f, &names, "50"), "7");
    assert_string_equal(get(&f, &names, "999999999999999999999"), "8");
    cache_has(&f, secret("9", leaf, NULL));
    for (int i = 0; i < 100; i++)
        assert_string_equal(get(&f, &names, "99999999999999999999"), "9");
    end(&f);
}

/* It was asked for other reasons before the version came to be. */
static void an_earlier_answer_does_not_count_for_a_lag(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    will_answer(&f, SECRET_PATH, secret("8", leaf, NULL));
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    add_policy(&f, ", keys: {trust: o}");
    assert_string_equal(get(&f, &other_names, NULL), "7");
    assert_string_equal(get(&f, &other_names, "8"), "8");
    end(&f);
}

static void a_policy_that_came_later_costs_one_request_per_version(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    will_answer(&f, SECRET_PATH, secret("8", leaf, NULL));
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    add_policy(&f, ", keys: {trust: o}");
    assert_string_equal(get(&f, &other_names, NULL), "7");
    assert_string_equal(get(&f, &other_names, NULL), "7");
    /* By now it is read through both policies' names, wherever it comes from. */
    cache_keeps(&f, secret("8", leaf, NULL), false); /* but this one came before */
    assert_string_equal(get(&f, &other_names, NULL), "8");
    cache_has(&f, secret("9", leaf, NULL));
    assert_string_equal(get(&f, &other_names, NULL), "9");
    end(&f);
}

static void what_no_policy_has_any_more_is_not_kept(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    add_policy(&f, ", keys: {trust: o}");
    assert_string_equal(get(&f, &other_names, NULL), "7");
    cr_secret_source_forget(f.source, "ns/web-tls");
    assert_string_equal(get(&f, &other_names, NULL), "7"); /* requested again */
    end(&f);
}

static enum cr_material_problem problem_of(struct fixture *f)
{
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = NULL;
    struct cr_error err = {0};
    if (!cr_secret_source_get(f->source, "ns", &names, NULL, &view, &err))
        fail_msg("%s", err.text);
    return view->problem;
}

static void a_leaf_that_is_not_yet_valid_is_not_read_again_before_it_is(void **state)
{
    (void)state;
    struct fixture f = {0};
    begin(&f, "own");
    cache_has(&f, secret("7", early, NULL));
    for (int i = 0; i < 100; i++)
        assert_int_equal(problem_of(&f), CR_MATERIAL_NOT_YET);
    end(&f);
}

/* The cache has read one that is valid in a moment, however long that takes here. */
static void cache_has_one_of_soon(struct fixture *f)
{
    for (int seconds = 1; seconds < 60; seconds *= 2) {
        const struct test_cert_spec spec = {.cn = "web", .from_s = CR_CLOCK_SKEW_MS / 1000 + seconds, .until_s = 86400};
        CR_CLEANUP(test_cert) struct test_cert *soon = test_cert_new(&spec);
        cache_has(f, secret("7", soon, NULL));
        CR_CLEANUP(cr_secret_view)
        struct cr_secret_view *view = cr_secret_reader_view(cr_packed_extra(f->cache.cached), &names);
        if (view->problem == CR_MATERIAL_NOT_YET)
            return;
    }
    fail_msg("reading a Secret takes more than half a minute");
}

static void a_leaf_that_was_not_yet_valid_is_read_again(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, SECRET_PATH, secret("7", leaf, NULL));
    begin(&f, "own");
    cache_has_one_of_soon(&f);
    for (int i = 0; i < 6000 && problem_of(&f) != CR_MATERIAL_OK; i++)
        usleep(10 * 1000);
    assert_int_equal(problem_of(&f), CR_MATERIAL_OK); /* remembered, since it is good now */
    end(&f);
}

static void what_the_api_server_refuses_is_reported(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
        enum cr_error_kind kind;
    } cases[] = {{404, "NotFound", CR_ERR_NOT_FOUND}, {403, "Forbidden", CR_ERR_FORBIDDEN}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f = {0};
        will_refuse(&f, SECRET_PATH, cases[i].status, cases[i].reason);
        begin(&f, "own");
        cache_has(&f, secret("7", leaf, NULL));
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = NULL;
        struct cr_error err = {0};
        assert_false(cr_secret_source_get(f.source, "ns", &names, "8", &view, &err));
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.text, "cannot read Secret ns/web-tls"));
        assert_null(view);
        end(&f);
    }
}

/* --- opaque material --- */

#define DIGEST_KEY "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

static bool is_digested(struct fixture *f)
{
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = NULL;
    struct cr_error err = {0};
    if (!cr_secret_source_get(f->source, "ns", &names, NULL, &view, &err))
        fail_msg("%s", err.text);
    assert_true(view->material.opaque[0]);
    return !cr_streq(view->material.opaque, CR_OPAQUE_UNREAD);
}

static void the_first_opaque_material_brings_the_key_and_is_read_again(void **state)
{
    (void)state;
    struct fixture f = {0};
    will_answer(&f, KEY_PATH, test_yaml("{data: {key: " DIGEST_KEY "}}"));
    will_answer(&f, SECRET_PATH, secret("7", leaf, "eA=="));
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, "eA=="));
    assert_true(is_digested(&f));
    assert_true(is_digested(&f)); /* remembered */
    cache_has(&f, secret("8", leaf, "eQ=="));
    assert_true(is_digested(&f)); /* by the cache itself from now on */
    assert_null(cr_secret_source_opaque_problem(f.source));
    end(&f);
}

static void without_a_key_the_rest_is_read_all_the_same(void **state)
{
    (void)state;
    struct fixture f = {0};
    begin(&f, NULL);
    cache_has(&f, secret("7", leaf, "eA=="));
    assert_false(is_digested(&f));
    assert_string_equal(get(&f, &names, NULL), "7");
    assert_non_null(cr_secret_source_opaque_problem(f.source));
    end(&f);
}

static void no_opaque_material_asks_for_no_key(void **state)
{
    (void)state;
    struct fixture f = {0};
    begin(&f, "own");
    cache_has(&f, secret("7", leaf, NULL));
    assert_string_equal(get(&f, &names, NULL), "7");
    end(&f);
    cr_secret_source_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_cache_read_is_taken_from_it),
        cmocka_unit_test(a_cache_that_lags_behind_what_is_on_record_is_not_believed),
        cmocka_unit_test(what_the_api_server_says_is_the_truth_even_when_it_is_older),
        cmocka_unit_test(of_the_same_lag_the_api_server_is_asked_once_in_a_while),
        cmocka_unit_test(an_earlier_answer_does_not_count_for_a_lag),
        cmocka_unit_test(a_policy_that_came_later_costs_one_request_per_version),
        cmocka_unit_test(what_no_policy_has_any_more_is_not_kept),
        cmocka_unit_test(a_leaf_that_is_not_yet_valid_is_not_read_again_before_it_is),
        cmocka_unit_test(a_leaf_that_was_not_yet_valid_is_read_again),
        cmocka_unit_test(what_the_api_server_refuses_is_reported),
        cmocka_unit_test(the_first_opaque_material_brings_the_key_and_is_read_again),
        cmocka_unit_test(without_a_key_the_rest_is_read_all_the_same),
        cmocka_unit_test(no_opaque_material_asks_for_no_key),
    };
    return cmocka_run_group_tests(tests, make_certificates, free_certificates);
}
