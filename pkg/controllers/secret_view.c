#include "controllers/secret_view.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "codec/base64.h"
#include "codec/json_text.h"
#include "kube/object.h"

/* --- references --- */

/* Each is one more reading of the Secret, in the thread of the loop; whoever edits a policy may ask for any number. */
enum { NAMES_MAX = 16 };

struct name_set {
    struct cr_policy_secret *items; /* the one that was asked for last is the last */
    size_t len;
};

struct cr_secret_refs {
    pthread_mutex_t lock;
    struct cr_strmap *by_key; /* "ns/name" → struct name_set */
    bool has_key;
    unsigned char key[CR_VIEW_KEY];
};

static void dispose_names(struct cr_policy_secret *names)
{
    free(names->certificate);
    free(names->private_key);
    free(names->trust);
    cr_strvec_dispose(&names->opaque);
}

static void name_set_free(void *value)
{
    struct name_set *set = value;
    for (size_t i = 0; i < set->len; i++)
        dispose_names(&set->items[i]);
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

static bool same_names(const struct cr_policy_secret *a, const struct cr_policy_secret *b)
{
    return cr_streq(a->certificate, b->certificate) && cr_streq(a->private_key, b->private_key) &&
           cr_streq(a->trust, b->trust) && a->has_opaque == b->has_opaque && cr_strvec_equal(&a->opaque, &b->opaque);
}

/* The key names alone: the Secret's own name is the map's key. */
static struct cr_policy_secret copy_of(const struct cr_policy_secret *names)
{
    struct cr_policy_secret copy = {.certificate = cr_strdup_or_null(names->certificate),
                                    .private_key = cr_strdup_or_null(names->private_key),
                                    .trust = cr_strdup_or_null(names->trust),
                                    .has_opaque = names->has_opaque};
    cr_strvec_copy(&copy.opaque, &names->opaque);
    return copy;
}

/* Takes it out of the set; owned by the caller. */
static struct cr_policy_secret take_out(struct name_set *set, size_t index)
{
    struct cr_policy_secret taken = set->items[index];
    memmove(&set->items[index], &set->items[index + 1], (--set->len - index) * sizeof *set->items);
    return taken;
}

/* The names as an element of its own: that of the set, or new. Of too many, those go that were not asked for the
 * longest. */
static struct cr_policy_secret renew(struct name_set *set, const struct cr_policy_secret *names)
{
    for (size_t i = 0; i < set->len; i++)
        if (same_names(&set->items[i], names))
            return take_out(set, i);
    if (set->len == NAMES_MAX) {
        struct cr_policy_secret oldest = take_out(set, 0);
        dispose_names(&oldest);
    }
    return copy_of(names);
}

static void add_names(struct cr_secret_refs *refs, const char *ns, const struct cr_policy_secret *names)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, names->name);
    struct name_set *set = cr_strmap_get(refs->by_key, key);
    if (!set) {
        set = cr_new(struct name_set);
        cr_strmap_set(refs->by_key, key, set);
    }
    struct cr_policy_secret last = renew(set, names);
    set->items = cr_reallocarray(set->items, set->len + 1, sizeof *set->items);
    set->items[set->len++] = last;
}

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

/* --- views --- */

void cr_secret_view_free(struct cr_secret_view *view)
{
    if (!view)
        return;
    free(view->resource_version);
    free(view->certificate);
    free(view->private_key);
    free(view->trust);
    cr_strvec_dispose(&view->opaque);
    cr_material_dispose(&view->material);
    free(view->problem_text);
    free(view);
}

/* An entry of data: base64 that is still where it was parsed. */
struct entry {
    char *key;
    const char *text; /* no C string; NULL: the value is no string */
    size_t len;
};

struct entries {
    struct entry *items;
    size_t len;
    struct cr_json *tree; /* what the texts are of, when data was a text that had to be parsed after all */
};

static void entries_cleanup(struct entries *entries)
{
    for (size_t i = 0; i < entries->len; i++)
        free(entries->items[i].key);
    free(entries->items);
    cr_json_free_secret(entries->tree);
}

static const struct entry *find_entry(const struct entries *entries, const char *key)
{
    for (size_t i = 0; key && i < entries->len; i++)
        if (cr_streq(entries->items[i].key, key))
            return &entries->items[i];
    return NULL;
}

/* Of a key that comes twice the first counts. Takes the key. */
static void add_entry(struct entries *entries, char *key, const char *text, size_t len)
{
    if (find_entry(entries, key)) {
        free(key);
        return;
    }
    entries->items = cr_reallocarray(entries->items, entries->len + 1, sizeof *entries->items);
    entries->items[entries->len++] = (struct entry){key, text, len};
}

