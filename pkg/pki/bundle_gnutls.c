#include "pki/bundle_gnutls.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "pki/openssl_internal.h"
#include "pki/signers.h"
#include "pki/x509.h"

enum {
    SORTED_MAX = 16,  /* DEFAULT_MAX_VERIFY_DEPTH: a longer list is not put in order */
    DEPTH_MAX = 4096, /* MAX_VERIFY_DEPTH */
};

/* What is wrong, as far as it decides whether another way is tried. */
enum fault { UNKNOWN = 1, EXPIRED = 2, INSECURE = 4, OTHER = 8, MAY_TRY_AGAIN = UNKNOWN | EXPIRED | INSECURE };

struct view {
    STACK_OF(X509) * trusted;
    size_t looked_up; /* trusted ones with a subject of that bucket */
    uint32_t purpose; /* of XKU_*; 0: any */
    int64_t at_ms;
    long below; /* so many more may stand below */
    struct cr_signers *signers;
    X509 **list; /* borrowed */
    size_t len;
};

/* --- names --- */

static bool is_issuer(X509 *cert, X509 *issuer)
{
    if (!cr_x509_has_name(X509_get_issuer_name(cert), X509_get_subject_name(issuer)))
        return false;
    const ASN1_OCTET_STRING *wanted = X509_get0_authority_key_id(cert);
    const ASN1_OCTET_STRING *id = X509_get0_subject_key_id(issuer);
    return !wanted || !id || ASN1_OCTET_STRING_cmp(wanted, id) == 0;
}

/* Trusted certificates are kept in buckets, by hash_pjw_bare of their subjects (gl/hash-pjw-bare.c), and all of one are
 * found at a time. */
static size_t bucket_of(const X509_NAME *name)
{
    enum { BUCKETS = 127 /* DEFAULT_SIZE */, SHIFT = 9 };
    const unsigned char *der = NULL;
    size_t len = 0;
    size_t hash = 0;
    if (!X509_NAME_get0_der(name, &der, &len))
        return BUCKETS;
    for (size_t i = 0; i < len; i++)
        hash = der[i] + ((hash << SHIFT) | (hash >> (sizeof hash * CHAR_BIT - SHIFT)));
    return hash % BUCKETS;
}

static bool is_found(const struct view *v, X509 *trusted)
{
    return bucket_of(X509_get_subject_name(trusted)) == v->looked_up;
}

static bool is_same_key(X509 *a, X509 *b)
{
    return cr_x509_has_name(X509_get_subject_name(a), X509_get_subject_name(b)) &&
           EVP_PKEY_eq(X509_get0_pubkey(a), X509_get0_pubkey(b)) == 1;
}

static bool is_valid(const struct view *v, const X509 *cert)
{
    return v->at_ms >= cr_x509_not_before_ms(cert) && v->at_ms < cr_x509_not_after_ms(cert);
}

/* --- the list --- */

/* The issuer in the rest of the list. */
static size_t issuer_in(X509 *const *list, size_t len, size_t of)
{
    for (size_t i = 1; !is_issuer(list[of], list[of]) && i < len; i++)
        if (i != of && is_issuer(list[of], list[i]))
            return i;
    return len;
}

/* Brings what leads up from the first to the front. How many that are. */
static size_t sort(X509 **list, size_t len)
{
    bool used[SORTED_MAX] = {true};
    X509 *sorted[SORTED_MAX] = {list[0]};
    size_t run = 1;
    if (len > SORTED_MAX)
        return 1;
    for (size_t at = issuer_in(list, len, 0); at < len && !used[at]; at = issuer_in(list, len, at)) {
        used[at] = true;
        sorted[run++] = list[at];
    }
    for (size_t i = 1, end = run; i < len; i++)
        if (!used[i])
            sorted[end++] = list[i];
    memcpy(list, sorted, len * sizeof(X509 *));
    return run;
}

static bool has_trusted_issuer(const struct view *v, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(v->trusted); i++)
        if (is_issuer(cert, sk_X509_value(v->trusted, i)))
            return true;
    return false;
}

/* One that stands before done, too, goes, and the next one takes its place; what follows does not move up. */
static bool drop_copy(struct view *v, size_t done, size_t run)
{
    for (size_t at = done; at < done + run; at++) {
        for (size_t i = 0; i < done; i++) {
            if (X509_cmp(v->list[i], v->list[at]) != 0)
                continue;
            if (at + 1 < v->len)
                v->list[at] = v->list[at + 1];
            v->len--;
            return true;
        }
    }
    return false;
}

static void put_in_order(struct view *v)
{
    for (size_t done = 0; done < v->len;) {
        size_t run = sort(v->list + done, v->len - done);
        if (drop_copy(v, done, run))
            continue;
        done += run;
        if (has_trusted_issuer(v, v->list[done - 1]))
            v->len = done;
    }
}

static void drop_root(X509 *const *list, size_t *len)
{
    if (*len > 1 && is_issuer(list[*len - 1], list[*len - 1]))
        (*len)--;
}

/* At one that is trusted itself; but it is looked up by its issuer's name, so that only one is found that has that for
 * its own, or one of the same bucket. */
static void shorten(struct view *v)
{
    drop_root(v->list, &v->len);
    for (size_t i = 1; i < v->len; i++) {
        X509 *cert = v->list[i];
        for (int k = 0; k < sk_X509_num(v->trusted); k++)
            if (X509_cmp(cert, sk_X509_value(v->trusted, k)) == 0 &&
                bucket_of(X509_get_subject_name(cert)) == bucket_of(X509_get_issuer_name(cert)))
                v->len = i + 1;
    }
}

/* --- one certificate and its issuer --- */

