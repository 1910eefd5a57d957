/* Clients as the product models them (pki/bundle_clients.h): to be compared with the clients themselves. */
#include "game.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/bundle_clients.h"
#include "pki/signers.h"

enum { LIST_MAX = 64 };

static const char *const names[CR_CLIENTS] = {
    [CR_CLIENT_OPENSSL] = "openssl",
    [CR_CLIENT_PARTIAL] = "openssl-partial",
    [CR_CLIENT_STRICT] = "openssl-strict",
    [CR_CLIENT_BORINGSSL] = "envoy",
    [CR_CLIENT_GO] = "go",
    [CR_CLIENT_GNUTLS] = "gnutls",
};

/* Borrowed certificates. */
static size_t list_of(const char *text, X509 *out[LIST_MAX])
{
    size_t len = 0;
    cr_autofree char *list = cr_strdup(text);
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        game_must(len < LIST_MAX);
        if (!cr_streq(name, "-"))
            out[len++] = game_cert_find(name)->x509;
    }
    return len;
}

bool game_model_verifies(const char *client, int day, const char *roots, const char *chain)
{
    X509 *trusted[LIST_MAX];
    X509 *sent[LIST_MAX];
    bool verifies[CR_CLIENTS];
    size_t at = 0;
    CR_CLEANUP(cr_signers) struct cr_signers *signers = cr_signers_new();
    STACK_OF(X509) *stack = sk_X509_new_null();
    size_t sent_len = list_of(chain, sent);
    for (size_t i = 0; i < sent_len; i++)
        game_must(sk_X509_push(stack, sent[i]) > 0);
    CR_CLEANUP(cr_loaded_bundle) struct cr_loaded_bundle *bundle = cr_bundle_load(trusted, list_of(roots, trusted));
    game_must(bundle);
    cr_bundle_ask_clients(bundle, stack, game_day_ms(day), signers, verifies);
    sk_X509_free(stack);
    while (at < CR_CLIENTS && !cr_streq(names[at], client))
        at++;
    game_must(at < CR_CLIENTS);
    return verifies[at];
}
