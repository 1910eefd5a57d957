/* Private keys that certificates are issued for or signed with. What is written and freed is wiped; of a key that is
 * read OpenSSL 3.0's decoders give copies back unwiped. Nothing here logs or prints one. Immutable, so any number of
 * threads may use one. */
#ifndef CR_PKI_PRIVATE_KEY_H
#define CR_PKI_PRIVATE_KEY_H

#include "base/buffer.h"
#include "pki/material.h"

enum cr_key_algorithm { CR_KEY_ECDSA, CR_KEY_RSA, CR_KEY_ED25519 };

struct cr_key_spec {
    enum cr_key_algorithm algorithm;
    int size; /* bits. RSA: 2048 (the default), 3072, 4096; ECDSA: 256 (the default), 384; Ed25519 has one: 0 or 256 */
};

struct cr_private_key;

/* A new key. Errors: Invalid, a size that the algorithm does not have here. RSA-4096 takes seconds of a slow core. */
struct cr_private_key *cr_private_key_new(const struct cr_key_spec *spec, struct cr_error *err) CR_MUST_USE;
/* The one key of a PEM text, in the forms of cr_material_input. Errors: Invalid, also for a key that nothing should be
 * signed with or issued for any more (RSA below 2048 bits: NIST SP 800-57 part 1, table 2) or that TLS peers do not
 * take (other curves than P-256, P-384 and P-521; DSA, Ed448, RSA-PSS). ML-DSA is read with OpenSSL 3.5 and later. */
struct cr_private_key *cr_private_key_read(const struct cr_pem_input *in, struct cr_error *err) CR_MUST_USE;
void cr_private_key_free(struct cr_private_key *key);
CR_DEFINE_CLEANUP(cr_private_key, struct cr_private_key, cr_private_key_free)

/* Appends it as PKCS#8 (RFC 5958) in PEM, not encrypted: the form of a Secret's tls.key. pem must be empty or secret,
 * and becomes secret. Errors: Internal. */
bool cr_private_key_write(const struct cr_private_key *key, struct cr_buf *pem, struct cr_error *err) CR_MUST_USE;

#endif
