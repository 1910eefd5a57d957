#include "pki/bundle_boringssl.h"

#include <openssl/x509v3.h>

#include "pki/openssl_internal.h"
#include "pki/signers.h"
#include "pki/x509.h"

enum { WAY_MAX = 102 /* its default depth, and the leaf and the last */ };

struct way {
    STACK_OF(X509) * sent; /* the leaf, then what may stand between */
    STACK_OF(X509) * trusted;
    X509 *certs[WAY_MAX]; /* from the leaf up */
    int len;
    int untrusted; /* so many of them were sent */
};

static bool is_self_signed(X509 *cert)
{
    return X509_get_extension_flags(cert) & EXFLAG_SS;
}

static X509 *last(const struct way *w)
{
    return w->certs[w->len - 1];
}

static bool is_on_the_way(const struct way *w, const X509 *cert)
{
    for (int i = 0; i < w->len; i++)
        if (w->certs[i] == cert)
            return true;
    return false;
}

/* Whether it is valid is not asked. NULL: none fits. */
static X509 *find_trusted(const struct way *w, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(w->trusted); i++)
        if (X509_check_issued(sk_X509_value(w->trusted, i), cert) == X509_V_OK)
            return sk_X509_value(w->trusted, i);
    return NULL;
}

/* Each is used once. */
static X509 *find_sent(const struct way *w, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(w->sent); i++)
        if (!is_on_the_way(w, sk_X509_value(w->sent, i)) &&
            X509_check_issued(sk_X509_value(w->sent, i), cert) == X509_V_OK)
            return sk_X509_value(w->sent, i);
    return NULL;
}

/* Through what was sent, until something that is trusted fits. */
static void climb_to_trusted(struct way *w)
{
    while (w->len < WAY_MAX && !is_self_signed(last(w)) && !find_trusted(w, last(w))) {
        X509 *next = find_sent(w, last(w));
        if (!next)
            break;
        w->certs[w->len++] = next;
    }
    w->untrusted = w->len;
}

/* A root that was sent does not count, but for what is trusted of the same name. */
static void leave_out_sent_root(struct way *w)
{
    if (w->len == 1 || !is_self_signed(last(w)))
        return;
    w->len--;
    w->untrusted--;
}

static void climb_further(struct way *w)
{
    while (w->len < WAY_MAX && !is_self_signed(last(w))) {
        X509 *next = find_trusted(w, last(w));
        if (!next)
            break;
        w->certs[w->len++] = next;
    }
}

static bool is_trusted_itself(const struct way *w)
{
    for (int i = 0; i < sk_X509_num(w->trusted); i++)
        if (X509_cmp(sk_X509_value(w->trusted, i), w->certs[0]) == 0)
            return true;
    return false;
}

/* --- the checks of a way --- */

/* Of those that were sent only. */
static bool has_sound_extensions(const struct way *w, int purpose)
{
    long below = 0;
    for (int i = 0; i < w->untrusted; i++) {
        X509 *cert = w->certs[i];
        uint32_t flags = X509_get_extension_flags(cert);
        long most = X509_get_pathlen(cert); /* -1: any */
        if (flags & EXFLAG_CRITICAL || (i > 0 && !X509_check_ca(cert)) ||
            (purpose != X509_PURPOSE_ANY && X509_check_purpose(cert, purpose, i > 0) != 1) ||
            (i > 1 && most >= 0 && below > most + 1))
            return false;
        below += i == 0 || !(flags & EXFLAG_SI);
    }
    return true;
}

static bool has_names_within(const struct way *w)
{
    for (int i = 1; i < w->len; i++) {
        NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(w->certs[i], NID_name_constraints, NULL, NULL);
        bool within = !constraints || NAME_CONSTRAINTS_check(w->certs[0], constraints) == X509_V_OK;
        NAME_CONSTRAINTS_free(constraints);
        if (!within)
            return false;
    }
    return true;
}

static bool is_valid(X509 *cert, int64_t at_ms)
{
    return at_ms >= cr_x509_not_before_ms(cert) && at_ms < cr_x509_not_after_ms(cert);
}

static bool is_valid_and_signed(const struct way *w, int64_t at_ms, struct cr_signers *signers)
{
    for (int i = 0; i < w->len; i++)
        if (!is_valid(w->certs[i], at_ms) ||
            (i + 1 < w->len && !cr_signers_has_signed(signers, w->certs[i + 1], w->certs[i])))
            return false;
    return true;
}

bool cr_boringssl_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                           struct cr_signers *signers)
{
    struct way w = {.sent = chain, .trusted = trusted, .certs = {sk_X509_value(chain, 0)}, .len = 1};
    climb_to_trusted(&w);
    leave_out_sent_root(&w);
    climb_further(&w);
    return (w.len > w.untrusted || is_trusted_itself(&w)) && has_sound_extensions(&w, purpose) &&
           is_valid_and_signed(&w, at_ms, signers) && has_names_within(&w);
}
