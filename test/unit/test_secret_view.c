#include "cluster/secret_view.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "cluster/secret_reader.h"
#include "kube/object.h"
#include "support/testcerts.h"
#include "support/yamltext.h"

/* A CA and two of its leaves, for all tests. */
static struct test_cert *ca;
static struct test_cert *leaf;
static struct test_cert *other;

static int make_certificates(void **state)
{
    (void)state;
    ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    leaf = test_cert_new(&(struct test_cert_spec){.cn = "web", .dns = {"web.example"}, .issuer = ca});
    other = test_cert_new(&(struct test_cert_spec){.cn = "other", .dns = {"other.example"}, .issuer = ca});
    return 0;
}

static int free_certificates(void **state)
{
    (void)state;
    test_cert_free(ca);
    test_cert_free(leaf);
    test_cert_free(other);
    return 0;
}

/* --- objects --- */

static void put(struct cr_json *secret, const char *key, const char *text)
{
    cr_autofree char *encoded = cr_base64_encode(text, strlen(text));
    cr_json_set_string(cr_json_object_in(secret, "data"), key, encoded);
}

/* ns/web-tls at version 7, without data. */
static struct cr_json *bare_secret(void)
{
    return test_yaml("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls,"
                     " metadata: {name: web-tls, namespace: ns, uid: u, resourceVersion: \"7\", labels: {app: web}}}");
}

static struct cr_json *tls_secret(const struct test_cert *certificate, const struct test_cert *key)
{
    struct cr_json *secret = bare_secret();
    put(secret, "tls.crt", certificate->cert_pem);
    put(secret, "tls.key", key->key_pem);
    put(secret, "ca.crt", ca->cert_pem);
    return secret;
}

static char default_certificate[] = "tls.crt";
static char default_key[] = "tls.key";
static char default_trust[] = "ca.crt";
static const struct cr_policy_secret defaults = {
    .certificate = default_certificate, .private_key = default_key, .trust = default_trust};

static struct cr_policy *policy_naming(const char *secrets)
{
    cr_autofree char *text =
        cr_asprintf("{apiVersion: certroll.dev/v1alpha1, kind: CertRotationPolicy,"
                    " metadata: {name: p, namespace: ns, uid: pu, resourceVersion: \"1\"}, spec: {secrets: [%s],"
                    " consumers: [{name: c, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}]}}",
                    secrets);
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(text);
    struct cr_error err = {0};
    struct cr_policy *policy = cr_policy_decode(json, &err);
    if (!policy)
        fail_msg("%s", err.text);
    return policy;
}

static struct cr_secret_refs *refs_of(const char *secrets)
{
    CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_naming(secrets);
    struct cr_secret_refs *refs = cr_secret_refs_new();
    cr_secret_refs_add(refs, policy);
    return refs;
}

/* As a worker does it; the snapshot needs no reader any more. */
static struct cr_snapshot *projected(struct cr_secret_refs *refs, struct cr_json *secret)
{
    CR_CLEANUP(cr_secret_reader) struct cr_secret_reader *reader = cr_secret_reader_new(refs);
    struct cr_snapshot *snapshot = cr_snapshot_new(secret);
    snapshot->secret = true;
    cr_secret_reader_project_now(reader, secret, snapshot);
    return snapshot;
}

static bool is_seen(const struct cr_snapshot *snapshot, const struct cr_policy_secret *through)
{
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_reader_view(snapshot->extra, through);
    return view != NULL;
}

/* --- what is kept --- */

