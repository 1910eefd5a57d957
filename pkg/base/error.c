#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"

/* One line, whatever the source said: control characters would break log lines and conditions. */
static void flatten(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
}

static void mark_cut(char *text, size_t size, int wanted)
{
    if (wanted < 0 || (size_t)wanted < size)
        return;
    static const char dots[] = "...";
    memcpy(text + cr_utf8_fit(text, size - sizeof dots), dots, sizeof dots);
}

bool cr_error_vset(struct cr_error *err, enum cr_error_kind kind, const char *fmt, va_list args)
{
    if (!err)
        return false;
    err->kind = kind;
    err->retry_after_ms = 0;
    mark_cut(err->text, sizeof err->text, vsnprintf(err->text, sizeof err->text, fmt, args));
    flatten(err->text);
    return false;
}

bool cr_error_set(struct cr_error *err, enum cr_error_kind kind, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    cr_error_vset(err, kind, fmt, args);
    va_end(args);
    return false;
}

static enum cr_error_kind kind_of_file_error(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return CR_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return CR_ERR_FORBIDDEN;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return CR_ERR_INVALID;
    default:
        return CR_ERR_TRANSIENT;
    }
}

bool cr_error_set_file(struct cr_error *err, const char *path)
{
    int error = errno;
    return cr_error_set(err, kind_of_file_error(error), "%s: %s", path, strerror(error));
}

bool cr_error_wrap(struct cr_error *err, const char *fmt, ...)
{
    if (!err)
        return false;
    struct cr_error inner = *err;
    char doing[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(doing, sizeof doing, fmt, args);
    va_end(args);
    mark_cut(err->text, sizeof err->text, snprintf(err->text, sizeof err->text, "%s: %s", doing, inner.text));
    flatten(err->text);
    return false;
}

void cr_error_clear(struct cr_error *err)
{
    if (err)
        *err = (struct cr_error){0};
}

const char *cr_error_kind_name(enum cr_error_kind kind)
{
    static const char *const names[] = {
        [CR_ERR_NONE] = "None",
        [CR_ERR_INVALID] = "Invalid",
        [CR_ERR_NOT_FOUND] = "NotFound",
        [CR_ERR_CONFLICT] = "Conflict",
        [CR_ERR_GONE] = "Gone",
        [CR_ERR_THROTTLED] = "Throttled",
        [CR_ERR_UNAUTHORIZED] = "Unauthorized",
        [CR_ERR_FORBIDDEN] = "Forbidden",
        [CR_ERR_TRANSIENT] = "Transient",
        [CR_ERR_CANCELLED] = "Cancelled",
        [CR_ERR_INTERNAL] = "Internal",
    };
    return kind <= CR_ERR_INTERNAL ? names[kind] : "Unknown";
}

bool cr_error_is_retryable(const struct cr_error *err)
{
    switch (err->kind) {
    case CR_ERR_CONFLICT:
    case CR_ERR_GONE:
    case CR_ERR_THROTTLED:
    case CR_ERR_UNAUTHORIZED:
    case CR_ERR_FORBIDDEN: /* a person may grant it meanwhile */
    case CR_ERR_TRANSIENT:
        return true;
    default:
        return false;
    }
}
