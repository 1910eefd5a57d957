#include "pki/key.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/decoder.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "pki/key_kind.h"
#include "pki/pem.h"

static void pkey_cleanup(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* The forms of keys that are read. What OpenSSL 3.0 puts together to decode one (every decoder there is, asked by name)
 * takes it ten times as long as the decoding, so that is kept, as its own file store keeps it. */
enum form { PKCS8, SEC1, PKCS1, PUBLIC, FORMS };

static const struct {
    const char *label; /* NULL: never in PEM here */
    const char *structure;
    int selection;
} forms[FORMS] = {
    [PKCS8] = {"PRIVATE KEY", "PrivateKeyInfo", EVP_PKEY_KEYPAIR},    /* RFC 5208 */
    [SEC1] = {"EC PRIVATE KEY", "type-specific", EVP_PKEY_KEYPAIR},   /* RFC 5915 */
    [PKCS1] = {"RSA PRIVATE KEY", "type-specific", EVP_PKEY_KEYPAIR}, /* RFC 8017 */
    [PUBLIC] = {NULL, "SubjectPublicKeyInfo", EVP_PKEY_PUBLIC_KEY},   /* RFC 5280 */
};

/* The common types are tried alone before all that there are: half the work. */
enum type { EC, RSA_KEY, ANY, TYPES };

static const char *const type_names[TYPES] = {[EC] = "EC", [RSA_KEY] = "RSA", [ANY] = NULL};

static struct {
    pthread_mutex_t lock;
    struct decoder {
        OSSL_DECODER_CTX *ctx;
        EVP_PKEY *key; /* what it has made */
    } decoders[FORMS][TYPES];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum type type_of(const X509_ALGOR *algorithm)
{
    const ASN1_OBJECT *oid = NULL;
    X509_ALGOR_get0(&oid, NULL, NULL, algorithm);
    switch (OBJ_obj2nid(oid)) {
    case NID_X9_62_id_ecPublicKey:
        return EC;
    case NID_rsaEncryption:
        return RSA_KEY;
    default:
        return ANY;
    }
}

/* Locked. */
static EVP_PKEY *decode_as(enum form form, enum type type, const void *der, size_t len)
{
    const unsigned char *at = der;
    struct decoder *decoder = &known.decoders[form][type];
    if (!decoder->ctx)
        decoder->ctx = OSSL_DECODER_CTX_new_for_pkey(&decoder->key, "DER", forms[form].structure, type_names[type],
                                                     forms[form].selection, NULL, NULL);
    bool whole = decoder->ctx && OSSL_DECODER_from_data(decoder->ctx, &at, &len) && len == 0;
    EVP_PKEY *key = cr_steal(&decoder->key);
    if (whole)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

static EVP_PKEY *decode(enum form form, enum type type, const void *der, size_t len)
{
    pthread_mutex_lock(&known.lock);
    EVP_PKEY *key = decode_as(form, type, der, len);
    if (!key && type != ANY && (form == PKCS8 || form == PUBLIC))
        key = decode_as(form, ANY, der, len); /* a kind that shares the algorithm's name, as SM2 does */
    pthread_mutex_unlock(&known.lock);
    return key;
}

/* RFC 5480, section 2.1.1: a curve by its name. */
static int curve_of(const X509_ALGOR *algorithm)
{
    const void *parameter = NULL;
    int type = V_ASN1_UNDEF;
    X509_ALGOR_get0(NULL, &type, &parameter, algorithm);
    return type == V_ASN1_OBJECT ? OBJ_obj2nid(parameter) : NID_undef;
}

bool cr_key_is_decodable(const struct X509_algor_st *algorithm)
{
    int parameters = V_ASN1_UNDEF;
    X509_ALGOR_get0(NULL, &parameters, NULL, algorithm);
    return type_of(algorithm) != EC || parameters == V_ASN1_OBJECT; /* a curve's name, known or not */
}

struct evp_pkey_st *cr_key_decode_public(const struct X509_algor_st *algorithm, const void *der, size_t len)
{
    return cr_key_is_decodable(algorithm) ? decode(PUBLIC, type_of(algorithm), der, len) : NULL;
}

bool cr_key_has_public(const struct evp_pkey_st *key, const struct X509_algor_st *algorithm, const void *bits,
                       size_t len)
{
    char group[64];
    unsigned char point[256];
    size_t point_len = 0;
    int curve = type_of(algorithm) == EC ? curve_of(algorithm) : NID_undef;
    return curve != NID_undef && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, group, sizeof group, NULL) && OBJ_sn2nid(group) == curve &&
           EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &point_len) &&
           point_len == len && memcmp(point, bits, len) == 0;
}

static enum form form_of(const struct cr_pem_block *block)
{
    enum form form = 0;
    while (form < PUBLIC && !cr_pem_is(block, forms[form].label))
        form++;
    return form;
}

/* False: PKCS#8 says that it is of another kind, by that name. NULL in *key: it is corrupt. */
static bool decode_pkcs8(const struct cr_buf *der, EVP_PKEY **key, char name[CR_KEY_ALGORITHM_TEXT])
{
    const unsigned char *at = (const unsigned char *)der->data;
    const X509_ALGOR *algorithm = NULL;
    const ASN1_OBJECT *oid = NULL;
    PKCS8_PRIV_KEY_INFO *info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &at, (long)der->len);
    if (!info || !PKCS8_pkey_get0(&oid, NULL, NULL, &algorithm, info)) {
        PKCS8_PRIV_KEY_INFO_free(info);
        return true;
    }
    bool is_ours = cr_key_kind_signs(oid);
    if (is_ours)
        *key = decode(PKCS8, type_of(algorithm), der->data, der->len);
    else
        cr_key_algorithm_name(algorithm, name);
    PKCS8_PRIV_KEY_INFO_free(info);
    return is_ours;
}

