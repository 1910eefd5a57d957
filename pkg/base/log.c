#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/text.h"

static _Atomic int threshold = CR_LOG_INFO;

static int copy_fd = -1;
static bool never_waits;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void cr_log_set_level(enum cr_log_level level)
{
    atomic_store(&threshold, (int)level);
}

void cr_log_copy_to(int fd)
{
    copy_fd = fd;
}

void cr_log_never_wait(void)
{
    never_waits = true;
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

static void put_field(struct cr_buf *line, const struct cr_log_field *field)
{
    cr_buf_puts(line, ",");
    cr_text_quote(field->key, line);
    cr_buf_puts(line, ":");
    if (field->json)
        cr_buf_puts(line, field->value);
    else
        cr_text_quote(field->value, line);
}

/* What is ready takes PIPE_BUF bytes at least (pipe(7)), and of more a part may have to wait; to set O_NONBLOCK would
 * set it for all who have the same standard error. */
static bool takes_at_once(int fd, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return len <= PIPE_BUF && poll(&ready, 1, 0) != 0;
}

/* One write per line: lines of several threads do not mix. */
static void write_line(int fd, const struct cr_buf *line)
{
    if (never_waits && !takes_at_once(fd, line->len))
        return;
    ssize_t ignored = write(fd, line->data, line->len);
    (void)ignored;
}

void cr_log_fields(enum cr_log_level level, const char *msg, const struct cr_log_field *fields, size_t count)
{
    if ((int)level < atomic_load(&threshold))
        return;
    char ts[CR_TIME_TEXT];
    cr_time_format_micro(cr_clock_wall_ms(), ts);
    CR_CLEANUP(cr_buf) struct cr_buf line = CR_BUF_INIT(0);
    cr_buf_printf(&line, "{\"ts\":\"%s\",\"level\":\"%s\",\"msg\":", ts, level_names[level]);
    cr_text_quote(msg, &line);
    for (size_t i = 0; i < count; i++)
        if (fields[i].value)
            put_field(&line, &fields[i]);
    cr_buf_puts(&line, "}\n");
    write_line(STDERR_FILENO, &line);
    if (copy_fd >= 0)
        write_line(copy_fd, &line);
}
