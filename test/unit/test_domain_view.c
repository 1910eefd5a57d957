#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pki/bundle.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "support/domainscene.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)

#define MIRROR      "leaves: [{name: web, source: {type: Mirror, mirror: {secretName: issued}}}]"
#define MIRROR_IN_A "leaves: [{name: web, namespace: a, source: {type: Mirror, mirror: {secretName: issued}}}]"
#define ISSUE                                                                                                          \
    "authority: {type: Issue, issue: {caSecretName: ca, commonName: mesh}}, leaves: [{name: web, source: {type: "      \
    "Issue, issue: {dnsNames: [web]}}}]"
#define TRUST ", trustTargets: [{kind: ConfigMap, name: trust}]"

static void a_source_that_cannot_be_used_says_why(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT gone = make_ca(.cn = "gone", .from_s = -9 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT good = make(.cn = "web", .issuer = ca);
    AUTO_CERT late = make(.cn = "web", .issuer = ca, .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT early = make(.cn = "web", .issuer = ca, .from_s = HOUR_S);
    AUTO_CERT lost = make(.cn = "web", .issuer = gone, .from_s = -2 * DAY_S);
    const struct {
        const char *rule, *certificate, *key, *trust, *reason, *words;
    } cases[] = {
        {"good", good->cert_pem, good->key_pem, ca->cert_pem, NULL, NULL},
        {"another key", good->cert_pem, late->key_pem, ca->cert_pem, "KeyMismatch", "does not belong"},
        {"no key", good->cert_pem, NULL, ca->cert_pem, "IncompleteMaterial", "tls.key"},
        {"no certificate", NULL, NULL, ca->cert_pem, "IncompleteMaterial", "no certificate in tls.crt"},
        {"nothing", NULL, NULL, NULL, "EmptyMaterial", "none of the keys"},
        {"expired", late->cert_pem, late->key_pem, ca->cert_pem, "Expired", "expired at"},
        {"too early", early->cert_pem, early->key_pem, ca->cert_pem, "NotYetValid", "not valid before"},
        {"garbage", "garbage", good->key_pem, ca->cert_pem, "UnparsableMaterial", "tls.crt"},
        {"garbage for a CA", good->cert_pem, good->key_pem, "garbage", "UnparsableMaterial", "ca.crt"},
        {"no CA", good->cert_pem, good->key_pem, NULL, "NoCA", "put its CA into ca.crt"},
        {"another CA", good->cert_pem, good->key_pem, other->cert_pem, "NoCA", "put its CA into ca.crt"},
        {"a CA that has expired", lost->cert_pem, lost->key_pem, gone->cert_pem, "NoCA", "has expired"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(&s, "TrustDomain", MIRROR);
        fake_store_put(&s.store, SECRET_PATH("ns", "issued"),
                       scene_secret(NULL, cases[i].certificate, cases[i].key, cases[i].trust));
        scene_look(&s);
        const struct cr_domain_leaf_view *source = &scene_view(&s, "Secret", "ns", "web")->source;
        if (!source->found || !cr_streq(cr_trust_reason_name(source->problem), cr_or_empty(cases[i].reason)))
            fail_msg("%s: %s", cases[i].rule, cr_trust_reason_name(source->problem));
        if (cases[i].words && !strstr(cr_or_empty(source->problem_text), cases[i].words))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(source->problem_text));
        assert_true(
            !cr_domain_objects_source(s.objects, 0) ==
            (cases[i].reason && strcmp(cases[i].reason, "NoCA") != 0 && !strstr(cases[i].rule, "no certificate")));
        scene_end(&s);
    }
}

static void an_absent_source_is_not_found(void **state)
{
    (void)state;
    struct domain_scene s;
    scene_begin(&s, "TrustDomain", MIRROR TRUST);
    scene_look(&s);
    assert_int_equal(s.world.objects_len, 2);
    assert_int_equal(s.world.cas_len, 0);
    assert_false(s.world.objects[0].source.found || s.world.objects[0].found || s.world.objects[1].found);
    assert_null(cr_domain_objects_material(s.objects, 0));
    scene_end(&s);
}

static void a_source_s_own_cas_are_known_from_those_published_before(void **state)
{
    (void)state;
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT cross = make_ca(.cn = "new", .key_of = fresh, .issuer = old);
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    AUTO_CERT before = make(.cn = "web", .issuer = old);
    cr_autofree char *crossed = test_concat(leaf->cert_pem, cross->cert_pem, NULL);
    const struct {
        const char *rule, *chain, *key, *trust;
        bool fresh, old;
    } cases[] = {
        {"what ca.crt has", leaf->cert_pem, leaf->key_pem, fresh->cert_pem, true, false},
        {"not the old one by a cross-certificate", crossed, leaf->key_pem, fresh->cert_pem, true, false},
        {"without ca.crt what it verifies against", before->cert_pem, before->key_pem, NULL, false, true},
        {"a leaf that lags behind ca.crt", before->cert_pem, before->key_pem, fresh->cert_pem, true, true},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(&s, "TrustDomain", MIRROR);
        fake_store_put(&s.store, SECRET_PATH("ns", "issued"),
                       scene_secret(NULL, cases[i].chain, cases[i].key, cases[i].trust));
        fake_store_put(&s.store, SECRET_PATH("ns", "web"),
                       scene_secret("ns/mesh", before->cert_pem, before->key_pem, old->cert_pem));
        scene_look(&s);
        size_t a = scene_ca(&s, fresh);
        size_t b = scene_ca(&s, old);
        assert_true(b < s.world.cas_len);
        if ((a < s.world.cas_len && s.world.cas[a].in_source) != cases[i].fresh ||
            s.world.cas[b].in_source != cases[i].old)
            fail_msg("%s", cases[i].rule);
        const struct cr_domain_object *web = scene_view(&s, "Secret", "ns", "web");
        assert_true(web->published.verifies[b] && web->bundle[b] && !web->bundle_foreign);
        assert_int_equal(web->published.problem, CR_TRUST_FINE);
        assert_true(cr_domain_objects_material(s.objects, 0)->trust_len == 1);
        scene_end(&s);
    }
}

static void who_may_write_one_object_makes_no_other_trust_a_ca(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT ours = make_ca(.cn = "ours", .from_s = -DAY_S);
    AUTO_CERT planted = make_ca(.cn = "planted");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    const struct {
        const char *rule, *kind, *spec, *owner;
        bool in_leaf, consents, known, at_hand, distrusted;
    } cases[] = {
        {"in a ConfigMap", "TrustDomain", MIRROR TRUST, "ns/mesh", false, true, false, false},
        {"in a ConfigMap, and the domain's own before", "TrustDomain", MIRROR TRUST, "ns/mesh", false, true, true,
         true},
        {"in a ConfigMap, and distrusted", "TrustDomain", MIRROR TRUST, "ns/mesh", false, true, false, true, true},
        {"in a leaf's Secret, whose writer could write the source", "TrustDomain", MIRROR TRUST, "ns/mesh", true, true,
         false, true},
        {"in a Secret that is another's", "TrustDomain", MIRROR TRUST, NULL, true, true, false, false},
        {"in a leaf's Secret of a namespace that consents", "ClusterTrustDomain", MIRROR_IN_A, "mesh", true, true,
         false, true},
        {"of one that does not", "ClusterTrustDomain", MIRROR_IN_A, "mesh", true, false, false, false},
        {"of one that does no more", "ClusterTrustDomain", MIRROR_IN_A, "mesh", true, false, true, true},
        {"where the CA's key is elsewhere", "ClusterTrustDomain",
         "authority: {type: Issue, issue: {caSecretName: ca}}, leaves: [{name: web, namespace: a, source: {type: "
         "Issue, "
         "issue: {dnsNames: [web]}}}]",
         "mesh", true, true, false, false},
        {"there, of a mirrored leaf, whose writer could write the source", "ClusterTrustDomain",
         "authority: {type: Issue, issue: {caSecretName: ca}}, " MIRROR_IN_A, "mesh", true, true, false, true},
        {"there, of one that does not consent", "ClusterTrustDomain",
         "authority: {type: Issue, issue: {caSecretName: ca}}, " MIRROR_IN_A, "mesh", true, false, false, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        bool cluster = strcmp(cases[i].kind, "TrustDomain") != 0;
        scene_begin(&s, cases[i].kind, cases[i].spec);
        cr_strvec_add(&s.namespaces, "a");
        if (cases[i].consents)
            cr_strvec_add(&s.consenting, "a");
        const char *source = cluster ? SECRET_PATH("a", "issued") : SECRET_PATH("ns", "issued");
        fake_store_put(&s.store, source, scene_secret(NULL, leaf->cert_pem, leaf->key_pem, ca->cert_pem));
        const char *place = !cases[i].in_leaf ? CONFIGMAP_PATH("ns", "trust")
                            : cluster         ? SECRET_PATH("a", "web")
                                              : SECRET_PATH("ns", "web");
        cr_autofree char *text = test_concat(ours->cert_pem, planted->cert_pem, NULL);
        struct cr_json *object = scene_secret(cases[i].owner, NULL, NULL, text);
        if (!cases[i].in_leaf)
            cr_json_set_string(cr_json_object_in(object, "data"), "ca.crt", text);
        fake_store_put(&s.store, place, object);
        if (cases[i].known) {
            s.status.cas_len = 1;
            cr_x509_fingerprint(planted->x509, s.status.cas[0].fingerprint);
        }
        char fingerprint[CR_SHA256_HEX];
        cr_x509_fingerprint(planted->x509, fingerprint);
        if (cases[i].distrusted)
            cr_strvec_add(&s.domain->distrust, fingerprint);
        scene_look(&s);
        if ((scene_ca(&s, planted) < s.world.cas_len) != cases[i].at_hand)
            fail_msg("%s", cases[i].rule);
        const struct cr_domain_object *view = &s.world.objects[cases[i].in_leaf ? 0 : 1];
        bool exact = cases[i].at_hand && !cases[i].known && !cases[i].distrusted;
        if (cases[i].owner && view->bundle_foreign == exact)
            fail_msg("%s: the bundle is%s foreign", cases[i].rule, exact ? "" : " not");
        scene_end(&s);
    }
}

/* Each of them is another one, and each but the last one is of no use. */
static char *too_many_cas(const struct test_cert *last)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (int i = 0; i < CR_BUNDLE_CAS_MAX - 1; i++) {
        char cn[16];
        (void)snprintf(cn, sizeof cn, "x%d", i);
        AUTO_CERT each = make_ca(.cn = cn, .key_of = last);
        cr_buf_puts(&text, each->cert_pem);
    }
    cr_buf_puts(&text, last->cert_pem);
    return cr_buf_steal(&text);
}

static void one_team_s_cas_leave_room_for_those_of_all(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT theirs = make_ca(.cn = "theirs");
    AUTO_CERT leaf = make(.cn = "web", .issuer = theirs);
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -DAY_S);
    cr_autofree char *many = too_many_cas(theirs);
    scene_begin(
        &s, "ClusterTrustDomain",
        "authority: {type: Issue, issue: {caSecretName: ca, commonName: mesh}}, leaves: [{name: web, namespace: "
        "a, source: {type: Mirror, mirror: {secretName: issued}}}], trustTargets: [{kind: ConfigMap, name: "
        "trust, namespace: b}]");
    for (size_t i = 0; i < 2; i++) {
        cr_strvec_add(&s.namespaces, i ? "b" : "a");
        cr_strvec_add(&s.consenting, i ? "b" : "a");
    }
    fake_store_put(&s.store, SECRET_PATH("operator", "ca"),
                   scene_secret("mesh", ca->cert_pem, ca->key_pem, ca->cert_pem));
    fake_store_put(&s.store, SECRET_PATH("a", "issued"), scene_secret(NULL, leaf->cert_pem, leaf->key_pem, many));
    cr_autofree char *bundle = test_concat(ca->cert_pem, old->cert_pem, NULL);
    struct cr_json *trust = test_yaml("{metadata: {annotations: {certroll.dev/trust-domain: mesh}}}");
    cr_json_set_string(cr_json_object_in(trust, "data"), "ca.crt", bundle);
    fake_store_put(&s.store, CONFIGMAP_PATH("b", "trust"), trust);
    s.status.cas_len = 1;
    cr_x509_fingerprint(old->x509, s.status.cas[0].fingerprint);
    scene_look(&s);
    assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_USABLE);
    const struct cr_domain_object *view = scene_view(&s, "ConfigMap", "b", "trust");
    assert_true(scene_ca(&s, old) < s.world.cas_len && view->bundle[scene_ca(&s, old)] && !view->bundle_foreign);
    assert_int_equal(scene_view(&s, "Secret", "a", "web")->source.problem, CR_TRUST_NO_CA);
    scene_end(&s);
}

