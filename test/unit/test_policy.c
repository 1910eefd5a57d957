#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "api/policy.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

/* A policy with the given JSON as its spec. Owned; NULL with err set when it is refused. */
static struct cr_policy *decode(const char *spec, struct cr_error *err)
{
    cr_autofree char *text = cr_asprintf("{\"metadata\":{\"namespace\":\"shop\",\"name\":\"front\",\"uid\":\"u-1\","
                                         "\"resourceVersion\":\"42\",\"generation\":7},\"spec\":%s}",
                                         spec);
    struct cr_error parse_error = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &parse_error);
    if (!json)
        fail_msg("the test's own JSON: %s", parse_error.text);
    return cr_policy_decode(json, err);
}

static struct cr_policy *decode_ok(const char *spec)
{
    struct cr_error err = {0};
    struct cr_policy *policy = decode(spec, &err);
    if (!policy)
        fail_msg("refused: %s", err.text);
    return policy;
}

static void test_defaults_are_those_of_the_schema(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy)
    struct cr_policy *p = decode_ok("{\"secrets\":[{\"name\":\"tls\"}],\"consumers\":[{\"name\":\"web\",\"targetRef\":"
                                    "{\"kind\":\"Deployment\",\"name\":\"nginx\"},\"verify\":{\"port\":8443}}]}");
    assert_string_equal(p->ns, "shop");
    assert_string_equal(p->name, "front");
    assert_string_equal(p->uid, "u-1");
    assert_string_equal(p->resource_version, "42");
    assert_int_equal(p->generation, 7);
    assert_false(p->deleting);
    assert_false(p->suspend);
    assert_int_equal(p->mode, CR_MODE_ENFORCE);
    assert_int_equal(p->secrets_len, 1);
    assert_string_equal(p->secrets[0].certificate, "tls.crt");
    assert_string_equal(p->secrets[0].private_key, "tls.key");
    assert_string_equal(p->secrets[0].trust, "ca.crt");
    assert_int_equal(p->consumers_len, 1);
    const struct cr_policy_consumer *web = &p->consumers[0];
    assert_string_equal(web->api_version, "apps/v1");
    assert_null(web->component);
    assert_false(web->optional);
    for (int role = 0; role < CR_ROLE_COUNT; role++)
        assert_false(web->reload[role].set);
    assert_int_equal(web->verify.endpoints_len, 1);
    assert_int_equal(web->verify.endpoints[0].protocol, CR_PROBE_TLS);
    assert_null(web->verify.endpoints[0].server_name);
    assert_null(web->verify.endpoints[0].secret_name);
    assert_int_equal(web->verify.timeout_ms, 60000);
    assert_int_equal(web->verify.on_timeout, CR_ON_TIMEOUT_RESTART);
    assert_int_equal(web->verify.on_unreachable, CR_ON_UNREACHABLE_WAIT);
    assert_int_equal(web->verify.on_missing_name, CR_ON_MISSING_NAME_HOLD);
    assert_int_equal(p->restart.method, CR_RESTART_AUTO);
    assert_int_equal(p->restart.single, CR_SINGLE_SURGE);
    assert_int_equal(p->restart.max_concurrent, 1);
    assert_int_equal(p->restart.coalesce_ms, 10000);
    assert_int_equal(p->restart.breaker.restarts, 3);
    assert_int_equal(p->restart.breaker.within_ms, 3600 * 1000);
    assert_int_equal(p->unsupported.len, 0);
}

