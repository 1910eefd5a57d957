#include "pki/ca_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "pki/bundle_cutoff.h"
#include "pki/bundle_order.h"
#include "pki/openssl_internal.h"
#include "pki/paths.h"
#include "pki/x509.h"

enum { CHAIN_MAX = 32, SUBJECT_MAX = 200 };

struct member {
    struct cr_ca_facts facts;
    X509 *cert;
};

struct cr_ca_set {
    struct member *items;
    size_t len;
};

struct cr_ca_set *cr_ca_set_new(void)
{
    return cr_new(struct cr_ca_set);
}

static void drop_from(struct cr_ca_set *set, size_t first)
{
    for (size_t i = first; i < set->len; i++) {
        X509_free(set->items[i].cert);
        free(set->items[i].facts.subject);
    }
    set->len = first;
}

void cr_ca_set_free(struct cr_ca_set *set)
{
    if (!set)
        return;
    drop_from(set, 0);
    free(set->items);
    free(set);
}

/* --- what it has --- */

static char *subject_of(const X509 *cert)
{
    char *text = NULL;
    CR_CLEANUP(cr_bio) BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0 ||
        BIO_write(bio, "", 1) != 1 || BIO_get_mem_data(bio, &text) <= 0)
        return cr_strdup("");
    return cr_text_clip(text, SUBJECT_MAX);
}

size_t cr_ca_set_len(const struct cr_ca_set *set)
{
    return set->len;
}

const struct cr_ca_facts *cr_ca_set_facts(const struct cr_ca_set *set, size_t at)
{
    return &set->items[at].facts;
}

size_t cr_ca_set_find(const struct cr_ca_set *set, const char *fingerprint)
{
    size_t at = 0;
    while (at < set->len && strcmp(set->items[at].facts.fingerprint, fingerprint) != 0)
        at++;
    return at;
}

static bool add(struct cr_ca_set *set, X509 *cert, const struct cr_strvec *only, struct cr_error *err)
{
    struct member member = {.cert = cert};
    cr_x509_fingerprint(cert, member.facts.fingerprint);
    if (cr_ca_set_find(set, member.facts.fingerprint) < set->len ||
        (only && !cr_strvec_has(only, member.facts.fingerprint)))
        return true;
    if (set->len == CR_BUNDLE_CAS_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "there are more than %d CAs", CR_BUNDLE_CAS_MAX);
    member.facts.subject = subject_of(cert);
    member.facts.not_before_ms = cr_x509_not_before_ms(cert);
    member.facts.not_after_ms = cr_x509_not_after_ms(cert);
    member.facts.root = cr_x509_is_root(cert);
    X509_up_ref(cert);
    set->items = cr_reallocarray(set->items, set->len + 1, sizeof *set->items);
    set->items[set->len++] = member;
    return true;
}

bool cr_ca_set_add(struct cr_ca_set *set, const struct cr_pem_input *in, const struct cr_strvec *only,
                   struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    size_t before = set->len;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, err);
    if (!read)
        return false;
    for (int i = 0; i < sk_X509_num(read); i++) {
        if (add(set, sk_X509_value(read, i), only, err))
            continue;
        drop_from(set, before);
        return false;
    }
    return true;
}

static bool has_few_namesakes(const STACK_OF(X509) * certs, struct cr_error *err)
{
    for (int i = 0; i < sk_X509_num(certs); i++) {
        int namesakes = 0;
        const X509_NAME *name = X509_get_subject_name(sk_X509_value(certs, i));
        for (int k = i; k < sk_X509_num(certs); k++)
            namesakes += X509_NAME_cmp(X509_get_subject_name(sk_X509_value(certs, k)), name) == 0;
        if (namesakes > CR_CA_SET_NAMESAKES_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "there are %d CAs of one name, more than the %d that are used",
                                namesakes, CR_CA_SET_NAMESAKES_MAX);
    }
    return true;
}

bool cr_ca_set_affords(const struct cr_pem_input *in, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, err);
    for (int i = 0; read && i < sk_X509_num(read); i++)
        if (!cr_paths_affords(sk_X509_value(read, i), err))
            return false;
    return read && has_few_namesakes(read, err);
}

static int compare_age(const void *a, const void *b)
{
    const struct cr_ca_facts *x = &((const struct member *)a)->facts;
    const struct cr_ca_facts *y = &((const struct member *)b)->facts;
    if (x->not_before_ms != y->not_before_ms)
        return x->not_before_ms > y->not_before_ms ? -1 : 1;
    return strcmp(x->fingerprint, y->fingerprint);
}

void cr_ca_set_sort(struct cr_ca_set *set)
{
    if (set->len)
        qsort(set->items, set->len, sizeof *set->items, compare_age);
}

