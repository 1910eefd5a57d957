/* Certificates made at run time, for tests of whatever reads or serves them. Ends the test on failure. */
#ifndef TEST_SUPPORT_TESTCERTS_H
#define TEST_SUPPORT_TESTCERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct x509_st;     /* OpenSSL's X509 */
struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

/* A certificate and its key. Texts are owned by it. */
struct test_cert {
    struct x509_st *x509;
    struct evp_pkey_st *key;
    char *cert_pem;
    char *key_pem; /* PKCS#8 */
};

/* Everything left zero has a default: an ECDSA-P256 leaf, self-signed, valid from an hour ago for a day. */
struct test_cert_spec {
    const char *cn;
    const char *dns[4];   /* SANs, up to the first NULL */
    const char *ips[2];   /* "127.0.0.1" */
    bool ca;              /* basicConstraints CA:TRUE and keyCertSign */
    const char *serial;   /* hex, may be negative; NULL: random */
    bool no_key_ids;      /* no subject and authority key identifier */
    bool no_constraints;  /* no basic constraints */
    bool weak_digest;     /* signed with SHA-1 */
    const char *key_type; /* "P-256", "P-384", "P-521", "secp256k1", "RSA", "RSA-1024", "RSA-PSS", "ED25519", "ED448";
                           * where test_has_ml_dsa(): "ML-DSA-65", "SLH-DSA-SHA2-128s" and the like */
    int64_t from_s;       /* notBefore, seconds from now */
    int64_t until_s;      /* notAfter, seconds from now */
    const struct test_cert *issuer; /* NULL: self-signed */
    const struct test_cert *key_of; /* use that certificate's key */
};

/* OpenSSL 3.5 and later. */
bool test_has_ml_dsa(void);

struct test_cert *test_cert_new(const struct test_cert_spec *spec);
void test_cert_free(struct test_cert *cert);
CR_DEFINE_CLEANUP(test_cert, struct test_cert, test_cert_free)

/* The key in another form, owned text: "SEC1" or "PKCS#1" (the algorithm's own form), "SEC1 with parameters",
 * "PKCS#8 encrypted", "Proc-Type encrypted". */
char *test_cert_key_as(const struct test_cert *cert, const char *form);

/* A public key with a random modulus, which need not be factored: of any size at once. */
struct evp_pkey_st *test_rsa_public(int bits, int exponent_bits);

/* A DSA key in PKCS#8 that stands for one of any size: random numbers of 512 bits. */
extern const char test_dsa_key[];

/* Texts one after the other, NULL-terminated arguments. Owned. */
char *test_concat(const char *first, ...) __attribute__((sentinel));

/* What tests of clients and servers with TLS need. All are of ca but other_ca. */
struct test_papers {
    struct test_cert *ca;
    struct test_cert *other_ca;
    struct test_cert *server;  /* for 127.0.0.1 */
    struct test_cert *by_name; /* for api.internal only */
    struct test_cert *client_a;
    struct test_cert *client_b; /* with an RSA key */
};
struct test_papers *test_papers_new(void);
void test_papers_free(struct test_papers *papers);

#endif
