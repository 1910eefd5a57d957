#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "api/domain.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "pki/issue.h"
#include "support/jsontext.h"

#define HOUR INT64_C(3600000)

/* A domain with the given JSON as its spec. Owned; NULL with err set when it is refused. */
static struct cr_domain *decode(bool cluster, const char *spec, struct cr_error *err)
{
    cr_autofree char *text =
        cr_asprintf("{\"kind\":\"%s\",\"metadata\":{%s\"name\":\"mesh\",\"uid\":\"u-1\",\"resourceVersion\":\"42\","
                    "\"generation\":7,\"creationTimestamp\":\"2026-11-21T06:10:21Z\"},\"spec\":%s}",
                    cluster ? "ClusterTrustDomain" : "TrustDomain", cluster ? "" : "\"namespace\":\"shop\",", spec);
    CR_CLEANUP(cr_json) struct cr_json *json = test_json(text);
    return cr_domain_decode(json, err);
}

static struct cr_domain *decode_ok(bool cluster, const char *spec)
{
    struct cr_error err = {0};
    struct cr_domain *domain = decode(cluster, spec, &err);
    if (!domain)
        fail_msg("refused: %s", err.text);
    return domain;
}

static struct cr_domain *decode_file(bool cluster, const char *path)
{
    static char spec[16 * 1024];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    spec[fread(spec, 1, sizeof spec - 1, file)] = '\0';
    fclose(file);
    return decode_ok(cluster, spec);
}

#define CA          "\"authority\":{\"type\":\"Issue\",\"issue\":{\"caSecretName\":\"ca\"}}"
#define MIRROR      "\"source\":{\"type\":\"Mirror\",\"mirror\":{\"secretName\":\"issued\"}}"
#define ISSUE(rest) "\"source\":{\"type\":\"Issue\",\"issue\":{\"dnsNames\":[\"a.b\"]" rest "}}"
#define LEAF(rest)  "\"leaves\":[{\"name\":\"tls\"," rest "}]"

static void test_defaults_are_those_of_the_schema(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain) struct cr_domain *d = decode_ok(false, "{" CA "," LEAF(ISSUE("")) "}");
    assert_false(d->cluster || d->suspend || d->deleting);
    assert_string_equal(d->ns, "shop");
    assert_string_equal(d->name, "mesh");
    assert_string_equal(d->uid, "u-1");
    assert_string_equal(d->resource_version, "42");
    assert_int_equal(d->generation, 7);
    assert_int_equal(d->created_ms, INT64_C(1795241421000));
    assert_int_equal(d->authority, CR_AUTHORITY_ISSUE);
    assert_string_equal(d->ca.common_name, "mesh");
    assert_int_equal(d->ca.key.algorithm, CR_KEY_ECDSA);
    assert_int_equal(d->ca.key.size, 256);
    assert_int_equal(d->ca.life.duration_ms, 8760 * HOUR);
    assert_int_equal(d->ca.life.renew_before_ms, 0);
    assert_false(d->ca.cross_sign);
    const struct cr_domain_leaf *leaf = &d->leaves[0];
    assert_string_equal(leaf->secret, "tls");
    assert_string_equal(leaf->ns, "shop");
    assert_null(leaf->common_name);
    assert_int_equal(leaf->usages, CR_LEAF_SERVER);
    assert_int_equal(leaf->life.duration_ms, 2160 * HOUR);
    assert_false(leaf->keystore.set);
    assert_int_equal(d->retain_previous, 1);
    assert_int_equal(d->retire, CR_RETIRE_NEXT_ROTATION);
    assert_int_equal(d->evidence.trust, CR_LEVEL_INFERRED);
    assert_int_equal(d->evidence.leaf, CR_LEVEL_INFERRED);
    assert_int_equal(d->evidence.uncovered, CR_UNCOVERED_WAIT);
    assert_int_equal(d->evidence.stage_deadline_ms, HOUR);
    assert_null(d->rotate_token);
}

static void test_without_an_authority_it_is_external(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain) struct cr_domain *d = decode_ok(false, "{" LEAF(MIRROR) "}");
    assert_int_equal(d->authority, CR_AUTHORITY_EXTERNAL);
    assert_int_equal(d->leaves[0].source, CR_LEAF_MIRROR);
    assert_string_equal(d->leaves[0].mirror, "issued");
    assert_null(d->ca.ca_secret);
}

