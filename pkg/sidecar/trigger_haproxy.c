/* HAProxy's runtime API (management.txt, "Unix Socket commands"). A file is replaced in a transaction: "set ssl cert"
 * (2.1), "set ssl ca-file" (2.5), then "commit". There is one transaction of each kind at a time, and it belongs to no
 * connection: a process that crashed between the two has left its transaction behind. Each connection takes one
 * command, and ends.
 *
 * Before 3.3.0 a commit of a CA file takes the certificates away from their listeners: the next commit of one says
 * "Success!" and renews nothing, and the next of a CA file may end the process (commit 7482b6ebf, issue 3165; seen with
 * 2.6.12). So older versions get no CA files this way, and a commit that renewed nothing is no success. */
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "sidecar/address.h"
#include "sidecar/trigger_internal.h"

/* A command with its payload fits into tune.bufsize, 16 KiB by default; longer lists of CAs go in pieces ("add ssl
 * ca-file", 2.7). */
enum { PIECE_MAX = 12 * 1024 };

static const char end_of_block[] = "-----END CERTIFICATE-----\n";

/* One file of a kind: "cert", "ca-file". */
struct file {
    const char *kind;
    const char *path;
    const struct cr_strvec *all; /* that we replace, of this kind */
    const struct cr_buf *payload;
};

/* --- commands --- */

/* The whole answer is in connection->received. */
static bool ask(const struct cr_trigger_job *job, const struct cr_buf *command, struct cr_connection *connection,
                struct cr_error *err)
{
    if (!cr_sidecar_connection_open(job->spec->haproxy.address, job->cancel_fd, job->deadline_ms, connection, err))
        return false;
    bool ok = cr_connection_send(connection, cr_buf_text(command), command->len, err);
    while (ok && !connection->ended)
        ok = cr_connection_receive(connection, err);
    if (!ok)
        cr_connection_close(connection);
    return ok;
}

static bool refused(const struct cr_trigger_job *job, const char *verb, const struct file *file,
                    const struct cr_connection *connection, struct cr_error *err)
{
    char words[CR_TRIGGER_WORDS];
    const char *answer = cr_buf_text(&connection->received);
    cr_trigger_words(job, answer, connection->received.len, words);
    if (strstr(answer, "Success!"))
        return cr_error_set(err, CR_ERR_TRANSIENT,
                            "HAProxy at %s renewed nothing with %s: no bind or server line has it under this name, or "
                            "its CA file was replaced on this socket before, which versions before 3.3.0 do not take: "
                            "reload it (SIGUSR2)",
                            connection->address, file->path);
    if (strstr(answer, "ermission denied"))
        return cr_error_set(err, CR_ERR_FORBIDDEN, "HAProxy at %s: %s: its socket needs \"level admin\"",
                            connection->address, words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "HAProxy at %s refused %s ssl %s %s: %s", connection->address, verb,
                        file->kind, file->path,
                        words[0] ? words : "no answer; a payload that is longer than tune.bufsize has none");
}

/* In its words for success: a commit has one dot for each listener or server that was renewed. */
static bool is_done(const char *verb, const char *answer)
{
    if (cr_streq(verb, "commit"))
        return strstr(answer, "Success!") && strstr(answer, ".\n");
    if (cr_streq(verb, "abort"))
        return strstr(answer, "ransaction aborted");
    return strstr(answer, "ransaction created") || strstr(answer, "ransaction updated");
}

/* payload: NULL: none. */
static bool command(const struct cr_trigger_job *job, const char *verb, const struct file *file, const char *payload,
                    size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {.secret = true};
    CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
    cr_buf_printf(&text, "%s ssl %s %s%s\n", verb, file->kind, file->path, payload ? " <<" : "");
    if (payload)
        cr_buf_printf(&text, "%.*s\n", (int)len, payload);
    return ask(job, &text, &connection, err) &&
           (is_done(verb, cr_buf_text(&connection.received)) || refused(job, verb, file, &connection, err));
}

/* --- the transaction --- */

/* Up to the end of a block, so that a piece is at most PIECE_MAX long where blocks allow it. */
static size_t piece_of(const char *text)
{
    size_t taken = 0;
    for (const char *end = text; (end = strstr(end, end_of_block));) {
        end += strlen(end_of_block);
        if (taken && (size_t)(end - text) > PIECE_MAX)
            break;
        taken = (size_t)(end - text);
    }
    return taken ? taken : strlen(text);
}

