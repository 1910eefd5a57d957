#include "kube/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "support/fakeapi.h"

/* A client of a scripted server; the loop has a thread of its own, as requests block. */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    struct cr_client *client;
    pthread_t thread;
};

static const struct cr_resource deployments = {"apps", "v1", "deployments", "Deployment"};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

/* The configuration but for the server's address. */
static void open_with(struct fixture *f, const struct fake_answer *script, size_t len, struct cr_kube_config *config)
{
    assert_true(fake_api_start(&f->api, script, len));
    f->loop = cr_loop_new();
    config->server = cr_asprintf("http://127.0.0.1:%d", f->api.port);
    config->ns = cr_strdup("default");
    config->source = cr_strdup("test");
    f->client = cr_client_new(f->loop, config, "certroll-test");
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void open_fixture(struct fixture *f, const struct fake_answer *script, size_t len, const char *token_file)
{
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->token_file = cr_strdup_or_null(token_file);
    config->token = token_file ? cr_strdup("old") : NULL;
    open_with(f, script, len, config);
}

/* Credentials come from this shell script. */
static void open_with_plugin(struct fixture *f, const struct fake_answer *script, size_t len, const char *plugin)
{
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->exec = fake_plugin(plugin);
    open_with(f, script, len, config);
}

static void close_fixture(struct fixture *f)
{
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

#define STATUS(reason) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"told so\"}"
#define NAMED(name)    "{\"metadata\":{\"name\":\"" name "\"}}"

static void a_refused_token_is_read_again_and_the_request_sent_once_more(void **state)
{
    (void)state;
    char path[] = "/tmp/certroll-token-XXXXXX";
    cr_autofd int fd = mkstemp(path);
    assert_int_equal(write(fd, "new\n", 4), 4);
    static const struct fake_answer script[] = {
        {.expect = "GET /api/v1/namespaces/ns/pods/p ",
         .has = "Authorization: Bearer old\r\n",
         .status = 401,
         .body = STATUS("Unauthorized")},
        {.has = "Authorization: Bearer new\r\n", .body = NAMED("p")},
        {.has = "Authorization: Bearer new\r\n", .status = 401, .body = STATUS("Unauthorized")},
        {.has = "Authorization: Bearer new\r\n", .status = 401, .body = STATUS("Unauthorized")},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), path);
    CR_CLEANUP(cr_json) struct cr_json *pod = cr_client_get(f.client, &cr_res_pods, "ns", "p", &err);
    assert_non_null(pod);
    assert_null(cr_client_get(f.client, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
    assert_int_equal(atomic_load(&f.api.answered), 4);
    close_fixture(&f);
    unlink(path);
}

struct blocked {
    struct cr_client *client;
    struct cr_error err;
};

static void *get_blocked(void *arg)
{
    struct blocked *b = arg;
    CR_CLEANUP(cr_json) struct cr_json *never = cr_client_get(b->client, &cr_res_pods, "ns", "p", &b->err);
    return never;
}

static void a_refused_token_of_a_plugin_is_replaced_and_the_request_sent_once_more(void **state)
{
    (void)state;
    char path[] = "/tmp/certroll-runs-XXXXXX";
    cr_autofd int fd = mkstemp(path);
    cr_autofree char *plugin = cr_asprintf("echo >> %s; n=$(wc -l < %s); " FAKE_CREDENTIAL, path, path);
    static const struct fake_answer script[] = {
        {.has = "Authorization: Bearer t1\r\n", .body = NAMED("p")},
        {.has = "Authorization: Bearer t1\r\n", .status = 401, .body = STATUS("Unauthorized")},
        {.has = "Authorization: Bearer t2\r\n", .body = NAMED("p")},
        {.has = "Authorization: Bearer t2\r\n", .status = 401, .body = STATUS("Unauthorized")},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_with_plugin(&f, script, cr_array_len(script), plugin);
    for (int i = 0; i < 2; i++) {
        CR_CLEANUP(cr_json) struct cr_json *pod = cr_client_get(f.client, &cr_res_pods, "ns", "p", &err);
        if (!pod)
            fail_msg("%s", err.text);
    }
    /* Again so soon: it is not for want of a new token. */
    assert_null(cr_client_get(f.client, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
    close_fixture(&f);
    unlink(path);
}

static void a_request_waits_for_a_plugin_no_longer_than_it_may_take(void **state)
{
    (void)state;
    struct fixture f;
    struct cr_error err = {0};
    open_with_plugin(&f, NULL, 0, "exec sleep 600");
    struct cr_client *dedicated = cr_client_new_dedicated(f.client, 200);
    int64_t start = cr_clock_monotonic_ms();
    assert_null(cr_client_get(dedicated, &cr_res_pods, "ns", "p", &err));
    assert_in_range(cr_clock_monotonic_ms() - start, 190, 5000);
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_string_equal(err.text, "GET /api/v1/namespaces/ns/pods/p: test: the credential plugin has not answered yet");
    struct blocked blocked = {.client = f.client};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, get_blocked, &blocked), 0);
    usleep(50 * 1000); /* most of the time it waits by then */
    cr_client_cancel(f.client);
    pthread_join(thread, NULL);
    assert_int_equal(blocked.err.kind, CR_ERR_CANCELLED);
    cr_client_free(dedicated);
    close_fixture(&f);
}

static void a_plugin_that_fails_fails_the_request_in_its_words(void **state)
{
    (void)state;
    struct fixture f;
    struct cr_error err = {0};
    open_with_plugin(&f, NULL, 0, "echo 'log in first' >&2; exit 1");
    assert_null(cr_client_get(f.client, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
    assert_string_equal(err.text, "GET /api/v1/namespaces/ns/pods/p: credential plugin '/bin/sh': failed with exit "
                                  "status 1: log in first");
    close_fixture(&f);
}

static void without_files_a_401_is_final(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.status = 401, .body = STATUS("Unauthorized")}};
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, 1, NULL);
    assert_null(cr_client_get(f.client, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
    assert_string_equal(err.text, "GET /api/v1/namespaces/ns/pods/p: told so");
    close_fixture(&f);
}

static void writes_say_what_they_are_and_who_writes(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "POST /apis/apps/v1/namespaces/ns/deployments?fieldManager=certroll ",
         .has = "Content-Type: application/json\r\n",
         .body = NAMED("d")},
        {.expect = "PATCH /apis/apps/v1/namespaces/ns/deployments/d/status?fieldManager=certroll ",
         .has = "Content-Type: application/merge-patch+json\r\n",
         .body = NAMED("d")},
        {.expect = "POST /api/v1/namespaces/ns/pods/p/eviction?fieldManager=certroll ",
         .has = "User-Agent: certroll-test\r\n",
         .status = 201,
         .body = "{\"kind\":\"Status\",\"status\":\"Success\"}"},
        {.has = "Accept: application/json\r\n", .status = 429, .body = STATUS("TooManyRequests")},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    CR_CLEANUP(cr_json) struct cr_json *made = cr_client_create(f.client, &deployments, "ns", object, &err);
    assert_non_null(made);
    CR_CLEANUP(cr_json)
    struct cr_json *patched = cr_client_merge_patch(f.client, &deployments, "ns", "d", "status", object, &err);
    assert_non_null(patched);
    assert_true(cr_client_evict(f.client, "ns", "p", "uid", &err));
    assert_false(cr_client_evict(f.client, "ns", "p", "uid", &err));
    assert_int_equal(err.kind, CR_ERR_THROTTLED);
    close_fixture(&f);
}

static void an_apply_says_whether_it_forces_and_conflicts_name_the_managers(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = "PATCH /api/v1/namespaces/ns/secrets/s?force=false&fieldManager=certroll ",
         .has = "Content-Type: application/apply-patch+yaml\r\n",
         .body = NAMED("s")},
        {.expect = "PATCH /api/v1/namespaces/ns/secrets/s/status?force=true&fieldManager=certroll ",
         .body = NAMED("s")},
        {.status = 409,
         .body = "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"Apply failed with 2 conflicts: conflicts "
                 "with \\\"kubectl\\\":\\n- .data.a\\n- .data.b\"}"},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "kind", "Secret");
    CR_CLEANUP(cr_json)
    struct cr_json *first = cr_client_apply(f.client, &cr_res_secrets, "ns", "s", NULL, object, false, &err);
    assert_non_null(first);
    assert_string_equal(fake_api_body(&f.api, 0), "{\"kind\":\"Secret\"}");
    CR_CLEANUP(cr_json)
    struct cr_json *forced = cr_client_apply(f.client, &cr_res_secrets, "ns", "s", "status", object, true, &err);
    assert_non_null(forced);
    assert_null(cr_client_apply(f.client, &cr_res_secrets, "ns", "s", NULL, object, false, &err));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    assert_string_equal(err.text,
                        "PATCH /api/v1/namespaces/ns/secrets/s: Apply failed with 2 conflicts: conflicts with "
                        "\"kubectl\": - .data.a - .data.b");
    close_fixture(&f);
}

static void a_delete_carries_its_preconditions(void **state)
{
    (void)state;
#define OPTIONS "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\""
    static const struct {
        struct cr_delete_options options;
        const char *body;
    } cases[] = {
        {{NULL}, OPTIONS "}"},
        {{.uid = "u"}, OPTIONS ",\"preconditions\":{\"uid\":\"u\"}}"},
        {{.uid = "u", .resource_version = "7"},
         OPTIONS ",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}"},
        {{.propagation = "Orphan"}, OPTIONS ",\"propagationPolicy\":\"Orphan\"}"},
    };
    static const struct fake_answer script[] = {
        {.expect = "DELETE /api/v1/namespaces/ns/secrets/s ",
         .has = "Content-Type: application/json\r\n",
         .body = "{}"},
        {.body = NAMED("s")},
        {.status = 404, .body = STATUS("NotFound")},
        {.status = 409, .body = STATUS("Conflict")},
    };
    static const enum cr_error_kind kinds[] = {CR_ERR_NONE, CR_ERR_NONE, CR_ERR_NOT_FOUND, CR_ERR_CONFLICT};
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script), NULL);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        const struct cr_delete_options *options = i ? &cases[i].options : NULL;
        assert_int_equal(cr_client_delete(f.client, &cr_res_secrets, "ns", "s", options, &err), i < 2);
        assert_int_equal(err.kind, kinds[i]);
        assert_string_equal(fake_api_body(&f.api, i), cases[i].body);
    }
    close_fixture(&f);
}

