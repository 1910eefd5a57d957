/* Redis, Valkey: any CONFIG SET of a TLS file builds new contexts out of all of them, and keeps the old ones on an
 * error (src/tls.c, tlsConfigure). The paths stay what they are: CONFIG GET returns them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "sidecar/resp.h"
#include "sidecar/address.h"
#include "sidecar/trigger_internal.h"
#include "sys/file.h"

enum { PASSWORD_MAX = 4096, WORDS_MAX = 16 };

/* Not "tls-*": that would hand out the passwords of keys. */
static const char pattern[] = "tls-*-file";

static bool is_file_option(const char *name, size_t len)
{
    static const char *const options[] = {"tls-cert-file", "tls-key-file", "tls-client-cert-file",
                                          "tls-client-key-file", "tls-ca-cert-file"};
    for (size_t i = 0; i < cr_array_len(options); i++)
        if (strlen(options[i]) == len && memcmp(options[i], name, len) == 0)
            return true;
    return false;
}

/* --- what is said --- */

static bool send_words(struct cr_connection *connection, const char *const *words, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    cr_resp_command(words, len, &text);
    return cr_connection_send(connection, cr_buf_text(&text), text.len, err);
}

/* The next value of the answer; it is borrowed until something is received again. */
static bool receive(struct cr_connection *connection, size_t *at, struct cr_resp_value *out, struct cr_error *err)
{
    for (;;) {
        switch (cr_resp_read(cr_buf_text(&connection->received), connection->received.len, at, out)) {
        case CR_RESP_READ:
            return true;
        case CR_RESP_BAD:
            return cr_error_set(err, CR_ERR_TRANSIENT, "what answers at %s is not Redis", connection->address);
        case CR_RESP_MORE:
            break;
        }
        if (connection->ended)
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: hung up without an answer (a port of TLS only?)",
                                connection->address);
        if (!cr_connection_receive(connection, err))
            return false;
    }
}

/* --- answers --- */

static enum cr_error_kind kind_of(const char *text, size_t len)
{
    static const char *const forbidden[] = {"NOAUTH", "NOPERM", "WRONGPASS"};
    for (size_t i = 0; i < cr_array_len(forbidden); i++)
        if (len >= strlen(forbidden[i]) && memcmp(text, forbidden[i], strlen(forbidden[i])) == 0)
            return CR_ERR_FORBIDDEN;
    return CR_ERR_TRANSIENT;
}

static bool refused(const struct cr_trigger_job *job, const char *what, const struct cr_resp_value *answer,
                    struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    cr_trigger_words(job, answer->text, answer->len, words);
    return cr_error_set(err, kind_of(words, strlen(words)), "Redis at %s refused %s: %s", job->spec->redis.address,
                        what, words);
}

static bool is_ok(const struct cr_resp_value *answer)
{
    return answer->type == CR_RESP_OK && answer->len == 2 && memcmp(answer->text, "OK", 2) == 0;
}

/* The first word of a refusal only: some repeat the words of a command that they do not know, here the password. */
static struct cr_resp_value first_word(const struct cr_resp_value *answer)
{
    struct cr_resp_value word = *answer;
    const char *space = memchr(answer->text, ' ', answer->len);
    word.len = space ? (size_t)(space - answer->text) : answer->len;
    return word;
}

/* --- the three commands --- */

