#include "hook.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "drain/ready_file.h"

enum { EXIT_DRAINED = 0, EXIT_NOT_DRAINED = 1, EXIT_WRONG_FLAGS = 2 };

static int cancel_fd = -1;
static volatile sig_atomic_t signals;

/* poll and write are allowed in a handler (signal-safety(7)). */
static void say(const char *line, size_t len)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&ready, 1, 0) > 0) /* there may be no reader, and the drain has its time */
        (void)!write(STDERR_FILENO, line, len);
}

/* Whatever it interrupts is not disturbed. */
static void on_signal(int signal)
{
    static const char first[] = "{\"level\":\"warn\",\"msg\":\"the drain goes on; a second signal ends it\"}\n";
    static const uint64_t one = 1;
    int interrupted = errno;
    (void)signal;
    if (signals++)
        (void)!write(cancel_fd, &one, sizeof one);
    else
        say(first, sizeof first - 1);
    errno = interrupted;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (cancel_fd < 0)
        return; /* then the first one ends it, as it does any program */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

void hook_prepare(const struct cr_drain_flags *flags)
{
    struct cr_error err = {0};
    if (flags->ignored.kind != CR_ERR_NONE)
        cr_log(CR_LOG_WARN, "a flag is wrong and not taken", {"error", flags->ignored.text});
    if (flags->ready_file && !cr_ready_file_remove(flags->ready_file, &err))
        cr_log(CR_LOG_WARN, "the ready file of an earlier drain stays", {"error", err.text});
}

enum cr_drain_result hook_drain(const struct cr_drain_flags *flags)
{
    struct cr_drain_progress last = {0};
    catch_signals();
    struct cr_drain_options options = {.strategy = flags->strategy,
                                       .target = flags->target,
                                       .rules = flags->rules,
                                       .attempt_ms = flags->attempt_ms,
                                       .cancel_fd = cancel_fd};
    return cr_drain_run(&options, &last);
}

int hook_end(const struct cr_drain_flags *flags, enum cr_drain_result result)
{
    struct cr_error err = {0};
    if (result == CR_DRAIN_RESULT_CANCELLED)
        return EXIT_NOT_DRAINED;
    if (flags->ready_file && !cr_ready_file_write(flags->ready_file, cr_drain_result_word(result), &err)) {
        cr_log(CR_LOG_ERROR, "the ready file cannot be written: who waits for it is not told", {"error", err.text});
        return EXIT_NOT_DRAINED;
    }
    if (result != CR_DRAIN_RESULT_DRAINED)
        return EXIT_NOT_DRAINED;
    return flags->ignored.kind == CR_ERR_NONE ? EXIT_DRAINED : EXIT_WRONG_FLAGS;
}
