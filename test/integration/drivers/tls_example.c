/* The example of docs/tlsreload.md, which has it word for word from here on. */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "tlsreload/tlsreload.h"

static void tell(void *arg, const struct cr_tlsreload_event *event)
{
    CR_CLEANUP(cr_buf) struct cr_buf line = CR_BUF_INIT(0);
    (void)arg;
    cr_tlsreload_event_json(event, "example", "1.0", &line);
    fprintf(stderr, "%s\n", cr_buf_text(&line));
}

static void answer(struct cr_tlsreload *tls, int fd)
{
    SSL *ssl = cr_tlsreload_accept(tls); /* with the material of this moment, until the connection's end */
    if (ssl && SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1) {
        SSL_write(ssl, "hello\n", 6);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const struct cr_tlsreload_options options = {.certificate = argv[1], .private_key = argv[2], .on_event = tell};
    struct cr_error err = {0};
    struct cr_tlsreload *tls = cr_tlsreload_new(&options, &err);
    if (!tls || !cr_tlsreload_start(tls, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 128) != 0) {
        perror("listen");
        return 1;
    }
    signal(SIGPIPE, SIG_IGN); /* clients go whenever they like */
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;)
        answer(tls, fd);
    cr_tlsreload_free(tls);
    return 0;
}