/* Every field of the schema: test/integration/test_crd_domains.py has the API server take the same file. */
static void test_a_spec_with_every_field_is_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain)
    struct cr_domain *d = decode_file(false, CERTROLL_SOURCE_DIR "/test/testdata/domain-full.json");
    assert_true(d->suspend && d->ca.cross_sign);
    assert_string_equal(d->ca.ca_secret, "mesh-ca");
    assert_int_equal(d->ca.key.algorithm, CR_KEY_RSA);
    assert_int_equal(d->ca.key.size, 3072);
    assert_int_equal(d->ca.life.duration_ms, 17520 * HOUR);
    assert_int_equal(d->ca.life.renew_before_ms, 720 * HOUR);
    assert_int_equal(d->leaves_len, 2);
    const struct cr_domain_leaf *server = &d->leaves[0];
    assert_string_equal(server->secret, "server-tls");
    assert_int_equal(server->source, CR_LEAF_ISSUE);
    assert_string_equal(server->common_name, "server");
    assert_string_equal(server->dns_names.items[1], "*.server.shop.svc");
    assert_string_equal(server->addresses.items[1], "fd00::1");
    assert_string_equal(server->uris.items[0], "spiffe://cluster.local/ns/shop/sa/server");
    assert_string_equal(server->emails.items[0], "ops@example.org");
    assert_string_equal(server->organizations.items[0], "shop");
    assert_int_equal(server->usages, CR_LEAF_SERVER | CR_LEAF_CLIENT);
    assert_int_equal(server->key.size, 384);
    assert_int_equal(server->life.duration_ms, 24 * HOUR);
    assert_int_equal(server->life.renew_before_ms, HOUR * 3 / 2);
    assert_true(server->keystore.set);
    assert_string_equal(server->keystore.password_secret, "keystore-password");
    assert_string_equal(server->keystore.password_key, "p12");
    assert_int_equal(d->targets_len, 2);
    assert_int_equal(d->targets[0].kind, CR_TARGET_CONFIGMAP);
    assert_string_equal(d->targets[0].key, "bundle.pem");
    assert_int_equal(d->targets[1].kind, CR_TARGET_SECRET);
    assert_string_equal(d->targets[1].key, "ca.crt");
    assert_string_equal(d->targets[1].ns, "shop");
    assert_int_equal(d->retain_previous, 3);
    assert_int_equal(d->retire, CR_RETIRE_CONVERGED);
    assert_int_equal(d->evidence.trust, CR_LEVEL_VERIFIED);
    assert_int_equal(d->evidence.leaf, CR_LEVEL_VERIFIED);
    assert_int_equal(d->evidence.uncovered, CR_UNCOVERED_DELAY);
    assert_int_equal(d->evidence.stage_deadline_ms, HOUR / 6);
    assert_string_equal(d->rotate_token, "2026-11-21");
    assert_int_equal(d->rotate, CR_ROTATE_CA);
}

static void test_the_cluster_kind_reaches_other_namespaces_and_ca_bundles(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain)
    struct cr_domain *d = decode_file(true, CERTROLL_SOURCE_DIR "/test/testdata/cluster-domain-full.json");
    assert_true(d->cluster);
    assert_null(d->ns);
    assert_int_equal(d->ca.key.algorithm, CR_KEY_ED25519);
    assert_int_equal(d->ca.key.size, 256);
    assert_string_equal(d->leaves[0].ns, "backend");
    assert_string_equal(d->leaves[1].ns, "frontend");
    assert_string_equal(d->leaves[1].secret, d->leaves[0].secret);
    static const enum cr_trust_target_kind kinds[] = {CR_TARGET_CONFIGMAP,          CR_TARGET_SECRET,
                                                      CR_TARGET_VALIDATING_WEBHOOK, CR_TARGET_MUTATING_WEBHOOK,
                                                      CR_TARGET_API_SERVICE,        CR_TARGET_CRD_CONVERSION};
    assert_int_equal(d->targets_len, cr_array_len(kinds));
    for (size_t i = 0; i < cr_array_len(kinds); i++) {
        assert_int_equal(d->targets[i].kind, kinds[i]);
        assert_int_equal(cr_trust_target_is_ca_bundle(kinds[i]), i >= 2);
    }
    assert_int_equal(d->targets[0].namespaces.len, 3);
    assert_null(d->targets[0].ns);
    assert_string_equal(d->targets[1].ns, "frontend");
    assert_string_equal(d->targets[2].key, "checks.example.org");
    assert_null(d->targets[3].key);
    assert_null(d->targets[4].key);
    assert_int_equal(d->rotate, CR_ROTATE_PREVIOUS_LEAVES);
}

