/* In which order a bundle is published, so that whoever verified leaves of the domain with what is there still does. */
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/domain_objects_internal.h"

enum rank { NEXT, CURRENT, PREVIOUS, RANKS };

static enum rank rank_of(const struct cr_domain_objects *objects, size_t ca)
{
    const struct cr_held_ca *held = cr_domain_authority_of(objects, ca);
    if (held == &objects->next)
        return NEXT;
    return held || objects->cas[ca].in_source ? CURRENT : PREVIOUS;
}

struct order {
    size_t *cas;
    size_t len;
    bool *done;
};

static void put(struct order *order, const bool *chosen, size_t ca)
{
    if (!chosen[ca] || order->done[ca])
        return;
    order->done[ca] = true;
    order->cas[order->len++] = ca;
}

/* [next, current…, previous], each the newest first, as the set is; behind what is published, in its order, if that is
 * given. */
static bool write_in_order(const struct cr_domain_objects *objects, const bool *chosen,
                           const struct cr_pem_input *published, struct cr_buf *out, struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree size_t *cas = cr_calloc(len + 1, sizeof *cas);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    cr_autofree bool *done = cr_calloc(len + 1, sizeof *done);
    struct order order = {.cas = cas, .done = done};
    size_t held_len = published ? cr_ca_set_list(objects->set, published, held) : 0;
    for (size_t i = 0; i < held_len; i++)
        put(&order, chosen, held[i]);
    for (int rank = NEXT; rank < RANKS; rank++)
        for (size_t i = 0; i < len; i++)
            if (rank_of(objects, i) == (enum rank)rank)
                put(&order, chosen, i);
    if (!order.len)
        return cr_error_set(err, CR_ERR_INVALID, "a bundle without a CA would make everybody refuse everybody");
    return cr_ca_set_write(objects->set, cas, order.len, out, err);
}

/* --- who would be cut off --- */

/* Leaves that pods may show: published, in a source, or kept to be put back. */
struct leaves {
    struct cr_stored_leaf *stored;
    char **names;
    struct cr_bundle_leaf *list;
    size_t len;
};

enum { VIEWS = 3 };

static void leaves_cleanup(struct leaves *leaves)
{
    for (size_t i = 0; i < leaves->len; i++) {
        cr_stored_leaf_dispose(&leaves->stored[i]);
        free(leaves->names[i]);
    }
    free(leaves->stored);
    free(leaves->names);
    free(leaves->list);
}

/* The last that was stored. */
static void list_leaf(const struct cr_domain_item *item, struct leaves *leaves)
{
    struct cr_stored_leaf *stored = &leaves->stored[leaves->len];
    if (!stored->certificate.bytes.len) {
        cr_stored_leaf_dispose(stored);
        *stored = (struct cr_stored_leaf){0};
        return;
    }
    leaves->names[leaves->len] = cr_domain_object_label(item->resource, item->ns, item->name);
    leaves->list[leaves->len] =
        (struct cr_bundle_leaf){.name = leaves->names[leaves->len], .chain = cr_entry_pem(&stored->certificate)};
    leaves->len++;
}

static void add_leaves(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                       struct leaves *leaves)
{
    cr_autofree char *previous = cr_domain_staging_previous(cr_domain_item_leaf(objects, item));
    cr_stored_leaf_read(item->object, &leaves->stored[leaves->len]);
    list_leaf(item, leaves);
    cr_stored_leaf_read(item->source, &leaves->stored[leaves->len]);
    list_leaf(item, leaves);
    cr_domain_staging_leaf(objects, previous, &leaves->stored[leaves->len]);
    list_leaf(item, leaves);
}

/* Of those that have consented alone: nobody else can keep a CA. */
static void read_leaves(const struct cr_domain_objects *objects, const struct cr_domain_item *replaced,
                        struct leaves *leaves)
{
    size_t most = objects->items_len * VIEWS + 1;
    leaves->stored = cr_calloc(most, sizeof *leaves->stored);
    leaves->names = cr_calloc(most, sizeof *leaves->names);
    leaves->list = cr_calloc(most, sizeof *leaves->list);
    for (size_t i = 0; i < objects->items_len; i++)
        if (&objects->items[i] != replaced && objects->items[i].is_leaf &&
            cr_domain_owns(objects, objects->items[i].object))
            add_leaves(objects, &objects->items[i], leaves);
}

struct question {
    const bool *chosen;
    struct cr_pem_input published;
    const struct cr_domain_item *replaced; /* NULL: none */
    bool strict;                           /* as cr_bundle_check */
};