/* With the names, key identifiers and extensions of a CA, newer, and with a key that costs too much. What signed it
 * nobody asks. */
static char *fake_of(const struct test_cert *ca)
{
    AUTO_CERT signer = make_ca(.cn = "signer");
    EVP_PKEY *key = test_rsa_public(8200, 17);
    X509 *fake = X509_dup(ca->x509);
    assert_true(ASN1_TIME_set(X509_getm_notBefore(fake), time(NULL) - 60) && X509_set_pubkey(fake, key) &&
                X509_sign(fake, signer->key, EVP_sha256()));
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(CR_BUNDLE_BYTES_MAX);
    struct cr_error err = {0};
    assert_true(cr_x509_write(fake, &pem, &err));
    X509_free(fake);
    EVP_PKEY_free(key);
    return cr_buf_steal(&pem);
}

static char *many_of_one_name(const struct test_cert *ca)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (int i = 0; i < CR_PATHS_CERTIFICATES_MAX; i++) {
        AUTO_CERT each = make_ca(.cn = "ca", .key_of = ca, .from_s = -60);
        cr_buf_puts(&text, each->cert_pem);
    }
    return cr_buf_steal(&text);
}

/* Else nobody would know who verifies the others' leaves, and nothing would protect them. */
static void cas_that_make_others_leaves_too_costly_are_not_taken_from_a_source(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca", .from_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    AUTO_CERT theirs = make_ca(.cn = "theirs");
    AUTO_CERT other = make(.cn = "other", .issuer = theirs);
    cr_autofree char *fake = fake_of(ca);
    cr_autofree char *many = many_of_one_name(theirs);
    const struct {
        const char *fakes, *words;
    } cases[] = {
        {fake, "ca.crt: an RSA key of 8200 bits costs too much"},
        {many, "ca.crt: there are 64 CAs of one name"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(
            &s, "ClusterTrustDomain",
            "leaves: [{name: other, namespace: a, source: {type: Mirror, mirror: {secretName: issued}}}, {name: "
            "web, namespace: b, source: {type: Mirror, mirror: {secretName: issued}}}]");
        for (size_t k = 0; k < 2; k++) {
            cr_strvec_add(&s.namespaces, k ? "b" : "a");
            cr_strvec_add(&s.consenting, k ? "b" : "a");
        }
        cr_autofree char *trust = test_concat(theirs->cert_pem, cases[i].fakes, NULL);
        fake_store_put(&s.store, SECRET_PATH("a", "issued"),
                       scene_secret(NULL, other->cert_pem, other->key_pem, trust));
        fake_store_put(&s.store, SECRET_PATH("a", "other"), scene_secret("mesh", NULL, NULL, trust));
        fake_store_put(&s.store, SECRET_PATH("b", "issued"),
                       scene_secret(NULL, leaf->cert_pem, leaf->key_pem, ca->cert_pem));
        fake_store_put(&s.store, SECRET_PATH("b", "web"),
                       scene_secret("mesh", leaf->cert_pem, leaf->key_pem, ca->cert_pem));
        scene_look(&s);
        const struct cr_domain_leaf_view *source = &scene_view(&s, "Secret", "a", "other")->source;
        const struct cr_domain_object *web = scene_view(&s, "Secret", "b", "web");
        if (source->problem != CR_TRUST_MATERIAL_TOO_COSTLY || !strstr(source->problem_text, cases[i].words))
            fail_msg("%s: %s", cases[i].words, cr_or_empty(source->problem_text));
        assert_int_equal(s.world.cas_len, 1);
        assert_int_equal(web->published.problem, CR_TRUST_FINE);
        assert_int_equal(web->source.problem, CR_TRUST_FINE);
        assert_true(web->published.verifies[scene_ca(&s, ca)] && web->source.verifies[scene_ca(&s, ca)]);
        scene_end(&s);
    }
}

static void what_may_be_written_and_what_not(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *object, *reason, *words;
    } cases[] = {
        {"nothing is there", NULL, NULL, NULL},
        {"ours", "{metadata: {annotations: {certroll.dev/trust-domain: ns/mesh}}}", NULL, NULL},
        {"another's", "{metadata: {}}", "NotOurs", "certroll.dev/trust-domain: ns/mesh"},
        {"another domain's", "{metadata: {annotations: {certroll.dev/trust-domain: ns/other}}}", "OtherDomain",
         "'ns/other'"},
        {"a ClusterTrustDomain's of that name", "{metadata: {annotations: {certroll.dev/trust-domain: mesh}}}",
         "OtherDomain", "'mesh'"},
        {"immutable", "{immutable: true, metadata: {annotations: {certroll.dev/trust-domain: ns/mesh}}}", "Immutable",
         "another name"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(&s, "TrustDomain", MIRROR TRUST);
        if (cases[i].object) {
            fake_store_put(&s.store, SECRET_PATH("ns", "web"), test_yaml(cases[i].object));
            fake_store_put(&s.store, CONFIGMAP_PATH("ns", "trust"), test_yaml(cases[i].object));
        }
        scene_look(&s);
        for (size_t k = 0; k < 2; k++) {
            const struct cr_domain_object *view = &s.world.objects[k];
            if (!cr_streq(cr_trust_reason_name(view->refused), cr_or_empty(cases[i].reason)) ||
                (cases[i].words && !strstr(cr_or_empty(view->refused_text), cases[i].words)))
                fail_msg("%s: %s, %s", cases[i].rule, cr_trust_reason_name(view->refused),
                         cr_or_empty(view->refused_text));
            struct cr_error err = {0};
            if (cases[i].reason && scene_write(&s, (struct cr_domain_write){.object = k}, &err))
                fail_msg("%s: it was written", cases[i].rule);
        }
        assert_int_equal(s.store.writes.len, 0);
        scene_end(&s);
    }
}

static void the_cluster_kind_writes_where_it_has_consent(void **state)
{
    (void)state;
    struct domain_scene s;
    scene_begin(
        &s, "ClusterTrustDomain",
        "leaves: [{name: one, namespace: a, source: {type: Mirror, mirror: {secretName: x}}}, {name: two, "
        "namespace: b, source: {type: Mirror, mirror: {secretName: x}}}, {name: three, namespace: gone, source: "
        "{type: Mirror, mirror: {secretName: x}}}], trustTargets: [{kind: ConfigMap, name: trust, namespace: c}, "
        "{kind: ConfigMap, name: trust, namespaceSelector: {matchLabels: {mesh: 'on'}}}]");
    const char *const all[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++)
        cr_strvec_add(&s.namespaces, all[i]);
    cr_strvec_add(&s.consenting, "a");
    cr_strvec_add(&s.consenting, "c");
    /* No account may read there, and no owner has asked us to. */
    s.store.forbidden = "/namespaces/b/";
    scene_look(&s);
    assert_int_equal(s.world.objects_len, 5);
    assert_int_equal(scene_view(&s, "Secret", "a", "one")->refused, CR_TRUST_FINE);
    assert_int_equal(scene_view(&s, "Secret", "b", "two")->refused, CR_TRUST_NO_CONSENT);
    assert_non_null(strstr(scene_view(&s, "Secret", "b", "two")->refused_text, "certroll.dev/trust-domains: \"mesh\""));
    assert_int_equal(scene_view(&s, "Secret", "gone", "three")->refused, CR_TRUST_NAMESPACE_MISSING);
    assert_int_equal(scene_view(&s, "ConfigMap", "c", "trust")->refused, CR_TRUST_FINE);
    assert_int_equal(scene_view(&s, "ConfigMap", "a", "trust")->refused, CR_TRUST_FINE);
    assert_int_equal(s.world.without_consent->len, 1);
    assert_string_equal(s.world.without_consent->items[0], "b");
    scene_end(&s);
}

/* Its readers may trust the CA that is distrusted, whether or not the namespace still wants what comes after. */
static void what_was_published_where_consent_has_gone_is_looked_at_while_a_ca_is_distrusted(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool distrusted, gone, selected;
        size_t objects;
    } cases[] = {
        {"no CA is distrusted", false, false, true, 1},
        {"consent is withdrawn", true, false, true, 2},
        {"the namespace is gone", true, false, false, 2},
        {"the CA is gone", true, true, true, 1},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(&s, "ClusterTrustDomain",
                    MIRROR_IN_A
                    ", trustTargets: [{kind: ConfigMap, name: trust, namespaceSelector: {matchLabels: {mesh: 'on'}}}]");
        struct cr_domain_object_status *known = cr_domain_status_object_add(&s.status, "ConfigMap", "b", "trust");
        (void)snprintf(known->trust, sizeof known->trust, "%064d", 1);
        if (cases[i].selected)
            cr_strvec_add(&s.namespaces, "b");
        s.status.distrusted_len = cases[i].distrusted;
        (void)snprintf(s.status.distrusted[0].fingerprint, sizeof s.status.distrusted[0].fingerprint, "%064d", 2);
        s.status.distrusted[0].gone_ms = cases[i].gone;
        if (cases[i].distrusted)
            cr_strvec_add(&s.domain->distrust, s.status.distrusted[0].fingerprint);
        scene_look(&s);
        if (s.world.objects_len != cases[i].objects)
            fail_msg("%s: %zu objects", cases[i].rule, s.world.objects_len);
        if (cases[i].objects == 2)
            assert_int_equal(scene_view(&s, "ConfigMap", "b", "trust")->refused,
                             cases[i].selected ? CR_TRUST_NO_CONSENT : CR_TRUST_NAMESPACE_MISSING);
        scene_end(&s);
        cr_domain_status_dispose(&s.status);
    }
}

