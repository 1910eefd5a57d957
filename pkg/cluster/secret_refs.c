#include "cluster/secret_refs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

/* Each is one more reading of the Secret; an author of policies may ask for any number. */
enum { NAMES_MAX = 16 };

/* The key names that one Secret is read through. */
struct names_list {
    struct cr_policy_secret *items; /* owned; those that were asked for last are the last */
    size_t len;
};

struct cr_secret_refs {
    pthread_mutex_t lock;
    struct cr_strmap *by_key; /* "ns/name" → struct names_list, never empty */
    bool has_key;
    unsigned char key[CR_VIEW_KEY];
};

static void names_list_free(void *value)
{
    struct names_list *list = value;
    for (size_t i = 0; i < list->len; i++)
        cr_key_names_dispose(&list->items[i]);
    free(list->items);
    free(list);
}

struct cr_secret_refs *cr_secret_refs_new(void)
{
    struct cr_secret_refs *refs = cr_new(struct cr_secret_refs);
    pthread_mutex_init(&refs->lock, NULL);
    refs->by_key = cr_strmap_new(names_list_free);
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

bool cr_key_names_equal(const struct cr_policy_secret *a, const struct cr_policy_secret *b)
{
    return cr_streq(a->certificate, b->certificate) && cr_streq(a->private_key, b->private_key) &&
           cr_streq(a->trust, b->trust) && a->has_opaque == b->has_opaque && cr_strvec_equal(&a->opaque, &b->opaque);
}

void cr_key_names_dispose(struct cr_policy_secret *names)
{
    free(names->certificate);
    free(names->private_key);
    free(names->trust);
    cr_strvec_dispose(&names->opaque);
}

/* Owned. */
static struct cr_policy_secret copy_names(const struct cr_policy_secret *names)
{
    struct cr_policy_secret copy = {.certificate = cr_strdup_or_null(names->certificate),
                                    .private_key = cr_strdup_or_null(names->private_key),
                                    .trust = cr_strdup_or_null(names->trust),
                                    .has_opaque = names->has_opaque};
    cr_strvec_copy(&copy.opaque, &names->opaque);
    return copy;
}

/* --- with the lock held --- */

static struct names_list *list_of(struct cr_secret_refs *refs, const char *key)
{
    struct names_list *list = cr_strmap_get(refs->by_key, key);
    if (list)
        return list;
    list = cr_new(struct names_list);
    cr_strmap_set(refs->by_key, key, list);
    return list;
}

/* Out of the list, owned. */
static struct cr_policy_secret take_names(struct names_list *list, size_t place)
{
    struct cr_policy_secret names = list->items[place];
    memmove(list->items + place, list->items + place + 1, (--list->len - place) * sizeof *list->items);
    return names;
}

static void drop_first(struct names_list *list)
{
    struct cr_policy_secret first = take_names(list, 0);
    cr_key_names_dispose(&first);
}

/* Takes names. */
static void append_names(struct names_list *list, struct cr_policy_secret names)
{
    list->items = cr_reallocarray(list->items, list->len + 1, sizeof *list->items);
    list->items[list->len++] = names;
}

static void add_names(struct cr_secret_refs *refs, const char *ns, const struct cr_policy_secret *secret)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, secret->name);
    struct names_list *list = list_of(refs, key);
    size_t place = 0;
    while (place < list->len && !cr_key_names_equal(&list->items[place], secret))
        place++;
    bool known = place < list->len;
    if (!known && list->len == NAMES_MAX)
        drop_first(list);
    append_names(list, known ? take_names(list, place) : copy_names(secret));
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
    const struct names_list *list = cr_strmap_get(refs->by_key, key);
    ways->items = list ? cr_calloc(list->len, sizeof *ways->items) : NULL;
    for (; list && ways->len < list->len; ways->len++)
        ways->items[ways->len] = copy_names(&list->items[ways->len]);
    ways->has_digest_key = refs->has_key;
    memcpy(ways->digest_key, refs->key, sizeof ways->digest_key);
    pthread_mutex_unlock(&refs->lock);
}

void cr_secret_ways_dispose(struct cr_secret_ways *ways)
{
    for (size_t i = 0; i < ways->len; i++)
        cr_key_names_dispose(&ways->items[i]);
    free(ways->items);
    explicit_bzero(ways->digest_key, sizeof ways->digest_key);
    *ways = (struct cr_secret_ways){0};
}