static void an_eviction_that_cannot_be_says_why_and_when_to_come_back(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.status = 429, .header = "Retry-After: 10\r\n", .body = STATUS("TooManyRequests")},
        {.status = 500,
         .body =
             "{\"kind\":\"Status\",\"message\":\"This pod has more than one PodDisruptionBudget, which the eviction "
             "subresource does not support.\",\"code\":500}"},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    assert_false(cr_client_evict(f.client, "ns", "p", "uid", &err));
    assert_int_equal(err.kind, CR_ERR_THROTTLED);
    assert_int_equal(err.retry_after_ms, 10000);
    assert_false(cr_client_evict(f.client, "ns", "p", "uid", &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_string_equal(err.text, "POST /api/v1/namespaces/ns/pods/p/eviction: This pod has more than one "
                                  "PodDisruptionBudget, which the eviction subresource does not support.");
    close_fixture(&f);
}

static size_t listed(struct fixture *f, struct cr_error *err)
{
    CR_CLEANUP(cr_json)
    struct cr_json *list = cr_client_list(f->client, &cr_res_secrets, "ns", "a=b", "metadata.name=x", err);
    assert_null(cr_json_at(list, "metadata", "continue"));
    return cr_json_len(cr_json_get(list, "items"));
}

static void a_list_is_all_pages_or_an_error(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        /* Two pages. */
        {.expect = "secrets?limit=500&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx ",
         .body = "{\"metadata\":{\"continue\":\"t1\"},\"items\":[" NAMED("a") "," NAMED("b") "]}"},
        {.expect = "&continue=t1 ", .body = "{\"metadata\":{\"continue\":\"\"},\"items\":[" NAMED("c") "]}"},
        /* The token expired: from the start. */
        {.refuse = "continue", .body = "{\"metadata\":{\"continue\":\"t2\"},\"items\":[" NAMED("a") "]}"},
        {.expect = "continue=t2", .status = 410, .body = STATUS("Expired")},
        {.refuse = "continue", .body = "{\"items\":[" NAMED("a") "]}"},
        /* The second page fails. */
        {.body = "{\"metadata\":{\"continue\":\"t3\"},\"items\":[" NAMED("a") "]}"},
        {.expect = "continue=t3", .status = 500, .body = STATUS("InternalError")},
        /* No list at all. */
        {.body = "{}"},
        {.body = "{\"items\":["},
        {.body = "{\"items\":[" NAMED("a") "]}", .cut = true},
    };
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    assert_int_equal(listed(&f, &err), 3);
    assert_int_equal(listed(&f, &err), 1);
    assert_int_equal(err.kind, CR_ERR_NONE);
    static const enum cr_error_kind failures[] = {CR_ERR_TRANSIENT, CR_ERR_INVALID, CR_ERR_INVALID, CR_ERR_TRANSIENT};
    for (size_t i = 0; i < cr_array_len(failures); i++) {
        err = (struct cr_error){0};
        assert_null(cr_client_list(f.client, &cr_res_secrets, "ns", NULL, NULL, &err));
        assert_int_equal(err.kind, failures[i]);
    }
    close_fixture(&f);
}