static void list_tree(const struct cr_json *data, struct entries *entries)
{
    for (const struct cr_json *value = cr_json_first(data); value; value = cr_json_next(value)) {
        const char *text = cr_json_string(value);
        if (!cr_json_is_null(value))
            add_entry(entries, cr_strdup(cr_json_key(value)), text, text ? strlen(text) : 0);
    }
}

/* False when something is written otherwise than API servers do, which the parser has to read. */
static bool list_text(const char *text, size_t len, struct entries *entries)
{
    struct cr_json_members members = cr_json_members_of(text, len);
    struct cr_json_slice key;
    struct cr_json_slice value;
    while (cr_json_members_next(&members, &key, &value)) {
        if (!cr_json_slice_is_plain(&key) || !cr_json_slice_is_plain(&value) || *value.text != '"')
            return false;
        add_entry(entries, cr_strndup(key.text, key.len), value.text + 1, value.len - 2);
    }
    return true;
}

/* From the text of data, if it is one, without a tree of it: it may have a megabyte. */
static void list_entries(const struct cr_json *secret, struct entries *entries)
{
    const struct cr_json *data = cr_json_get(secret, "data");
    size_t len = 0;
    const char *text = cr_json_text(data, &len);
    if (!text) {
        list_tree(data, entries);
        return;
    }
    if (list_text(text, len, entries))
        return;
    entries_cleanup(entries);
    *entries = (struct entries){.tree = cr_json_parse(text, len, NULL)};
    list_tree(entries->tree, entries);
}

/* One reading: what was decoded, wiped at the end. */
struct reading {
    const struct cr_json *secret;
    const struct entries *entries;
    const struct cr_policy_secret *names;
    struct cr_buf bytes[3]; /* of certificate, key and trust */
    size_t bytes_len;
    struct cr_opaque_entry *opaque;
    char (*digests)[CR_SHA256_HEX]; /* of each opaque entry */
    size_t opaque_len;
};

static void reading_cleanup(struct reading *r)
{
    for (size_t i = 0; i < r->bytes_len; i++)
        cr_buf_dispose(&r->bytes[i]);
    free(r->opaque);
    free(r->digests);
}

/* False: it is not base64. All as secrets: some put the key into the same PEM file. */
static bool read_entry(struct reading *r, const char *key, struct cr_pem_input *out)
{
    const struct entry *entry = find_entry(r->entries, key);
    if (!entry)
        return true;
    struct cr_buf *bytes = &r->bytes[r->bytes_len++];
    *bytes = (struct cr_buf){.secret = true};
    if (!entry->text || !cr_base64_decode(entry->text, entry->len, bytes, NULL))
        return false;
    *out = (struct cr_pem_input){cr_buf_text(bytes), bytes->len};
    return true;
}

static bool is_opaque(const struct cr_policy_secret *names, const char *key)
{
    if (cr_streq(key, names->certificate) || cr_streq(key, names->private_key) || cr_streq(key, names->trust))
        return false;
    return !names->has_opaque || cr_strvec_has(&names->opaque, key);
}

static void digest_piece(void *arg, const void *bytes, size_t len)
{
    cr_hmac_add(arg, bytes, len);
}

/* Piece by piece, so that no entry is there decoded as a whole. What is no base64 is digested as it stands: the API
 * server lets none in. */
static void digest_entry(const struct entry *entry, const char *key, char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_hmac) struct cr_hmac *hmac = cr_hmac_new(key, strlen(key));
    if (entry->text && !cr_base64_decode_pieces(entry->text, entry->len, digest_piece, hmac, NULL))
        cr_hmac_add(hmac, entry->text, entry->len);
    cr_hmac_hex(hmac, out);
}

/* key NULL: they are only named. */
static void read_opaque(struct reading *r, const char *key)
{
    r->opaque = cr_calloc(r->entries->len, sizeof *r->opaque);
    r->digests = cr_calloc(r->entries->len, sizeof *r->digests);
    for (size_t i = 0; i < r->entries->len; i++) {
        const struct entry *entry = &r->entries->items[i];
        if (!is_opaque(r->names, entry->key))
            continue;
        if (key)
            digest_entry(entry, key, r->digests[r->opaque_len]);
        r->opaque[r->opaque_len] = (struct cr_opaque_entry){.name = entry->key, .digest = r->digests[r->opaque_len]};
        r->opaque_len++;
    }
}

