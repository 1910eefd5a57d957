#include "tlsreload/tlsreload_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tlsreload/folder_watch_internal.h"

/* Issuers and servers have clocks of their own; as pki/material.h allows for. */
enum { SKEW_MS = 5 * 60 * 1000 };

/* --- what it is made of --- */

static bool check_options(const struct cr_tlsreload_options *o, struct cr_error *err)
{
    if (!o->certificate || !o->private_key)
        return cr_error_set(err, CR_ERR_INVALID, "a certificate and a private key are needed");
    if (o->clients != CR_TLSRELOAD_CLIENTS_NONE && !o->client_ca)
        return cr_error_set(err, CR_ERR_INVALID,
                            "client certificates are asked for, and there are no client CAs to "
                            "verify them by");
    if (o->clients == CR_TLSRELOAD_CLIENTS_NONE && o->client_ca)
        return cr_error_set(err, CR_ERR_INVALID, "client CAs are given, and no client is asked for a certificate");
    return true;
}

static bool take_options(struct cr_tlsreload *tls, const struct cr_tlsreload_options *options, struct cr_error *err)
{
    const char *const given[] = {options->certificate, options->private_key, options->client_ca};
    for (size_t i = 0; i < 3; i++)
        if (given[i] && !(tls->paths[i] = cr_way_absolute(given[i], err)))
            return false;
    tls->options = *options;
    tls->options.certificate = tls->paths[0];
    tls->options.private_key = tls->paths[1];
    tls->options.client_ca = tls->paths[2];
    return true;
}

/* --- a context of the files --- */

static struct cr_tls_context *make_context(struct cr_tlsreload *tls, const struct cr_tls_texts *texts,
                                           struct cr_tls_sessions *sessions, struct cr_error *err)
{
    CR_CLEANUP(cr_tls_context) struct cr_tls_context *fresh = cr_tls_context_new(&tls->options, texts, err);
    if (!fresh)
        return NULL;
    /* current is written by this thread alone. */
    if ((!tls->current || !cr_tls_context_keeps_cas(tls->current, fresh)) && !cr_tls_sessions_renew(sessions, err))
        return NULL;
    if (!cr_tls_context_set_sessions(fresh, sessions, err))
        return NULL;
    if (tls->options.configure)
        tls->options.configure(tls->options.arg, fresh->ssl);
    return cr_steal(&fresh);
}

/* What is valid is not given up for what is not. A server that begins with what has expired serves that: clients then
 * say why, and the next file heals it. */
static bool is_worse(const struct cr_tlsreload *tls, const struct cr_tls_context *fresh, int64_t now_ms,
                     struct cr_tls_refusal *refusal)
{
    char at[CR_TIME_TEXT];
    if (tls->current->not_after_ms < now_ms)
        return false;
    if (fresh->not_after_ms < now_ms) {
        cr_time_format(fresh->not_after_ms, at);
        cr_error_set(&refusal->error, CR_ERR_INVALID, "%s expired at %s", tls->options.certificate, at);
        return true;
    }
    if (fresh->not_before_ms - SKEW_MS <= now_ms)
        return false;
    cr_time_format(fresh->not_before_ms, at);
    refusal->in_time = true;
    cr_error_set(&refusal->error, CR_ERR_INVALID, "%s is not valid before %s", tls->options.certificate, at);
    return true;
}

/* --- the swap --- */

static void describe(struct cr_tlsreload_state *state, const struct cr_tls_context *context)
{
    memcpy(state->leaf, context->leaf, sizeof state->leaf);
    state->not_after_ms = context->not_after_ms;
    state->reloaded_ms = cr_clock_wall_ms();
    state->failing = false;
    state->problem[0] = '\0';
}

/* Returns what was served before, for the caller to free. */
static struct cr_tls_context *swap(struct cr_tlsreload *tls, struct cr_tls_context *fresh)
{
    pthread_mutex_lock(&tls->lock);
    struct cr_tls_context *before = tls->current;
    tls->current = fresh;
    describe(&tls->state, fresh);
    if (before)
        tls->state.reloads++;
    pthread_mutex_unlock(&tls->lock);
    return before;
}

static void notify(const struct cr_tlsreload *tls, const struct cr_tlsreload_event *event)
{
    if (tls->options.on_event)
        tls->options.on_event(tls->options.arg, event);
}

static void notify_reloaded(const struct cr_tlsreload *tls, const struct cr_tls_context *before)
{
    const struct cr_tls_context *now = tls->current;
    const struct cr_tlsreload_event event = {
        .reloaded = true,
        .at_ms = cr_clock_wall_ms(),
        .certificate = tls->options.certificate,
        .leaf = now->leaf,
        .before = before->leaf,
        .trust_changed = !cr_tls_context_keeps_cas(before, now) || !cr_tls_context_keeps_cas(now, before),
        .problem = "",
    };
    notify(tls, &event);
}

void cr_tlsreload_report(struct cr_tlsreload *tls, const struct cr_tls_refusal *refusal)
{
    pthread_mutex_lock(&tls->lock);
    tls->state.failures++;
    tls->state.failing = true;
    (void)snprintf(tls->state.problem, sizeof tls->state.problem, "%s", refusal->error.text);
    pthread_mutex_unlock(&tls->lock);
    const struct cr_tlsreload_event event = {
        .at_ms = cr_clock_wall_ms(),
        .certificate = tls->options.certificate,
        .leaf = tls->current->leaf,
        .before = tls->current->leaf,
        .problem = refusal->error.text,
    };
    notify(tls, &event);
}

