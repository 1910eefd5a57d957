#include "pki/key.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/decoder.h>
#include <openssl/evp.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "pki/pem.h"

static void pkey_cleanup(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* The forms of a private key that are read. What OpenSSL 3.0 puts together to decode one (every decoder there is, asked
 * by name) takes it ten times as long as the decoding, so that is kept, as its own file store keeps it. */
struct form {
    const char *label;
    const char *structure;
    const char *type; /* NULL: any */
    OSSL_DECODER_CTX *decoder;
    EVP_PKEY *key; /* what the decoder has made */
};

static struct {
    pthread_mutex_t lock;
    struct form forms[3];
} known = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .forms = {{.label = "PRIVATE KEY", .structure = "PrivateKeyInfo"},                    /* PKCS#8, RFC 5208 */
              {.label = "EC PRIVATE KEY", .structure = "type-specific", .type = "EC"},    /* SEC1, RFC 5915 */
              {.label = "RSA PRIVATE KEY", .structure = "type-specific", .type = "RSA"}}, /* PKCS#1, RFC 8017 */
};

static struct form *form_of(const struct cr_pem_block *block)
{
    for (size_t i = 0; i < cr_array_len(known.forms); i++)
        if (cr_pem_is(block, known.forms[i].label))
            return &known.forms[i];
    return NULL;
}

/* Locked. */
static EVP_PKEY *decode(struct form *form, const struct cr_buf *der)
{
    const unsigned char *at = (const unsigned char *)der->data;
    size_t left = der->len;
    if (!form->decoder)
        form->decoder =
            OSSL_DECODER_CTX_new_for_pkey(&form->key, "DER", form->structure, form->type, EVP_PKEY_KEYPAIR, NULL, NULL);
    bool whole = form->decoder && OSSL_DECODER_from_data(form->decoder, &at, &left) && left == 0;
    EVP_PKEY *key = cr_steal(&form->key);
    if (whole)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

static EVP_PKEY *decode_der(struct form *form, const struct cr_buf *der)
{
    pthread_mutex_lock(&known.lock);
    EVP_PKEY *key = decode(form, der);
    pthread_mutex_unlock(&known.lock);
    return key;
}

static bool is_encrypted(const struct cr_pem_block *block)
{
    return block->encrypted || cr_pem_is(block, "ENCRYPTED PRIVATE KEY");
}

static bool read_block(const struct cr_pem_block *block, EVP_PKEY **key, enum cr_material_problem *problem,
                       struct cr_error *err)
{
    if (is_encrypted(block)) {
        *problem = CR_MATERIAL_ENCRYPTED;
        return cr_error_set(err, CR_ERR_INVALID,
                            "block %zu is an encrypted key, and there is nobody to ask for its "
                            "passphrase: store it decrypted (openssl pkey)",
                            block->number);
    }
    struct form *form = form_of(block);
    if (!form)
        return cr_error_set(err, CR_ERR_INVALID,
                            "block %zu is a %.*s, which is not supported: convert it to PKCS#8 "
                            "(openssl pkcs8 -topk8 -nocrypt)",
                            block->number, (int)(block->label_len < 40 ? block->label_len : 40), block->label);
    CR_CLEANUP(cr_buf) struct cr_buf der = {.secret = true};
    if (!cr_pem_decode(block, &der, err))
        return false;
    *key = decode_der(form, &der);
    if (*key)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is corrupt: it holds no key of that form",
                        block->number, (int)block->label_len, block->label, block->line);
}

/* One step through the blocks. */
static bool take_block(const struct cr_pem_block *block, EVP_PKEY **key, enum cr_material_problem *problem,
                       struct cr_error *err)
{
    if (!cr_pem_label_ends_with(block, "PRIVATE KEY"))
        return true;
    if (*key)
        return cr_error_set(err, CR_ERR_INVALID, "block %zu is a second private key: which one is meant?",
                            block->number);
    return read_block(block, key, problem, err);
}

static bool read_all(struct cr_pem_reader *reader, EVP_PKEY **key, enum cr_material_problem *problem,
                     struct cr_error *err)
{
    struct cr_pem_block block;
    enum cr_pem_step step;
    while ((step = cr_pem_next(reader, &block, err)) == CR_PEM_BLOCK)
        if (!take_block(&block, key, problem, err))
            return false;
    return step == CR_PEM_END;
}

struct evp_pkey_st *cr_key_read(const struct cr_pem_input *in, enum cr_material_problem *problem, struct cr_error *err)
{
    struct cr_pem_reader reader;
    __attribute__((cleanup(pkey_cleanup))) EVP_PKEY *key = NULL;
    *problem = CR_MATERIAL_UNPARSABLE;
    cr_pem_begin(&reader, in->data, in->len);
    if (!read_all(&reader, &key, problem, err))
        return NULL;
    if (!key) {
        cr_error_set(err, CR_ERR_INVALID,
                     reader.blocks ? "has no private key among its PEM blocks"
                                   : "has no PEM block: a private key in PEM is expected");
        return NULL;
    }
    *problem = CR_MATERIAL_OK;
    return cr_steal(&key);
}

/* The names people use for curves, by those of OpenSSL. */
static const char *curve_name(const char *group)
{
    static const char *const names[][2] = {
        {"prime256v1", "P256"}, {"secp384r1", "P384"}, {"secp521r1", "P521"}, {"secp224r1", "P224"}};
    for (size_t i = 0; i < cr_array_len(names); i++)
        if (strcmp(group, names[i][0]) == 0)
            return names[i][1];
    return group;
}

void cr_key_type(const struct evp_pkey_st *key, char out[CR_KEY_TYPE])
{
    char group[64];
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        (void)snprintf(out, CR_KEY_TYPE, "RSA-%d", EVP_PKEY_get_bits(key));
        break;
    case EVP_PKEY_RSA_PSS:
        (void)snprintf(out, CR_KEY_TYPE, "RSAPSS-%d", EVP_PKEY_get_bits(key));
        break;
    case EVP_PKEY_EC:
        /* a curve has no name when its parameters are written out */
        (void)snprintf(out, CR_KEY_TYPE, "ECDSA-%.9s",
                       EVP_PKEY_get_group_name(key, group, sizeof group, NULL) ? curve_name(group) : "explicit");
        break;
    case EVP_PKEY_ED25519:
        (void)snprintf(out, CR_KEY_TYPE, "Ed25519");
        break;
    case EVP_PKEY_ED448:
        (void)snprintf(out, CR_KEY_TYPE, "Ed448");
        break;
    default:
        (void)snprintf(out, CR_KEY_TYPE, "%.15s", cr_or_empty(EVP_PKEY_get0_type_name(key)));
        break;
    }
}
