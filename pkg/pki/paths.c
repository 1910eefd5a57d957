#include "pki/paths.h"

#include <stdlib.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/certificate.h"
#include "pki/key.h"
#include "pki/openssl_internal.h"
#include "pki/x509.h"

struct candidate {
    const X509_NAME *subject;
    const X509_NAME *issuer;
    X509 *x509;   /* borrowed; NULL when it cannot stand above the leaf, or OpenSSL cannot read it */
    bool reached; /* by names from the leaf */
    bool between;
};

struct cr_paths {
    X509 *leaf; /* borrowed */
    struct candidate *items;
    size_t len;
    STACK_OF(X509) * between; /* borrowed certificates */
    size_t reached;
    size_t signatures;
    size_t name_steps_each; /* of one verification */
    size_t name_steps;
};

void cr_paths_free(struct cr_paths *paths)
{
    if (!paths)
        return;
    sk_X509_free(paths->between);
    free(paths->items);
    free(paths);
}

size_t cr_paths_signatures(const struct cr_paths *paths)
{
    return paths->signatures;
}

/* --- what may stand above the leaf, by names --- */

static struct candidate candidate_of(const struct cr_paths_above *above)
{
    if (above->cert)
        return (struct candidate){.subject = cr_certificate_subject(above->cert),
                                  .issuer = cr_certificate_issuer(above->cert),
                                  .between = above->between};
    return (struct candidate){.subject = X509_get_subject_name(above->x509),
                              .issuer = X509_get_issuer_name(above->x509),
                              .between = above->between};
}

static bool reach(struct cr_paths *paths, struct candidate *one, struct cr_error *err)
{
    one->reached = true;
    if (++paths->reached <= CR_PATHS_CERTIFICATES_MAX)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "more than %d certificates may stand above the leaf, by their names",
                        CR_PATHS_CERTIFICATES_MAX);
}

/* All that are called so. */
static bool reach_name(struct cr_paths *paths, const X509_NAME *name, struct cr_error *err)
{
    for (size_t i = 0; i < paths->len; i++) {
        struct candidate *one = &paths->items[i];
        if (!one->reached && X509_NAME_cmp(one->subject, name) == 0 && !reach(paths, one, err))
            return false;
    }
    return true;
}

/* A leaf that is trusted itself is its own anchor. */
static bool reach_copies(struct cr_paths *paths, struct cr_error *err)
{
    const X509_NAME *subject = X509_get_subject_name(paths->leaf);
    const X509_NAME *issuer = X509_get_issuer_name(paths->leaf);
    for (size_t i = 0; i < paths->len; i++) {
        struct candidate *one = &paths->items[i];
        if (!one->reached && X509_NAME_cmp(one->subject, subject) == 0 && X509_NAME_cmp(one->issuer, issuer) == 0 &&
            !reach(paths, one, err))
            return false;
    }
    return true;
}

/* Breadth first; each that is reached is asked for its issuers once. */
static bool reach_all(struct cr_paths *paths, struct cr_error *err)
{
    cr_autofree bool *asked = cr_calloc(paths->len + 1, sizeof *asked);
    if (!reach_copies(paths, err) || !reach_name(paths, X509_get_issuer_name(paths->leaf), err))
        return false;
    for (size_t i = 0; i < paths->len; i++) {
        if (!paths->items[i].reached || asked[i])
            continue;
        size_t before = paths->reached;
        asked[i] = true;
        if (!reach_name(paths, paths->items[i].issuer, err))
            return false;
        if (paths->reached > before)
            i = (size_t)-1; /* some may stand in front of this one */
    }
    return true;
}

/* --- what they cost --- */

static bool check_size(X509 *cert, struct cr_error *err)
{
    int len = i2d_X509(cert, NULL);
    if (len <= CR_PATHS_CERTIFICATE_BYTES_MAX)
        return true;
    return cr_error_set(err, CR_ERR_INVALID,
                        "a certificate of the chain has %d bytes, more than the %d that are verified", len,
                        CR_PATHS_CERTIFICATE_BYTES_MAX);
}

static size_t extension_bytes(const X509 *cert, int nid)
{
    int at = X509_get_ext_by_NID(cert, nid, -1);
    const X509_EXTENSION *found = at < 0 ? NULL : X509_get_ext(cert, at);
    return found ? (size_t)ASN1_STRING_length(X509_EXTENSION_get_data((X509_EXTENSION *)(uintptr_t)found)) : 0;
}

