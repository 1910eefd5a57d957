#include "pki/trust_read.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    KEPT = 4,
    KEPT_LENGTH = 8, /* certificates of a bundle: some KiB each */
};

/* The newest first. */
struct kept {
    char text[CR_SHA256_HEX];
    struct cr_certificates *certs;
};

static pthread_key_t kept_key;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void kept_free(void *arg)
{
    struct kept *kept = arg;
    for (size_t i = 0; i < KEPT; i++)
        cr_certificates_free(kept[i].certs);
    free(kept);
}

static void make_key(void)
{
    if (pthread_key_create(&kept_key, kept_free) != 0)
        abort();
}

/* The bundles that this thread keeps. */
static struct kept *kept_bundles(void)
{
    pthread_once(&kept_once, make_key);
    struct kept *kept = pthread_getspecific(kept_key);
    if (kept)
        return kept;
    kept = cr_calloc(KEPT, sizeof *kept);
    pthread_setspecific(kept_key, kept);
    return kept;
}

/* The place in front, free. */
static void make_room(struct kept *kept, size_t from)
{
    memmove(&kept[1], &kept[0], from * sizeof *kept);
    kept[0] = (struct kept){0};
}

static struct cr_certificates *find(struct kept *kept, const char *text)
{
    for (size_t i = 0; i < KEPT; i++) {
        if (!kept[i].certs || strcmp(kept[i].text, text) != 0)
            continue;
        struct kept found = kept[i];
        make_room(kept, i);
        kept[0] = found;
        return found.certs;
    }
    return NULL;
}

static void keep(struct kept *kept, const char *text, struct cr_certificates *certs)
{
    cr_certificates_free(kept[KEPT - 1].certs);
    make_room(kept, KEPT - 1);
    memcpy(kept[0].text, text, CR_SHA256_HEX);
    kept[0].certs = cr_certificates_ref(certs);
}

struct cr_certificates *cr_trust_read(const struct cr_pem_input *in, size_t max, struct cr_error *err)
{
    char text[CR_SHA256_HEX];
    cr_sha256_hex(in->data, in->len, text);
    struct kept *kept = kept_bundles();
    struct cr_certificates *known = find(kept, text);
    if (known && known->len <= max)
        return cr_certificates_ref(known);
    struct cr_certificates *certs = cr_certificates_read(in, max, err);
    if (certs && !known && certs->len <= KEPT_LENGTH)
        keep(kept, text, certs);
    return certs;
}