#define AUTHORITY(issue) "{\"authority\":{\"type\":\"Issue\",\"issue\":{" issue "}}," LEAF(MIRROR) "}"
#define ISSUED(issue)    "{" CA "," LEAF("\"source\":{\"type\":\"Issue\",\"issue\":{" issue "}}") "}"
#define LEAVES(list)     "{" CA ",\"leaves\":[" list "]}"
#define TARGETS(list)    "{" CA ",\"trustTargets\":[" list "]}"
#define WITH(member)     "{" CA "," LEAF(MIRROR) "," member "}"
#define L                "spec.leaves[0]"
#define ISSUE_PATH       L ".source.issue"
#define T                "spec.trustTargets[0]"

static void expect_refusals(bool cluster, const char *const (*cases)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_domain) struct cr_domain *domain = decode(cluster, cases[i][0], &err);
        if (domain)
            fail_msg("accepted: %s", cases[i][0]);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!cr_starts_with(err.text, cases[i][1]))
            fail_msg("'%s' does not begin with '%s'", err.text, cases[i][1]);
    }
}

static void test_errors_name_the_path_and_what_is_allowed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "spec.leaves: list at least one: with an External authority the CAs are those of the leaves' sources"},
        {"{" CA "}", "spec: there is nothing to publish: give leaves or trustTargets"},
        {"{\"trustTargets\":[{\"kind\":\"ConfigMap\",\"name\":\"t\"}]}", "spec.leaves: list at least one"},
        {"{\"authority\":{\"type\":\"Vault\"}}", "spec.authority.type must be one of External, Issue"},
        {"{\"authority\":{\"type\":\"Issue\"}}", "spec.authority.issue is required"},
        {"{\"authority\":{\"issue\":{}}}", "spec.authority.issue belongs to type Issue: set that, or remove it"},
        {AUTHORITY(""), "spec.authority.issue.caSecretName is required"},
        {AUTHORITY("\"caSecretName\":\"a\",\"duration\":\"30m\""),
         "spec.authority.issue.duration must be a duration from 1h to 87600h"},
        {AUTHORITY("\"caSecretName\":\"a\",\"duration\":\"10h\",\"renewBefore\":\"9h1s\""),
         "spec.authority.issue.renewBefore must be at most nine tenths of the duration: 9h"},
        {AUTHORITY("\"caSecretName\":\"a\",\"privateKey\":{\"algorithm\":\"DSA\"}"),
         "spec.authority.issue.privateKey.algorithm must be one of ECDSA, RSA, Ed25519"},
        {AUTHORITY("\"caSecretName\":\"a\",\"privateKey\":{\"size\":521}"),
         "spec.authority.issue.privateKey.size must be 256 or 384 with ECDSA"},
        {AUTHORITY("\"caSecretName\":\"a\",\"privateKey\":{\"algorithm\":\"RSA\",\"size\":1024}"),
         "spec.authority.issue.privateKey.size must be 2048, 3072 or 4096 with RSA"},
        {AUTHORITY("\"caSecretName\":\"a\",\"privateKey\":{\"algorithm\":\"Ed25519\",\"size\":384}"),
         "spec.authority.issue.privateKey.size must be left out with Ed25519"},
        {AUTHORITY("\"caSecretName\":\"a\",\"commonName\":"
                   "\"01234567890123456789012345678901234567890123456789012345678901234\""),
         "spec.authority.issue.commonName must have at most 64 characters"},
        {LEAVES("{}"), L ".name is required"},
        {LEAVES("{\"name\":\"a\"}"), L ".source is required"},
        {LEAVES("{\"name\":\"a\",\"source\":{}}"), L ".source.type is required"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Copy\"}}"), L ".source.type must be one of Mirror, Issue"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Mirror\"}}"), L ".source.mirror is required"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Issue\"}}"), L ".source.issue is required"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Issue\",\"mirror\":{},\"issue\":{}}}"),
         L ".source.mirror belongs to type Mirror: set that, or remove it"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Mirror\",\"mirror\":{},\"issue\":{}}}"),
         L ".source.issue belongs to type Issue: set that, or remove it"},
        {LEAVES("{\"name\":\"a\",\"source\":{\"type\":\"Mirror\",\"mirror\":{\"secretName\":\"a\"}}}"),
         L ".source.mirror.secretName is the leaf's own Secret"},
        {LEAVES("{\"name\":\"a\",\"namespace\":\"b\"," MIRROR "}"),
         L ".namespace: a TrustDomain writes to its own namespace only"},
        {LEAVES("{\"name\":\"a\"," MIRROR "},{\"name\":\"a\",\"secretName\":\"b\"," MIRROR "}"),
         "spec.leaves[1].name: 'a' is listed twice"},
        {LEAVES("{\"name\":\"a\"," MIRROR "},{\"name\":\"b\",\"secretName\":\"a\"," MIRROR "}"),
         "spec.leaves[1].secretName: Secret 'a' is already that of leaf 'a'"},
        {LEAVES("{\"name\":\"issued\"," ISSUE("") "},{\"name\":\"b\"," MIRROR "}"),
         "spec.leaves[1].source.mirror.secretName: Secret 'issued' is written by this domain itself, for leaf "
         "'issued'"},
        {LEAVES("{\"name\":\"ca\"," ISSUE("") "}"), L ".secretName: Secret 'ca' is that of the CA"},
        {"{" LEAF(ISSUE("")) "}", ISSUE_PATH ": leaves are issued by a CA of the domain's own"},
        {ISSUED(""), ISSUE_PATH ": a server's certificate needs a name in dnsNames, ipAddresses or uris"},
        {ISSUED("\"usages\":[\"client\"]"), ISSUE_PATH ": a certificate needs a name"},
        {ISSUED("\"dnsNames\":[\"a\"],\"usages\":[\"ocsp\"]"), ISSUE_PATH ".usages must be of server and client"},
        {ISSUED("\"dnsNames\":[\"\"]"), ISSUE_PATH ".dnsNames must be a list of strings, none of them empty"},
        {ISSUED("\"uris\":\"a\""), ISSUE_PATH ".uris must be a list"},
        {ISSUED("\"dnsNames\":[\"a\"],\"duration\":\"9m\""),
         ISSUE_PATH ".duration must be a duration from 10m to 87600h"},
        {ISSUED("\"dnsNames\":[\"a\"],\"renewBefore\":\"30s\""),
         ISSUE_PATH ".renewBefore must be a duration from 1m to 87600h"},
        {LEAVES("{\"name\":\"a\"," MIRROR ",\"keystore\":{}}"), L ".keystore.passwordSecretRef is required"},
        {LEAVES("{\"name\":\"a\"," MIRROR ",\"keystore\":7}"), L ".keystore must be an object"},
        {LEAVES("{\"name\":\"a\"," MIRROR ",\"keystore\":{\"passwordSecretRef\":{}}}"),
         L ".keystore.passwordSecretRef.name is required"},
        {TARGETS("{\"name\":\"t\"}"), T ".kind is required"},
        {TARGETS("{\"kind\":\"Ingress\",\"name\":\"t\"}"), T ".kind must be one of ConfigMap, Secret, Validating"},
        {TARGETS("{\"kind\":\"Secret\"}"), T ".name is required"},
        {TARGETS("{\"kind\":\"APIService\",\"name\":\"t\"}"),
         T ".kind: APIService objects belong to the whole cluster: use a ClusterTrustDomain"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\",\"namespace\":\"b\"}"),
         T ".namespace: a TrustDomain writes to its own namespace only"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\",\"webhook\":\"b\"}"),
         T ".webhook: belongs to webhook configurations only"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\"},{\"kind\":\"Secret\",\"name\":\"t\",\"key\":\"k\"}"),
         "spec.trustTargets[1]: Secret 't' is listed twice"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"ca\"}"), T ".name: Secret 'ca' is that of the CA"},
        {WITH("\"trustTargets\":[{\"kind\":\"Secret\",\"name\":\"tls\"}]"),
         T ".name: Secret 'tls' is that of a leaf, and has the bundle in ca.crt already"},
        {WITH("\"retainPrevious\":9"), "spec.retainPrevious must be an integer from 0 to 8"},
        {WITH("\"retire\":\"Soon\""), "spec.retire must be one of NextRotation, Converged, Never"},
        {WITH("\"evidence\":{\"trust\":\"Hoped\"}"), "spec.evidence.trust must be one of Inferred, Verified"},
        {WITH("\"evidence\":{\"stageDeadline\":\"0s\"}"),
         "spec.evidence.stageDeadline must be a duration from 1s to 168h"},
        {WITH("\"distrust\":[\"0A\"]"), "spec.distrust: '0A' is no fingerprint of a CA"},
        {WITH("\"distrust\":\"0a\""), "spec.distrust"},
        {WITH("\"rotate\":{\"what\":\"CA\"}"), "spec.rotate.token is required"},
        {WITH("\"rotate\":{\"token\":\"1\"}"), "spec.rotate.what is required"},
        {"{" LEAF(MIRROR) ",\"rotate\":{\"token\":\"1\",\"what\":\"CA\"}}",
         "spec.rotate.what: CAs are made anew only by a domain that issues"},
        {"{" LEAF(MIRROR) ",\"rotate\":{\"token\":\"1\",\"what\":\"Leaves\"}}",
         "spec.rotate.what: leaves are made anew only by a domain that issues"},
    };
    expect_refusals(false, cases, cr_array_len(cases));
}

