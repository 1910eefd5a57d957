#include "sidecar/proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/strings.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 20 * 1000 };

static char loopback[] = "127.0.0.1";

/* Two generations of a CA and its leaf; and a CA of the first one's name with a key of its own. */
struct pki {
    struct test_cert *ca[2], *leaf[2], *other, *twin;
};

static int set_up(void **state)
{
    static const char *const names[] = {"ca one", "ca two"};
    static struct pki pki;
    for (int i = 0; i < 2; i++) {
        pki.ca[i] = test_cert_new(&(struct test_cert_spec){.cn = names[i], .ca = true});
        pki.leaf[i] = test_cert_new(&(struct test_cert_spec){.cn = "web", .issuer = pki.ca[i]});
    }
    pki.other = test_cert_new(&(struct test_cert_spec){.cn = "somebody else's", .ca = true});
    pki.twin = test_cert_new(&(struct test_cert_spec){.cn = names[0], .ca = true});
    *state = &pki;
    return 0;
}

static int tear_down(void **state)
{
    struct pki *pki = *state;
    for (int i = 0; i < 2; i++) {
        test_cert_free(pki->ca[i]);
        test_cert_free(pki->leaf[i]);
    }
    test_cert_free(pki->other);
    test_cert_free(pki->twin);
    return 0;
}

/* leaf, trust: NULL: none; second: one more CA of the trust. */
static struct cr_material material_of(const struct test_cert *leaf, const struct test_cert *trust,
                                      const struct test_cert *second)
{
    struct cr_material out;
    enum cr_material_problem problem = CR_MATERIAL_OK;
    struct cr_error err = {0};
    cr_autofree char *bundle = trust ? test_concat(trust->cert_pem, second ? second->cert_pem : "", NULL) : NULL;
    struct cr_material_input in = {.names = {"tls.crt", "tls.key", "ca.crt"}};
    if (leaf) {
        in.certificate = (struct cr_pem_input){leaf->cert_pem, strlen(leaf->cert_pem)};
        in.private_key = (struct cr_pem_input){leaf->key_pem, strlen(leaf->key_pem)};
    }
    if (bundle)
        in.trust = (struct cr_pem_input){bundle, strlen(bundle)};
    if (!cr_material_parse(&in, cr_clock_wall_ms(), &out, &problem, &err))
        fail_msg("the test's own material: %s", err.text);
    return out;
}

static struct cr_proof look_at(const struct test_server *const *servers, size_t len, const struct cr_material *wanted,
                               const struct cr_material *before)
{
    struct cr_proof_endpoint endpoints[4];
    struct cr_sidecar_material material = {.proof = {.endpoints = endpoints, .endpoints_len = len}};
    struct cr_proof proof;
    for (size_t i = 0; i < len; i++)
        endpoints[i] =
            (struct cr_proof_endpoint){.address = loopback, .port = servers[i] ? test_server_port(servers[i]) : 1};
    memset(&proof, 0xaa, sizeof proof);
    cr_proof_look(&material, wanted, before, PATIENCE_MS, &proof);
    return proof;
}

static void without_an_endpoint_there_is_no_proof(void **state)
{
    struct pki *pki = *state;
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[0], NULL, NULL);
    struct cr_proof proof = look_at(NULL, 0, &wanted, NULL);
    assert_int_equal(proof.verdict, CR_PROOF_NONE);
    assert_false(proof.trust_seen);
    assert_string_equal(proof.served, "");
    assert_string_equal(proof.words, "");
}

static void the_leaf_that_is_served_decides(void **state)
{
    struct pki *pki = *state;
    const struct test_server_options options = {.cert = pki->leaf[0]};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    const struct test_server *servers[] = {server};
    CR_CLEANUP(cr_material) struct cr_material before = material_of(pki->leaf[0], pki->ca[0], NULL);
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[1], pki->ca[1], NULL);
    struct cr_proof proof = look_at(servers, 1, &wanted, &before);
    assert_int_equal(proof.verdict, CR_PROOF_OLD);
    assert_string_equal(proof.served, before.leaf);
    assert_non_null(strstr(proof.words, "serves another leaf"));
    test_server_swap(server, pki->leaf[1]);
    proof = look_at(servers, 1, &wanted, &before);
    assert_int_equal(proof.verdict, CR_PROOF_NEW);
    assert_string_equal(proof.served, wanted.leaf);
    assert_string_equal(proof.words, "");
    assert_false(proof.trust_seen); /* it asks no client for a certificate */
}

