/* Keys of ML-DSA wherever other keys are taken. OpenSSL has them since 3.5: with an older one these tests are skipped,
 * and test_material.c has what is said then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/strings.h"
#include "net/tls_probe.h"
#include "pki/bundle.h"
#include "pki/inventory.h"
#include "support/issuing.h"
#include "support/testcerts.h"
#include "support/testserver.h"

enum { PATIENCE_MS = 10 * 1000 };

#define AUTO_CERT     CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_MATERIAL CR_CLEANUP(cr_material) struct cr_material
#define make(...)     test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

static const char *const sizes[] = {"ML-DSA-44", "ML-DSA-65", "ML-DSA-87"};

static bool parse(const char *certificate, const char *key, const char *trust, struct cr_material *out,
                  enum cr_material_problem *problem, struct cr_error *err)
{
    const struct cr_material_input in = {
        test_entry(certificate), test_entry(key), test_entry(trust), {"tls.crt", "tls.key", "ca.crt"}};
    return cr_material_parse(&in, cr_clock_wall_ms(), out, problem, err);
}

static void skip_without_ml_dsa(void)
{
    if (!test_has_ml_dsa())
        skip();
}

static void a_secret_is_read_and_its_halves_belong_together(void **state)
{
    (void)state;
    skip_without_ml_dsa();
    for (size_t i = 0; i < cr_array_len(sizes); i++) {
        struct cr_error err = {0};
        enum cr_material_problem problem;
        AUTO_CERT ca = make(.cn = "ca", .ca = true, .key_type = sizes[i]);
        AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca, .key_type = sizes[i], .dns = {"a.example"});
        AUTO_CERT other = make(.cn = "other", .key_type = sizes[i]);
        AUTO_MATERIAL whole = {0};
        if (!parse(leaf->cert_pem, leaf->key_pem, ca->cert_pem, &whole, &problem, &err))
            fail_msg("%s: %s", sizes[i], err.text);
        assert_string_equal(whole.key_type, sizes[i]);
        AUTO_MATERIAL torn = {0};
        assert_false(parse(leaf->cert_pem, other->key_pem, ca->cert_pem, &torn, &problem, &err));
        assert_int_equal(problem, CR_MATERIAL_KEY_MISMATCH);
    }
}

static void a_bundle_holds_both_cas_while_their_leaves_are_in_use(void **state)
{
    (void)state;
    skip_without_ml_dsa();
    struct cr_error err = {0};
    AUTO_CERT old = make(.cn = "old", .ca = true);
    AUTO_CERT fresh = make(.cn = "new", .ca = true, .key_type = "ML-DSA-65");
    AUTO_CERT before = make(.cn = "a", .issuer = old);
    AUTO_CERT after = make(.cn = "b", .issuer = fresh, .key_type = "ML-DSA-44");
    cr_autofree char *want = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    const struct cr_pem_input previous = test_entry(old->cert_pem);
    const struct cr_bundle_leaf leaves[] = {{.name = "before", .chain = test_entry(before->cert_pem)},
                                            {.name = "after", .chain = test_entry(after->cert_pem)}};
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    const struct cr_bundle_input in = {test_entry(fresh->cert_pem), &previous, 1, 0, leaves, cr_array_len(leaves)};
    if (!cr_bundle_make(&in, cr_clock_wall_ms(), &bundle, &err))
        fail_msg("%s", err.text);
    assert_string_equal(bundle.pem, want);
}

static void a_ca_issues_leaves_and_its_key_is_in_inventories(void **state)
{
    (void)state;
    skip_without_ml_dsa();
    struct cr_error err = {0};
    int64_t now_ms = cr_clock_wall_ms();
    AUTO_CERT ca = make(.cn = "ca", .ca = true, .key_type = "ML-DSA-87");
    const struct cr_pem_input certificate = test_entry(ca->cert_pem);
    const struct cr_pem_input key = test_entry(ca->key_pem);
    CR_CLEANUP(cr_authority) struct cr_authority *authority = cr_authority_read(&certificate, &key, now_ms, &err);
    if (!authority)
        fail_msg("%s", err.text);
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_strvec_add(&names, "a.example");
    const struct cr_leaf_spec spec = {.dns_names = &names, .usages = CR_LEAF_SERVER, .duration_ms = TEST_HOUR};
    CR_CLEANUP(cr_private_key) struct cr_private_key *own = test_key(CR_KEY_ECDSA, 256);
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    if (!cr_issue_leaf(authority, &spec, own, now_ms, &issued, &err))
        fail_msg("%s", err.text);
    CR_CLEANUP(cr_inventory) struct cr_inventory of_key = {0};
    CR_CLEANUP(cr_inventory) struct cr_inventory of_certificate = {0};
    assert_true(cr_inventory_read(&key, CR_INVENTORY_PRIVATE_KEY, &of_key, &err));
    assert_true(cr_inventory_read(&certificate, CR_INVENTORY_CERTIFICATE, &of_certificate, &err));
    assert_string_equal(of_key.items[0].key, of_certificate.items[0].key);
}

static void servers_are_probed_with_and_without_a_clients_certificate(void **state)
{
    (void)state;
    skip_without_ml_dsa();
    for (size_t i = 0; i < cr_array_len(sizes); i++) {
        struct cr_error err = {0};
        AUTO_CERT ca = make(.cn = "ca", .ca = true, .key_type = sizes[i]);
        AUTO_CERT leaf = make(.cn = "server", .issuer = ca, .key_type = sizes[i]);
        AUTO_CERT stranger = make(.cn = "stranger", .key_type = sizes[i]);
        CR_CLEANUP(test_server)
        struct test_server *server = test_server_new(
            &(struct test_server_options){.cert = leaf, .client_ca = ca, .tls_version = TLS1_3_VERSION});
        const struct test_cert *const who[] = {leaf, stranger, NULL};
        static const enum cr_probe_consent consents[] = {CR_PROBE_ACCEPTED, CR_PROBE_DENIED, CR_PROBE_NO_CLIENT};
        for (size_t at = 0; at < cr_array_len(who); at++) {
            CR_CLEANUP(cr_probe_client)
            struct cr_probe_client *client = who[at]
                                                 ? cr_probe_client_new(who[at]->cert_pem, strlen(who[at]->cert_pem),
                                                                       who[at]->key_pem, strlen(who[at]->key_pem), &err)
                                                 : NULL;
            if (who[at] && !client)
                fail_msg("%s: %s", sizes[i], err.text);
            const struct cr_probe_target target = {
                .address = "127.0.0.1", .port = test_server_port(server), .client = client};
            struct cr_probe_result result;
            cr_tls_probe(&target, 1, PATIENCE_MS, &result);
            /* A server that hangs up on a stranger before all of its certificate has come may reset its own alert away.
             */
            bool reset = who[at] == stranger && result.consent == CR_PROBE_NO_CLIENT;
            if (result.outcome != CR_PROBE_SERVED || (result.consent != consents[at] && !reset))
                fail_msg("%s, %zu: %d, %d '%s'", sizes[i], at, (int)result.outcome, (int)result.consent, result.detail);
        }
    }
}