static void test_every_field_that_is_acted_on_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy)
    struct cr_policy *p = decode_ok(
        "{\"suspend\":true,\"mode\":\"Plan\","
        "\"secrets\":[{\"name\":\"a\",\"keys\":{\"certificate\":\"c\",\"privateKey\":\"k\",\"trust\":\"t\","
        "\"opaque\":[\"hmac\",\"hmac\",\"p12\"]}},{\"name\":\"b\",\"keys\":{\"opaque\":[]}},{\"name\":\"c\"}],"
        "\"consumers\":[{\"name\":\"db\",\"targetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\","
        "\"name\":\"pg\"},\"component\":\"postgresql\",\"optional\":true,"
        "\"reload\":{\"serverLeaf\":{\"method\":\"Poll\",\"maxDelay\":\"1m30s\"},\"clientCA\":{\"method\":\"Restart\"}}"
        ","
        "\"verify\":{\"protocol\":\"TLS\",\"port\":5432,\"serverName\":\"pg.shop\",\"timeout\":\"2m\","
        "\"onTimeout\":\"Report\"}}],"
        "\"restart\":{\"method\":\"Rollout\",\"maxConcurrent\":3,\"coalesce\":\"500ms\","
        "\"breaker\":{\"restarts\":5,\"within\":\"0s\"}}}");
    assert_true(p->suspend);
    assert_int_equal(p->mode, CR_MODE_PLAN);
    assert_string_equal(p->secrets[0].certificate, "c");
    assert_string_equal(p->secrets[0].private_key, "k");
    assert_string_equal(p->secrets[0].trust, "t");
    assert_true(p->secrets[0].has_opaque && p->secrets[1].has_opaque && !p->secrets[2].has_opaque);
    assert_int_equal(p->secrets[0].opaque.len, 2);
    assert_string_equal(p->secrets[0].opaque.items[1], "p12");
    assert_int_equal(p->secrets[1].opaque.len, 0);
    const struct cr_policy_consumer *db = &p->consumers[0];
    assert_string_equal(db->kind, "StatefulSet");
    assert_string_equal(db->target, "pg");
    assert_string_equal(db->component, "postgresql");
    assert_true(db->optional);
    assert_true(db->reload[CR_ROLE_SERVER_LEAF].set);
    assert_int_equal(db->reload[CR_ROLE_SERVER_LEAF].method, CR_METHOD_POLL);
    assert_int_equal(db->reload[CR_ROLE_SERVER_LEAF].max_delay_ms, 90000);
    assert_int_equal(db->reload[CR_ROLE_CLIENT_CA].method, CR_METHOD_RESTART);
    assert_false(db->reload[CR_ROLE_SERVER_CA].set);
    assert_int_equal(db->verify.endpoints[0].port, 5432);
    assert_string_equal(db->verify.endpoints[0].server_name, "pg.shop");
    assert_int_equal(db->verify.timeout_ms, 120000);
    assert_int_equal(db->verify.on_timeout, CR_ON_TIMEOUT_REPORT);
    assert_int_equal(p->restart.method, CR_RESTART_ROLLOUT);
    assert_int_equal(p->restart.max_concurrent, 3);
    assert_int_equal(p->restart.coalesce_ms, 500);
    assert_int_equal(p->restart.breaker.restarts, 5);
    assert_int_equal(p->restart.breaker.within_ms, 0);
    assert_int_equal(p->unsupported.len, 0);
}

/* Every field of the schema: test/integration/test_crd.py has the API server take the same file. */
static void test_a_spec_with_every_field_is_read(void **state)
{
    (void)state;
    static char spec[16 * 1024];
    FILE *file = fopen(CERTROLL_SOURCE_DIR "/test/testdata/policy-full.json", "r");
    assert_non_null(file);
    spec[fread(spec, 1, sizeof spec - 1, file)] = '\0';
    fclose(file);
    CR_CLEANUP(cr_policy) struct cr_policy *p = decode_ok(spec);
    cr_autofree char *unsupported = cr_strvec_join(&p->unsupported, "\n");
    assert_string_equal(unsupported, "");
    assert_int_equal(p->trust.retain_previous, 2);
    assert_int_equal(p->trust.targets_len, 1);
    assert_false(p->trust.targets[0].is_secret);
    assert_string_equal(p->trust.targets[0].name, "trust");
    assert_string_equal(p->trust.targets[0].key, "ca.crt");
    assert_int_equal(p->consumers_len, 3);
    for (int role = 0; role < CR_ROLE_COUNT; role++)
        assert_true(p->consumers[0].reload[role].set);
    assert_int_equal(p->consumers[0].reload[CR_ROLE_SERVER_CA].max_delay_ms, 90 * 60 * 1000);
    assert_int_equal(p->consumers[0].verify.endpoints_len, 1);
    assert_int_equal(p->consumers[0].verify.endpoints[0].protocol, CR_PROBE_POSTGRESQL);
    assert_string_equal(p->consumers[0].verify.client_secret_name, "probe");
    assert_int_equal(p->restart.max_concurrent, 3);
    assert_int_equal(p->restart.windows_len, 1);
    assert_int_equal(p->restart.windows[0].opens.weekdays, 0x3e);
    assert_int_equal(p->restart.windows[0].duration_ms, 4 * 3600 * 1000);
    assert_string_equal(p->restart.windows[0].time_zone, "Europe/Paris");
    assert_int_equal(p->restart.override_window_ms, 48 * 3600 * 1000);
    assert_int_equal(p->secret_selector.len, 3);
    assert_true(p->discover.enabled);
    assert_int_equal(p->discover.unknown, CR_UNKNOWN_REPORT);
    assert_int_equal(p->consumers_len, 3);
    assert_string_equal(p->consumers[1].kind, "Rollout");
    assert_string_equal(p->consumers[1].api_version, "argoproj.io/v1alpha1");
    assert_string_equal(p->consumers[2].kind, "Ingress");
    assert_string_equal(p->consumers[2].api_version, "networking.k8s.io/v1");
    assert_int_equal(p->consumers[2].reload[CR_ROLE_SERVER_LEAF].max_delay_ms, 10 * 1000);
}

