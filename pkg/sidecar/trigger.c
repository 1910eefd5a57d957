#include "sidecar/trigger.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "net/http_once.h"
#include "sidecar/address.h"
#include "sidecar/trigger_internal.h"
#include "sys/file.h"
#include "sys/proc_find.h"
#include "sys/proc_signal.h"
#include "sys/process.h"

enum { FILE_MAX = 1024 * 1024, ANSWER_MAX = 64 * 1024 };

/* What a request is made of, read and expanded. */
struct parts {
    struct cr_buf body, ca, certificate, private_key;
};

static void parts_dispose(struct parts *parts)
{
    cr_buf_dispose(&parts->body);
    cr_buf_dispose(&parts->ca);
    cr_buf_dispose(&parts->certificate);
    cr_buf_dispose(&parts->private_key);
}
CR_DEFINE_DISPOSE(parts, struct parts, parts_dispose)

static bool read_if_named(const char *path, struct cr_buf *out, struct cr_error *err)
{
    return !path || cr_file_read_regular(path, FILE_MAX, out, err);
}

/* A file is sent as it is: what looks like a placeholder in it may be the program's own. */
static bool read_body(const struct cr_trigger_job *job, struct cr_buf *out, struct cr_error *err)
{
    const char *text = job->spec->http.body;
    if (job->spec->http.body_file)
        return cr_file_read_regular(job->spec->http.body_file, FILE_MAX, out, err);
    return !text || cr_trigger_text(job, text, CR_TRIGGER_SECRET, out, err);
}

static bool gather(const struct cr_trigger_job *job, struct parts *parts, struct cr_error *err)
{
    const struct cr_trigger_spec *spec = job->spec;
    parts->body.secret = parts->private_key.secret = true;
    return read_body(job, &parts->body, err) && read_if_named(spec->http.ca_file, &parts->ca, err) &&
           read_if_named(spec->http.certificate_file, &parts->certificate, err) &&
           read_if_named(spec->http.private_key_file, &parts->private_key, err);
}

static bool judge_status(const struct cr_trigger_job *job, const struct cr_http_response *response,
                         struct cr_error *err)
{
    char name[160];
    char words[CR_TRIGGER_WORDS];
    const struct cr_trigger_spec *spec = job->spec;
    if (response->status >= spec->http.status_from && response->status <= spec->http.status_to)
        return true;
    cr_trigger_name(spec, name, sizeof name);
    cr_trigger_words(job, cr_buf_text(&response->body), response->body.len, words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: it answered HTTP %d%s%s", name, response->status,
                        words[0] ? ": " : "", words);
}

static bool trigger_http(const struct cr_trigger_job *job, struct cr_error *err)
{
    const struct cr_trigger_spec *spec = job->spec;
    CR_CLEANUP(parts) struct parts parts = {0};
    CR_CLEANUP(cr_http_response) struct cr_http_response response = {0};
    if (!gather(job, &parts, err))
        return false;
    const struct cr_http_tls tls = {.ca_pem = spec->http.ca_file ? cr_buf_text(&parts.ca) : NULL,
                                    .cert_pem = spec->http.certificate_file ? cr_buf_text(&parts.certificate) : NULL,
                                    .key_pem = spec->http.private_key_file ? cr_buf_text(&parts.private_key) : NULL,
                                    .server_name = spec->http.server_name};
    const struct cr_http_request request = {.method = spec->http.method ? spec->http.method : "POST",
                                            .url = spec->http.url,
                                            .headers = (const char *const *)spec->http.headers.items,
                                            .headers_len = spec->http.headers.len,
                                            .body = parts.body.len ? cr_buf_text(&parts.body) : NULL,
                                            .body_len = parts.body.len,
                                            .timeout_ms = cr_trigger_left_ms(job),
                                            .max_body = ANSWER_MAX,
                                            .secret = true};
    return cr_http_once(&tls, &request, job->cancel_fd, &response, err) && judge_status(job, &response, err);
}

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
    if (!cr_sidecar_connection_open(job->spec->socket.address, job->cancel_fd, job->deadline_ms, &connection, err))
        return false;
    bool ok = true;
    for (size_t i = from; ok && i < to; i++)
        ok = exchange(job, i, &connection, err);
    if (ok)
        cr_connection_finish(&connection);
    return ok;
}

static bool trigger_socket(const struct cr_trigger_job *job, struct cr_error *err)
{
    size_t len = job->spec->socket.exchanges_len;
    if (!job->spec->socket.reconnect_each)
        return do_exchanges(job, 0, len, err);
    for (size_t i = 0; i < len; i++)
        if (!do_exchanges(job, i, i + 1, err))
            return false;
    return true;
}

/* Pid 1 comes from the program's own container, where the program was the first process; here pid 1 holds the pod's
 * namespace. */
static bool is_of_the_pod(const struct cr_proc *process, const char *path, struct cr_error *err)
{
    return process->pid != 1 ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s says pid 1, which is no program of the pod here: it was written in a process namespace of "
                        "its own. Set shareProcessNamespace: true in the pod's spec",
                        path);
}