static void test_the_cluster_kind_says_where_everything_is(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {LEAVES("{\"name\":\"a\"," MIRROR "}"), L ".namespace is required"},
        {LEAVES("{\"name\":\"a\",\"namespace\":\"n\",\"secretName\":\"s\"," MIRROR
                "},{\"name\":\"b\",\"namespace\":\"n\",\"secretName\":\"s\"," MIRROR "}"),
         "spec.leaves[1].secretName: Secret 's' is already that of leaf 'a'"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\"}"), T ": give either a namespace or a namespaceSelector"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\",\"namespace\":\"n\",\"namespaceSelector\":{\"matchLabels\":{"
                 "\"a\":\"b\"}}}"),
         T ": give either a namespace or a namespaceSelector"},
        {TARGETS("{\"kind\":\"Secret\",\"name\":\"t\",\"namespaceSelector\":{}}"),
         T ".namespaceSelector is empty: give matchLabels or matchExpressions"},
        {TARGETS("{\"kind\":\"APIService\",\"name\":\"t\",\"namespace\":\"n\"}"),
         T ".namespace: these objects are in none: remove it"},
        {TARGETS("{\"kind\":\"APIService\",\"name\":\"t\",\"key\":\"k\"}"),
         T ".key: the bundle goes into the object's caBundle: remove key"},
        {TARGETS("{\"kind\":\"MutatingWebhookConfiguration\",\"name\":\"t\",\"key\":\"k\"}"),
         T ".key: the bundle goes into the object's caBundle: remove key"},
        {TARGETS("{\"kind\":\"CustomResourceDefinition\",\"name\":\"t\",\"webhook\":\"w\"}"),
         T ".webhook: belongs to webhook configurations only"},
        {TARGETS("{\"kind\":\"APIService\",\"name\":\"t\"},{\"kind\":\"APIService\",\"name\":\"t\"}"),
         "spec.trustTargets[1]: APIService 't' is listed twice"},
    };
    expect_refusals(true, cases, cr_array_len(cases));
}