#define INGRESS         "\"targetRef\":{\"kind\":\"Ingress\",\"name\":\"i\"}"
#define JOB             "\"targetRef\":{\"kind\":\"Job\",\"name\":\"j\"}"
#define TARGET          "\"targetRef\":{\"kind\":\"Deployment\",\"name\":\"d\"}"
#define ENDPOINTS(list) ",\"verify\":{\"endpoints\":[" list "]}"
#define EIGHT           "{\"port\":1},{\"port\":2},{\"port\":3},{\"port\":4},{\"port\":5},{\"port\":6},{\"port\":7},{\"port\":8}"
#define NIGHT(rest)     "{\"schedule\":\"0 2 * * *\",\"duration\":\"4h\"" rest "}"
#define WINDOW(window)  "{\"restart\":{\"windows\":[" window "]}}"
#define CONSUMER(rest)  "{\"consumers\":[{\"name\":\"c\"," TARGET rest "}]}"

#define PAGE(page)   CONSUMER(",\"verify\":{\"certsPage\":{" page "}}")
#define BUNDLE(list) "{\"secrets\":[{\"name\":\"a\"}],\"trust\":{\"targets\":[" list "]}}"
#define CONFIG(name) "{\"kind\":\"ConfigMap\",\"name\":\"" name "\"}"

