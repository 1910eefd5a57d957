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
    struct cr_probe_talk *talk = probe->talk;
    probe->wants = POLLOUT;
    while (talk->out_sent < talk->out_len) {
        int n = put(probe, talk->out + talk->out_sent, talk->out_len - talk->out_sent);
        if (n <= 0) {
            probe->wants = n ? 0 : POLLOUT;
            return false;
        }
        talk->out_sent += (size_t)n;
    }
    probe->wants = POLLIN;
    return true;
}

static void say(struct cr_probe_talk *talk, size_t len)
{
    talk->out_len = len;
    talk->out_sent = 0;
    talk->in_len = 0;
}

/* Reads what is missing and no more: what follows may be TLS already. False: it is not all there (yet). */
static bool fill(struct cr_probe_conn *probe, size_t missing, bool *over)
{
    struct cr_probe_talk *talk = probe->talk;
    size_t room = sizeof talk->in - talk->in_len;
    int n = missing <= room ? get(probe, talk->in + talk->in_len, missing) : -1;
    *over = n < 0;
    if (n > 0)
        talk->in_len += (size_t)n;
    return n > 0;
}

/* --- before TLS --- */

static enum cr_greeting judge(struct cr_probe_conn *probe, bool over, size_t *missing, char words[CR_GREETING_WORDS])
{
    struct cr_probe_talk *talk = probe->talk;
    if (probe->target->protocol == CR_PROBE_POSTGRESQL)
        return cr_postgres_answer(talk->in, talk->in_len, over, missing, words);
    return cr_mysql_answer(talk->in, talk->in_len, missing, &talk->greeting, words);
}

static enum cr_greeting read_answer(struct cr_probe_conn *probe, char words[CR_GREETING_WORDS])
{
    bool over = false;
    probe->wants = POLLIN;
    for (;;) {
        size_t missing = 0;
        enum cr_greeting verdict = judge(probe, over, &missing, words);
        if (verdict != CR_GREETING_MORE || over)
            return verdict;
        if (!fill(probe, missing, &over) && !over)
            return CR_GREETING_MORE;
    }
}

/* PostgreSQL is asked first and answers; MySQL greets, and is asked then. */
enum cr_greeting cr_probe_talk_ask(struct cr_probe_conn *probe, char words[CR_GREETING_WORDS])
{
    struct cr_probe_talk *talk = probe->talk;
    bool postgres = probe->target->protocol == CR_PROBE_POSTGRESQL;
    words[0] = '\0';
    if (postgres && !talk->asked) {
        say(talk, cr_postgres_request(talk->out));
        talk->asked = true;
    }
    if (talk->out_sent < talk->out_len) {
        if (!flush(probe))
            return CR_GREETING_MORE;
        if (!postgres)
            return CR_GREETING_TLS;
    }
    enum cr_greeting verdict = read_answer(probe, words);
    if (postgres || verdict != CR_GREETING_TLS)
        return verdict;
    say(talk, cr_mysql_request(&talk->greeting, talk->out));
    talk->asked = true;
    return flush(probe) ? CR_GREETING_TLS : CR_GREETING_MORE;
}

/* --- the end --- */

bool cr_probe_talk_end(struct cr_probe_conn *probe)
{
    struct cr_probe_talk *talk = probe->talk;
    if (!talk->replies) {
        say(talk, cr_mysql_login(&talk->greeting, talk->asked, talk->out));
        talk->replies = 1;
    }
    while (flush(probe)) {
        size_t missing = 0;
        bool over = false;
        size_t len = cr_mysql_reply(talk->in, talk->in_len, &missing, talk->out);
        if (missing) {
            if (!fill(probe, missing, &over))
                return !over;
            continue;
        }
        if (!len || talk->replies++ == REPLIES_MAX)
            return false;
        say(talk, len);
    }
    return probe->wants != 0;
}
