/* The digest of what is neither certificate, key nor trust. Private to pkg/pki. */
#ifndef CR_PKI_OPAQUE_H
#define CR_PKI_OPAQUE_H

#include "pki/material.h"

/* Fills opaque and opaque_keys of out (empty before): HMAC-SHA-256 (RFC 2104) over the entries' names and contents,
 * whatever their order. */
void cr_opaque_digest(const struct cr_material_input *in, struct cr_material *out);

#endif
