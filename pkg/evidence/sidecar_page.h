/* The status page of a pod's certroll-sidecar (docs/sidecar.md): which material it has found, passed on, and seen
 * served. Pure.
 */
#ifndef CR_EVIDENCE_SIDECAR_PAGE_H
#define CR_EVIDENCE_SIDECAR_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "pki/digest.h"
#include "evidence/sighting.h"

#define CR_SIDECAR_PAGE_VERSION "sidecar.certroll.dev/v1"
/* What is kept of one pod's page, so that a thousand pods cost little. */
enum {
    CR_SIDECAR_ENTRIES_MAX = 16,
    CR_SIDECAR_PAGE_MAX = 64 * 1024,
    CR_SIDECAR_VALUES_MAX = 2000, /* JSON values; a sidecar's page has some 20 for each material */
    CR_SIDECAR_NAME = 63 + 1,
};

enum cr_sidecar_state {
    CR_SIDECAR_PENDING,   /* "Pending": the sidecar works on it */
    CR_SIDECAR_DELIVERED, /* "Delivered": all that it has found */
    CR_SIDECAR_REFUSED,   /* "Refused": it cannot use the material; what was delivered stays */
    CR_SIDECAR_FAILING,   /* "Failing": a trigger, or the proof */
};

/* One material of the page. Digests as in cr_material; trust as cr_material_trust_digest; "": no such part, or none
 * yet. */
struct cr_sidecar_entry {
    char name[CR_SIDECAR_NAME];
    enum cr_sidecar_state state;
    char found_leaf[CR_SHA256_HEX], found_trust[CR_SHA256_HEX];         /* in its files, checked */
    char delivered_leaf[CR_SHA256_HEX], delivered_trust[CR_SHA256_HEX]; /* its triggers have succeeded */
    bool leaf_proven, trust_proven;  /* of what is delivered: seen in a handshake since */
    char served_leaf[CR_SHA256_HEX]; /* seen last */
    char words[CR_SIGHTING_WORDS];   /* what is in the way: printable ASCII, cut; "" */
};

/* One look at one pod. Owned entries. */
struct cr_sidecar_sighting {
    int64_t at_ms; /* wall, when the look began; 0: never looked */
    bool read;
    struct cr_sidecar_entry *entries;
    size_t len;
    char words[CR_SIGHTING_WORDS]; /* why the page was not read; "" */
};
void cr_sidecar_sighting_dispose(struct cr_sidecar_sighting *sighting);
CR_DEFINE_DISPOSE(cr_sidecar_sighting, struct cr_sidecar_sighting, cr_sidecar_sighting_dispose)
/* to need not be initialised. */
void cr_sidecar_sighting_copy(struct cr_sidecar_sighting *to, const struct cr_sidecar_sighting *from);

/* Sets read and entries. False, with nothing set: it is no such page, of another version, or has more than is kept: a
 * part of it could be taken as proof of what it does not show. Members that are not known are passed over. Errors:
 * Invalid, never with its content. */
bool cr_sidecar_page_read(const char *text, size_t len, struct cr_sidecar_sighting *sighting,
                          struct cr_error *err) CR_MUST_USE;

#endif
