/* Whom we trust and who we are in TLS, shared by the connections that use it and wiped with the last of them. */
#include "net/http_internal.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

struct cr_http_identity *cr_http_identity_new(const struct cr_http_tls *tls)
{
    static const struct cr_http_tls none = {0};
    if (!tls)
        tls = &none;
    struct cr_http_identity *identity = cr_new(struct cr_http_identity);
    atomic_init(&identity->refs, 1);
    identity->ca_pem = cr_strdup_or_null(tls->ca_pem);
    identity->cert_pem = cr_strdup_or_null(tls->cert_pem);
    identity->key_pem = cr_strdup_or_null(tls->key_pem);
    identity->server_name = cr_strdup_or_null(tls->server_name);
    identity->proxy = cr_strdup_or_null(tls->proxy);
    identity->insecure = tls->insecure;
    return identity;
}

struct cr_http_identity *cr_http_identity_ref(struct cr_http_identity *identity)
{
    atomic_fetch_add(&identity->refs, 1);
    return identity;
}

void cr_http_free_secret(char *text)
{
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}

void cr_http_identity_unref(struct cr_http_identity *identity)
{
    if (!identity || atomic_fetch_sub(&identity->refs, 1) != 1)
        return;
    cr_http_free_secret(identity->key_pem);
    cr_http_free_secret(identity->proxy);
    free(identity->ca_pem);
    free(identity->cert_pem);
    free(identity->server_name);
    free(identity);
}

static bool is_equal(const struct cr_http_identity *a, const struct cr_http_identity *b)
{
    return cr_streq(a->ca_pem, b->ca_pem) && cr_streq(a->cert_pem, b->cert_pem) && cr_streq(a->key_pem, b->key_pem) &&
           cr_streq(a->server_name, b->server_name) && cr_streq(a->proxy, b->proxy) && a->insecure == b->insecure;
}

bool cr_http_identity_renew(struct cr_http_identity **newest, struct cr_http_identity **other)
{
    if (is_equal(*newest, *other))
        return false;
    struct cr_http_identity *before = *newest;
    *newest = *other;
    *other = before;
    return true;
}
