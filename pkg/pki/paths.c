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

/* Whether one certificate is another's issuer, by names, key identifiers, key usage and signature. */
enum link { LINK_UNKNOWN, LINK_NONE, LINK_SIGNED };

struct cr_paths {
    X509 *leaf; /* borrowed */
    struct candidate *items;
    size_t len;
    size_t *nodes; /* of the search: indexes of items that are opened; the leaf is node nodes_len */
    size_t nodes_len;
    unsigned char *links; /* enum link by [child node][issuer node]; NULL: none was asked for yet */
    bool as_go;
    size_t steps;
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
    free(paths->nodes);
    free(paths->links);
    free(paths);
}

void cr_paths_ask_as_go(struct cr_paths *paths)
{
    paths->as_go = true;
}

size_t cr_paths_name_steps(const struct cr_paths *paths)
{
    return paths->name_steps_each;
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

/* Each CA's constraints are compared with the names of all certificates below it, byte by byte. */
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

bool cr_paths_affords(struct x509_st *cert, struct cr_error *err)
{
    const EVP_PKEY *key = X509_get0_pubkey(cert);
    return !key || (check_size(cert, err) && cr_key_is_affordable(key, err));
}

/* One with a key that OpenSSL does not know verifies nothing. */
static bool open_one(struct cr_paths *paths, struct candidate *one, const struct cr_paths_above *above,
                     struct cr_error *err)
{
    X509 *x509 = above->x509 ? above->x509 : cr_certificate_x509(above->cert);
    if (!x509 || !X509_get0_pubkey(x509))
        return true;
    if (!cr_paths_affords(x509, err))
        return false;
    one->x509 = x509;
    paths->nodes[paths->nodes_len++] = (size_t)(one - paths->items);
    return !one->between || sk_X509_push(paths->between, x509) > 0
               ? true
               : cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
}

static bool open_reached(struct cr_paths *paths, const struct cr_paths_above *above, struct cr_error *err)
{
    paths->between = sk_X509_new_null();
    paths->nodes = cr_calloc(paths->reached + 1, sizeof *paths->nodes);
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

/* Lets a certificate through if the clock of its issuer is ahead of ours. The time to check at comes from the
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

struct question {
    size_t anchor; /* of items */
    enum cr_paths_time when;
    int64_t at_ms;
    size_t *issuer; /* may be NULL */
};

static bool verify(struct cr_paths *paths, X509_STORE_CTX *ctx, STACK_OF(X509) * trusted, STACK_OF(X509) * between,
                   const struct question *q)
{
    if (!X509_STORE_CTX_init(ctx, NULL, paths->leaf, between))
        return false;
    X509_STORE_CTX_set0_trusted_stack(ctx, trusted);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    set_time(ctx, paths->leaf, sk_X509_value(trusted, 0), q->when, q->at_ms);
    bool verifies = X509_verify_cert(ctx) == 1;
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);
    /* At most one for each: signatures are checked once the chain ends in the anchor. */
    paths->signatures += chain ? (size_t)sk_X509_num(chain) : 0;
    if (verifies && q->issuer && sk_X509_num(chain) > 1)
        *q->issuer = index_of(paths, sk_X509_value(chain, 1), *q->issuer);
    return verifies;
}

/* OpenSSL takes the first issuer that fits, and never goes back: where several do, it can miss the way. */
static bool verify_with(struct cr_paths *paths, STACK_OF(X509) * between, const struct question *q, bool *verifies,
                        struct cr_error *err)
{
    if (!may_check(paths, err) || !may_compare_names(paths, err))
        return false;
    STACK_OF(X509) *trusted = sk_X509_new_null();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    *verifies = trusted && ctx && sk_X509_push(trusted, paths->items[q->anchor].x509) > 0 &&
                verify(paths, ctx, trusted, between, q);
    X509_STORE_CTX_free(ctx);
    sk_X509_free(trusted);
    return true;
}

/* --- all ways --- */

static X509 *node_x509(const struct cr_paths *paths, size_t node)
{
    return node == paths->nodes_len ? paths->leaf : paths->items[paths->nodes[node]].x509;
}

