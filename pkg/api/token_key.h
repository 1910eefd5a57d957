/* Which key a service account's token was signed with, without a look at its signature: the "kid" of its header, which
 * Kubernetes makes of the key (k8s.io/kubernetes pkg/serviceaccount/jwt.go keyIDFromPublicKey: base64url of the SHA-256
 * of the SubjectPublicKeyInfo), here as hexadecimal. Pure, thread-safe; what is read is wiped. */
#ifndef CR_API_TOKEN_KEY_H
#define CR_API_TOKEN_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "pki/digest.h"

enum { CR_TOKEN_MAX = 64 * 1024 };

/* Reads the header of a text that begins as a JWT does (RFC 7515, section 3.1), and nothing else of it. False: it has
 * none, or its key is no such digest (an external signer's); key is then left alone. */
bool cr_token_key(const char *text, size_t len, char key[CR_SHA256_HEX]) CR_MUST_USE;

/* Whether the text is a token that is bound to the pod with this UID: a JWT whose claim kubernetes.io.pod.uid says so
 * (KEP-1205), as every token that a kubelet asks for. Other JWTs that a projected Secret may have are not the kubelet's
 * to renew. key: empty when it is no such digest, and of what is no such token. */
bool cr_pod_token_key(const char *text, size_t len, const char *uid, char key[CR_SHA256_HEX]) CR_MUST_USE;

#endif
