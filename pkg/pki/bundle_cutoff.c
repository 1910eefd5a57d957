#include "pki/bundle_cutoff.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strmap.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "pki/signers.h"
#include "pki/x509.h"

enum { NAME_STEPS_OF_A_QUESTION = 4096 };

struct leaf {
    STACK_OF(X509) * chain; /* borrowed */
    bool *concerned;        /* by certificate */
    unsigned before;        /* clients */
    size_t weight;          /* of a question */
};

/* What clients choose among the certificates of one subject by. */
struct traits {
    const ASN1_OCTET_STRING *id; /* NULL: it has none, and fits all */
    size_t ca;                   /* the first certificate of the same subject and key */
    int key_type;
    bool signs;
    int64_t not_before_ms;
    int64_t not_after_ms;
};

struct published {
    size_t *bundle;
    size_t len;
};

struct cr_cutoff {
    int64_t now_ms;
    X509 **certs; /* borrowed */
    size_t len;
    const X509_NAME **names; /* each once, borrowed */
    size_t names_len;
    size_t *subjects; /* of certs, into names */
    size_t *issuers;
    struct traits *traits; /* of certs */
    int64_t until_ms;      /* at which the last leaf is asked about: it may begin later than now */
    struct published *published;
    size_t published_len;
    struct leaf *leaves;
    size_t leaves_len;
    struct cr_signers *signers;
    struct cr_strmap *known; /* "leaf,cert,cert…": which clients verify */
    size_t questions;
    size_t looks;
};

/* --- names --- */

static size_t find_name(const struct cr_cutoff *cutoff, const X509_NAME *name)
{
    size_t at = 0;
    while (at < cutoff->names_len && X509_NAME_cmp(cutoff->names[at], name) != 0)
        at++;
    return at;
}

static size_t add_name(struct cr_cutoff *cutoff, const X509_NAME *name)
{
    size_t at = find_name(cutoff, name);
    if (at == cutoff->names_len)
        cutoff->names[cutoff->names_len++] = name;
    return at;
}

static size_t find_ca(const struct cr_cutoff *cutoff, size_t of)
{
    size_t at = 0;
    while (at < of && (cutoff->subjects[at] != cutoff->subjects[of] ||
                       EVP_PKEY_eq(X509_get0_pubkey(cutoff->certs[at]), X509_get0_pubkey(cutoff->certs[of])) != 1))
        at++;
    return at;
}

/* Its subject is known by then, and those before it. */
static struct traits traits_of(const struct cr_cutoff *cutoff, size_t at)
{
    X509 *cert = cutoff->certs[at];
    const EVP_PKEY *key = X509_get0_pubkey(cert);
    return (struct traits){.id = X509_get0_subject_key_id(cert),
                           .ca = find_ca(cutoff, at),
                           .key_type = key ? EVP_PKEY_get_base_id(key) : 0,
                           .signs = X509_get_key_usage(cert) & KU_KEY_CERT_SIGN,
                           .not_before_ms = cr_x509_not_before_ms(cert),
                           .not_after_ms = cr_x509_not_after_ms(cert)};
}

struct cr_cutoff *cr_cutoff_new(struct x509_st *const *certs, size_t len, int64_t now_ms)
{
    struct cr_cutoff *cutoff = cr_new(struct cr_cutoff);
    *cutoff = (struct cr_cutoff){.now_ms = now_ms,
                                 .until_ms = now_ms,
                                 .certs = cr_calloc(len + 1, sizeof(X509 *)),
                                 .len = len,
                                 .names = cr_calloc(2 * len + 1, sizeof(X509_NAME *)),
                                 .subjects = cr_calloc(len + 1, sizeof(size_t)),
                                 .issuers = cr_calloc(len + 1, sizeof(size_t)),
                                 .traits = cr_calloc(len + 1, sizeof(struct traits)),
                                 .signers = cr_signers_new(),
                                 .known = cr_strmap_new(NULL)};
    for (size_t i = 0; i < len; i++) {
        cutoff->certs[i] = certs[i];
        cutoff->subjects[i] = add_name(cutoff, X509_get_subject_name(certs[i]));
        cutoff->issuers[i] = add_name(cutoff, X509_get_issuer_name(certs[i]));
        cutoff->traits[i] = traits_of(cutoff, i);
    }
    return cutoff;
}