static void test_errors_name_the_path_and_what_is_allowed(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *text;
    } cases[] = {
        {PAGE("\"path\":\"/certs\""),
         "spec.consumers[0].verify.certsPage.port is required: an integer from 1 to 65535"},
        {PAGE("\"port\":9902,\"path\":\"certs\""),
         "spec.consumers[0].verify.certsPage.path must be a path as in a URL, beginning with /"},
        {PAGE("\"port\":9902,\"path\":\"/a b\""),
         "spec.consumers[0].verify.certsPage.path must be a path as in a URL, beginning with /"},
        {CONSUMER(",\"verify\":{\"serverName\":\"a\",\"certsPage\":{\"port\":1}}"),
         "spec.consumers[0].verify.port is required: an integer from 1 to 65535"},
        {"{\"trust\":{\"retainPrevious\":1}}", "spec.trust.targets: list at least one"},
        {"{\"trust\":{\"retainPrevious\":4}}", "spec.trust.retainPrevious must be an integer from 0 to 3"},
        {BUNDLE("{\"name\":\"t\"}"), "spec.trust.targets[0].kind is required"},
        {BUNDLE("{\"kind\":\"Pod\",\"name\":\"t\"}"), "spec.trust.targets[0].kind must be one of ConfigMap, Secret"},
        {BUNDLE("{\"kind\":\"Secret\"}"), "spec.trust.targets[0].name is required"},
        {BUNDLE(CONFIG("t") "," CONFIG("t")), "spec.trust.targets[1]: ConfigMap 't' is listed twice"},
        {BUNDLE("{\"kind\":\"Secret\",\"name\":\"a\"}"),
         "spec.trust.targets[0]: Secret 'a' is one of spec.secrets: the bundle must go to another one, since whoever "
         "writes that Secret would overwrite it"},
        {"[]", "spec must be an object"},
        {"{\"suspend\":\"yes\"}", "spec.suspend must be true or false"},
        {"{\"mode\":\"Dry\"}", "spec.mode must be one of Enforce, Plan"},
        {"{\"secrets\":{}}", "spec.secrets must be a list"},
        {"{\"secrets\":[7]}", "spec.secrets[0] must be an object"},
        {"{\"secrets\":[{}]}", "spec.secrets[0].name is required"},
        {"{\"secrets\":[{\"name\":\"\"}]}", "spec.secrets[0].name must not be empty"},
        {"{\"secrets\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "spec.secrets[1].name: 'a' is listed twice"},
        {"{\"secrets\":[{\"name\":\"a\",\"keys\":{\"trust\":1}}]}", "spec.secrets[0].keys.trust must be a string"},
        {"{\"consumers\":[{" TARGET "}]}", "spec.consumers[0].name is required"},
        {"{\"consumers\":[{\"name\":\"c\"}]}", "spec.consumers[0].targetRef is required"},
        {"{\"consumers\":[{\"name\":\"c\"," INGRESS ",\"verify\":{\"port\":1}}]}",
         "spec.consumers[0].verify: Ingress i has no pods that could be asked; remove it"},
        {"{\"consumers\":[{\"name\":\"c\"," INGRESS ",\"component\":\"nginx\"}]}",
         "spec.consumers[0].component: Ingress i has no pods; remove it"},
        {"{\"consumers\":[{\"name\":\"c\"," INGRESS ",\"reload\":{\"serverLeaf\":{\"method\":\"Restart\"}}}]}",
         "spec.consumers[0].reload: the controller of Ingress i watches Secrets by the API: only method ApiWatch is "
         "allowed"},
        {"{\"consumers\":[{\"name\":\"c\"," JOB ",\"verify\":{\"port\":1}}]}",
         "spec.consumers[0].verify: nothing is done for Job j, whose next run has the new material; remove it"},
        {"{\"consumers\":[{\"name\":\"c\"," JOB ",\"component\":\"nginx\"}]}",
         "spec.consumers[0].component: nothing is done for Job j, whose next run has the new material; remove it"},
        {"{\"consumers\":[{\"name\":\"c\"," JOB ",\"reload\":{\"serverLeaf\":{\"method\":\"Restart\"}}}]}",
         "spec.consumers[0].reload: nothing is done for Job j, whose next run has the new material; remove it"},
        {"{\"secretSelector\":{\"matchLabels\":{}}}",
         "spec.secretSelector is empty: give matchLabels or matchExpressions"},
        {"{\"secretSelector\":{\"matchExpressions\":[{\"key\":\"x\",\"operator\":\"DoesNotExist\"},{\"key\":\"y\","
         "\"operator\":\"NotIn\",\"values\":[\"z\"]}]}}",
         "spec.secretSelector has only NotIn and DoesNotExist, which nearly every Secret of the namespace meets: add a "
         "label that a Secret must have (matchLabels, In or Exists)"},
        {WINDOW("7"), "spec.restart.windows[0] must be an object"},
        {WINDOW("{\"duration\":\"4h\"}"), "spec.restart.windows[0].schedule is required"},
        {WINDOW("{\"schedule\":\"0 2 * * *\"}"), "spec.restart.windows[0].duration is required"},
        {WINDOW("{\"schedule\":\"0 2 * * *\",\"duration\":\"59s\"}"),
         "spec.restart.windows[0].duration must be a duration from 1m to 168h, written such as 10s, 5m or 1h30m"},
        {WINDOW(NIGHT("") ",{\"schedule\":\"0 25 * * *\",\"duration\":\"1h\"}"),
         "spec.restart.windows[1].schedule: hour '25': must be values from 0 to 23, such as *, 1-5, */10 or a list of "
         "those"},
        {WINDOW("{\"schedule\":\"0 0 30 2 *\",\"duration\":\"1h\"}"),
         "spec.restart.windows[0].schedule: '0 0 30 2 *' never comes: none of its months has such a day"},
        {WINDOW(NIGHT(",\"timeZone\":\"../passwd\"")),
         "spec.restart.windows[0].timeZone: '../passwd' is no name of a time zone such as Europe/Paris"},
        {"{\"restart\":{\"overrideWindowBeforeExpiry\":\"8761h\"}}",
         "spec.restart.overrideWindowBeforeExpiry must be a duration from 0s to 8760h, written such as 10s, 5m or "
         "1h30m"},
        {"{\"discover\":{\"unknown\":\"Guess\"}}", "spec.discover.unknown must be one of Restart, Report"},
        {"{\"consumers\":[{\"name\":\"c\",\"targetRef\":{\"name\":\"d\"}}]}",
         "spec.consumers[0].targetRef.kind is required"},
        {"{\"consumers\":[{\"name\":\"c\"," TARGET "},{\"name\":\"c\",\"targetRef\":{\"kind\":\"DaemonSet\",\"name\":"
         "\"e\"}}]}",
         "spec.consumers[1].name: 'c' is listed twice"},
        {"{\"consumers\":[{\"name\":\"c\"," TARGET "},{\"name\":\"e\"," TARGET "}]}",
         "spec.consumers[1].targetRef: Deployment d is already the target of consumer 'c'"},
        {CONSUMER(",\"reload\":{\"serverLeaf\":{}}"), "spec.consumers[0].reload.serverLeaf.method is required"},
        {CONSUMER(",\"reload\":{\"serverLeaf\":{\"method\":\"Unknown\"}}"),
         "spec.consumers[0].reload.serverLeaf.method must be one of Watch, PerHandshake, Poll, Signal, HTTP, Command, "
         "ApiWatch, Restart"},
        {CONSUMER(",\"reload\":{\"leaf\":{\"method\":\"Watch\"}}"),
         "spec.consumers[0].reload.leaf is no role: serverLeaf, clientLeaf, clientCA, serverCA, opaque are"},
        {CONSUMER(",\"reload\":{\"opaque\":{\"method\":\"Poll\",\"maxDelay\":\"25h\"}}"),
         "spec.consumers[0].reload.opaque.maxDelay must be a duration from 0s to 24h, written such as 10s, 5m or "
         "1h30m"},
        {CONSUMER(",\"verify\":{}"), "spec.consumers[0].verify.port is required: an integer from 1 to 65535"},
        {CONSUMER(ENDPOINTS("{\"port\":1},{\"port\":0}")),
         "spec.consumers[0].verify.endpoints[1].port must be an integer from 1 to 65535"},
        {CONSUMER(ENDPOINTS("{\"serverName\":\"a\"}")),
         "spec.consumers[0].verify.endpoints[0].port is required: an integer from 1 to 65535"},
        {CONSUMER(ENDPOINTS("{\"port\":1,\"protocol\":\"SMTP\"}")),
         "spec.consumers[0].verify.endpoints[0].protocol must be one of TLS, PostgreSQL, MySQL"},
        {CONSUMER(ENDPOINTS("7")), "spec.consumers[0].verify.endpoints[0] must be an object"},
        {CONSUMER(ENDPOINTS("{\"port\":1},{\"port\":1,\"protocol\":\"MySQL\"}")),
         "spec.consumers[0].verify.endpoints[1]: port 1 with this serverName is listed twice"},
        {CONSUMER(ENDPOINTS(EIGHT ",{\"port\":9}")),
         "spec.consumers[0].verify.endpoints has 9 elements; at most 8 are allowed"},
        {CONSUMER(",\"verify\":{\"port\":1,\"endpoints\":[{\"port\":2}]}"),
         "spec.consumers[0].verify: give either a port or endpoints, not both"},
        {CONSUMER(",\"verify\":{\"serverName\":\"a\",\"endpoints\":[{\"port\":2}]}"),
         "spec.consumers[0].verify: give either a port or endpoints, not both"},
        {CONSUMER(ENDPOINTS("{\"port\":1,\"secretName\":\"elsewhere\"}")),
         "consumer 'c': verify.endpoints[0].secretName: 'elsewhere' is none of spec.secrets"},
        {CONSUMER(",\"verify\":{\"port\":65536}"), "spec.consumers[0].verify.port must be an integer from 1 to 65535"},
        {CONSUMER(",\"verify\":{\"port\":1.5}"), "spec.consumers[0].verify.port must be an integer from 1 to 65535"},
        {CONSUMER(",\"verify\":{\"port\":1,\"timeout\":\"1d\"}"),
         "spec.consumers[0].verify.timeout must be a duration from 1s to 1h, written such as 10s, 5m or 1h30m"},
        {CONSUMER(",\"verify\":{\"port\":1,\"onTimeout\":\"Panic\"}"),
         "spec.consumers[0].verify.onTimeout must be one of Restart, Report"},
        {CONSUMER(",\"verify\":{\"port\":1,\"onUnreachable\":\"Hope\"}"),
         "spec.consumers[0].verify.onUnreachable must be one of Wait, Infer"},
        {CONSUMER(",\"verify\":{\"port\":1,\"onMissingName\":\"Pray\"}"),
         "spec.consumers[0].verify.onMissingName must be one of Hold, Report"},
        {CONSUMER(",\"after\":[7]"), "spec.consumers[0].after must be a list of names of consumers"},
        {CONSUMER(",\"after\":[\"d\"]"), "consumer 'c': after[0]: 'd' is none of spec.consumers"},
        {CONSUMER(",\"after\":[\"c\"]"), "spec.consumers: 'c' comes after 'c': none could be the first"},
        {"{\"restart\":{\"method\":\"Kill\"}}", "spec.restart.method must be one of Auto, Rollout, Evict, Never"},
        {"{\"restart\":{\"maxConcurrent\":0}}", "spec.restart.maxConcurrent must be an integer from 1 to 100"},
        {"{\"restart\":{\"coalesce\":10}}",
         "spec.restart.coalesce must be a duration from 0s to 10m, written such as 10s, 5m or 1h30m"},
        {"{\"restart\":{\"breaker\":{\"restarts\":6}}}",
         "spec.restart.breaker.restarts must be an integer from 1 to 5"},
        {"{\"restart\":{\"breaker\":{\"within\":\"25h\"}}}",
         "spec.restart.breaker.within must be a duration from 0s to 24h, written such as 10s, 5m or 1h30m"},
        {"{\"restart\":{\"singleReplica\":\"Pray\"}}", "spec.restart.singleReplica must be one of Surge, Warn, Block"},
        {"{\"discover\":{\"enabled\":1}}", "spec.discover.enabled must be true or false"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode(cases[i].spec, &err);
        if (policy)
            fail_msg("accepted: %s", cases[i].spec);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        assert_string_equal(err.text, cases[i].text);
    }
}

/* after: the names, one consumer of a letter each, "b a c": the first comes after the others. */
static struct cr_policy *decode_order(const char *const *after, size_t count, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < count; i++) {
        const char *kind = after[i][0] == 'j' ? "Job" : "Deployment";
        cr_buf_printf(&text, "%s{\"name\":\"%c\",\"targetRef\":{\"kind\":\"%s\",\"name\":\"%c\"},\"after\":[",
                      i ? "," : "", after[i][0], kind, after[i][0]);
        for (const char *p = after[i] + 1; *p; p++)
            cr_buf_printf(&text, "%s\"%c\"", p > after[i] + 1 ? "," : "", *p);
        cr_buf_puts(&text, "]}");
    }
    cr_autofree char *spec = cr_asprintf("{\"consumers\":[%s]}", cr_buf_text(&text));
    return decode(spec, err);
}

