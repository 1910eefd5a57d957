#include "controlplane/agent/node_material.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "support/testcerts.h"

/* Files are written as words: "ca", "leaf" and "other" are certificates, "leaf.key" and so on private keys, "leaf.pub"
 * public ones, "junk" a block of keys that is none, "junk.crt" one of certificates. */
static struct {
    const char *name;
    struct test_cert *cert;
    char print[CR_SHA256_HEX], subject[CR_SHA256_HEX], key[CR_SHA256_HEX];
} certs[] = {{.name = "ca"}, {.name = "leaf"}, {.name = "other"}};

static void digests(size_t i)
{
    unsigned char *der = NULL;
    int len = i2d_X509(certs[i].cert->x509, &der);
    cr_sha256_hex(der, (size_t)len, certs[i].print);
    OPENSSL_free(der);
    der = NULL;
    len = i2d_X509_NAME(X509_get_subject_name(certs[i].cert->x509), &der);
    cr_sha256_hex(der, (size_t)len, certs[i].subject);
    OPENSSL_free(der);
    der = NULL;
    len = i2d_PUBKEY(certs[i].cert->key, &der);
    cr_sha256_hex(der, (size_t)len, certs[i].key);
    OPENSSL_free(der);
}

static int make(void **state)
{
    (void)state;
    certs[0].cert = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true, .until_s = 30 * 86400});
    certs[1].cert =
        test_cert_new(&(struct test_cert_spec){.cn = "leaf", .issuer = certs[0].cert, .until_s = 10 * 86400});
    certs[2].cert = test_cert_new(&(struct test_cert_spec){.cn = "other", .ca = true, .until_s = 20 * 86400});
    for (size_t i = 0; i < cr_array_len(certs); i++)
        digests(i);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(certs); i++)
        test_cert_free(certs[i].cert);
    return 0;
}

static void write_word(const char *word, struct cr_buf *out)
{
    char *data = NULL;
    size_t len = strcspn(word, ".");
    if (cr_streq(word, "junk"))
        cr_buf_puts(out, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    if (cr_streq(word, "junk.crt"))
        cr_buf_puts(out, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (size_t i = 0; i < cr_array_len(certs); i++) {
        if (strlen(certs[i].name) != len || strncmp(certs[i].name, word, len) != 0)
            continue;
        BIO *bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PUBKEY(bio, certs[i].cert->key);
        long pub = BIO_get_mem_data(bio, &data);
        if (cr_ends_with(word, ".pub"))
            assert_true(cr_buf_append(out, data, (size_t)pub));
        else
            cr_buf_puts(out, cr_ends_with(word, ".key") ? certs[i].cert->key_pem : certs[i].cert->cert_pem);
        BIO_free(bio);
    }
}

static char *write_file(const char *words)
{
    struct cr_buf out = CR_BUF_INIT(0);
    cr_autofree char *copy = cr_strdup(words);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));)
        write_word(word, &out);
    return cr_buf_steal(&out);
}

static const char *name_of(const char *digest)
{
    for (size_t i = 0; i < cr_array_len(certs); i++)
        if (cr_streq(digest, certs[i].print) || cr_streq(digest, certs[i].key) || cr_streq(digest, certs[i].subject))
            return certs[i].name;
    return digest;
}

static void print_list(const struct cr_strvec *list, const char *label, struct cr_buf *out)
{
    for (size_t i = 0; i < list->len; i++)
        cr_buf_printf(out, "%s%s%s", i ? "," : label, i ? "" : "=", name_of(list->items[i]));
    if (list->len)
        cr_buf_puts(out, " ");
}

/* "Kind has=… key=… name=… certificates days: problem". */
static char *describe(const struct cr_node_material *m)
{
    struct cr_buf out = CR_BUF_INIT(0);
    struct cr_strvec ends = {0};
    cr_buf_printf(&out, "%s ", cr_node_file_kind_name(m->kind));
    print_list(&m->prints, "has", &out);
    print_list(&m->keys, "key", &out);
    print_list(&m->names, "name", &out);
    cr_buf_printf(&out, "%zu", m->certificates);
    for (size_t i = 0; i < cr_array_len(certs); i++) {
        const ASN1_TIME *end = X509_get0_notAfter(certs[i].cert->x509);
        struct tm tm = {0};
        if (ASN1_TIME_to_tm(end, &tm) && timegm(&tm) * INT64_C(1000) == m->not_after_ms)
            cr_strvec_add(&ends, certs[i].name);
    }
    if (m->not_after_ms)
        cr_buf_printf(&out, " until %s", ends.len ? ends.items[0] : "?");
    cr_strvec_dispose(&ends);
    /* Which line it is hangs on how long a signature has become. */
    const char *line = m->problem ? strstr(m->problem, ", line ") : NULL;
    if (m->problem)
        cr_buf_printf(&out, ": %.*s%s", line ? (int)(line - m->problem) : INT_MAX, m->problem,
                      line ? strchr(line, ')') : "");
    return cr_buf_steal(&out);
}

