/* One TLS context from one consistent set of files: checked as a whole before a single new connection gets it. */
#include "tlsreload/context_internal.h"

#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "tlsreload/snapshot.h"

enum { CHAIN_MOST = 32, CAS_MOST = 1000 };

static void stack_cleanup(STACK_OF(X509) * *stack)
{
    sk_X509_pop_free(*stack, X509_free);
}
#define AUTO_STACK __attribute__((cleanup(stack_cleanup)))

void cr_tls_context_free(struct cr_tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    free(context->cas);
    free(context);
}

/* --- the files --- */

void cr_tls_texts_dispose(struct cr_tls_texts *texts)
{
    cr_buf_dispose(&texts->certificate);
    cr_buf_dispose(&texts->private_key);
    cr_buf_dispose(&texts->client_ca);
}

/* Each with its length, so that no two sets of files look alike. */
static void digest_texts(struct cr_tls_texts *texts)
{
    const struct cr_buf *const all[] = {&texts->certificate, &texts->private_key, &texts->client_ca};
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    EVP_DigestInit_ex(md, EVP_sha256(), NULL);
    for (size_t i = 0; i < 3; i++) {
        EVP_DigestUpdate(md, &all[i]->len, sizeof all[i]->len);
        EVP_DigestUpdate(md, cr_buf_text(all[i]), all[i]->len);
    }
    EVP_DigestFinal_ex(md, texts->digest, NULL);
    EVP_MD_CTX_free(md);
}

bool cr_tls_texts_read(const struct cr_tlsreload_options *options, struct cr_tls_texts *texts, struct cr_error *err)
{
    const char *const paths[] = {options->certificate, options->private_key, options->client_ca};
    struct cr_buf out[] = {CR_BUF_INIT(0), {.secret = true}, CR_BUF_INIT(0)};
    bool ok = cr_snapshot_read(paths, 3, CR_TLS_FILE_MAX, out, err);
    *texts = (struct cr_tls_texts){.certificate = out[0], .private_key = out[1], .client_ca = out[2]};
    if (ok)
        digest_texts(texts);
    return ok;
}

/* --- what is served --- */

static int64_t wall_ms(const ASN1_TIME *at)
{
    struct tm tm;
    return ASN1_TIME_to_tm(at, &tm) ? (int64_t)timegm(&tm) * 1000 : 0;
}

static void remember_leaf(struct cr_tls_context *context, const X509 *leaf)
{
    unsigned char digest[CR_TLS_DIGEST] = {0};
    X509_digest(leaf, EVP_sha256(), digest, NULL);
    for (size_t i = 0; i < sizeof digest; i++) {
        context->leaf[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        context->leaf[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    context->not_before_ms = wall_ms(X509_get0_notBefore(leaf));
    context->not_after_ms = wall_ms(X509_get0_notAfter(leaf));
}

/* Before OpenSSL is asked, since its words for a weak key are hard to understand. */
static EVP_PKEY *fitting_key(const struct cr_tlsreload_options *options, const struct cr_buf *text, X509 *leaf,
                             struct cr_error *err)
{
    CR_CLEANUP(cr_tls_pkey) EVP_PKEY *key = cr_tls_key_read(text, err);
    if (!key || !cr_tls_key_check(key, err))
        cr_error_wrap(err, "%s", options->private_key);
    else if (X509_check_private_key(leaf, key) != 1)
        cr_error_set(err, CR_ERR_INVALID, "%s does not belong to the certificate in %s", options->private_key,
                     options->certificate);
    else
        return cr_steal(&key);
    return NULL;
}

static STACK_OF(X509) * bounded_chain(const char *path, const struct cr_buf *text, int most, struct cr_error *err)
{
    AUTO_STACK STACK_OF(X509) *chain = cr_tls_chain_read(text, err);
    if (!chain)
        cr_error_wrap(err, "%s", path);
    else if (sk_X509_num(chain) > most)
        cr_error_set(err, CR_ERR_INVALID, "%s has %d certificates: at most %d are taken", path, sk_X509_num(chain),
                     most);
    else
        return cr_steal(&chain);
    return NULL;
}

static bool set_certificates(struct cr_tls_context *context, const struct cr_tlsreload_options *options,
                             const struct cr_tls_texts *texts, struct cr_error *err)
{
    AUTO_STACK STACK_OF(X509) *chain = bounded_chain(options->certificate, &texts->certificate, CHAIN_MOST, err);
    if (!chain)
        return false;
    CR_CLEANUP(cr_tls_x509) X509 *leaf = sk_X509_shift(chain);
    CR_CLEANUP(cr_tls_pkey) EVP_PKEY *key = fitting_key(options, &texts->private_key, leaf, err);
    if (!key)
        return false;
    remember_leaf(context, leaf);
    return (SSL_CTX_use_certificate(context->ssl, leaf) == 1 && SSL_CTX_use_PrivateKey(context->ssl, key) == 1 &&
            SSL_CTX_set1_chain(context->ssl, chain) == 1) ||
           cr_tls_fail(err, options->certificate);
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, CR_TLS_DIGEST);
}

static void remember_cas(struct cr_tls_context *context, const STACK_OF(X509) * cas)
{
    context->cas_len = (size_t)sk_X509_num(cas);
    context->cas = cr_calloc(context->cas_len, sizeof *context->cas);
    for (size_t i = 0; i < context->cas_len; i++)
        X509_digest(sk_X509_value(cas, (int)i), EVP_sha256(), context->cas[i], NULL);
    qsort(context->cas, context->cas_len, sizeof *context->cas, compare_digests);
}

/* The names that clients choose their certificates by, each once. */
static bool add_name(STACK_OF(X509_NAME) * names, const X509 *ca)
{
    X509_NAME *name = X509_NAME_dup(X509_get_subject_name(ca));
    if (name && sk_X509_NAME_find(names, name) < 0 && sk_X509_NAME_push(names, name))
        return true;
    bool known = name && sk_X509_NAME_find(names, name) >= 0;
    X509_NAME_free(name);
    return known;
}

static int compare_names(const X509_NAME *const *a, const X509_NAME *const *b)
{
    return X509_NAME_cmp(*a, *b);
}

static bool add_cas(SSL_CTX *ssl, const STACK_OF(X509) * cas)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    STACK_OF(X509_NAME) *names = sk_X509_NAME_new(compare_names);
    bool ok = store && names;
    for (int i = 0; ok && i < sk_X509_num(cas); i++)
        ok = X509_STORE_add_cert(store, sk_X509_value(cas, i)) == 1 && add_name(names, sk_X509_value(cas, i));
    if (ok)
        SSL_CTX_set_client_CA_list(ssl, names);
    else
        sk_X509_NAME_pop_free(names, X509_NAME_free);
    return ok;
}

/* Any CA of the bundle is an anchor, an intermediate too, as it is for Go and BoringSSL. */
static bool set_clients(struct cr_tls_context *context, const struct cr_tlsreload_options *options,
                        const struct cr_buf *text, struct cr_error *err)
{
    if (options->clients == CR_TLSRELOAD_CLIENTS_NONE)
        return true;
    AUTO_STACK STACK_OF(X509) *cas = bounded_chain(options->client_ca, text, CAS_MOST, err);
    if (!cas)
        return false;
    remember_cas(context, cas);
    if (!add_cas(context->ssl, cas))
        return cr_tls_fail(err, options->client_ca);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context->ssl), X509_V_FLAG_PARTIAL_CHAIN);
    int must = options->clients == CR_TLSRELOAD_CLIENTS_REQUIRE ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER | must, NULL);
    return true;
}