static void what_a_domain_reads_and_keeps_is_no_place_to_publish(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *kind, *name, *words;
    } cases[] = {
        {"leaves: [{name: web, namespace: operator, secretName: ca, source: {type: Issue, issue: {commonName: web, "
         "usages: "
         "[client]}}}]",
         "Secret", "ca", "Secret operator/ca is that of this domain's CA"},
        {"leaves: [{name: web, namespace: operator, secretName: " STAGING
         ", source: {type: Issue, issue: {commonName: web, usages: [client]}}}]",
         "Secret", STAGING, "keeps its keys"},
        {"trustTargets: [{kind: Secret, name: ca, namespaceSelector: {matchLabels: {mesh: 'on'}}}]", "Secret", "ca",
         "is that of this domain's CA"},
        {"leaves: [{name: web, namespace: operator, source: {type: Mirror, mirror: {secretName: issued}}}], "
         "trustTargets: [{kind: Secret, name: issued, namespace: operator}]",
         "Secret", "issued", "the source of leaf 'web'"},
        {"trustTargets: [{kind: ConfigMap, name: ca, namespace: operator}]", "ConfigMap", "ca", NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        struct cr_error err = {0};
        AUTO_CERT ca = make_ca(.cn = "ca");
        cr_autofree char *spec =
            cr_asprintf("authority: {type: Issue, issue: {caSecretName: ca, commonName: mesh}}, %s", cases[i].spec);
        scene_begin(&s, "ClusterTrustDomain", spec);
        cr_strvec_add(&s.namespaces, "operator");
        cr_strvec_add(&s.consenting, "operator");
        fake_store_put(&s.store, SECRET_PATH("operator", "ca"),
                       scene_secret("mesh", ca->cert_pem, ca->key_pem, ca->cert_pem));
        scene_look(&s);
        const struct cr_domain_object *view = scene_view(&s, cases[i].kind, "operator", cases[i].name);
        if (!cases[i].words) {
            assert_int_equal(view->refused, CR_TRUST_FINE);
        } else {
            assert_int_equal(view->refused, CR_TRUST_RESERVED);
            assert_non_null(strstr(view->refused_text, cases[i].words));
            assert_false(view->found || view->published.found);
            size_t at = scene_object(&s, cases[i].kind, "operator", cases[i].name);
            assert_false(scene_write(&s, (struct cr_domain_write){.object = at}, &err));
            assert_int_equal(s.store.writes.len, 0);
        }
        assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_USABLE);
        scene_end(&s);
    }
}