/* What was refused and is served again is reloaded too: the listener that was notified of the refusal is notified of
 * its end. */
static bool is_served(const struct cr_tlsreload *tls, const struct cr_tls_texts *texts)
{
    return !tls->state.failing && memcmp(texts->digest, tls->current->digest, sizeof texts->digest) == 0;
}

static enum cr_tls_look take(struct cr_tlsreload *tls, const struct cr_tls_texts *texts, struct cr_tls_sessions *next,
                             struct cr_tls_refusal *refusal)
{
    CR_CLEANUP(cr_tls_context) struct cr_tls_context *fresh = make_context(tls, texts, next, &refusal->error);
    if (!fresh || is_worse(tls, fresh, cr_clock_wall_ms(), refusal))
        return CR_TLS_REFUSED;
    tls->sessions = *next;
    CR_CLEANUP(cr_tls_context) struct cr_tls_context *before = swap(tls, cr_steal(&fresh));
    notify_reloaded(tls, before);
    return CR_TLS_RELOADED;
}

enum cr_tls_look cr_tlsreload_look(struct cr_tlsreload *tls, struct cr_tls_refusal *refusal)
{
    CR_CLEANUP(cr_tls_texts) struct cr_tls_texts texts;
    *refusal = (struct cr_tls_refusal){0};
    if (!cr_tls_texts_read(&tls->options, &texts, &refusal->error))
        return CR_TLS_REFUSED;
    memcpy(refusal->digest, texts.digest, sizeof refusal->digest);
    if (is_served(tls, &texts))
        return CR_TLS_SAME;
    struct cr_tls_sessions next = tls->sessions;
    enum cr_tls_look look = take(tls, &texts, &next, refusal);
    OPENSSL_cleanse(&next, sizeof next);
    return look;
}

/* --- for all callers --- */

static struct cr_tlsreload *new_empty(void)
{
    struct cr_tlsreload *tls = cr_new(struct cr_tlsreload);
    pthread_mutex_init(&tls->lock, NULL);
    pthread_mutex_init(&tls->watcher.starting, NULL);
    tls->watcher.stop_fd = -1;
    return tls;
}

static bool serve_first(struct cr_tlsreload *tls, const struct cr_tls_texts *texts, struct cr_error *err)
{
    struct cr_tls_context *first = make_context(tls, texts, &tls->sessions, err);
    if (first)
        (void)swap(tls, first); /* there was none before */
    return first != NULL;
}

static bool read_first(struct cr_tlsreload *tls, struct cr_error *err)
{
    CR_CLEANUP(cr_tls_texts) struct cr_tls_texts texts;
    return cr_tls_texts_read(&tls->options, &texts, err) && serve_first(tls, &texts, err);
}

struct cr_tlsreload *cr_tlsreload_new(const struct cr_tlsreload_options *options, struct cr_error *err)
{
    if (!check_options(options, err))
        return NULL;
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = new_empty();
    return take_options(tls, options, err) && read_first(tls, err) ? cr_steal(&tls) : NULL;
}

struct cr_tlsreload *cr_tlsreload_new_fixed(const char *name, const char *certificate, const char *private_key,
                                            struct cr_error *err)
{
    CR_CLEANUP(cr_tlsreload) struct cr_tlsreload *tls = new_empty();
    tls->fixed = true;
    tls->paths[0] = cr_strdup(name);
    tls->paths[1] = cr_asprintf("the key of %s", name);
    tls->options = (struct cr_tlsreload_options){.certificate = tls->paths[0], .private_key = tls->paths[1]};
    CR_CLEANUP(cr_tls_texts) struct cr_tls_texts texts = {.private_key.secret = true};
    cr_buf_puts(&texts.certificate, certificate);
    cr_buf_puts(&texts.private_key, private_key);
    return serve_first(tls, &texts, err) ? cr_steal(&tls) : NULL;
}

void cr_tlsreload_free(struct cr_tlsreload *tls)
{
    if (!tls)
        return;
    cr_tls_watcher_stop(tls);
    cr_tls_context_free(tls->current);
    OPENSSL_cleanse(&tls->sessions, sizeof tls->sessions);
    for (size_t i = 0; i < 3; i++)
        free(tls->paths[i]);
    pthread_mutex_destroy(&tls->watcher.starting);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

bool cr_tlsreload_start(struct cr_tlsreload *tls, struct cr_error *err)
{
    return tls->fixed || cr_tls_watcher_start(tls, err);
}

struct ssl_ctx_st *cr_tlsreload_context(struct cr_tlsreload *tls)
{
    pthread_mutex_lock(&tls->lock);
    SSL_CTX *ssl = tls->current->ssl;
    SSL_CTX_up_ref(ssl);
    pthread_mutex_unlock(&tls->lock);
    return ssl;
}

struct ssl_st *cr_tlsreload_accept(struct cr_tlsreload *tls)
{
    SSL_CTX *context = cr_tlsreload_context(tls);
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

void cr_tlsreload_state(struct cr_tlsreload *tls, struct cr_tlsreload_state *out)
{
    pthread_mutex_lock(&tls->lock);
    *out = tls->state;
    pthread_mutex_unlock(&tls->lock);
}