/* clang-format off */
static const struct {
    const char *rule;
    enum cr_role role;
    const char *parameter, *file, *want;
} rows[] = {
    {"a leaf", CR_ROLE_SERVER_LEAF, "--tls-cert-file", "leaf", "Leaf has=leaf key=leaf 1 until leaf"},
    {"with its chain: the first counts", CR_ROLE_CLIENT_LEAF, "--etcd-certfile", "leaf ca", "Leaf has=leaf key=leaf 2 until leaf"},
    {"a key beside it is nothing to it", CR_ROLE_SERVER_LEAF, "ETCD_CERT_FILE", "other.key leaf", "Leaf has=leaf key=leaf 1 until leaf"},
    {"even one that is none", CR_ROLE_SERVER_LEAF, "--cert-file", "junk leaf", "Leaf has=leaf key=leaf 1 until leaf"},
    {"a certificate that is none", CR_ROLE_SERVER_LEAF, "--cert-file", "leaf junk.crt", "Unread 0: block 2 (CERTIFICATE) is corrupt: it holds no certificate"},
    {"a key where a certificate ought to be", CR_ROLE_SERVER_LEAF, "--tls-cert-file", "leaf.key", "Unread 0: has no certificate"},
    {"an empty file", CR_ROLE_SERVER_LEAF, "--tls-cert-file", "", "Unread 0: is empty: PEM is expected"},

    {"a key", CR_ROLE_SERVER_LEAF, "--tls-private-key-file", "leaf.key", "Leaf key=leaf 0"},
    {"of the kubelet's configuration", CR_ROLE_SERVER_LEAF, "tlsPrivateKeyFile", "leaf.key", "Leaf key=leaf 0"},
    {"of a kubeconfig, in one file with the certificate", CR_ROLE_CLIENT_LEAF, "kubeconfig client-key", "leaf leaf.key", "Leaf key=leaf 0"},
    {"of a variable", CR_ROLE_SERVER_LEAF, "ETCD_PEER_KEY_FILE", "leaf.key", "Leaf key=leaf 0"},
    {"of etcdctl", CR_ROLE_CLIENT_LEAF, "--key", "leaf.key", "Leaf key=leaf 0"},
    {"of two the first, as in Go", CR_ROLE_CLIENT_LEAF, "--etcd-keyfile", "leaf.key other.key", "Leaf key=leaf 0"},
    {"certificates beside it are nothing to it", CR_ROLE_CLIENT_LEAF, "--key-file", "junk.crt leaf.key", "Leaf key=leaf 0"},
    {"a key that is none", CR_ROLE_CLIENT_LEAF, "--key-file", "junk", "Unread 0: block 1 (PRIVATE KEY) is corrupt: it holds no key of that form"},
    {"a public key is none", CR_ROLE_CLIENT_LEAF, "--key-file", "leaf.pub", "Unread 0: has no private key"},

    {"SNI: the certificate's file", CR_ROLE_SERVER_LEAF, "--tls-sni-cert-key", "leaf ca", "Leaf has=leaf key=leaf 2 until leaf"},
    {"SNI: the key's file", CR_ROLE_SERVER_LEAF, "--tls-sni-cert-key", "leaf.key", "Leaf key=leaf 0"},
    {"SNI: neither", CR_ROLE_SERVER_LEAF, "--tls-sni-cert-key", "leaf.pub", "Unread 0: has no private key"},
    {"SNI: corrupt", CR_ROLE_SERVER_LEAF, "--tls-sni-cert-key", "junk.crt", "Unread 0: block 1 (CERTIFICATE) is corrupt: it holds no certificate"},

    {"the kubelet's own pair", CR_ROLE_SERVER_LEAF, "serverTLSBootstrap", "leaf ca leaf.key", "Leaf has=leaf key=leaf 2 until leaf"},
    {"that it presents", CR_ROLE_CLIENT_LEAF, "rotateCertificates", "leaf leaf.key", "Leaf has=leaf key=leaf 1 until leaf"},
    {"with another key", CR_ROLE_SERVER_LEAF, "serverTLSBootstrap", "leaf other.key", "Leaf has=leaf key=leaf 1 until leaf: the key does not belong to the certificate"},
    {"with none", CR_ROLE_SERVER_LEAF, "serverTLSBootstrap", "leaf", "Unread 0: has no private key"},

    {"a bundle", CR_ROLE_CLIENT_CA, "--client-ca-file", "ca", "Trust has=ca key=ca name=ca 1 until ca"},
    {"of two, in their order, until the first ends", CR_ROLE_SERVER_CA, "--root-ca-file", "ca other", "Trust has=ca,other key=ca,other name=ca,other 2 until other"},
    {"one that comes twice is one", CR_ROLE_SERVER_CA, "--cacert", "other ca other", "Trust has=other,ca key=other,ca name=other,ca 3 until other"},
    {"its key beside it is nothing to it", CR_ROLE_SERVER_CA, "--etcd-cafile", "ca ca.key", "Trust has=ca key=ca name=ca 1 until ca"},
    {"a key alone is no bundle", CR_ROLE_SERVER_CA, "--etcd-cafile", "ca.key", "Unread 0: has no certificate"},
    {"half of a bundle is none", CR_ROLE_SERVER_CA, "--etcd-cafile", "ca junk.crt", "Unread 0: block 2 (CERTIFICATE) is corrupt: it holds no certificate"},

    {"a signer", CR_ROLE_OPAQUE, "--cluster-signing-cert-file", "ca", "Signer has=ca key=ca 1 until ca"},
    {"two certificates in the signing file", CR_ROLE_OPAQUE, "--cluster-signing-cert-file", "other ca", "Signer has=other key=other 2 until other: has 2 certificates: only a file with exactly one can be signed with"},
    {"one of several", CR_ROLE_OPAQUE, "--cluster-signing-kubelet-serving-cert-file", "ca", "Signer has=ca key=ca 1 until ca"},
    {"its key", CR_ROLE_OPAQUE, "--cluster-signing-key-file", "ca.key", "Signer key=ca 0"},
    {"the key of one of several", CR_ROLE_OPAQUE, "--cluster-signing-kubelet-serving-key-file", "ca.key", "Signer key=ca 0"},

    {"a key to verify tokens by", CR_ROLE_OPAQUE, "--service-account-key-file", "leaf.pub", "Keys has=leaf key=leaf 0"},
    {"two, in their order", CR_ROLE_OPAQUE, "--service-account-key-file", "other.pub leaf.pub other.pub", "Keys has=other,leaf key=other,leaf 0"},
    {"private keys and certificates verify, too", CR_ROLE_OPAQUE, "--service-account-key-file", "leaf.key other", "Keys has=leaf,other key=leaf,other 1"},
    {"one that is none makes all of it unread", CR_ROLE_OPAQUE, "--service-account-key-file", "leaf.pub junk", "Unread 0: block 2 (PRIVATE KEY) is corrupt: it holds no key of that form"},
    {"a key to sign tokens with", CR_ROLE_OPAQUE, "--service-account-signing-key-file", "leaf.key", "Keys has=leaf key=leaf 0"},
    {"of the controller manager", CR_ROLE_OPAQUE, "--service-account-private-key-file", "leaf.key", "Keys has=leaf key=leaf 0"},
    {"a public key signs nothing", CR_ROLE_OPAQUE, "--service-account-private-key-file", "leaf.pub", "Unread 0: has no private key"},
};
/* clang-format on */