static void something_else_than_an_api_server_is_reported_as_such(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.body = "<html>"}, {.body = "{}"}, {.body = "{\"gitVersion\":\"v1.36.3\"}"}};
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    assert_null(cr_client_server_version(f.client, &err));
    assert_non_null(strstr(err.text, "is http://127.0.0.1:"));
    assert_null(cr_client_server_version(f.client, &err));
    assert_non_null(strstr(err.text, "gitVersion"));
    cr_autofree char *version = cr_client_server_version(f.client, &err);
    assert_string_equal(version, "v1.36.3");
    close_fixture(&f);
}

static void names_that_lead_elsewhere_are_refused_before_any_request(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "a/b", NULL};
    struct fixture f;
    open_fixture(&f, NULL, 0, NULL);
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    for (size_t i = 0; i < cr_array_len(bad); i++) {
        struct cr_error err = {0};
        assert_null(cr_client_get(f.client, &cr_res_pods, "ns", bad[i], &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", bad[i], NULL, object, &err));
        assert_null(cr_client_apply(f.client, &cr_res_pods, "ns", bad[i], NULL, object, true, &err));
        assert_false(cr_client_delete(f.client, &cr_res_pods, "ns", bad[i], NULL, &err));
        assert_false(cr_client_evict(f.client, bad[i], "p", "uid", &err));
        assert_false(cr_client_evict(f.client, "ns", bad[i], "uid", &err));
    }
    struct cr_error err = {0};
    assert_null(cr_client_list(f.client, &cr_res_pods, "", NULL, NULL, &err));
    assert_null(cr_client_create(f.client, &cr_res_pods, "..", object, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    close_fixture(&f);
}

static void a_cancelled_client_ends_what_is_under_way_and_what_comes(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = "{", .hold = true}};
    struct fixture f;
    open_fixture(&f, script, 1, NULL);
    struct blocked blocked = {.client = f.client};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, get_blocked, &blocked), 0);
    while (!atomic_load(&f.api.answered))
        sched_yield();
    cr_client_cancel(f.client);
    pthread_join(thread, NULL);
    assert_int_equal(blocked.err.kind, CR_ERR_CANCELLED);
    struct cr_error err = {0};
    assert_null(cr_client_get(f.client, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    close_fixture(&f);
}

static void get_in_loop(void *arg)
{
    get_blocked(arg);
}

static void a_request_in_the_loop_s_thread_is_refused_before_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    open_with_plugin(&f, NULL, 0, "exec sleep 600");
    struct blocked blocked = {.client = f.client};
    cr_loop_post(f.loop, get_in_loop, &blocked);
    close_fixture(&f);
    assert_int_equal(blocked.err.kind, CR_ERR_INTERNAL);
}