/* --- what to trust for a CA --- */

/* Finds the first root of trust (NULL: there is none) that the first of chain verifies against. Borrowed; NULL: none.
 */
static bool find_root(STACK_OF(X509) * chain, STACK_OF(X509) * trust, X509 **root, struct cr_error *err)
{
    bool found = false;
    *root = NULL;
    CR_CLEANUP(cr_paths) struct cr_paths *paths = cr_paths_of_chain(chain, trust, true, err);
    for (int i = 0; paths && trust && !found && i < sk_X509_num(trust); i++) {
        X509 *one = sk_X509_value(trust, i);
        if (!cr_x509_is_root(one))
            continue;
        if (!cr_paths_verify(paths, cr_paths_sent(chain) + (size_t)i, CR_PATHS_AT_NO_TIME, 0, &found, NULL, err))
            return false;
        *root = found ? one : NULL;
    }
    return paths;
}

bool cr_ca_set_add_anchor(struct cr_ca_set *set, const struct cr_pem_input *chain, const struct cr_pem_input *trust,
                          char out[CR_SHA256_HEX], struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *own = cr_x509_read(chain, CHAIN_MAX, err);
    if (!own)
        return false;
    CR_CLEANUP(cr_x509_list)
    STACK_OF(X509) *others = trust->len ? cr_x509_read(trust, CR_BUNDLE_CAS_MAX, NULL) : NULL;
    X509 *top = sk_X509_value(own, sk_X509_num(own) - 1);
    X509 *root = top;
    if (!cr_x509_is_root(top) && !find_root(own, others, &root, err))
        return false;
    cr_x509_fingerprint(root ? root : top, out);
    return add(set, root ? root : top, NULL, err);
}

/* --- texts and chains --- */

bool cr_ca_set_compare(const struct cr_ca_set *set, const struct cr_pem_input *in, bool *has)
{
    CR_OPENSSL_SCOPE;
    char fingerprint[CR_SHA256_HEX];
    memset(has, 0, set->len * sizeof *has);
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, NULL);
    bool exact = read != NULL;
    for (int i = 0; i < sk_X509_num(read); i++) {
        cr_x509_fingerprint(sk_X509_value(read, i), fingerprint);
        size_t at = cr_ca_set_find(set, fingerprint);
        exact = exact && at < set->len && !has[at];
        if (at < set->len)
            has[at] = true;
    }
    return exact;
}

size_t cr_ca_set_list(const struct cr_ca_set *set, const struct cr_pem_input *in, size_t *at)
{
    CR_OPENSSL_SCOPE;
    char fingerprint[CR_SHA256_HEX];
    size_t len = 0;
    cr_autofree bool *listed = cr_calloc(set->len + 1, sizeof *listed);
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(in, CR_BUNDLE_CAS_MAX, NULL);
    for (int i = 0; read && i < sk_X509_num(read); i++) {
        cr_x509_fingerprint(sk_X509_value(read, i), fingerprint);
        size_t found = cr_ca_set_find(set, fingerprint);
        if (found == set->len || listed[found])
            continue;
        listed[found] = true;
        at[len++] = found;
    }
    return len;
}

void cr_ca_set_find_issuers(const struct cr_ca_set *set, bool *issued)
{
    cr_autofree X509 **certs = cr_calloc(set->len + 1, sizeof(X509 *));
    for (size_t i = 0; i < set->len; i++)
        certs[i] = set->items[i].cert;
    cr_x509_find_issuers(certs, set->len, issued);
}

/* Each CA of the set can only be the anchor. */
static struct cr_paths *paths_to(const struct cr_ca_set *set, STACK_OF(X509) * chain, struct cr_error *err)
{
    STACK_OF(X509) *anchors = sk_X509_new_reserve(NULL, (int)set->len); /* borrowed certificates */
    if (!anchors) {
        cr_error_set(err, CR_ERR_INTERNAL, "no memory for certificates");
        return NULL;
    }
    for (size_t i = 0; i < set->len; i++)
        sk_X509_push(anchors, set->items[i].cert);
    struct cr_paths *paths = cr_paths_of_chain(chain, anchors, false, err);
    sk_X509_free(anchors);
    return paths;
}

static bool verify_with_each(const struct cr_ca_set *set, STACK_OF(X509) * chain, int64_t now_ms, bool *verifies,
                             struct cr_error *err)
{
    CR_CLEANUP(cr_paths) struct cr_paths *paths = paths_to(set, chain, err);
    for (size_t i = 0; paths && i < set->len; i++)
        if (!cr_paths_verify(paths, cr_paths_sent(chain) + i, CR_PATHS_WHEN_BOTH, now_ms, &verifies[i], NULL, err))
            return false;
    return paths;
}

