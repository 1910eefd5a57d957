#include "pki/material.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <cmocka.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/x509.h"
#include "support/testcerts.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 24 * HOUR };

#define AUTO_CERT     CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_MATERIAL CR_CLEANUP(cr_material) struct cr_material
#define make(...)     test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

static struct cr_pem_input entry(const char *text)
{
    return (struct cr_pem_input){text, text ? strlen(text) : 0};
}

/* Each entry in memory of its own exact size, so that a read past its end is caught. */
static struct cr_pem_input exact(const char *text)
{
    return (struct cr_pem_input){text ? cr_memdup(text, strlen(text)) : NULL, text ? strlen(text) : 0};
}

static bool parse(const char *crt, const char *key, const char *ca, struct cr_material *out,
                  enum cr_material_problem *problem, struct cr_error *err)
{
    struct cr_material_input in = {exact(crt), exact(key), exact(ca), {"tls.crt", "tls.key", "ca.crt"}};
    bool ok = cr_material_parse(&in, cr_clock_wall_ms(), out, problem, err);
    free((void *)(uintptr_t)in.certificate.data);
    free((void *)(uintptr_t)in.private_key.data);
    free((void *)(uintptr_t)in.trust.data);
    assert_int_equal(ERR_peek_error(), 0);
    return ok;
}

static void accept(const char *what, const char *crt, const char *key, const char *ca, struct cr_material *out)
{
    struct cr_error err = {0};
    enum cr_material_problem problem;
    if (!parse(crt, key, ca, out, &problem, &err))
        fail_msg("%s: %s: %s", what, cr_material_problem_name(problem), err.text);
    assert_int_equal(problem, CR_MATERIAL_OK);
    assert_int_equal(err.kind, CR_ERR_NONE);
}

static void refuse(const char *what, const char *crt, const char *key, const char *ca, enum cr_material_problem want,
                   const char *words)
{
    struct cr_error err = {0};
    struct cr_material out;
    enum cr_material_problem problem;
    if (parse(crt, key, ca, &out, &problem, &err))
        fail_msg("%s: was accepted", what);
    if (problem != want || err.kind != CR_ERR_INVALID || !strstr(err.text, words))
        fail_msg("%s: want %s with \"%s\", got %s: %s", what, cr_material_problem_name(want), words,
                 cr_material_problem_name(problem), err.text);
    assert_false(out.has_leaf);
    assert_null(out.trust);
    assert_int_equal(out.names.len, 0);
}

/* --- presence --- */

static void what_is_absent_empty_or_half_there(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    refuse("nothing", NULL, NULL, NULL, CR_MATERIAL_EMPTY, "none of the keys tls.crt, tls.key and ca.crt is there");
    refuse("empty certificate", "", leaf->key_pem, NULL, CR_MATERIAL_EMPTY, "tls.crt is empty");
    refuse("empty key", leaf->cert_pem, "", NULL, CR_MATERIAL_EMPTY, "tls.key is empty");
    refuse("blank key", leaf->cert_pem, " \r\n\t\n", NULL, CR_MATERIAL_EMPTY, "tls.key is empty");
    refuse("empty trust", leaf->cert_pem, leaf->key_pem, "", CR_MATERIAL_EMPTY, "ca.crt is empty");
    refuse("all empty", "", "", "", CR_MATERIAL_EMPTY, "tls.crt is empty");
    refuse("no key", leaf->cert_pem, NULL, NULL, CR_MATERIAL_INCOMPLETE, "tls.crt is there, but not tls.key");
    refuse("no certificate", NULL, leaf->key_pem, NULL, CR_MATERIAL_INCOMPLETE, "tls.key is there, but not tls.crt");
    AUTO_MATERIAL trust_only = {0};
    accept("trust alone", NULL, NULL, leaf->cert_pem, &trust_only);
    assert_false(trust_only.has_leaf);
    assert_string_equal(trust_only.leaf, "");
    assert_int_equal(trust_only.trust_len, 1);
}

static void names_of_the_secret_are_used_in_messages(void **state)
{
    (void)state;
    struct cr_error err = {0};
    struct cr_material out;
    enum cr_material_problem problem;
    struct cr_material_input in = {entry("x"), entry("y"), {0}, {"server.pem", "server.key", NULL}};
    assert_false(cr_material_parse(&in, 0, &out, &problem, &err));
    assert_string_equal(err.text, "server.pem: has no PEM block: certificates in PEM are expected");
    in.certificate = (struct cr_pem_input){0};
    in.names[1] = NULL;
    assert_false(cr_material_parse(&in, 0, &out, &problem, NULL));
    assert_int_equal(problem, CR_MATERIAL_INCOMPLETE);
}

/* --- keys --- */

static void every_kind_of_key_is_read(void **state)
{
    static const struct {
        const char *type, *form, *begins, *name;
    } cases[] = {
        {"P-256", "PKCS#8", "-----BEGIN PRIVATE KEY", "ECDSA-P256"},
        {"P-256", "SEC1", "-----BEGIN EC PRIVATE KEY", "ECDSA-P256"},
        {"P-384", "SEC1 with parameters", "-----BEGIN EC PARAMETERS", "ECDSA-P384"},
        {"P-521", "PKCS#8", "-----BEGIN PRIVATE KEY", "ECDSA-P521"},
        {"secp256k1", "SEC1", "-----BEGIN EC PRIVATE KEY", "ECDSA-secp256k1"},
        {"RSA", "PKCS#8", "-----BEGIN PRIVATE KEY", "RSA-2048"},
        {"RSA", "PKCS#1", "-----BEGIN RSA PRIVATE KEY", "RSA-2048"},
        {"RSA-1024", "PKCS#8", "-----BEGIN PRIVATE KEY", "RSA-1024"},
        {"RSA-PSS", "PKCS#8", "-----BEGIN PRIVATE KEY", "RSAPSS-2048"},
        {"ED25519", "PKCS#8", "-----BEGIN PRIVATE KEY", "Ed25519"},
        {"ED448", "PKCS#8", "-----BEGIN PRIVATE KEY", "Ed448"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_CERT leaf = make(.key_type = cases[i].type);
        cr_autofree char *key = test_cert_key_as(leaf, cases[i].form);
        assert_true(cr_starts_with(key, cases[i].begins));
        AUTO_MATERIAL m = {0};
        accept(cases[i].begins, leaf->cert_pem, key, NULL, &m);
        assert_string_equal(m.key_type, cases[i].name);
    }
}

static void an_encrypted_key_is_refused_without_a_prompt(void **state)
{
    (void)state;
    AUTO_CERT ec = make(.cn = "leaf");
    AUTO_CERT rsa = make(.key_type = "RSA");
    cr_autofree char *pkcs8 = test_cert_key_as(ec, "PKCS#8 encrypted");
    cr_autofree char *legacy_ec = test_cert_key_as(ec, "Proc-Type encrypted");
    cr_autofree char *legacy_rsa = test_cert_key_as(rsa, "Proc-Type encrypted");
    assert_non_null(strstr(legacy_rsa, "Proc-Type: 4,ENCRYPTED"));
    refuse("PKCS#8", ec->cert_pem, pkcs8, NULL, CR_MATERIAL_ENCRYPTED, "tls.key: block 1 is an encrypted key");
    refuse("SEC1", ec->cert_pem, legacy_ec, NULL, CR_MATERIAL_ENCRYPTED, "tls.key: block 1 is an encrypted key");
    refuse("PKCS#1", rsa->cert_pem, legacy_rsa, NULL, CR_MATERIAL_ENCRYPTED, "tls.key: block 1 is an encrypted key");
}

/* Owned: text with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    return cr_asprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* An EncryptedPrivateKeyInfo under a label that says otherwise. */
static void an_encrypted_key_under_a_wrong_label_asks_for_no_passphrase(void **state)
{
    static const char *const labels[] = {"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"};
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    cr_autofree char *encrypted = test_cert_key_as(leaf, "PKCS#8 encrypted");
    for (size_t i = 0; i < cr_array_len(labels); i++) {
        cr_autofree char *half = replaced(encrypted, "BEGIN ENCRYPTED PRIVATE KEY",
                                          i == 0   ? "BEGIN PRIVATE KEY"
                                          : i == 1 ? "BEGIN RSA PRIVATE KEY"
                                                   : "BEGIN EC PRIVATE KEY");
        cr_autofree char *end = cr_asprintf("END %s", labels[i]);
        cr_autofree char *whole = replaced(half, "END ENCRYPTED PRIVATE KEY", end);
        refuse(labels[i], leaf->cert_pem, whole, NULL, CR_MATERIAL_UNPARSABLE, "holds no key of that form");
    }
}

static void a_key_that_does_not_fit_is_a_mismatch(void **state)
{
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca);
    AUTO_CERT other = make(.cn = "other");
    AUTO_CERT rsa = make(.cn = "rsa", .key_type = "RSA");
    refuse("another key of the kind", leaf->cert_pem, other->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH,
           "tls.key does not belong to the certificate in tls.crt");
    refuse("another kind of key", leaf->cert_pem, rsa->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH, "the key is RSA-2048");
    cr_autofree char *reversed = test_concat(ca->cert_pem, leaf->cert_pem, NULL);
    refuse("chain that begins with its CA", reversed, leaf->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH,
           "tls.key belongs to certificate 2 of tls.crt");
}