static void nothing_that_carries_data_survives_the_projection(void **state)
{
    (void)state;
    static const char *const policies[] = {"{name: web-tls}", "{name: another}"};
    for (size_t i = 0; i < cr_array_len(policies); i++) {
        CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of(policies[i]);
        struct cr_json *secret = tls_secret(leaf, leaf);
        cr_autofree char *key64 = cr_base64_encode(leaf->key_pem, strlen(leaf->key_pem));
        put(secret, "password", "correct horse");
        cr_json_set_string(cr_json_object_in(secret, "stringData"), "tls.key", "battery staple");
        struct cr_json *metadata = cr_json_object_in(secret, "metadata");
        cr_json_set_string(cr_json_object_in(metadata, "annotations"),
                           "kubectl.kubernetes.io/last-applied-configuration", key64);
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), "example.com/copy", key64);
        cr_json_add_string(cr_json_array_in(metadata, "managedFields"), "f:tls.key");

        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, secret);
        CR_CLEANUP(cr_json)
        struct cr_json *left = test_yaml("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls,"
                                         " metadata: {name: web-tls, namespace: ns, uid: u, resourceVersion: \"7\","
                                         " labels: {app: web}}}");
        assert_false(snapshot->secret); /* so it is kept like any other object */
        if (!cr_json_equal(snapshot->json, left)) {
            cr_autofree char *text = cr_json_print(snapshot->json);
            fail_msg("%s: %s", policies[i], text);
        }
    }
}

/* As a watch brings it: data stays text. */
static struct cr_json *with_text(const char *text)
{
    static const char *const path[] = {"data", NULL};
    struct cr_error err = {0};
    struct cr_json *secret = cr_json_parse_apart(text, strlen(text), path, &err);
    if (!secret)
        fail_msg("%s", err.text);
    return secret;
}

/* As the cache gives it. */
static struct cr_secret_view *view_of_cache(const struct cr_json *secret)
{
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, cr_json_copy(secret));
    return cr_secret_reader_view(snapshot->extra, &defaults);
}

static void assert_same_view(const char *rule, const struct cr_secret_view *a, const struct cr_secret_view *b)
{
    const struct cr_material *m = &a->material;
    const struct cr_material *n = &b->material;
    if (!cr_streq(a->resource_version, b->resource_version) || a->immutable != b->immutable ||
        a->problem != b->problem || !cr_streq(a->problem_text, b->problem_text) || strcmp(m->leaf, n->leaf) != 0 ||
        strcmp(m->key, n->key) != 0 || strcmp(m->opaque, n->opaque) != 0 ||
        !cr_strvec_equal(&m->opaque_keys, &n->opaque_keys) || m->trust_len != n->trust_len)
        fail_msg("%s: not the same", rule);
}

static void data_is_read_the_same_from_its_text_as_from_a_tree(void **state)
{
    (void)state;
    static const unsigned char key[CR_VIEW_KEY] = "0123456789abcdef0123456789abcde";
    static const struct {
        const char *rule;
        const char *data; /* "@": the entries of certificate and key */
    } cases[] = {
        {"as an API server writes it", "{@,\"password\":\"aHVudGVyMg==\"}"},
        {"white space", "{ @ , \"password\" : \"aHVudGVyMg==\" }"},
        {"an escape in a value", "{@,\"password\":\"aHVudGVyMg=\\u003d\"}"},
        {"an escape in a key", "{@,\"p\\u0061ssword\":\"aHVudGVyMg==\"}"},
        {"a key that comes twice", "{@,\"p\":\"eA==\",\"p\":\"eXk=\"}"},
        {"no base64", "{@,\"p\":\"!\"}"},
        {"a null", "{@,\"p\":null,\"q\":\"eA==\"}"},
        {"no string", "{@,\"p\":1}"},
        {"a certificate that is no base64", "{\"tls.crt\":\"!\"}"},
        {"empty", "{}"},
        {"nothing", "null"},
    };
    cr_autofree char *crt64 = cr_base64_encode(leaf->cert_pem, strlen(leaf->cert_pem));
    cr_autofree char *key64 = cr_base64_encode(leaf->key_pem, strlen(leaf->key_pem));
    cr_autofree char *pair = cr_asprintf("\"tls.crt\":\"%s\",\"tls.key\":\"%s\"", crt64, key64);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const char *here = strchr(cases[i].data, '@');
        int before = here ? (int)(here - cases[i].data) : (int)strlen(cases[i].data);
        cr_autofree char *text =
            cr_asprintf("{\"metadata\":{\"name\":\"web-tls\",\"namespace\":\"ns\"},\"data\":%.*s%s%s}", before,
                        cases[i].data, here ? pair : "", here ? here + 1 : "");
        CR_CLEANUP(cr_json) struct cr_json *tree = cr_json_parse(text, strlen(text), NULL);
        CR_CLEANUP(cr_json) struct cr_json *apart = with_text(text);
        assert_non_null(tree);
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *wanted = cr_secret_view_read(tree, &defaults, key);
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *got = cr_secret_view_read(apart, &defaults, key);
        assert_same_view(cases[i].rule, wanted, got);
        assert_true(!here || (got->material.has_leaf && got->material.opaque[0]));
    }
}

