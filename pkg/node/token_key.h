/* Which key a service account's token was signed with, without a look at its signature. Pure; what is read is wiped.
 * Private to pkg/node. */
#ifndef CR_NODE_TOKEN_KEY_H
#define CR_NODE_TOKEN_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum { CR_TOKEN_MAX = 64 * 1024 };

/* Whether the text is a token that is bound to the pod with this UID: a JWT (RFC 7515, section 3.1) whose claim
 * kubernetes.io.pod.uid says so (KEP-1205), as every one that a kubelet asks for. Other JWTs that a projected Secret
 * may have are not the kubelet's to renew. *key: its "kid" as 64 hexadecimal digits, which are those of the SHA-256 of
 * the public key (k8s.io/kubernetes pkg/serviceaccount/jwt.go keyIDFromPublicKey), owned; NULL: it is no such digest
 * (an external signer's). Thread-safe. */
bool cr_token_key(const char *text, size_t len, const char *uid, char **key);

#endif