/* A signature of SLH-DSA costs milliseconds, in its slow forms seconds. */
static void keys_of_slh_dsa_are_not_taken(void **state)
{
    (void)state;
    skip_without_ml_dsa();
    struct cr_error err = {0};
    enum cr_material_problem problem;
    AUTO_CERT ca = make(.cn = "ca", .ca = true, .key_type = "SLH-DSA-SHA2-128f");
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca);
    AUTO_MATERIAL own = {0};
    assert_false(parse(ca->cert_pem, ca->key_pem, NULL, &own, &problem, &err));
    assert_non_null(strstr(err.text, "with which certificates are not signed"));
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    const struct cr_bundle_leaf user = {.name = "leaf", .chain = test_entry(leaf->cert_pem)};
    const struct cr_bundle_input in = {.current = test_entry(ca->cert_pem), .leaves = &user, .leaves_len = 1};
    assert_true(cr_bundle_make(&in, cr_clock_wall_ms(), &bundle, &err));
    assert_int_equal(bundle.proof, CR_BUNDLE_TOO_COSTLY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_read_and_its_halves_belong_together),
        cmocka_unit_test(a_bundle_holds_both_cas_while_their_leaves_are_in_use),
        cmocka_unit_test(a_ca_issues_leaves_and_its_key_is_in_inventories),
        cmocka_unit_test(servers_are_probed_with_and_without_a_clients_certificate),
        cmocka_unit_test(keys_of_slh_dsa_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