static bool decode_private(enum form form, const struct cr_buf *der, EVP_PKEY **key, char name[CR_KEY_ALGORITHM_TEXT])
{
    if (form == PKCS8)
        return decode_pkcs8(der, key, name);
    *key = decode(form, form == SEC1 ? EC : RSA_KEY, der->data, der->len);
    return true;
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
    if (block->headers)
        return cr_error_set(err, CR_ERR_INVALID,
                            "block %zu has headers that are no encryption's: servers cannot load such a key",
                            block->number);
    enum form form = form_of(block);
    if (form == PUBLIC)
        return cr_error_set(err, CR_ERR_INVALID,
                            "block %zu is a %.*s, which is not supported: convert it to PKCS#8 "
                            "(openssl pkcs8 -topk8 -nocrypt)",
                            block->number, (int)(block->label_len < 40 ? block->label_len : 40), block->label);
    CR_CLEANUP(cr_buf) struct cr_buf der = {.secret = true};
    if (!cr_pem_decode(block, &der, err))
        return false;
    char name[CR_KEY_ALGORITHM_TEXT];
    if (!decode_private(form, &der, key, name))
        return cr_error_set(
            err, CR_ERR_INVALID,
            "block %zu is a key for %s, with which certificates are not signed, or which OpenSSL %s does "
            "not have: use RSA, ECDSA, Ed25519, Ed448 or ML-DSA",
            block->number, name, OPENSSL_VERSION_STR);
    if (*key)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is corrupt: it holds no key of that form",
                        block->number, (int)block->label_len, block->label, block->line);
}

struct evp_pkey_st *cr_key_read_block(const struct cr_pem_block *block, enum cr_material_problem *problem,
                                      struct cr_error *err)
{
    EVP_PKEY *key = NULL;
    *problem = CR_MATERIAL_UNPARSABLE;
    if (!read_block(block, &key, problem, err))
        return NULL;
    *problem = CR_MATERIAL_OK;
    return key;
}

struct evp_pkey_st *cr_key_read_public_block(const struct cr_pem_block *block, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf der = {.secret = true};
    if (!cr_pem_decode(block, &der, err))
        return NULL;
    EVP_PKEY *key = decode(PUBLIC, ANY, der.data, der.len);
    if (!key)
        cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is corrupt: it holds no public key",
                     block->number, (int)(block->label_len < 40 ? block->label_len : 40), block->label, block->line);
    return key;
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
    if (in->len > CR_KEY_TEXT_MAX) {
        *problem = CR_MATERIAL_TOO_COSTLY;
        cr_error_set(err, CR_ERR_INVALID, "has %zu bytes, more than the %d that are read of a private key", in->len,
                     CR_KEY_TEXT_MAX);
        return NULL;
    }
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

/* --- whether the halves belong together --- */

static bool verify(EVP_MD_CTX *ctx, EVP_PKEY *key, const unsigned char *signature, size_t len,
                   const unsigned char *text, size_t text_len)
{
    EVP_MD_CTX_reset(ctx);
    return EVP_DigestVerifyInit_ex(ctx, NULL, NULL, NULL, NULL, key, NULL) == 1 &&
           EVP_DigestVerify(ctx, signature, len, text, text_len) == 1;
}

static bool is_within(const EVP_PKEY *key, const char *name, int bits)
{
    BIGNUM *value = NULL;
    bool within = !EVP_PKEY_get_bn_param(key, name, &value) || BN_num_bits(value) <= bits;
    BN_clear_free(value);
    return within;
}