static void test_an_order_has_a_first(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *after[4]; /* "ba": b comes after a */
        const char *text;     /* NULL: accepted */
    } cases[] = {
        {"none", {"a", "b"}, NULL},
        {"a chain, whichever is listed first", {"cb", "ba", "a"}, NULL},
        {"two ways to the same", {"dbc", "ca", "ba", "a"}, NULL},
        {"two of each other",
         {"ab", "ba"},
         "spec.consumers: 'a' comes after 'b', 'b' comes after 'a': none could be the first"},
        {"a circle that is come to from outside",
         {"da", "ab", "bc", "ca"},
         "spec.consumers: 'a' comes after 'b', 'b' comes after 'c', 'c' comes after 'a': none could be the first"},
        {"unknown", {"a", "bx"}, "consumer 'b': after[0]: 'x' is none of spec.consumers"},
        {"of a kind that is not acted on: the plan says so", {"aj", "j"}, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        size_t count = 0;
        while (count < cr_array_len(cases[i].after) && cases[i].after[count])
            count++;
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_order(cases[i].after, count, &err);
        if ((policy != NULL) != !cases[i].text)
            fail_msg("%s: %s", cases[i].rule, err.text);
        if (cases[i].text)
            assert_string_equal(err.text, cases[i].text);
        else
            assert_int_equal(policy->consumers[0].after.len, strlen(cases[i].after[0]) - 1);
    }
}

