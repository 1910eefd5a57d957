#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pki/authority.h"
#include "pki/ca_set.h"
#include "support/domainscene.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)

#define WEB    SECRET_PATH("ns", "web")
#define ISSUED SECRET_PATH("ns", "issued")
#define MIRROR "leaves: [{name: web, source: {type: Mirror, mirror: {secretName: issued}}}]"
#define ISSUE                                                                                                          \
    "authority: {type: Issue, issue: {caSecretName: ca, commonName: mesh, duration: 24h, crossSign: true}}, leaves: "  \
    "[{name: web, source: {type: Issue, issue: {dnsNames: [web], usages: [server, client], duration: 12h}}}]"
#define TRUST ", trustTargets: [{kind: ConfigMap, name: trust}]"

static void put_source(struct domain_scene *s, const struct test_cert *leaf, const char *trust)
{
    fake_store_put(&s->store, ISSUED, scene_secret(NULL, leaf->cert_pem, leaf->key_pem, trust));
}

static void expect_text(struct domain_scene *s, const char *path, const char *key, const char *want)
{
    cr_autofree char *text = scene_text(s, path, key);
    if (!cr_streq(text, want))
        fail_msg("%s of %s is %s", key, path, cr_or_empty(text));
}

static void expect_writes(const struct domain_scene *s, const char *want)
{
    cr_autofree char *writes = cr_strvec_join(&s->store.writes, ", ");
    if (strcmp(writes, want) != 0)
        fail_msg("want %s, got %s", want, writes);
}

/* --- Secrets --- */

static void what_is_absent_is_made_whole(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    scene_begin(&s, "TrustDomain", MIRROR TRUST);
    put_source(&s, leaf, ca->cert_pem);
    scene_look(&s);
    scene_must_write(&s, (struct cr_domain_write){.object = 0, .leaf = CR_LEAF_ACT_MIRROR});
    scene_must_write(&s, (struct cr_domain_write){.object = 1});
    expect_writes(&s, "POST /api/v1/namespaces/ns/secrets, POST /api/v1/namespaces/ns/configmaps");
    const struct cr_json *web = fake_store_get(&s.store, WEB);
    assert_string_equal(cr_json_string_at(web, "type"), "kubernetes.io/tls");
    assert_string_equal(cr_obj_annotation(web, CR_DOMAIN_ANNOTATION), "ns/mesh");
    assert_string_equal(cr_json_string_at(web, "metadata", "labels", "app.kubernetes.io/managed-by"), "certroll");
    assert_null(cr_json_at(web, "metadata", "ownerReferences"));
    expect_text(&s, WEB, "tls.crt", leaf->cert_pem);
    expect_text(&s, WEB, "tls.key", leaf->key_pem);
    expect_text(&s, WEB, "ca.crt", ca->cert_pem);
    const struct cr_json *trust = fake_store_get(&s.store, CONFIGMAP_PATH("ns", "trust"));
    assert_string_equal(cr_json_string_at(trust, "data", "ca.crt"), ca->cert_pem);
    /* The view shows it, without another read. */
    cr_domain_objects_view(s.objects, &s.world);
    assert_true(s.world.objects[0].published.found && s.world.objects[0].bundle[0] && s.world.objects[1].bundle[0]);
    assert_string_equal(s.world.objects[0].published.fingerprint, s.world.objects[0].source.fingerprint);
    scene_end(&s);
}

static void of_what_is_there_only_our_entries_change(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    AUTO_CERT before = make(.cn = "web", .issuer = ca);
    scene_begin(&s, "TrustDomain", MIRROR TRUST);
    put_source(&s, leaf, ca->cert_pem);
    struct cr_json *web = scene_secret("ns/mesh", before->cert_pem, before->key_pem, ca->cert_pem);
    scene_entry(web, "theirs", "kept");
    cr_json_set_string(cr_json_object_in(cr_json_object_in(web, "metadata"), "annotations"), CR_DOMAIN_ISSUED_FOR, "x");
    fake_store_put(&s.store, WEB, web);
    struct cr_json *trust = test_yaml("{metadata: {annotations: {certroll.dev/trust-domain: ns/mesh}}, data: {theirs: "
                                      "kept}, binaryData: {ca.crt: AAAA}}");
    fake_store_put(&s.store, CONFIGMAP_PATH("ns", "trust"), trust);
    scene_look(&s);
    assert_true(s.world.objects[1].bundle_foreign);
    scene_must_write(&s, (struct cr_domain_write){.object = 0, .leaf = CR_LEAF_ACT_MIRROR});
    CR_CLEANUP(cr_json) struct cr_json *sent = cr_json_parse(s.store.last_body, strlen(s.store.last_body), NULL);
    assert_non_null(cr_json_string_at(sent, "metadata", "uid"));
    assert_non_null(cr_json_string_at(sent, "metadata", "resourceVersion"));
    assert_null(cr_json_get(sent, "type"));
    scene_must_write(&s, (struct cr_domain_write){.object = 1});
    expect_writes(&s, "PATCH " WEB ", PATCH " CONFIGMAP_PATH("ns", "trust"));
    const struct cr_json *now = fake_store_get(&s.store, WEB);
    assert_string_equal(cr_json_string_at(now, "type"), "Opaque");
    assert_null(cr_obj_annotation(now, CR_DOMAIN_ISSUED_FOR));
    expect_text(&s, WEB, "theirs", "kept");
    expect_text(&s, WEB, "tls.crt", leaf->cert_pem);
    now = fake_store_get(&s.store, CONFIGMAP_PATH("ns", "trust"));
    assert_string_equal(cr_json_string_at(now, "data", "theirs"), "kept");
    assert_null(cr_json_at(now, "binaryData", "ca.crt"));
    scene_end(&s);
}

