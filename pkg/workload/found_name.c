#include "workload/found_name.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/digest.h"

enum { HASH_SHOWN = 8 };

/* "Deployment" and "Web.v1" to "deployment-web-v1": what a consumer's name may consist of. Owned. */
static char *words_of(const char *kind, const char *name)
{
    char *words = cr_asprintf("%s-%s", kind, name);
    for (char *c = words; *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
        else if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            *c = '-';
    }
    return words;
}

/* The words say all there is: no character was replaced, none is too many. */
static bool is_complete(const char *words, const char *name)
{
    return strlen(words) <= CR_FOUND_NAME_MAX && cr_ends_with(words, name) && !cr_ends_with(words, "-");
}

static char *hashed(const char *words, const char *kind, const char *name, int attempt)
{
    char hex[CR_SHA256_HEX];
    cr_autofree char *seed = cr_asprintf("%s/%s/%d", kind, name, attempt);
    cr_sha256_hex(seed, strlen(seed), hex);
    size_t len = strlen(words);
    if (len > CR_FOUND_NAME_MAX - HASH_SHOWN - 1)
        len = CR_FOUND_NAME_MAX - HASH_SHOWN - 1;
    while (len && words[len - 1] == '-')
        len--;
    return cr_asprintf("%.*s-%.*s", (int)len, words, HASH_SHOWN, hex);
}

char *cr_found_name(const char *kind, const char *name, const struct cr_strmap *taken)
{
    cr_autofree char *words = words_of(kind, name);
    if (is_complete(words, name) && !cr_strmap_get(taken, words))
        return cr_steal(&words);
    for (int attempt = 0;; attempt++) {
        char *candidate = hashed(words, kind, name, attempt);
        if (!cr_strmap_get(taken, candidate))
            return candidate;
        free(candidate);
    }
}
