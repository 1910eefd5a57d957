#include "base/strings.h"
#include "net/http_once.h"
#include "reloader/trigger_internal.h"
#include "sys/file.h"

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
    return !path || cr_file_read(path, FILE_MAX, out, err);
}

/* A file is sent as it is: what looks like a placeholder in it may be the program's own. */
static bool read_body(const struct cr_trigger_job *job, struct cr_buf *out, struct cr_error *err)
{
    const char *text = job->spec->http.body;
    if (job->spec->http.body_file)
        return cr_file_read(job->spec->http.body_file, FILE_MAX, out, err);
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

static bool judge(const struct cr_trigger_job *job, const struct cr_http_response *response, struct cr_error *err)
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

bool cr_trigger_http(const struct cr_trigger_job *job, struct cr_error *err)
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
    return cr_http_once(&tls, &request, job->cancel_fd, &response, err) && judge(job, &response, err);
}
