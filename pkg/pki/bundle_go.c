#include "pki/bundle_go.h"

#include <string.h>

#include <openssl/x509v3.h>

#include "pki/openssl_internal.h"
#include "pki/signers.h"
#include "pki/x509.h"

enum { CHECKS_MAX = 100, WAY_MAX = 34 /* more than is ever sent */ };

struct search {
    STACK_OF(X509) * sent; /* the leaf, then what may stand between */
    STACK_OF(X509) * trusted;
    uint32_t purpose; /* of XKU_*; 0: any */
    int64_t at_ms;
    struct cr_signers *signers;
    size_t checks;
    X509 *way[WAY_MAX]; /* from the leaf up */
    int len;
};

static bool is_valid(const struct search *s, X509 *cert)
{
    return !(X509_get_extension_flags(cert) & EXFLAG_CRITICAL) && s->at_ms >= cr_x509_not_before_ms(cert) &&
           s->at_ms <= cr_x509_not_after_ms(cert);
}

/* The same name and key: another certificate of one that is below. */
static bool is_on_the_way(const struct search *s, X509 *cert)
{
    for (int i = 0; i < s->len; i++)
        if (cr_x509_has_name(X509_get_subject_name(s->way[i]), X509_get_subject_name(cert)) &&
            EVP_PKEY_eq(X509_get0_pubkey(s->way[i]), X509_get0_pubkey(cert)) == 1)
            return true;
    return false;
}

/* An old one (version 1) has no constraints; it may be a root. */
static bool may_sign(const struct search *s, X509 *ca, bool root)
{
    uint32_t flags = X509_get_extension_flags(ca);
    bool old = X509_get_version(ca) != X509_VERSION_3 && !(flags & EXFLAG_BCONS);
    long most = X509_get_pathlen(ca); /* -1: any */
    return (flags & EXFLAG_CA || (old && root)) && X509_get_key_usage(ca) & KU_KEY_CERT_SIGN &&
           (most < 0 || s->len - 1 <= most);
}

/* "https://host/": where names are constrained, Go wants each URI to have a host (crypto/x509, constraints.go). */
static bool has_host(const GENERAL_NAME *name)
{
    static const char before[] = "://";
    if (name->type != GEN_URI)
        return true;
    const char *uri = (const char *)ASN1_STRING_get0_data(name->d.ia5);
    const char *host = strstr(uri, before);
    return host && !strchr("/?#", host[sizeof before - 1]);
}

static bool allows_names(X509 *ca, X509 *leaf)
{
    bool within = cr_x509_allows_names(ca, leaf);
    if (!within || X509_get_ext_by_NID(ca, NID_name_constraints, -1) < 0)
        return within;
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        within = within && has_host(sk_GENERAL_NAME_value(names, i));
    GENERAL_NAMES_free(names);
    return within;
}

/* All bits: it has none. */
static bool has_purpose(const struct search *s, X509 *cert)
{
    return !s->purpose || X509_get_extended_key_usage(cert) & (s->purpose | XKU_ANYEKU);
}

static bool may_stand_above(struct search *s, X509 *ca, bool root)
{
    X509 *below = s->way[s->len - 1];
    if (!cr_x509_has_name(X509_get_issuer_name(below), X509_get_subject_name(ca)) || is_on_the_way(s, ca) ||
        s->checks++ >= CHECKS_MAX)
        return false;
    return may_sign(s, ca, root) && !cr_x509_has_weak_digest(below) && cr_signers_has_signed(s->signers, ca, below) &&
           is_valid(s, ca) && allows_names(ca, s->way[0]) && has_purpose(s, ca);
}

static bool climb(struct search *s)
{
    for (int i = 0; i < sk_X509_num(s->trusted); i++)
        if (may_stand_above(s, sk_X509_value(s->trusted, i), true))
            return true;
    for (int i = 1; i < sk_X509_num(s->sent) && s->len < WAY_MAX; i++) {
        X509 *next = sk_X509_value(s->sent, i);
        if (!may_stand_above(s, next, false))
            continue;
        s->way[s->len++] = next;
        if (climb(s))
            return true;
        s->len--;
    }
    return false;
}

static bool is_trusted(const struct search *s, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(s->trusted); i++)
        if (X509_cmp(sk_X509_value(s->trusted, i), cert) == 0)
            return true;
    return false;
}

bool cr_go_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                    struct cr_signers *signers)
{
    X509 *leaf = sk_X509_value(chain, 0);
    struct search s = {.sent = chain, .trusted = trusted, .at_ms = at_ms, .signers = signers, .way = {leaf}, .len = 1};
    s.purpose = cr_x509_usage_of(purpose);
    return is_valid(&s, leaf) && has_purpose(&s, leaf) && (is_trusted(&s, leaf) || climb(&s));
}