static size_t name_bytes(X509 *cert)
{
    int subject = i2d_X509_NAME(X509_get_subject_name(cert), NULL);
    return extension_bytes(cert, NID_subject_alt_name) + (subject > 0 ? (size_t)subject : 0);
}

/* Each CA's constraints are compared with the names of everybody below it, byte by byte. */
static void count_name_steps(struct cr_paths *paths)
{
    size_t constraints = 0;
    size_t names = name_bytes(paths->leaf);
    for (size_t i = 0; i < paths->len; i++) {
        constraints += paths->items[i].x509 ? extension_bytes(paths->items[i].x509, NID_name_constraints) : 0;
        names += paths->items[i].x509 ? name_bytes(paths->items[i].x509) : 0;
    }
    paths->name_steps_each = names * constraints; /* each at most 64 times 64 KiB */
}

/* One whose key OpenSSL does not know verifies nothing. */
static bool open_one(struct cr_paths *paths, struct candidate *one, const struct cr_paths_above *above,
                     struct cr_error *err)
{
    X509 *x509 = above->x509 ? above->x509 : cr_certificate_x509(above->cert);
    const EVP_PKEY *key = x509 ? X509_get0_pubkey(x509) : NULL;
    if (!key)
        return true;
    if (!check_size(x509, err) || !cr_key_is_affordable(key, err))
        return false;
    one->x509 = x509;
    return !one->between || sk_X509_push(paths->between, x509) > 0
               ? true
               : cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
}

static bool open_reached(struct cr_paths *paths, const struct cr_paths_above *above, struct cr_error *err)
{
    paths->between = sk_X509_new_null();
    if (!paths->between)
        return cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
    for (size_t i = 0; i < paths->len; i++)
        if (paths->items[i].reached && !open_one(paths, &paths->items[i], &above[i], err))
            return false;
    return true;
}

struct cr_paths *cr_paths_new(struct x509_st *leaf, const struct cr_paths_above *above, size_t len,
                              struct cr_error *err)
{
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_new(struct cr_paths);
    *paths = (struct cr_paths){.leaf = leaf, .items = cr_calloc(len + 1, sizeof *paths->items), .len = len};
    for (size_t i = 0; i < len; i++)
        paths->items[i] = candidate_of(&above[i]);
    if (!check_size(leaf, err) || !reach_all(paths, err) || !open_reached(paths, above, err))
        return NULL;
    count_name_steps(paths);
    return cr_steal(&paths);
}

size_t cr_paths_sent(const struct stack_st_X509 *chain)
{
    return (size_t)sk_X509_num(chain) - 1;
}

struct cr_paths *cr_paths_of_chain(struct stack_st_X509 *chain, struct stack_st_X509 *anchors, bool between,
                                   struct cr_error *err)
{
    size_t sent = cr_paths_sent(chain);
    size_t len = sent + (size_t)(anchors ? sk_X509_num(anchors) : 0);
    cr_autofree struct cr_paths_above *above = cr_calloc(len + 1, sizeof *above);
    for (size_t i = 0; i < sent; i++)
        above[i] = (struct cr_paths_above){.x509 = sk_X509_value(chain, (int)i + 1), .between = true};
    for (size_t i = sent; i < len; i++)
        above[i] = (struct cr_paths_above){.x509 = sk_X509_value(anchors, (int)(i - sent)), .between = between};
    return cr_paths_new(sk_X509_value(chain, 0), above, len, err);
}

/* --- signatures --- */

static bool may_check(const struct cr_paths *paths, struct cr_error *err)
{
    if (paths->signatures < CR_PATHS_SIGNATURES_MAX)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "more than %d signatures would have to be checked for one leaf",
                        CR_PATHS_SIGNATURES_MAX);
}

static bool may_compare_names(struct cr_paths *paths, struct cr_error *err)
{
    paths->name_steps += paths->name_steps_each;
    if (paths->name_steps <= CR_PATHS_NAME_STEPS_MAX)
        return true;
    return cr_error_set(err, CR_ERR_INVALID,
                        "names and name constraints above the leaf would take more than %d steps to compare",
                        CR_PATHS_NAME_STEPS_MAX);
}