static void test_what_is_not_acted_on_is_listed(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *unsupported; /* joined by ", " */
        size_t consumers;
        bool verify;
    } cases[] = {
        {"{}", "", 0, false},
        {"{\"secretSelector\":null}", "", 0, false},
        {"{\"secretSelector\":{\"matchExpressions\":[{\"key\":\"x\",\"operator\":\"DoesNotExist\"},{\"key\":\"y\","
         "\"operator\":\"Exists\"}]}}",
         "", 0, false},
        {"{\"discover\":{\"enabled\":true}}", "", 0, false},
        {"{\"discover\":{\"enabled\":false,\"unknown\":\"Restart\"}}", "", 0, false},
        {CONSUMER(",\"verify\":{\"port\":1}"), "", 1, true},
        {CONSUMER(",\"verify\":{\"port\":1,\"protocol\":\"MySQL\"}"), "", 1, true},
        {CONSUMER(",\"verify\":{\"port\":1,\"clientSecretName\":\"s\"}"), "", 1, true},
        {"{\"consumers\":[{\"name\":\"i\",\"targetRef\":{\"kind\":\"Ingress\",\"name\":\"i\"}}]}", "", 1, false},
        {"{\"consumers\":[{\"name\":\"j\"," JOB "},{\"name\":\"n\",\"targetRef\":{\"apiVersion\":\"batch/v1\",\"kind\":"
         "\"CronJob\",\"name\":\"n\"}}]}",
         "", 2, false},
        {"{\"consumers\":[{\"name\":\"g\",\"targetRef\":{\"apiVersion\":\"gateway.networking.k8s.io/v1beta1\","
         "\"kind\":\"Gateway\",\"name\":\"g\"}}]}",
         "spec.consumers[0].targetRef.kind 'Gateway' of gateway.networking.k8s.io/v1beta1", 0, false},
        {"{\"consumers\":[{\"name\":\"r\",\"targetRef\":{\"kind\":\"Rollout\",\"name\":\"r\"}},{\"name\":\"s\","
         "\"targetRef\":{\"kind\":\"ReplicaSet\",\"name\":\"s\"}}]}",
         "", 2, false},
        {"{\"consumers\":[{\"name\":\"r\",\"targetRef\":{\"apiVersion\":\"apps.kruise.io/"
         "v1alpha1\",\"kind\":\"CloneSet\","
         "\"name\":\"r\"}},{\"name\":\"c\"," TARGET "}]}",
         "spec.consumers[0].targetRef.kind 'CloneSet' of apps.kruise.io/v1alpha1", 1, false},
        {"{\"consumers\":[{\"name\":\"r\",\"targetRef\":{\"apiVersion\":\"v1\",\"kind\":\"Deployment\",\"name\":\"r\"}}"
         "]}",
         "spec.consumers[0].targetRef.kind 'Deployment' of v1", 0, false},
        {"{\"consumers\":[{\"name\":\"a\"," TARGET "},{\"name\":\"b\",\"targetRef\":{\"kind\":\"DaemonSet\","
         "\"name\":\"d\"}}]}",
         "", 2, false}, /* one name, two kinds */
        {"{\"restart\":{\"windows\":[]}}", "", 0, false},
        {"{\"restart\":{\"windows\":[" NIGHT("") "]}}", "", 0, false},
        {"{\"restart\":{\"overrideWindowBeforeExpiry\":\"48h\"}}", "", 0, false},
        {"{\"restart\":{\"singleReplica\":\"Surge\"}}", "", 0, false},
        {"{\"restart\":{\"singleReplica\":\"Warn\"}}", "", 0, false},
        {"{\"restart\":{\"singleReplica\":\"Block\"}}", "", 0, false},
        {"{\"restart\":{\"method\":\"Evict\"}}", "", 0, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_ok(cases[i].spec);
        cr_autofree char *unsupported = cr_strvec_join(&policy->unsupported, ", ");
        assert_string_equal(unsupported, cases[i].unsupported);
        assert_int_equal(policy->consumers_len, cases[i].consumers);
        if (cases[i].consumers)
            assert_int_equal(policy->consumers[0].verify.endpoints_len, cases[i].verify);
    }
}