static void what_somebody_wrote_meanwhile_is_looked_at_again(void **state)
{
    (void)state;
    for (int there = 0; there < 2; there++) {
        struct domain_scene s;
        struct cr_error err = {0};
        AUTO_CERT ca = make_ca(.cn = "ca");
        AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
        scene_begin(&s, "TrustDomain", MIRROR);
        put_source(&s, leaf, ca->cert_pem);
        if (there)
            fake_store_put(&s.store, WEB, scene_secret("ns/mesh", NULL, NULL, ca->cert_pem));
        scene_look(&s);
        fake_store_put(&s.store, WEB, scene_secret("ns/mesh", "theirs", "theirs", "theirs"));
        assert_false(scene_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_MIRROR}, &err));
        assert_int_equal(err.kind, CR_ERR_CONFLICT);
        scene_refused(&err, there ? "cannot patch Secret ns/web" : "cannot create Secret ns/web");
        expect_text(&s, WEB, "tls.crt", "theirs");
        scene_end(&s);
    }
}

static void what_would_cut_somebody_off_is_not_written(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    AUTO_CERT before = make(.cn = "web", .issuer = old);
    scene_begin(&s, "TrustDomain", MIRROR TRUST);
    put_source(&s, leaf, fresh->cert_pem);
    fake_store_put(&s.store, WEB, scene_secret("ns/mesh", before->cert_pem, before->key_pem, old->cert_pem));
    scene_look(&s);
    bool only_new[] = {true, false};
    bool only_old[] = {false, true};
    bool none[] = {false, false};
    assert_int_equal(scene_ca(&s, fresh), 0);
    const struct {
        const char *rule, *words;
        struct cr_domain_write write;
    } cases[] = {
        {"the next leaf without its CA",
         "verifies against no CA of the bundle",
         {.bundle = only_old, .leaf = CR_LEAF_ACT_MIRROR}},
        {"no CA at all", "without a CA", {.object = 1, .bundle = none}},
        {"nothing to put back", "no certificate and key", {.leaf = CR_LEAF_ACT_PUT_BACK}},
        {"a CA whose key is not held", "key of the issuing CA is not held", {.leaf = CR_LEAF_ACT_ISSUE}},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        if (scene_write(&s, cases[i].write, &err) || err.kind != CR_ERR_INVALID)
            fail_msg("%s", cases[i].rule);
        scene_refused(&err, cases[i].words);
        scene_refused(&err, cases[i].write.object ? "ConfigMap ns/trust" : "Secret ns/web");
    }
    assert_int_equal(s.store.writes.len, 0);
    scene_must_write(&s, (struct cr_domain_write){.bundle = only_new, .leaf = CR_LEAF_ACT_MIRROR});
    scene_end(&s);
}