/* Lets a certificate of an issuer whose clock is ahead of ours through. The time to check at comes from the
 * parameters, so that no state is shared. */
static int tolerate_skew(int ok, X509_STORE_CTX *ctx)
{
    if (ok || X509_STORE_CTX_get_error(ctx) != X509_V_ERR_CERT_NOT_YET_VALID)
        return ok;
    time_t latest = X509_VERIFY_PARAM_get_time(X509_STORE_CTX_get0_param(ctx)) + CR_CLOCK_SKEW_MS / 1000;
    const X509 *cert = X509_STORE_CTX_get_current_cert(ctx);
    return cert && X509_cmp_time(X509_get0_notBefore(cert), &latest) < 0; /* equal is -1 */
}

static void set_time(X509_STORE_CTX *ctx, const X509 *leaf, const X509 *anchor, enum cr_paths_time when, int64_t at_ms)
{
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
    if (when == CR_PATHS_AT_NO_TIME) {
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
        return;
    }
    if (when == CR_PATHS_WHEN_BOTH)
        at_ms = cr_x509_when_valid(leaf, anchor, at_ms);
    else
        X509_STORE_CTX_set_verify_cb(ctx, tolerate_skew);
    X509_VERIFY_PARAM_set_time(param, (time_t)(at_ms / 1000));
}

static size_t index_of(const struct cr_paths *paths, const X509 *x509, size_t otherwise)
{
    for (size_t i = 0; i < paths->len; i++)
        if (paths->items[i].x509 == x509)
            return i;
    return otherwise;
}

static bool verify(struct cr_paths *paths, X509_STORE_CTX *ctx, STACK_OF(X509) * trusted, enum cr_paths_time when,
                   int64_t at_ms, size_t *issuer)
{
    if (!X509_STORE_CTX_init(ctx, NULL, paths->leaf, paths->between))
        return false;
    X509_STORE_CTX_set0_trusted_stack(ctx, trusted);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    set_time(ctx, paths->leaf, sk_X509_value(trusted, 0), when, at_ms);
    bool verifies = X509_verify_cert(ctx) == 1;
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);
    /* At most one for each: signatures are checked once the chain ends in the anchor. */
    paths->signatures += chain ? (size_t)sk_X509_num(chain) : 0;
    if (verifies && issuer && sk_X509_num(chain) > 1)
        *issuer = index_of(paths, sk_X509_value(chain, 1), *issuer);
    return verifies;
}

bool cr_paths_verify(struct cr_paths *paths, size_t anchor, enum cr_paths_time when, int64_t at_ms, bool *verifies,
                     size_t *issuer, struct cr_error *err)
{
    *verifies = false;
    X509 *x509 = paths->items[anchor].x509;
    if (!x509)
        return true;
    if (!may_check(paths, err) || !may_compare_names(paths, err))
        return false;
    STACK_OF(X509) *trusted = sk_X509_new_null();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    *verifies = trusted && ctx && sk_X509_push(trusted, x509) > 0 && verify(paths, ctx, trusted, when, at_ms, issuer);
    X509_STORE_CTX_free(ctx);
    sk_X509_free(trusted);
    return true;
}

/* By the key of the one with that subject. */
static bool is_signed_by(struct cr_paths *paths, const X509_NAME *subject, EVP_PKEY *key)
{
    if (X509_NAME_cmp(X509_get_issuer_name(paths->leaf), subject) != 0)
        return false;
    paths->signatures++;
    return X509_verify(paths->leaf, key) == 1;
}

static bool is_self_signed(struct cr_paths *paths)
{
    EVP_PKEY *key = X509_get0_pubkey(paths->leaf);
    return key && cr_key_is_affordable(key, NULL) && is_signed_by(paths, X509_get_subject_name(paths->leaf), key);
}

bool cr_paths_find_signer(struct cr_paths *paths, size_t *signer, struct cr_error *err)
{
    *signer = is_self_signed(paths) ? CR_PATHS_ITSELF : CR_PATHS_NOBODY;
    for (size_t i = 0; *signer == CR_PATHS_NOBODY && i < paths->len; i++) {
        const struct candidate *one = &paths->items[i];
        if (one->x509 && !may_check(paths, err))
            return false;
        if (one->x509 && is_signed_by(paths, one->subject, X509_get0_pubkey(one->x509)))
            *signer = i;
    }
    return true;
}
