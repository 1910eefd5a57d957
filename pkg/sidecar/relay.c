#include "sidecar/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "net/page_fetch.h"
#include "sidecar/address.h"

enum {
    FETCH_MS = 5000,
    WAITING_MAX = 32, /* more would be a client that floods us, and through us Envoy */
    OK = 200,
    BAD_GATEWAY = 502,
    BUSY = 503,
};

struct cr_relay {
    struct cr_loop *loop;
    char *unix_socket; /* owned; NULL: by address and port */
    char address[INET6_ADDRSTRLEN];
    int port;

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool wanted, stopping; /* under the lock */
    bool posted;           /* under the lock: answer_all will be called, by the loop or at its end */
    struct cr_buf fetched; /* under the lock: by the thread, until the loop takes it */
    char problem[CR_PAGE_WORDS];

    /* The loop's alone. */
    struct cr_http_pending *waiting[WAITING_MAX];
    size_t waiting_len;
    struct cr_buf page; /* that is being answered */
};

/* --- asking, in a thread, since it blocks --- */

static void on_page(void *arg, size_t index, const struct cr_page *page)
{
    struct cr_relay *relay = arg;
    (void)index;
    pthread_mutex_lock(&relay->lock);
    cr_buf_reset(&relay->fetched);
    cr_buf_puts(&relay->fetched, cr_buf_text(&page->body));
    memcpy(relay->problem, page->problem, sizeof relay->problem);
    pthread_mutex_unlock(&relay->lock);
}

static void answer_all(void *arg);

static void *run(void *arg)
{
    struct cr_relay *relay = arg;
    const struct cr_page_target target = {
        .address = relay->address, .port = relay->port, .path = CR_RELAY_PATH, .unix_socket = relay->unix_socket};
    for (;;) {
        pthread_mutex_lock(&relay->lock);
        while (!relay->wanted && !relay->stopping)
            pthread_cond_wait(&relay->wake, &relay->lock);
        bool stopping = relay->stopping;
        relay->wanted = false;
        pthread_mutex_unlock(&relay->lock);
        if (stopping)
            return NULL;
        cr_page_fetch(&target, 1, FETCH_MS, on_page, relay);
        pthread_mutex_lock(&relay->lock);
        relay->posted = !relay->stopping;
        if (relay->posted)
            cr_loop_post(relay->loop, answer_all, relay);
        pthread_mutex_unlock(&relay->lock);
    }
}

/* --- answering, in the loop --- */

static void destroy(struct cr_relay *relay);

static void answer_all(void *arg)
{
    struct cr_relay *relay = arg;
    char problem[CR_PAGE_WORDS + 32] = "";
    pthread_mutex_lock(&relay->lock);
    bool abandoned = relay->stopping; /* by cr_relay_free, since this call was still to come */
    relay->posted = false;
    cr_buf_dispose(&relay->page);
    relay->page = relay->fetched;
    relay->fetched = CR_BUF_INIT(0);
    if (relay->problem[0])
        snprintf(problem, sizeof problem, "Envoy's admin interface: %s", relay->problem);
    pthread_mutex_unlock(&relay->lock);
    if (abandoned) {
        destroy(relay);
        return;
    }
    size_t len = relay->waiting_len;
    relay->waiting_len = 0;
    for (size_t i = 0; i < len; i++) {
        if (problem[0])
            cr_http_pending_refuse(relay->waiting[i], BAD_GATEWAY, problem);
        else
            cr_http_pending_allow(relay->waiting[i]);
    }
    cr_buf_dispose(&relay->page);
    relay->page = CR_BUF_INIT(0);
}

static void guard(void *arg, const char *authorization, struct cr_http_pending *pending)
{
    struct cr_relay *relay = arg;
    (void)authorization; /* never passed on */
    if (relay->waiting_len == WAITING_MAX) {
        cr_http_pending_refuse(pending, BUSY, "too many ask at once");
        return;
    }
    relay->waiting[relay->waiting_len++] = pending;
    if (relay->waiting_len > 1)
        return; /* is being asked */
    pthread_mutex_lock(&relay->lock);
    relay->wanted = true;
    pthread_cond_signal(&relay->wake);
    pthread_mutex_unlock(&relay->lock);
}

static int handle(void *arg, struct cr_buf *body, const char **content_type)
{
    const struct cr_relay *relay = arg;
    *content_type = "application/json";
    cr_buf_puts(body, cr_buf_text(&relay->page));
    return OK;
}

/* --- outside --- */

static bool take_address(struct cr_relay *relay, const char *text, struct cr_error *err)
{
    struct cr_address address;
    if (!cr_sidecar_address_parse(text, &address, err))
        return false;
    const struct sockaddr_in *ip4 = (const struct sockaddr_in *)&address.sockaddr;
    const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)&address.sockaddr;
    if (address.sockaddr.ss_family == AF_UNIX) {
        relay->unix_socket = cr_strdup(text);
    } else if (address.sockaddr.ss_family == AF_INET) {
        inet_ntop(AF_INET, &ip4->sin_addr, relay->address, sizeof relay->address);
        relay->port = ntohs(ip4->sin_port);
    } else {
        inet_ntop(AF_INET6, &ip6->sin6_addr, relay->address, sizeof relay->address);
        relay->port = ntohs(ip6->sin6_port);
    }
    return true;
}

static void destroy(struct cr_relay *relay)
{
    pthread_mutex_destroy(&relay->lock);
    pthread_cond_destroy(&relay->wake);
    cr_buf_dispose(&relay->fetched);
    cr_buf_dispose(&relay->page);
    free(relay->unix_socket);
    free(relay);
}

struct cr_relay *cr_relay_start(struct cr_http_server *server, struct cr_loop *loop, const char *address,
                                struct cr_error *err)
{
    struct cr_relay *relay = cr_new(struct cr_relay);
    relay->loop = loop;
    pthread_mutex_init(&relay->lock, NULL);
    pthread_cond_init(&relay->wake, NULL);
    if (take_address(relay, address, err)) {
        int error = pthread_create(&relay->thread, NULL, run, relay);
        if (error == 0) {
            cr_http_server_handle_guarded(server, CR_RELAY_PATH, handle, relay, guard, relay);
            return relay;
        }
        cr_error_set(err, CR_ERR_TRANSIENT, "cannot start a thread: %s", strerror(error));
    }
    destroy(relay);
    return NULL;
}

void cr_relay_free(struct cr_relay *relay)
{
    if (!relay)
        return;
    pthread_mutex_lock(&relay->lock);
    relay->stopping = true;
    pthread_cond_signal(&relay->wake);
    pthread_mutex_unlock(&relay->lock);
    pthread_join(relay->thread, NULL);
    for (size_t i = 0; i < relay->waiting_len; i++)
        cr_http_pending_refuse(relay->waiting[i], BUSY, "it ends");
    if (!relay->posted)
        destroy(relay);
}