/* The plan does not ask for that; a CA that clients take for another can make it so. */
static void a_ca_without_which_somebody_would_be_cut_off_stays_and_it_is_said(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -2 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = fresh);
    AUTO_CERT before = make(.cn = "web", .issuer = old);
    scene_begin(&s, "TrustDomain", MIRROR TRUST);
    put_source(&s, leaf, fresh->cert_pem);
    fake_store_put(&s.store, WEB, scene_secret("ns/mesh", before->cert_pem, before->key_pem, old->cert_pem));
    scene_look(&s);
    bool only_new[] = {true, false};
    assert_int_equal(scene_ca(&s, fresh), 0);
    cr_autofree char *both = test_concat(fresh->cert_pem, old->cert_pem, NULL);
    const struct cr_domain_write write = {.bundle = only_new};
    for (int i = 0; i < 2; i++) { /* and then nothing is written again */
        CR_CLEANUP(cr_domain_written) struct cr_domain_written made;
        assert_true(cr_domain_objects_write(s.objects, &write, cr_clock_wall_ms(), &made, &err));
        assert_int_equal(made.reason, CR_TRUST_WOULD_CUT_OFF);
        assert_non_null(strstr(made.text, "Secret ns/web keeps its bundle"));
        assert_non_null(strstr(made.text, "would not verify the leaf of Secret ns/web"));
        assert_int_equal(!made.version, i);
        expect_text(&s, WEB, "ca.crt", both);
        scene_look(&s);
    }
    assert_int_equal(s.store.writes.len, 1);
    scene_end(&s);
}

/* Each of two sources has as many CAs of the name as it may, all newer than the one that has signed the leaf. */
static void put_namesakes(struct domain_scene *s, const struct test_cert *theirs, const struct test_cert *leaf)
{
    static const char *const sources[] = {SECRET_PATH("ns", "one"), SECRET_PATH("ns", "two")};
    for (size_t i = 0; i < cr_array_len(sources); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf trust = {0};
        cr_buf_puts(&trust, theirs->cert_pem);
        for (int k = 0; k < CR_CA_SET_NAMESAKES_MAX; k++) {
            AUTO_CERT each = make_ca(.cn = "ca", .key_of = theirs, .from_s = -HOUR_S);
            cr_buf_puts(&trust, each->cert_pem);
        }
        fake_store_put(&s->store, sources[i], scene_secret(NULL, leaf->cert_pem, leaf->key_pem, trust.data));
    }
}

/* OpenSSL takes the first of a name. */
static void beside_a_leaf_that_is_too_costly_to_verify_new_cas_come_last(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT ca = make_ca(.cn = "ca", .from_s = -DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    AUTO_CERT theirs = make_ca(.cn = "theirs");
    AUTO_CERT other = make(.cn = "other", .issuer = theirs);
    scene_begin(
        &s, "TrustDomain",
        "leaves: [{name: web, source: {type: Mirror, mirror: {secretName: issued}}}, {name: a, source: {type: "
        "Mirror, mirror: {secretName: one}}}, {name: b, source: {type: Mirror, mirror: {secretName: two}}}]" TRUST);
    put_source(&s, leaf, ca->cert_pem);
    put_namesakes(&s, theirs, other);
    fake_store_put(&s.store, WEB, scene_secret("ns/mesh", leaf->cert_pem, leaf->key_pem, ca->cert_pem));
    struct cr_json *trust = test_yaml("{metadata: {annotations: {certroll.dev/trust-domain: ns/mesh}}}");
    cr_json_set_string(cr_json_object_in(trust, "data"), "ca.crt", ca->cert_pem);
    fake_store_put(&s.store, CONFIGMAP_PATH("ns", "trust"), trust);
    scene_look(&s);
    assert_int_equal(s.world.cas_len, 2 * CR_CA_SET_NAMESAKES_MAX + 2);
    const struct cr_domain_object *web = scene_view(&s, "Secret", "ns", "web");
    assert_int_equal(web->published.problem, CR_TRUST_MATERIAL_TOO_COSTLY);
    assert_non_null(strstr(web->published.problem_text, "more than 64 certificates"));
    assert_true(web->published.not_after_ms > s.world.now_ms && web->published.costly && web->source.costly);
    assert_int_equal(scene_view(&s, "Secret", "ns", "a")->source.problem, CR_TRUST_FINE);
    cr_autofree bool *all = cr_calloc(s.world.cas_len, sizeof *all);
    memset(all, true, s.world.cas_len * sizeof *all);
    const struct {
        const char *kind, *name;
    } places[] = {{"ConfigMap", "trust"}, {"Secret", "web"}};
    for (size_t i = 0; i < cr_array_len(places); i++) {
        CR_CLEANUP(cr_domain_written) struct cr_domain_written made;
        const struct cr_domain_write write = {.object = scene_object(&s, places[i].kind, "ns", places[i].name),
                                              .bundle = all};
        if (!cr_domain_objects_write(s.objects, &write, cr_clock_wall_ms(), &made, &err))
            fail_msg("%s", err.text);
        assert_int_equal(made.reason, CR_TRUST_BUNDLE_TOO_COSTLY);
    }
    cr_autofree char *beside = scene_text(&s, WEB, "ca.crt");
    const char *published =
        cr_json_string_at(fake_store_get(&s.store, CONFIGMAP_PATH("ns", "trust")), "data", "ca.crt");
    assert_string_equal(beside, published);
    assert_memory_equal(published, ca->cert_pem, strlen(ca->cert_pem));
    assert_true(strlen(published) > CR_CA_SET_NAMESAKES_MAX * strlen(ca->cert_pem));
    scene_end(&s);
}

static void the_bundle_is_the_new_cas_then_the_others_and_no_more_than_fits(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT old = make_ca(.cn = "old", .from_s = -3 * DAY_S);
    AUTO_CERT fresh = make_ca(.cn = "new", .from_s = -DAY_S);
    AUTO_CERT back = make_ca(.cn = "back", .from_s = -2 * DAY_S);
    AUTO_CERT leaf = make(.cn = "web", .issuer = back);
    scene_begin(&s, "TrustDomain", MIRROR);
    put_source(&s, leaf, back->cert_pem);
    cr_autofree char *published = test_concat("# by hand\n", old->cert_pem, fresh->cert_pem, NULL);
    struct cr_json *web = scene_secret("ns/mesh", NULL, NULL, published);
    fake_store_put(&s.store, WEB, web);
    scene_look(&s);
    scene_must_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_MIRROR});
    cr_autofree char *want = test_concat(back->cert_pem, fresh->cert_pem, old->cert_pem, NULL);
    expect_text(&s, WEB, "ca.crt", want);
    /* Others' entries count as well. */
    struct cr_json *full = scene_secret("ns/mesh", leaf->cert_pem, leaf->key_pem, back->cert_pem);
    cr_autofree char *fill = cr_malloc(CR_BUNDLE_BYTES_MAX);
    memset(fill, 'x', CR_BUNDLE_BYTES_MAX - 1);
    fill[CR_BUNDLE_BYTES_MAX - 1] = '\0';
    scene_entry(full, "theirs", fill);
    fake_store_put(&s.store, WEB, full);
    scene_look(&s);
    size_t before = s.store.writes.len;
    assert_false(scene_write(&s, (struct cr_domain_write){0}, &err));
    scene_refused(&err, "more than the 1048576");
    assert_int_equal(s.store.writes.len, before);
    scene_end(&s);
}

