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

static void put(struct order *order, size_t ca)
{
    if (order->done[ca])
        return;
    order->done[ca] = true;
    order->cas[order->len++] = ca;
}

/* The whole set: [next, current…, previous], each the newest first, as the set is; behind what is published, in its
 * order, if that is given. Owned. */
static size_t *list_in_order(const struct cr_domain_objects *objects, const struct cr_pem_input *published)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    cr_autofree bool *done = cr_calloc(len + 1, sizeof *done);
    struct order order = {.cas = cr_calloc(len + 1, sizeof *order.cas), .done = done};
    size_t held_len = published ? cr_ca_set_list(objects->set, published, held) : 0;
    for (size_t i = 0; i < held_len; i++)
        put(&order, held[i]);
    for (int rank = NEXT; rank < RANKS; rank++)
        for (size_t i = 0; i < len; i++)
            if (rank_of(objects, i) == (enum rank)rank)
                put(&order, i);
    return order.cas;
}

static bool write_order(const struct cr_domain_objects *objects, const size_t *order, size_t len, struct cr_buf *out,
                        struct cr_error *err)
{
    if (!len)
        return cr_error_set(err, CR_ERR_INVALID, "a bundle without a CA would make everybody refuse everybody");
    return cr_ca_set_write(objects->set, order, len, out, err);
}

/* Those that are chosen; behind what is published, if that is given. */
static bool write_chosen(const struct cr_domain_objects *objects, const bool *chosen,
                         const struct cr_pem_input *published, struct cr_buf *out, struct cr_error *err)
{
    size_t len = 0;
    cr_autofree size_t *order = list_in_order(objects, published);
    for (size_t i = 0; i < cr_ca_set_len(objects->set); i++)
        if (chosen[order[i]])
            order[len++] = order[i];
    return write_order(objects, order, len, out, err);
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
        if (&objects->items[i] != replaced && objects->items[i].is_leaf && !objects->items[i].closed &&
            cr_domain_owns(objects, objects->items[i].object))
            add_leaves(objects, &objects->items[i], leaves);
}

struct question {
    const bool *chosen;
    const bool *spare; /* may stay beside it */
    struct cr_pem_input published;
    const struct cr_domain_item *replaced; /* NULL: none */
};

static void digest_of(const struct cr_domain_objects *objects, const struct question *q, char out[CR_SHA256_HEX])
{
    size_t len = cr_ca_set_len(objects->set);
    size_t replaced = q->replaced ? (size_t)(q->replaced - objects->items) : SIZE_MAX;
    const struct cr_sha256_piece pieces[] = {{q->published.data, q->published.len},
                                             {&replaced, sizeof replaced},
                                             {q->chosen, len * sizeof *q->chosen},
                                             {q->spare, len * sizeof *q->spare}};
    cr_sha256_hex_pieces(pieces, cr_array_len(pieces), out);
}

static bool ask(struct cr_domain_objects *objects, const struct question *q, struct cr_domain_proof *found,
                struct cr_error *err)
{
    cr_autofree size_t *preferred = list_in_order(objects, NULL);
    __attribute__((cleanup(leaves_cleanup))) struct leaves leaves = {0};
    read_leaves(objects, q->replaced, &leaves);
    const struct cr_ca_arrangement arrangement = {.must = q->chosen,
                                                  .spare = q->spare,
                                                  .preferred = preferred,
                                                  .published = q->published,
                                                  .leaves = leaves.list,
                                                  .leaves_len = leaves.len};
    return cr_ca_set_arrange(objects->set, &arrangement, objects->now_ms, found->order, &found->len, &found->proof,
                             &found->kept, err);
}

void cr_domain_proofs_forget(struct cr_domain_objects *objects)
{
    for (size_t i = 0; i < cr_array_len(objects->proofs); i++)
        free(objects->proofs[i].order);
    memset(objects->proofs, 0, sizeof objects->proofs);
}

/* Most objects have the same bundle, and get the same: what was found of it is remembered until something is written.
 * Borrowed until the next is asked for. */
static const struct cr_domain_proof *find_order(struct cr_domain_objects *objects, const struct question *q,
                                                struct cr_error *err)
{
    struct cr_domain_proof found = {0};
    digest_of(objects, q, found.digest);
    for (size_t i = 0; i < cr_array_len(objects->proofs); i++)
        if (strcmp(objects->proofs[i].digest, found.digest) == 0)
            return &objects->proofs[i];
    found.order = cr_calloc(cr_ca_set_len(objects->set) + 1, sizeof *found.order);
    if (!ask(objects, q, &found, err)) {
        free(found.order);
        return NULL;
    }
    struct cr_domain_proof *known = &objects->proofs[objects->proofs_next++ % cr_array_len(objects->proofs)];
    free(known->order);
    *known = found;
    return known;
}

/* NULL: there is nothing that anybody could verify with. */
static struct cr_entry *published_of(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                     size_t *len)
{
    *len = 0;
    return cr_domain_owns(objects, item->object) ? cr_domain_bundles_read(objects, item, len) : NULL;
}

/* What the object has of what is at hand, and that has not expired. Owned. */
static bool *list_held(const struct cr_domain_objects *objects, const struct question *q)
{
    size_t len = cr_ca_set_len(objects->set);
    bool *has = cr_calloc(len + 1, sizeof *has);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    size_t held_len = cr_ca_set_list(objects->set, &q->published, held);
    for (size_t i = 0; i < held_len; i++)
        has[held[i]] = objects->cas[held[i]].not_after_ms > objects->now_ms;
    return has;
}

/* Nothing helps: then as little moves as can. */
static bool keep_published(struct cr_domain_objects *objects, const struct question *q, struct cr_buf *out,
                           struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree bool *more = cr_calloc(len + 1, sizeof *more);
    for (size_t i = 0; i < len; i++)
        more[i] = q->chosen[i] || q->spare[i];
    return write_chosen(objects, more, &q->published, out, err);
}

/* The leaf that is replaced in the same write can lose its clients when the plan says that it may go; no other can. And
 * what is published and at hand may stay beside it: what the plan knows of who trusts whom says nothing of a client
 * that takes one CA for another. */
static bool arrange(struct cr_domain_objects *objects, struct question *q, const struct cr_domain_item *replaced,
                    struct cr_buf *out, struct cr_error *err)
{
    cr_autofree bool *none = cr_calloc(cr_ca_set_len(objects->set) + 1, sizeof *none);
    cr_autofree bool *held = list_held(objects, q);
    q->spare = none;
    const struct cr_domain_proof *found = find_order(objects, q, err);
    if (found && !found->kept && replaced) {
        q->replaced = replaced;
        found = find_order(objects, q, err);
    }
    if (found && !found->kept) {
        q->spare = held;
        found = find_order(objects, q, err);
    }
    if (!found)
        return false;
    return found->len ? write_order(objects, found->order, found->len, out, err) : keep_published(objects, q, out, err);
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
        q.published.len ? arrange(objects, &q, replaced, out, err) : write_chosen(objects, q.chosen, NULL, out, err);
    cr_domain_bundles_free(entries, len);
    return done;
}