static void digest_of(const struct cr_domain_objects *objects, const struct question *q, const struct cr_buf *text,
                      char out[CR_SHA256_HEX])
{
    size_t replaced = q->replaced ? (size_t)(q->replaced - objects->items) : SIZE_MAX;
    const struct cr_sha256_piece pieces[] = {{q->published.data, q->published.len},
                                             {&replaced, sizeof replaced},
                                             {&q->strict, sizeof q->strict},
                                             {text->data, text->len}};
    cr_sha256_hex_pieces(pieces, cr_array_len(pieces), out);
}

/* Most objects have the same bundle, and get the same: what was found of it is remembered until something is written.
 */
static bool check(struct cr_domain_objects *objects, const struct question *q, const struct cr_buf *text,
                  enum cr_bundle_proof *proof, struct cr_error *err)
{
    char digest[CR_SHA256_HEX];
    digest_of(objects, q, text, digest);
    for (size_t i = 0; i < cr_array_len(objects->proofs); i++)
        if (strcmp(objects->proofs[i].digest, digest) == 0) {
            *proof = objects->proofs[i].proof;
            return true;
        }
    __attribute__((cleanup(leaves_cleanup))) struct leaves leaves = {0};
    read_leaves(objects, q->replaced, &leaves);
    const struct cr_pem_input next = {text->data, text->len};
    if (!cr_bundle_check(&q->published, &next, leaves.list, leaves.len, q->strict, objects->now_ms, proof, err))
        return false;
    struct cr_domain_proof *known = &objects->proofs[objects->proofs_next++ % cr_array_len(objects->proofs)];
    memcpy(known->digest, digest, sizeof digest);
    known->proof = *proof;
    return true;
}

/* NULL: there is nothing that anybody could verify with. */
static struct cr_entry *published_of(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                     size_t *len)
{
    *len = 0;
    return cr_domain_owns(objects, item->object) ? cr_domain_bundles_read(objects, item, len) : NULL;
}

static bool try_one(struct cr_domain_objects *objects, const struct question *q, bool new_last, struct cr_buf *out,
                    enum cr_bundle_proof *proof, struct cr_error *err)
{
    cr_buf_reset(out);
    return write_in_order(objects, q->chosen, new_last ? &q->published : NULL, out, err) &&
           check(objects, q, out, proof, err);
}

/* The new CAs first, then last; all clients, then those that must be kept. *good: nobody is cut off. */
static bool try_all(struct cr_domain_objects *objects, struct question *q, struct cr_buf *out, bool *good,
                    struct cr_error *err)
{
    *good = false;
    for (int attempt = 0; attempt < 4 && !*good; attempt++) {
        enum cr_bundle_proof proof = CR_BUNDLE_PROVED;
        q->strict = attempt < 2;
        if (!try_one(objects, q, attempt % 2, out, &proof, err))
            return false;
        *good = proof == CR_BUNDLE_PROVED;
    }
    return true;
}

/* What is published and at hand stays beside it: what the plan knows of who trusts whom says nothing of a client that
 * takes one CA for another. */
static bool keep_published(struct cr_domain_objects *objects, struct question *q, struct cr_buf *out,
                           struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree bool *more = cr_calloc(len + 1, sizeof *more);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    size_t held_len = cr_ca_set_list(objects->set, &q->published, held);
    memcpy(more, q->chosen, len * sizeof *more);
    for (size_t i = 0; i < held_len; i++)
        more[held[i]] = more[held[i]] || objects->cas[held[i]].not_after_ms > objects->now_ms;
    const bool *chosen = q->chosen;
    bool good = false;
    q->chosen = more;
    bool done = try_all(objects, q, out, &good, err);
    if (done && !good) { /* nothing helps, or nobody can say: then as little moves as can */
        cr_buf_reset(out);
        done = write_in_order(objects, more, &q->published, out, err);
    }
    q->chosen = chosen;
    return done;
}

/* The leaf that is replaced in the same write can lose its clients when the plan says that it may go; no other can. */
static bool arrange(struct cr_domain_objects *objects, struct question *q, const struct cr_domain_item *replaced,
                    struct cr_buf *out, struct cr_error *err)
{
    bool good = false;
    if (!try_all(objects, q, out, &good, err))
        return false;
    q->replaced = replaced;
    if (!good && replaced && !try_all(objects, q, out, &good, err))
        return false;
    return good || keep_published(objects, q, out, err);
}

bool cr_domain_bundle_write(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_domain_write *write, struct cr_buf *out, struct cr_error *err)
{
    size_t len = 0;
    struct cr_entry *entries = published_of(objects, item, &len);
    const struct cr_domain_item *replaced = write->leaf == CR_LEAF_ACT_KEEP ? NULL : item;
    struct question q = {.chosen = write->bundle,
                         .published = len ? cr_entry_pem(&entries[0]) : (struct cr_pem_input){0}};
    bool done =
        q.published.len ? arrange(objects, &q, replaced, out, err) : write_in_order(objects, q.chosen, NULL, out, err);
    cr_domain_bundles_free(entries, len);
    return done;
}