void cr_cutoff_free(struct cr_cutoff *cutoff)
{
    if (!cutoff)
        return;
    for (size_t i = 0; i < cutoff->published_len; i++)
        free(cutoff->published[i].bundle);
    for (size_t i = 0; i < cutoff->leaves_len; i++)
        free(cutoff->leaves[i].concerned);
    cr_signers_free(cutoff->signers);
    cr_strmap_free(cutoff->known);
    free(cutoff->certs);
    free(cutoff->names);
    free(cutoff->subjects);
    free(cutoff->issuers);
    free(cutoff->traits);
    free(cutoff->published);
    free(cutoff->leaves);
    free(cutoff);
}

size_t cr_cutoff_name(const struct cr_cutoff *cutoff, size_t cert)
{
    return cutoff->subjects[cert];
}

static bool fits_both(const ASN1_OCTET_STRING *id, const ASN1_OCTET_STRING *one, const ASN1_OCTET_STRING *other)
{
    const ASN1_OCTET_STRING *wanted = one ? one : other;
    bool by_id = !one || !other || ASN1_OCTET_STRING_cmp(one, other) == 0;
    return !by_id || !id || (wanted && ASN1_OCTET_STRING_cmp(id, wanted) == 0);
}

bool cr_cutoff_covers(const struct cr_cutoff *cutoff, size_t cert, size_t one, size_t other)
{
    const struct traits *own = &cutoff->traits[cert];
    const struct traits *first = &cutoff->traits[one];
    const struct traits *second = &cutoff->traits[other];
    return own->signs && own->key_type == first->key_type && own->key_type == second->key_type &&
           own->not_before_ms <= cutoff->now_ms && own->not_after_ms > cutoff->until_ms &&
           fits_both(own->id, first->id, second->id);
}

bool cr_cutoff_is_same_ca(const struct cr_cutoff *cutoff, size_t one, size_t other)
{
    return cutoff->traits[one].ca == cutoff->traits[other].ca;
}

bool cr_cutoff_concerns(const struct cr_cutoff *cutoff, size_t leaf, size_t cert)
{
    return cutoff->leaves[leaf].concerned[cert];
}

size_t cr_cutoff_leaves(const struct cr_cutoff *cutoff)
{
    return cutoff->leaves_len;
}

bool cr_cutoff_is_spent(const struct cr_cutoff *cutoff)
{
    return cr_signers_checked(cutoff->signers) >= CR_CUTOFF_SIGNATURES_MAX ||
           cutoff->questions >= CR_CUTOFF_QUESTIONS_MAX || cutoff->looks >= CR_CUTOFF_LOOKS_MAX;
}

void cr_cutoff_spend(struct cr_cutoff *cutoff)
{
    cutoff->looks = CR_CUTOFF_LOOKS_MAX;
}

/* --- what clients make of a bundle --- */

static unsigned ask(struct cr_cutoff *cutoff, const struct leaf *leaf, X509 *const *certs, size_t len)
{
    bool verifies[CR_CLIENTS];
    unsigned found = 0;
    CR_CLEANUP(cr_loaded_bundle) struct cr_loaded_bundle *bundle = cr_bundle_load(certs, len);
    if (!bundle)
        return 0;
    cutoff->questions += leaf->weight;
    cr_bundle_ask_clients(bundle, leaf->chain, cutoff->now_ms, cutoff->signers, verifies);
    for (int client = 0; client < CR_CLIENTS; client++)
        found |= verifies[client] ? 1u << client : 0;
    return found;
}

/* In known, a set of clients is a pointer that is never NULL. */
static const char sets[CR_CUTOFF_ALL + 1];

static unsigned who_verifies(struct cr_cutoff *cutoff, size_t leaf, const size_t *bundle, size_t len)
{
    const struct leaf *one = &cutoff->leaves[leaf];
    CR_CLEANUP(cr_buf) struct cr_buf key = CR_BUF_INIT(0);
    cr_autofree X509 **certs = cr_calloc(len + 1, sizeof(X509 *));
    size_t certs_len = 0;
    cutoff->looks++;
    cr_buf_printf(&key, "%zu", leaf);
    for (size_t i = 0; i < len; i++) {
        if (!one->concerned[bundle[i]])
            continue;
        cr_buf_printf(&key, ",%zu", bundle[i]);
        certs[certs_len++] = cutoff->certs[bundle[i]];
    }
    const char *known = cr_strmap_get(cutoff->known, cr_buf_text(&key));
    if (known)
        return (unsigned)(known - sets);
    unsigned found = ask(cutoff, one, certs, certs_len);
    cr_strmap_set(cutoff->known, cr_buf_text(&key), (void *)(uintptr_t)&sets[found]);
    return found;
}

