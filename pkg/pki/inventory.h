/* What a PEM text has, as digests: certificates and keys in their order, whatever they are for. Nothing here can
 * rebuild a key. */
#ifndef CR_PKI_INVENTORY_H
#define CR_PKI_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "pki/material.h"

enum cr_inventory_kind {
    CR_INVENTORY_CERTIFICATE = 1,
    CR_INVENTORY_PRIVATE_KEY = 2,
    CR_INVENTORY_PUBLIC_KEY = 4,
};

struct cr_inventory_item {
    enum cr_inventory_kind kind;
    /* SHA-256 of the SubjectPublicKeyInfo's DER (RFC 5280, section 4.1), of a private key its public half's: the same
     * of a certificate and of its key, and what the "kid" of a service account's token has (k8s.io/kubernetes
     * pkg/serviceaccount/jwt.go keyIDFromPublicKey). */
    char key[CR_SHA256_HEX];
    /* Set for a certificate, else "" and 0. */
    char fingerprint[CR_SHA256_HEX]; /* SHA-256 of its DER */
    char subject[CR_SHA256_HEX];     /* SHA-256 of its subject's DER: what a server announces that trusts it */
    int64_t not_after_ms;            /* wall clock */
};

enum { CR_INVENTORY_MAX = 1000 };

struct cr_inventory {
    struct cr_inventory_item *items; /* owned */
    size_t len;
};
void cr_inventory_dispose(struct cr_inventory *inventory);
CR_DEFINE_DISPOSE(cr_inventory, struct cr_inventory, cr_inventory_dispose)

/* kinds: a mask; what is of another kind is skipped, corrupt or not, so that it may be empty. Errors (Invalid, without
 * the name of the file, and out is empty): no PEM block at all, one that is cut, corrupt or joined to the next, an
 * encrypted key, more than CR_INVENTORY_MAX. Keys are wiped. Thread-safe. */
bool cr_inventory_read(const struct cr_pem_input *in, unsigned kinds, struct cr_inventory *out,
                       struct cr_error *err) CR_MUST_USE;

#endif
