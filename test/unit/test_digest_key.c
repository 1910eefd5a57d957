#include "cluster/digest_key.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "support/fakeapi.h"

#define KEY_A "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" /* "0123456789abcdef", twice */
#define SECRET(data)                                                                                                   \
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"certroll-digest-key\"},\"immutable\":true,"   \
    "\"data\":" data "}"
#define STATUS(reason) "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason "\",\"message\":\"no\"}"
#define GET            "GET /api/v1/namespaces/own/secrets/certroll-digest-key "
#define POST           "POST /api/v1/namespaces/own/secrets"

/* A key and the API server that it comes from. */
struct fixture {
    struct fake_api api;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    struct cr_digest_key *key;
};

static void *run_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static void begin(struct fixture *f, const struct fake_answer *script, size_t len, const char *ns)
{
    *f = (struct fixture){0};
    assert_true(fake_api_start(&f->api, script, len));
    f->loop = cr_loop_new();
    f->client = fake_client(f->loop, f->api.port);
    f->key = cr_digest_key_new(f->client, ns);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f->loop), 0);
}

static void end(struct fixture *f, size_t requests)
{
    if (atomic_load(&f->api.answered) != requests)
        fail_msg("%zu requests instead of %zu", atomic_load(&f->api.answered), requests);
    cr_loop_stop(f->loop);
    pthread_join(f->thread, NULL);
    cr_digest_key_free(f->key);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
    fake_api_stop(&f->api);
    if (f->api.problem[0])
        fail_msg("%s", f->api.problem);
}

static void the_key_is_found_or_made_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct fake_answer script[3];
        size_t len;
    } cases[] = {
        {"it is there", {{.expect = GET, .body = SECRET("{\"key\":\"" KEY_A "\"}")}}, 1},
        {"it is made",
         {{.expect = GET, .status = 404, .body = STATUS("NotFound")},
          {.expect = POST, .has = "\"immutable\":true", .body = SECRET("{\"key\":\"" KEY_A "\"}")}},
         2},
        {"another replica made it meanwhile",
         {{.expect = GET, .status = 404, .body = STATUS("NotFound")},
          {.expect = POST, .status = 409, .body = STATUS("AlreadyExists")},
          {.expect = GET, .body = SECRET("{\"key\":\"" KEY_A "\"}")}},
         3},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].script, cases[i].len, "own");
        unsigned char key[CR_DIGEST_KEY] = {0};
        assert_null(cr_digest_key_problem(f.key));
        for (int k = 0; k < 3; k++)
            if (!cr_digest_key_get(f.key, key) || memcmp(key, "0123456789abcdef0123456789abcdef", sizeof key) != 0)
                fail_msg("%s", cases[i].rule);
        assert_null(cr_digest_key_problem(f.key));
        end(&f, cases[i].len);
    }
}

/* A process that dies between the two finds it at the next attempt; what was made is random. */
static void what_is_made_is_32_random_bytes(void **state)
{
    (void)state;
    static const struct fake_answer script[] = {
        {.expect = GET, .status = 404, .body = STATUS("NotFound")},
        {.expect = POST, .status = 500, .body = STATUS("InternalError")},
    };
    char first[256] = "";
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        begin(&f, script, cr_array_len(script), "own");
        unsigned char key[CR_DIGEST_KEY];
        assert_false(cr_digest_key_get(f.key, key));
        struct cr_error err = {0};
        const char *body = fake_api_body(&f.api, 1);
        CR_CLEANUP(cr_json) struct cr_json *sent = cr_json_parse(body, strlen(body), &err);
        const char *text = cr_or_empty(cr_json_string_at(sent, "data", "key"));
        assert_int_equal(strlen(text), strlen(KEY_A));
        assert_string_not_equal(text, first);
        snprintf(first, sizeof first, "%s", text);
        end(&f, 2);
    }
}

static void without_it_the_reason_is_given_and_it_is_not_requested_again_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        struct fake_answer script[2];
        size_t len;
        const char *ns;
        const char *says; /* NULL: it may pass by itself */
    } cases[] = {
        {"no namespace", {{0}}, 0, NULL, "--operator-namespace"},
        {"may not read", {{.expect = GET, .status = 403, .body = STATUS("Forbidden")}}, 1, "own", "may not read"},
        {"may not make",
         {{.expect = GET, .status = 404, .body = STATUS("NotFound")},
          {.expect = POST, .status = 403, .body = STATUS("Forbidden")}},
         2,
         "own",
         "may not read and create"},
        {"the namespace is gone",
         {{.expect = GET, .status = 404, .body = STATUS("NotFound")},
          {.expect = POST, .status = 404, .body = STATUS("NotFound")}},
         2,
         "own",
         "is not there"},
        {"too short", {{.expect = GET, .body = SECRET("{\"key\":\"YWJj\"}")}}, 1, "own", "cannot be used: delete it"},
        {"another's", {{.expect = GET, .body = SECRET("{\"password\":\"YWJj\"}")}}, 1, "own", "delete it"},
        {"no base64", {{.expect = GET, .body = SECRET("{\"key\":\"%%\"}")}}, 1, "own", "delete it"},
        {"out of order for now",
         {{.expect = GET, .status = 503, .body = STATUS("ServiceUnavailable")}},
         1,
         "own",
         NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].script, cases[i].len, cases[i].ns);
        unsigned char key[CR_DIGEST_KEY];
        for (int k = 0; k < 3; k++)
            assert_false(cr_digest_key_get(f.key, key));
        const char *problem = cr_digest_key_problem(f.key);
        if (!problem != !cases[i].says || (problem && !strstr(problem, cases[i].says)))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(problem));
        end(&f, cases[i].len);
    }
    cr_digest_key_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_is_found_or_made_once),
        cmocka_unit_test(what_is_made_is_32_random_bytes),
        cmocka_unit_test(without_it_the_reason_is_given_and_it_is_not_requested_again_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
