#include "cluster/domain_index.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

struct cr_domain_index {
    pthread_mutex_t lock;
    struct cr_strmap *domains; /* key → struct cr_strvec, the Secrets that it wants */
    /* Both → struct cr_strvec, keys of domains, never empty. */
    struct cr_strmap *by_secret; /* "ns/name" */
    struct cr_strmap *by_namespace;
};

static void names_free(void *value)
{
    cr_strvec_dispose(value);
    free(value);
}

struct cr_domain_index *cr_domain_index_new(void)
{
    struct cr_domain_index *index = cr_new(struct cr_domain_index);
    pthread_mutex_init(&index->lock, NULL);
    index->domains = cr_strmap_new(names_free);
    index->by_secret = cr_strmap_new(names_free);
    index->by_namespace = cr_strmap_new(names_free);
    return index;
}

void cr_domain_index_free(struct cr_domain_index *index)
{
    if (!index)
        return;
    cr_strmap_free(index->by_namespace);
    cr_strmap_free(index->by_secret);
    cr_strmap_free(index->domains);
    pthread_mutex_destroy(&index->lock);
    free(index);
}

/* --- lists of keys --- */

static void list(struct cr_strmap *map, const char *at, const char *key)
{
    struct cr_strvec *keys = cr_strmap_get(map, at);
    if (!keys) {
        keys = cr_new(struct cr_strvec);
        cr_strmap_set(map, at, keys);
    }
    cr_strvec_add_unique(keys, key);
}

static void unlist(struct cr_strmap *map, const char *at, const char *key)
{
    struct cr_strvec *keys = cr_strmap_get(map, at);
    for (size_t i = 0; keys && i < keys->len; i++) {
        if (!cr_streq(keys->items[i], key))
            continue;
        free(keys->items[i]);
        keys->items[i] = keys->items[--keys->len];
        break;
    }
    if (keys && !keys->len)
        cr_strmap_remove(map, at);
}

static void move(struct cr_domain_index *index, const struct cr_strvec *secrets, const char *key,
                 void (*to)(struct cr_strmap *map, const char *at, const char *key))
{
    for (size_t i = 0; secrets && i < secrets->len; i++) {
        cr_autofree char *ns = cr_strndup(secrets->items[i], strcspn(secrets->items[i], "/"));
        to(index->by_secret, secrets->items[i], key);
        to(index->by_namespace, ns, key);
    }
}

bool cr_domain_index_put(struct cr_domain_index *index, const char *key, const struct cr_strvec *secrets)
{
    struct cr_strvec *after = cr_new(struct cr_strvec);
    cr_strvec_copy(after, secrets);
    cr_strvec_sort(after);
    pthread_mutex_lock(&index->lock);
    const struct cr_strvec *before = cr_strmap_get(index->domains, key);
    bool other = before ? !cr_strvec_equal(before, after) : after->len > 0;
    if (other) {
        move(index, before, key, unlist);
        move(index, after, key, list);
    }
    if (after->len) {
        cr_strmap_set(index->domains, key, after);
    } else {
        cr_strmap_remove(index->domains, key);
        names_free(after);
    }
    pthread_mutex_unlock(&index->lock);
    return other;
}

/* --- questions --- */

static void answer(struct cr_domain_index *index, const struct cr_strmap *map, const char *at, struct cr_strvec *keys)
{
    pthread_mutex_lock(&index->lock);
    const struct cr_strvec *found = cr_strmap_get(map, at);
    for (size_t i = 0; found && i < found->len; i++)
        cr_strvec_add_unique(keys, found->items[i]);
    pthread_mutex_unlock(&index->lock);
}

void cr_domain_index_of_secret(struct cr_domain_index *index, const char *ns, const char *name, struct cr_strvec *keys)
{
    cr_autofree char *secret = cr_asprintf("%s/%s", ns, name);
    answer(index, index->by_secret, secret, keys);
}

void cr_domain_index_of_namespace(struct cr_domain_index *index, const char *ns, struct cr_strvec *keys)
{
    answer(index, index->by_namespace, cr_or_empty(ns), keys);
}

bool cr_domain_index_wants_secret(struct cr_domain_index *index, const char *ns, const char *name)
{
    cr_autofree char *secret = cr_asprintf("%s/%s", ns, name);
    pthread_mutex_lock(&index->lock);
    bool wants = cr_strmap_get(index->by_secret, secret) != NULL;
    pthread_mutex_unlock(&index->lock);
    return wants;
}

void cr_domain_index_visit_secrets(struct cr_domain_index *index,
                                   void (*visit)(void *arg, const char *ns, const char *name), void *arg)
{
    pthread_mutex_lock(&index->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(index->by_secret, &it);) {
        const char *slash = strchr(it.key, '/');
        cr_autofree char *ns = cr_strndup(it.key, (size_t)(slash - it.key));
        visit(arg, ns, slash + 1);
    }
    pthread_mutex_unlock(&index->lock);
}