static void exactly_one_private_key_is_expected(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    cr_autofree char *twice = test_concat(leaf->key_pem, leaf->key_pem, NULL);
    refuse("two keys", leaf->cert_pem, twice, NULL, CR_MATERIAL_UNPARSABLE, "tls.key: block 2 is a second private key");
    refuse("a certificate as key", leaf->cert_pem, leaf->cert_pem, NULL, CR_MATERIAL_UNPARSABLE,
           "tls.key: has no private key among its PEM blocks");
    refuse("no PEM", leaf->cert_pem, "secret", NULL, CR_MATERIAL_UNPARSABLE, "tls.key: has no PEM block");
    refuse("a key as certificate", leaf->key_pem, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE,
           "tls.crt: has no certificate among its PEM blocks");
    cr_autofree char *dsa = replaced(leaf->key_pem, "BEGIN PRIVATE KEY", "BEGIN DSA PRIVATE KEY");
    cr_autofree char *dsa_key = replaced(dsa, "END PRIVATE KEY", "END DSA PRIVATE KEY");
    refuse("DSA", leaf->cert_pem, dsa_key, NULL, CR_MATERIAL_UNPARSABLE, "DSA PRIVATE KEY, which is not supported");
    AUTO_MATERIAL m = {0};
    cr_autofree char *combined = test_concat(leaf->cert_pem, leaf->key_pem, NULL);
    accept("certificate and key in both entries", combined, combined, NULL, &m);
}

/* --- PEM --- */

static char *with_crlf(const char *text)
{
    struct cr_buf out = {0};
    for (; *text; text++)
        cr_buf_printf(&out, "%s%c", *text == '\n' ? "\r" : "", *text);
    return cr_buf_steal(&out);
}

static void what_is_only_another_text_is_the_same_material(void **state)
{
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca, .dns = {"a.example", "*.b.example"});
    cr_autofree char *chain = test_concat(leaf->cert_pem, ca->cert_pem, NULL);
    AUTO_MATERIAL plain = {0};
    accept("plain", chain, leaf->key_pem, ca->cert_pem, &plain);
    char *const texts[] = {
        with_crlf(chain),
        test_concat("\xEF\xBB\xBF", chain, NULL),
        test_concat("subject=CN = leaf\n\n", leaf->cert_pem, "# the CA:\n \n", ca->cert_pem, "the end", NULL),
        cr_strndup(chain, strlen(chain) - 1),
        replaced(chain, "-----END CERTIFICATE-----\n", "-----END CERTIFICATE-----  \t\n"),
        test_concat(leaf->cert_pem, leaf->key_pem, ca->cert_pem, NULL),
        replaced(chain, "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n\n"),
        replaced(chain, "-----END CERTIFICATE-----\n", "-----END CERTIFICATE-----\n\n\n"),
    };
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        AUTO_MATERIAL m = {0};
        accept("another text", texts[i], leaf->key_pem, ca->cert_pem, &m);
        assert_string_equal(m.leaf, plain.leaf);
        assert_string_equal(m.chain, plain.chain);
        free(texts[i]);
    }
    assert_int_equal(plain.names.len, 2);
    assert_string_equal(plain.names.items[1], "*.b.example");
}

/* Owned: the second of three certificates damaged. */
static char *chain_of_three(const char *a, const char *b, const char *c, const char *from, const char *to)
{
    cr_autofree char *damaged = replaced(b, from, to);
    return test_concat(a, damaged, c, NULL);
}

static void a_corrupt_block_is_an_error_and_not_the_end(void **state)
{
    static const struct {
        const char *rule, *from, *to, *words;
    } cases[] = {
        {"a letter that is not base64", "\nMII", "\n*II", "block 2 (CERTIFICATE, line"},
        {"a dash in the body", "\nMII", "\n-II", "its body is not base64"},
        {"a flipped DER length", "\nMII", "\nMIJ", "it holds no certificate"},
        {"a letter lost", "\nMII", "\nMI", "block 2 (CERTIFICATE, line"},
        {"END lost", "-----END CERTIFICATE-----\n", "", "is cut off: another begins in line"},
        {"BEGIN lost", "-----BEGIN CERTIFICATE-----\n", "", "has an END without a BEGIN"},
        {"another label at the end", "END CERTIFICATE", "END X509 CRL", "has no matching END"},
        {"new line lost", "-----END CERTIFICATE-----\n", "-----END CERTIFICATE-----",
         "a new line is missing between block 2"},
        {"new line lost in front", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----",
         "has a BEGIN that is not a whole line"},
        {"indented", "-----BEGIN CERTIFICATE-----", "  -----BEGIN CERTIFICATE-----",
         "not a whole line from its first column"},
        {"dashes cut", "-----END CERTIFICATE-----", "-----END CERTIFICATE---", "has no matching END"},
        {"empty body", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
         "block 2 (CERTIFICATE"},
        {"headers on a certificate", "-----BEGIN CERTIFICATE-----\n",
         "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n\n", "has headers"},
        {"an empty line before the END", "-----END CERTIFICATE", "\n-----END CERTIFICATE", "has an empty line within"},
        {"blanks within it", "-----END CERTIFICATE", " \t\r\n-----END CERTIFICATE", "has an empty line within"},
        {"two empty lines", "-----BEGIN CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n\n\n",
         "has an empty line within"},
        {"a form of OpenSSL's own", "BEGIN CERTIFICATE-----", "BEGIN TRUSTED CERTIFICATE-----", "block 2"},
    };
    (void)state;
    AUTO_CERT a = make(.cn = "a");
    AUTO_CERT b = make(.cn = "b", .ca = true);
    AUTO_CERT c = make(.cn = "c", .ca = true);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = chain_of_three(a->cert_pem, b->cert_pem, c->cert_pem, cases[i].from, cases[i].to);
        cr_autofree char *in_chain = cr_asprintf("tls.crt: ");
        refuse(cases[i].rule, text, a->key_pem, NULL, CR_MATERIAL_UNPARSABLE, cases[i].words);
        refuse(cases[i].rule, text, a->key_pem, NULL, CR_MATERIAL_UNPARSABLE, in_chain);
        refuse(cases[i].rule, NULL, NULL, text, CR_MATERIAL_UNPARSABLE, cases[i].words);
    }
    refuse("DER", NULL, NULL, "\x30\x82\x01\x02 abc", CR_MATERIAL_UNPARSABLE, "ca.crt: is DER");
}

