#include "policy/controller/acts_trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/controller/acts_probe.h"
#include "support/fakeapi.h"
#include "support/ownnet.h"
#include "support/testserver.h"
#include "support/yamltext.h"

/* Of this machine, in a network of the test's own; probes may go there. */
#define POD_ADDRESS "10.77.0.9"
static bool own_network;

enum { STARTED = 77, HOUR_MS = 3600 * 1000 };

static const char policy_text[] =
    "apiVersion: certroll.dev/v1alpha1\n"
    "kind: CertRotationPolicy\n"
    "metadata: {name: edge, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
    "spec:\n"
    "  secrets: [{name: web-tls}]\n"
    "  consumers:\n"
    "  - {name: one, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, verify: {port: 8443}}\n";

/* One pod that is looked at. */
struct fixture {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_memory *memory;
    struct cr_canaries *canaries;
    struct cr_policy *policy;
    struct cr_policy_verify *verify;
    struct cr_json *pod_json;
    struct cr_world_pod pod;
    struct cr_world_consumer consumer;
    struct cr_world_secret secret;
    struct cr_material target;
    struct cr_gathered gathered;
    struct cr_plan_pod what;
};

/* port: of its TLS endpoint; certs_port: of its page; 0: there is none. */
static void open_fixture(struct fixture *f, int port, int certs_port)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(policy_text);
    *f = (struct fixture){.loop = cr_loop_new(), .memory = cr_memory_new(), .canaries = cr_canaries_new()};
    f->client = fake_client(f->loop, 1);
    f->policy = cr_policy_decode(json, &err);
    if (!f->policy)
        fail_msg("%s", err.text);
    f->verify = &f->policy->consumers[0].verify;
    f->verify->endpoints[0].port = port;
    f->verify->endpoints_len = port ? 1 : 0;
    f->verify->certs_port = certs_port;
    cr_strset(&f->verify->certs_path, "/certs");
    f->pod_json = test_yaml("{status: {hostIP: 10.1.1.1}}");
    f->pod = (struct cr_world_pod){
        .pod = f->pod_json, .name = "one-0", .uid = "uid", .ip = POD_ADDRESS, .started_ms = STARTED};
    f->consumer = (struct cr_world_consumer){.found = true, .pods = &f->pod, .pods_len = 1};
    f->secret = (struct cr_world_secret){.found = true, .material = &f->target};
    f->gathered = (struct cr_gathered){.consumers = &f->consumer, .secrets = &f->secret};
    f->gathered.world = (struct cr_world){
        .policy = f->policy, .status = &f->gathered.status, .consumers = &f->consumer, .secrets = &f->secret};
    f->what = (struct cr_plan_pod){.trust = true};
}

static void close_fixture(struct fixture *f)
{
    f->verify->endpoints_len = 1;
    cr_policy_status_dispose(&f->gathered.status);
    cr_material_dispose(&f->target);
    cr_json_free(f->pod_json);
    cr_policy_free(f->policy);
    cr_canaries_free(f->canaries);
    cr_memory_free(f->memory);
    cr_client_free(f->client);
    cr_loop_free(f->loop);
}

static void look(struct fixture *f, struct cr_trust_sighting *seen)
{
    const struct cr_actor actor = {.client = f->client, .memory = f->memory, .canaries = f->canaries};
    struct cr_plan plan = {.probes = &f->what, .probes_len = 1};
    assert_true(cr_act_probe(&actor, &f->gathered, &plan));
    cr_memory_trust(f->memory, "uid", STARTED, f->verify, cr_clock_wall_ms(), seen);
}

/* --- what a Secret has, and what status remembers --- */

