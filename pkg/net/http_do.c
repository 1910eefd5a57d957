#include "net/http.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "net/http_internal.h"

/* What the waiting thread and the stream share. On shutdown the thread leaves before the stream has ended, so each
 * holds it. */
struct cr_http_call {
    struct cr_http_client *client; /* counted by the waiting thread and by the stream */
    /* Guarded by the client's lock. */
    TAILQ_ENTRY(cr_http_call) link; /* while it is waited for */
    pthread_cond_t changed;         /* of each call its own: one that ends wakes no other's thread */
    unsigned holders;
    bool done;
    /* Of the stream until done, then of the waiting thread. */
    struct cr_http_response response;
    struct cr_error err;
};

void cr_http_response_dispose(struct cr_http_response *response)
{
    cr_buf_dispose(&response->body);
    *response = (struct cr_http_response){0};
}

void cr_http_call_wake_all(struct cr_http_client *client)
{
    struct cr_http_call *call = NULL;
    TAILQ_FOREACH(call, &client->calls, link)
    pthread_cond_signal(&call->changed);
}

static bool on_status(void *arg, int status, int retry_after_ms)
{
    struct cr_http_call *call = arg;
    call->response.status = status;
    call->response.retry_after_ms = retry_after_ms;
    return true;
}

static bool on_data(void *arg, const char *data, size_t len)
{
    struct cr_http_call *call = arg;
    return cr_buf_append(&call->response.body, data, len);
}

/* With the lock held; gives it back. */
static void let_go(struct cr_http_call *call)
{
    bool last = --call->holders == 0;
    pthread_mutex_unlock(&call->client->lock);
    if (!last)
        return;
    cr_http_response_dispose(&call->response);
    pthread_cond_destroy(&call->changed);
    free(call);
}

static void on_end(void *arg, const struct cr_error *err)
{
    struct cr_http_call *call = arg;
    if (err)
        call->err = *err;
    pthread_mutex_lock(&call->client->lock);
    call->done = true;
    pthread_cond_signal(&call->changed);
    let_go(call);
}

static struct cr_http_call *start(struct cr_http_client *client, const struct cr_http_request *request)
{
    struct cr_http_call *call = cr_new(struct cr_http_call);
    call->client = client;
    pthread_cond_init(&call->changed, NULL);
    call->holders = 2;
    call->response.body.secret = request->secret;
    struct cr_http_request copy = *request;
    if (!copy.max_body)
        copy.max_body = CR_HTTP_MAX_BODY;
    const struct cr_http_stream_handler handler = {on_status, on_data, on_end, call};
    cr_http_stream_queue(cr_http_stream_new(client, &copy, &handler, 0, true));
    return call;
}

static bool wait_for(struct cr_http_call *call, struct cr_http_response *response, struct cr_error *err)
{
    struct cr_http_client *client = call->client;
    pthread_mutex_lock(&client->lock);
    TAILQ_INSERT_TAIL(&client->calls, call, link);
    while (!call->done && !client->cancelled)
        pthread_cond_wait(&call->changed, &client->lock);
    TAILQ_REMOVE(&client->calls, call, link);
    bool ok = false;
    if (!call->done)
        cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
    else if (call->err.kind == CR_ERR_NONE)
        ok = true;
    else if (err)
        *err = call->err;
    if (ok) {
        *response = call->response;
        call->response = (struct cr_http_response){0};
    }
    let_go(call);
    return ok;
}

bool cr_http_do(struct cr_http_client *client, const struct cr_http_request *request, struct cr_http_response *response,
                struct cr_error *err)
{
    *response = (struct cr_http_response){0};
    if (cr_loop_in_thread(client->loop))
        return cr_error_set(err, CR_ERR_INTERNAL, "a blocking HTTP request in the loop's thread would never end");
    cr_http_client_ref(client);
    bool ok = wait_for(start(client, request), response, err);
    cr_http_client_unref(client);
    return ok;
}
