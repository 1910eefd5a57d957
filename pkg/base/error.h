/* One way to fail: functions return a must-use bool (true on success) and take `struct cr_error *err` last.
 * An error is a plain value: nothing to free, untouched on success. Its kind decides the retry, its text is
 * one line for a person, and each layer may wrap it once with what it was doing. */
#ifndef CR_BASE_ERROR_H
#define CR_BASE_ERROR_H

#include <stdbool.h>
#include <stdarg.h>

#define CR_MUST_USE          __attribute__((warn_unused_result))
#define CR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum cr_error_kind {
    CR_ERR_NONE = 0,
    CR_ERR_INVALID,      /* bad input: retrying the same input is useless */
    CR_ERR_NOT_FOUND,    /* the object does not exist */
    CR_ERR_CONFLICT,     /* a precondition failed, or it already exists: look again, then decide again */
    CR_ERR_GONE,         /* the resourceVersion is too old (410): list again */
    CR_ERR_THROTTLED,    /* 429 or a 5xx with Retry-After: wait retry_after_ms */
    CR_ERR_UNAUTHORIZED, /* 401: credentials must be read again */
    CR_ERR_FORBIDDEN,    /* 403: a person must grant something */
    CR_ERR_TRANSIENT,    /* network, time-out, 5xx: back off and retry */
    CR_ERR_CANCELLED,    /* the program is shutting down */
    CR_ERR_INTERNAL,     /* a bug, or a rule of ours was broken */
};

struct cr_error {
    enum cr_error_kind kind;
    int retry_after_ms; /* what the server asked for; 0 when it did not say */
    char text[512];     /* one line, cut with "..." when longer */
};

/* All return false, so that `return cr_error_set(err, …);` reads as what it is. err may be NULL. */
bool cr_error_set(struct cr_error *err, enum cr_error_kind kind, const char *fmt, ...) CR_PRINTF(3, 4);
bool cr_error_vset(struct cr_error *err, enum cr_error_kind kind, const char *fmt, va_list args) CR_PRINTF(3, 0);
/* Why a call on a file failed, by errno: "<path>: <why>", NotFound, Forbidden and Invalid (a folder, a name that is too
 * long, links in a circle) as the kernel says, any other trouble Transient. */
bool cr_error_set_file(struct cr_error *err, const char *path);
/* Puts "<formatted>: " before the text; the kind stays. */
bool cr_error_wrap(struct cr_error *err, const char *fmt, ...) CR_PRINTF(2, 3);

void cr_error_clear(struct cr_error *err);

/* "Invalid", "NotFound", …: the word for logs and metrics. */
const char *cr_error_kind_name(enum cr_error_kind kind);

/* Whether trying the very same again later can succeed. */
bool cr_error_is_retryable(const struct cr_error *err);

#endif