static void add_ca(struct cr_material *material, const struct test_cert *cert)
{
    struct cr_error err = {0};
    enum cr_material_problem problem;
    struct cr_material read;
    const struct cr_material_input in = {.trust = {cert->cert_pem, strlen(cert->cert_pem)},
                                         .names = {"tls.crt", "tls.key", "ca.crt"}};
    if (!cr_material_parse(&in, cr_clock_wall_ms(), &read, &problem, &err))
        fail_msg("%s", err.text);
    material->trust = cr_reallocarray(material->trust, material->trust_len + 1, sizeof *material->trust);
    material->trust[material->trust_len++] = read.trust[0];
    cr_material_dispose(&read);
}

static void settled_on(struct fixture *f, const struct test_cert *ca)
{
    struct cr_secret_status *secret = cr_status_secret_add(&f->gathered.status, "web-tls");
    secret->has_settled = true;
    add_ca(&secret->settled, ca);
}

/* The newest CA of the Secret, for which there is a canary. */
static void wants_canary(struct fixture *f, const struct test_cert *ca, const struct test_cert *canary)
{
    struct cr_error err = {0};
    add_ca(&f->target, ca);
    snprintf(f->what.canary_ca, sizeof f->what.canary_ca, "%s", f->target.trust[0].fingerprint);
    struct cr_probe_client *client =
        cr_probe_client_new(canary->cert_pem, strlen(canary->cert_pem), canary->key_pem, strlen(canary->key_pem), &err);
    assert_non_null(client);
    cr_canaries_put(f->canaries, f->what.canary_ca, client, cr_clock_wall_ms() + HOUR_MS);
}

/* --- endpoints --- */

static void answer(struct test_conn *conn, void *arg)
{
    (void)arg;
    if (test_conn_request(conn))
        test_conn_answer(conn, 200, "", "");
}

static void names_are_remembered_where_the_plan_wants_them(void **state)
{
    (void)state;
    if (!own_network)
        skip();
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_server)
    struct test_server *server = test_server_new(
        &(struct test_server_options){.cert = ca, .client_ca = ca, .serve = answer, .address = POD_ADDRESS});
    for (int wanted = 0; wanted < 2; wanted++) {
        struct fixture f;
        open_fixture(&f, test_server_port(server), 0);
        f.what.trust = wanted;
        add_ca(&f.target, ca);
        int64_t from_ms = cr_clock_wall_ms();
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        look(&f, &seen);
        if (wanted) {
            assert_in_range(seen.at_ms, from_ms, cr_clock_wall_ms());
            const struct cr_endpoint_trust *trust = &seen.endpoints[0];
            assert_true(trust->reached && trust->announced.asked && !trust->announced.more);
            assert_int_equal(trust->announced.len, 1);
            char name[CR_SHA256_HEX];
            for (size_t i = 0; i < sizeof trust->announced.names[0]; i++)
                snprintf(&name[2 * i], 3, "%02x", trust->announced.names[0][i]);
            assert_string_equal(name, f.target.trust[0].subject);
            assert_int_equal(trust->canary, CR_CANARY_NONE);
        } else {
            assert_int_equal(seen.at_ms, 0);
        }
        close_fixture(&f);
    }
}

static void who_cannot_be_asked_was_not_reached(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", POD_ADDRESS};
    (void)state;
    if (!own_network)
        skip();
    for (size_t i = 0; i < cr_array_len(addresses); i++) {
        struct fixture f;
        open_fixture(&f, 1, 0);
        f.pod.ip = addresses[i];
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        look(&f, &seen);
        assert_int_not_equal(seen.at_ms, 0);
        assert_false(seen.endpoints[0].reached);
        close_fixture(&f);
    }
}