static void the_worst_endpoint_decides(void **state)
{
    struct pki *pki = *state;
    const struct test_server_options old = {.cert = pki->leaf[0]}, new = {.cert = pki->leaf[1]};
    CR_CLEANUP(test_server) struct test_server *server_old = test_server_new(&old);
    CR_CLEANUP(test_server) struct test_server *server_new = test_server_new(&new);
    const struct {
        const struct test_server *servers[3];
        size_t len;
        enum cr_proof_verdict verdict;
        const char *words;
    } cases[] = {
        {{server_new, server_new}, 2, CR_PROOF_NEW, ""},
        {{server_new, server_old}, 2, CR_PROOF_OLD, "serves another leaf"},
        {{server_new, NULL}, 2, CR_PROOF_UNKNOWN, "port 1: "},
        {{NULL, server_old, server_new}, 3, CR_PROOF_OLD, "serves another leaf"},
    };
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[1], NULL, NULL);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_proof proof = look_at(cases[i].servers, cases[i].len, &wanted, NULL);
        assert_int_equal(proof.verdict, cases[i].verdict);
        if (!strstr(proof.words, cases[i].words))
            fail_msg("%zu: %s", i, proof.words);
    }
}

static void announced_names_prove_the_trust(void **state)
{
    struct pki *pki = *state;
    struct test_cert *const one = pki->ca[0], *const two = pki->ca[1];
    const struct {
        const char *rule;
        const struct test_cert *announced;
        const struct test_cert *wanted[2];
        const struct test_cert *before; /* NULL: not known */
        enum cr_proof_verdict verdict;
        bool trust_seen;
    } cases[] = {
        {"the new CA and no other", two, {two}, one, CR_PROOF_NEW, true},
        {"the CA of before", one, {two}, one, CR_PROOF_OLD, false},
        {"one of the two that should be", one, {one, two}, one, CR_PROOF_OLD, false},
        {"nothing has changed", one, {one}, one, CR_PROOF_NEW, true},
        {"another bundle's CA", pki->other, {two}, one, CR_PROOF_NEW, false},
        {"what was before is not known", two, {two}, NULL, CR_PROOF_NEW, false},
        {"one of two is missing, whatever was before", one, {one, two}, NULL, CR_PROOF_OLD, false},
        {"a CA of the same name, but another", one, {one}, pki->twin, CR_PROOF_NEW, false},
        {"two CAs of one name", one, {one, pki->twin}, one, CR_PROOF_NEW, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct test_server_options options = {.cert = pki->leaf[0], .client_ca = cases[i].announced};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        const struct test_server *servers[] = {server};
        CR_CLEANUP(cr_material)
        struct cr_material wanted = material_of(pki->leaf[0], cases[i].wanted[0], cases[i].wanted[1]);
        CR_CLEANUP(cr_material) struct cr_material before = {0};
        if (cases[i].before)
            before = material_of(pki->leaf[0], cases[i].before, NULL);
        struct cr_proof proof = look_at(servers, 1, &wanted, cases[i].before ? &before : NULL);
        if (proof.verdict != cases[i].verdict || proof.trust_seen != cases[i].trust_seen)
            fail_msg("%s: verdict %d, trust seen: %d, %s", cases[i].rule, (int)proof.verdict, proof.trust_seen,
                     proof.words);
    }
}

static void a_material_without_leaf_is_proven_by_names(void **state)
{
    struct pki *pki = *state;
    const struct {
        const struct test_cert *announced; /* NULL: no certificate is asked for */
        enum cr_proof_verdict verdict;
        bool trust_seen;
    } cases[] = {{pki->ca[1], CR_PROOF_NEW, true},
                 {pki->ca[0], CR_PROOF_OLD, false},
                 {pki->other, CR_PROOF_NONE, false},
                 {NULL, CR_PROOF_NONE, false}};
    CR_CLEANUP(cr_material) struct cr_material before = material_of(NULL, pki->ca[0], NULL);
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(NULL, pki->ca[1], NULL);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct test_server_options options = {.cert = pki->leaf[0], .client_ca = cases[i].announced};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        const struct test_server *servers[] = {server};
        struct cr_proof proof = look_at(servers, 1, &wanted, &before);
        assert_int_equal(proof.verdict, cases[i].verdict);
        assert_int_equal(proof.trust_seen, cases[i].trust_seen);
    }
}

