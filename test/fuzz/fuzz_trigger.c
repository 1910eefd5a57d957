/* What answers a trigger at its socket may be anything: HAProxy, Redis, or neither. The pull succeeds or fails with
 * words on one line, and never with the private key. The first byte says whose trigger it is; the answers are divided
 * by NUL bytes. */
#include "split.h"

#include "fuzz.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/strings.h"
#include "sidecar/trigger.h"

#define PRIVATE_KEY "THE-KEY-OF-THE-LEAF"

static char address[64];
static int listener = -1;

static void remove_socket(void)
{
    (void)unlink(address);
}

static void listen_once(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(address, sizeof address, "/tmp/certroll-fuzz-%d.sock", (int)getpid());
    memcpy(at.sun_path, address, strlen(address) + 1);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(listener >= 0 && bind(listener, (const struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 8) == 0);
    atexit(remove_socket);
}

struct server {
    struct split answers;
    bool reconnect_each; /* a connection has one answer, and ends */
    int over;            /* atomic */
};

/* An answer for each word of the client's, and one more when it waits, until there is none. */
static void answer_all(struct server *server, int fd)
{
    static const struct timeval moment = {.tv_usec = 5000};
    char received[4096];
    bool open = true;
    require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment) == 0);
    for (ssize_t len = 0; (len = read(fd, received, sizeof received)) > 0 || (len < 0 && errno == EAGAIN);) {
        const struct cr_pem_input answer = open ? split_next(&server->answers) : (struct cr_pem_input){0};
        if (answer.len)
            (void)send(fd, answer.data, answer.len, MSG_NOSIGNAL);
        open = open && answer.len && !server->reconnect_each;
        if (!open)
            (void)shutdown(fd, SHUT_WR);
    }
}

static void *serve(void *arg)
{
    struct server *server = arg;
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        require(fd >= 0);
        bool over = __atomic_load_n(&server->over, __ATOMIC_ACQUIRE);
        if (!over)
            answer_all(server, fd);
        close(fd);
        if (over)
            return NULL;
    }
}

static void end_server(struct server *server, pthread_t thread)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, address, strlen(address) + 1);
    __atomic_store_n(&server->over, 1, __ATOMIC_RELEASE);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    require(pthread_join(thread, NULL) == 0);
    close(fd);
}

static bool pull(const struct cr_trigger_spec *spec, struct cr_error *err)
{
    static char name[] = "web";
    const struct cr_sidecar_material material = {.name = name, .certificate = name, .private_key = name};
    CR_CLEANUP(cr_reading) struct cr_reading reading = {.private_key = {.secret = true}};
    cr_buf_puts(&reading.certificate, "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n");
    cr_buf_puts(&reading.private_key, "-----BEGIN PRIVATE KEY-----\n" PRIVATE_KEY "\n-----END PRIVATE KEY-----\n");
    cr_buf_puts(&reading.trust, "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n");
    return cr_trigger_pull(spec, &material, &reading, 0, -1, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (listener < 0)
        listen_once();
    static char certificate[] = "/c.pem";
    static char bundle[] = "/ca.pem";
    char *certificates[] = {certificate};
    char *bundles[] = {bundle};
    struct cr_trigger_spec spec = {.type = data[0] % 2 ? CR_TRIGGER_REDIS : CR_TRIGGER_HAPROXY, .timeout_ms = 10000};
    spec.redis.address = address;
    spec.haproxy.address = address;
    spec.haproxy.certificates = (struct cr_strvec){.items = certificates, .len = 1};
    if (data[0] & 2)
        spec.haproxy.ca_files = (struct cr_strvec){.items = bundles, .len = 1};

    struct server server = {.answers = split_of(data + 1, size - 1), .reconnect_each = spec.type == CR_TRIGGER_HAPROXY};
    pthread_t thread;
    struct cr_error err = {0};
    require(pthread_create(&thread, NULL, serve, &server) == 0);
    bool ok = pull(&spec, &err);
    end_server(&server, thread);
    require(ok == (err.kind == CR_ERR_NONE));
    require(ok || (err.text[0] && !strpbrk(err.text, "\r\n") && !strstr(err.text, PRIVATE_KEY)));
    return 0;
}