/* A canary costs the server a stranger: it is sent only where names leave it open. */
static void a_canary_is_sent_where_names_leave_it_open(void **state)
{
    enum { OLD, NEW, NONE };
    static const struct {
        const char *rule;
        bool same_subject;
        int trusts; /* what the server has */
        bool has_canary;
        enum cr_canary_verdict verdict;
        unsigned connections; /* 0: any */
    } cases[] = {
        {"the new CA is not announced", false, OLD, true, CR_CANARY_NONE, 1},
        {"it is announced, and no other CA has its name", false, NEW, true, CR_CANARY_NONE, 1},
        {"its name may be that of the old one", true, OLD, true, CR_CANARY_UNTRUSTED, 2},
        {"its name may be that of the old one, and it is not", true, NEW, true, CR_CANARY_TRUSTED, 3},
        {"there is no canary", true, NEW, false, CR_CANARY_NONE, 1},
        {"nobody is asked for a certificate", true, NONE, true, CR_CANARY_NONE, 1},
    };
    (void)state;
    if (!own_network)
        skip();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_cert) struct test_cert *old = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
        CR_CLEANUP(test_cert)
        struct test_cert *new =
            test_cert_new(&(struct test_cert_spec){.cn = cases[i].same_subject ? "ca" : "new", .ca = true});
        CR_CLEANUP(test_cert) struct test_cert *canary = test_cert_new(&(struct test_cert_spec){.issuer = new});
        const struct test_cert *const trusted[] = {old, new, NULL};
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(&(struct test_server_options){
            .cert = old, .client_ca = trusted[cases[i].trusts], .serve = answer, .address = POD_ADDRESS});
        struct fixture f;
        open_fixture(&f, test_server_port(server), 0);
        settled_on(&f, old);
        wants_canary(&f, new, canary);
        if (!cases[i].has_canary)
            f.what.canary_ca[0] = f.what.canary_ca[0] == '0' ? '1' : '0';
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        look(&f, &seen);
        const struct cr_endpoint_trust *trust = &seen.endpoints[0];
        bool of_it = cr_streq(trust->canary_ca, f.what.canary_ca);
        if (trust->canary != cases[i].verdict || of_it != (cases[i].verdict != CR_CANARY_NONE) ||
            test_server_accepted(server) != cases[i].connections)
            fail_msg("%s: %d, %u connections", cases[i].rule, (int)trust->canary, test_server_accepted(server));
        close_fixture(&f);
    }
}

/* --- pages --- */

static void serve_page(struct test_conn *conn, void *arg)
{
    if (test_conn_request(conn))
        test_conn_answer(conn, 200, "", arg);
}

static void a_page_is_read_or_it_is_said_why_not(void **state)
{
    static const struct {
        const char *rule;
        const char *page;
        const char *ip;
        bool closed;
        bool read;
        const char *words;
    } cases[] = {
        {"a page", "{\"certificates\":[{\"ca_cert\":[{\"serial_number\":\"0a\"}]}]}", POD_ADDRESS, false, true, ""},
        {"another page", "<html>", POD_ADDRESS, false, false, "it is not JSON"},
        {"nobody there", "", POD_ADDRESS, true, false,
         "connect to server"}, /* libcurl's, which begins in several ways */
        {"not a pod's address", "", "127.0.0.1", false, false, "it is not at an address that may be asked"},
        {"no address yet", "", NULL, false, false, "it is not at an address that may be asked"},
    };
    (void)state;
    if (!own_network)
        skip();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(&(struct test_server_options){
            .serve = serve_page, .arg = (void *)(uintptr_t)cases[i].page, .address = POD_ADDRESS});
        struct fixture f;
        open_fixture(&f, 0, cases[i].closed ? 1 : test_server_port(server));
        f.pod.ip = cases[i].ip;
        CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen;
        look(&f, &seen);
        if (!seen.at_ms || seen.page_read != cases[i].read || !cr_ends_with(seen.words, cases[i].words))
            fail_msg("%s: '%s'", cases[i].rule, seen.words);
        assert_int_equal(seen.contexts_len, cases[i].read ? 1 : 0);
        close_fixture(&f);
    }
}

int main(void)
{
    own_network = test_own_network(POD_ADDRESS);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_remembered_where_the_plan_wants_them),
        cmocka_unit_test(who_cannot_be_asked_was_not_reached),
        cmocka_unit_test(a_canary_is_sent_where_names_leave_it_open),
        cmocka_unit_test(a_page_is_read_or_it_is_said_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
