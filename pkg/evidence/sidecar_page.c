#include "evidence/sidecar_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/json.h"

void cr_sidecar_sighting_dispose(struct cr_sidecar_sighting *sighting)
{
    free(sighting->entries);
    *sighting = (struct cr_sidecar_sighting){0};
}

void cr_sidecar_sighting_copy(struct cr_sidecar_sighting *to, const struct cr_sidecar_sighting *from)
{
    *to = *from;
    to->entries = cr_calloc(from->len, sizeof *to->entries);
    if (from->len)
        memcpy(to->entries, from->entries, from->len * sizeof *to->entries);
}

static bool bad_page(struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "it is not a sidecar's page of version " CR_SIDECAR_PAGE_VERSION);
}

/* Absent and null are the same. */
static const struct cr_json *member(const struct cr_json *json, const char *key)
{
    const struct cr_json *value = cr_json_get(json, key);
    return value && !cr_json_is_null(value) ? value : NULL;
}

/* "", or a SHA-256. */
static bool read_digest(const struct cr_json *json, const char *key, char out[CR_SHA256_HEX])
{
    const struct cr_json *value = member(json, key);
    const char *text = cr_json_string(value);
    out[0] = '\0';
    if (!value || (text && !text[0]))
        return true;
    if (!text || strlen(text) != CR_SHA256_HEX - 1 || strspn(text, "0123456789abcdef") != CR_SHA256_HEX - 1)
        return false;
    memcpy(out, text, CR_SHA256_HEX);
    return true;
}

static bool read_bool(const struct cr_json *json, const char *key, bool *out)
{
    const struct cr_json *value = member(json, key);
    *out = cr_json_bool(value, false);
    return !value || cr_json_is_bool(value);
}

static bool read_state(const struct cr_json *json, enum cr_sidecar_state *out)
{
    static const char *const names[] = {[CR_SIDECAR_PENDING] = "Pending",
                                        [CR_SIDECAR_DELIVERED] = "Delivered",
                                        [CR_SIDECAR_REFUSED] = "Refused",
                                        [CR_SIDECAR_FAILING] = "Failing"};
    const char *text = cr_json_string_at(json, "state");
    for (size_t i = 0; text && i < cr_array_len(names); i++) {
        if (!cr_streq(text, names[i]))
            continue;
        *out = (enum cr_sidecar_state)i;
        return true;
    }
    return false;
}

/* A pod's words end up in a status: one line that is harmless. */
static void keep_words(const char *text, char *out, size_t size)
{
    size_t len = 0;
    for (; *text && len < size - 1; text++) {
        bool continues = ((unsigned char)*text & 0xc0) == 0x80; /* a character of several bytes is one dot */
        if (!continues)
            out[len++] = (char)(*text >= ' ' && *text <= '~' ? *text : '.');
    }
    out[len] = '\0';
}

static bool read_texts(const struct cr_json *json, struct cr_sidecar_entry *entry)
{
    const struct cr_json *message = member(json, "message");
    const char *name = cr_json_string_at(json, "name");
    if (!name || !*name || strlen(name) >= sizeof entry->name || (message && !cr_json_is_string(message)))
        return false;
    keep_words(name, entry->name, sizeof entry->name);
    keep_words(message ? cr_json_string(message) : "", entry->words, sizeof entry->words);
    return true;
}

static bool is_object_or_absent(const struct cr_json *json)
{
    return !json || cr_json_is_object(json);
}

static bool read_entry(const struct cr_json *json, struct cr_sidecar_entry *entry)
{
    const struct cr_json *found = member(json, "found");
    const struct cr_json *delivered = member(json, "delivered");
    const struct cr_json *served = member(json, "served");
    return cr_json_is_object(json) && is_object_or_absent(found) && is_object_or_absent(delivered) &&
           is_object_or_absent(served) && read_texts(json, entry) && read_state(json, &entry->state) &&
           read_digest(found, "leaf", entry->found_leaf) && read_digest(found, "trust", entry->found_trust) &&
           read_digest(delivered, "leaf", entry->delivered_leaf) &&
           read_digest(delivered, "trust", entry->delivered_trust) &&
           read_bool(delivered, "leafProven", &entry->leaf_proven) &&
           read_bool(delivered, "trustProven", &entry->trust_proven) && read_digest(served, "leaf", entry->served_leaf);
}

static bool read_entries(const struct cr_json *page, struct cr_sidecar_sighting *sighting, struct cr_error *err)
{
    const struct cr_json *materials = cr_json_get(page, "materials");
    if (!cr_streq(cr_json_string_at(page, "apiVersion"), CR_SIDECAR_PAGE_VERSION) || !cr_json_is_array(materials))
        return bad_page(err);
    if (cr_json_len(materials) > CR_SIDECAR_ENTRIES_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "it has more materials than are looked at");
    sighting->entries = cr_calloc(cr_json_len(materials), sizeof *sighting->entries);
    for (const struct cr_json *each = cr_json_first(materials); each; each = cr_json_next(each))
        if (!read_entry(each, &sighting->entries[sighting->len++]))
            return bad_page(err);
    return true;
}

bool cr_sidecar_page_read(const char *text, size_t len, struct cr_sidecar_sighting *sighting, struct cr_error *err)
{
    struct cr_error ignored = {0};
    struct cr_sidecar_sighting read = {0};
    if (len > CR_SIDECAR_PAGE_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "it is longer than a sidecar's page can be");
    struct cr_json_budget budget = {.values = CR_SIDECAR_VALUES_MAX};
    CR_CLEANUP(cr_json) struct cr_json *page = cr_json_parse_within(text, len, &budget, &ignored);
    if (budget.exceeded)
        return cr_error_set(err, CR_ERR_INVALID, "it has more than %d JSON values", CR_SIDECAR_VALUES_MAX);
    if (!page)
        return cr_error_set(err, CR_ERR_INVALID, "it is not JSON");
    if (!read_entries(page, &read, err)) {
        cr_sidecar_sighting_dispose(&read);
        return false;
    }
    sighting->read = true;
    sighting->entries = read.entries;
    sighting->len = read.len;
    return true;
}
