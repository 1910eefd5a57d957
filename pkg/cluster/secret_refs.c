#include "cluster/secret_refs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/packing.h"
#include "base/strmap.h"

/* Each is one more reading of the Secret; an author of policies may ask for any number. */
enum { NAMES_MAX = 16 };

struct cr_secret_refs {
    pthread_mutex_t lock;
    struct cr_strmap *by_key; /* "ns/name" → struct cr_pack of key names; those that were asked for last are the last */
    bool has_key;
    unsigned char key[CR_VIEW_KEY];
};

struct cr_secret_refs *cr_secret_refs_new(void)
{
    struct cr_secret_refs *refs = cr_new(struct cr_secret_refs);
    pthread_mutex_init(&refs->lock, NULL);
    refs->by_key = cr_strmap_new(free);
    return refs;
}

void cr_secret_refs_free(struct cr_secret_refs *refs)
{
    if (!refs)
        return;
    cr_strmap_free(refs->by_key);
    explicit_bzero(refs->key, sizeof refs->key);
    pthread_mutex_destroy(&refs->lock);
    free(refs);
}

void cr_secret_refs_use_key(struct cr_secret_refs *refs, const unsigned char key[CR_VIEW_KEY])
{
    pthread_mutex_lock(&refs->lock);
    memcpy(refs->key, key, sizeof refs->key);
    refs->has_key = true;
    pthread_mutex_unlock(&refs->lock);
}

/* --- key names --- */

void cr_key_names_pack(struct cr_buf *out, const struct cr_policy_secret *names)
{
    cr_pack_text(out, names->certificate);
    cr_pack_text(out, names->private_key);
    cr_pack_text(out, names->trust);
    cr_pack_int(out, names->has_opaque);
    cr_pack_texts(out, &names->opaque);
}

static struct cr_policy_secret unpack_names(struct cr_unpacking from)
{
    struct cr_policy_secret names = {0};
    names.certificate = cr_unpack_text(&from);
    names.private_key = cr_unpack_text(&from);
    names.trust = cr_unpack_text(&from);
    names.has_opaque = cr_unpack_int(&from);
    cr_unpack_texts(&from, &names.opaque);
    cr_unpacking_end(&from);
    return names;
}

/* --- with the lock held --- */

static size_t count_others(const struct cr_pack *set, const struct cr_buf *names)
{
    size_t count = 0;
    for (struct cr_unpacking from = cr_pack_open(set); !cr_unpacking_at_end(&from);) {
        struct cr_unpacking one = cr_unpack_bytes(&from);
        count += !cr_unpacking_is(&one, names->data, names->len);
    }
    return count;
}

/* The set's others, without so many of the first, and then the names. Owned. */
static struct cr_pack *renewed(const struct cr_pack *set, size_t dropped, const struct cr_buf *names)
{
    CR_CLEANUP(cr_buf) struct cr_buf all = {0};
    for (struct cr_unpacking from = cr_pack_open(set); !cr_unpacking_at_end(&from);) {
        struct cr_unpacking one = cr_unpack_bytes(&from);
        if (cr_unpacking_is(&one, names->data, names->len))
            continue;
        if (dropped)
            dropped--;
        else
            cr_pack_bytes(&all, one.at, (size_t)(one.end - one.at));
    }
    cr_pack_bytes(&all, names->data, names->len);
    return cr_pack_keep(&all);
}

static void add_names(struct cr_secret_refs *refs, const char *ns, const struct cr_policy_secret *secret)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, secret->name);
    CR_CLEANUP(cr_buf) struct cr_buf names = {0};
    cr_key_names_pack(&names, secret);
    const struct cr_pack *set = cr_strmap_get(refs->by_key, key);
    size_t others = count_others(set, &names);
    if (set && !others)
        return;
    cr_strmap_set(refs->by_key, key, renewed(set, others == NAMES_MAX ? 1 : 0, &names));
}

/* --- the interface --- */

void cr_secret_refs_add(struct cr_secret_refs *refs, const struct cr_policy *policy)
{
    pthread_mutex_lock(&refs->lock);
    for (size_t i = 0; i < policy->secrets_len; i++)
        add_names(refs, policy->ns, &policy->secrets[i]);
    pthread_mutex_unlock(&refs->lock);
}

void cr_secret_refs_remove(struct cr_secret_refs *refs, const char *key)
{
    pthread_mutex_lock(&refs->lock);
    cr_strmap_remove(refs->by_key, key);
    pthread_mutex_unlock(&refs->lock);
}

bool cr_secret_refs_has(struct cr_secret_refs *refs, const char *key)
{
    pthread_mutex_lock(&refs->lock);
    bool has = cr_strmap_get(refs->by_key, key) != NULL;
    pthread_mutex_unlock(&refs->lock);
    return has;
}

void cr_secret_refs_ways(struct cr_secret_refs *refs, const char *key, struct cr_secret_ways *ways)
{
    pthread_mutex_lock(&refs->lock);
    for (struct cr_unpacking from = cr_pack_open(cr_strmap_get(refs->by_key, key)); !cr_unpacking_at_end(&from);) {
        ways->items = cr_reallocarray(ways->items, ways->len + 1, sizeof *ways->items);
        ways->items[ways->len++] = unpack_names(cr_unpack_bytes(&from));
    }
    ways->has_digest_key = refs->has_key;
    memcpy(ways->digest_key, refs->key, sizeof ways->digest_key);
    pthread_mutex_unlock(&refs->lock);
}

void cr_secret_ways_dispose(struct cr_secret_ways *ways)
{
    for (size_t i = 0; i < ways->len; i++) {
        free(ways->items[i].certificate);
        free(ways->items[i].private_key);
        free(ways->items[i].trust);
        cr_strvec_dispose(&ways->items[i].opaque);
    }
    free(ways->items);
    explicit_bzero(ways->digest_key, sizeof ways->digest_key);
    *ways = (struct cr_secret_ways){0};
}