/* --- leaves that come and go --- */

static void what_is_published_is_kept_first_and_can_be_put_back(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    AUTO_CERT before = make(.cn = "web", .issuer = ca);
    scene_begin(&s, "TrustDomain", MIRROR ", rotate: {token: back, what: PreviousLeaves}");
    put_source(&s, leaf, ca->cert_pem);
    struct cr_json *web = scene_secret("ns/mesh", before->cert_pem, before->key_pem, ca->cert_pem);
    cr_json_set_string(cr_json_object_in(cr_json_object_in(web, "metadata"), "annotations"), CR_DOMAIN_ISSUED_FOR, "x");
    fake_store_put(&s.store, WEB, web);
    scene_look(&s);
    const struct cr_domain_write take = {.leaf = CR_LEAF_ACT_MIRROR, .save_previous = true};
    scene_must_write(&s, take);
    expect_writes(&s, "POST /api/v1/namespaces/ns/secrets, PATCH " WEB);
    const struct cr_json *staging = fake_store_get(&s.store, SECRET_PATH("ns", STAGING));
    assert_string_equal(cr_json_string_at(staging, "metadata", "labels", "certroll.dev/staging"), "true");
    assert_string_equal(cr_obj_annotation(staging, CR_DOMAIN_ANNOTATION), "ns/mesh");
    scene_look(&s);
    assert_true(s.world.staging_found);
    assert_string_equal(s.world.objects[0].published.fingerprint, s.world.objects[0].source.fingerprint);
    assert_true(s.world.objects[0].previous.found && s.world.objects[0].previous.verifies[0]);
    assert_null(s.world.objects[0].issued_for);
    /* What is saved is not lost to a leaf that is put back. */
    scene_must_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_PUT_BACK, .save_previous = true});
    assert_int_equal(s.store.writes.len, 3);
    expect_text(&s, WEB, "tls.crt", before->cert_pem);
    expect_text(&s, WEB, "tls.key", before->key_pem);
    scene_look(&s);
    assert_string_equal(s.world.objects[0].published.fingerprint, s.world.objects[0].previous.fingerprint);
    assert_string_equal(s.world.objects[0].token, "back");
    assert_string_equal(s.world.objects[0].issued_for, "x");
    scene_end(&s);
}

