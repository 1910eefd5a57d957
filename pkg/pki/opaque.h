/* The digest of what is neither certificate, key nor trust. Private to pkg/pki. */
#ifndef CR_PKI_OPAQUE_H
#define CR_PKI_OPAQUE_H

#include "pki/material.h"

/* HMAC-SHA-256 over the entries' names and contents, whatever their order; "" without entries or without a key. */
void cr_opaque_digest(const struct cr_material_input *in, char out[CR_SHA256_HEX]);

#endif