/* Owned: the one block of a text with another byte behind its DER. */
static char *with_a_byte_behind(const char *pem)
{
    char *name = NULL;
    char *header = NULL;
    unsigned char *der = NULL;
    long len = 0;
    char *text = NULL;
    BIO *in = BIO_new_mem_buf(pem, -1);
    BIO *out = BIO_new(BIO_s_mem());
    assert_true(PEM_read_bio(in, &name, &header, &der, &len));
    cr_autofree unsigned char *longer = cr_calloc(1, (size_t)len + 1);
    memcpy(longer, der, (size_t)len);
    assert_true(PEM_write_bio(out, name, "", longer, len + 1) > 0);
    long text_len = BIO_get_mem_data(out, &text);
    char *copy = cr_strndup(text, (size_t)text_len);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(der);
    BIO_free(in);
    BIO_free(out);
    return copy;
}

/* Owned: the one block of a text with another object identifier of the same length, everywhere. */
static char *with_other_oid(const char *pem, const unsigned char *from, const unsigned char *to, size_t oid_len)
{
    char *name = NULL;
    char *header = NULL;
    unsigned char *der = NULL;
    long len = 0;
    char *text = NULL;
    BIO *in = BIO_new_mem_buf(pem, -1);
    BIO *out = BIO_new(BIO_s_mem());
    assert_true(PEM_read_bio(in, &name, &header, &der, &len));
    for (unsigned char *at = der; (at = memmem(at, (size_t)(der + len - at), from, oid_len));)
        memcpy(at, to, oid_len);
    assert_true(PEM_write_bio(out, name, "", der, len) > 0);
    long text_len = BIO_get_mem_data(out, &text);
    char *copy = cr_strndup(text, (size_t)text_len);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(der);
    BIO_free(in);
    BIO_free(out);
    return copy;
}

static void an_algorithm_that_openssl_does_not_have_is_named(void **state)
{
    static const unsigned char rsa[] = {0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01};
    static const unsigned char ml_dsa_65[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12};
    static const unsigned char nobodys[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x7F, 0x7F};
    (void)state;
    if (test_has_ml_dsa())
        skip();
    AUTO_CERT leaf = make(.cn = "leaf", .key_type = "RSA");
    cr_autofree char *cert = with_other_oid(leaf->cert_pem, rsa, ml_dsa_65, sizeof rsa);
    cr_autofree char *key = with_other_oid(leaf->key_pem, rsa, ml_dsa_65, sizeof rsa);
    cr_autofree char *nobodys_key = with_other_oid(leaf->key_pem, rsa, nobodys, sizeof rsa);
    refuse("a leaf", cert, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "ML-DSA-65 (2.16.840.1.101.3.4.3.18)");
    refuse("a key", leaf->cert_pem, key, NULL, CR_MATERIAL_UNPARSABLE, "a key for ML-DSA-65 (2.16.840.1.101.3.4.3.18)");
    refuse("no name", leaf->cert_pem, nobodys_key, NULL, CR_MATERIAL_UNPARSABLE,
           "a key for 2.16.840.1.101.3.4.127.127,");
}

/* Owned: a key file with the public half of one, and the private half of the other. */
static char *halves_of(const struct test_cert *public, const struct test_cert *private)
{
    unsigned char point[128];
    size_t point_len = 0;
    BIGNUM *scalar = NULL;
    EVP_PKEY *key = NULL;
    char *text = NULL;
    assert_true(EVP_PKEY_get_octet_string_param(public->key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &point_len));
    assert_true(EVP_PKEY_get_bn_param(private->key, OSSL_PKEY_PARAM_PRIV_KEY, &scalar));
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    assert_true(OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
                OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point_len) &&
                OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, scalar));
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    BIO *out = BIO_new(BIO_s_mem());
    assert_true(EVP_PKEY_fromdata_init(ctx) == 1 && EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_KEYPAIR, params) == 1);
    assert_true(PEM_write_bio_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL));
    long len = BIO_get_mem_data(out, &text);
    char *copy = cr_strndup(text, (size_t)len);
    BIO_free(out);
    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(scalar);
    return copy;
}

static void a_key_is_proved_by_use(void **state)
{
    static const char *const types[] = {"P-256", "P-521", "RSA", "RSA-PSS", "ED25519", "ED448"};
    (void)state;
    for (size_t i = 0; i < cr_array_len(types); i++) {
        AUTO_CERT good = make(.cn = "leaf", .key_type = types[i]);
        AUTO_MATERIAL m = {0};
        accept(types[i], good->cert_pem, good->key_pem, NULL, &m);
    }
    AUTO_CERT leaf = make(.cn = "leaf");
    AUTO_CERT other = make(.cn = "other");
    cr_autofree char *key = halves_of(leaf, other);
    refuse("two halves", leaf->cert_pem, key, NULL, CR_MATERIAL_KEY_MISMATCH,
           "what tls.key signs does not verify with the certificate in tls.crt");
}

static void a_key_that_no_server_can_load_is_refused(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    cr_autofree char *headed =
        replaced(leaf->key_pem, "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\nComment: mine\n\n");
    cr_autofree char *parted = replaced(leaf->key_pem, "-----END", "\n-----END");
    refuse("a header", leaf->cert_pem, headed, NULL, CR_MATERIAL_UNPARSABLE, "has headers that are no encryption's");
    refuse("an empty line", leaf->cert_pem, parted, NULL, CR_MATERIAL_UNPARSABLE, "has an empty line within");
}

/* A month that is none. */
static void a_time_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    for (int after = 0; after < 2; after++) {
        AUTO_CERT leaf = make(.cn = "leaf");
        struct cr_error err = {0};
        ASN1_TIME *at = ASN1_TIME_set(NULL, 0);
        assert_true(ASN1_STRING_set(at, "261323000000Z", -1));
        assert_true(after ? X509_set1_notAfter(leaf->x509, at) : X509_set1_notBefore(leaf->x509, at));
        assert_true(X509_sign(leaf->x509, leaf->key, EVP_sha256()) > 0);
        CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(0);
        assert_true(cr_x509_write(leaf->x509, &pem, &err));
        const char *words = after ? "has a notAfter that is no time" : "has a notBefore that is no time";
        refuse("a leaf", pem.data, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, words);
        refuse("a CA", NULL, NULL, pem.data, CR_MATERIAL_UNPARSABLE, words);
        ASN1_STRING_free(at);
    }
}