static void nothing_is_left_of_data_that_was_text(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    static const char text[] = "{\"metadata\":{\"name\":\"web-tls\",\"namespace\":\"ns\"},\"data\":{\"p\":\"eA==\"}}";
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, with_text(text));
    assert_true(is_seen(snapshot, &defaults));
    assert_null(cr_json_get(snapshot->json, "data"));
}

static void a_secret_that_no_policy_names_is_dropped_unread(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *secrets;
        bool read;
    } cases[] = {
        {"named", "{name: web-tls}", true},
        {"of another name", "{name: web}", false},
        {"of a name that begins the same", "{name: web-tls2}", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of(cases[i].secrets);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, tls_secret(leaf, leaf));
        if ((snapshot->extra != NULL) != cases[i].read || is_seen(snapshot, &defaults) != cases[i].read)
            fail_msg("%s: read %d", cases[i].rule, snapshot->extra != NULL);
    }
}

static void a_policy_names_secrets_of_its_own_namespace(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *secret;
        bool read;
    } cases[] = {{"ns", "ns", true}, {"ns", "other", false}, {"other", "ns", false}, {"other", "other", true}};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_naming("{name: web-tls}");
        cr_strset(&policy->ns, cases[i].policy);
        CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = cr_secret_refs_new();
        cr_secret_refs_add(refs, policy);
        struct cr_json *secret = tls_secret(leaf, leaf);
        cr_json_set_string(cr_json_object_in(secret, "metadata"), "namespace", cases[i].secret);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, secret);
        if ((snapshot->extra != NULL) != cases[i].read)
            fail_msg("policy in %s, Secret in %s", cases[i].policy, cases[i].secret);
        assert_null(cr_json_get(snapshot->json, "data"));
    }
}

/* --- what is read --- */

static void hex(const void *der, int len, char out[CR_SHA256_HEX])
{
    unsigned char digest[32];
    assert_true(len > 0 && EVP_Digest(der, (size_t)len, digest, NULL, EVP_sha256(), NULL));
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static void certificate_digest(X509 *x509, char out[CR_SHA256_HEX])
{
    unsigned char *der = NULL;
    int len = i2d_X509(x509, &der);
    hex(der, len, out);
    OPENSSL_free(der);
}

static void key_digest(X509 *x509, char out[CR_SHA256_HEX])
{
    unsigned char *der = NULL;
    int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
    hex(der, len, out);
    OPENSSL_free(der);
}

static void fingerprints_are_those_of_the_certificates(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, tls_secret(leaf, leaf));
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_reader_view(snapshot->extra, &defaults);
    assert_non_null(view);
    char digest[CR_SHA256_HEX];
    assert_int_equal(view->problem, CR_MATERIAL_OK);
    assert_null(view->problem_text);
    assert_string_equal(view->resource_version, "7");
    assert_true(view->material.has_leaf);
    certificate_digest(leaf->x509, digest);
    assert_string_equal(view->material.leaf, digest);
    key_digest(leaf->x509, digest);
    assert_string_equal(view->material.key, digest);
    assert_int_equal(view->material.trust_len, 1);
    certificate_digest(ca->x509, digest);
    assert_string_equal(view->material.trust[0].fingerprint, digest);
}