/* What one signature costs is said by all numbers of the file, and only the modulus is the certificate's. */
static bool is_as_large_as_it_says(const EVP_PKEY *key)
{
    static const char *const halves[] = {OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2,
                                         OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2,
                                         OSSL_PKEY_PARAM_RSA_COEFFICIENT1};
    int bits = EVP_PKEY_get_bits(key);
    for (size_t i = 0; i < cr_array_len(halves); i++)
        if (!is_within(key, halves[i], bits))
            return false;
    return is_within(key, OSSL_PKEY_PARAM_RSA_D, bits);
}

bool cr_key_signs_for(struct evp_pkey_st *key, struct evp_pkey_st *public_key)
{
    enum { LONGEST = 4627 /* bytes, of ML-DSA-87: FIPS 204, table 2 */ };
    static const unsigned char text[] = "certroll";
    unsigned char signature[LONGEST];
    size_t len = sizeof signature;
    bool is_rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA || EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA_PSS;
    if (is_rsa && EVP_PKEY_get_bits(key) > CR_KEY_RSA_PROVED_BITS_MAX)
        return true;
    if (!cr_key_is_affordable(key, NULL) || (is_rsa && !is_as_large_as_it_says(key)))
        return false;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool signs = ctx && EVP_DigestSignInit_ex(ctx, NULL, NULL, NULL, NULL, key, NULL) == 1 &&
                 EVP_DigestSign(ctx, signature, &len, text, sizeof text) == 1 &&
                 verify(ctx, public_key, signature, len, text, sizeof text);
    EVP_MD_CTX_free(ctx);
    return signs;
}

/* --- what they cost --- */

static bool refuse_bits(const char *kind, int bits, int most, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "%s of %d bits costs too much: at most %d are used", kind, bits, most);
}

static bool is_affordable_rsa(const EVP_PKEY *key, struct cr_error *err)
{
    BIGNUM *exponent = NULL;
    if (EVP_PKEY_get_bits(key) > CR_KEY_RSA_BITS_MAX)
        return refuse_bits("an RSA key", EVP_PKEY_get_bits(key), CR_KEY_RSA_BITS_MAX, err);
    int bits = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) ? BN_num_bits(exponent) : 0;
    BN_free(exponent);
    return bits <= CR_KEY_RSA_EXPONENT_BITS_MAX ||
           refuse_bits("an RSA key with a public exponent", bits, CR_KEY_RSA_EXPONENT_BITS_MAX, err);
}

static bool is_affordable_ec(const EVP_PKEY *key, struct cr_error *err)
{
    char text[64];
    int is_explicit = 0;
    if (!EVP_PKEY_get_group_name(key, text, sizeof text, NULL) ||
        (EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &is_explicit) && is_explicit))
        return cr_error_set(err, CR_ERR_INVALID,
                            "an ECDSA key on a curve without a name (explicit parameters, RFC 5480, section 2.1.1) is "
                            "not used");
    if (!EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_EC_FIELD_TYPE, text, sizeof text, NULL) ||
        strcmp(text, SN_X9_62_prime_field) != 0)
        return cr_error_set(err, CR_ERR_INVALID, "an ECDSA key on a curve over a binary field costs too much");
    int bits = EVP_PKEY_get_bits(key);
    return bits <= CR_KEY_EC_BITS_MAX || refuse_bits("an ECDSA key", bits, CR_KEY_EC_BITS_MAX, err);
}

bool cr_key_is_affordable(const struct evp_pkey_st *key, struct cr_error *err)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        return is_affordable_rsa(key, err);
    case EVP_PKEY_EC:
        return is_affordable_ec(key, err);
    case EVP_PKEY_DSA:
        return EVP_PKEY_get_bits(key) <= CR_KEY_DSA_BITS_MAX ||
               refuse_bits("a DSA key", EVP_PKEY_get_bits(key), CR_KEY_DSA_BITS_MAX, err);
    default: /* Ed25519, Ed448 and each ML-DSA have one size; what cannot sign fails at once */
        return !cr_key_is_slh_dsa(key) ||
               cr_error_set(err, CR_ERR_INVALID, "a key of %s costs too much", EVP_PKEY_get0_type_name(key));
    }
}

/* --- what they are called --- */

void cr_key_algorithm_name(const struct X509_algor_st *algorithm, char out[CR_KEY_ALGORITHM_TEXT])
{
    char number[CR_KEY_ALGORITHM_TEXT / 2] = "";
    const ASN1_OBJECT *oid = NULL;
    X509_ALGOR_get0(&oid, NULL, NULL, algorithm);
    (void)OBJ_obj2txt(number, sizeof number, oid, 1);
    const char *name = cr_key_kind_ml_dsa(oid);
    if (!name && OBJ_obj2nid(oid) != NID_undef)
        name = OBJ_nid2sn(OBJ_obj2nid(oid));
    (void)snprintf(out, CR_KEY_ALGORITHM_TEXT, "%.40s%s%s%s", name ? name : number, name ? " (" : "",
                   name ? number : "", name ? ")" : "");
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
