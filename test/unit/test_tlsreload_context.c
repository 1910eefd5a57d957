#include "tlsreload/tlsreload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "support/tlsscene.h"
#include "base/alloc.h"
#include "base/strings.h"

/* --- what is refused at the start --- */

static void keys_and_files_that_no_server_should_serve_are_refused_in_words(void **state)
{
    struct tls_scene *scene = *state;
    CR_CLEANUP(test_cert)
    struct test_cert *weak = test_cert_new(&(struct test_cert_spec){.cn = "weak", .key_type = "RSA-1024"});
    CR_CLEANUP(test_cert)
    struct test_cert *koblitz = test_cert_new(&(struct test_cert_spec){.cn = "koblitz", .key_type = "secp256k1"});
    CR_CLEANUP(test_cert)
    struct test_cert *ed448 = test_cert_new(&(struct test_cert_spec){.cn = "ed448", .key_type = "ED448"});
    CR_CLEANUP(test_cert)
    struct test_cert *pss = test_cert_new(&(struct test_cert_spec){.cn = "pss", .key_type = "RSA-PSS"});
    cr_autofree char *encrypted = test_cert_key_as(scene->leaf, "PKCS#8 encrypted");
    cr_autofree char *old_encrypted = test_cert_key_as(scene->leaf, "Proc-Type encrypted");
    cr_autofree char *joined = test_concat(scene->leaf->cert_pem, scene->ca->cert_pem, NULL);
    *strstr(joined, "\n-----BEGIN") = ' ';
    cr_autofree char *broken = test_concat(scene->leaf->cert_pem, scene->ca->cert_pem, NULL);
    memcpy(strrchr(broken, 'M'), "!!!!", 4);
    cr_autofree char *cut = cr_strndup(scene->leaf->cert_pem, 100);
    const struct {
        const char *certificate, *key, *word;
    } cases[] = {
        {weak->cert_pem, weak->key_pem, "tls.key: is an RSA key of 1024 bits, which is too weak"},
        {koblitz->cert_pem, koblitz->key_pem, "tls.key: is an EC key of the curve secp256k1"},
        {ed448->cert_pem, ed448->key_pem, "tls.key: is a key of type ED448"},
        {pss->cert_pem, pss->key_pem, "tls.key: is a key of type RSA-PSS"},
        {scene->leaf->cert_pem, scene->next->key_pem, "does not belong to the certificate in"},
        {scene->leaf->cert_pem, encrypted, "tls.key: is encrypted"},
        {scene->leaf->cert_pem, old_encrypted, "tls.key: is encrypted"},
        {scene->leaf->cert_pem, "", "tls.key: is empty"},
        {scene->leaf->cert_pem, "not PEM", "tls.key: has no private key"},
        {"", scene->leaf->key_pem, "tls.crt: is empty"},
        {"not PEM", scene->leaf->key_pem, "tls.crt: has no certificate"},
        {scene->leaf->key_pem, scene->leaf->key_pem, "tls.crt: has no certificate"},
        {joined, scene->leaf->key_pem, "tls.crt: "},
        {broken, scene->leaf->key_pem, "tls.crt: certificate 2 cannot be read"},
        {cut, scene->leaf->key_pem, "tls.crt: "},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        secret_volume_write(scene->volume, "tls.crt", cases[i].certificate);
        secret_volume_write(scene->volume, "tls.key", cases[i].key);
        secret_volume_swap(scene->volume, false);
        assert_null(cr_tlsreload_new(&scene->options, &err));
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].word))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
    }
}

