/* certroll-shutdown-manager: flags and wiring only. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/log.h"
#include "drain/flags.h"
#include "drain/manager.h"
#include "hook.h"
#include "install.h"
#include "metrics/process_metrics.h"
#include "start.h"

enum { EXIT_NOT_DONE = 1, EXIT_USAGE = 2 };

/* What runs for the time of a command, or of a pod. */
struct service {
    const struct cr_drain_flags *flags;
    struct cr_loop *loop;
    struct cr_drain_manager *manager;
    int signals;
    enum cr_drain_result result; /* of shutdown */
};

/* --- the log --- */

static bool is_stderr(int fd)
{
    struct stat a;
    struct stat b;
    return fstat(fd, &a) == 0 && fstat(STDERR_FILENO, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The file may be the pipe of the container's log: a slow reader must not hold up a drain. */
static int open_log(const char *path)
{
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644) : -1;
    if (fd >= 0 && is_stderr(fd)) {
        close(fd);
        return -1; /* each line once */
    }
    if (path && fd < 0)
        cr_log(CR_LOG_DEBUG, "the log goes to standard error alone", {"file", path});
    cr_log_copy_to(fd);
    return fd;
}

/* --- with pages --- */

static void stop(void *arg)
{
    const struct service *service = arg;
    cr_loop_stop(service->loop);
}

/* The second signal is a person's: Kubernetes sends one, and then kills. */
static void on_terminate(void *arg)
{
    struct service *service = arg;
    bool again = service->signals++ > 0;
    if (again)
        stop(service);
    else if (service->flags->command == CR_DRAIN_COMMAND_SERVE)
        cr_drain_manager_finish(service->manager, stop, service);
    else
        cr_log(CR_LOG_WARN, "the drain goes on; a second signal ends it");
}

static void on_drained(void *arg, enum cr_drain_result result)
{
    struct service *service = arg;
    service->result = result;
    stop(service);
}

static bool listen_on(struct cr_http_server *server, const char *address, struct cr_error *err)
{
    char port[16];
    if (!cr_http_server_listen(server, address, err))
        return false;
    snprintf(port, sizeof port, "%d", cr_http_server_port(server));
    cr_log(CR_LOG_INFO, "serving", {"version", CERTROLL_VERSION}, {"address", address}, {"port", port});
    return true;
}

static bool run_service(const struct cr_drain_flags *flags, enum cr_drain_result *result, struct cr_error *err)
{
    struct service service = {.flags = flags, .result = CR_DRAIN_RESULT_CANCELLED};
    /* In the order in which they need each other; they go in the opposite one. */
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    CR_CLEANUP(cr_process_metrics) struct cr_process_metrics *process = cr_process_metrics_new(metrics);
    cr_metrics_set_build_info(metrics);
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    service.loop = loop;
    CR_CLEANUP(cr_http_server) struct cr_http_server *server = cr_http_server_new(loop);
    CR_CLEANUP(cr_drain_manager) struct cr_drain_manager *manager = cr_drain_manager_new(flags, loop, metrics);
    service.manager = manager;
    cr_loop_on_terminate(loop, on_terminate, &service);
    cr_drain_manager_serve(manager, server);
    if (!listen_on(server, flags->address, err))
        return false;
    if (flags->command == CR_DRAIN_COMMAND_SHUTDOWN)
        cr_drain_manager_begin(manager, on_drained, &service);
    cr_loop_run(loop);
    cr_log(CR_LOG_INFO, "no more pages");
    *result = service.result;
    return true;
}

/* --- commands; each gives the exit status --- */

static int serve(const struct cr_drain_flags *flags)
{
    struct cr_error err = {0};
    enum cr_drain_result ignored;
    if (run_service(flags, &ignored, &err))
        return 0;
    cr_log(CR_LOG_ERROR, "cannot serve", {"error", err.text});
    return EXIT_NOT_DONE;
}

static int drain(const struct cr_drain_flags *flags)
{
    struct cr_error err = {0};
    enum cr_drain_result result;
    hook_prepare(flags);
    if (flags->address && run_service(flags, &result, &err) && result != CR_DRAIN_RESULT_NONE)
        return hook_end(flags, result);
    /* Neither HTTP endpoints that cannot be served nor a thread that cannot be had prevent a drain. */
    if (flags->address)
        cr_log(CR_LOG_WARN, "no pages", {"error", *err.text ? err.text : NULL});
    return hook_end(flags, hook_drain(flags));
}

static int install(const struct cr_drain_flags *flags)
{
    struct cr_error err = {0};
    cr_autofree char *path = NULL;
    if (!install_program(flags->install_to, &path, &err)) {
        cr_log(CR_LOG_ERROR, "cannot install", {"error", err.text});
        return EXIT_NOT_DONE;
    }
    cr_log(CR_LOG_INFO, "installed", {"file", path}, {"version", CERTROLL_VERSION});
    return 0;
}

static int run(const struct cr_drain_flags *flags)
{
    cr_log_set_level(flags->log_level);
    cr_log_never_wait(); /* a drain has its time, whether its log is read or not */
    cr_autofd int log = open_log(flags->log_file);
    (void)log;
    switch (flags->command) {
    case CR_DRAIN_COMMAND_SERVE:
        return serve(flags);
    case CR_DRAIN_COMMAND_SHUTDOWN:
        return drain(flags);
    default:
        return install(flags);
    }
}

int main(int argc, char **argv)
{
    start_process();
    struct cr_error err = {0};
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    if (!cr_drain_flags_parse(argc, argv, &flags, &err)) {
        fprintf(stderr, "certroll-shutdown-manager: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (flags.help || flags.version) {
        fputs(flags.help ? cr_drain_flags_help : "certroll-shutdown-manager " CERTROLL_VERSION "\n", stdout);
        return 0;
    }
    return run(&flags);
}
