/* What a Secret carries, as digests: nothing here can rebuild a key. Parsing is strict (a corrupt block in the middle
 * is an error, not the end), compares DER and never text, and never prompts for a passphrase. */
#ifndef CR_PKI_MATERIAL_H
#define CR_PKI_MATERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "pki/digest.h"

/* A serial number has at most 20 octets (RFC 5280, section 4.1.2.2). A longer one is "". */
enum { CR_SERIAL_HEX = 40 + 1 };

/* So many digits of a subject's digest are remembered in status: enough to distinguish the names of one bundle. */
enum { CR_SUBJECT_REMEMBERED = 16 };

/* A CA certificate of a trust bundle. */
struct cr_ca {
    char fingerprint[CR_SHA256_HEX]; /* SHA-256 of the DER */
    char identity[CR_SHA256_HEX];    /* SHA-256 of subject name DER and SubjectPublicKeyInfo DER: the same for a CA
                                      * renewed with the same key and name */
    char subject[CR_SHA256_HEX]; /* SHA-256 of the subject name's DER, as a server announces it to clients. Read from
                                  * status: CR_SUBJECT_REMEMBERED digits, or "" */
    char serial[CR_SERIAL_HEX];  /* serial number, lower-case hex without leading zeros; read from status: "" */
    int64_t not_before_ms;       /* wall clock */
    int64_t not_after_ms;
};

/* The first half of an opaque digest names the key that made it: digests by different keys say nothing of each other.
 */
enum { CR_OPAQUE_KEY_ID = 8, CR_OPAQUE_TEXT = CR_OPAQUE_KEY_ID + 1 + CR_SHA256_HEX };
#define CR_OPAQUE_UNREAD "unread"
/* The most entries that are distinguished. */
enum { CR_OPAQUE_KEYS_MAX = 64 };

/* One state of the material of one Secret. Absent parts are empty strings or empty lists. */
struct cr_material {
    bool has_leaf;
    char leaf[CR_SHA256_HEX];   /* SHA-256 of the leaf's DER: what a TLS probe sees */
    char chain[CR_SHA256_HEX];  /* SHA-256 over the DER of all certificates of the chain in order */
    char key[CR_SHA256_HEX];    /* SHA-256 of the leaf's SubjectPublicKeyInfo; that the private key fits was checked */
    char serial[CR_SERIAL_HEX]; /* of the leaf */
    char key_type[16];          /* "RSA-2048", "ECDSA-P256", "Ed25519", … */
    char issuer[CR_SHA256_HEX]; /* identity of the CA that signed the leaf, when that CA is in the chain or in the trust
                                 * of the same Secret (checked by signature); else SHA-256 over issuer name and AKI */
    struct cr_strvec anchors; /* identities of all CAs of trust to which the leaf verifies now, each as if it alone were
                               * trusted (an intermediate counts) and with the chain and the rest of the bundle as
                               * intermediates; any purpose. A CA that expired is none */
    int64_t not_before_ms;    /* the leaf's */
    int64_t not_after_ms;
    struct cr_strvec names; /* that the leaf is for (leaf_names.h). Read from status: the first of them */

    struct cr_ca *trust; /* owned; in the bundle's order without duplicates (same DER) */
    size_t trust_len;
    /* What is left of a list that was too long to be remembered, instead of trust and anchors; count 0: none. */
    struct cr_trust_summary {
        size_t count;
        char digest[CR_SHA256_HEX]; /* as cr_material_trust_digest */
        int64_t not_after_ms;       /* of the CA that lasts longest */
    } trust_summary;

    char opaque[CR_OPAQUE_TEXT];  /* "<key id>:<keyed digest>" over what is neither; "" when there is none;
                                   * CR_OPAQUE_UNREAD when there is some and no key to digest it with */
    struct cr_strvec opaque_keys; /* "name=<16 hex of a keyed digest>" per entry, by name; "name=" when unread. Empty
                                     beside a digest: which entry is which is not known (too many of them) */
};

/* Whether it is "", CR_OPAQUE_UNREAD or a digest with its key's id. */
bool cr_opaque_is_valid(const char *opaque);
/* Whether two of them can be compared: both are read, and by the same key where there is something to digest. */
bool cr_opaque_comparable(const char *a, const char *b);
/* Length of the name in an element of opaque_keys. */
size_t cr_opaque_key_len(const char *element);