static void a_file_is_read_as_its_parameter_s_program_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        cr_autofree char *text = write_file(rows[i].file);
        CR_CLEANUP(cr_node_material) struct cr_node_material m;
        cr_node_material_read(text, strlen(text), rows[i].role, rows[i].parameter, &m);
        cr_autofree char *is = describe(&m);
        if (!cr_streq(is, rows[i].want))
            fail_msg("%s: want\n%s, is\n%s", rows[i].rule, rows[i].want, is);
    }
}

static void a_key_fits_or_does_not(void **state)
{
    static const struct {
        const char *certificate, *key;
        bool fits;
    } pairs[] = {{"leaf", "leaf.key", true}, {"leaf ca", "leaf.key", true},
                 {"leaf", "ca.key", false},  {"ca leaf", "leaf.key", false}, /* the first certificate is the leaf */
                 {"", "leaf.key", true},                                     /* which is said as what it is */
                 {"leaf", "junk", true}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(pairs); i++) {
        cr_autofree char *certificate = write_file(pairs[i].certificate);
        cr_autofree char *key = write_file(pairs[i].key);
        CR_CLEANUP(cr_node_material) struct cr_node_material a;
        CR_CLEANUP(cr_node_material) struct cr_node_material b;
        cr_node_material_read(certificate, strlen(certificate), CR_ROLE_SERVER_LEAF, "--tls-cert-file", &a);
        cr_node_material_read(key, strlen(key), CR_ROLE_SERVER_LEAF, "--tls-private-key-file", &b);
        if (cr_node_material_fits(&a, &b) != pairs[i].fits)
            fail_msg("'%s' and '%s'", pairs[i].certificate, pairs[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_as_its_parameter_s_program_does),
        cmocka_unit_test(a_key_fits_or_does_not),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
