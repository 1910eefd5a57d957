/* What is said to databases, before TLS and to end a connection. The bytes are probe_greeting.c's; here they move. */
#include "net/probe_conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum { REPLIES_MAX = 3 }; /* a log-in that is refused takes two */

static bool is_later(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* --- bytes; all say how many there were, 0: none now, -1: never again --- */

static int tls_result(const struct cr_probe_conn *probe, int n)
{
    if (n > 0)
        return n;
    int why = SSL_get_error(probe->ssl, n);
    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static int put(struct cr_probe_conn *probe, const unsigned char *data, size_t len)
{
    ERR_clear_error();
    if (probe->ssl)
        return tls_result(probe, SSL_write(probe->ssl, data, (int)len));
    ssize_t n = send(probe->wire.fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && !is_later(errno))
        probe->wire.error = errno;
    return n > 0 ? (int)n : n == 0 || is_later(errno) ? 0 : -1;
}

static int get(struct cr_probe_conn *probe, unsigned char *data, size_t len)
{
    ERR_clear_error();
    if (probe->ssl)
        return tls_result(probe, SSL_read(probe->ssl, data, (int)len));
    ssize_t n = recv(probe->wire.fd, data, len, 0);
    if (n == 0)
        probe->wire.closed = true;
    else if (n < 0 && !is_later(errno))
        probe->wire.error = errno;
    return n > 0 ? (int)n : n < 0 && is_later(errno) ? 0 : -1;
}

/* True when all is sent. False with POLLOUT wanted: later; else the connection is broken. */
static bool flush(struct cr_probe_conn *probe)
{
    struct cr_probe_exchange *exchange = probe->exchange;
    probe->wants = POLLOUT;
    while (exchange->out_sent < exchange->out_len) {
        int n = put(probe, exchange->out + exchange->out_sent, exchange->out_len - exchange->out_sent);
        if (n <= 0) {
            probe->wants = n ? 0 : POLLOUT;
            return false;
        }
        exchange->out_sent += (size_t)n;
    }
    probe->wants = POLLIN;
    return true;
}

static void say(struct cr_probe_exchange *exchange, size_t len)
{
    exchange->out_len = len;
    exchange->out_sent = 0;
    exchange->in_len = 0;
}

/* Reads what is missing and no more: what follows may be TLS already. False: it is not all there (yet). */
static bool fill(struct cr_probe_conn *probe, size_t missing, bool *over)
{
    struct cr_probe_exchange *exchange = probe->exchange;
    size_t room = sizeof exchange->in - exchange->in_len;
    int n = missing <= room ? get(probe, exchange->in + exchange->in_len, missing) : -1;
    *over = n < 0;
    if (n > 0)
        exchange->in_len += (size_t)n;
    return n > 0;
}

/* --- protocols --- */

/* What is particular to a protocol. */
struct dialogue {
    /* Judges what has come. May say what is to be said next: with CR_GREETING_MORE, or with CR_GREETING_TLS when
     * nothing comes after that. */
    enum cr_greeting (*step)(struct cr_probe_exchange *exchange, bool over, size_t *missing,
                             char words[CR_GREETING_WORDS]);
    /* The first message that ends the conversation. NULL: it just ends. */
    size_t (*begin_end)(struct cr_probe_exchange *exchange);
    /* What is said to an answer to that; 0: nothing, it is over. *missing > 0: the answer is not whole yet. */
    size_t (*reply)(struct cr_probe_exchange *exchange, size_t *missing);
};

/* It is asked first, and answers. */
static enum cr_greeting step_postgres(struct cr_probe_exchange *exchange, bool over, size_t *missing,
                                      char words[CR_GREETING_WORDS])
{
    if (exchange->asked)
        return cr_postgres_answer(exchange->in, exchange->in_len, over, missing, words);
    say(exchange, cr_postgres_request(exchange->out));
    exchange->asked = true;
    return CR_GREETING_MORE;
}

/* It greets, and is asked then, which it does not answer. */
static enum cr_greeting step_mysql(struct cr_probe_exchange *exchange, bool over, size_t *missing,
                                   char words[CR_GREETING_WORDS])
{
    (void)over;
    enum cr_greeting verdict = cr_mysql_answer(exchange->in, exchange->in_len, missing, &exchange->greeting, words);
    if (verdict != CR_GREETING_TLS)
        return verdict;
    say(exchange, cr_mysql_request(&exchange->greeting, exchange->out));
    exchange->asked = true;
    return verdict;
}

static size_t log_in_to_mysql(struct cr_probe_exchange *exchange)
{
    return cr_mysql_login(&exchange->greeting, exchange->asked, exchange->out);
}

static size_t reply_to_mysql(struct cr_probe_exchange *exchange, size_t *missing)
{
    return cr_mysql_reply(exchange->in, exchange->in_len, missing, exchange->out);
}

static const struct dialogue dialogues[CR_PROBE_PROTOCOLS] = {
    [CR_PROBE_TLS] = {NULL}, /* nothing is said before */
    [CR_PROBE_POSTGRESQL] = {step_postgres},
    [CR_PROBE_MYSQL] = {step_mysql, log_in_to_mysql, reply_to_mysql},
};

static const struct dialogue *dialogue_of(const struct cr_probe_conn *probe)
{
    return &dialogues[probe->target->protocol];
}

/* --- before TLS --- */

bool cr_probe_exchange_is_needed(const struct cr_probe_conn *probe)
{
    return dialogue_of(probe)->step != NULL;
}

static bool has_to_say(const struct cr_probe_exchange *exchange)
{
    return exchange->out_sent < exchange->out_len;
}

/* Up to a verdict, or to something that is to be said. */
static enum cr_greeting read_answer(struct cr_probe_conn *probe, char words[CR_GREETING_WORDS])
{
    bool over = false;
    probe->wants = POLLIN;
    for (;;) {
        size_t missing = 0;
        enum cr_greeting verdict = dialogue_of(probe)->step(probe->exchange, over, &missing, words);
        if (verdict != CR_GREETING_MORE || over || has_to_say(probe->exchange))
            return verdict;
        if (!fill(probe, missing, &over) && !over)
            return CR_GREETING_MORE;
    }
}

enum cr_greeting cr_probe_exchange_ask(struct cr_probe_conn *probe, char words[CR_GREETING_WORDS])
{
    struct cr_probe_exchange *exchange = probe->exchange;
    words[0] = '\0';
    for (;;) {
        if (has_to_say(exchange) && !flush(probe))
            return CR_GREETING_MORE;
        if (exchange->ready)
            return CR_GREETING_TLS;
        enum cr_greeting verdict = read_answer(probe, words);
        if (!has_to_say(exchange))
            return verdict;
        exchange->ready = verdict == CR_GREETING_TLS;
    }
}

/* --- the end --- */

bool cr_probe_exchange_has_end(const struct cr_probe_conn *probe)
{
    return dialogue_of(probe)->begin_end != NULL;
}

bool cr_probe_exchange_end(struct cr_probe_conn *probe)
{
    const struct dialogue *dialogue = dialogue_of(probe);
    struct cr_probe_exchange *exchange = probe->exchange;
    if (!exchange->replies) {
        say(exchange, dialogue->begin_end(exchange));
        exchange->replies = 1;
    }
    while (flush(probe)) {
        size_t missing = 0;
        bool over = false;
        size_t len = dialogue->reply(exchange, &missing);
        if (missing) {
            if (!fill(probe, missing, &over))
                return !over;
            continue;
        }
        if (!len || exchange->replies++ == REPLIES_MAX)
            return false;
        say(exchange, len);
    }
    return probe->wants != 0;
}
