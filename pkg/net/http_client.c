/* The client: queues streams, finds them a connection pool with room, and ends them all. */
#include "net/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "net/http_internal.h"
#include "net/http_memory.h"

struct cr_http_client *cr_http_client_new(struct cr_loop *loop, const struct cr_http_tls *tls, const char *user_agent)
{
    cr_http_global_init();
    struct cr_http_client *client = cr_new(struct cr_http_client);
    client->loop = loop;
    client->user_agent = cr_strdup(user_agent ? user_agent : "certroll");
    client->refs = 1;
    client->identity = cr_http_identity_new(tls);
    pthread_mutex_init(&client->lock, NULL);
    TAILQ_INIT(&client->waiting);
    TAILQ_INIT(&client->pools);
    TAILQ_INIT(&client->running);
    TAILQ_INIT(&client->ready);
    return client;
}

void cr_http_client_ref(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->refs++;
    pthread_mutex_unlock(&client->lock);
}

void cr_http_client_unref(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    bool last = --client->refs == 0;
    pthread_mutex_unlock(&client->lock);
    if (!last)
        return;
    cr_http_identity_unref(client->identity);
    pthread_mutex_destroy(&client->lock);
    free(client->user_agent);
    free(client);
}

bool cr_http_client_cancelled(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    bool cancelled = client->cancelled;
    pthread_mutex_unlock(&client->lock);
    return cancelled;
}

static struct cr_http_stream *next_waiting(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct cr_http_stream *stream = TAILQ_FIRST(&client->waiting);
    if (stream)
        TAILQ_REMOVE(&client->waiting, stream, link);
    pthread_mutex_unlock(&client->lock);
    return stream;
}

/* Posted. */
static void start_waiting(void *arg)
{
    struct cr_http_client *client = arg;
    pthread_mutex_lock(&client->lock);
    client->start_posted = false;
    pthread_mutex_unlock(&client->lock);
    for (struct cr_http_stream *stream; (stream = next_waiting(client));)
        cr_http_stream_begin(stream);
    cr_http_client_unref(client);
}

void cr_http_stream_queue(struct cr_http_stream *stream)
{
    struct cr_http_client *client = stream->client;
    pthread_mutex_lock(&client->lock);
    TAILQ_INSERT_TAIL(&client->waiting, stream, link);
    bool post = !client->start_posted;
    if (post) {
        client->start_posted = true;
        client->refs++; /* of the post */
    }
    struct cr_loop *loop = client->loop;
    pthread_mutex_unlock(&client->lock);
    /* The stream may already have ended here; the post's reference keeps the client. */
    if (post)
        cr_loop_post(loop, start_waiting, client);
}

static void retire_pools(struct cr_http_client *client)
{
    while (!TAILQ_EMPTY(&client->pools))
        cr_http_pool_retire(TAILQ_FIRST(&client->pools));
}

static struct cr_http_pool *pool_with_room(const struct cr_http_client *client)
{
    struct cr_http_pool *pool = TAILQ_FIRST(&client->pools);
    while (pool && cr_http_pool_is_full(pool))
        pool = cr_http_pool_next(pool);
    return pool;
}

struct cr_http_pool *cr_http_client_pool(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct cr_http_identity *newest = cr_http_identity_ref(client->identity);
    pthread_mutex_unlock(&client->lock);
    const struct cr_http_pool *any = TAILQ_FIRST(&client->pools);
    if (any && cr_http_pool_identity(any) != newest)
        retire_pools(client);
    struct cr_http_pool *pool = pool_with_room(client);
    if (!pool) {
        pool = cr_http_pool_new(client, client->loop, newest);
        cr_http_pool_list_add(&client->pools, pool);
    }
    cr_http_identity_unref(newest);
    return pool;
}

void cr_http_client_set_tls(struct cr_http_client *client, const struct cr_http_tls *tls)
{
    struct cr_http_identity *unused = cr_http_identity_new(tls);
    pthread_mutex_lock(&client->lock);
    (void)cr_http_identity_renew(&client->identity, &unused);
    pthread_mutex_unlock(&client->lock);
    cr_http_identity_unref(unused);
}

/* Loop thread, or after the loop has ended. Handlers may start streams meanwhile: those end, too. */
static void end_all(struct cr_http_client *client)
{
    for (;;) {
        struct cr_http_stream *stream = next_waiting(client);
        if (stream)
            cr_http_stream_begin(stream); /* which, on a cancelled client, ends it */
        else if ((stream = TAILQ_FIRST(&client->running)))
            cr_http_stream_abort(stream, "shutting down");
        else
            return;
    }
}

/* Posted. */
static void finish_cancel(void *arg)
{
    end_all(arg);
    cr_http_client_unref(arg);
}

static void mark_cancelled(struct cr_http_client *client)
{
    pthread_mutex_lock(&client->lock);
    client->cancelled = true;
    pthread_mutex_unlock(&client->lock);
}

void cr_http_client_cancel(struct cr_http_client *client)
{
    if (!client)
        return;
    mark_cancelled(client);
    cr_http_client_ref(client);
    if (cr_loop_in_thread(client->loop))
        finish_cancel(client);
    else
        cr_loop_post(client->loop, finish_cancel, client);
}

void cr_http_client_free(struct cr_http_client *client)
{
    if (!client)
        return;
    mark_cancelled(client);
    end_all(client);
    retire_pools(client);
    cr_http_client_unref(client);
}

void cr_http_response_dispose(struct cr_http_response *response)
{
    cr_buf_dispose(&response->body);
    *response = (struct cr_http_response){0};
}

char *cr_http_escape(const char *value)
{
    if (cr_streq(value, "."))
        return cr_strdup("%2E");
    if (cr_streq(value, ".."))
        return cr_strdup("%2E%2E");
    static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    if (!value[strspn(value, unreserved)]) /* nearly always; libcurl 7.88 puts it together character by character */
        return cr_strdup(value);
    cr_http_global_init();
    char *escaped = curl_easy_escape(NULL, value, 0);
    char *copy = cr_strdup(escaped);
    curl_free(escaped);
    return copy;
}
