/* In which order a bundle is published, so that peers that verified leaves of the domain with the old bundle still do.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "trust/controller/domain_objects_internal.h"

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

/* What the object has in all of its places: each webhook of a configuration can have another text. */
struct places {
    const struct cr_entry *entries;
    size_t entries_len;
    struct cr_pem_input texts[CR_DOMAIN_PLACES_MAX]; /* of these, each once */
    size_t len;
    bool more;
};

/* The whole set: [next, current…, previous], each the newest first, in the order of the set. If published is given,
 * what it has comes first, in the order of the first place, then of the others. Owned. */
static size_t *list_in_order(const struct cr_domain_objects *objects, const struct places *published)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    cr_autofree bool *done = cr_calloc(len + 1, sizeof *done);
    struct order order = {.cas = cr_calloc(len + 1, sizeof *order.cas), .done = done};
    for (size_t i = 0; published && i < published->entries_len; i++) {
        const struct cr_pem_input text = cr_entry_pem(&published->entries[i]);
        size_t held_len = cr_ca_set_list(objects->set, &text, held);
        for (size_t k = 0; k < held_len; k++)
            put(&order, held[k]);
    }
    for (int rank = NEXT; rank < RANKS; rank++)
        for (size_t i = 0; i < len; i++)
            if (rank_of(objects, i) == (enum rank)rank)
                put(&order, i);
    return order.cas;
}

static size_t count(const struct cr_domain_objects *objects, const bool *chosen)
{
    size_t len = 0;
    for (size_t i = 0; i < cr_ca_set_len(objects->set); i++)
        len += chosen[i];
    return len;
}

/* Lists those that are chosen, after what is published, if that is given. */
static bool write_chosen(const struct cr_domain_objects *objects, const bool *chosen, const struct places *published,
                         struct cr_buf *out, struct cr_error *err)
{
    size_t len = 0;
    cr_autofree size_t *order = list_in_order(objects, published);
    for (size_t i = 0; i < cr_ca_set_len(objects->set); i++)
        if (chosen[order[i]])
            order[len++] = order[i];
    return cr_ca_set_write(objects->set, order, len, out, err);
}

/* --- who would be cut off --- */

/* The write takes out a CA that spec.distrust lists: leaves that depend on it alone are lost, which the plan has taken
 * into account. */
static bool drops(const struct cr_domain_objects *objects, const bool *chosen, size_t ca)
{
    return !chosen[ca] && cr_domain_distrusts(objects->domain, objects->cas[ca].fingerprint);
}

