#include "pki/issue.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/alt_name.h"
#include "pki/authority_internal.h"
#include "pki/builder.h"
#include "pki/private_key_internal.h"
#include "pki/x509.h"

void cr_issued_dispose(struct cr_issued *issued)
{
    free(issued->pem);
    *issued = (struct cr_issued){0};
}

/* --- names --- */

typedef bool (*add_name)(struct stack_st_GENERAL_NAME *, const char *, struct cr_error *);

static void names_cleanup(GENERAL_NAMES **names)
{
    GENERAL_NAMES_free(*names);
}

static bool is_known(GENERAL_NAMES *names, GENERAL_NAME *name)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(names, i), name) == 0)
            return true;
    return false;
}

/* Compared as they are written, so that "A.example" and "a.example" are one. */
static void drop_duplicate(GENERAL_NAMES *names)
{
    GENERAL_NAME *last = sk_GENERAL_NAME_pop(names);
    if (is_known(names, last) || sk_GENERAL_NAME_push(names, last) <= 0)
        GENERAL_NAME_free(last);
}

static bool add_names(GENERAL_NAMES *names, const struct cr_strvec *list, add_name add, struct cr_error *err)
{
    for (size_t i = 0; list && i < list->len; i++) {
        if (!add(names, list->items[i], err))
            return false;
        drop_duplicate(names);
        if (sk_GENERAL_NAME_num(names) > CR_ALT_NAMES_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "a certificate has at most %d names here", CR_ALT_NAMES_MAX);
    }
    return true;
}

static bool collect_names(const struct cr_leaf_spec *spec, GENERAL_NAMES *names, struct cr_error *err)
{
    if (!names)
        return cr_error_set(err, CR_ERR_INTERNAL, "no memory for names");
    return add_names(names, spec->dns_names, cr_alt_name_add_dns, err) &&
           add_names(names, spec->addresses, cr_alt_name_add_address, err) &&
           add_names(names, spec->uris, cr_alt_name_add_uri, err) &&
           add_names(names, spec->emails, cr_alt_name_add_email, err);
}

/* --- the certificate --- */

/* A server is looked for by one of these. */
static bool has_place(const struct cr_leaf_spec *spec)
{
    const struct cr_strvec *const lists[] = {spec->dns_names, spec->addresses, spec->uris};
    for (size_t i = 0; i < cr_array_len(lists); i++)
        if (lists[i] && lists[i]->len)
            return true;
    return false;
}

static bool check_spec(const struct cr_leaf_spec *spec, int names, struct cr_error *err)
{
    if (!spec->usages || spec->usages & ~(unsigned)(CR_LEAF_SERVER | CR_LEAF_CLIENT))
        return cr_error_set(err, CR_ERR_INVALID, "a leaf is for a server, a client or both");
    if (spec->usages & CR_LEAF_SERVER && !has_place(spec))
        return cr_error_set(err, CR_ERR_INVALID,
                            "a server's certificate needs a DNS name, an IP address or a URI: its common "
                            "name is looked at by nobody (RFC 9525)");
    if (!names && !spec->common_name)
        return cr_error_set(err, CR_ERR_INVALID, "a certificate needs a name: a common name or an alternative one");
    if (spec->duration_ms <= 0 || spec->duration_ms > INT64_MAX / 2)
        return cr_error_set(err, CR_ERR_INVALID,
                            "the duration of a leaf must be positive, and end before the year 9999");
    return true;
}

static bool add_usages(X509 *cert, unsigned usages, struct cr_error *err)
{
    EXTENDED_KEY_USAGE *list = sk_ASN1_OBJECT_new_null();
    /* Objects of OpenSSL's own table: shared, and nothing to free. */
    bool whole = list && (!(usages & CR_LEAF_SERVER) || sk_ASN1_OBJECT_push(list, OBJ_nid2obj(NID_server_auth)) > 0) &&
                 (!(usages & CR_LEAF_CLIENT) || sk_ASN1_OBJECT_push(list, OBJ_nid2obj(NID_client_auth)) > 0);
    bool added = cr_builder_add(cert, NID_ext_key_usage, whole ? list : NULL, false, err);
    sk_ASN1_OBJECT_free(list);
    return added;
}

static bool add_extensions(X509 *cert, const struct cr_leaf_spec *spec, GENERAL_NAMES *names, struct cr_error *err)
{
    bool subject = X509_NAME_entry_count(X509_get_subject_name(cert)) > 0;
    return cr_builder_basic_constraints(cert, false, CR_PATH_LENGTH_NONE, err) &&
           cr_builder_key_usage(cert, false, err) && add_usages(cert, spec->usages, err) &&
           (!sk_GENERAL_NAME_num(names) || cr_builder_add(cert, NID_subject_alt_name, names, !subject, err));
}