static bool find_link(struct cr_paths *paths, size_t child, size_t issuer, enum link *found, struct cr_error *err)
{
    *found = LINK_NONE;
    if (X509_check_issued(node_x509(paths, issuer), node_x509(paths, child)) != X509_V_OK)
        return true;
    if (!may_check(paths, err))
        return false;
    paths->signatures++;
    if (X509_verify(node_x509(paths, child), X509_get0_pubkey(node_x509(paths, issuer))) == 1)
        *found = LINK_SIGNED;
    return true;
}

/* Each is looked at once. */
static bool is_linked(struct cr_paths *paths, size_t child, size_t issuer, bool *linked, struct cr_error *err)
{
    unsigned char *known = &paths->links[child * paths->nodes_len + issuer];
    enum link found = *known;
    if (found == LINK_UNKNOWN && !find_link(paths, child, issuer, &found, err))
        return false;
    *known = (unsigned char)found;
    *linked = found == LINK_SIGNED;
    return true;
}

struct search {
    struct cr_paths *paths;
    const struct question *q;
    size_t anchor;                             /* node */
    bool leads[CR_PATHS_CERTIFICATES_MAX + 1]; /* by links, to the anchor */
    bool used[CR_PATHS_CERTIFICATES_MAX + 1];
    STACK_OF(X509) * way; /* from the leaf's issuer on, without the anchor */
    bool verifies;
    struct cr_error *err;
};

/* So that no way is tried that cannot hold. */
static bool is_valid(const struct search *s, size_t node)
{
    const X509 *cert = node_x509(s->paths, node);
    int64_t at_ms = s->q->at_ms;
    if (s->q->when == CR_PATHS_AT_NO_TIME)
        return true;
    if (s->q->when == CR_PATHS_WHEN_BOTH)
        at_ms = cr_x509_when_valid(s->paths->leaf, node_x509(s->paths, s->anchor), at_ms);
    return cr_x509_not_before_ms(cert) <= at_ms + CR_CLOCK_SKEW_MS && cr_x509_not_after_ms(cert) >= at_ms;
}

/* OpenSSL decides by names and key identifiers, Go by the signature. */
static bool is_root(struct search *s, size_t node, bool *root)
{
    *root = cr_x509_is_root(node_x509(s->paths, node));
    return !*root || !s->paths->as_go || is_linked(s->paths, node, node, root, s->err);
}

/* A root ends each chain, even if another CA has signed it as well. */
static bool may_go_on_from(struct search *s, size_t node, bool *may)
{
    bool root = false;
    *may = is_valid(s, node);
    if (node == s->paths->nodes_len || !*may)
        return true;
    if (!is_root(s, node, &root))
        return false;
    *may = !root && s->paths->items[s->paths->nodes[node]].between;
    return true;
}

static bool look_for_lead(struct search *s, size_t node, bool *any)
{
    for (size_t issuer = 0; issuer < s->paths->nodes_len && !s->leads[node]; issuer++) {
        if (issuer == node || !s->leads[issuer])
            continue;
        if (!is_linked(s->paths, node, issuer, &s->leads[node], s->err))
            return false;
        *any |= s->leads[node];
    }
    return true;
}

/* Down from the anchor, so that no way is tried that cannot end there. */
static bool find_leads(struct search *s)
{
    bool any = is_valid(s, s->anchor);
    s->leads[s->anchor] = any;
    while (any) {
        any = false;
        for (size_t node = 0; node <= s->paths->nodes_len; node++) {
            bool may = false;
            if (!s->leads[node] && (!may_go_on_from(s, node, &may) || (may && !look_for_lead(s, node, &any))))
                return false;
        }
    }
    return true;
}

/* RFC 5280, section 6.1.4, of one CA with so many others below it. Signatures and times were checked on the way. */
static bool may_sign(X509 *leaf, X509 *ca, long below)
{
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(ca, NID_name_constraints, NULL, NULL);
    long most = X509_get_pathlen(ca); /* -1: any */
    bool may = X509_check_ca(ca) == 1 && !(X509_get_extension_flags(ca) & EXFLAG_CRITICAL) &&
               (most < 0 || below <= most) && (!constraints || NAME_CONSTRAINTS_check(leaf, constraints) == X509_V_OK);
    NAME_CONSTRAINTS_free(constraints);
    return may;
}