static void test_what_looks_alike_is_distinguished(void **state)
{
    (void)state;
    static const struct {
        bool cluster;
        const char *spec;
    } cases[] = {
        {false, TARGETS("{\"kind\":\"Secret\",\"name\":\"t\"},{\"kind\":\"ConfigMap\",\"name\":\"t\"}")},
        {true, LEAVES("{\"name\":\"a\",\"namespace\":\"n\",\"secretName\":\"s\"," MIRROR
                      "},{\"name\":\"b\",\"namespace\":\"m\",\"secretName\":\"s\"," MIRROR "}")},
        /* The CA's Secret is in the operator's namespace, the source in another one. */
        {true, LEAVES("{\"name\":\"a\",\"namespace\":\"n\",\"secretName\":\"ca\"," MIRROR "}")},
        {true, LEAVES("{\"name\":\"issued\",\"namespace\":\"n\"," ISSUE(
                   "") "},{\"name\":\"b\",\"namespace\":\"m\"," MIRROR "}")},
        {true, TARGETS("{\"kind\":\"Secret\",\"name\":\"t\",\"namespace\":\"n\"},{\"kind\":\"Secret\",\"name\":\"t\","
                       "\"namespace\":\"m\"}")},
        /* A client needs no alternative name. */
        {false, ISSUED("\"commonName\":\"c\",\"usages\":[\"client\"]")},
        {false, ISSUED("\"emailAddresses\":[\"a@b\"],\"usages\":[\"client\"]")},
        {false, "{" LEAF(MIRROR) ",\"rotate\":{\"token\":\"1\",\"what\":\"PreviousLeaves\"}}"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_domain) struct cr_domain *domain = decode_ok(cases[i].cluster, cases[i].spec);
        assert_non_null(domain);
    }
}