static void what_cannot_be_read_is_reported_with_its_name(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    scene_begin(&s, "TrustDomain", ISSUE);
    s.store.forbidden = "/secrets/ca";
    assert_false(scene_try_look(&s, &err));
    assert_int_equal(err.kind, CR_ERR_FORBIDDEN);
    scene_refused(&err, "cannot read Secret ns/ca");
    scene_end(&s);
}

static struct cr_json *more_than_is_read(void)
{
    struct cr_json *values = cr_json_new_array();
    struct cr_json *object = cr_json_new_object();
    for (size_t i = 0; i < CR_OBJECT_VALUES_MAX; i++)
        cr_json_add(values, cr_json_new_bool(true));
    cr_json_set(object, "data", values);
    return object;
}

#define IN_A_AND_B                                                                                                     \
    MIRROR_IN_A ", trustTargets: [{kind: ConfigMap, name: trust, namespace: a}, {kind: ConfigMap, name: trust, "       \
                "namespace: b}]"

static void what_one_namespace_has_more_of_than_is_read_stops_no_other(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    static const struct {
        const char *rule;
        bool consents;
        enum cr_trust_reason reason;
        const char *words;
    } rows[] = {
        {"where it publishes", true, CR_TRUST_CANNOT_READ, "cannot read ConfigMap b/trust: "},
        {"where it may not publish", false, CR_TRUST_NO_CONSENT, "namespace b has not consented"},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct domain_scene s;
        struct cr_error err = {0};
        scene_begin(&s, "ClusterTrustDomain", IN_A_AND_B);
        cr_strvec_add(&s.namespaces, "a");
        cr_strvec_add(&s.namespaces, "b");
        cr_strvec_add(&s.consenting, rows[i].consents ? "b" : "nobody");
        cr_strvec_add(&s.consenting, "a");
        fake_store_put(&s.store, SECRET_PATH("a", "issued"),
                       scene_secret(NULL, leaf->cert_pem, leaf->key_pem, ca->cert_pem));
        fake_store_put(&s.store, CONFIGMAP_PATH("b", "trust"), more_than_is_read());
        scene_look(&s);
        size_t at = scene_object(&s, "ConfigMap", "b", "trust");
        const struct cr_domain_object *view = &s.world.objects[at];
        if (view->refused != rows[i].reason || !strstr(cr_or_empty(view->refused_text), rows[i].words))
            fail_msg("%s: %s", rows[i].rule, cr_or_empty(view->refused_text));
        assert_false(view->found);
        assert_int_equal(view->unknown, !rows[i].consents);
        assert_false(scene_write(&s, (struct cr_domain_write){.object = at}, &err));
        assert_int_equal(s.store.writes.len, 0);
        assert_true(scene_view(&s, "Secret", "a", "web")->source.found);
        scene_must_write(&s, (struct cr_domain_write){.object = scene_object(&s, "ConfigMap", "a", "trust")});
        scene_end(&s);
    }
}

