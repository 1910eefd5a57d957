#include "sidecar/relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/testsocket.h"

/* Envoy, which is asked while the loop ends. */
struct scene {
    struct cr_loop *loop;
    bool stop_first; /* before it answers; else behind its answer */
};

static void serve(int fd, unsigned number, void *arg)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    const struct timespec moment = {.tv_nsec = 100 * 1000 * 1000};
    struct scene *scene = arg;
    CR_CLEANUP(cr_buf) struct cr_buf request = CR_BUF_INIT(0);
    (void)number;
    if (!test_socket_read(fd, "\r\n\r\n", &request))
        return;
    if (scene->stop_first) {
        cr_loop_stop(scene->loop);
        nanosleep(&moment, NULL); /* so that it is waited for in cr_relay_free, mostly */
    }
    test_socket_puts(fd, answer);
}

/* A client that has asked for the page; it does not wait for the answer. */
static int ask(int port)
{
    const char request[] = "GET /certs HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    return fd;
}

/* Stops the loop once an answer has come. */
static void *wait_for_answer(void *arg)
{
    const struct scene *scene = ((void **)arg)[0];
    const int *fd = ((void **)arg)[1];
    char byte = 0;
    ssize_t ignored = read(*fd, &byte, 1);
    (void)ignored;
    cr_loop_stop(scene->loop);
    return NULL;
}

static void it_ends_while_it_is_asked(void **state)
{
    (void)state;
    for (int stop_first = 0; stop_first < 2; stop_first++) {
        struct cr_error err = {0};
        pthread_t thread;
        struct scene scene = {.loop = cr_loop_new(), .stop_first = stop_first};
        struct test_socket *envoy = test_socket_new(serve, &scene);
        struct cr_http_server *server = cr_http_server_new(scene.loop);
        struct cr_relay *relay = cr_relay_start(server, scene.loop, test_socket_path(envoy), &err);
        assert_non_null(relay);
        assert_true(cr_http_server_listen(server, "127.0.0.1:0", &err));
        int client = ask(cr_http_server_port(server));
        void *waiting[] = {&scene, &client};
        if (!stop_first)
            assert_int_equal(pthread_create(&thread, NULL, wait_for_answer, waiting), 0);
        cr_loop_run(scene.loop);
        if (!stop_first)
            pthread_join(thread, NULL);
        cr_http_server_free(server);
        cr_relay_free(relay);
        cr_loop_free(scene.loop); /* what was posted is called here at the latest */
        test_socket_free(envoy);
        close(client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_ends_while_it_is_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
