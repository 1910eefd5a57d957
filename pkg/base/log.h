/* JSON log lines on stderr, one per event: {"ts":…,"level":"info","msg":"…","policy":"ns/name",…}. Thread-safe.
 * Values are plain text and escaped here, unless they say otherwise. Never pass key material. */
#ifndef CR_BASE_LOG_H
#define CR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum cr_log_level { CR_LOG_DEBUG, CR_LOG_INFO, CR_LOG_WARN, CR_LOG_ERROR };

struct cr_log_field {
    const char *key;
    const char *value; /* NULL: the field is left out */
    bool json;         /* value is JSON already, on one line, and goes in as it is */
};

void cr_log_set_level(enum cr_log_level level);
/* "debug", "info", "warn", "error". */
bool cr_log_level_parse(const char *text, enum cr_log_level *level, struct cr_error *err) CR_MUST_USE;

/* Lines go there, too, as long as it takes them without waiting; -1: nowhere. fd: borrowed. Before other threads log.
 */
void cr_log_copy_to(int fd);

/* From now on a line is dropped that standard error does not take at once, since no reader empties it, and so is a line
 * above PIPE_BUF bytes, of which a part may have to wait. This is for programs that must be done in time. Without this
 * call a line is waited for. Call it before other threads log. */
void cr_log_never_wait(void);

void cr_log_fields(enum cr_log_level level, const char *msg, const struct cr_log_field *fields, size_t count);

/* cr_log(CR_LOG_INFO, "restarted", {"policy", key}, {"secret", name}); */
#define cr_log(level, msg, ...)                                                                                        \
    do {                                                                                                               \
        const struct cr_log_field cr_fields_[] = {__VA_ARGS__ __VA_OPT__(, ){NULL, NULL}};                             \
        cr_log_fields((level), (msg), cr_fields_, sizeof cr_fields_ / sizeof *cr_fields_ - 1);                         \
    } while (0)

#endif