static void keys_that_clients_take_are_served(void **state)
{
    struct tls_scene *scene = *state;
    static const char *const types[] = {"P-256", "P-384", "P-521", "RSA", "ED25519"};
    for (size_t i = 0; i < cr_array_len(types); i++) {
        CR_CLEANUP(test_cert)
        struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf", .key_type = types[i]});
        tls_scene_publish(scene, leaf, NULL);
        CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
        tls_scene_assert_serves(tls, leaf);
    }
    cr_autofree char *sec1 = test_cert_key_as(scene->leaf, "SEC1 with parameters");
    secret_volume_write(scene->volume, "tls.crt", scene->leaf->cert_pem);
    secret_volume_write(scene->volume, "tls.key", sec1);
    secret_volume_swap(scene->volume, false);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    tls_scene_assert_serves(tls, scene->leaf);
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_publish(scene, scene->leaf, scene->ca->cert_pem);
    const char *crt = scene->options.certificate;
    const char *key = scene->options.private_key;
    const char *ca = secret_volume_path(scene->volume, "ca.crt");
    const char *absent = secret_volume_path(scene->volume, "absent");
    const struct {
        struct cr_tlsreload_options options;
        enum cr_error_kind kind;
        const char *word;
    } cases[] = {
        {{.private_key = key}, CR_ERR_INVALID, "a private key are needed"},
        {{.certificate = crt}, CR_ERR_INVALID, "a private key are needed"},
        {{.certificate = crt, .private_key = key, .client_ca = ca}, CR_ERR_INVALID, "no client is asked"},
        {{.certificate = crt, .private_key = key, .clients = CR_TLSRELOAD_CLIENTS_REQUIRE},
         CR_ERR_INVALID,
         "no client CAs"},
        {{.certificate = crt, .private_key = absent}, CR_ERR_NOT_FOUND, "absent"},
        {{.certificate = crt, .private_key = key, .client_ca = key, .clients = CR_TLSRELOAD_CLIENTS_REQUEST},
         CR_ERR_INVALID,
         "has no certificate"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        assert_null(cr_tlsreload_new(&cases[i].options, &err));
        assert_int_equal(err.kind, cases[i].kind);
        assert_non_null(strstr(err.text, cases[i].word));
    }
}

static void who_is_asked_and_has_none_is_let_in_who_has_a_strange_one_is_not(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_ask(scene, CR_TLSRELOAD_CLIENTS_REQUEST);
    tls_scene_publish(scene, scene->leaf, scene->ca->cert_pem);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    CR_CLEANUP(tls_caller) struct tls_caller known = {.cert = scene->client};
    CR_CLEANUP(tls_caller) struct tls_caller strange = {.cert = scene->other_client};
    assert_true(tls_scene_call(tls, NULL).ok);
    assert_true(tls_scene_call(tls, &known).ok);
    assert_false(tls_scene_call(tls, &strange).ok);
}

/* --- sessions --- */

struct resumption {
    const char *rule;
    int version;
    bool no_tickets;
    const char *trust[2]; /* by letters: a the client's CA, b another one */
    bool another_leaf;
    bool resumed, let_in; /* after the reload */
};

static const struct resumption resumptions[] = {
    {"TLS 1.2, the same CA", TLS1_2_VERSION, false, {"a", "a"}, true, true, true},
    {"TLS 1.3, the same CA", TLS1_3_VERSION, false, {"a", "a"}, true, true, true},
    {"TLS 1.2, a CA comes", TLS1_2_VERSION, false, {"a", "ab"}, false, true, true},
    {"TLS 1.3, a CA comes", TLS1_3_VERSION, false, {"a", "ba"}, false, true, true},
    {"TLS 1.2, another CA goes", TLS1_2_VERSION, false, {"ab", "a"}, false, false, true},
    {"TLS 1.3, another CA goes", TLS1_3_VERSION, false, {"ab", "a"}, false, false, true},
    {"TLS 1.2, its CA goes", TLS1_2_VERSION, false, {"ab", "b"}, false, false, false},
    {"TLS 1.3, its CA goes", TLS1_3_VERSION, false, {"ab", "b"}, false, false, false},
    {"TLS 1.2, its CA is replaced", TLS1_2_VERSION, false, {"a", "b"}, true, false, false},
    {"TLS 1.3, its CA is replaced", TLS1_3_VERSION, false, {"a", "b"}, true, false, false},
    {"session ids, its CA goes", TLS1_2_VERSION, true, {"ab", "b"}, false, false, false},
    {"session ids, the same CA", TLS1_2_VERSION, true, {"a", "a"}, true, false, true},
};

static char *trust_of(const struct tls_scene *scene, const char *letters)
{
    char *text = cr_strdup("");
    for (; *letters; letters++) {
        char *more = test_concat(text, *letters == 'a' ? scene->ca->cert_pem : scene->other_ca->cert_pem, NULL);
        free(text);
        text = more;
    }
    return text;
}

static void resume_over_reload(struct tls_scene *scene, const struct resumption *r)
{
    cr_autofree char *before = trust_of(scene, r->trust[0]);
    cr_autofree char *after = trust_of(scene, r->trust[1]);
    CR_CLEANUP(tls_caller)
    struct tls_caller caller = {.version = r->version, .cert = scene->client, .no_tickets = r->no_tickets};
    atomic_store(&scene->done, 0);
    tls_scene_publish(scene, scene->leaf, before);
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = tls_scene_serve(scene);
    assert_false(tls_scene_call(tls, &caller).resumed);
    struct tls_outcome again = tls_scene_call(tls, &caller);
    assert_true(again.ok);
    assert_int_equal(again.resumed, !r->no_tickets); /* it can be done at all */
    tls_scene_publish(scene, r->another_leaf ? scene->next : scene->leaf, after);
    if (r->another_leaf || strcmp(before, after) != 0)
        tls_scene_wait(&scene->done, 1);
    struct tls_outcome outcome = tls_scene_call(tls, &caller);
    assert_int_equal(outcome.ok, r->let_in);
    assert_int_equal(outcome.resumed, r->resumed);
}

static void a_client_of_a_dropped_ca_is_not_resumed(void **state)
{
    struct tls_scene *scene = *state;
    tls_scene_ask(scene, CR_TLSRELOAD_CLIENTS_REQUIRE);
    for (size_t i = 0; i < cr_array_len(resumptions); i++) {
        print_message("  %s\n", resumptions[i].rule);
        resume_over_reload(scene, &resumptions[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_and_files_that_no_server_should_serve_are_refused_in_words,
                                        tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(keys_that_clients_take_are_served, tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(options_that_contradict_each_other_are_refused, tls_scene_set_up,
                                        tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(who_is_asked_and_has_none_is_let_in_who_has_a_strange_one_is_not,
                                        tls_scene_set_up, tls_scene_tear_down),
        cmocka_unit_test_setup_teardown(a_client_of_a_dropped_ca_is_not_resumed, tls_scene_set_up, tls_scene_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