/* Several ports, several names on one port, one Secret or another. */
static void test_a_list_of_endpoints_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t endpoints;
        int port; /* of the last one */
        const char *server_name;
        enum cr_probe_protocol protocol;
        const char *secret_name;
    } cases[] = {
        {CONSUMER(ENDPOINTS("{\"port\":1}")), 1, 1, NULL, CR_PROBE_TLS, NULL},
        {CONSUMER(ENDPOINTS(EIGHT)), 8, 8, NULL, CR_PROBE_TLS, NULL},
        {CONSUMER(ENDPOINTS("{\"port\":1},{\"port\":1,\"serverName\":\"a\"},{\"port\":1,\"serverName\":\"b\"}")), 3, 1,
         "b", CR_PROBE_TLS, NULL},
        {CONSUMER(ENDPOINTS("{\"port\":2,\"protocol\":\"PostgreSQL\"}")), 1, 2, NULL, CR_PROBE_POSTGRESQL, NULL},
        {CONSUMER(",\"verify\":{\"protocol\":\"TLS\",\"endpoints\":[{\"port\":3}]}"), 1, 3, NULL, CR_PROBE_TLS, NULL},
        {CONSUMER(",\"verify\":{\"port\":4,\"endpoints\":null}"), 1, 4, NULL, CR_PROBE_TLS, NULL},
        {"{\"secrets\":[{\"name\":\"s\"}],\"consumers\":[{\"name\":\"c\"," TARGET ENDPOINTS(
             "{\"port\":5,\"secretName\":\"s\"}") "}]}",
         1, 5, NULL, CR_PROBE_TLS, "s"},
        {"{\"secretSelector\":{\"matchLabels\":{\"a\":\"b\"}},\"consumers\":[{\"name\":\"c\"," TARGET ENDPOINTS(
             "{\"port\":6,\"secretName\":\"selected\"}") "}]}",
         1, 6, NULL, CR_PROBE_TLS, "selected"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_ok(cases[i].spec);
        const struct cr_policy_verify *verify = &policy->consumers[0].verify;
        assert_int_equal(verify->endpoints_len, cases[i].endpoints);
        const struct cr_verify_endpoint *last = &verify->endpoints[verify->endpoints_len - 1];
        assert_int_equal(last->port, cases[i].port);
        assert_int_equal(last->protocol, cases[i].protocol);
        assert_true(cr_streq(last->server_name, cases[i].server_name));
        assert_true(cr_streq(last->secret_name, cases[i].secret_name));
    }
}

/* A pure client listens nowhere: its page of certificates is all that there is to ask. */
static void test_a_page_of_certificates_needs_no_endpoint(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        size_t endpoints;
        int port;
        const char *path;
    } cases[] = {
        {PAGE("\"port\":9902"), 0, 9902, "/certs"},
        {CONSUMER(",\"verify\":{\"protocol\":\"TLS\",\"certsPage\":{\"port\":1,\"path\":\"/a?b=c\"}}"), 0, 1, "/a?b=c"},
        {CONSUMER(",\"verify\":{\"port\":8443,\"certsPage\":{\"port\":2}}"), 1, 2, "/certs"},
        {CONSUMER(",\"verify\":{\"port\":8443}"), 1, 0, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_ok(cases[i].spec);
        const struct cr_policy_verify *verify = &policy->consumers[0].verify;
        assert_int_equal(verify->endpoints_len, cases[i].endpoints);
        assert_int_equal(verify->certs_port, cases[i].port);
        assert_true(cr_streq(verify->certs_path, cases[i].path));
    }
}

static void test_trust_goes_to_targets_of_both_kinds(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy)
    struct cr_policy *p = decode_ok(BUNDLE(CONFIG("a") ",{\"kind\":\"Secret\",\"name\":\"t\",\"key\":\"bundle.pem\"}"));
    assert_int_equal(p->trust.retain_previous, 1);
    assert_int_equal(p->trust.targets_len, 2);
    assert_false(p->trust.targets[0].is_secret);
    assert_string_equal(p->trust.targets[0].key, "ca.crt");
    assert_true(p->trust.targets[1].is_secret);
    assert_string_equal(p->trust.targets[1].key, "bundle.pem");
    CR_CLEANUP(cr_policy) struct cr_policy *none = decode_ok("{\"trust\":null}");
    assert_int_equal(none->trust.targets_len, 0);
}

static void test_method_and_single_replica_are_words_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum cr_restart_method method;
        enum cr_single_replica single;
    } cases[] = {
        {"{}", CR_RESTART_AUTO, CR_SINGLE_SURGE},
        {"{\"restart\":{\"method\":\"Evict\"}}", CR_RESTART_EVICT, CR_SINGLE_SURGE},
        {"{\"restart\":{\"method\":\"Evict\",\"singleReplica\":\"Warn\"}}", CR_RESTART_EVICT, CR_SINGLE_WARN},
        {"{\"restart\":{\"method\":\"Rollout\",\"singleReplica\":\"Block\"}}", CR_RESTART_ROLLOUT, CR_SINGLE_BLOCK},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_ok(cases[i].spec);
        assert_int_equal(policy->restart.method, cases[i].method);
        assert_int_equal(policy->restart.single, cases[i].single);
    }
}