static void what_is_behind_the_der_of_a_block_makes_it_corrupt(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    cr_autofree char *cert = with_a_byte_behind(leaf->cert_pem);
    cr_autofree char *pkcs8 = with_a_byte_behind(leaf->key_pem);
    cr_autofree char *sec1 = test_cert_key_as(leaf, "SEC1");
    cr_autofree char *longer_sec1 = with_a_byte_behind(sec1);
    cr_autofree char *dash = replaced(leaf->cert_pem, "\n-----END", "\n-AAAA\n-----END");
    refuse("certificate", cert, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "there is more behind the certificate");
    refuse("PKCS#8", leaf->cert_pem, pkcs8, NULL, CR_MATERIAL_UNPARSABLE, "holds no key of that form");
    refuse("SEC1", leaf->cert_pem, longer_sec1, NULL, CR_MATERIAL_UNPARSABLE, "holds no key of that form");
    refuse("dash, where OpenSSL stops", dash, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "is not base64");
}

static void a_text_cut_anywhere_is_refused_or_shorter_never_wrong(void **state)
{
    (void)state;
    AUTO_CERT a = make(.cn = "a", .ca = true);
    AUTO_CERT b = make(.cn = "b", .ca = true);
    cr_autofree char *both = test_concat(a->cert_pem, b->cert_pem, NULL);
    size_t first = strlen(a->cert_pem);
    for (size_t len = 1; len < strlen(both) - 1; len++) {
        struct cr_error err = {0};
        enum cr_material_problem problem;
        AUTO_MATERIAL m = {0};
        cr_autofree char *cut = cr_strndup(both, len);
        bool ok = parse(NULL, NULL, cut, &m, &problem, &err);
        /* whole after its END line; the few dashes of the next BEGIN are still only text */
        bool whole = len >= first - 1 && len < first + strlen("-----BEGIN");
        if (ok != whole)
            fail_msg("cut after %zu of %zu: %s", len, strlen(both), ok ? "accepted" : err.text);
        assert_int_equal(m.trust_len, whole ? 1 : 0);
    }
}

static void sizes_and_counts_are_capped(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    CR_CLEANUP(cr_buf) struct cr_buf chain = {0};
    for (int i = 0; i < 33; i++)
        cr_buf_puts(&chain, leaf->cert_pem);
    refuse("chain", chain.data, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "tls.crt: has more than 32 certificates");
    CR_CLEANUP(cr_buf) struct cr_buf big = {0};
    while (big.len <= 1024 * 1024)
        cr_buf_puts(&big, leaf->cert_pem);
    refuse("bundle", NULL, NULL, big.data, CR_MATERIAL_UNPARSABLE, "more than the 1048576 that are read");
}

/* --- what issuers and people put there --- */

