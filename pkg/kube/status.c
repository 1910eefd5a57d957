#include "kube/status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"

/* JSON, of which the details of a big object that was refused have the most. */
enum { STATUS_VALUES = 10 * 1000 };

struct answer {
    int code;
    int retry_after_ms;
    const char *reason;  /* may be NULL */
    const char *message; /* may be NULL */
    const struct cr_json *details;
};

static const struct {
    const char *reason;
    enum cr_error_kind kind;
} by_reason[] = {
    {"NotFound", CR_ERR_NOT_FOUND},
    {"AlreadyExists", CR_ERR_CONFLICT},
    {"Conflict", CR_ERR_CONFLICT},
    {"Gone", CR_ERR_GONE},
    {"Expired", CR_ERR_GONE},
    {"TooManyRequests", CR_ERR_THROTTLED},
    {"Unauthorized", CR_ERR_UNAUTHORIZED},
    {"Forbidden", CR_ERR_FORBIDDEN},
    {"Invalid", CR_ERR_INVALID},
    {"BadRequest", CR_ERR_INVALID},
    {"MethodNotAllowed", CR_ERR_INVALID},
    {"NotAcceptable", CR_ERR_INVALID},
    {"UnsupportedMediaType", CR_ERR_INVALID},
    {"RequestEntityTooLarge", CR_ERR_INVALID},
    {"ServerTimeout", CR_ERR_TRANSIENT},
    {"Timeout", CR_ERR_TRANSIENT},
    {"InternalError", CR_ERR_TRANSIENT},
    {"ServiceUnavailable", CR_ERR_TRANSIENT},
};

/* For proxies in between, and for Status objects without a reason. */
static enum cr_error_kind kind_of_code(int code)
{
    switch (code) {
    case 401:
        return CR_ERR_UNAUTHORIZED;
    case 403:
        return CR_ERR_FORBIDDEN;
    case 404:
        return CR_ERR_NOT_FOUND;
    case 409:
        return CR_ERR_CONFLICT;
    case 410:
        return CR_ERR_GONE;
    case 408:
        return CR_ERR_TRANSIENT;
    case 429:
        return CR_ERR_THROTTLED;
    default:
        return code >= 400 && code < 500 ? CR_ERR_INVALID : CR_ERR_TRANSIENT;
    }
}

/* The one cause that names the field, or NULL. */
static const struct cr_json *cause_of(const struct cr_json *details, const char *member, const char *value)
{
    const struct cr_json *causes = cr_json_get(details, "causes");
    for (const struct cr_json *c = cr_json_first(causes); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, member), value))
            return c;
    return NULL;
}

static enum cr_error_kind kind_of(const struct answer *answer)
{
    /* A patch carries a uid only as a precondition; the API server (1.36) calls one that fails an invalid value. */
    if (cause_of(answer->details, "field", "metadata.uid"))
        return CR_ERR_CONFLICT;
    enum cr_error_kind kind = kind_of_code(answer->code);
    for (size_t i = 0; answer->reason && i < cr_array_len(by_reason); i++)
        if (strcmp(by_reason[i].reason, answer->reason) == 0)
            kind = by_reason[i].kind;
    return kind == CR_ERR_TRANSIENT && answer->retry_after_ms > 0 ? CR_ERR_THROTTLED : kind;
}

static bool set(const char *what, const struct answer *answer, struct cr_error *err)
{
    char code[32];
    snprintf(code, sizeof code, "HTTP %d", answer->code);
    const char *message = answer->message && *answer->message ? answer->message : code;
    /* An eviction that a budget forbids says which one only in its causes. */
    const char *cause = cr_json_string_at(cause_of(answer->details, "reason", "DisruptionBudget"), "message");
    cr_error_set(err, kind_of(answer), "%s: %s%s%s", what, message, cause ? " " : "", cr_or_empty(cause));
    if (err)
        err->retry_after_ms = answer->retry_after_ms;
    return false;
}

/* What the server asks for in the body, when it is more than the header said; at most an hour. */
static int retry_after(const struct cr_json *status, int from_header)
{
    int64_t seconds = cr_json_int_at(status, 0, "details", "retryAfterSeconds");
    if (seconds < 0 || seconds > 3600)
        seconds = seconds < 0 ? 0 : 3600;
    return (int)seconds * 1000 > from_header ? (int)seconds * 1000 : from_header;
}

static struct answer from_status(const struct cr_json *status, int http_status, int retry_after_ms)
{
    return (struct answer){.code = http_status,
                           .retry_after_ms = retry_after(status, retry_after_ms),
                           .reason = cr_json_string_at(status, "reason"),
                           .message = cr_json_string_at(status, "message"),
                           .details = cr_json_get(status, "details")};
}

/* The first line of an answer that is no Status: "404 page not found", or what a proxy says. */
static void first_line(const char *body, size_t len, char *line, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < size && body[i] != '\n'; i++)
        if (isprint((unsigned char)body[i]))
            line[n++] = body[i];
    line[n] = '\0';
}

bool cr_status_from_response(const char *what, int http_status, int retry_after_ms, const char *body, size_t len,
                             struct cr_error *err)
{
    struct cr_json_budget budget = {.values = STATUS_VALUES};
    CR_CLEANUP(cr_json) struct cr_json *status = len ? cr_json_parse_within(body, len, &budget, NULL) : NULL;
    if (cr_streq(cr_json_string_at(status, "kind"), "Status")) {
        struct answer answer = from_status(status, http_status, retry_after_ms);
        return set(what, &answer, err);
    }
    char line[160];
    first_line(body, len, line, sizeof line);
    char message[200];
    snprintf(message, sizeof message, "HTTP %d%s%s", http_status, *line ? ": " : "", line);
    return set(what, &(struct answer){.code = http_status, .retry_after_ms = retry_after_ms, .message = message}, err);
}

bool cr_status_from_object(const char *what, const struct cr_json *status, struct cr_error *err)
{
    int64_t code = cr_json_int_at(status, 500, "code");
    struct answer answer = from_status(status, code >= 100 && code <= 599 ? (int)code : 500, 0);
    return set(what, &answer, err);
}