static void test_windows_have_utc_and_no_override_unless_they_say_so(void **state)
{
    (void)state;
    CR_CLEANUP(cr_policy) struct cr_policy *none = decode_ok("{}");
    assert_int_equal(none->restart.windows_len, 0);
    assert_int_equal(none->restart.override_window_ms, CR_POLICY_NO_OVERRIDE);
    CR_CLEANUP(cr_policy)
    struct cr_policy *policy = decode_ok(WINDOW(NIGHT("") "," NIGHT(",\"timeZone\":\"Asia/Tokyo\"")));
    assert_int_equal(policy->restart.windows_len, 2);
    assert_string_equal(policy->restart.windows[0].time_zone, "UTC");
    assert_string_equal(policy->restart.windows[1].time_zone, "Asia/Tokyo");
    assert_int_equal(policy->restart.method, CR_RESTART_AUTO);
}

static void append_consumers(struct cr_buf *buf, int count)
{
    cr_buf_puts(buf, "{\"consumers\":[");
    for (int i = 0; i < count; i++)
        cr_buf_printf(buf, "%s{\"name\":\"c%d\",\"targetRef\":{\"kind\":\"Deployment\",\"name\":\"d%d\"}}",
                      i ? "," : "", i, i);
    cr_buf_puts(buf, "]}");
}

static void test_lists_are_capped(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf fits = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf over = CR_BUF_INIT(0);
    append_consumers(&fits, CR_POLICY_CONSUMERS_MAX);
    append_consumers(&over, CR_POLICY_CONSUMERS_MAX + 1);
    CR_CLEANUP(cr_policy) struct cr_policy *policy = decode_ok(cr_buf_text(&fits));
    assert_int_equal(policy->consumers_len, CR_POLICY_CONSUMERS_MAX);
    struct cr_error err = {0};
    assert_null(decode(cr_buf_text(&over), &err));
    assert_string_equal(err.text, "spec.consumers has 129 elements; at most 128 are allowed");
}

static void test_an_object_without_identity_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {
        {"{}", "metadata.namespace is required"},
        {"7", "metadata.namespace is required"},
        {"{\"metadata\":[]}", "metadata must be an object"},
        {"{\"metadata\":{\"namespace\":\"n\"}}", "metadata.name is required"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(cases[i].json, strlen(cases[i].json), &err);
        assert_non_null(json);
        assert_null(cr_policy_decode(json, &err));
        assert_string_equal(err.text, cases[i].text);
    }
    struct cr_error err = {0};
    assert_null(cr_policy_decode(NULL, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
}

static void test_a_deletion_timestamp_marks_it_as_going(void **state)
{
    (void)state;
    static const char text[] =
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"deletionTimestamp\":\"2026-11-21T06:00:00Z\"}}";
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(text, strlen(text), &err);
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(json, &err);
    assert_non_null(policy);
    assert_true(policy->deleting);
}

static void test_names_round_trip(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CR_ROLE_COUNT; i++) {
        enum cr_role role = CR_ROLE_COUNT;
        assert_true(cr_role_parse(cr_role_name((enum cr_role)i), &role));
        assert_int_equal(role, i);
    }
    for (unsigned i = 0; i < CR_METHOD_COUNT; i++) {
        enum cr_method method = CR_METHOD_COUNT;
        assert_true(cr_method_parse(cr_method_name((enum cr_method)i), &method));
        assert_int_equal(method, i);
    }
    enum cr_role role = CR_ROLE_OPAQUE;
    assert_false(cr_role_parse("ServerLeaf", &role));
    assert_false(cr_role_parse(NULL, &role));
    assert_int_equal(role, CR_ROLE_OPAQUE);
    assert_string_equal(cr_role_name(CR_ROLE_COUNT), "");
}

static void test_free_takes_null(void **state)
{
    (void)state;
    cr_policy_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_those_of_the_schema),
        cmocka_unit_test(test_every_field_that_is_acted_on_is_read),
        cmocka_unit_test(test_a_spec_with_every_field_is_read),
        cmocka_unit_test(test_errors_name_the_path_and_what_is_allowed),
        cmocka_unit_test(test_an_order_has_a_first),
        cmocka_unit_test(test_what_is_not_acted_on_is_listed),
        cmocka_unit_test(test_a_list_of_endpoints_is_read),
        cmocka_unit_test(test_a_page_of_certificates_needs_no_endpoint),
        cmocka_unit_test(test_trust_goes_to_targets_of_both_kinds),
        cmocka_unit_test(test_method_and_single_replica_are_words_of_their_own),
        cmocka_unit_test(test_windows_have_utc_and_no_override_unless_they_say_so),
        cmocka_unit_test(test_lists_are_capped),
        cmocka_unit_test(test_an_object_without_identity_is_refused),
        cmocka_unit_test(test_a_deletion_timestamp_marks_it_as_going),
        cmocka_unit_test(test_names_round_trip),
        cmocka_unit_test(test_free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