static void what_is_unusual_and_good_is_accepted(void **state)
{
    (void)state;
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_CERT middle = make(.cn = "middle", .ca = true, .issuer = root);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = middle);
    AUTO_CERT old = make(.cn = "old", .ca = true, .from_s = -2 * DAY, .until_s = -1 * DAY);
    AUTO_CERT self = make(.cn = "self");
    static const char crl[] = "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n";
    static const char bag[] = "Bag Attributes\n    friendlyName: web\n    localKeyID: 01 02 03\nsubject=/CN=leaf\n";
    cr_autofree char *in_order = test_concat(leaf->cert_pem, middle->cert_pem, root->cert_pem, NULL);
    cr_autofree char *reordered = test_concat(leaf->cert_pem, root->cert_pem, middle->cert_pem, NULL);
    cr_autofree char *twice = test_concat(leaf->cert_pem, middle->cert_pem, middle->cert_pem, leaf->cert_pem, NULL);
    cr_autofree char *with_crl = test_concat(leaf->cert_pem, crl, middle->cert_pem, NULL);
    cr_autofree char *with_bag = test_concat(bag, leaf->cert_pem, bag, middle->cert_pem, "trailing words\n", NULL);
    cr_autofree char *with_old = test_concat(root->cert_pem, old->cert_pem, NULL);
    cr_autofree char *with_leaf = test_concat(self->cert_pem, root->cert_pem, NULL);
    cr_autofree char *parameters = test_concat(
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n", leaf->key_pem, NULL);
    cr_autofree char *key_bag = test_concat(bag, "Key Attributes: <No Attributes>\n", leaf->key_pem, NULL);
    const struct {
        const char *rule;
        const char *crt, *key, *ca;
        size_t anchors, trust;
    } cases[] = {
        {"ACME: no ca.crt", in_order, leaf->key_pem, NULL, 0, 0},
        {"a chain in order", in_order, leaf->key_pem, root->cert_pem, 1, 1},
        {"a chain out of order", reordered, leaf->key_pem, root->cert_pem, 1, 1},
        {"a chain with duplicates", twice, leaf->key_pem, root->cert_pem, 1, 1},
        {"a leaf whose chain is missing", leaf->cert_pem, leaf->key_pem, root->cert_pem, 0, 1},
        {"a revocation list in between", with_crl, leaf->key_pem, root->cert_pem, 1, 1},
        {"as openssl pkcs12 writes it", with_bag, key_bag, root->cert_pem, 1, 1},
        {"a bundle with an expired CA", in_order, leaf->key_pem, with_old, 1, 2},
        {"a bundle with a leaf", in_order, leaf->key_pem, with_leaf, 1, 2},
        {"EC parameters before the key", in_order, parameters, root->cert_pem, 1, 1},
        {"a leaf that is its own CA", self->cert_pem, self->key_pem, self->cert_pem, 1, 1},
        {"a CA as server certificate", root->cert_pem, root->key_pem, NULL, 0, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        AUTO_MATERIAL m = {0};
        accept(cases[i].rule, cases[i].crt, cases[i].key, cases[i].ca, &m);
        if (m.anchors.len != cases[i].anchors || m.trust_len != cases[i].trust)
            fail_msg("%s: %zu anchors, %zu CAs", cases[i].rule, m.anchors.len, m.trust_len);
    }
}

static void what_is_unusual_and_bad_is_refused_in_words(void **state)
{
    (void)state;
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = root);
    AUTO_CERT p384 = make(.cn = "p384", .key_type = "P-384");
    AUTO_CERT ed = make(.cn = "ed", .key_type = "ED25519");
    cr_autofree char *ca_first = test_concat(root->cert_pem, leaf->cert_pem, NULL);
    cr_autofree char *half = replaced(leaf->cert_pem, "BEGIN CERTIFICATE", "BEGIN TRUSTED CERTIFICATE");
    cr_autofree char *trusted = replaced(half, "END CERTIFICATE", "END TRUSTED CERTIFICATE");
    cr_autofree char *joined_first = cr_strndup(root->cert_pem, strlen(root->cert_pem) - 1);
    cr_autofree char *joined = test_concat(joined_first, root->cert_pem, NULL);
    cr_autofree char *unfinished = test_concat(root->cert_pem, "-----BEGIN CERTIFICATE-----\nMIIB\n", NULL);
    cr_autofree char *mixed = replaced(root->cert_pem, "END CERTIFICATE", "END X509 CRL");
    const struct {
        const char *rule;
        const char *crt, *key, *ca;
        enum cr_material_problem problem;
        const char *words;
    } cases[] = {
        {"the leaf is not first", ca_first, leaf->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH, "the leaf must come first"},
        {"a key of another curve", leaf->cert_pem, p384->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH,
         "the key is ECDSA-P384, the certificate is for another ECDSA-P256 key"},
        {"a key of another kind", leaf->cert_pem, ed->key_pem, NULL, CR_MATERIAL_KEY_MISMATCH, "the key is Ed25519"},
        {"OpenSSL's own form", trusted, leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "use CERTIFICATE"},
        {"no new line between two", NULL, NULL, joined, CR_MATERIAL_UNPARSABLE, "a new line is missing"},
        {"one that does not end", NULL, NULL, unfinished, CR_MATERIAL_UNPARSABLE, "is cut off"},
        {"an END of another kind", NULL, NULL, mixed, CR_MATERIAL_UNPARSABLE, "no matching END"},
        {"blanks only", leaf->cert_pem, " \r\n\t", NULL, CR_MATERIAL_EMPTY, "tls.key is empty"},
        {"JSON", "{\"cert\": 1}", leaf->key_pem, NULL, CR_MATERIAL_UNPARSABLE, "has no PEM block"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        refuse(cases[i].rule, cases[i].crt, cases[i].key, cases[i].ca, cases[i].problem, cases[i].words);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    size_t len = strlen(leaf->cert_pem);
    const struct cr_pem_input key = entry(leaf->key_pem);
    for (size_t at = 0; at < len; at += 7) {
        cr_autofree char *damaged = cr_memdup(leaf->cert_pem, len);
        damaged[at] = '\0';
        struct cr_material_input in = {{damaged, len}, key, {0}, {0}};
        AUTO_MATERIAL m = {0};
        enum cr_material_problem problem;
        struct cr_error err = {0};
        if (cr_material_parse(&in, cr_clock_wall_ms(), &m, &problem, &err))
            fail_msg("a NUL at %zu was accepted", at);
        assert_int_equal(problem, CR_MATERIAL_UNPARSABLE);
    }
    static const char zeros[64] = {0};
    struct cr_material_input in = {{zeros, sizeof zeros}, key, {0}, {0}};
    AUTO_MATERIAL m = {0};
    enum cr_material_problem problem;
    assert_false(cr_material_parse(&in, cr_clock_wall_ms(), &m, &problem, NULL));
    assert_int_equal(problem, CR_MATERIAL_UNPARSABLE);
}

static void a_bundle_of_hundreds_of_cas_is_read(void **state)
{
    (void)state;
    enum { MANY = 300, MOST = 1000 };
    CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
    for (int i = 1; i < MANY; i++) {
        char cn[32];
        snprintf(cn, sizeof cn, "ca %d", i);
        AUTO_CERT other = make(.cn = cn, .ca = true);
        cr_buf_puts(&bundle, other->cert_pem);
    }
    AUTO_CERT issuer = make(.cn = "the last one", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = issuer);
    cr_buf_puts(&bundle, issuer->cert_pem);
    AUTO_MATERIAL m = {0};
    accept("300 CAs", leaf->cert_pem, leaf->key_pem, bundle.data, &m);
    assert_int_equal(m.trust_len, MANY);
    assert_int_equal(m.anchors.len, 1);
    for (int i = MANY; i <= MOST; i++)
        cr_buf_puts(&bundle, leaf->cert_pem);
    refuse("1001 certificates", NULL, NULL, bundle.data, CR_MATERIAL_UNPARSABLE,
           "ca.crt: has more than 1000 certificates");
}

/* --- times --- */

static void the_leaf_must_be_valid_now_within_five_minutes_of_skew(void **state)
{
    (void)state;
    AUTO_CERT expired = make(.cn = "old", .from_s = -2 * DAY, .until_s = -1 * MINUTE);
    AUTO_CERT early = make(.cn = "early", .from_s = 10 * MINUTE);
    AUTO_CERT skewed = make(.cn = "skewed", .from_s = 4 * MINUTE);
    refuse("expired", expired->cert_pem, expired->key_pem, NULL, CR_MATERIAL_EXPIRED,
           "the certificate in tls.crt expired at 20");
    refuse("not yet valid", early->cert_pem, early->key_pem, NULL, CR_MATERIAL_NOT_YET,
           "the certificate in tls.crt is not valid before 20");
    AUTO_MATERIAL m = {0};
    accept("within the skew", skewed->cert_pem, skewed->key_pem, skewed->cert_pem, &m);
    assert_int_equal(m.anchors.len, 1);
    assert_true(m.not_after_ms > m.not_before_ms && m.not_before_ms > cr_clock_wall_ms());
}

/* --- trust --- */

static void trust_keeps_its_order_without_duplicates_expired_ones_included(void **state)
{
    (void)state;
    AUTO_CERT a = make(.cn = "a", .ca = true);
    AUTO_CERT b = make(.cn = "b", .ca = true, .from_s = -2 * DAY, .until_s = -DAY);
    AUTO_CERT c = make(.cn = "self-signed leaf");
    cr_autofree char *bundle = test_concat(a->cert_pem, b->cert_pem, a->cert_pem, c->cert_pem, b->cert_pem, NULL);
    AUTO_MATERIAL m = {0};
    AUTO_MATERIAL only_b = {0};
    accept("bundle", NULL, NULL, bundle, &m);
    accept("one", NULL, NULL, b->cert_pem, &only_b);
    assert_int_equal(m.trust_len, 3);
    assert_string_equal(m.trust[1].fingerprint, only_b.trust[0].fingerprint);
    assert_true(m.trust[1].not_after_ms < cr_clock_wall_ms());
}

static void a_ca_renewed_with_its_key_keeps_its_identity(void **state)
{
    (void)state;
    AUTO_CERT before = make(.cn = "ca", .ca = true);
    AUTO_CERT renewed = make(.cn = "ca", .ca = true, .key_of = before, .until_s = 2 * DAY);
    AUTO_CERT renamed = make(.cn = "ca 2", .ca = true, .key_of = before);
    AUTO_CERT rekeyed = make(.cn = "ca", .ca = true);
    cr_autofree char *bundle =
        test_concat(before->cert_pem, renewed->cert_pem, renamed->cert_pem, rekeyed->cert_pem, NULL);
    AUTO_MATERIAL m = {0};
    accept("bundle", NULL, NULL, bundle, &m);
    assert_int_equal(m.trust_len, 4);
    assert_string_equal(m.trust[0].identity, m.trust[1].identity);
    assert_string_not_equal(m.trust[0].fingerprint, m.trust[1].fingerprint);
    assert_string_not_equal(m.trust[0].identity, m.trust[2].identity);
    assert_string_not_equal(m.trust[0].identity, m.trust[3].identity);
    /* A server announces one name for three of them; their serials differ. */
    assert_string_equal(m.trust[0].subject, m.trust[1].subject);
    assert_string_equal(m.trust[0].subject, m.trust[3].subject);
    assert_string_not_equal(m.trust[0].subject, m.trust[2].subject);
    for (size_t i = 0; i < m.trust_len; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(m.trust[i].serial, m.trust[k].serial);
}

static void a_leaf_has_its_serial(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf", .serial = "0123456789ABCDEF");
    AUTO_MATERIAL m = {0};
    accept("leaf", leaf->cert_pem, leaf->key_pem, NULL, &m);
    assert_string_equal(m.serial, "123456789abcdef");
}

/* --- issuer and anchors --- */

/* The identity of the CA at that place of a bundle. */
static const char *identity(const struct cr_material *m, size_t i)
{
    assert_true(i < m->trust_len);
    return m->trust[i].identity;
}

static void the_issuer_is_found_by_signature(void **state)
{
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true, .no_key_ids = true);
    AUTO_CERT impostor = make(.cn = "ca", .ca = true, .no_key_ids = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = ca, .no_key_ids = true);
    cr_autofree char *bundle = test_concat(impostor->cert_pem, ca->cert_pem, NULL);
    cr_autofree char *chain = test_concat(leaf->cert_pem, ca->cert_pem, NULL);
    AUTO_MATERIAL from_trust = {0};
    accept("two CAs of one name", leaf->cert_pem, leaf->key_pem, bundle, &from_trust);
    assert_string_equal(from_trust.issuer, identity(&from_trust, 1));
    assert_int_equal(from_trust.anchors.len, 1);
    assert_string_equal(from_trust.anchors.items[0], identity(&from_trust, 1));
    AUTO_MATERIAL from_chain = {0};
    accept("the CA in the chain", chain, leaf->key_pem, NULL, &from_chain);
    assert_string_equal(from_chain.issuer, from_trust.issuer);
    AUTO_MATERIAL unknown = {0};
    accept("only the impostor", leaf->cert_pem, leaf->key_pem, impostor->cert_pem, &unknown);
    assert_string_not_equal(unknown.issuer, identity(&unknown, 0));
    assert_int_equal(strlen(unknown.issuer), 64);
    assert_int_equal(unknown.anchors.len, 0);
}

static void an_absent_issuer_is_known_by_name_and_key_identifier(void **state)
{
    (void)state;
    AUTO_CERT ca = make(.cn = "ca", .ca = true);
    AUTO_CERT rekeyed = make(.cn = "ca", .ca = true);
    AUTO_CERT one = make(.cn = "one", .issuer = ca);
    AUTO_CERT two = make(.cn = "two", .issuer = ca);
    AUTO_CERT three = make(.cn = "three", .issuer = rekeyed);
    AUTO_MATERIAL a = {0};
    AUTO_MATERIAL b = {0};
    AUTO_MATERIAL c = {0};
    accept("one", one->cert_pem, one->key_pem, NULL, &a);
    accept("two", two->cert_pem, two->key_pem, NULL, &b);
    accept("three", three->cert_pem, three->key_pem, NULL, &c);
    assert_string_equal(a.issuer, b.issuer);
    assert_string_not_equal(a.issuer, c.issuer);
}

static void a_self_signed_leaf_is_its_own_issuer_and_anchor(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    AUTO_MATERIAL m = {0};
    accept("self-signed", leaf->cert_pem, leaf->key_pem, leaf->cert_pem, &m);
    assert_string_equal(m.issuer, identity(&m, 0));
    assert_int_equal(m.anchors.len, 1);
    assert_string_equal(m.anchors.items[0], identity(&m, 0));
}

/* root → middle → leaf in several distributions over chain and bundle. */
static void anchors_are_all_cas_that_the_leaf_verifies_to(void **state)
{
    (void)state;
    AUTO_CERT root = make(.cn = "root", .ca = true);
    AUTO_CERT middle = make(.cn = "middle", .ca = true, .issuer = root);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = middle);
    AUTO_CERT other = make(.cn = "other", .ca = true);
    const struct {
        const char *rule;
        const struct test_cert *chain, *trust[3];
        size_t anchors;
    } cases[] = {
        {"root, intermediate sent", middle, {root, other}, 1},
        {"root, intermediate not sent", NULL, {root, other}, 0},
        {"an intermediate alone counts", NULL, {middle, other}, 1},
        {"root and intermediate in the bundle", NULL, {other, root, middle}, 2},
        {"intermediate in both", middle, {root, middle, other}, 2},
        {"nothing that fits", middle, {other}, 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *chain = test_concat(leaf->cert_pem, cases[i].chain ? cases[i].chain->cert_pem : "", NULL);
        CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
        for (size_t k = 0; k < 3 && cases[i].trust[k]; k++)
            cr_buf_puts(&bundle, cases[i].trust[k]->cert_pem);
        AUTO_MATERIAL m = {0};
        accept(cases[i].rule, chain, leaf->key_pem, bundle.data, &m);
        if (m.anchors.len != cases[i].anchors)
            fail_msg("%s: %zu anchors", cases[i].rule, m.anchors.len);
    }
}

static void a_ca_that_expired_or_is_no_ca_is_no_anchor(void **state)
{
    (void)state;
    AUTO_CERT expired = make(.cn = "ca", .ca = true, .from_s = -2 * DAY, .until_s = -HOUR);
    AUTO_CERT renewed = make(.cn = "ca", .ca = true, .key_of = expired);
    AUTO_CERT no_ca = make(.cn = "no ca");
    AUTO_CERT from_expired = make(.cn = "leaf", .issuer = expired);
    AUTO_CERT from_no_ca = make(.cn = "leaf", .issuer = no_ca);
    AUTO_MATERIAL a = {0};
    accept("expired", from_expired->cert_pem, from_expired->key_pem, expired->cert_pem, &a);
    assert_string_equal(a.issuer, identity(&a, 0));
    assert_int_equal(a.anchors.len, 0);
    AUTO_MATERIAL b = {0};
    accept("renewed with its key", from_expired->cert_pem, from_expired->key_pem, renewed->cert_pem, &b);
    assert_int_equal(b.anchors.len, 1);
    assert_string_equal(b.anchors.items[0], identity(&a, 0));
    AUTO_MATERIAL c = {0};
    accept("no CA", from_no_ca->cert_pem, from_no_ca->key_pem, no_ca->cert_pem, &c);
    assert_int_equal(c.anchors.len, 0);
}

static void a_cross_signed_ca_gives_both_anchors(void **state)
{
    (void)state;
    AUTO_CERT old_root = make(.cn = "old", .ca = true);
    AUTO_CERT new_root = make(.cn = "new", .ca = true);
    AUTO_CERT cross = make(.cn = "new", .ca = true, .issuer = old_root, .key_of = new_root);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = new_root);
    cr_autofree char *chain = test_concat(leaf->cert_pem, cross->cert_pem, NULL);
    cr_autofree char *bundle = test_concat(new_root->cert_pem, old_root->cert_pem, NULL);
    AUTO_MATERIAL m = {0};
    accept("cross-signed", chain, leaf->key_pem, bundle, &m);
    assert_int_equal(m.anchors.len, 2);
    assert_true(cr_strvec_has(&m.anchors, identity(&m, 0)) && cr_strvec_has(&m.anchors, identity(&m, 1)));
}

/* --- what it may cost --- */

/* As many CAs of one name as make 65 chains; test_paths has the limits. */
static void what_passes_a_limit_is_too_costly(void **state)
{
    (void)state;
    AUTO_CERT top = make(.cn = "top", .ca = true);
    AUTO_CERT leaf = make(.cn = "leaf", .issuer = top);
    CR_CLEANUP(cr_buf) struct cr_buf bundle = {0};
    for (int i = 0; i < 64; i++) {
        char cn[32];
        snprintf(cn, sizeof cn, "other %d", i);
        AUTO_CERT other = make(.cn = cn, .ca = true, .key_of = top);
        AUTO_CERT cross = make(.cn = "top", .ca = true, .issuer = other, .key_of = top);
        cr_buf_puts(&bundle, cross->cert_pem);
    }
    AUTO_MATERIAL most = {0};
    accept("64 above the leaf", leaf->cert_pem, leaf->key_pem, bundle.data, &most);
    assert_int_equal(most.anchors.len, 1);
    cr_buf_puts(&bundle, top->cert_pem);
    refuse("65 above the leaf", leaf->cert_pem, leaf->key_pem, bundle.data, CR_MATERIAL_TOO_COSTLY,
           "tls.crt: more than 64 certificates may stand above the leaf");
    AUTO_MATERIAL trust = {0};
    accept("without a leaf nothing is verified", NULL, NULL, bundle.data, &trust);
    cr_autofree char *filler = cr_malloc(64 * 1024 + 1);
    memset(filler, '\n', 64 * 1024);
    filler[64 * 1024] = '\0';
    cr_autofree char *key = test_concat(filler, leaf->key_pem, NULL);
    refuse("a large key", leaf->cert_pem, key, NULL, CR_MATERIAL_TOO_COSTLY, "more than the 65536 that are read");
}

/* OpenSSL computes the public half of a DSA key as it reads it: with 40,000 bits, which 20 KB hold, that takes 26 s. */
static void a_key_that_no_certificate_signs_with_is_not_decoded(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    EVP_PKEY *exchange = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, exchange, NULL, NULL, 0, NULL, NULL), 1);
    long len = BIO_get_mem_data(bio, &text);
    cr_autofree char *x25519 = cr_strndup(text, (size_t)len);
    BIO_free(bio);
    EVP_PKEY_free(exchange);
    refuse("DSA", leaf->cert_pem, test_dsa_key, NULL, CR_MATERIAL_UNPARSABLE,
           "tls.key: block 1 is a key for DSA (1.2.840.10040.4.1), with which certificates are not signed");
    refuse("X25519", leaf->cert_pem, x25519, NULL, CR_MATERIAL_UNPARSABLE, "block 1 is a key for X25519 (1.3.101.110)");
}