static void what_a_leaf_is_made_of_and_cannot_be_read_holds_it_alone(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    struct domain_scene s;
    scene_begin(&s, "TrustDomain",
                "leaves: [{name: web, source: {type: Mirror, mirror: {secretName: issued}}}, {name: api, keystore: "
                "{passwordSecretRef: {name: password}}, source: {type: Mirror, mirror: {secretName: good}}}]");
    fake_store_put(&s.store, SECRET_PATH("ns", "issued"), more_than_is_read());
    fake_store_put(&s.store, SECRET_PATH("ns", "password"), more_than_is_read());
    fake_store_put(&s.store, SECRET_PATH("ns", "good"),
                   scene_secret(NULL, leaf->cert_pem, leaf->key_pem, ca->cert_pem));
    scene_look(&s);
    const struct cr_domain_object *web = scene_view(&s, "Secret", "ns", "web");
    const struct cr_domain_object *api = scene_view(&s, "Secret", "ns", "api");
    assert_int_equal(web->refused, CR_TRUST_FINE);
    assert_int_equal(web->source.problem, CR_TRUST_CANNOT_READ);
    assert_non_null(strstr(web->source.problem_text, "cannot read Secret ns/issued: "));
    assert_int_equal(api->refused, CR_TRUST_KEYSTORE_PASSWORD);
    assert_non_null(strstr(api->refused_text, "cannot read Secret ns/password: "));
    assert_true(api->source.found);
    scene_end(&s);
}