static void each_policy_sees_the_secret_through_its_own_key_names(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    CR_CLEANUP(cr_policy)
    struct cr_policy *second = policy_naming("{name: web-tls, keys: {certificate: server.pem, privateKey: server.key, "
                                             "trust: roots.pem}}, {name: unrelated}");
    cr_secret_refs_add(refs, second);
    cr_secret_refs_add(refs, second); /* known already */
    struct cr_json *secret = tls_secret(leaf, leaf);
    put(secret, "server.pem", other->cert_pem);
    put(secret, "server.key", other->key_pem);

    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, secret);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *by_default = cr_secret_reader_view(snapshot->extra, &defaults);
    CR_CLEANUP(cr_secret_view)
    struct cr_secret_view *by_second = cr_secret_reader_view(snapshot->extra, &second->secrets[0]);
    assert_non_null(by_default);
    assert_non_null(by_second);
    char digest[CR_SHA256_HEX];
    certificate_digest(leaf->x509, digest);
    assert_string_equal(by_default->material.leaf, digest);
    assert_int_equal(by_default->material.trust_len, 1);
    certificate_digest(other->x509, digest);
    assert_string_equal(by_second->material.leaf, digest);
    assert_int_equal(by_second->material.trust_len, 0); /* roots.pem is not there */

    /* A mixture of both belongs to no policy. */
    struct cr_policy_secret mixture = defaults;
    mixture.trust = second->secrets[0].trust;
    assert_false(is_seen(snapshot, &mixture));
    mixture.trust = NULL;
    assert_false(is_seen(snapshot, &mixture));
}

/* By the way of the cache, which keeps no annotation of a Secret, and by that of a whole object. */
static void the_annotation_on_missing_names_is_read_and_cut(void **state)
{
    (void)state;
    static const char sixty[] = "123456789012345678901234567890123456789012345678901234567890";
    cr_autofree char *longer = cr_asprintf("%s%s", sixty, sixty);
    const char *const words[] = {NULL, "Report", "", longer};
    for (size_t i = 0; i < cr_array_len(words); i++) {
        CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
        struct cr_json *secret = tls_secret(leaf, leaf);
        struct cr_json *annotations = cr_json_object_in(cr_json_edit(secret, "metadata"), "annotations");
        cr_json_set_string(annotations, "other", "x");
        if (words[i])
            cr_json_set_string(annotations, "certroll.dev/on-missing-name", words[i]);
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *whole = cr_secret_view_read(secret, &defaults, NULL);
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, secret);
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *cached = cr_secret_reader_view(snapshot->extra, &defaults);
        assert_null(cr_json_at(snapshot->json, "metadata", "annotations"));
        cr_autofree char *wanted = words[i] == longer ? cr_asprintf("%s1...", sixty) : cr_strdup_or_null(words[i]);
        assert_true(cr_streq(whole->on_missing_name, wanted));
        assert_true(cr_streq(cached->on_missing_name, wanted));
    }
}

static void a_policy_that_came_later_finds_no_view(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, tls_secret(leaf, leaf));
    CR_CLEANUP(cr_policy) struct cr_policy *later = policy_naming("{name: web-tls, keys: {certificate: server.pem}}");
    cr_secret_refs_add(refs, later);
    assert_false(is_seen(snapshot, &later->secrets[0]));
    assert_true(is_seen(snapshot, &defaults));
}

static void what_nobody_names_any_more_is_not_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}, {name: another}");
    cr_secret_refs_remove(refs, "ns/another");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *kept = projected(refs, tls_secret(leaf, leaf));
    assert_non_null(kept->extra);
    cr_secret_refs_remove(refs, "ns/web-tls");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *dropped = projected(refs, tls_secret(leaf, leaf));
    assert_null(dropped->extra);
    assert_null(cr_json_get(dropped->json, "data"));
}

/* --- opaque material --- */

static const unsigned char digest_key[CR_VIEW_KEY] = "0123456789abcdef0123456789abcde";

static struct cr_secret_view *view_through(const struct cr_json *secret, const char *names)
{
    CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_naming(names);
    return cr_secret_view_read(secret, &policy->secrets[0], digest_key);
}