/* Changes data alone: annotations stay, and are about the leaf that was there. */
static void a_leaf_that_another_program_puts_there_was_not_issued(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    scene_begin(&s, "TrustDomain", ISSUE ", rotate: {token: now, what: Leaves}");
    scene_look(&s);
    assert_true(cr_domain_objects_first_ca(s.objects, cr_clock_wall_ms(), &err));
    scene_look(&s);
    struct cr_domain_write issue = {.leaf = CR_LEAF_ACT_ISSUE};
    scene_must_write(&s, issue);
    struct cr_json *before = cr_json_copy(cr_json_get(fake_store_get(&s.store, WEB), "data"));
    scene_look(&s);
    scene_must_write(&s, issue);
    scene_look(&s);
    const struct cr_domain_object *web = &s.world.objects[0];
    assert_string_equal(web->issued_for, web->wanted_for);
    assert_string_equal(web->token, "now");
    assert_string_equal(cr_obj_annotation(fake_store_get(&s.store, WEB), CR_DOMAIN_LEAF), web->published.fingerprint);
    struct cr_json *put_back = cr_json_copy(fake_store_get(&s.store, WEB));
    cr_json_set(put_back, "data", before);
    fake_store_put(&s.store, WEB, put_back);
    scene_look(&s);
    web = &s.world.objects[0];
    assert_true(web->published.found && !web->published.problem);
    assert_null(web->issued_for);
    assert_null(web->token);
    /* Nor does it become so where it is kept, and put back. */
    issue.save_previous = true;
    scene_must_write(&s, issue);
    assert_non_null(fake_store_get(&s.store, SECRET_PATH("ns", STAGING)));
    assert_null(scene_text(&s, SECRET_PATH("ns", STAGING), "previous.web.issued-for"));
    scene_look(&s);
    assert_string_equal(s.world.objects[0].issued_for, s.world.objects[0].wanted_for);
    scene_must_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_PUT_BACK});
    scene_look(&s);
    assert_null(s.world.objects[0].issued_for);
    /* What was written before there was that annotation counts. */
    struct cr_json *older = cr_json_copy(fake_store_get(&s.store, WEB));
    struct cr_json *annotations = cr_json_object_in(cr_json_object_in(older, "metadata"), "annotations");
    cr_json_remove(annotations, CR_DOMAIN_LEAF);
    cr_json_set_string(annotations, CR_DOMAIN_ISSUED_FOR, "x");
    fake_store_put(&s.store, WEB, older);
    scene_look(&s);
    assert_string_equal(s.world.objects[0].issued_for, "x");
    scene_end(&s);
}

/* Before and after each write: the previous leaf is in staging or still published. */
static void killed_at_any_write_no_leaf_is_lost(void **state)
{
    (void)state;
    for (size_t at = 1; at <= 2; at++)
        for (int fault = FAKE_FAULT_BEFORE; fault <= FAKE_FAULT_AFTER; fault++) {
            struct domain_scene s;
            struct cr_error err = {0};
            AUTO_CERT ca = make_ca(.cn = "ca");
            AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
            AUTO_CERT before = make(.cn = "web", .issuer = ca);
            scene_begin(&s, "TrustDomain", MIRROR);
            put_source(&s, leaf, ca->cert_pem);
            fake_store_put(&s.store, WEB, scene_secret("ns/mesh", before->cert_pem, before->key_pem, ca->cert_pem));
            scene_look(&s);
            const struct cr_domain_write take = {.leaf = CR_LEAF_ACT_MIRROR, .save_previous = true};
            s.store.fail_at = at;
            s.store.fault = (enum fake_fault)fault;
            assert_false(scene_write(&s, take, &err));
            scene_look(&s);
            const struct cr_domain_object *web = &s.world.objects[0];
            bool is_new = strcmp(web->published.fingerprint, web->source.fingerprint) == 0;
            assert_true(is_new == (at == 2 && fault == FAKE_FAULT_AFTER));
            assert_true(!is_new || web->previous.found);
            if (!is_new)
                scene_must_write(&s, take);
            expect_text(&s, SECRET_PATH("ns", STAGING), "previous.web.crt", before->cert_pem);
            expect_text(&s, WEB, "tls.crt", leaf->cert_pem);
            scene_end(&s);
        }
}

static void a_secret_of_staging_s_name_is_not_taken_for_it(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    AUTO_CERT before = make(.cn = "web", .issuer = ca);
    scene_begin(&s, "TrustDomain", MIRROR);
    put_source(&s, leaf, ca->cert_pem);
    fake_store_put(&s.store, WEB, scene_secret("ns/mesh", before->cert_pem, before->key_pem, ca->cert_pem));
    struct cr_json *theirs = scene_secret("ns/mesh", NULL, NULL, NULL);
    scene_entry(theirs, "previous.web.crt", leaf->cert_pem);
    scene_entry(theirs, "previous.web.key", leaf->key_pem);
    fake_store_put(&s.store, SECRET_PATH("ns", STAGING), theirs);
    scene_look(&s);
    assert_false(s.world.staging_found || s.world.objects[0].previous.found);
    assert_false(scene_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_MIRROR, .save_previous = true}, &err));
    scene_refused(&err, "is not this domain's staging");
    assert_false(cr_domain_objects_delete_staging(s.objects, &err));
    assert_int_equal(s.store.writes.len, 0);
    scene_end(&s);
}