static X509 *find_issuer(const struct view *v, X509 *cert)
{
    X509 *found = NULL;
    for (int i = 0; i < sk_X509_num(v->trusted); i++) {
        X509 *one = sk_X509_value(v->trusted, i);
        if (is_found(v, one) && is_issuer(cert, one) && (!found || is_valid(v, one)))
            found = one;
    }
    return found;
}

static unsigned check_time(const struct view *v, const X509 *cert)
{
    if (v->at_ms < cr_x509_not_before_ms(cert))
        return OTHER;
    return v->at_ms > cr_x509_not_after_ms(cert) ? EXPIRED : 0;
}

static bool has_dns_name(X509 *leaf)
{
    bool found = false;
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        found = found || sk_GENERAL_NAME_value(names, i)->type == GEN_DNS;
    GENERAL_NAMES_free(names);
    return found;
}

/* A common name stands for a DNS name that is not there. */
static bool allows_names(X509 *ca, X509 *leaf)
{
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(ca, NID_name_constraints, NULL, NULL);
    bool within = !constraints || has_dns_name(leaf) || NAME_CONSTRAINTS_check_CN(leaf, constraints) == X509_V_OK;
    NAME_CONSTRAINTS_free(constraints);
    return within && cr_x509_allows_names(ca, leaf);
}

/* GNUTLS_VERIFY_DO_NOT_ALLOW_X509_V1_CA_CRT is the default but for those that are trusted. */
static bool is_ca(X509 *cert, X509 *issuer, bool trusted)
{
    uint32_t flags = X509_get_extension_flags(issuer);
    bool old = trusted && !(flags & EXFLAG_BCONS);
    return X509_cmp(cert, issuer) == 0 || flags & EXFLAG_CA || (old && is_issuer(issuer, issuer)) ||
           (old && X509_get_version(issuer) == X509_VERSION_1);
}

static unsigned check_issuer(struct view *v, X509 *cert, X509 *issuer, bool trusted)
{
    unsigned faults = 0;
    long most = X509_get_pathlen(issuer); /* -1: any */
    if (!allows_names(issuer, v->list[0]) || !is_ca(cert, issuer, trusted) ||
        !(X509_get_key_usage(issuer) & KU_KEY_CERT_SIGN) || !cr_signers_has_signed(v->signers, issuer, cert) ||
        X509_get_extension_flags(issuer) & EXFLAG_CRITICAL)
        faults |= OTHER;
    if (most >= 0 && most < v->below)
        v->below = most;
    return faults | check_time(v, issuer);
}

static bool is_insecure(X509 *cert)
{
    return cr_x509_has_weak_digest(cert) && !is_issuer(cert, cert);
}

/* issuer NULL: none was found. */
static unsigned check(struct view *v, X509 *cert, X509 *issuer, bool trusted)
{
    if (v->below == 0)
        return OTHER;
    v->below--;
    unsigned faults = issuer ? check_issuer(v, cert, issuer, trusted) : UNKNOWN;
    if (cert == v->list[0] && X509_get_extension_flags(cert) & EXFLAG_CRITICAL)
        faults |= OTHER;
    return faults | check_time(v, cert) | (is_insecure(cert) ? INSECURE : 0);
}

static bool has_purpose(const struct view *v, X509 *cert, uint32_t any)
{
    return !v->purpose || X509_get_extended_key_usage(cert) & (v->purpose | any); /* all bits: it has none */
}

/* --- the chain --- */

/* What is above one that is trusted goes, and it with them. */
static unsigned cut(const struct view *v, size_t *len)
{
    for (size_t i = 0; i < *len; i++) {
        for (int k = 0; k < sk_X509_num(v->trusted); k++) {
            X509 *one = sk_X509_value(v->trusted, k);
            if (!is_found(v, one) || !(i ? is_same_key(v->list[i], one) : X509_cmp(v->list[i], one) == 0))
                continue;
            *len = i;
            return check_time(v, one);
        }
    }
    return 0;
}

/* With the trusted ones that are looked up by this subject. */
static unsigned verify(struct view *v, const X509_NAME *looked_up)
{
    size_t len = v->len;
    v->looked_up = bucket_of(looked_up);
    v->below = DEPTH_MAX;
    drop_root(v->list, &len);
    unsigned faults = cut(v, &len);
    if (faults || !len)
        return faults;
    X509 *last = v->list[len - 1];
    faults = check(v, last, find_issuer(v, last), true);
    for (size_t i = len - 1; i > 0 && !faults; i--) {
        X509 *issuer = v->list[i];
        bool fits = is_issuer(v->list[i - 1], issuer);
        faults = has_purpose(v, issuer, 0) ? check(v, v->list[i - 1], fits ? issuer : NULL, false) : OTHER;
    }
    return faults;
}

static bool ask(struct view *v)
{
    put_in_order(v);
    shorten(v);
    const X509_NAME *subject = X509_get_subject_name(v->list[v->len - 1]);
    const X509_NAME *issuer = X509_get_issuer_name(v->list[v->len - 1]);
    unsigned faults = verify(v, issuer);
    if (faults & MAY_TRY_AGAIN && !cr_x509_has_name(subject, issuer))
        faults = verify(v, subject);
    return !faults && has_purpose(v, v->list[0], XKU_ANYEKU);
}

bool cr_gnutls_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                        struct cr_signers *signers)
{
    size_t len = (size_t)sk_X509_num(chain);
    cr_autofree X509 **list = cr_calloc(len + 1, sizeof(X509 *));
    struct view v = {.trusted = trusted, .at_ms = at_ms, .signers = signers, .list = list, .len = len};
    v.purpose = cr_x509_usage_of(purpose);
    for (size_t i = 0; i < len; i++)
        list[i] = sk_X509_value(chain, (int)i);
    return ask(&v);
}