/* Leaves that pods may show: published, in a source, or kept to be put back. */
struct leaves {
    struct cr_stored_leaf *stored;
    char **names;
    struct cr_bundle_leaf *list;
    size_t len;
    bool costly; /* there is one more, of which nothing can be asked */
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

static bool is_known(const struct cr_domain_objects *objects, const struct cr_leaf_memory *view, const bool *chosen)
{
    for (size_t i = 0; view->verifies && i < cr_ca_set_len(objects->set); i++)
        if (view->verifies[i] && !drops(objects, chosen, i))
            return true;
    return false;
}

/* Lists the last leaf that was stored. A leaf that verifies against no CA at hand keeps no CA: the account that put it
 * there would keep a CA of its own beside it. */
static void list_leaf(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                      const struct cr_leaf_memory *view, const bool *chosen, struct leaves *leaves)
{
    struct cr_stored_leaf *stored = &leaves->stored[leaves->len];
    leaves->costly = leaves->costly || view->costly;
    if (!stored->certificate.bytes.len || !is_known(objects, view, chosen)) {
        cr_stored_leaf_dispose(stored);
        *stored = (struct cr_stored_leaf){0};
        return;
    }
    leaves->names[leaves->len] = cr_domain_object_label(item->resource, item->ns, item->name);
    leaves->list[leaves->len] =
        (struct cr_bundle_leaf){.name = leaves->names[leaves->len], .chain = cr_entry_pem(&stored->certificate)};
    leaves->len++;
}

static void add_leaves(const struct cr_domain_objects *objects, const struct cr_domain_item *item, bool replaced,
                       const bool *chosen, struct leaves *leaves)
{
    cr_autofree char *previous = cr_domain_staging_previous(cr_domain_item_leaf(objects, item));
    if (!replaced) {
        cr_stored_leaf_read(item->object, &leaves->stored[leaves->len]);
        list_leaf(objects, item, &item->published, chosen, leaves);
    }
    cr_stored_leaf_read(item->source, &leaves->stored[leaves->len]);
    list_leaf(objects, item, &item->mirrored, chosen, leaves);
    cr_domain_staging_leaf(objects, previous, &leaves->stored[leaves->len]);
    list_leaf(objects, item, &item->previous, chosen, leaves);
}

/* The domain creates a missing object with the leaf of its source. */
static bool is_ours(const struct cr_domain_objects *objects, const struct cr_domain_item *item)
{
    return !item->closed && (!item->object || cr_domain_owns(objects, item->object));
}

/* Takes leaves only of objects that have consented: no other object can keep a CA. */
static void read_leaves(const struct cr_domain_objects *objects, const struct cr_domain_item *replaced,
                        const bool *chosen, struct leaves *leaves)
{
    size_t most = objects->items_len * VIEWS + 1;
    leaves->stored = cr_calloc(most, sizeof *leaves->stored);
    leaves->names = cr_calloc(most, sizeof *leaves->names);
    leaves->list = cr_calloc(most, sizeof *leaves->list);
    for (size_t i = 0; i < objects->items_len; i++)
        if (objects->items[i].is_leaf && is_ours(objects, &objects->items[i]))
            add_leaves(objects, &objects->items[i], &objects->items[i] == replaced, chosen, leaves);
}

struct question {
    const bool *chosen;
    const bool *spare; /* may stay beside it */
    bool grows;        /* in the order of what is published, with what is new behind it */
    const struct places *published;
    const struct cr_domain_item *replaced; /* its published leaf may lose its clients; NULL: none */
};

static void digest_of(const struct cr_domain_objects *objects, const struct question *q, char out[CR_SHA256_HEX])
{
    enum { BEFORE = 4 };
    const struct places *published = q->published;
    size_t cas = cr_ca_set_len(objects->set);
    size_t replaced = q->replaced ? (size_t)(q->replaced - objects->items) : SIZE_MAX;
    struct cr_sha256_piece pieces[BEFORE + 2 * CR_DOMAIN_PLACES_MAX] = {{&replaced, sizeof replaced},
                                                                        {q->chosen, cas * sizeof *q->chosen},
                                                                        {q->spare, cas * sizeof *q->spare},
                                                                        {&q->grows, sizeof q->grows}};
    size_t len = BEFORE;
    for (size_t i = 0; i < published->len; i++) {
        pieces[len++] = (struct cr_sha256_piece){&published->texts[i].len, sizeof published->texts[i].len};
        pieces[len++] = (struct cr_sha256_piece){published->texts[i].data, published->texts[i].len};
    }
    cr_sha256_hex_pieces(pieces, len, out);
}

static bool ask(struct cr_domain_objects *objects, const struct question *q, struct cr_domain_proof *found,
                struct cr_error *err)
{
    struct cr_bundle_finding finding;
    cr_autofree size_t *preferred = list_in_order(objects, q->grows ? q->published : NULL);
    __attribute__((cleanup(leaves_cleanup))) struct leaves leaves = {0};
    read_leaves(objects, q->replaced, q->chosen, &leaves);
    if (leaves.costly && !q->grows) {
        found->finding = (struct cr_domain_finding){.proof = CR_BUNDLE_TOO_COSTLY};
        return true;
    }
    const struct cr_ca_arrangement arrangement = {.must = q->chosen,
                                                  .spare = q->spare,
                                                  .preferred = preferred,
                                                  .as_it_is = q->grows,
                                                  .published = q->published->texts,
                                                  .published_len = q->published->len,
                                                  .leaves = leaves.list,
                                                  .leaves_len = leaves.len};
    if (!cr_ca_set_arrange(objects->set, &arrangement, objects->now_ms, found->order, &found->len, &finding, err))
        return false;
    found->finding = (struct cr_domain_finding){
        .proof = finding.proof, .client = finding.client, .beyond_asking = finding.beyond_asking};
    snprintf(found->finding.leaf, sizeof found->finding.leaf, "%s", cr_or_empty(finding.leaf));
    return true;
}

void cr_domain_proofs_forget(struct cr_domain_objects *objects)
{
    for (size_t i = 0; i < cr_array_len(objects->proofs); i++)
        free(objects->proofs[i].order);
    memset(objects->proofs, 0, sizeof objects->proofs);
}

/* Most objects have the same bundle and get the same one, so a result is remembered until something is written.
 * Borrowed until the next call. */
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

/* The CAs at hand that the object has, in any place, and that have neither expired nor must be removed at any price.
 * Owned. */
static bool *list_held(const struct cr_domain_objects *objects, const bool *chosen, const struct places *published)
{
    size_t len = cr_ca_set_len(objects->set);
    bool *has = cr_calloc(len + 1, sizeof *has);
    cr_autofree size_t *held = cr_calloc(len + 1, sizeof *held);
    for (size_t i = 0; i < published->entries_len; i++) {
        const struct cr_pem_input text = cr_entry_pem(&published->entries[i]);
        size_t held_len = cr_ca_set_list(objects->set, &text, held);
        for (size_t k = 0; k < held_len; k++)
            has[held[k]] = objects->cas[held[k]].not_after_ms > objects->now_ms && !drops(objects, chosen, held[k]);
    }
    return has;
}

/* No order helps: what is published stays. */
static bool leave(const struct question *q, struct cr_buf *out, struct cr_error *err)
{
    return cr_buf_append(out, q->published->texts[0].data, q->published->texts[0].len) ||
           cr_error_set(err, CR_ERR_INVALID, "the bundle is too large");
}

/* Trying all bundles is too costly, so as little as possible moves: all that is published, followed by what is new, is
 * one bundle, and the clients are checked with it, but for leaves of which nothing can be asked. Where one passes a
 * limit only here, this bundle is taken. */
static bool keep_published(struct cr_domain_objects *objects, const struct question *q, const bool *held,
                           struct cr_buf *out, struct cr_domain_finding *finding, struct cr_error *err)
{
    size_t len = cr_ca_set_len(objects->set);
    cr_autofree bool *more = cr_calloc(len + 1, sizeof *more);
    cr_autofree bool *none = cr_calloc(len + 1, sizeof *none);
    for (size_t i = 0; i < len; i++)
        more[i] = q->chosen[i] || held[i];
    struct question grown = *q;
    grown.chosen = more;
    grown.spare = none;
    grown.grows = true;
    const struct cr_domain_proof *found = q->published->more ? NULL : find_order(objects, &grown, err);
    if (!found && !q->published->more)
        return false;
    if (!found || found->finding.beyond_asking)
        return write_chosen(objects, more, q->published, out, err);
    if (found->finding.proof == CR_BUNDLE_PROVED)
        return cr_ca_set_write(objects->set, found->order, found->len, out, err);
    if (found->finding.proof == CR_BUNDLE_WOULD_CUT_OFF)
        *finding = found->finding;
    finding->keeps = true;
    return leave(q, out, err);
}

static bool is_lost(const struct cr_domain_finding *finding)
{
    return finding->leaf[0] != '\0';
}

/* CAs that are published and at hand may stay beside those that the plan wants: the plan knows who trusts whom, but not
 * that a client may take one CA for another. Where not even that helps, the leaf that is replaced in the same write may
 * lose its clients; no other may. *finding: of what was chosen alone. */
static const struct cr_domain_proof *search(struct cr_domain_objects *objects, struct question *q,
                                            const struct cr_domain_item *replaced, const bool *held,
                                            struct cr_domain_finding *finding, struct cr_error *err)
{
    cr_autofree bool *none = cr_calloc(cr_ca_set_len(objects->set) + 1, sizeof *none);
    for (;;) {
        q->spare = none;
        const struct cr_domain_proof *found = find_order(objects, q, err);
        if (!found)
            return NULL;
        *finding = found->finding;
        q->spare = held;
        if (is_lost(finding))
            found = find_order(objects, q, err);
        if (!found || found->finding.proof != CR_BUNDLE_WOULD_CUT_OFF || !replaced || q->replaced)
            return found;
        q->replaced = replaced;
    }
}

static bool arrange(struct cr_domain_objects *objects, struct question *q, const struct cr_domain_item *replaced,
                    struct cr_buf *out, struct cr_domain_finding *finding, struct cr_error *err)
{
    cr_autofree bool *held = list_held(objects, q->chosen, q->published);
    const struct cr_domain_proof *found = NULL;
    finding->proof = CR_BUNDLE_TOO_COSTLY;
    if (!q->published->more) {
        found = search(objects, q, replaced, held, finding, err);
        if (!found)
            return false;
    }
    if (!found || found->finding.proof == CR_BUNDLE_TOO_COSTLY) {
        *finding = (struct cr_domain_finding){.proof = CR_BUNDLE_TOO_COSTLY};
        return keep_published(objects, q, held, out, finding, err);
    }
    if (found->finding.proof == CR_BUNDLE_WOULD_CUT_OFF) {
        *finding = found->finding;
        finding->keeps = true;
        return leave(q, out, err);
    }
    if (found->len == count(objects, q->chosen))
        *finding = (struct cr_domain_finding){.proof = CR_BUNDLE_PROVED};
    else /* more stays than the plan wants */
        finding->proof = CR_BUNDLE_WOULD_CUT_OFF;
    return cr_ca_set_write(objects->set, found->order, found->len, out, err);
}

/* --- what is published --- */

static bool is_listed(const struct places *places, const struct cr_pem_input *text)
{
    for (size_t i = 0; i < places->len; i++)
        if (places->texts[i].len == text->len && memcmp(places->texts[i].data, text->data, text->len) == 0)
            return true;
    return false;
}

/* A place without a text has no peer that could verify with it. */
static struct places list_places(const struct cr_entry *entries, size_t len)
{
    struct places places = {.entries = entries, .entries_len = len};
    for (size_t i = 0; i < len; i++) {
        const struct cr_pem_input text = cr_entry_pem(&entries[i]);
        if (!text.len || is_listed(&places, &text))
            continue;
        if (places.len < CR_DOMAIN_PLACES_MAX)
            places.texts[places.len++] = text;
        else
            places.more = true;
    }
    return places;
}

bool cr_domain_bundle_write(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_domain_write *write, struct cr_buf *out, struct cr_domain_finding *finding,
                            struct cr_error *err)
{
    size_t len = 0;
    *finding = (struct cr_domain_finding){.proof = CR_BUNDLE_PROVED};
    if (!count(objects, write->bundle))
        return cr_error_set(err, CR_ERR_INVALID, "a bundle without a CA would make everybody refuse everybody");
    struct cr_entry *entries =
        cr_domain_owns(objects, item->object) ? cr_domain_bundles_read(objects, item, &len) : NULL;
    const struct cr_domain_item *replaced = write->leaf == CR_LEAF_ACT_KEEP ? NULL : item;
    const struct places places = list_places(entries, len);
    struct question q = {.chosen = write->bundle, .published = &places};
    bool done = places.len ? arrange(objects, &q, replaced, out, finding, err)
                           : write_chosen(objects, q.chosen, NULL, out, err);
    cr_domain_bundles_free(entries, len);
    return done;
}
