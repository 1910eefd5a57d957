/* nginx by its signals (nginx.org/en/docs/control.html): at SIGQUIT the master closes its listening sockets and has its
 * workers end gracefully: idle keep-alive connections are closed, requests and sessions of the stream module go on to
 * their end (or to worker_shutdown_timeout), each worker ends with its last connection, and the master with its last
 * worker.
 *
 * So it has drained when its processes are gone, and not before: a worker that is there has something left, were it
 * QUIC, since no table of the kernel has its connections. The connections at its ports, which are noted before SIGQUIT
 * since they are closed by it, say how many there are. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "drain/drain_memory.h"
#include "drain/sockets.h"
#include "drain/strategy.h"
#include "sys/proc_find.h"
#include "sys/proc_signal.h"

/* In memory: why its ports are not there. */
static const char ports_unknown[] = "unknown: ";

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    (void)err;
    if (!target->process)
        target->process = "nginx";
    return true;
}

/* A file that seems older than its process may be so because the clock was set meanwhile: it is believed as well when
 * its process is the one that has nginx's name. */
static bool find_by_file(const struct cr_drain_target *target, struct cr_proc *out, struct cr_error *err)
{
    struct cr_error why = {0};
    struct cr_proc named;
    *out = (struct cr_proc){0};
    if (cr_proc_find_by_file(target->pid_file, cr_proc_booted_wall_ms(), out, &why))
        return true;
    if (cr_proc_find(target->process, &named, NULL) && named.pid == out->pid)
        return true;
    return cr_error_set(err, why.kind, "%s", why.text);
}

static bool find_master(const struct cr_drain_target *target, struct cr_proc *out, struct cr_error *err)
{
    return target->pid_file ? find_by_file(target, out, err) : cr_proc_find(target->process, out, err);
}

/* --- begin --- */

/* nginx drains as well when its ports are not known: then only its end is known. */
static void remember_ports(struct cr_strvec *memory, const struct cr_proc *master)
{
    struct cr_error err = {0};
    if (!memory || cr_sockets_listeners(master->pid, memory, &err))
        return;
    cr_autofree char *text = cr_asprintf("%s%s", ports_unknown, err.text);
    cr_strvec_add(memory, text);
}

static bool remember_processes(struct cr_strvec *memory, const struct cr_proc *master, struct cr_error *err)
{
    CR_CLEANUP(cr_procs) struct cr_procs workers = {0};
    if (!cr_proc_children(master->pid, &workers, err))
        return false;
    cr_drain_memory_add_process(memory, master);
    for (size_t i = 0; i < workers.len; i++)
        if (cr_streq(workers.items[i].name, master->name))
            cr_drain_memory_add_process(memory, &workers.items[i]);
    return true;
}

/* With pid 1 its namespace ends, and with that all who are in it. */
static void log_coming_end(const struct cr_proc *master)
{
    if (master->pid == 1)
        cr_log(CR_LOG_INFO, "nginx is the first process of this container: when it has drained it ends, and this hook "
                            "with it; that the kubelet then reports FailedPreStopHook (exit code 137) is no failure");
}

static bool begin(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    struct cr_proc master;
    (void)attempt; /* nothing here waits */
    if (!find_master(target, &master, err))
        return false;
    if (target->memory)
        cr_strvec_dispose(target->memory); /* of an attempt that failed */
    remember_ports(target->memory, &master);
    if (!remember_processes(target->memory, &master, err))
        return false;
    log_coming_end(&master);
    /* Those that it had just started, for a reload, are among its children afterwards. */
    return cr_proc_signal(&master, SIGQUIT, err) && remember_processes(target->memory, &master, err);
}

/* --- count --- */

static const char *why_unknown(const struct cr_strvec *memory)
{
    for (size_t i = 0; memory && i < memory->len; i++)
        if (cr_starts_with(memory->items[i], ports_unknown))
            return memory->items[i] + strlen(ports_unknown);
    return memory && memory->len ? NULL : "it was not begun here";
}

static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    struct cr_proc alive;
    uint64_t open = 0;
    (void)attempt;
    if (cr_drain_memory_has_ended(target->memory)) {
        *out = (struct cr_drain_count){.ended = true};
        return true;
    }
    const char *unknown = why_unknown(target->memory);
    if (unknown)
        return cr_error_set(err, CR_ERR_FORBIDDEN,
                            "how many are still connected to nginx is not known (%s): its end is waited for", unknown);
    if (!cr_drain_memory_find_alive(target->memory, &alive))
        return cr_error_set(err, CR_ERR_TRANSIENT, "nginx has just ended");
    if (!cr_sockets_count(alive.pid, target->memory, &open, err))
        return false;
    *out = (struct cr_drain_count){.open = open ? open : 1}; /* it is there, so something is left */
    return true;
}

const struct cr_drain_strategy cr_drain_nginx = {
    .name = "nginx",
    .begins = "tells nginx to end gracefully (SIGQUIT)",
    .prepare = prepare,
    .begin = begin,
    .count = count,
};