/* --- opaque --- */

static void opaque_digest(const struct cr_opaque_entry *entries, size_t count, const char *key,
                          char out[CR_OPAQUE_TEXT])
{
    struct cr_material_input in = {
        .opaque = entries, .opaque_len = count, .opaque_key = key, .opaque_key_len = key ? strlen(key) : 0};
    AUTO_MATERIAL m = {0};
    enum cr_material_problem problem;
    assert_true(cr_material_parse(&in, 0, &m, &problem, NULL));
    assert_false(m.has_leaf);
    assert_true(cr_opaque_is_valid(m.opaque));
    assert_int_equal(m.opaque_keys.len, count <= CR_OPAQUE_KEYS_MAX ? count : 0);
    memcpy(out, m.opaque, sizeof m.opaque);
}

static void opaque_entries_are_digested_with_a_key_whatever_their_order(void **state)
{
    (void)state;
    const struct cr_opaque_entry there[] = {{"a", "one", 3}, {"b", "two", 3}};
    const struct cr_opaque_entry reordered[] = {{"b", "two", 3}, {"a", "one", 3}};
    const struct cr_opaque_entry shifted[] = {{"a", "onet", 4}, {"b", "wo", 2}};
    const struct cr_opaque_entry renamed[] = {{"a", "one", 3}, {"c", "two", 3}};
    const struct cr_opaque_entry emptied[] = {{"a", "one", 3}, {"b", NULL, 0}};
    const struct cr_opaque_entry with_nul[] = {{"a", "one", 3}, {"b", "two\0x", 5}};
    char base[CR_OPAQUE_TEXT];
    char other[CR_OPAQUE_TEXT];
    opaque_digest(there, 2, "key", base);
    assert_int_equal(strlen(base), 8 + 1 + 64);
    opaque_digest(reordered, 2, "key", other);
    assert_string_equal(base, other);
    const struct cr_opaque_entry *const changed[] = {shifted, renamed, emptied, with_nul};
    for (size_t i = 0; i < cr_array_len(changed); i++) {
        opaque_digest(changed[i], 2, "key", other);
        assert_string_not_equal(base, other);
        assert_true(cr_opaque_comparable(base, other));
    }
    opaque_digest(there, 1, "key", other);
    assert_string_not_equal(base, other);
}

