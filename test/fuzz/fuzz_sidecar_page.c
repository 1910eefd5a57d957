/* What a pod says its certroll-sidecar has done: read within bounds and in one form, or refused with words that hold
 * nothing of it. */
#include "fuzz.h"

#include <string.h>

#include "evidence/sidecar_page.h"

static void check_digest(const char digest[CR_SHA256_HEX])
{
    size_t len = strlen(digest);
    require(len == 0 || (len == CR_SHA256_HEX - 1 && strspn(digest, "0123456789abcdef") == len));
}

static void check_words(const char *words, size_t size)
{
    require(strlen(words) < size);
    for (; *words; words++)
        require(*words >= ' ' && *words <= '~');
}

static void check_entry(const struct cr_sidecar_entry *entry)
{
    check_digest(entry->found_leaf);
    check_digest(entry->found_trust);
    check_digest(entry->delivered_leaf);
    check_digest(entry->delivered_trust);
    check_digest(entry->served_leaf);
    check_words(entry->words, sizeof entry->words);
    check_words(entry->name, sizeof entry->name);
    require(entry->name[0] && (unsigned)entry->state <= CR_SIDECAR_FAILING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_sighting) struct cr_sidecar_sighting seen = {0};
    bool read = cr_sidecar_page_read((const char *)data, size, &seen, &err);
    require(read == seen.read && read == (err.text[0] == '\0') && (read || !seen.len));
    require(seen.len <= CR_SIDECAR_ENTRIES_MAX);
    for (size_t i = 0; i < seen.len; i++)
        check_entry(&seen.entries[i]);
    return 0;
}
