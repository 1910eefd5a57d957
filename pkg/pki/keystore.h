/* PKCS#12 files (RFC 7292) for what reads no PEM, Java above all. Thread-safe.
 *
 * The same input makes the same bytes, so that a Secret that already has them is not written again. PKCS#12 wants salts
 * and IVs that differ between files: here they are HMAC-SHA-256 of the certificates by a secret seed, as SIV modes do
 * it (RFC 5297, section 1.1). What may be learnt from two files is whether they are the same, which the certificates
 * show anyway. The password is no part of it: a salt made of it would let passwords be guessed without the iterations.
 * A salt made without a secret would let a dictionary be worked through before the file is there; so without a seed
 * nothing is made.
 *
 * The forms that OpenSSL 3 and Java have by default: PBES2 with PBKDF2-HMAC-SHA-256 and AES-256-CBC, HMAC-SHA-256 as
 * MAC (cert-manager's profile Modern2023; Java from 8u301, 11.0.12 and 16 on). The older ones, 40-bit RC2 and 3DES with
 * SHA-1, are not made. */
#ifndef CR_PKI_KEYSTORE_H
#define CR_PKI_KEYSTORE_H

#include "base/buffer.h"
#include "pki/material.h"

enum {
    CR_KEYSTORE_SEED_MIN = 16, /* bytes */
    CR_KEYSTORE_PASSWORD_MAX = 256,
    CR_KEYSTORE_ITERATIONS = 10000, /* as keytool's; a file is made, or opened, in milliseconds */
};

/* Borrowed. */
struct cr_keystore_secrets {
    /* Printable ASCII, not empty: programs differ in how they encode other passwords, and Java takes none. */
    const char *password;
    /* At least 16 random bytes of the caller's, which stay the same for as long as files shall. */
    const void *seed;
    size_t seed_len;
};

/* The key with its certificate and chain, and the CAs of trust (len 0: none) as further certificates, as
 * cert-manager's keystore.p12. Everything in PEM; the key must belong to the first certificate. Appends to out, which
 * must be empty and becomes secret. Errors: Invalid, in words, without the names of the entries. */
bool cr_keystore_write(const struct cr_pem_input *certificate, const struct cr_pem_input *key,
                       const struct cr_pem_input *trust, const struct cr_keystore_secrets *secrets, struct cr_buf *out,
                       struct cr_error *err) CR_MUST_USE;

/* The CAs of trust without duplicates, each an entry that Java takes for trusted (attribute trustedKeyUsage with
 * anyExtendedKeyUsage, as keytool writes it) under a name made of its fingerprint, as cert-manager's truststore.p12. */
bool cr_truststore_write(const struct cr_pem_input *trust, const struct cr_keystore_secrets *secrets,
                         struct cr_buf *out, struct cr_error *err) CR_MUST_USE;

#endif