/* With the leaf there is one object more than namespaces. */
static void of_too_many_objects_those_on_record_are_in_force(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *on_record, *out, *also_out;
        size_t namespaces, beyond;
    } rows[] = {
        {"as many as there may be", NULL, NULL, NULL, CR_DOMAIN_OBJECTS_MAX - 1, 0},
        {"one more", NULL, "ns-511", NULL, CR_DOMAIN_OBJECTS_MAX, 1},
        {"the one that came last is left out", "ns-511", "ns-510", NULL, CR_DOMAIN_OBJECTS_MAX, 1},
        {"several more", "ns-513", "ns-510", "ns-512", CR_DOMAIN_OBJECTS_MAX + 2, 3},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct domain_scene s;
        scene_begin(&s, "ClusterTrustDomain",
                    MIRROR_IN_A
                    ", trustTargets: [{kind: ConfigMap, name: trust, namespaceSelector: {matchLabels: {mesh: 'on'}}}]");
        for (size_t k = 0; k < rows[i].namespaces; k++) {
            cr_autofree char *ns = cr_asprintf("ns-%03zu", k);
            cr_strvec_add(&s.namespaces, ns);
            cr_strvec_add(&s.consenting, ns);
        }
        if (rows[i].on_record)
            (void)cr_domain_status_object_add(&s.status, "ConfigMap", rows[i].on_record, "trust");
        scene_look(&s);
        cr_autofree char *example = rows[i].out ? cr_asprintf("ConfigMap %s/trust", rows[i].out) : NULL;
        assert_int_equal(s.world.objects_len, CR_DOMAIN_OBJECTS_MAX);
        if (s.world.beyond.objects != rows[i].beyond || !cr_streq(s.world.beyond.example, example))
            fail_msg("%s: %zu, %s", rows[i].rule, s.world.beyond.objects, cr_or_empty(s.world.beyond.example));
        assert_true(s.world.objects[0].is_leaf);
        for (size_t k = 0; k < s.world.objects_len; k++)
            if (cr_streq(s.world.objects[k].ns, cr_or_empty(rows[i].out)) ||
                cr_streq(s.world.objects[k].ns, cr_or_empty(rows[i].also_out)))
                fail_msg("%s: %s", rows[i].rule, s.world.objects[k].ns);
        if (rows[i].on_record)
            (void)scene_view(&s, "ConfigMap", rows[i].on_record, "trust");
        cr_domain_status_dispose(&s.status);
        scene_end(&s);
    }
}

