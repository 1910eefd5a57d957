#include "cluster/secret_view.h"

#include <stdlib.h>
#include <string.h>

#include "api/missing_name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/text.h"
#include "codec/base64.h"
#include "codec/json_text.h"
#include "kube/object.h"

/* --- views --- */

void cr_secret_view_free(struct cr_secret_view *view)
{
    if (!view)
        return;
    free(view->resource_version);
    free(view->on_missing_name);
    cr_material_dispose(&view->material);
    free(view->problem_text);
    free(view);
}

/* An entry of data: base64 that is still where it was parsed. */
struct entry {
    char *key;
    size_t place;     /* among the entries as they are written */
    const char *text; /* no C string; NULL: the value is no string */
    size_t len;
};

/* By key, once they are listed. */
struct entries {
    struct entry *items;
    size_t len;
    size_t cap;
    bool too_many;        /* more than CR_SECRET_KEYS_MAX: not all are there */
    struct cr_json *tree; /* owner of the texts, when data was a text that had to be parsed after all */
};

static void entries_cleanup(struct entries *entries)
{
    for (size_t i = 0; i < entries->len; i++)
        free(entries->items[i].key);
    free(entries->items);
    cr_json_free_secret(entries->tree);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static int by_key_and_place(const void *a, const void *b)
{
    size_t first = ((const struct entry *)a)->place;
    size_t second = ((const struct entry *)b)->place;
    int order = by_key(a, b);
    return order ? order : (first > second) - (first < second);
}

static const struct entry *find_entry(const struct entries *entries, char *key)
{
    const struct entry wanted = {.key = key};
    return key && entries->len ? bsearch(&wanted, entries->items, entries->len, sizeof wanted, by_key) : NULL;
}

/* Takes the key. False: there are too many, and the key was not added. */
static bool add_entry(struct entries *entries, char *key, const char *text, size_t len)
{
    if (entries->len == CR_SECRET_KEYS_MAX) {
        free(key);
        entries->too_many = true;
        return false;
    }
    if (entries->len == entries->cap) {
        entries->cap = entries->cap ? entries->cap * 2 : 4;
        entries->items = cr_reallocarray(entries->items, entries->cap, sizeof *entries->items);
    }
    entries->items[entries->len] = (struct entry){key, entries->len, text, len};
    entries->len++;
    return true;
}

/* When a key comes twice, the first one counts. */
static void sort_entries(struct entries *entries)
{
    size_t kept = 0;
    if (entries->len)
        qsort(entries->items, entries->len, sizeof *entries->items, by_key_and_place);
    for (size_t i = 0; i < entries->len; i++) {
        if (kept && cr_streq(entries->items[kept - 1].key, entries->items[i].key))
            free(entries->items[i].key);
        else
            entries->items[kept++] = entries->items[i];
    }
    entries->len = kept;
}

static void list_tree(const struct cr_json *data, struct entries *entries)
{
    for (const struct cr_json *value = cr_json_first(data); value; value = cr_json_next(value)) {
        const char *text = cr_json_string(value);
        if (!cr_json_is_null(value) &&
            !add_entry(entries, cr_strdup(cr_json_key(value)), text, text ? strlen(text) : 0))
            return;
    }
}

/* False when something is not written as API servers write it; then the parser has to read it. */
static bool list_text(const char *text, size_t len, struct entries *entries)
{
    struct cr_json_members members = cr_json_members_of(text, len);
    struct cr_json_slice key;
    struct cr_json_slice value;
    while (cr_json_members_next(&members, &key, &value)) {
        if (!cr_json_slice_is_plain(&key) || !cr_json_slice_is_plain(&value) || *value.text != '"')
            return false;
        if (!add_entry(entries, cr_strndup(key.text, key.len), value.text + 1, value.len - 2))
            return true;
    }
    return true;
}

static void parse_text(const char *text, size_t len, struct entries *entries)
{
    struct cr_json_budget budget = {.values = 1 + CR_SECRET_KEYS_MAX};
    entries_cleanup(entries);
    *entries = (struct entries){.tree = cr_json_parse_within(text, len, &budget, NULL)};
    entries->too_many = budget.exceeded;
    list_tree(entries->tree, entries);
}

/* Reads from the text of data, if it is a text, without making a tree of it: it may have a megabyte. */
static void list_entries(const struct cr_json *secret, struct entries *entries)
{
    const struct cr_json *data = cr_json_get(secret, "data");
    size_t len = 0;
    const char *text = cr_json_text(data, &len);
    if (!text)
        list_tree(data, entries);
    else if (!list_text(text, len, entries))
        parse_text(text, len, entries);
    sort_entries(entries);
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
static bool read_entry(struct reading *r, char *key, struct cr_pem_input *out)
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

/* Decodes piece by piece, so that no entry is in memory decoded as a whole. An entry that is no base64 is digested as
 * it is: the API server lets none in. */
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

enum { WORD_MAX = 64 };

/* An annotation may have 256 KiB. */
static char *read_word(const struct cr_json *secret)
{
    const char *word = cr_json_string_at(secret, "metadata", "annotations", CR_MISSING_NAME_ANNOTATION);
    return word ? cr_text_clip(word, WORD_MAX) : NULL;
}

static struct cr_secret_view *read_view(const struct cr_json *secret, const struct entries *entries,
                                        const struct cr_policy_secret *names, const unsigned char *key)
{
    struct cr_secret_view *view = cr_new(struct cr_secret_view);
    __attribute__((cleanup(reading_cleanup))) struct reading r = {.secret = secret, .entries = entries, .names = names};
    struct cr_material_input input = {.names = {names->certificate, names->private_key, names->trust}};
    struct cr_error err = {0};
    char derived[CR_SHA256_HEX];
    view->resource_version = cr_strdup_or_null(cr_obj_resource_version(secret));
    view->immutable = cr_json_bool_at(secret, false, "immutable");
    view->on_missing_name = read_word(secret);
    if (entries->too_many) {
        view->problem = CR_MATERIAL_TOO_COSTLY;
        view->problem_text = cr_asprintf("it has more than the %d keys that are read", CR_SECRET_KEYS_MAX);
        return view;
    }
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

/* The key names, and what is seen through them. */
struct pair {
    struct cr_policy_secret names; /* owned */
    struct cr_secret_view *view;   /* owned */
};

struct cr_secret_views {
    size_t len;
    struct pair pairs[];
};

void cr_secret_views_free(struct cr_secret_views *views)
{
    for (size_t i = 0; views && i < views->len; i++) {
        cr_key_names_dispose(&views->pairs[i].names);
        cr_secret_view_free(views->pairs[i].view);
    }
    free(views);
}

struct cr_secret_views *cr_secret_views_read(struct cr_secret_refs *refs, const struct cr_json *secret)
{
    cr_autofree char *key = cr_obj_key(secret);
    CR_CLEANUP(cr_secret_ways) struct cr_secret_ways ways = {0};
    cr_secret_refs_ways(refs, key, &ways);
    if (!ways.len)
        return NULL;
    __attribute__((cleanup(entries_cleanup))) struct entries entries = {0};
    list_entries(secret, &entries);
    const unsigned char *digest_key = ways.has_digest_key ? ways.digest_key : NULL;
    struct cr_secret_views *views = cr_calloc(1, sizeof *views + ways.len * sizeof *views->pairs);
    for (; views->len < ways.len; views->len++) {
        struct cr_policy_secret *names = &ways.items[views->len];
        struct cr_secret_view *view = read_view(secret, &entries, names, digest_key);
        views->pairs[views->len] = (struct pair){*names, view};
        *names = (struct cr_policy_secret){0};
    }
    return views;
}

void cr_secret_strip(struct cr_json *json)
{
    static const char *const carriers[] = {"data", "stringData"};
    for (size_t i = 0; i < cr_array_len(carriers); i++)
        cr_json_free_secret(cr_json_take(json, carriers[i]));
    /* kubectl apply keeps a copy of the whole object, data included, in an annotation. */
    cr_json_free_secret(cr_json_take(cr_json_edit(json, "metadata"), "annotations"));
    cr_json_remove(cr_json_edit(json, "metadata"), "managedFields");
}

static struct cr_secret_view *copy_view(const struct cr_secret_view *view)
{
    struct cr_secret_view *copy = cr_new(struct cr_secret_view);
    copy->resource_version = cr_strdup_or_null(view->resource_version);
    copy->immutable = view->immutable;
    copy->on_missing_name = cr_strdup_or_null(view->on_missing_name);
    copy->problem = view->problem;
    copy->problem_text = cr_strdup_or_null(view->problem_text);
    cr_material_copy(&copy->material, &view->material);
    return copy;
}

struct cr_secret_view *cr_secret_view_find(const struct cr_secret_views *views, const struct cr_policy_secret *names)
{
    for (size_t i = 0; views && i < views->len; i++)
        if (cr_key_names_equal(&views->pairs[i].names, names))
            return copy_view(views->pairs[i].view);
    return NULL;
}