static void a_dedicated_client_has_a_time_out_and_an_end_of_its_own(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.body = NAMED("p")}, {.body = "{", .hold = true}};
    struct fixture f;
    open_fixture(&f, script, cr_array_len(script), NULL);
    struct cr_client *dedicated = cr_client_new_dedicated(f.client, 300);
    cr_client_cancel(f.client);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *pod = cr_client_get(dedicated, &cr_res_pods, "ns", "p", &err);
    assert_non_null(pod);
    int64_t start = cr_clock_monotonic_ms();
    assert_null(cr_client_get(dedicated, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    assert_in_range(cr_clock_monotonic_ms() - start, 290, 5000);
    cr_client_cancel(dedicated);
    assert_null(cr_client_get(dedicated, &cr_res_pods, "ns", "p", &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    cr_loop_stop(f.loop);
    pthread_join(f.thread, NULL);
    cr_client_free(dedicated);
    cr_client_free(f.client);
    cr_loop_free(f.loop);
    fake_api_stop(&f.api);
}

static int64_t gate_of(void *arg)
{
    return *(const int64_t *)arg;
}

static void a_closed_gate_keeps_writes_back_and_lets_reads_pass(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {{.expect = "GET", .body = NAMED("p")},
                                                {.expect = "PATCH", .body = NAMED("p")},
                                                {.expect = "GET", .body = NAMED("p")}};
    struct fixture f;
    int64_t left_ms = 0;
    struct cr_error err = {0};
    open_fixture(&f, script, cr_array_len(script), NULL);
    cr_client_set_write_gate(f.client, gate_of, &left_ms);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err));
    assert_int_equal(err.kind, CR_ERR_CANCELLED);
    assert_string_equal(err.text,
                        "PATCH /api/v1/namespaces/ns/pods/p: not sent: this process does not lead (any more)");
    assert_null(cr_client_create(f.client, &cr_res_pods, "ns", patch, &err));
    assert_false(cr_client_delete(f.client, &cr_res_pods, "ns", "p", NULL, &err));
    assert_false(cr_client_evict(f.client, "ns", "p", "u", &err));
    CR_CLEANUP(cr_json) struct cr_json *read = cr_client_get(f.client, &cr_res_pods, "ns", "p", &err);
    assert_non_null(read);
    left_ms = 10 * 1000;
    CR_CLEANUP(cr_json)
    struct cr_json *written = cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err);
    assert_non_null(written);
    left_ms = 0;
    struct cr_client *dedicated = cr_client_new_dedicated(f.client, 10 * 1000);
    CR_CLEANUP(cr_json) struct cr_json *other = cr_client_get(dedicated, &cr_res_pods, "ns", "p", &err);
    assert_non_null(other);
    cr_loop_stop(f.loop);
    pthread_join(f.thread, NULL);
    cr_client_free(dedicated);
    cr_client_free(f.client);
    cr_loop_free(f.loop);
    fake_api_stop(&f.api);
    if (f.api.problem[0])
        fail_msg("%s", f.api.problem);
}