static void a_ca_that_cannot_sign_says_why(void **state)
{
    (void)state;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT other = make_ca(.cn = "other");
    AUTO_CERT late = make_ca(.cn = "late", .from_s = -2 * DAY_S, .until_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "leaf");
    AUTO_CERT root = make_ca(.cn = "root");
    AUTO_CERT middle = make_ca(.cn = "middle", .issuer = root);
    const struct {
        const char *rule, *certificate, *key, *trust;
        const struct test_cert *anchor;
        enum cr_domain_ca_state state;
        const char *words;
    } cases[] = {
        {"a root", ca->cert_pem, ca->key_pem, NULL, ca, CR_DOMAIN_CA_USABLE, NULL},
        {"below a root", middle->cert_pem, middle->key_pem, root->cert_pem, root, CR_DOMAIN_CA_USABLE, NULL},
        {"expired, and still at hand", late->cert_pem, late->key_pem, NULL, late, CR_DOMAIN_CA_BROKEN, "expired at"},
        {"another key", ca->cert_pem, other->key_pem, NULL, ca, CR_DOMAIN_CA_BROKEN, "does not belong"},
        {"no CA", leaf->cert_pem, leaf->key_pem, NULL, leaf, CR_DOMAIN_CA_BROKEN, "none of a CA"},
        {"garbage", "garbage", ca->key_pem, NULL, NULL, CR_DOMAIN_CA_BROKEN, "Secret ns/ca"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        scene_begin(&s, "TrustDomain", ISSUE);
        fake_store_put(&s.store, SECRET_PATH("ns", "ca"),
                       scene_secret("ns/mesh", cases[i].certificate, cases[i].key, cases[i].trust));
        scene_look(&s);
        const struct cr_domain_authority_view *authority = &s.world.authority;
        if (authority->current != cases[i].state || authority->next != CR_DOMAIN_CA_ABSENT ||
            (cases[i].words && !strstr(cr_or_empty(authority->current_problem), cases[i].words)))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(authority->current_problem));
        if (cases[i].anchor)
            assert_int_equal(authority->current_ca, scene_ca(&s, cases[i].anchor));
        assert_int_equal(s.world.cas_len, cases[i].anchor ? 1 : 0);
        scene_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_that_cannot_be_used_says_why),
        cmocka_unit_test(an_absent_source_is_not_found),
        cmocka_unit_test(a_source_s_own_cas_are_known_from_those_published_before),
        cmocka_unit_test(who_may_write_one_object_makes_no_other_trust_a_ca),
        cmocka_unit_test(one_team_s_cas_leave_room_for_those_of_all),
        cmocka_unit_test(cas_that_make_others_leaves_too_costly_are_not_taken_from_a_source),
        cmocka_unit_test(what_may_be_written_and_what_not),
        cmocka_unit_test(the_cluster_kind_writes_where_it_has_consent),
        cmocka_unit_test(what_was_published_where_consent_has_gone_is_looked_at_while_a_ca_is_distrusted),
        cmocka_unit_test(what_a_domain_reads_and_keeps_is_no_place_to_publish),
        cmocka_unit_test(what_cannot_be_read_is_reported_with_its_name),
        cmocka_unit_test(what_one_namespace_has_more_of_than_is_read_stops_no_other),
        cmocka_unit_test(what_a_leaf_is_made_of_and_cannot_be_read_holds_it_alone),
        cmocka_unit_test(of_too_many_objects_those_on_record_are_in_force),
        cmocka_unit_test(a_ca_that_cannot_sign_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