/* --- a CA of the domain's own --- */

static bool verifies(const struct domain_scene *s, size_t ca)
{
    return s->world.objects[0].published.verifies[ca];
}

static void publish(struct domain_scene *s, size_t issuer, bool crossed)
{
    scene_must_write(s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_ISSUE, .issuer = issuer, .cross_signed = crossed});
    scene_look(s);
}

static void a_ca_comes_and_is_followed_by_the_next(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    scene_begin(&s, "TrustDomain", ISSUE ", rotate: {token: now, what: CA}");
    scene_look(&s);
    int64_t now = cr_clock_wall_ms();
    assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_ABSENT);
    assert_true(cr_domain_objects_first_ca(s.objects, now, &err));
    assert_true(cr_domain_objects_first_ca(s.objects, now, &err));
    scene_look(&s);
    assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_USABLE);
    publish(&s, s.world.authority.current_ca, false);
    const struct cr_domain_object *web = &s.world.objects[0];
    assert_string_equal(web->issued_for, web->wanted_for);
    assert_string_equal(web->token, "now");
    assert_true(verifies(&s, s.world.authority.current_ca) && web->bundle[s.world.authority.current_ca]);
    char first[CR_SHA256_HEX];
    memcpy(first, s.world.cas[s.world.authority.current_ca].fingerprint, sizeof first);

    assert_true(cr_domain_objects_stage_next_ca(s.objects, "now", now + 2000, &err));
    scene_look(&s);
    assert_int_equal(s.world.authority.next, CR_DOMAIN_CA_USABLE);
    assert_string_equal(s.world.authority.next_token, "now");
    assert_null(s.world.authority.cannot_cross_sign);
    assert_int_equal(s.world.authority.next_ca, 0);
    assert_int_equal(s.world.authority.current_ca, 1);
    size_t writes = s.store.writes.len;
    assert_true(cr_domain_objects_stage_next_ca(s.objects, "now", now, &err)); /* once is enough */
    assert_int_equal(s.store.writes.len, writes);

    publish(&s, 0, true); /* for peers that trust either of both */
    assert_true(verifies(&s, 0) && verifies(&s, 1));
    publish(&s, 0, false);
    assert_true(verifies(&s, 0) && !verifies(&s, 1));

    assert_true(cr_domain_objects_promote_ca(s.objects, &err));
    scene_look(&s); /* killed before staging is deleted */
    assert_int_equal(s.world.authority.next, CR_DOMAIN_CA_ABSENT);
    assert_int_equal(s.world.authority.current_ca, 0);
    assert_string_equal(s.world.cas[1].fingerprint, first); /* a TrustDomain's Secrets vouch for it */
    writes = s.store.writes.len;
    assert_true(cr_domain_objects_promote_ca(s.objects, &err));
    assert_int_equal(s.store.writes.len, writes);
    assert_true(cr_domain_objects_delete_staging(s.objects, &err));
    assert_true(cr_domain_objects_delete_staging(s.objects, &err));
    assert_null(fake_store_get(&s.store, SECRET_PATH("ns", STAGING)));
    scene_end(&s);
}

/* The second to ask has what the first made. */
static void two_that_make_a_ca_have_one(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT ca = make_ca(.cn = "ca");
    scene_begin(&s, "TrustDomain", ISSUE);
    scene_look(&s);
    fake_store_put(&s.store, SECRET_PATH("ns", "ca"), scene_secret("ns/mesh", ca->cert_pem, ca->key_pem, NULL));
    assert_true(cr_domain_objects_first_ca(s.objects, cr_clock_wall_ms(), &err));
    cr_domain_objects_view(s.objects, &s.world);
    assert_int_equal(s.world.authority.current_ca, scene_ca(&s, ca));
    assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_USABLE);
    scene_end(&s);
}