static void an_opaque_digest_names_its_key(void **state)
{
    (void)state;
    const struct cr_opaque_entry there[] = {{"a", "one", 3}};
    char base[CR_OPAQUE_TEXT];
    char other[CR_OPAQUE_TEXT];
    char id[CR_SHA256_HEX];
    opaque_digest(there, 1, "key", base);
    cr_sha256_hex("key", 3, id);
    assert_memory_equal(base, id, CR_OPAQUE_KEY_ID);
    opaque_digest(there, 1, "another key", other);
    assert_string_not_equal(base, other);
    assert_false(cr_opaque_comparable(base, other));
    /* RFC 2104, over the RFC's way to write what is in it: name=HMAC(content) and a new line. */
    char content[CR_SHA256_HEX];
    char whole[CR_SHA256_HEX];
    cr_hmac_sha256_hex("key", 3, "one", 3, content);
    cr_autofree char *text = cr_asprintf("a=%s\n", content);
    cr_hmac_sha256_hex("key", 3, text, strlen(text), whole);
    assert_string_equal(base + CR_OPAQUE_KEY_ID + 1, whole);
}

static void without_a_key_opaque_entries_are_only_named(void **state)
{
    (void)state;
    const struct cr_opaque_entry there[] = {{"password", "hunter2", 7}, {"hmac-secret", "x", 1}};
    struct cr_material_input in = {.opaque = there, .opaque_len = 2};
    AUTO_MATERIAL m = {0};
    enum cr_material_problem problem;
    assert_true(cr_material_parse(&in, 0, &m, &problem, NULL));
    assert_string_equal(m.opaque, CR_OPAQUE_UNREAD);
    assert_int_equal(m.opaque_keys.len, 2);
    assert_string_equal(m.opaque_keys.items[0], "hmac-secret=");
    assert_string_equal(m.opaque_keys.items[1], "password=");
}

static void entries_are_distinguished_up_to_a_number(void **state)
{
    (void)state;
    enum { MOST = CR_OPAQUE_KEYS_MAX + 1 };
    struct cr_opaque_entry entries[MOST];
    char names[MOST][8];
    char out[CR_OPAQUE_TEXT];
    for (size_t i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "k%zu", i);
        entries[i] = (struct cr_opaque_entry){names[i], "v", 1};
    }
    opaque_digest(entries, CR_OPAQUE_KEYS_MAX, "key", out);
    opaque_digest(entries, MOST, "key", out);
}

static void what_can_be_compared(void **state)
{
    (void)state;
#define DIGITS "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *a;
        const char *b;
        bool comparable;
    } cases[] = {
        {"", "", true},
        {"", "00000001:" DIGITS, true},
        {"00000001:" DIGITS, "00000001:" DIGITS, true},
        {"00000001:" DIGITS, "00000002:" DIGITS, false},
        {"", CR_OPAQUE_UNREAD, false},
        {CR_OPAQUE_UNREAD, CR_OPAQUE_UNREAD, false},
        {CR_OPAQUE_UNREAD, "00000001:" DIGITS, false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        assert_int_equal(cr_opaque_comparable(cases[i].a, cases[i].b), cases[i].comparable);
        assert_int_equal(cr_opaque_comparable(cases[i].b, cases[i].a), cases[i].comparable);
        assert_true(cr_opaque_is_valid(cases[i].a) && cr_opaque_is_valid(cases[i].b));
    }
    static const char *const broken[] = {
        DIGITS, "00000001" DIGITS, "0000001:" DIGITS, "0000000g:" DIGITS, "00000001:" DIGITS "0", "Unread"};
    for (size_t i = 0; i < cr_array_len(broken); i++)
        assert_false(cr_opaque_is_valid(broken[i]));
}

/* --- the value --- */