static X509 *build(const struct cr_authority *authority, const struct cr_leaf_spec *spec, EVP_PKEY *key,
                   const struct cr_validity *validity, struct cr_error *err)
{
    CR_CLEANUP(cr_x509_name) X509_NAME *subject = X509_NAME_new();
    __attribute__((cleanup(names_cleanup))) GENERAL_NAMES *names = GENERAL_NAMES_new();
    if (!subject || !cr_builder_subject(subject, spec->common_name, spec->organizations, err) ||
        !collect_names(spec, names, err) || !check_spec(spec, sk_GENERAL_NAME_num(names), err))
        return NULL;
    X509 *issuer = sk_X509_value(authority->chain, 0);
    CR_CLEANUP(cr_x509) X509 *cert = cr_builder_new(key, subject, issuer, validity, err);
    if (!cert || !add_extensions(cert, spec, names, err) || !cr_builder_sign(cert, authority->key, err))
        return NULL;
    return cr_steal(&cert);
}

/* --- what it may be --- */

/* Name constraints and extended usages of the CAs above hold for the leaf: better found here than by a peer. */
static bool verify_for(const struct cr_authority *authority, X509 *leaf, int purpose, int64_t now_ms,
                       struct cr_error *err)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    STACK_OF(X509) *roots = sk_X509_new_null();
    X509 *top = sk_X509_value(authority->chain, sk_X509_num(authority->chain) - 1);
    bool ready = ctx && roots && sk_X509_push(roots, top) > 0 && X509_STORE_CTX_init(ctx, NULL, leaf, authority->chain);
    bool verified = false;
    if (ready) {
        X509_STORE_CTX_set0_trusted_stack(ctx, roots);
        X509_STORE_CTX_set_purpose(ctx, purpose);
        X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)(now_ms / 1000));
        X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
        verified = X509_verify_cert(ctx) == 1;
    }
    if (!verified)
        cr_error_set(err, CR_ERR_INVALID, "a leaf of this CA would be refused: %s",
                     ready ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)) : "no memory to verify it");
    X509_STORE_CTX_free(ctx);
    sk_X509_free(roots);
    return verified;
}

static bool verify(const struct cr_authority *authority, X509 *leaf, unsigned usages, int64_t now_ms,
                   struct cr_error *err)
{
    return (!(usages & CR_LEAF_SERVER) || verify_for(authority, leaf, X509_PURPOSE_SSL_SERVER, now_ms, err)) &&
           (!(usages & CR_LEAF_CLIENT) || verify_for(authority, leaf, X509_PURPOSE_SSL_CLIENT, now_ms, err));
}

static bool check_authority(const struct cr_authority *authority, int64_t now_ms, struct cr_error *err)
{
    char at[CR_TIME_TEXT];
    if (authority->not_after_ms > now_ms)
        return true;
    cr_time_format(authority->not_after_ms, at);
    return cr_error_set(err, CR_ERR_INVALID, "the CA, or one above it, expired at %s", at);
}

/* --- what is handed out --- */

static bool write_chain(const struct cr_authority *authority, X509 *leaf, struct cr_buf *pem, struct cr_error *err)
{
    if (!cr_x509_write(leaf, pem, err))
        return false;
    for (int i = 0; i < sk_X509_num(authority->chain); i++) {
        X509 *ca = sk_X509_value(authority->chain, i);
        if (!cr_x509_is_root(ca) && !cr_x509_write(ca, pem, err))
            return false;
    }
    return true;
}

bool cr_issue_leaf(const struct cr_authority *authority, const struct cr_leaf_spec *spec,
                   const struct cr_private_key *key, int64_t now_ms, struct cr_issued *out, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_buf) struct cr_buf pem = {0};
    *out = (struct cr_issued){0};
    if (!check_authority(authority, now_ms, err))
        return false;
    bool clamped = spec->duration_ms > authority->not_after_ms - now_ms;
    const struct cr_validity validity = {now_ms - CR_BACKDATED_MS,
                                         clamped ? authority->not_after_ms : now_ms + spec->duration_ms};
    CR_CLEANUP(cr_x509) X509 *leaf = build(authority, spec, key->pkey, &validity, err);
    if (!leaf || !verify(authority, leaf, spec->usages, now_ms, err) || !write_chain(authority, leaf, &pem, err))
        return false;
    *out = (struct cr_issued){cr_buf_steal(&pem), cr_x509_not_before_ms(leaf), cr_x509_not_after_ms(leaf), clamped};
    return true;
}