static void a_ca_that_is_somebody_else_s_is_used_and_not_replaced(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    AUTO_CERT ca = make_ca(.cn = "ca");
    scene_begin(&s, "TrustDomain", ISSUE);
    fake_store_put(&s.store, SECRET_PATH("ns", "ca"), scene_secret(NULL, ca->cert_pem, ca->key_pem, ca->cert_pem));
    scene_look(&s);
    assert_int_equal(s.world.authority.current, CR_DOMAIN_CA_USABLE);
    assert_int_equal(s.world.authority.next, CR_DOMAIN_CA_ABSENT);
    assert_non_null(strstr(s.world.authority.cannot_renew, "certroll.dev/trust-domain: ns/mesh"));
    assert_false(cr_domain_objects_stage_next_ca(s.objects, NULL, cr_clock_wall_ms(), &err));
    assert_false(cr_domain_objects_promote_ca(s.objects, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_int_equal(s.store.writes.len, 0);
    publish(&s, s.world.authority.current_ca, false);
    assert_true(verifies(&s, s.world.authority.current_ca));
    scene_end(&s);
}

static void a_ca_without_room_below_it_signs_no_other(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&(struct cr_key_spec){0}, &err);
    CR_CLEANUP(cr_authority)
    struct cr_authority *narrow =
        cr_authority_new(&(struct cr_authority_spec){"ca", DAY_S * 1000LL, 0}, key, cr_clock_wall_ms(), &err);
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    assert_true(cr_private_key_write(key, &pem, &err));
    scene_begin(&s, "TrustDomain", ISSUE);
    fake_store_put(&s.store, SECRET_PATH("ns", "ca"),
                   scene_secret("ns/mesh", cr_authority_certificate(narrow), pem.data, NULL));
    scene_look(&s);
    assert_null(s.world.authority.cannot_cross_sign);
    assert_true(cr_domain_objects_stage_next_ca(s.objects, NULL, cr_clock_wall_ms() + 2000, &err));
    cr_domain_objects_view(s.objects, &s.world);
    assert_non_null(strstr(cr_or_empty(s.world.authority.cannot_cross_sign), "path length"));
    const struct cr_domain_write crossed = {
        .leaf = CR_LEAF_ACT_ISSUE, .issuer = s.world.authority.next_ca, .cross_signed = true};
    assert_false(scene_write(&s, crossed, &err));
    scene_refused(&err, "path length");
    scene_end(&s);
}

static void the_cluster_kind_keeps_its_keys_in_the_operator_s_namespace(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct domain_scene s;
        struct cr_error err = {0};
        scene_begin(
            &s, "ClusterTrustDomain",
            "authority: {type: Issue, issue: {caSecretName: ca}}, trustTargets: [{kind: ConfigMap, name: trust, "
            "namespace: a}]");
        s.own_ns = known ? "operator" : NULL;
        scene_look(&s);
        assert_int_equal(s.world.authority.current, known ? CR_DOMAIN_CA_ABSENT : CR_DOMAIN_CA_BROKEN);
        assert_true(cr_domain_objects_first_ca(s.objects, cr_clock_wall_ms(), &err) == (known == 1));
        assert_true(!fake_store_get(&s.store, SECRET_PATH("operator", "ca")) == !known);
        if (!known)
            scene_refused(&err, "--operator-namespace");
        scene_end(&s);
    }
}

static void a_canary_is_a_client_with_no_name_of_use(void **state)
{
    (void)state;
    struct domain_scene s;
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf certificate = {0};
    CR_CLEANUP(cr_buf) struct cr_buf key = {0};
    scene_begin(&s, "TrustDomain", ISSUE);
    scene_look(&s);
    int64_t now = cr_clock_wall_ms();
    assert_false(cr_domain_objects_canary(s.objects, 0, now, &certificate, &key, &err));
    scene_refused(&err, "key of that CA is not held");
    assert_true(cr_domain_objects_first_ca(s.objects, now, &err));
    cr_domain_objects_view(s.objects, &s.world);
    assert_true(cr_domain_objects_canary(s.objects, s.world.authority.current_ca, now, &certificate, &key, &err));
    assert_true(key.secret);
    const struct cr_pem_input in = {certificate.data, certificate.len};
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *set = cr_ca_set_new();
    struct cr_chain_facts facts;
    bool verified[1] = {false};
    cr_autofree char *root = scene_text(&s, SECRET_PATH("ns", "ca"), "tls.crt");
    const struct cr_pem_input trust = {root, strlen(root)};
    assert_true(cr_ca_set_add(set, &trust, NULL, &err) && cr_ca_set_verify(set, &in, now, &facts, verified, &err));
    assert_true(verified[0]);
    assert_true(facts.not_after_ms <= now + 10 * 60 * 1000);
    const struct cr_material_input both = {.certificate = in, .private_key = {key.data, key.len}};
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    enum cr_material_problem problem;
    assert_true(cr_material_parse(&both, now, &material, &problem, &err));
    assert_int_equal(material.names.len, 0);
    scene_end(&s);
}