/* Software may leave a CA out that has expired. */
static void a_ca_that_expired_need_not_be_announced(void **state)
{
    struct pki *pki = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *expired =
        test_cert_new(&(struct test_cert_spec){.cn = "expired", .ca = true, .from_s = -7200, .until_s = -3600});
    const struct test_server_options options = {.cert = pki->leaf[0], .client_ca = pki->ca[1]};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    const struct test_server *servers[] = {server};
    CR_CLEANUP(cr_material) struct cr_material before = material_of(pki->leaf[0], pki->ca[0], NULL);
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[0], pki->ca[1], expired);
    struct cr_proof proof = look_at(servers, 1, &wanted, &before);
    assert_int_equal(proof.verdict, CR_PROOF_NEW);
    assert_true(proof.trust_seen);
}

/* Each connection may be another worker's. */
static void an_endpoint_is_asked_more_than_once(void **state)
{
    struct pki *pki = *state;
    const struct test_server_options options = {.cert = pki->leaf[0]};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    const struct test_server *servers[] = {server};
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[0], NULL, NULL);
    assert_int_equal(look_at(servers, 1, &wanted, NULL).verdict, CR_PROOF_NEW);
    assert_true(test_server_accepted(server) > 1);
}

/* Half of its connections are of a worker that has not changed yet. */
static void swap_each_time(struct test_conn *conn, void *arg)
{
    struct pki *pki = arg;
    test_server_swap(conn->server, pki->leaf[conn->number % 2]);
    test_conn_wait_closed(conn);
}

static void one_old_worker_is_enough(void **state)
{
    enum { TRIES = 20 };
    struct pki *pki = *state;
    const struct test_server_options options = {.cert = pki->leaf[1], .serve = swap_each_time, .arg = pki};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    const struct test_server *servers[] = {server};
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[1], NULL, NULL);
    bool old = false;
    for (int i = 0; i < TRIES && !old; i++) /* handshakes that overlap may all be of one kind */
        old = look_at(servers, 1, &wanted, NULL).verdict == CR_PROOF_OLD;
    assert_true(old);
}

/* Nothing answers there: the time is over, and that is not "old". */
static void who_is_silent_is_unknown(void **state)
{
    struct pki *pki = *state;
    const struct test_server_options options = {.serve = test_serve_silence};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    struct cr_proof_endpoint endpoint = {.address = loopback, .port = test_server_port(server)};
    const struct cr_sidecar_material material = {.proof = {.endpoints = &endpoint, .endpoints_len = 1}};
    CR_CLEANUP(cr_material) struct cr_material wanted = material_of(pki->leaf[0], NULL, NULL);
    struct cr_proof proof;
    int64_t begun = cr_clock_monotonic_ms();
    cr_proof_look(&material, &wanted, NULL, 300, &proof);
    assert_int_equal(proof.verdict, CR_PROOF_UNKNOWN);
    assert_true(proof.words[0] != '\0');
    assert_true(cr_clock_monotonic_ms() - begun < PATIENCE_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_endpoint_there_is_no_proof),
        cmocka_unit_test(the_leaf_that_is_served_decides),
        cmocka_unit_test(the_worst_endpoint_decides),
        cmocka_unit_test(announced_names_prove_the_trust),
        cmocka_unit_test(a_material_without_leaf_is_proven_by_names),
        cmocka_unit_test(a_ca_that_expired_need_not_be_announced),
        cmocka_unit_test(an_endpoint_is_asked_more_than_once),
        cmocka_unit_test(one_old_worker_is_enough),
        cmocka_unit_test(who_is_silent_is_unknown),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