static bool read_password(const struct cr_trigger_job *job, struct cr_buf *out, struct cr_error *err)
{
    if (!cr_file_read_regular(job->spec->redis.password_file, PASSWORD_MAX, out, err))
        return false;
    while (out->len && strchr("\r\n", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return out->len || cr_error_set(err, CR_ERR_INVALID, "%s is empty", job->spec->redis.password_file);
}

static bool log_in(const struct cr_trigger_job *job, struct cr_connection *connection, struct cr_error *err)
{
    if (!job->spec->redis.password_file)
        return true;
    CR_CLEANUP(cr_buf) struct cr_buf password = {.secret = true};
    if (!read_password(job, &password, err))
        return false;
    const char *user = job->spec->redis.user;
    const char *words[] = {"AUTH", user ? user : cr_buf_text(&password), cr_buf_text(&password)};
    struct cr_resp_value answer;
    size_t at = 0;
    if (!send_words(connection, words, user ? 3 : 2, err) || !receive(connection, &at, &answer, err))
        return false;
    if (!is_ok(&answer)) {
        struct cr_resp_value word = first_word(&answer);
        return refused(job, "AUTH", &word, err);
    }
    cr_buf_consume(&connection->received, at);
    return true;
}

/* Receives an array: nothing in the buffer moves any more once all of it is there. */
static bool skip_elements(struct cr_connection *connection, size_t at, long count, struct cr_error *err)
{
    struct cr_resp_value ignored;
    for (long i = 0; i < count; i++)
        if (!receive(connection, &at, &ignored, err))
            return false;
    return true;
}

/* Names and values of those that are set, one behind the other. */
static bool collect(struct cr_connection *connection, size_t at, long count, struct cr_strvec *out,
                    struct cr_error *err)
{
    if (!skip_elements(connection, at, count, err))
        return false;
    for (long i = 0; i + 1 < count && out->len + 1 < WORDS_MAX; i += 2) {
        struct cr_resp_value name;
        struct cr_resp_value value;
        if (!receive(connection, &at, &name, err) || !receive(connection, &at, &value, err))
            return false;
        if (!value.len || !is_file_option(name.text, name.len))
            continue;
        cr_autofree char *option = cr_strndup(name.text, name.len);
        cr_autofree char *path = cr_strndup(value.text, value.len);
        cr_strvec_add(out, option);
        cr_strvec_add(out, path);
    }
    return true;
}

static bool get_files(const struct cr_trigger_job *job, struct cr_connection *connection, struct cr_strvec *out,
                      struct cr_error *err)
{
    static const char *const words[] = {"CONFIG", "GET", pattern};
    struct cr_resp_value answer;
    size_t at = 0;
    if (!send_words(connection, words, cr_array_len(words), err) || !receive(connection, &at, &answer, err))
        return false;
    if (answer.type != CR_RESP_ARRAY)
        return refused(job, "CONFIG GET", &answer, err);
    if (!collect(connection, at, answer.number, out, err))
        return false;
    cr_buf_reset(&connection->received);
    return out->len || cr_error_set(err, CR_ERR_INVALID, "Redis at %s has no TLS files: tls-cert-file is not set",
                                    job->spec->redis.address);
}

/* Before 7.0 one option at a time, and one is enough. */
static bool takes_one_only(const struct cr_resp_value *answer)
{
    static const char words[] = "wrong number of arguments";
    return answer->type == CR_RESP_ERROR && memmem(answer->text, answer->len, words, strlen(words));
}

static bool set_files(const struct cr_trigger_job *job, struct cr_connection *connection, const struct cr_strvec *files,
                      struct cr_error *err)
{
    const char *words[2 + WORDS_MAX] = {"CONFIG", "SET"};
    for (size_t i = 0; i < files->len; i++)
        words[2 + i] = files->items[i];
    struct cr_resp_value answer;
    for (size_t len = files->len;; len = 2) {
        size_t at = 0;
        if (!send_words(connection, words, 2 + len, err) || !receive(connection, &at, &answer, err))
            return false;
        if (is_ok(&answer))
            return true;
        if (len == 2 || !takes_one_only(&answer))
            return refused(job, "CONFIG SET", &answer, err);
        cr_buf_consume(&connection->received, at);
    }
}

bool cr_trigger_redis(const struct cr_trigger_job *job, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec files = {0};
    CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
    return cr_sidecar_connection_open(job->spec->redis.address, job->cancel_fd, job->deadline_ms, &connection, err) &&
           log_in(job, &connection, err) && get_files(job, &connection, &files, err) &&
           set_files(job, &connection, &files, err);
}