/* --- keystores --- */

#define KEYSTORE                                                                                                       \
    "leaves: [{name: web, source: {type: Mirror, mirror: {secretName: issued}}, keystore: {passwordSecretRef: {name: " \
    "store}}}]"

static void put_password(struct domain_scene *s, const char *password)
{
    struct cr_json *secret = cr_json_new_object();
    scene_entry(secret, "password", password);
    fake_store_put(&s->store, SECRET_PATH("ns", "store"), secret);
}

static void a_keystore_is_the_same_until_what_it_is_made_of_changes(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT ca = make_ca(.cn = "ca");
    AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
    scene_begin(&s, "TrustDomain", KEYSTORE);
    put_source(&s, leaf, ca->cert_pem);
    put_password(&s, "changeit");
    scene_look(&s);
    assert_false(s.world.objects[0].bundle_foreign);
    scene_must_write(&s, (struct cr_domain_write){.leaf = CR_LEAF_ACT_MIRROR});
    const struct cr_json *web = fake_store_get(&s.store, WEB);
    cr_autofree char *first = cr_strdup(cr_json_string_at(web, "data", "keystore.p12"));
    assert_non_null(cr_json_string_at(web, "data", "truststore.p12"));
    scene_look(&s);
    assert_false(s.world.objects[0].bundle_foreign);
    scene_must_write(&s, (struct cr_domain_write){0});
    assert_string_equal(cr_json_string_at(fake_store_get(&s.store, WEB), "data", "keystore.p12"), first);
    put_password(&s, "another");
    scene_look(&s);
    assert_true(s.world.objects[0].bundle_foreign);
    scene_must_write(&s, (struct cr_domain_write){0});
    assert_string_not_equal(cr_json_string_at(fake_store_get(&s.store, WEB), "data", "keystore.p12"), first);
    scene_look(&s);
    assert_false(s.world.objects[0].bundle_foreign);
    scene_end(&s);
}

static void without_a_password_that_can_be_used_nothing_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *password, *words;
    } cases[] = {
        {NULL, "password of Secret ns/store, is not there"},
        {"", "is empty"},
        {"changeit\n", "no printable ASCII"},
        {"pässword", "no printable ASCII"},
        {"-", "Secret ns/store with the password of the keystore is not there"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct domain_scene s;
        AUTO_CERT ca = make_ca(.cn = "ca");
        AUTO_CERT leaf = make(.cn = "web", .issuer = ca);
        scene_begin(&s, "TrustDomain", KEYSTORE);
        put_source(&s, leaf, ca->cert_pem);
        if (!cr_streq(cases[i].password, "-"))
            put_password(&s, cases[i].password);
        scene_look(&s);
        assert_int_equal(s.world.objects[0].refused, CR_TRUST_KEYSTORE_PASSWORD);
        if (!strstr(s.world.objects[0].refused_text, cases[i].words))
            fail_msg("%s", s.world.objects[0].refused_text);
        scene_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_absent_is_made_whole),
        cmocka_unit_test(of_what_is_there_only_our_entries_change),
        cmocka_unit_test(what_somebody_wrote_meanwhile_is_looked_at_again),
        cmocka_unit_test(what_would_cut_somebody_off_is_not_written),
        cmocka_unit_test(a_ca_without_which_somebody_would_be_cut_off_stays_and_it_is_said),
        cmocka_unit_test(beside_a_leaf_that_is_too_costly_to_verify_new_cas_come_last),
        cmocka_unit_test(the_bundle_is_the_new_cas_then_the_others_and_no_more_than_fits),
        cmocka_unit_test(what_is_published_is_kept_first_and_can_be_put_back),
        cmocka_unit_test(a_leaf_that_another_program_puts_there_was_not_issued),
        cmocka_unit_test(killed_at_any_write_no_leaf_is_lost),
        cmocka_unit_test(a_secret_of_staging_s_name_is_not_taken_for_it),
        cmocka_unit_test(a_ca_comes_and_is_followed_by_the_next),
        cmocka_unit_test(two_that_make_a_ca_have_one),
        cmocka_unit_test(a_ca_that_is_somebody_else_s_is_used_and_not_replaced),
        cmocka_unit_test(a_ca_without_room_below_it_signs_no_other),
        cmocka_unit_test(the_cluster_kind_keeps_its_keys_in_the_operator_s_namespace),
        cmocka_unit_test(a_canary_is_a_client_with_no_name_of_use),
        cmocka_unit_test(a_keystore_is_the_same_until_what_it_is_made_of_changes),
        cmocka_unit_test(without_a_password_that_can_be_used_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
