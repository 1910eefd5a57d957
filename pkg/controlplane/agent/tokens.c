/* Projected service account tokens of the node's pods, counted by the key that signed them: they show whether a pod
 * still needs an old key.
 *
 * They are in tmpfs, in <kubelet's folder>/pods/<uid>/volumes/kubernetes.io~projected/<volume>/…data, and are there for
 * as long as the pod's containers may run: a kubelet takes the volumes of a pod away that has ended, so the folder of
 * one that is dead has none. A container that sees /var/lib/kubelet sees mounts of pods that began later only with
 * mountPropagation: HostToContainer. A volume is replaced as a whole (..data is a link that is swapped), so a token
 * that goes while it is looked at is looked for again.
 *
 * Any user who may make pods decides what is in volumes: one that is too deep or too wide to be looked through counts
 * as a token of an unknown key, so that none is overlooked and the count of the others stays known.
 *
 * Nothing of a token is kept but its key's id, which is public. */
#include "controlplane/agent/node_reading.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/token_key.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/host_files.h"
#include "controlplane/agent/host_way.h"
#include "sys/file.h"

enum {
    PODS_MAX = 8192,
    ENTRIES_MAX = 16384, /* of a pod's volumes: some ConfigMaps have thousands of keys, and 0.3 s are spent on it */
    DEPTH_MAX = 16,      /* of a volume: a token's path may have folders */
    KEYS_MAX = 64,       /* that are distinguished */
    TRIES = 3,
};

struct count {
    const char *root;
    struct cr_node_token_count *items; /* owned */
    size_t len;
    size_t left; /* entries that are looked at of this pod */
};

static void count_dispose(struct count *count)
{
    for (size_t i = 0; i < count->len; i++)
        free(count->items[i].key);
    free(count->items);
}
CR_DEFINE_DISPOSE(count, struct count, count_dispose)

/* Beyond KEYS_MAX a key is one that is not known. */
static void add(struct count *count, const char *key)
{
    for (int again = 0; again < 2; again++, key = NULL) {
        for (size_t i = 0; i < count->len; i++)
            if (cr_streq(count->items[i].key, key)) {
                count->items[i].tokens++;
                return;
            }
        if (count->len < KEYS_MAX || !key)
            break;
    }
    count->items = cr_reallocarray(count->items, count->len + 1, sizeof *count->items);
    count->items[count->len++] = (struct cr_node_token_count){.key = cr_strdup_or_null(key), .tokens = 1};
}

/* --- a volume --- */

/* What is too big, or no file, is no token. */
static bool may_be_token(const struct cr_host_way *way)
{
    return S_ISREG(way->end.st_mode) && way->end.st_size > 0 && way->end.st_size <= CR_TOKEN_MAX;
}

static bool count_file(struct count *count, const char *host, const struct cr_host_way *way, const char *uid,
                       struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    if (!may_be_token(way))
        return true;
    if (!cr_file_read(way->path, CR_TOKEN_MAX, &text, err))
        return err->kind == CR_ERR_INVALID || cr_error_wrap(err, "%s", host);
    char key[CR_SHA256_HEX];
    if (cr_pod_token_key(cr_buf_text(&text), text.len, uid, key))
        add(count, *key ? key : NULL);
    return true;
}

static bool count_folder(struct count *count, const char *folder, const char *uid, int depth, struct cr_error *err);

static bool count_entry(struct count *count, const char *host, const char *uid, int depth, struct cr_error *err)
{
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    if (!cr_host_way_go(count->root, host, &way, err))
        return false;
    if (S_ISDIR(way.end.st_mode) && depth < DEPTH_MAX)
        return count_folder(count, host, uid, depth + 1, err);
    if (S_ISDIR(way.end.st_mode))
        add(count, NULL);
    return count_file(count, host, &way, uid, err);
}

/* What is gone for good by now was of a pod that has ended. */
static bool count_until_it_stays(struct count *count, const char *host, const char *uid, int depth,
                                 struct cr_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        struct cr_error why = {0};
        if (count_entry(count, host, uid, depth, &why))
            return true;
        if (why.kind != CR_ERR_NOT_FOUND)
            return cr_error_set(err, why.kind, "%s", why.text);
    }
    return true;
}

/* names: empty when there is no such folder (any more), and where it has too many. */
static bool list(struct count *count, const char *folder, struct cr_strvec *names, struct cr_error *err)
{
    struct cr_error why = {0};
    if (cr_host_folder_list(count->root, folder, count->left, names, &why) || why.kind == CR_ERR_NOT_FOUND) {
        count->left -= names->len;
        return true;
    }
    if (why.kind != CR_ERR_INVALID)
        return cr_error_set(err, why.kind, "%s", why.text);
    cr_strvec_dispose(names);
    add(count, NULL);
    return true;
}

static bool count_folder(struct count *count, const char *folder, const char *uid, int depth, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    if (!list(count, folder, &names, err))
        return false;
    for (size_t i = 0; i < names.len; i++) {
        cr_autofree char *host = cr_asprintf("%s/%s", folder, names.items[i]);
        /* "..data" and what it leads to, which the names beside it lead to as well. */
        if (!cr_starts_with(names.items[i], "..") && !count_until_it_stays(count, host, uid, depth, err))
            return false;
    }
    return true;
}

/* --- all of them --- */

static bool count_pod(struct count *count, const char *pods, const char *uid, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec volumes = {0};
    cr_autofree char *folder = cr_asprintf("%s/%s/volumes/kubernetes.io~projected", pods, uid);
    count->left = ENTRIES_MAX;
    if (!list(count, folder, &volumes, err))
        return false;
    for (size_t i = 0; i < volumes.len; i++) {
        cr_autofree char *volume = cr_asprintf("%s/%s", folder, volumes.items[i]);
        if (!count_folder(count, volume, uid, 0, err))
            return false;
    }
    return true;
}

/* Those that are not known last. */
static int by_key(const void *a, const void *b)
{
    const char *x = ((const struct cr_node_token_count *)a)->key;
    const char *y = ((const struct cr_node_token_count *)b)->key;
    return x && y ? strcmp(x, y) : !x - !y;
}

bool cr_node_tokens_count(const struct cr_node_layout *layout, const char *kubelet_folder,
                          struct cr_node_token_count **items, size_t *len, struct cr_error *err)
{
    CR_CLEANUP(count) struct count count = {.root = layout->root};
    CR_CLEANUP(cr_strvec) struct cr_strvec uids = {0};
    cr_autofree char *pods = cr_asprintf("%s/pods", kubelet_folder);
    if (!cr_host_folder_list(layout->root, pods, PODS_MAX, &uids, err))
        return false;
    for (size_t i = 0; i < uids.len; i++)
        if (!count_pod(&count, pods, uids.items[i], err))
            return false;
    if (count.len)
        qsort(count.items, count.len, sizeof *count.items, by_key);
    *items = cr_steal(&count.items);
    *len = count.len;
    count.len = 0;
    return true;
}