static void the_ways_to_read_a_secret_are_bounded_and_those_asked_for_last_stay(void **state)
{
    (void)state;
    enum { EDITS = 40 };
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    CR_CLEANUP(cr_policy) struct cr_policy *in_use = policy_naming("{name: web-tls}");
    int read = 0;
    for (int i = 0; i < EDITS; i++) {
        cr_autofree char *text = cr_asprintf("{name: web-tls, keys: {trust: ca-%d}}", i);
        CR_CLEANUP(cr_policy) struct cr_policy *edited = policy_naming(text);
        cr_secret_refs_add(refs, edited);
        cr_secret_refs_add(refs, in_use);
    }
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, tls_secret(leaf, leaf));
    assert_true(is_seen(snapshot, &defaults));
    for (int i = 0; i < EDITS; i++) {
        struct cr_policy_secret names = defaults;
        cr_autofree char *trust = names.trust = cr_asprintf("ca-%d", i);
        bool found = is_seen(snapshot, &names);
        read += found;
        if (i == EDITS - 1)
            assert_true(found);
    }
    assert_int_equal(read, 15);
}

static void all_other_keys_count_unless_the_policy_names_them(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *names;
        const char *keys; /* that count */
    } cases[] = {
        {"all others", "{name: web-tls}", "hmac-secret tls-combined.pem"},
        {"one of them", "{name: web-tls, keys: {opaque: [hmac-secret]}}", "hmac-secret"},
        {"none of them", "{name: web-tls, keys: {opaque: []}}", ""},
        {"a list says nothing of the other roles", "{name: web-tls, keys: {opaque: [tls.crt, hmac-secret]}}",
         "hmac-secret"},
        {"what plays no other role any more", "{name: web-tls, keys: {trust: other.pem}}",
         "ca.crt hmac-secret tls-combined.pem"},
    };
    CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, leaf);
    put(secret, "tls-combined.pem", "both");
    put(secret, "hmac-secret", "x");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = view_through(secret, cases[i].names);
        CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
        for (size_t k = 0; k < view->material.opaque_keys.len; k++) {
            const char *element = view->material.opaque_keys.items[k];
            cr_autofree char *key = cr_strndup(element, cr_opaque_key_len(element));
            cr_strvec_add(&keys, key);
        }
        cr_autofree char *text = cr_strvec_join(&keys, " ");
        if (strcmp(text, cases[i].keys) != 0 || !view->material.opaque[0] != !cases[i].keys[0])
            fail_msg("%s: %s (%s)", cases[i].rule, text, view->material.opaque);
    }
}

/* Digests of different keys cannot be compared: then nothing is a change. */
static void the_key_of_a_digest_is_of_one_secret_seen_through_one_set_of_names(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, leaf);
    put(secret, "hmac-secret", "x");
    CR_CLEANUP(cr_json) struct cr_json *another = cr_json_copy(secret);
    cr_json_set_string(cr_json_object_in(another, "metadata"), "name", "other-tls");
    CR_CLEANUP(cr_json) struct cr_json *relabelled = cr_json_copy(secret);
    cr_json_set_string(cr_json_object_in(relabelled, "metadata"), "resourceVersion", "8");
    cr_json_remove(cr_json_edit(relabelled, "metadata"), "labels");
    CR_CLEANUP(cr_json) struct cr_json *changed = cr_json_copy(secret);
    put(changed, "hmac-secret", "y");
    const struct {
        const char *rule;
        const struct cr_json *secret;
        const char *names;
        bool comparable;
        bool same;
    } cases[] = {
        {"the same", secret, "{name: web-tls}", true, true},
        {"metadata is no content", relabelled, "{name: web-tls}", true, true},
        {"another content", changed, "{name: web-tls}", true, false},
        {"another Secret", another, "{name: web-tls}", false, false},
        {"a list of keys", secret, "{name: web-tls, keys: {opaque: [hmac-secret]}}", false, false},
        {"another key for trust", secret, "{name: web-tls, keys: {trust: bundle.pem}}", false, false},
    };
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *base = view_through(secret, "{name: web-tls}");
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = view_through(cases[i].secret, cases[i].names);
        if (cr_opaque_comparable(base->material.opaque, view->material.opaque) != cases[i].comparable ||
            cr_streq(base->material.opaque, view->material.opaque) != cases[i].same)
            fail_msg("%s: %s", cases[i].rule, view->material.opaque);
    }
}