static bool find(const struct cr_trigger_job *job, struct cr_proc *out, struct cr_error *err)
{
    const char *path = job->spec->signal.pid_file;
    if (job->spec->signal.process)
        return cr_proc_find(job->spec->signal.process, out, err);
    return cr_proc_find_by_file(path, job->booted_ms, out, err) && is_of_the_pod(out, path, err);
}

static bool trigger_signal(const struct cr_trigger_job *job, struct cr_error *err)
{
    struct cr_proc process;
    return find(job, &process, err) && cr_proc_signal(&process, job->spec->signal.number, err);
}

enum { OUTPUT_MAX = 1024 * 1024 /* which is not kept */ };

static bool expand(const struct cr_trigger_job *job, struct cr_strvec *argv, struct cr_error *err)
{
    const struct cr_strvec *words = &job->spec->command.argv;
    for (size_t i = 0; i < words->len; i++) {
        CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
        if (!cr_trigger_text(job, words->items[i], CR_TRIGGER_SEEN, &text, err))
            return false;
        cr_strvec_add(argv, cr_buf_text(&text));
    }
    return true;
}

static bool judge(const struct cr_trigger_job *job, const struct cr_process_end *end, struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    char how[48];
    if (end->status == 0)
        return true;
    cr_trigger_words(job, end->last_words, strlen(end->last_words), words);
    snprintf(how, sizeof how, end->signal ? "was ended by signal %d" : "ended with status %d",
             end->signal ? end->signal : end->status);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s %s%s%s", job->spec->command.argv.items[0], how, words[0] ? ": " : "",
                        words);
}

static bool trigger_command(const struct cr_trigger_job *job, struct cr_error *err)
{
    static const struct cr_strvec as_it_is = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec argv = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    CR_CLEANUP(cr_buf) struct cr_buf output = {.secret = true};
    struct cr_process_end end;
    if (!expand(job, &argv, err))
        return false;
    const char *program = argv.len ? argv.items[0] : "";
    cr_autofree char *path = cr_process_find(program, err);
    if (!path)
        return false;
    cr_process_environment(&as_it_is, &environment);
    const struct cr_process process = {.path = path,
                                       .argv = &argv,
                                       .environment = &environment,
                                       .timeout_ms = cr_trigger_left_ms(job),
                                       .max_output = OUTPUT_MAX,
                                       .cancel_fd = job->cancel_fd};
    if (!cr_process_run(&process, &output, &end, err))
        return cr_error_wrap(err, "%s", program);
    return judge(job, &end, err);
}

int cr_trigger_left_ms(const struct cr_trigger_job *job)
{
    int64_t left = job->deadline_ms - cr_clock_monotonic_ms();
    return left > 1 ? (int)left : 1;
}

/* --- names --- */

static void name_signal(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    const char *name = sigabbrev_np(spec->signal.number);
    const char *process = spec->signal.process;
    snprintf(out, size, "SIG%s to %s%s", name ? name : "?", process ? "" : "the process of ",
             cr_or_empty(process ? process : spec->signal.pid_file));
}

static void name_http(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    size_t len = strcspn(spec->http.url, "?#");
    snprintf(out, size, "%s %.*s", spec->http.method ? spec->http.method : "POST", (int)len, spec->http.url);
}

static void name_socket(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "socket %s", spec->socket.address);
}

static void name_command(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "command %s", spec->command.argv.len ? spec->command.argv.items[0] : "");
}

static void name_haproxy(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "HAProxy at %s", spec->haproxy.address);
}

static void name_redis(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "Redis at %s", spec->redis.address);
}

/* --- kinds --- */

static const struct {
    void (*name)(const struct cr_trigger_spec *spec, char *out, size_t size);
    bool (*pull)(const struct cr_trigger_job *job, struct cr_error *err);
} kinds[] = {
    [CR_TRIGGER_SIGNAL] = {name_signal, trigger_signal},       [CR_TRIGGER_HTTP] = {name_http, trigger_http},
    [CR_TRIGGER_SOCKET] = {name_socket, trigger_socket},       [CR_TRIGGER_COMMAND] = {name_command, trigger_command},
    [CR_TRIGGER_HAPROXY] = {name_haproxy, cr_trigger_haproxy}, [CR_TRIGGER_REDIS] = {name_redis, cr_trigger_redis},
};

void cr_trigger_name(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    kinds[spec->type].name(spec, out, size);
}

bool cr_trigger_pull(const struct cr_trigger_spec *spec, const struct cr_sidecar_material *material,
                     const struct cr_reading *reading, int64_t booted_ms, int cancel_fd, struct cr_error *err)
{
    const struct cr_trigger_job job = {.spec = spec,
                                       .material = material,
                                       .reading = reading,
                                       .booted_ms = booted_ms,
                                       .cancel_fd = cancel_fd,
                                       .deadline_ms = cr_clock_monotonic_ms() + spec->timeout_ms};
    return kinds[spec->type].pull(&job, err);
}
