#include <string.h>

#include "base/strings.h"
#include "reloader/address.h"
#include "reloader/trigger_internal.h"

static bool unexpected(const struct cr_trigger_job *job, size_t number, const struct cr_talk *talk,
                       const char *expected, struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    cr_trigger_words(job, cr_buf_text(&talk->heard), talk->heard.len, words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: the answer to exchange %zu does not hold '%.60s': %s",
                        talk->address, number, expected, words[0] ? words : "nothing was said");
}

/* What stands behind it is the next answer's. */
static bool hear_expected(const struct cr_trigger_job *job, size_t number, const char *expected, struct cr_talk *talk,
                          struct cr_error *err)
{
    size_t len = strlen(expected);
    for (;;) {
        const char *text = cr_buf_text(&talk->heard);
        const char *found = memmem(text, talk->heard.len, expected, len);
        if (found) {
            cr_buf_consume(&talk->heard, (size_t)(found - text) + len);
            return true;
        }
        struct cr_error why = {0};
        if (!talk->ended && cr_talk_hear(talk, &why))
            continue;
        if (why.kind == CR_ERR_CANCELLED)
            return cr_error_set(err, why.kind, "%s", why.text);
        return unexpected(job, number, talk, expected, err);
    }
}

static bool exchange(const struct cr_trigger_job *job, size_t index, struct cr_talk *talk, struct cr_error *err)
{
    const struct cr_exchange *exchange = &job->spec->socket.exchanges[index];
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    return cr_trigger_text(job, cr_or_empty(exchange->send), CR_TRIGGER_SECRET, &text, err) &&
           cr_talk_say(talk, cr_buf_text(&text), text.len, err) &&
           (!exchange->expect || hear_expected(job, index + 1, exchange->expect, talk, err));
}

/* The exchanges from the given one on, over one connection. */
static bool talk_about(const struct cr_trigger_job *job, size_t from, size_t to, struct cr_error *err)
{
    CR_CLEANUP(cr_talk) struct cr_talk talk;
    if (!cr_reloader_talk_open(job->spec->socket.address, job->cancel_fd, job->deadline_ms, &talk, err))
        return false;
    bool ok = true;
    for (size_t i = from; ok && i < to; i++)
        ok = exchange(job, i, &talk, err);
    if (ok)
        cr_talk_part(&talk);
    return ok;
}

bool cr_trigger_socket(const struct cr_trigger_job *job, struct cr_error *err)
{
    size_t len = job->spec->socket.exchanges_len;
    if (!job->spec->socket.each_anew)
        return talk_about(job, 0, len, err);
    for (size_t i = 0; i < len; i++)
        if (!talk_about(job, i, i + 1, err))
            return false;
    return true;
}
