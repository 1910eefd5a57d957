/* Clients that verify with OpenSSL: a store of what a bundle has, in its order, and what the server sends in between.
 */
#include "game.h"

#include <string.h>

#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/strings.h"

static const struct {
    const char *name;
    unsigned long flags;
} clients[] = {
    {"openssl", 0},
    {"openssl-partial", X509_V_FLAG_PARTIAL_CHAIN},                          /* curl */
    {"openssl-strict", X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_X509_STRICT}, /* Python 3.13's ssl */
};

static unsigned long flags_of(const char *client)
{
    for (size_t i = 0; i < cr_array_len(clients); i++)
        if (strcmp(clients[i].name, client) == 0)
            return clients[i].flags;
    game_must(!"a client that is known");
    return 0;
}

static X509_STORE *store_of(const char *roots)
{
    X509_STORE *store = X509_STORE_new();
    cr_autofree char *list = cr_strdup(roots);
    char *rest = NULL;
    game_must(store);
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "-") != 0)
            game_must(X509_STORE_add_cert(store, game_cert_find(name)->x509));
    return store;
}

static STACK_OF(X509) * stack_of(const char *chain)
{
    STACK_OF(X509) *stack = sk_X509_new_null();
    cr_autofree char *list = cr_strdup(chain);
    char *rest = NULL;
    for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        game_must(sk_X509_push(stack, game_cert_find(name)->x509) > 0);
    return stack;
}

/* As SSL_CTX does for who connects; for a leaf that can only be a client's, as it does for who is connected to. */
static const char *default_for(X509 *leaf)
{
    bool client = X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1 &&
                  X509_check_purpose(leaf, X509_PURPOSE_SSL_CLIENT, 0) == 1;
    return client ? "ssl_client" : "ssl_server";
}

bool game_openssl_verifies(const char *client, int day, const char *roots, const char *chain)
{
    X509_STORE *store = store_of(roots);
    STACK_OF(X509) *sent = stack_of(chain);
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    game_must(context && X509_STORE_CTX_init(context, store, sk_X509_value(sent, 0), sent));
    X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(context);
    X509_STORE_CTX_set_default(context, default_for(sk_X509_value(sent, 0)));
    X509_VERIFY_PARAM_set_flags(param, flags_of(client));
    X509_VERIFY_PARAM_set_time(param, (time_t)(game_day_ms(day) / 1000));
    bool verifies = X509_verify_cert(context) == 1;
    X509_STORE_CTX_free(context);
    sk_X509_free(sent);
    X509_STORE_free(store);
    return verifies;
}
