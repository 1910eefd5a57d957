#include "base/log.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"

static _Atomic int threshold = CR_LOG_INFO;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void cr_log_set_level(enum cr_log_level level)
{
    atomic_store(&threshold, (int)level);
}

bool cr_log_level_parse(const char *text, enum cr_log_level *level, struct cr_error *err)
{
    for (int i = CR_LOG_DEBUG; i <= CR_LOG_ERROR; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (enum cr_log_level)i;
            return true;
        }
    }
    return cr_error_set(err, CR_ERR_INVALID, "log level '%s' is not one of debug, info, warn, error", text);
}

/* RFC 8259, section 7. */
static void put_quoted(struct cr_buf *line, const char *text)
{
    cr_buf_puts(line, "\"");
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            cr_buf_printf(line, "\\%c", c);
        else if (c < 0x20)
            cr_buf_printf(line, "\\u%04x", c);
        else
            cr_buf_printf(line, "%c", c);
    }
    cr_buf_puts(line, "\"");
}

static void put_field(struct cr_buf *line, const char *key, const char *value)
{
    cr_buf_puts(line, ",");
    put_quoted(line, key);
    cr_buf_puts(line, ":");
    put_quoted(line, value);
}

void cr_log_fields(enum cr_log_level level, const char *msg, const struct cr_log_field *fields, size_t count)
{
    if ((int)level < atomic_load(&threshold))
        return;
    char ts[CR_TIME_TEXT];
    cr_time_format_micro(cr_clock_wall_ms(), ts);
    CR_CLEANUP(cr_buf) struct cr_buf line = CR_BUF_INIT(0);
    cr_buf_printf(&line, "{\"ts\":\"%s\",\"level\":\"%s\",\"msg\":", ts, level_names[level]);
    put_quoted(&line, msg);
    for (size_t i = 0; i < count; i++)
        if (fields[i].value)
            put_field(&line, fields[i].key, fields[i].value);
    cr_buf_puts(&line, "}\n");
    /* One write per line: lines of several threads do not mix. */
    ssize_t ignored = write(STDERR_FILENO, line.data, line.len);
    (void)ignored;
}
