/* What a client presents. Private to pkg/net. */
#ifndef CR_NET_PROBE_CLIENT_H
#define CR_NET_PROBE_CLIENT_H

#include <openssl/ssl.h>

#include "net/tls_probe.h"

/* False when OpenSSL does not take it, a key too weak for it for example. */
bool cr_probe_client_use(const struct cr_probe_client *client, SSL *ssl);

/* Keys of CAs that no server can trust, since they are made here, when first needed, and are gone with this struct: an
 * RSA key takes a tenth of a second, so one of each kind is made for all strangers of a round. All zero is none yet. */
enum cr_probe_stranger_kind { CR_STRANGER_RSA, CR_STRANGER_P256, CR_STRANGER_P384, CR_STRANGER_ED25519 };
struct cr_probe_strangers {
    EVP_PKEY *keys[CR_STRANGER_ED25519 + 1];
    unsigned made; /* keys */
};
void cr_probe_strangers_dispose(struct cr_probe_strangers *strangers);
CR_DEFINE_DISPOSE(cr_probe_strangers, struct cr_probe_strangers, cr_probe_strangers_dispose)

/* A client that differs from `like` only in its CA: the same names, life, usages and key, issued by one of these CAs,
 * under a name of its own. Owned; NULL when OpenSSL cannot make it. */
struct cr_probe_client *cr_probe_client_stranger(const struct cr_probe_client *like,
                                                 struct cr_probe_strangers *strangers) CR_MUST_USE;

#endif