static void an_hmac_key_alone_is_material(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *secret = bare_secret();
    put(secret, "hmac-secret", "x");
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *read = view_through(secret, "{name: web-tls}");
    assert_int_equal(read->problem, CR_MATERIAL_OK);
    assert_true(read->material.opaque[0] && !cr_streq(read->material.opaque, CR_OPAQUE_UNREAD));
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *unread = cr_secret_view_read(secret, &defaults, NULL);
    assert_int_equal(unread->problem, CR_MATERIAL_OK);
    assert_string_equal(unread->material.opaque, CR_OPAQUE_UNREAD);
}

static void data_may_have_any_bytes_in_any_number_of_keys(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, leaf);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *before = view_through(secret, "{name: web-tls}");
    assert_string_equal(before->material.opaque, "");
    cr_json_set_string(cr_json_object_in(secret, "data"), "bytes", "AAECAP8="); /* 00 01 02 00 ff */
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *one = view_through(secret, "{name: web-tls}");
    cr_json_set_string(cr_json_object_in(secret, "data"), "bytes", "AAECAP4=");
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *two = view_through(secret, "{name: web-tls}");
    assert_string_not_equal(one->material.opaque, two->material.opaque);
    for (int i = 0; i < 5000; i++) {
        char name[32];
        snprintf(name, sizeof name, "key-%d", i);
        put(secret, name, name);
    }
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *many = view_through(secret, "{name: web-tls}");
    assert_int_equal(many->problem, CR_MATERIAL_OK);
    assert_true(cr_opaque_is_valid(many->material.opaque) && !many->material.opaque_keys.len);
}

static void the_key_comes_later_for_those_that_are_read_then(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    struct cr_json *secret = tls_secret(leaf, leaf);
    put(secret, "hmac-secret", "x");
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *early = projected(refs, cr_json_copy(secret));
    cr_secret_refs_use_key(refs, digest_key);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *late = projected(refs, secret);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *unread = cr_secret_reader_view(early->extra, &defaults);
    assert_string_equal(unread->material.opaque, CR_OPAQUE_UNREAD);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_reader_view(late->extra, &defaults);
    assert_true(cr_opaque_is_valid(view->material.opaque));
    assert_string_not_equal(view->material.opaque, CR_OPAQUE_UNREAD);
}

static void an_immutable_secret_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, leaf);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = view_through(secret, "{name: web-tls}");
    assert_false(view->immutable);
    cr_json_set_bool(secret, "immutable", true);
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *frozen = view_through(secret, "{name: web-tls}");
    assert_true(frozen->immutable);
}

static void the_cache_gives_what_was_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_json) struct cr_json *good = tls_secret(leaf, leaf);
    CR_CLEANUP(cr_json) struct cr_json *frozen = tls_secret(leaf, leaf);
    CR_CLEANUP(cr_json) struct cr_json *broken = tls_secret(leaf, leaf);
    cr_json_set_bool(frozen, "immutable", true);
    cr_json_set_string(cr_json_object_in(broken, "data"), "tls.crt", "no base64");
    const struct cr_json *secrets[] = {good, frozen, broken};
    for (size_t i = 0; i < cr_array_len(secrets); i++) {
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *read = cr_secret_view_read(secrets[i], &defaults, NULL);
        CR_CLEANUP(cr_secret_view) struct cr_secret_view *found = view_of_cache(secrets[i]);
        assert_same_view("found", read, found);
        assert_int_equal(found->immutable, secrets[i] == frozen);
        assert_int_equal(found->problem_text != NULL, secrets[i] == broken);
    }
}

/* --- what cannot be used --- */