bool cr_ca_set_verify(const struct cr_ca_set *set, const struct cr_pem_input *chain, int64_t now_ms,
                      struct cr_chain_facts *facts, bool *verifies, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    *facts = (struct cr_chain_facts){0};
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(chain, CHAIN_MAX, err);
    if (!read)
        return false;
    X509 *leaf = sk_X509_value(read, 0);
    cr_x509_fingerprint(leaf, facts->fingerprint);
    facts->not_before_ms = cr_x509_not_before_ms(leaf);
    facts->not_after_ms = cr_x509_not_after_ms(leaf);
    if (verify_with_each(set, read, now_ms, verifies, err))
        return true;
    memset(verifies, 0, set->len * sizeof *verifies);
    return false;
}

bool cr_ca_set_knows_issuer(const struct cr_ca_set *set, const struct cr_pem_input *chain)
{
    CR_OPENSSL_SCOPE;
    bool known = false;
    CR_CLEANUP(cr_x509_list) STACK_OF(X509) *read = cr_x509_read(chain, CHAIN_MAX, NULL);
    CR_CLEANUP(cr_paths) struct cr_paths *paths = read ? paths_to(set, read, NULL) : NULL;
    for (size_t i = 0; paths && !known && i < set->len; i++)
        if (!cr_paths_verify(paths, cr_paths_sent(read) + i, CR_PATHS_AT_NO_TIME, 0, &known, NULL, NULL))
            return false;
    return known;
}

/* --- the order of a bundle --- */

/* The set, then what is published beyond it. */
struct at_hand {
    X509 **certs; /* borrowed */
    size_t len;
    size_t *published; /* indexes: for each text its own, one after the other */
    size_t published_len;
};

static void at_hand_cleanup(struct at_hand *at_hand)
{
    free(at_hand->certs);
    free(at_hand->published);
}

static void list_set(const struct cr_ca_set *set, struct at_hand *out)
{
    out->certs = cr_calloc(set->len + 1, sizeof(X509 *));
    for (; out->len < set->len; out->len++)
        out->certs[out->len] = set->items[out->len].cert;
}

/* One text. */
static void list_published(struct at_hand *out, STACK_OF(X509) * published)
{
    size_t more = (size_t)sk_X509_num(published);
    out->certs = cr_reallocarray(out->certs, out->len + more + 1, sizeof(X509 *));
    out->published = cr_reallocarray(out->published, out->published_len + more + 1, sizeof *out->published);
    for (int i = 0; i < sk_X509_num(published); i++) {
        size_t at = 0;
        while (at < out->len && X509_cmp(out->certs[at], sk_X509_value(published, i)) != 0)
            at++;
        out->certs[at] = sk_X509_value(published, i);
        out->len += at == out->len;
        out->published[out->published_len++] = at;
    }
}

static void ask_for_order(struct cr_cutoff *cutoff, const struct cr_ca_set *set, const struct at_hand *at_hand,
                          const struct cr_ca_arrangement *arrangement, struct cr_ordered *out)
{
    cr_autofree enum cr_order_wish *wishes = cr_calloc(at_hand->len + 1, sizeof *wishes);
    cr_autofree size_t *preferred = cr_calloc(at_hand->len + 1, sizeof *preferred);
    for (size_t i = 0; i < at_hand->len; i++) {
        bool known = i < set->len;
        preferred[i] = known ? arrangement->preferred[i] : i;
        wishes[i] = known && arrangement->must[i]    ? CR_ORDER_MUST
                    : known && arrangement->spare[i] ? CR_ORDER_SPARE
                                                     : CR_ORDER_OUT;
    }
    cr_bundle_arrange(cutoff,
                      &(struct cr_order_question){.wishes = wishes,
                                                  .preferred = preferred,
                                                  .len = at_hand->len,
                                                  .published = at_hand->published,
                                                  .published_len = at_hand->published_len,
                                                  .as_it_is = arrangement->as_it_is},
                      out);
}

/* What is read stays for as long as it is asked for. */
struct asked {
    struct cr_cutoff *cutoff;
    STACK_OF(X509) * *chains;
    size_t *leaves; /* of the arrangement, as they were added */
    size_t len;
    STACK_OF(X509) * *texts;
    size_t texts_len;
};

static void asked_cleanup(struct asked *asked)
{
    cr_cutoff_free(asked->cutoff);
    for (size_t i = 0; i < asked->len; i++)
        cr_x509_list_free(asked->chains[i]);
    for (size_t i = 0; i < asked->texts_len; i++)
        cr_x509_list_free(asked->texts[i]);
    free(asked->chains);
    free(asked->leaves);
    free(asked->texts);
}

