#include <string.h>

#include "base/strings.h"
#include "reloader/address.h"
#include "reloader/trigger_internal.h"

static bool unexpected(const struct cr_trigger_job *job, size_t number, const struct cr_connection *connection,
                       const char *expected, struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    cr_trigger_words(job, cr_buf_text(&connection->received), connection->received.len, words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: the answer to exchange %zu does not hold '%.60s': %s",
                        connection->address, number, expected, words[0] ? words : "nothing was said");
}

/* What stands behind it is the next answer's. */
static bool receive_expected(const struct cr_trigger_job *job, size_t number, const char *expected,
                             struct cr_connection *connection, struct cr_error *err)
{
    size_t len = strlen(expected);
    for (;;) {
        const char *text = cr_buf_text(&connection->received);
        const char *found = memmem(text, connection->received.len, expected, len);
        if (found) {
            cr_buf_consume(&connection->received, (size_t)(found - text) + len);
            return true;
        }
        struct cr_error why = {0};
        if (!connection->ended && cr_connection_receive(connection, &why))
            continue;
        if (why.kind == CR_ERR_CANCELLED)
            return cr_error_set(err, why.kind, "%s", why.text);
        return unexpected(job, number, connection, expected, err);
    }
}

static bool exchange(const struct cr_trigger_job *job, size_t index, struct cr_connection *connection,
                     struct cr_error *err)
{
    const struct cr_exchange *exchange = &job->spec->socket.exchanges[index];
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    return cr_trigger_text(job, cr_or_empty(exchange->send), CR_TRIGGER_SECRET, &text, err) &&
           cr_connection_send(connection, cr_buf_text(&text), text.len, err) &&
           (!exchange->expect || receive_expected(job, index + 1, exchange->expect, connection, err));
}

/* The exchanges from the given one on, over one connection. */
static bool do_exchanges(const struct cr_trigger_job *job, size_t from, size_t to, struct cr_error *err)
{
    CR_CLEANUP(cr_connection) struct cr_connection connection;
    if (!cr_reloader_connection_open(job->spec->socket.address, job->cancel_fd, job->deadline_ms, &connection, err))
        return false;
    bool ok = true;
    for (size_t i = from; ok && i < to; i++)
        ok = exchange(job, i, &connection, err);
    if (ok)
        cr_connection_finish(&connection);
    return ok;
}

bool cr_trigger_socket(const struct cr_trigger_job *job, struct cr_error *err)
{
    size_t len = job->spec->socket.exchanges_len;
    if (!job->spec->socket.reconnect_each)
        return do_exchanges(job, 0, len, err);
    for (size_t i = 0; i < len; i++)
        if (!do_exchanges(job, i, i + 1, err))
            return false;
    return true;
}