void cr_material_dispose(struct cr_material *m);
CR_DEFINE_DISPOSE(cr_material, struct cr_material, cr_material_dispose)
/* Replaces *to, which holds a value (or is zeroed). */
void cr_material_copy(struct cr_material *to, const struct cr_material *from);

/* Whether there is any trust, in full or as a summary. */
bool cr_material_has_trust(const struct cr_material *m);
/* SHA-256 over trust as a set: its fingerprints sorted, each followed by a comma. "" without trust. */
void cr_material_trust_digest(const struct cr_material *m, char out[CR_SHA256_HEX]);
/* The same of a list in full as of its summary. */
struct cr_trust_summary cr_material_summarize_trust(const struct cr_material *m);

/* Borrowed bytes of the Secret's keys; len 0 with data NULL: the key is absent; len 0 with data: it is empty. */
struct cr_pem_input {
    const char *data;
    size_t len;
};

/* An entry of a Secret that is neither of the three below: an HMAC key, a service account's key. */
struct cr_opaque_entry {
    const char *name; /* the key in the Secret */
    const void *data;
    size_t len;
    /* HMAC-SHA-256 of the contents by opaque_key, in hexadecimal, where data is not there as a whole; NULL: of data. */
    const char *digest;
};

/* Everything is borrowed. */
struct cr_material_input {
    struct cr_pem_input certificate; /* tls.crt */
    struct cr_pem_input private_key; /* tls.key: PKCS#8, SEC1, PKCS#1; encrypted is refused */
    struct cr_pem_input trust;       /* ca.crt */
    const char *names[3];            /* the keys' names in the Secret, for messages: certificate, private key, trust */

    /* In any order. The digest is keyed, since a password could be guessed from a plain one: opaque_key is at least 16
     * random bytes of the caller's, the same for as long as digests are compared. NULL: opaque entries are only named.
     */
    const struct cr_opaque_entry *opaque;
    size_t opaque_len;
    const void *opaque_key;
    size_t opaque_key_len;
};

/* Why material cannot be used; the word is the reason of a condition. */
enum cr_material_problem {
    CR_MATERIAL_OK = 0,
    CR_MATERIAL_EMPTY,        /* "EmptyMaterial": an empty certificate, key or trust entry, or nothing at all */
    CR_MATERIAL_UNPARSABLE,   /* "UnparsableMaterial" */
    CR_MATERIAL_KEY_MISMATCH, /* "KeyMismatch" */
    CR_MATERIAL_ENCRYPTED,    /* "EncryptedKey" */
    CR_MATERIAL_EXPIRED,      /* "Expired": the leaf */
    CR_MATERIAL_NOT_YET,      /* "NotYetValid": the leaf, beyond 5 minutes of clock skew */
    CR_MATERIAL_INCOMPLETE,   /* "IncompleteMaterial": a certificate without a key, or the other way round */
    CR_MATERIAL_TOO_COSTLY, /* "TooCostly": it passes a limit of what may be computed for it (pki/paths.h, pki/key.h) */
};
const char *cr_material_problem_name(enum cr_material_problem problem);

/* Reads and checks. On a problem: false, *problem says which and err (Invalid) says in words which key of the Secret,
 * which block, what to do ("tls.key does not belong to the certificate in tls.crt: …"), never with content; out is left
 * empty, but for not_before_ms and not_after_ms of a leaf that could be read. out need not be initialised.
 *
 * Text before, between and behind PEM blocks is allowed, and blocks of other kinds (a private key beside the
 * certificates) are skipped as TLS libraries do; a block that is cut, corrupt or joined to the next without a new line
 * is refused. Exactly one private key is expected. Expired CAs in the trust and certificates there that are no CAs (a
 * self-signed leaf) are no problem. Caps: 1 MiB an entry, 64 KiB of a private key, 32 certificates of a chain, 1000 of
 * a bundle, and those of pki/paths.h for what may stand above the leaf.
 * now_ms: wall clock. Thread-safe. */
bool cr_material_parse(const struct cr_material_input *in, int64_t now_ms, struct cr_material *out,
                       enum cr_material_problem *problem, struct cr_error *err) CR_MUST_USE;

#endif