unsigned cr_cutoff_losers(struct cr_cutoff *cutoff, size_t leaf, const size_t *bundle, size_t len)
{
    unsigned before = cutoff->leaves[leaf].before;
    return before ? before & ~who_verifies(cutoff, leaf, bundle, len) : 0;
}

void cr_cutoff_give_up(struct cr_cutoff *cutoff, size_t leaf, unsigned clients)
{
    cutoff->leaves[leaf].before &= ~clients;
}

/* --- what is in use --- */

void cr_cutoff_add_published(struct cr_cutoff *cutoff, const size_t *bundle, size_t len)
{
    struct published added = {.bundle = cr_calloc(len + 1, sizeof *bundle), .len = len};
    memcpy(added.bundle, bundle, len * sizeof *bundle);
    cutoff->published = cr_reallocarray(cutoff->published, cutoff->published_len + 1, sizeof *cutoff->published);
    cutoff->published[cutoff->published_len++] = added;
}

static void reach(bool *reached, const struct cr_cutoff *cutoff, const X509_NAME *name)
{
    size_t at = find_name(cutoff, name);
    if (at < cutoff->names_len)
        reached[at] = true;
}

/* What is called as one that is sent, or as an issuer of one that is sent or concerned. */
static void find_concerned(const struct cr_cutoff *cutoff, struct leaf *leaf)
{
    bool more = true;
    cr_autofree bool *reached = cr_calloc(cutoff->names_len + 1, sizeof *reached);
    leaf->concerned = cr_calloc(cutoff->len + 1, sizeof *leaf->concerned);
    for (int i = 0; i < sk_X509_num(leaf->chain); i++) {
        reach(reached, cutoff, X509_get_subject_name(sk_X509_value(leaf->chain, i)));
        reach(reached, cutoff, X509_get_issuer_name(sk_X509_value(leaf->chain, i)));
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < cutoff->len; i++) {
            if (leaf->concerned[i] || !reached[cutoff->subjects[i]])
                continue;
            leaf->concerned[i] = reached[cutoff->issuers[i]] = more = true;
        }
    }
}

/* What may stand above it is within the limits of cr_paths. */
static bool is_affordable(const struct cr_cutoff *cutoff, struct leaf *leaf, struct cr_error *err)
{
    STACK_OF(X509) *above = sk_X509_new_null(); /* borrowed certificates */
    bool ok = above;
    for (size_t i = 0; ok && i < cutoff->len; i++)
        ok = !leaf->concerned[i] || sk_X509_push(above, cutoff->certs[i]) > 0;
    CR_CLEANUP(cr_paths) struct cr_paths *paths = ok ? cr_paths_of_chain(leaf->chain, above, true, err) : NULL;
    sk_X509_free(above);
    if (!ok)
        return cr_openssl_fail(err, "no memory for certificates");
    leaf->weight = paths ? 1 + cr_paths_name_steps(paths) / NAME_STEPS_OF_A_QUESTION : 0;
    return paths;
}

bool cr_cutoff_add_leaf(struct cr_cutoff *cutoff, struct stack_st_X509 *chain, struct cr_error *err)
{
    struct leaf leaf = {.chain = chain};
    int64_t begins_ms = cr_x509_not_before_ms(sk_X509_value(chain, 0));
    cutoff->until_ms = begins_ms > cutoff->until_ms ? begins_ms : cutoff->until_ms;
    find_concerned(cutoff, &leaf);
    if (!is_affordable(cutoff, &leaf, err)) {
        free(leaf.concerned);
        return false;
    }
    cutoff->leaves = cr_reallocarray(cutoff->leaves, cutoff->leaves_len + 1, sizeof *cutoff->leaves);
    cutoff->leaves[cutoff->leaves_len] = leaf;
    for (size_t i = 0; i < cutoff->published_len; i++)
        leaf.before |= who_verifies(cutoff, cutoff->leaves_len, cutoff->published[i].bundle, cutoff->published[i].len);
    cutoff->leaves[cutoff->leaves_len++].before = leaf.before;
    return true;
}
