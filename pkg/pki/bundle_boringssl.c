#include "pki/bundle_boringssl.h"

#include <openssl/x509v3.h>

#include "pki/openssl_internal.h"
#include "pki/signers.h"
#include "pki/x509.h"

enum { CHAIN_MAX = 102 /* its default depth, the leaf, and the last */ };

struct chain {
    STACK_OF(X509) * sent; /* the leaf, then what may stand between */
    STACK_OF(X509) * trusted;
    X509 *certs[CHAIN_MAX]; /* from the leaf up */
    int len;
    int untrusted; /* so many of them were sent */
};

/* OpenSSL also compares the algorithm of the signature with that of the key, before it looks at the key's usage. */
static bool fits(X509 *issuer, X509 *cert)
{
    switch (X509_check_issued(issuer, cert)) {
    case X509_V_OK:
        return true;
    case X509_V_ERR_SIGNATURE_ALGORITHM_MISMATCH:
    case X509_V_ERR_UNSUPPORTED_SIGNATURE_ALGORITHM:
        return X509_get_key_usage(issuer) & KU_KEY_CERT_SIGN;
    default:
        return false;
    }
}

static bool is_self_signed(X509 *cert)
{
    return X509_get_extension_flags(cert) & EXFLAG_SI && fits(cert, cert);
}

static X509 *last(const struct chain *c)
{
    return c->certs[c->len - 1];
}

static bool is_in_chain(const struct chain *c, const X509 *cert)
{
    for (int i = 0; i < c->len; i++)
        if (c->certs[i] == cert)
            return true;
    return false;
}

/* Whether it is valid is not asked. NULL: none fits. */
static X509 *find_trusted(const struct chain *c, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(c->trusted); i++)
        if (fits(sk_X509_value(c->trusted, i), cert))
            return sk_X509_value(c->trusted, i);
    return NULL;
}

/* Each is used once. */
static X509 *find_sent(const struct chain *c, X509 *cert)
{
    for (int i = 0; i < sk_X509_num(c->sent); i++)
        if (!is_in_chain(c, sk_X509_value(c->sent, i)) && fits(sk_X509_value(c->sent, i), cert))
            return sk_X509_value(c->sent, i);
    return NULL;
}

/* Until something that is trusted fits. */
static void build_from_sent(struct chain *c)
{
    while (c->len < CHAIN_MAX && !is_self_signed(last(c)) && !find_trusted(c, last(c))) {
        X509 *next = find_sent(c, last(c));
        if (!next)
            break;
        c->certs[c->len++] = next;
    }
    c->untrusted = c->len;
}

/* A self-signed certificate that was sent is dropped, and the issuer of the one below it looked up in what is trusted.
 */
static void drop_sent_root(struct chain *c)
{
    if (c->len == 1 || !is_self_signed(last(c)))
        return;
    c->len--;
    c->untrusted--;
}

/* Beyond the first that would do, as far as there are issuers. BoringSSL goes round CAs that have signed one another
 * until the chain has its greatest length; what is checked of them is the same each time. */
static void build_from_trusted(struct chain *c)
{
    bool again = false;
    while (c->len < CHAIN_MAX && !again && !is_self_signed(last(c))) {
        X509 *next = find_trusted(c, last(c));
        if (!next)
            break;
        again = is_in_chain(c, next);
        c->certs[c->len++] = next;
    }
}

/* A leaf that is trusted itself needs nothing else. One that has signed itself has to be the first that fits. */
static bool is_trusted_itself(const struct chain *c)
{
    X509 *leaf = c->certs[0];
    if (is_self_signed(leaf)) {
        X509 *first = find_trusted(c, leaf);
        return first && X509_cmp(first, leaf) == 0;
    }
    for (int i = 0; i < sk_X509_num(c->trusted); i++)
        if (X509_cmp(sk_X509_value(c->trusted, i), leaf) == 0)
            return true;
    return false;
}

/* --- its checks --- */

/* OpenSSL also takes one that has no basic constraints and whose key may sign certificates. */
static bool is_ca(X509 *cert)
{
    enum { OLD_ROOT = EXFLAG_V1 | EXFLAG_SS };
    uint32_t flags = X509_get_extension_flags(cert);
    return X509_check_ca(cert) && (flags & EXFLAG_CA || (flags & OLD_ROOT) == OLD_ROOT);
}

/* Of those that were sent only. */
static bool has_sound_extensions(const struct chain *c, int purpose)
{
    long below = 0;
    for (int i = 0; i < c->untrusted; i++) {
        X509 *cert = c->certs[i];
        uint32_t flags = X509_get_extension_flags(cert);
        long most = X509_get_pathlen(cert); /* -1: any */
        if (flags & EXFLAG_CRITICAL || (i > 0 && !is_ca(cert)) ||
            (purpose != X509_PURPOSE_ANY && X509_check_purpose(cert, purpose, i > 0) != 1) ||
            (i > 1 && most >= 0 && below > most + 1))
            return false;
        below += i == 0 || !(flags & EXFLAG_SI);
    }
    return true;
}

static bool has_names_within(const struct chain *c)
{
    for (int i = 1; i < c->len; i++)
        if (!cr_x509_allows_names(c->certs[i], c->certs[0]))
            return false;
    return true;
}

static bool is_valid(X509 *cert, int64_t at_ms)
{
    return at_ms >= cr_x509_not_before_ms(cert) && at_ms < cr_x509_not_after_ms(cert);
}

static bool is_valid_and_signed(const struct chain *c, int64_t at_ms, struct cr_signers *signers)
{
    for (int i = 0; i < c->len; i++)
        if (!is_valid(c->certs[i], at_ms) ||
            (i + 1 < c->len && !cr_signers_has_signed(signers, c->certs[i + 1], c->certs[i])))
            return false;
    return true;
}

bool cr_boringssl_verifies(struct stack_st_X509 *chain, struct stack_st_X509 *trusted, int purpose, int64_t at_ms,
                           struct cr_signers *signers)
{
    struct chain c = {.sent = chain, .trusted = trusted, .certs = {sk_X509_value(chain, 0)}, .len = 1};
    build_from_sent(&c);
    drop_sent_root(&c);
    build_from_trusted(&c);
    if (c.len == c.untrusted && !is_trusted_itself(&c))
        return false;
    if (is_self_signed(c.certs[0]))
        c.untrusted = 0; /* what is trusted is not looked at */
    return has_sound_extensions(&c, purpose) && is_valid_and_signed(&c, at_ms, signers) && has_names_within(&c);
}