static void a_copy_is_whole_and_independent(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf", .dns = {"a"});
    AUTO_MATERIAL m = {0};
    AUTO_MATERIAL copy = {0};
    accept("leaf", leaf->cert_pem, leaf->key_pem, leaf->cert_pem, &m);
    cr_material_copy(&copy, &m);
    cr_material_copy(&copy, &copy);
    cr_material_copy(&copy, &m);
    assert_ptr_not_equal(copy.trust, m.trust);
    cr_material_dispose(&m);
    assert_int_equal(m.trust_len, 0);
    assert_string_equal(copy.names.items[0], "a");
    assert_int_equal(copy.anchors.len, 1);
    assert_string_equal(copy.trust[0].identity, copy.issuer);
    cr_material_dispose(NULL);
}

static void key_digest_follows_the_key_and_leaf_the_certificate(void **state)
{
    (void)state;
    AUTO_CERT one = make(.cn = "leaf");
    AUTO_CERT renewed = make(.cn = "leaf", .key_of = one);
    AUTO_CERT rekeyed = make(.cn = "leaf");
    AUTO_MATERIAL a = {0};
    AUTO_MATERIAL b = {0};
    AUTO_MATERIAL c = {0};
    accept("one", one->cert_pem, one->key_pem, NULL, &a);
    accept("renewed", renewed->cert_pem, one->key_pem, NULL, &b);
    accept("rekeyed", rekeyed->cert_pem, rekeyed->key_pem, NULL, &c);
    assert_string_equal(a.key, b.key);
    assert_string_not_equal(a.leaf, b.leaf);
    assert_string_not_equal(a.key, c.key);
}

static void every_problem_has_a_word(void **state)
{
    (void)state;
    for (int p = CR_MATERIAL_EMPTY; p <= CR_MATERIAL_INCOMPLETE; p++)
        assert_true(strlen(cr_material_problem_name((enum cr_material_problem)p)) > 4);
    assert_string_equal(cr_material_problem_name(CR_MATERIAL_OK), "");
}

/* --- threads --- */

static void *parse_often(void *arg)
{
    const struct test_cert *leaf = arg;
    for (int i = 0; i < 30; i++) {
        AUTO_MATERIAL m = {0};
        enum cr_material_problem problem;
        struct cr_material_input in = {entry(leaf->cert_pem), entry(leaf->key_pem), entry(leaf->cert_pem), {0}};
        if (!cr_material_parse(&in, cr_clock_wall_ms(), &m, &problem, NULL) || m.anchors.len != 1)
            return arg;
        struct cr_material none;
        in.private_key = in.certificate;
        if (cr_material_parse(&in, 0, &none, &problem, NULL))
            return arg;
    }
    return NULL;
}

/* The last few are kept decoded: more of them than are kept, one after the other, and one that is no longer what it
 * was. */
static void a_bundle_that_comes_again_says_the_same(void **state)
{
    (void)state;
    enum { BUNDLES = 7 };
    char *texts[BUNDLES];
    char fingerprints[BUNDLES][CR_SHA256_HEX];
    AUTO_CERT first = make(.cn = "ca", .ca = true);
    for (size_t i = 0; i < BUNDLES; i++) {
        AUTO_CERT ca = make(.cn = "ca", .ca = true);
        texts[i] = i == 0 ? cr_strdup(first->cert_pem) : test_concat(ca->cert_pem, first->cert_pem, NULL);
    }
    for (size_t round = 0; round < 3 * BUNDLES; round++) {
        size_t i = round < 2 * BUNDLES ? round % BUNDLES : (round * 3) % BUNDLES;
        AUTO_MATERIAL material = {0};
        accept("trust", NULL, NULL, texts[i], &material);
        assert_int_equal(material.trust_len, i == 0 ? 1 : 2);
        if (round < BUNDLES)
            memcpy(fingerprints[i], material.trust[0].fingerprint, CR_SHA256_HEX);
        assert_string_equal(material.trust[0].fingerprint, fingerprints[i]);
    }
    for (size_t i = 1; i < BUNDLES; i++)
        assert_string_not_equal(fingerprints[i], fingerprints[i - 1]);
    char *body = strchr(texts[0], '\n') + 20;
    *body = '!';
    refuse("corrupt since", NULL, NULL, texts[0], CR_MATERIAL_UNPARSABLE, "ca.crt: block 1");
    for (size_t i = 0; i < BUNDLES; i++)
        free(texts[i]);
}

static void many_threads_may_parse(void **state)
{
    (void)state;
    AUTO_CERT leaf = make(.cn = "leaf");
    pthread_t threads[4];
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parse_often, leaf), 0);
    for (size_t i = 0; i < cr_array_len(threads); i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_absent_empty_or_half_there),
        cmocka_unit_test(names_of_the_secret_are_used_in_messages),
        cmocka_unit_test(every_kind_of_key_is_read),
        cmocka_unit_test(an_encrypted_key_is_refused_without_a_prompt),
        cmocka_unit_test(an_encrypted_key_under_a_wrong_label_asks_for_no_passphrase),
        cmocka_unit_test(a_key_that_does_not_fit_is_a_mismatch),
        cmocka_unit_test(exactly_one_private_key_is_expected),
        cmocka_unit_test(what_is_only_another_text_is_the_same_material),
        cmocka_unit_test(a_corrupt_block_is_an_error_and_not_the_end),
        cmocka_unit_test(an_algorithm_that_openssl_does_not_have_is_named),
        cmocka_unit_test(a_key_is_proved_by_use),
        cmocka_unit_test(a_key_that_no_server_can_load_is_refused),
        cmocka_unit_test(a_time_that_cannot_be_read_is_refused),
        cmocka_unit_test(what_is_behind_the_der_of_a_block_makes_it_corrupt),
        cmocka_unit_test(a_text_cut_anywhere_is_refused_or_shorter_never_wrong),
        cmocka_unit_test(sizes_and_counts_are_capped),
        cmocka_unit_test(what_is_unusual_and_good_is_accepted),
        cmocka_unit_test(what_is_unusual_and_bad_is_refused_in_words),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(a_bundle_of_hundreds_of_cas_is_read),
        cmocka_unit_test(the_leaf_must_be_valid_now_within_five_minutes_of_skew),
        cmocka_unit_test(trust_keeps_its_order_without_duplicates_expired_ones_included),
        cmocka_unit_test(a_ca_renewed_with_its_key_keeps_its_identity),
        cmocka_unit_test(a_leaf_has_its_serial),
        cmocka_unit_test(the_issuer_is_found_by_signature),
        cmocka_unit_test(an_absent_issuer_is_known_by_name_and_key_identifier),
        cmocka_unit_test(a_self_signed_leaf_is_its_own_issuer_and_anchor),
        cmocka_unit_test(anchors_are_all_cas_that_the_leaf_verifies_to),
        cmocka_unit_test(a_ca_that_expired_or_is_no_ca_is_no_anchor),
        cmocka_unit_test(what_passes_a_limit_is_too_costly),
        cmocka_unit_test(a_key_that_no_certificate_signs_with_is_not_decoded),
        cmocka_unit_test(a_cross_signed_ca_gives_both_anchors),
        cmocka_unit_test(opaque_entries_are_digested_with_a_key_whatever_their_order),
        cmocka_unit_test(an_opaque_digest_names_its_key),
        cmocka_unit_test(without_a_key_opaque_entries_are_only_named),
        cmocka_unit_test(entries_are_distinguished_up_to_a_number),
        cmocka_unit_test(what_can_be_compared),
        cmocka_unit_test(a_copy_is_whole_and_independent),
        cmocka_unit_test(key_digest_follows_the_key_and_leaf_the_certificate),
        cmocka_unit_test(every_problem_has_a_word),
        cmocka_unit_test(a_bundle_that_comes_again_says_the_same),
        cmocka_unit_test(many_threads_may_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
