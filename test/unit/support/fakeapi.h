/* A server that answers by a script, one connection after the other: for faults that a real API server does not give on
 * demand (answers cut in the middle, lists that are refused). HTTP/1.1, loopback, a port of its own. */
#ifndef TEST_SUPPORT_FAKEAPI_H
#define TEST_SUPPORT_FAKEAPI_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "kube/client.h"
#include "kube/exec_plugin.h"

struct fake_answer {
    const char *expect; /* must be in the request line; NULL: anything */
    const char *refuse; /* must not be in it; NULL: nothing */
    const char *has;    /* must be in the headers or the body; NULL: anything */
    int status;         /* 0: 200 */
    const char *header; /* "Retry-After: 1\r\n" or NULL */
    const char *body;
    size_t fill; /* so many 'x' before the body */
    bool cut;    /* the connection breaks before the body has ended */
    bool hold;   /* the connection stays open and silent until the server ends */
};

enum { FAKE_REQUESTS_MAX = 64 };

struct fake_api {
    int listener;
    int quit; /* eventfd */
    int port;
    const struct fake_answer *script;
    size_t script_len;
    pthread_t thread;
    atomic_size_t answered;
    char *requests[FAKE_REQUESTS_MAX]; /* as they came, head and body; read by fake_api_request */
    char problem[512];                 /* read after fake_api_stop */
};

static void fake_send(int fd, const char *data, size_t len)
{
    for (ssize_t n; len && (n = send(fd, data, len, MSG_NOSIGNAL)) > 0; data += n, len -= (size_t)n)
        ;
}

/* All of the request: what is left unread when a connection is closed resets it, answer included. */
static void fake_read_request(int fd, char *text, size_t size)
{
    size_t len = 0;
    size_t want = size - 1;
    text[0] = '\0';
    while (len < want) {
        ssize_t n = recv(fd, text + len, size - 1 - len, 0);
        if (n <= 0)
            return;
        len += (size_t)n;
        text[len] = '\0';
        const char *body = strstr(text, "\r\n\r\n");
        const char *length = strstr(text, "\r\nContent-Length: ");
        if (body)
            want = (size_t)(body + 4 - text) + (length && length < body ? strtoul(length + 18, NULL, 10) : 0);
    }
}

static void fake_check(struct fake_api *api, const struct fake_answer *answer, size_t index, char *head)
{
    bool has = !answer->has || strstr(head, answer->has);
    head[strcspn(head, "\r\n")] = '\0';
    bool wrong =
        !has || (answer->expect && !strstr(head, answer->expect)) || (answer->refuse && strstr(head, answer->refuse));
    if (wrong && !api->problem[0])
        snprintf(api->problem, sizeof api->problem, "request %zu is '%.400s'", index, head);
}

static void fake_reply(int fd, const struct fake_answer *answer)
{
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    size_t body = answer->fill + strlen(cr_or_empty(answer->body));
    cr_buf_printf(&out, "HTTP/1.1 %d Any\r\nContent-Type: application/json\r\nConnection: close\r\n%s",
                  answer->status ? answer->status : 200, cr_or_empty(answer->header));
    /* A length that is not kept is how the client can tell a cut. */
    if (answer->cut || answer->hold)
        cr_buf_printf(&out, "Content-Length: %zu\r\n", body + 100);
    cr_buf_puts(&out, "\r\n");
    fake_send(fd, out.data, out.len);
    cr_autofree char *fill = cr_malloc(answer->fill + 1);
    memset(fill, 'x', answer->fill);
    fake_send(fd, fill, answer->fill);
    fake_send(fd, cr_or_empty(answer->body), strlen(cr_or_empty(answer->body)));
}

static bool fake_wait(const struct fake_api *api, int fd)
{
    struct pollfd fds[] = {{.fd = api->quit, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (poll(fds, fd < 0 ? 1 : 2, -1) < 0)
        ;
    return !(fds[0].revents & POLLIN);
}

static void *fake_serve(void *arg)
{
    struct fake_api *api = arg;
    cr_autofree char *head = cr_malloc(65536);
    for (size_t i = 0; i < api->script_len && fake_wait(api, api->listener); i++) {
        cr_autofd int fd = accept(api->listener, NULL, NULL);
        if (fd < 0)
            break;
        const struct fake_answer *answer = &api->script[i];
        fake_read_request(fd, head, 65536);
        if (i < FAKE_REQUESTS_MAX)
            api->requests[i] = cr_strdup(head);
        fake_check(api, answer, i, head);
        fake_reply(fd, answer);
        atomic_store(&api->answered, i + 1);
        if (answer->hold)
            fake_wait(api, -1);
        else
            shutdown(fd, SHUT_WR);
    }
    return NULL;
}

/* The script must outlive it. Connections beyond the script are refused nothing: they wait. */
static inline bool fake_api_start(struct fake_api *api, const struct fake_answer *script, size_t script_len)
{
    *api = (struct fake_api){.script = script, .script_len = script_len};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    api->listener = socket(AF_INET, SOCK_STREAM, 0);
    api->quit = eventfd(0, 0);
    if (bind(api->listener, (struct sockaddr *)&address, len) != 0 || listen(api->listener, 16) != 0 ||
        getsockname(api->listener, (struct sockaddr *)&address, &len) != 0)
        return false;
    api->port = ntohs(address.sin_port);
    return pthread_create(&api->thread, NULL, fake_serve, api) == 0;
}

static inline void fake_api_stop(struct fake_api *api)
{
    uint64_t one = 1;
    ssize_t ignored = write(api->quit, &one, sizeof one);
    (void)ignored;
    pthread_join(api->thread, NULL);
    close(api->quit);
    close(api->listener);
    for (size_t i = 0; i < FAKE_REQUESTS_MAX; i++)
        free(api->requests[i]);
}

/* The request of that number, once it was answered and before fake_api_stop; "" when there was none. */
static inline const char *fake_api_request(struct fake_api *api, size_t i)
{
    return i < FAKE_REQUESTS_MAX && i < atomic_load(&api->answered) ? api->requests[i] : "";
}

static inline const char *fake_api_body(struct fake_api *api, size_t i)
{
    const char *end = strstr(fake_api_request(api, i), "\r\n\r\n");
    return end ? end + 4 : "";
}

/* A credential plugin that is a shell script; FAKE_CREDENTIAL is what it should print, with the shell's $n in the
 * token.
 */
#define FAKE_CREDENTIAL                                                                                                \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":"                \
    "{\"token\":\"t'$n'\"}}'"
static inline struct cr_exec_plugin *fake_plugin(const char *script)
{
    struct cr_exec_plugin *plugin = cr_new(struct cr_exec_plugin);
    plugin->command = cr_strdup("/bin/sh");
    plugin->api_version = cr_strdup("client.authentication.k8s.io/v1");
    cr_strvec_add(&plugin->args, "-c");
    cr_strvec_add(&plugin->args, script);
    return plugin;
}

/* A client of that port. plugin: the script of its credential plugin, or NULL. */
static inline struct cr_client *fake_client_with(struct cr_loop *loop, int port, const char *plugin)
{
    struct cr_kube_config *config = cr_new(struct cr_kube_config);
    config->exec = plugin ? fake_plugin(plugin) : NULL;
    config->server = cr_asprintf("http://127.0.0.1:%d", port);
    config->ns = cr_strdup("default");
    config->source = cr_strdup("test");
    return cr_client_new(loop, config, "certroll-test");
}

static inline struct cr_client *fake_client(struct cr_loop *loop, int port)
{
    return fake_client_with(loop, port, NULL);
}

#endif
