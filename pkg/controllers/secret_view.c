#include "controllers/secret_view.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "codec/base64.h"
#include "kube/object.h"

/* --- references --- */

struct name_set {
    struct cr_policy_secret *items;
    size_t len;
};

struct cr_secret_refs {
    pthread_mutex_t lock;
    struct cr_strmap *by_key; /* "ns/name" → struct name_set */
};

static void name_set_free(void *value)
{
    struct name_set *set = value;
    for (size_t i = 0; i < set->len; i++) {
        free(set->items[i].certificate);
        free(set->items[i].private_key);
        free(set->items[i].trust);
    }
    free(set->items);
    free(set);
}

struct cr_secret_refs *cr_secret_refs_new(void)
{
    struct cr_secret_refs *refs = cr_new(struct cr_secret_refs);
    pthread_mutex_init(&refs->lock, NULL);
    refs->by_key = cr_strmap_new(name_set_free);
    return refs;
}

void cr_secret_refs_free(struct cr_secret_refs *refs)
{
    if (!refs)
        return;
    cr_strmap_free(refs->by_key);
    pthread_mutex_destroy(&refs->lock);
    free(refs);
}

static bool same_names(const char *certificate, const char *private_key, const char *trust,
                       const struct cr_policy_secret *names)
{
    return cr_streq(certificate, names->certificate) && cr_streq(private_key, names->private_key) &&
           cr_streq(trust, names->trust);
}

/* The key names alone: the Secret's own name is the map's key. */
static struct cr_policy_secret copy_of(const struct cr_policy_secret *names)
{
    return (struct cr_policy_secret){.certificate = cr_strdup_or_null(names->certificate),
                                     .private_key = cr_strdup_or_null(names->private_key),
                                     .trust = cr_strdup_or_null(names->trust)};
}

static void add_names(struct cr_secret_refs *refs, const char *ns, const struct cr_policy_secret *names)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, names->name);
    struct name_set *set = cr_strmap_get(refs->by_key, key);
    if (!set) {
        set = cr_new(struct name_set);
        cr_strmap_set(refs->by_key, key, set);
    }
    for (size_t i = 0; i < set->len; i++)
        if (same_names(set->items[i].certificate, set->items[i].private_key, set->items[i].trust, names))
            return;
    set->items = cr_reallocarray(set->items, set->len + 1, sizeof *set->items);
    set->items[set->len++] = copy_of(names);
}

void cr_secret_refs_add(struct cr_secret_refs *refs, const struct cr_policy *policy)
{
    pthread_mutex_lock(&refs->lock);
    for (size_t i = 0; i < policy->secrets_len; i++)
        add_names(refs, policy->ns, &policy->secrets[i]);
    pthread_mutex_unlock(&refs->lock);
}

/* --- views --- */

void cr_secret_view_free(struct cr_secret_view *view)
{
    if (!view)
        return;
    free(view->resource_version);
    free(view->certificate);
    free(view->private_key);
    free(view->trust);
    cr_material_dispose(&view->material);
    free(view->problem_text);
    free(view);
}

/* False: the entry is there but is not base64. */
static bool read_entry(const struct cr_json *secret, const char *key, struct cr_buf *bytes, struct cr_pem_input *out)
{
    const char *text = key ? cr_json_string_at(secret, "data", key) : NULL;
    if (!text)
        return true;
    if (!cr_base64_decode(text, strlen(text), bytes, NULL))
        return false;
    out->data = cr_buf_text(bytes);
    out->len = bytes->len;
    return true;
}

struct cr_secret_view *cr_secret_view_read(const struct cr_json *secret, const struct cr_policy_secret *names)
{
    struct cr_secret_view *view = cr_new(struct cr_secret_view);
    view->resource_version = cr_strdup_or_null(cr_obj_resource_version(secret));
    view->certificate = cr_strdup_or_null(names->certificate);
    view->private_key = cr_strdup_or_null(names->private_key);
    view->trust = cr_strdup_or_null(names->trust);

    /* Secret as well: some put the key into the same PEM file. */
    CR_CLEANUP(cr_buf) struct cr_buf certificate = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf private_key = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf trust = CR_BUF_INIT(0);
    struct cr_material_input input = {.names = {names->certificate, names->private_key, names->trust}};
    struct cr_error err = {0};
    if (!read_entry(secret, names->certificate, &certificate, &input.certificate) ||
        !read_entry(secret, names->private_key, &private_key, &input.private_key) ||
        !read_entry(secret, names->trust, &trust, &input.trust)) {
        view->problem = CR_MATERIAL_UNPARSABLE;
        view->problem_text = cr_strdup("an entry is not base64");
        return view;
    }
    if (!cr_material_parse(&input, cr_clock_wall_ms(), &view->material, &view->problem, &err))
        view->problem_text = cr_strdup(err.text);
    return view;
}

/* --- projection --- */

struct view_list {
    struct cr_secret_view **items;
    size_t len;
};

static void view_list_free(void *value)
{
    struct view_list *list = value;
    if (!list)
        return;
    for (size_t i = 0; i < list->len; i++)
        cr_secret_view_free(list->items[i]);
    free(list->items);
    free(list);
}

static void copy_names(const struct name_set *from, struct name_set *to)
{
    to->items = cr_calloc(from->len, sizeof *to->items);
    for (size_t i = 0; i < from->len; i++)
        to->items[to->len++] = copy_of(&from->items[i]);
}

/* A copy, so that nobody waits for the lock while certificates are read. Owned; NULL when no policy names the Secret.
 */
static struct name_set *names_of(struct cr_secret_refs *refs, const char *key)
{
    struct name_set *copy = NULL;
    pthread_mutex_lock(&refs->lock);
    const struct name_set *set = cr_strmap_get(refs->by_key, key);
    if (set) {
        copy = cr_new(struct name_set);
        copy_names(set, copy);
    }
    pthread_mutex_unlock(&refs->lock);
    return copy;
}

static struct view_list *read_views(struct cr_secret_refs *refs, const struct cr_json *secret)
{
    cr_autofree char *key = cr_obj_key(secret);
    struct name_set *names = names_of(refs, key);
    if (!names)
        return NULL;
    struct view_list *list = cr_new(struct view_list);
    list->items = cr_calloc(names->len, sizeof(struct cr_secret_view *));
    for (size_t i = 0; i < names->len; i++)
        list->items[list->len++] = cr_secret_view_read(secret, &names->items[i]);
    name_set_free(names);
    return list;
}

void cr_secret_project(struct cr_secret_refs *refs, struct cr_json *json, struct cr_snapshot *snapshot)
{
    snapshot->extra = read_views(refs, json);
    snapshot->free_extra = view_list_free;
    static const char *const carriers[] = {"data", "stringData"};
    for (size_t i = 0; i < cr_array_len(carriers); i++)
        cr_json_free_secret(cr_json_take(json, carriers[i]));
    /* kubectl apply keeps a copy of the whole object, data included, in an annotation. */
    cr_json_free_secret(cr_json_take(cr_json_edit(json, "metadata"), "annotations"));
    cr_json_remove(cr_json_edit(json, "metadata"), "managedFields");
}

const struct cr_secret_view *cr_secret_view_find(const struct cr_snapshot *snapshot,
                                                 const struct cr_policy_secret *names)
{
    const struct view_list *list = snapshot->extra;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct cr_secret_view *view = list->items[i];
        if (same_names(view->certificate, view->private_key, view->trust, names))
            return view;
    }
    return NULL;
}