static bool holds_as_go(const struct search *s)
{
    X509 *leaf = s->paths->leaf;
    for (int i = 0; i < sk_X509_num(s->way); i++)
        if (!may_sign(leaf, sk_X509_value(s->way, i), i))
            return false;
    return !(X509_get_extension_flags(leaf) & EXFLAG_CRITICAL) &&
           may_sign(leaf, node_x509(s->paths, s->anchor), sk_X509_num(s->way));
}

static bool climb(struct search *s, size_t node);

static bool climb_by(struct search *s, size_t issuer)
{
    if (issuer == s->anchor) {
        if (!verify_with(s->paths, s->way, s->q, &s->verifies, s->err))
            return false;
        s->verifies = s->verifies || (s->paths->as_go && holds_as_go(s));
        return true;
    }
    if (sk_X509_push(s->way, node_x509(s->paths, issuer)) <= 0)
        return cr_error_set(s->err, CR_ERR_INTERNAL, "no memory for certificates");
    s->used[issuer] = true;
    bool done = climb(s, issuer);
    s->used[issuer] = false;
    (void)sk_X509_pop(s->way);
    return done;
}

/* A way that cannot end costs no signature, and there can be as many as orders of what stands above the leaf. */
static bool may_step(struct search *s)
{
    if (s->paths->steps++ < CR_PATHS_STEPS_MAX)
        return true;
    return cr_error_set(s->err, CR_ERR_INVALID,
                        "more than %d steps would have to be made from certificate to certificate for one leaf",
                        CR_PATHS_STEPS_MAX);
}

static bool climb(struct search *s, size_t node)
{
    if (!may_step(s))
        return false;
    for (size_t issuer = 0; issuer < s->paths->nodes_len && !s->verifies; issuer++) {
        bool linked = false;
        bool may = issuer == s->anchor;
        if (s->used[issuer] || !s->leads[issuer])
            continue;
        if (!may && !may_go_on_from(s, issuer, &may))
            return false;
        if (!may)
            continue;
        if (!is_linked(s->paths, node, issuer, &linked, s->err) || (linked && !climb_by(s, issuer)))
            return false;
    }
    return true;
}

static size_t node_of(const struct cr_paths *paths, size_t item)
{
    size_t node = 0;
    while (paths->nodes[node] != item)
        node++;
    return node;
}

/* As verifiers that go back do, Go's among them. */
static bool search(struct cr_paths *paths, const struct question *q, bool *verifies, struct cr_error *err)
{
    if (!paths->links)
        paths->links = cr_calloc((paths->nodes_len + 1) * (paths->nodes_len + 1), 1);
    struct search s = {.paths = paths, .q = q, .anchor = node_of(paths, q->anchor), .err = err};
    s.way = sk_X509_new_null();
    bool done = s.way ? find_leads(&s) && (!s.leads[paths->nodes_len] || climb(&s, paths->nodes_len))
                      : cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
    sk_X509_free(s.way);
    *verifies = s.verifies;
    return done;
}

bool cr_paths_verify(struct cr_paths *paths, size_t anchor, enum cr_paths_time when, int64_t at_ms, bool *verifies,
                     size_t *issuer, struct cr_error *err)
{
    const struct question q = {.anchor = anchor, .when = when, .at_ms = at_ms, .issuer = issuer};
    *verifies = false;
    if (!paths->items[anchor].x509)
        return true;
    return verify_with(paths, paths->between, &q, verifies, err) && (*verifies || search(paths, &q, verifies, err));
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
    *signer = is_self_signed(paths) ? CR_PATHS_ITSELF : CR_PATHS_NONE;
    for (size_t i = 0; *signer == CR_PATHS_NONE && i < paths->len; i++) {
        const struct candidate *one = &paths->items[i];
        if (one->x509 && !may_check(paths, err))
            return false;
        if (one->x509 && is_signed_by(paths, one->subject, X509_get0_pubkey(one->x509)))
            *signer = i;
    }
    return true;
}