/* The chain is what the file has, never what OpenSSL finds among the client CAs. Sessions are in tickets alone: a cache
 * would be another one with each context. */
static bool set_defaults(SSL_CTX *ssl)
{
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_NO_AUTO_CHAIN | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1;
}

struct cr_tls_context *cr_tls_context_new(const struct cr_tlsreload_options *options, const struct cr_tls_texts *texts,
                                          struct cr_error *err)
{
    CR_CLEANUP(cr_tls_context) struct cr_tls_context *context = cr_new(struct cr_tls_context);
    ERR_clear_error();
    memcpy(context->digest, texts->digest, sizeof context->digest);
    context->ssl = SSL_CTX_new(TLS_server_method());
    if (!context->ssl || !set_defaults(context->ssl))
        cr_tls_fail(err, "no TLS context can be made");
    else if (set_certificates(context, options, texts, err) && set_clients(context, options, &texts->client_ca, err))
        return cr_steal(&context);
    ERR_clear_error();
    return NULL;
}

/* --- sessions --- */

bool cr_tls_sessions_renew(struct cr_tls_sessions *sessions, struct cr_error *err)
{
    if (RAND_bytes(sessions->id, sizeof sessions->id) == 1 &&
        RAND_priv_bytes(sessions->ticket_keys, sizeof sessions->ticket_keys) == 1)
        return true;
    return cr_error_set(err, CR_ERR_TRANSIENT, "no random bytes for keys of session tickets");
}

bool cr_tls_context_set_sessions(struct cr_tls_context *context, const struct cr_tls_sessions *sessions,
                                 struct cr_error *err)
{
    unsigned char keys[sizeof sessions->ticket_keys]; /* OpenSSL's macro takes no const */
    memcpy(keys, sessions->ticket_keys, sizeof keys);
    bool ok = SSL_CTX_set_session_id_context(context->ssl, sessions->id, sizeof sessions->id) == 1 &&
              SSL_CTX_set_tlsext_ticket_keys(context->ssl, keys, sizeof keys) == 1;
    OPENSSL_cleanse(keys, sizeof keys);
    return ok || cr_tls_fail(err, "keys of session tickets");
}

static bool has_ca(const struct cr_tls_context *context, const unsigned char ca[CR_TLS_DIGEST])
{
    return context->cas_len &&
           bsearch(ca, context->cas, context->cas_len, sizeof *context->cas, compare_digests) != NULL;
}

bool cr_tls_context_keeps_cas(const struct cr_tls_context *a, const struct cr_tls_context *b)
{
    for (size_t i = 0; i < a->cas_len; i++)
        if (!has_ca(b, a->cas[i]))
            return false;
    return true;
}