static int64_t soon_over(void *arg)
{
    (void)arg;
    usleep(200 * 1000);
    return 50;
}

/* As a process that is stopped between the gate and the socket. */
static void a_write_that_would_begin_too_late_is_not_sent(void **state)
{
    (void)state;
    struct fixture f;
    struct cr_error err = {0};
    open_fixture(&f, NULL, 0, NULL);
    cr_client_set_write_gate(f.client, soon_over, NULL);
    CR_CLEANUP(cr_json) struct cr_json *patch = cr_json_new_object();
    assert_null(cr_client_merge_patch(f.client, &cr_res_pods, "ns", "p", NULL, patch, &err));
    assert_int_equal(err.kind, CR_ERR_TRANSIENT); /* the Lease may have been renewed: the work must be done */
    assert_string_equal(err.text, "PATCH /api/v1/namespaces/ns/pods/p: not sent: the time to begin it is over");
    close_fixture(&f);
}

static void the_server_is_known_by_its_address_however_that_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *server;
        const char *address;
        int port;
        bool is;
    } cases[] = {
        {"https://10.96.0.1:443", "10.96.0.1", 443, true},
        {"https://10.96.0.1", "10.96.0.1", 443, true},
        {"https://10.96.0.1/api", "10.96.0.1", 443, true},
        {"http://10.96.0.1", "10.96.0.1", 80, true},
        {"https://10.96.0.1:6443", "10.96.0.1", 443, false},
        {"https://10.96.0.1:443", "10.96.0.10", 443, false},
        {"https://[fd00:10:96::1]:443", "fd00:10:96::1", 443, true},
        {"https://[fd00:10:96::1]", "fd00:10:96::1", 443, true},
        {"https://[FD00:10:96:0:0::1]:6443/", "fd00:10:96::1", 6443, true},
        {"https://[fd00:10:96::1]:443", "fd00:10:96::2", 443, false},
        {"https://[fd00:10:96::1]:443", "fd00:10:96::1", 6443, false},
        {"https://kubernetes.default:443", "10.96.0.1", 443, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_kube_config *config = cr_new(struct cr_kube_config);
        config->server = cr_strdup(cases[i].server);
        config->ns = cr_strdup("default");
        config->source = cr_strdup("test");
        struct cr_loop *loop = cr_loop_new();
        struct cr_client *client = cr_client_new(loop, config, "certroll-test");
        if (cr_client_is_server(client, cases[i].address, cases[i].port) != cases[i].is)
            fail_msg("%s and %s port %d", cases[i].server, cases[i].address, cases[i].port);
        cr_client_free(client);
        cr_loop_free(loop);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_token_is_read_again_and_the_request_sent_once_more),
        cmocka_unit_test(a_refused_token_of_a_plugin_is_replaced_and_the_request_sent_once_more),
        cmocka_unit_test(a_request_waits_for_a_plugin_no_longer_than_it_may_take),
        cmocka_unit_test(a_plugin_that_fails_fails_the_request_in_its_words),
        cmocka_unit_test(without_files_a_401_is_final),
        cmocka_unit_test(writes_say_what_they_are_and_who_writes),
        cmocka_unit_test(an_apply_says_whether_it_forces_and_conflicts_name_the_managers),
        cmocka_unit_test(a_delete_carries_its_preconditions),
        cmocka_unit_test(an_eviction_that_cannot_be_says_why_and_when_to_come_back),
        cmocka_unit_test(a_list_is_all_pages_or_an_error),
        cmocka_unit_test(something_else_than_an_api_server_is_reported_as_such),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused_before_any_request),
        cmocka_unit_test(a_cancelled_client_ends_what_is_under_way_and_what_comes),
        cmocka_unit_test(a_request_in_the_loop_s_thread_is_refused_before_it_waits),
        cmocka_unit_test(a_dedicated_client_has_a_time_out_and_an_end_of_its_own),
        cmocka_unit_test(a_closed_gate_keeps_writes_back_and_lets_reads_pass),
        cmocka_unit_test(a_write_that_would_begin_too_late_is_not_sent),
        cmocka_unit_test(the_server_is_known_by_its_address_however_that_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