static void is_problem(const char *rule, const struct cr_json *secret, enum cr_material_problem problem,
                       const char *says)
{
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_view_read(secret, &defaults, NULL);
    if (view->problem != problem)
        fail_msg("%s: %s", rule, cr_material_problem_name(view->problem));
    if (!view->problem_text || !strstr(view->problem_text, says))
        fail_msg("%s: says '%s'", rule, cr_or_empty(view->problem_text));
    if (view->material.has_leaf || view->material.leaf[0] || view->material.key[0] || view->material.trust_len)
        fail_msg("%s: material was left", rule);
    if (strstr(view->problem_text, "PRIVATE KEY") || strstr(view->problem_text, "MII"))
        fail_msg("%s: tells content: %s", rule, view->problem_text);
}

static void a_problem_gives_words_and_no_material(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *key; /* is replaced… */
        const char *by;  /* …by this, as it stands in data */
        enum cr_material_problem problem;
        const char *says;
    } cases[] = {
        {"a certificate that is not base64", "tls.crt", "-----BEGIN", CR_MATERIAL_UNPARSABLE, "not base64"},
        {"a key that is not base64", "tls.key", "%%%%", CR_MATERIAL_UNPARSABLE, "not base64"},
        {"trust that is not base64", "ca.crt", "YQ=", CR_MATERIAL_UNPARSABLE, "not base64"},
        {"an empty certificate", "tls.crt", "", CR_MATERIAL_EMPTY, "tls.crt"},
        {"an empty key", "tls.key", "", CR_MATERIAL_EMPTY, "tls.key"},
        {"empty trust", "ca.crt", "", CR_MATERIAL_EMPTY, "ca.crt"},
        {"no PEM at all", "tls.crt", "aGVsbG8=", CR_MATERIAL_UNPARSABLE, "tls.crt"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, leaf);
        cr_json_set_string(cr_json_object_in(secret, "data"), cases[i].key, cases[i].by);
        is_problem(cases[i].rule, secret, cases[i].problem, cases[i].says);
    }
    CR_CLEANUP(cr_json) struct cr_json *mismatch = tls_secret(leaf, other);
    is_problem("a key of another certificate", mismatch, CR_MATERIAL_KEY_MISMATCH, "tls.key");
    CR_CLEANUP(cr_json) struct cr_json *half = tls_secret(leaf, leaf);
    cr_json_remove(cr_json_edit(half, "data"), "tls.key");
    is_problem("a certificate without its key", half, CR_MATERIAL_INCOMPLETE, "tls.key");
    CR_CLEANUP(cr_json) struct cr_json *bare = bare_secret();
    is_problem("no data", bare, CR_MATERIAL_EMPTY, "tls.crt");
}

/* API servers bound the bytes of values, not the number of keys. */
static void more_keys_than_are_read_are_too_costly(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int keys;
        const char *value;
        bool too_costly;
    } cases[] = {
        {"as many as are read", CR_SECRET_KEYS_MAX, "", false},
        {"one more", CR_SECRET_KEYS_MAX + 1, "", true},
        {"as many, written in another way", CR_SECRET_KEYS_MAX, "e\\u0041==", false},
        {"one more, written in another way", CR_SECRET_KEYS_MAX + 1, "e\\u0041==", true},
        {"many more", 7 * CR_SECRET_KEYS_MAX, "", true},
    };
    const struct cr_policy_secret opaque = {.certificate = (char[]){"k1"}, .has_opaque = true};
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        cr_buf_puts(&text, "{\"metadata\":{\"name\":\"s\",\"namespace\":\"ns\"},\"data\":{");
        for (int k = 0; k < cases[i].keys; k++)
            cr_buf_printf(&text, "%s\"k%d\":\"%s\"", k ? "," : "", k, cases[i].value);
        cr_buf_puts(&text, "}}");
        CR_CLEANUP(cr_json) struct cr_json *apart = with_text(text.data);
        CR_CLEANUP(cr_json) struct cr_json *tree = cr_json_parse(text.data, text.len, NULL);
        const struct cr_json *forms[] = {apart, tree};
        for (size_t f = 0; f < cr_array_len(forms); f++) {
            CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_view_read(forms[f], &opaque, NULL);
            if ((view->problem == CR_MATERIAL_TOO_COSTLY) != cases[i].too_costly)
                fail_msg("%s: %s", cases[i].rule, cr_material_problem_name(view->problem));
        }
        if (cases[i].too_costly)
            is_problem(cases[i].rule, apart, CR_MATERIAL_TOO_COSTLY, "more than the 10000 keys");
    }
}