/* No client can verify with a text that cannot be read. */
static void add_published(const struct cr_ca_arrangement *arrangement, int64_t now_ms, struct at_hand *at_hand,
                          struct asked *asked)
{
    cr_autofree size_t *ends = cr_calloc(arrangement->published_len + 1, sizeof *ends);
    asked->texts = cr_calloc(arrangement->published_len + 1, sizeof *asked->texts);
    for (size_t i = 0; i < arrangement->published_len; i++) {
        STACK_OF(X509) *text = cr_x509_read(&arrangement->published[i], CR_BUNDLE_CAS_MAX, NULL);
        if (!text)
            continue;
        list_published(at_hand, text);
        asked->texts[asked->texts_len] = text;
        ends[asked->texts_len++] = at_hand->published_len;
    }
    asked->cutoff = cr_cutoff_new(at_hand->certs, at_hand->len, now_ms);
    for (size_t i = 0, begin = 0; i < asked->texts_len; begin = ends[i++])
        cr_cutoff_add_published(asked->cutoff, at_hand->published + begin, ends[i] - begin);
}

static bool add_leaf(struct asked *asked, const struct cr_ca_arrangement *arrangement, size_t at, struct cr_error *err)
{
    struct cr_error failed = {0};
    const struct cr_pem_input *chain = &arrangement->leaves[at].chain;
    if (!chain->len || cr_cutoff_is_spent(asked->cutoff))
        return true;
    STACK_OF(X509) *read = cr_x509_read(chain, CHAIN_MAX, &failed);
    if (read) {
        asked->chains[asked->len] = read;
        asked->leaves[asked->len++] = at;
    }
    if (read && cr_cutoff_add_leaf(asked->cutoff, read, &failed))
        return true;
    if (failed.kind != CR_ERR_INVALID)
        return cr_error_set(err, failed.kind, "%s", failed.text);
    cr_cutoff_spend(asked->cutoff);
    return true;
}

static void name_loss(const struct cr_ca_arrangement *arrangement, const struct asked *asked,
                      const struct cr_ordered *ordered, struct cr_bundle_finding *finding)
{
    *finding = (struct cr_bundle_finding){.proof = ordered->proof};
    if (ordered->proof == CR_BUNDLE_TOO_COSTLY || (ordered->proof == CR_BUNDLE_PROVED && !ordered->given_up))
        return;
    finding->leaf = arrangement->leaves[asked->leaves[ordered->leaf]].name;
    finding->client = cr_bundle_client_name(ordered->client);
}

bool cr_ca_set_arrange(const struct cr_ca_set *set, const struct cr_ca_arrangement *arrangement, int64_t now_ms,
                       size_t *order, size_t *order_len, struct cr_bundle_finding *finding, struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    __attribute__((cleanup(at_hand_cleanup))) struct at_hand at_hand = {0};
    __attribute__((cleanup(asked_cleanup))) struct asked asked = {
        .chains = cr_calloc(arrangement->leaves_len + 1, sizeof *asked.chains),
        .leaves = cr_calloc(arrangement->leaves_len + 1, sizeof *asked.leaves)};
    CR_CLEANUP(cr_ordered) struct cr_ordered ordered = {0};
    list_set(set, &at_hand);
    add_published(arrangement, now_ms, &at_hand, &asked);
    for (size_t i = 0; i < arrangement->leaves_len; i++)
        if (!add_leaf(&asked, arrangement, i, err))
            return false;
    bool beyond_asking = cr_cutoff_is_spent(asked.cutoff);
    ask_for_order(asked.cutoff, set, &at_hand, arrangement, &ordered);
    for (size_t i = 0; i < ordered.len; i++)
        order[i] = ordered.bundle[i];
    *order_len = ordered.len;
    name_loss(arrangement, &asked, &ordered, finding);
    finding->beyond_asking = beyond_asking;
    return true;
}

bool cr_ca_set_write(const struct cr_ca_set *set, const size_t *order, size_t len, struct cr_buf *out,
                     struct cr_error *err)
{
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_buf) struct cr_buf pem = CR_BUF_INIT(CR_BUNDLE_BYTES_MAX);
    for (size_t i = 0; i < len; i++)
        if (!cr_x509_write(set->items[order[i]].cert, &pem, err))
            return cr_error_wrap(err, "the bundle is too large");
    if (pem.len && !cr_buf_append(out, pem.data, pem.len))
        return cr_error_set(err, CR_ERR_INVALID, "there is no room for the bundle");
    return true;
}
