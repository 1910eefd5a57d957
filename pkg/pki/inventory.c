#include "pki/inventory.h"

#include <stdlib.h>

#include <openssl/core_names.h>

#include "base/alloc.h"
#include "pki/certificate.h"
#include "pki/key.h"
#include "pki/openssl_internal.h"
#include "pki/pem.h"

void cr_inventory_dispose(struct cr_inventory *inventory)
{
    free(inventory->items);
    *inventory = (struct cr_inventory){0};
}

/* 0: none that is known. */
static unsigned kind_of(const struct cr_pem_block *block)
{
    if (cr_pem_is(block, "CERTIFICATE"))
        return CR_INVENTORY_CERTIFICATE;
    if (cr_pem_label_ends_with(block, "PRIVATE KEY"))
        return CR_INVENTORY_PRIVATE_KEY;
    return cr_pem_label_ends_with(block, "PUBLIC KEY") ? CR_INVENTORY_PUBLIC_KEY : 0;
}

static struct cr_inventory_item *add(struct cr_inventory *out, enum cr_inventory_kind kind, struct cr_error *err)
{
    if (out->len == CR_INVENTORY_MAX) {
        cr_error_set(err, CR_ERR_INVALID, "has more than %d certificates and keys", CR_INVENTORY_MAX);
        return NULL;
    }
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len] = (struct cr_inventory_item){.kind = kind};
    return &out->items[out->len++];
}

static bool add_certificate(const struct cr_certificate *cert, struct cr_inventory *out, struct cr_error *err)
{
    struct cr_inventory_item *item = add(out, CR_INVENTORY_CERTIFICATE, err);
    if (!item)
        return false;
    cr_certificate_key_digest(cert, item->key);
    cr_certificate_fingerprint(cert, item->fingerprint);
    cr_certificate_subject_digest(cert, item->subject);
    item->not_after_ms = cr_certificate_not_after_ms(cert);
    return true;
}

/* As Go writes it (x509.MarshalPKIXPublicKey), whatever form the point of a curve had in the text. */
static bool digest_key(EVP_PKEY *key, char out[CR_SHA256_HEX], struct cr_error *err)
{
    unsigned char *der = NULL;
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC)
        (void)EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "uncompressed");
    int len = i2d_PUBKEY(key, &der);
    if (len <= 0)
        return cr_openssl_fail(err, "a public key");
    cr_sha256_hex(der, (size_t)len, out);
    OPENSSL_free(der);
    return true;
}

static bool add_key(const struct cr_pem_block *block, enum cr_inventory_kind kind, struct cr_inventory *out,
                    struct cr_error *err)
{
    enum cr_material_problem problem;
    CR_CLEANUP(cr_pkey)
    EVP_PKEY *key = kind == CR_INVENTORY_PRIVATE_KEY ? cr_key_read_block(block, &problem, err)
                                                     : cr_key_read_public_block(block, err);
    if (!key)
        return false;
    struct cr_inventory_item *item = add(out, kind, err);
    return item && digest_key(key, item->key, err);
}

/* The certificates are read all at once, and stand where their blocks do. */
struct reading {
    unsigned kinds;
    struct cr_certificate *const *certs;
    size_t certs_len;
    size_t next;
    struct cr_inventory *out;
};

static bool take_block(struct reading *r, const struct cr_pem_block *block, struct cr_error *err)
{
    unsigned kind = kind_of(block);
    if (!(kind & r->kinds))
        return true;
    if (kind == CR_INVENTORY_CERTIFICATE)
        return r->next == r->certs_len || add_certificate(r->certs[r->next++], r->out, err);
    return add_key(block, (enum cr_inventory_kind)kind, r->out, err);
}

static bool take_all(struct reading *r, const struct cr_pem_input *in, struct cr_error *err)
{
    struct cr_pem_reader reader;
    struct cr_pem_block block;
    enum cr_pem_step step;
    cr_pem_begin(&reader, in->data, in->len);
    while ((step = cr_pem_next(&reader, &block, err)) == CR_PEM_BLOCK)
        if (!take_block(r, &block, err))
            return false;
    return step == CR_PEM_END;
}

/* How many blocks of all, and how many of certificates. */
static bool count(const struct cr_pem_input *in, size_t *blocks, size_t *certs, struct cr_error *err)
{
    struct cr_pem_reader reader;
    struct cr_pem_block block;
    enum cr_pem_step step;
    *blocks = *certs = 0;
    cr_pem_begin(&reader, in->data, in->len);
    while ((step = cr_pem_next(&reader, &block, err)) == CR_PEM_BLOCK) {
        ++*blocks;
        *certs += kind_of(&block) == CR_INVENTORY_CERTIFICATE;
    }
    return step == CR_PEM_END;
}

/* DER begins with a SEQUENCE of a two-byte length. */
static bool refuse_none(const struct cr_pem_input *in, struct cr_error *err)
{
    bool der = in->len > 2 && in->data[0] == '\x30' && in->data[1] == '\x82';
    return cr_error_set(err, CR_ERR_INVALID, "%s: PEM is expected",
                        !in->len ? "is empty"
                        : der    ? "is DER"
                                 : "has no PEM block");
}

bool cr_inventory_read(const struct cr_pem_input *in, unsigned kinds, struct cr_inventory *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    *out = (struct cr_inventory){0};
    size_t blocks = 0;
    size_t certs = 0;
    if (!count(in, &blocks, &certs, err))
        return false;
    if (!blocks)
        return refuse_none(in, err);
    struct reading r = {.kinds = kinds, .out = out};
    bool wanted = certs && (kinds & CR_INVENTORY_CERTIFICATE);
    CR_CLEANUP(cr_certificates)
    struct cr_certificates *read = wanted ? cr_certificates_read(in, CR_INVENTORY_MAX, err) : NULL;
    if (read) {
        r.certs = read->items;
        r.certs_len = read->len;
    }
    if ((!wanted || read) && take_all(&r, in, err))
        return true;
    cr_inventory_dispose(out);
    return false;
}