static void what_is_not_named_is_not_looked_at(void **state)
{
    (void)state;
    struct cr_policy_secret trust_only = {.trust = default_trust};
    CR_CLEANUP(cr_json) struct cr_json *secret = tls_secret(leaf, other);
    cr_json_set_string(cr_json_object_in(secret, "data"), "tls.crt", "no base64");
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_view_read(secret, &trust_only, NULL);
    assert_int_equal(view->problem, CR_MATERIAL_OK);
    assert_false(view->material.has_leaf);
    assert_int_equal(view->material.trust_len, 1);
    cr_secret_view_free(NULL);
    cr_secret_refs_free(NULL);
}

/* --- threads --- */

enum { ROUNDS = 200 };

/* A worker reads a Secret that it fetched, while the loop takes in policies. NULL: it was never read. */
static void *project_often(void *arg)
{
    void *refs = arg;
    for (int i = 0; i < ROUNDS && arg; i++) {
        CR_CLEANUP(cr_snapshot) struct cr_snapshot *snapshot = projected(refs, bare_secret());
        if (!snapshot->extra)
            arg = NULL;
    }
    return arg;
}

static void references_may_come_while_secrets_are_read(void **state)
{
    (void)state;
    CR_CLEANUP(cr_secret_refs) struct cr_secret_refs *refs = refs_of("{name: web-tls}");
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, project_often, refs), 0);
    for (int i = 0; i < ROUNDS / 10; i++) {
        cr_autofree char *text = cr_asprintf("{name: web-tls, keys: {trust: ca%d.crt}}, {name: s%d}", i, i);
        CR_CLEANUP(cr_policy) struct cr_policy *policy = policy_naming(text);
        cr_secret_refs_add(refs, policy);
    }
    void *read = NULL;
    pthread_join(reader, &read);
    assert_non_null(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_carries_data_survives_the_projection),
        cmocka_unit_test(data_is_read_the_same_from_its_text_as_from_a_tree),
        cmocka_unit_test(nothing_is_left_of_data_that_was_text),
        cmocka_unit_test(a_secret_that_no_policy_names_is_dropped_unread),
        cmocka_unit_test(a_policy_names_secrets_of_its_own_namespace),
        cmocka_unit_test(fingerprints_are_those_of_the_certificates),
        cmocka_unit_test(each_policy_sees_the_secret_through_its_own_key_names),
        cmocka_unit_test(a_policy_that_came_later_finds_no_view),
        cmocka_unit_test(the_annotation_on_missing_names_is_read_and_cut),
        cmocka_unit_test(what_nobody_names_any_more_is_not_read),
        cmocka_unit_test(the_ways_to_read_a_secret_are_bounded_and_those_asked_for_last_stay),
        cmocka_unit_test(all_other_keys_count_unless_the_policy_names_them),
        cmocka_unit_test(the_key_of_a_digest_is_of_one_secret_seen_through_one_set_of_names),
        cmocka_unit_test(an_hmac_key_alone_is_material),
        cmocka_unit_test(data_may_have_any_bytes_in_any_number_of_keys),
        cmocka_unit_test(the_key_comes_later_for_those_that_are_read_then),
        cmocka_unit_test(an_immutable_secret_is_reported),
        cmocka_unit_test(the_cache_gives_what_was_read),
        cmocka_unit_test(a_problem_gives_words_and_no_material),
        cmocka_unit_test(more_keys_than_are_read_are_too_costly),
        cmocka_unit_test(what_is_not_named_is_not_looked_at),
        cmocka_unit_test(references_may_come_while_secrets_are_read),
    };
    return cmocka_run_group_tests(tests, make_certificates, free_certificates);
}
