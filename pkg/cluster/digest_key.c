#include "cluster/digest_key.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "codec/base64.h"

enum {
    PASSING_MS = 5 * 1000,  /* the API server is out of reach */
    LASTING_MS = 60 * 1000, /* a person must do something */
};

struct cr_digest_key {
    struct cr_client *client;
    char *ns; /* NULL: none */
    pthread_mutex_t lock;
    bool known;
    unsigned char bytes[CR_DIGEST_KEY];
    const char *problem;
    int64_t again_ms; /* monotonic; 0: at once */
};

struct cr_digest_key *cr_digest_key_new(struct cr_client *client, const char *ns)
{
    struct cr_digest_key *key = cr_new(struct cr_digest_key);
    key->client = client;
    key->ns = cr_strdup_or_null(ns);
    pthread_mutex_init(&key->lock, NULL);
    if (!ns)
        key->problem = "certroll knows no namespace of its own for the key of its digests (--operator-namespace)";
    return key;
}

void cr_digest_key_free(struct cr_digest_key *key)
{
    if (!key)
        return;
    explicit_bzero(key->bytes, sizeof key->bytes);
    pthread_mutex_destroy(&key->lock);
    free(key->ns);
    free(key);
}

/* --- the Secret --- */

static bool take(struct cr_digest_key *key, const struct cr_json *secret, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf bytes = {.secret = true};
    const char *text = cr_json_string_at(secret, "data", "key");
    if (!text || !cr_base64_decode(text, strlen(text), &bytes, NULL) || bytes.len != CR_DIGEST_KEY)
        return cr_error_set(err, CR_ERR_INVALID,
                            "Secret %s/" CR_DIGEST_KEY_SECRET
                            " holds no key of %d bytes: delete it, and another is made",
                            key->ns, CR_DIGEST_KEY);
    memcpy(key->bytes, bytes.data, CR_DIGEST_KEY);
    key->known = true;
    return true;
}

static bool read_secret(struct cr_digest_key *key, struct cr_error *err)
{
    struct cr_json *secret = cr_client_get(key->client, &cr_res_secrets, key->ns, CR_DIGEST_KEY_SECRET, err);
    bool taken = secret && take(key, secret, err);
    cr_json_free_secret(secret);
    return taken;
}

static struct cr_json *new_secret(struct cr_error *err)
{
    unsigned char bytes[CR_DIGEST_KEY];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        cr_error_set(err, CR_ERR_TRANSIENT, "the kernel gives no random bytes");
        return NULL;
    }
    struct cr_json *secret = cr_json_new_object();
    cr_json_set_string(secret, "apiVersion", "v1");
    cr_json_set_string(secret, "kind", "Secret");
    cr_json_set_string(cr_json_object_in(secret, "metadata"), "name", CR_DIGEST_KEY_SECRET);
    cr_json_set_bool(secret, "immutable", true);
    char *text = cr_base64_encode(bytes, sizeof bytes);
    cr_json_set_string(cr_json_object_in(secret, "data"), "key", text);
    explicit_bzero(text, strlen(text));
    explicit_bzero(bytes, sizeof bytes);
    free(text);
    return secret;
}

/* The replica that comes second reads what the first has made; a key that was requested without an answer is found by
 * the next attempt. */
static bool make_secret(struct cr_digest_key *key, struct cr_error *err)
{
    struct cr_json *secret = new_secret(err);
    if (!secret)
        return false;
    struct cr_error refused = {0};
    struct cr_json *made = cr_client_create(key->client, &cr_res_secrets, key->ns, secret, &refused);
    cr_json_free_secret(secret);
    if (!made && refused.kind == CR_ERR_CONFLICT)
        return read_secret(key, err);
    if (!made) {
        *err = refused;
        return false;
    }
    bool taken = take(key, made, err);
    cr_json_free_secret(made);
    if (taken)
        cr_log(CR_LOG_INFO, "the key for digests of opaque material was made", {"namespace", key->ns},
               {"secret", CR_DIGEST_KEY_SECRET});
    return taken;
}

static bool obtain(struct cr_digest_key *key, struct cr_error *err)
{
    if (read_secret(key, err))
        return true;
    return err->kind == CR_ERR_NOT_FOUND && make_secret(key, err);
}

/* --- for others --- */

static const char *explain(const struct cr_error *err)
{
    switch (err->kind) {
    case CR_ERR_FORBIDDEN:
    case CR_ERR_UNAUTHORIZED:
        return "certroll may not read and create the Secret " CR_DIGEST_KEY_SECRET " of its namespace";
    case CR_ERR_NOT_FOUND:
        return "the namespace that certroll has for its own objects is not there";
    case CR_ERR_INVALID:
        return "the Secret " CR_DIGEST_KEY_SECRET " of certroll's namespace cannot be used: delete it, and another is "
               "made";
    default:
        return NULL;
    }
}

static void try_now(struct cr_digest_key *key)
{
    struct cr_error err = {0};
    if (obtain(key, &err)) {
        key->problem = NULL;
        return;
    }
    key->problem = explain(&err);
    key->again_ms = cr_clock_monotonic_ms() + (key->problem ? LASTING_MS : PASSING_MS);
    if (err.kind != CR_ERR_CANCELLED)
        cr_log(CR_LOG_WARN, "no key for digests of opaque material", {"namespace", key->ns}, {"error", err.text});
}

bool cr_digest_key_get(struct cr_digest_key *key, unsigned char out[CR_DIGEST_KEY])
{
    pthread_mutex_lock(&key->lock);
    if (!key->known && key->ns && cr_clock_monotonic_ms() >= key->again_ms)
        try_now(key);
    bool known = key->known;
    if (known)
        memcpy(out, key->bytes, CR_DIGEST_KEY);
    pthread_mutex_unlock(&key->lock);
    return known;
}

const char *cr_digest_key_problem(struct cr_digest_key *key)
{
    pthread_mutex_lock(&key->lock);
    const char *problem = key->known ? NULL : key->problem;
    pthread_mutex_unlock(&key->lock);
    return problem;
}