static void append_names(struct cr_buf *buf, const char *key, const char *name, size_t count)
{
    cr_buf_printf(buf, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        cr_buf_printf(buf, "%s\"%s%zu\"", i ? "," : "", name, i);
    cr_buf_puts(buf, "]");
}

static void test_lists_are_capped(void **state)
{
    (void)state;
    static const struct {
        size_t each; /* of four lists */
        const char *refused;
    } cases[] = {
        {25, NULL},
        {26, ISSUE_PATH " has 104 alternative names; at most 100 are allowed"},
        {33, ISSUE_PATH ".dnsNames has 33 elements; at most 32 are allowed"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf spec = CR_BUF_INIT(0);
        cr_buf_puts(&spec, "{" CA ",\"leaves\":[{\"name\":\"a\",\"source\":{\"type\":\"Issue\",\"issue\":{"
                           "\"commonName\":\"c\"");
        append_names(&spec, "dnsNames", "n", cases[i].each);
        append_names(&spec, "ipAddresses", "10.0.0.", cases[i].each);
        append_names(&spec, "uris", "spiffe://a/", cases[i].each);
        append_names(&spec, "emailAddresses", "a@b", cases[i].each);
        cr_buf_puts(&spec, "}}}]}");
        struct cr_error err = {0};
        CR_CLEANUP(cr_domain) struct cr_domain *domain = decode(false, cr_buf_text(&spec), &err);
        assert_int_equal(domain != NULL, cases[i].refused == NULL);
        if (cases[i].refused)
            assert_string_equal(err.text, cases[i].refused);
    }
}

static void test_an_object_without_identity_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\"}}", "kind must be TrustDomain or ClusterTrustDomain"},
        {"{\"metadata\":{\"name\":\"a\"}}", "kind must be TrustDomain or ClusterTrustDomain"},
        {"{\"kind\":\"TrustDomain\",\"metadata\":{\"name\":\"a\"}}", "metadata.namespace is required"},
        {"{\"kind\":\"ClusterTrustDomain\",\"metadata\":{}}", "metadata.name is required"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *object = test_json(cases[i][0]);
        assert_null(cr_domain_decode(object, &err));
        assert_string_equal(err.text, cases[i][1]);
    }
}

static void test_the_title_distinguishes_the_kinds(void **state)
{
    (void)state;
    CR_CLEANUP(cr_domain) struct cr_domain *domain = decode_ok(false, "{" LEAF(MIRROR) "}");
    CR_CLEANUP(cr_domain)
    struct cr_domain *cluster = decode_ok(true, LEAVES("{\"name\":\"a\",\"namespace\":\"n\"," MIRROR "}"));
    cr_autofree char *title = cr_domain_title(domain);
    cr_autofree char *cluster_title = cr_domain_title(cluster);
    assert_string_equal(title, "shop/mesh");
    assert_string_equal(cluster_title, "mesh");
    cr_domain_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_those_of_the_schema),
        cmocka_unit_test(test_without_an_authority_it_is_external),
        cmocka_unit_test(test_a_spec_with_every_field_is_read),
        cmocka_unit_test(test_the_cluster_kind_reaches_other_namespaces_and_ca_bundles),
        cmocka_unit_test(test_errors_name_the_path_and_what_is_allowed),
        cmocka_unit_test(test_the_cluster_kind_says_where_everything_is),
        cmocka_unit_test(test_what_looks_alike_is_distinguished),
        cmocka_unit_test(test_lists_are_capped),
        cmocka_unit_test(test_an_object_without_identity_is_refused),
        cmocka_unit_test(test_the_title_distinguishes_the_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
