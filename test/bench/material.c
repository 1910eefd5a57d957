#include "material.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { KEYS = 16, DAY = 24 * 60 * 60 };

struct bench_material {
    EVP_PKEY *ca_key;
    X509_NAME *ca_name;
    EVP_PKEY *keys[KEYS];
    char *key_texts[KEYS]; /* base64 of the PEM */
    size_t next_key;
    long serial;
};

static char *base64_of(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    char *text = malloc((size_t)(len + 2) / 3 * 4 + 1);
    if (!text)
        bench_fail("out of memory");
    EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)data, (int)len);
    BIO_free(bio);
    return text;
}

static X509_NAME *name_of(const char *common_name)
{
    X509_NAME *name = X509_NAME_new();
    if (!X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0))
        bench_fail("OpenSSL takes no name %s", common_name);
    return name;
}

struct bench_material *bench_material_new(void)
{
    struct bench_material *material = calloc(1, sizeof *material);
    if (!material)
        bench_fail("out of memory");
    material->ca_key = EVP_EC_gen("P-256");
    material->ca_name = name_of("certroll bench CA");
    for (size_t i = 0; i < KEYS; i++) {
        material->keys[i] = EVP_EC_gen("P-256");
        BIO *bio = BIO_new(BIO_s_mem());
        if (!material->keys[i] || !PEM_write_bio_PrivateKey(bio, material->keys[i], NULL, NULL, 0, NULL, NULL))
            bench_fail("OpenSSL makes no key");
        material->key_texts[i] = base64_of(bio);
    }
    material->serial = (long)(bench_now_ns() / 1000);
    return material;
}

void bench_material_free(struct bench_material *material)
{
    EVP_PKEY_free(material->ca_key);
    X509_NAME_free(material->ca_name);
    for (size_t i = 0; i < KEYS; i++) {
        EVP_PKEY_free(material->keys[i]);
        free(material->key_texts[i]);
    }
    free(material);
}

static void add_dns_name(X509 *leaf, const char *name)
{
    char value[128];
    snprintf(value, sizeof value, "DNS:%s", name);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, value);
    X509_add_ext(leaf, extension, -1);
    X509_EXTENSION_free(extension);
}

static char *leaf_text(struct bench_material *material, size_t index, EVP_PKEY *key)
{
    char name[64];
    snprintf(name, sizeof name, "s-%05zu.bench.svc", index);
    X509 *leaf = X509_new();
    X509_set_version(leaf, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(leaf), ++material->serial);
    X509_gmtime_adj(X509_getm_notBefore(leaf), -DAY);
    X509_gmtime_adj(X509_getm_notAfter(leaf), 90L * DAY);
    X509_NAME *subject = name_of(name);
    X509_set_subject_name(leaf, subject);
    X509_NAME_free(subject);
    X509_set_issuer_name(leaf, material->ca_name);
    X509_set_pubkey(leaf, key);
    add_dns_name(leaf, name);
    BIO *bio = BIO_new(BIO_s_mem());
    if (!X509_sign(leaf, material->ca_key, EVP_sha256()) || !PEM_write_bio_X509(bio, leaf))
        bench_fail("OpenSSL signs nothing");
    X509_free(leaf);
    return base64_of(bio);
}

char *bench_material_data(struct bench_material *material, size_t index)
{
    size_t key = material->next_key++ % KEYS;
    char *leaf = leaf_text(material, index, material->keys[key]);
    char *data = NULL;
    if (asprintf(&data, "{\"tls.crt\":\"%s\",\"tls.key\":\"%s\"}", leaf, material->key_texts[key]) < 0)
        bench_fail("out of memory");
    free(leaf);
    return data;
}