static bool set(const struct cr_trigger_job *job, const struct file *file, struct cr_error *err)
{
    const char *text = cr_buf_text(file->payload);
    bool whole = file->payload->len <= PIECE_MAX || !cr_streq(file->kind, "ca-file");
    for (const char *verb = "set"; *text; verb = "add") {
        size_t len = whole ? strlen(text) : piece_of(text);
        if (!command(job, verb, file, text, len, err))
            return false;
        text += len;
    }
    return true;
}

static void abort_transaction(const struct cr_trigger_job *job, const struct file *file, const char *path)
{
    struct file other = *file;
    struct cr_error ignored;
    other.path = path;
    if (!command(job, "abort", &other, NULL, 0, &ignored))
        return; /* there was none, or the error that led here comes again */
}

/* Only those of our own files: another's would be of a tool that is at work. */
static void abort_left_behind(const struct cr_trigger_job *job, const struct file *file)
{
    for (size_t i = 0; i < file->all->len; i++)
        if (!cr_streq(file->all->items[i], file->path))
            abort_transaction(job, file, file->all->items[i]);
}

static bool replace(const struct cr_trigger_job *job, const struct file *file, struct cr_error *err)
{
    abort_left_behind(job, file);
    if (set(job, file, err) && command(job, "commit", file, NULL, 0, err))
        return true;
    abort_transaction(job, file, file->path);
    return false;
}

static bool replace_all(const struct cr_trigger_job *job, const char *kind, const struct cr_strvec *paths,
                        const struct cr_buf *payload, struct cr_error *err)
{
    for (size_t i = 0; i < paths->len; i++) {
        const struct file file = {.kind = kind, .path = paths->items[i], .all = paths, .payload = payload};
        if (!replace(job, &file, err))
            return false;
    }
    return true;
}

/* --- the version --- */

/* "Version: 2.6.12-1" of "show info". */
static bool parse_version(const char *info, int *major, int *minor)
{
    static const char label[] = "\nVersion: ";
    const char *at = strstr(info, label);
    return at && sscanf(at + strlen(label), "%9d.%9d", major, minor) == 2;
}

static bool may_replace_cas(const struct cr_trigger_job *job, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
    int major = 0;
    int minor = 0;
    cr_buf_puts(&text, "show info\n");
    if (!job->spec->haproxy.ca_files.len)
        return true;
    if (!ask(job, &text, &connection, err))
        return false;
    if (!parse_version(cr_buf_text(&connection.received), &major, &minor))
        return cr_error_set(err, CR_ERR_TRANSIENT, "what answers at %s does not say its version as HAProxy does",
                            connection.address);
    return major > 3 || (major == 3 && minor >= 3) ||
           cr_error_set(err, CR_ERR_INVALID,
                        "HAProxy %d.%d would lose its certificates when a CA file is replaced on its socket (mended in "
                        "3.3.0): leave caFiles out, and use the signal SIGUSR2 to its master for the CAs",
                        major, minor);
}

/* --- all of it --- */

static bool is_there(const struct cr_trigger_job *job, const struct cr_strvec *paths, const struct cr_buf *text,
                     const char *what, struct cr_error *err)
{
    return !paths->len || text->len ||
           cr_error_set(err, CR_ERR_INVALID, "HAProxy is to get %s, and the material %s has none", what,
                        cr_or_empty(job->material->name));
}

/* Trust before leaves: a certificate of a new CA may be verified against the bundle of the same program. */
bool cr_trigger_haproxy(const struct cr_trigger_job *job, struct cr_error *err)
{
    const struct cr_trigger_spec *spec = job->spec;
    CR_CLEANUP(cr_buf) struct cr_buf combined = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf trust = {0};
    cr_trigger_add_lines(&combined, &job->reading->certificate);
    cr_trigger_add_lines(&combined, &job->reading->private_key);
    cr_trigger_add_lines(&trust, &job->reading->trust);
    return is_there(job, &spec->haproxy.certificates, &job->reading->private_key, "a certificate with its key", err) &&
           is_there(job, &spec->haproxy.ca_files, &trust, "CAs", err) && may_replace_cas(job, err) &&
           replace_all(job, "ca-file", &spec->haproxy.ca_files, &trust, err) &&
           replace_all(job, "cert", &spec->haproxy.certificates, &combined, err);
}