/* Hexadecimal, and as random as the key itself. */
static void derive_key(const struct reading *r, const unsigned char *key, char out[CR_SHA256_HEX])
{
    const struct cr_policy_secret *names = r->names;
    cr_autofree char *object = cr_obj_key(r->secret);
    CR_CLEANUP(cr_strvec) struct cr_strvec opaque = {0};
    cr_strvec_copy(&opaque, &names->opaque);
    cr_strvec_sort(&opaque);
    cr_autofree char *list = names->has_opaque ? cr_strvec_join(&opaque, "\n") : cr_strdup("*");
    cr_autofree char *text = cr_asprintf("%s\n%s\n%s\n%s\n%s", object, cr_or_empty(names->certificate),
                                         cr_or_empty(names->private_key), cr_or_empty(names->trust), list);
    cr_hmac_sha256_hex(key, CR_VIEW_KEY, text, strlen(text), out);
}

static struct cr_secret_view *new_view(const struct cr_json *secret, const struct cr_policy_secret *names)
{
    struct cr_secret_view *view = cr_new(struct cr_secret_view);
    struct cr_policy_secret copy = copy_of(names);
    view->resource_version = cr_strdup_or_null(cr_obj_resource_version(secret));
    view->certificate = copy.certificate;
    view->private_key = copy.private_key;
    view->trust = copy.trust;
    view->opaque = copy.opaque;
    view->has_opaque = copy.has_opaque;
    view->immutable = cr_json_bool_at(secret, false, "immutable");
    return view;
}

static struct cr_secret_view *read_view(const struct cr_json *secret, const struct entries *entries,
                                        const struct cr_policy_secret *names, const unsigned char *key)
{
    struct cr_secret_view *view = new_view(secret, names);
    __attribute__((cleanup(reading_cleanup))) struct reading r = {.secret = secret, .entries = entries, .names = names};
    struct cr_material_input input = {.names = {names->certificate, names->private_key, names->trust}};
    struct cr_error err = {0};
    char derived[CR_SHA256_HEX];
    if (!read_entry(&r, names->certificate, &input.certificate) ||
        !read_entry(&r, names->private_key, &input.private_key) || !read_entry(&r, names->trust, &input.trust)) {
        view->problem = CR_MATERIAL_UNPARSABLE;
        view->problem_text = cr_strdup("an entry is not base64");
        return view;
    }
    if (key) {
        derive_key(&r, key, derived);
        input.opaque_key = derived;
        input.opaque_key_len = strlen(derived);
    }
    read_opaque(&r, key ? derived : NULL);
    input.opaque = r.opaque;
    input.opaque_len = r.opaque_len;
    if (!cr_material_parse(&input, cr_clock_wall_ms(), &view->material, &view->problem, &err))
        view->problem_text = cr_strdup(err.text);
    explicit_bzero(derived, sizeof derived);
    return view;
}

struct cr_secret_view *cr_secret_view_read(const struct cr_json *secret, const struct cr_policy_secret *names,
                                           const unsigned char *key)
{
    __attribute__((cleanup(entries_cleanup))) struct entries entries = {0};
    list_entries(secret, &entries);
    return read_view(secret, &entries, names, key);
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
static struct name_set *names_of(struct cr_secret_refs *refs, const char *key, unsigned char digest_key[CR_VIEW_KEY],
                                 bool *has_digest_key)
{
    struct name_set *copy = NULL;
    pthread_mutex_lock(&refs->lock);
    memcpy(digest_key, refs->key, CR_VIEW_KEY);
    *has_digest_key = refs->has_key;
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
    unsigned char digest_key[CR_VIEW_KEY];
    bool has_digest_key = false;
    struct name_set *names = names_of(refs, key, digest_key, &has_digest_key);
    if (!names) {
        explicit_bzero(digest_key, sizeof digest_key);
        return NULL;
    }
    __attribute__((cleanup(entries_cleanup))) struct entries entries = {0};
    list_entries(secret, &entries);
    struct view_list *list = cr_new(struct view_list);
    list->items = cr_calloc(names->len, sizeof(struct cr_secret_view *));
    for (size_t i = 0; i < names->len; i++)
        list->items[list->len++] = read_view(secret, &entries, &names->items[i], has_digest_key ? digest_key : NULL);
    explicit_bzero(digest_key, sizeof digest_key);
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

static bool is_through(const struct cr_secret_view *view, const struct cr_policy_secret *names)
{
    const struct cr_policy_secret own = {.certificate = view->certificate,
                                         .private_key = view->private_key,
                                         .trust = view->trust,
                                         .opaque = view->opaque,
                                         .has_opaque = view->has_opaque};
    return same_names(&own, names);
}

const struct cr_secret_view *cr_secret_view_find(const struct cr_snapshot *snapshot,
                                                 const struct cr_policy_secret *names)
{
    const struct view_list *list = snapshot->extra;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct cr_secret_view *view = list->items[i];
        if (is_through(view, names))
            return view;
    }
    return NULL;
}
