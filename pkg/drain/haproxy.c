/* HAProxy's runtime API (management.txt, "Unix Socket commands").
 *
 * Only SIGUSR1 makes a soft stop of the whole process. "shutdown frontend", of one frontend after the other, does the
 * same to whom it serves: the listener is closed, the next answer on each HTTP/1 connection says "Connection: close",
 * HTTP/2 connections get a GOAWAY with their next frame, requests and TCP sessions go on to their end. Unlike with
 * SIGUSR1 connections that are idle stay open until they are used once more or "timeout http-keep-alive" is over, so
 * that no request is lost that is on its way; and the process stays, so that what is left can be counted to the end.
 *
 * "show stat" has frontends that were shut down from 2.5 on (07954fb06). */
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/text.h"
#include "drain/drain_memory.h"
#include "drain/haproxy_stats.h"
#include "drain/strategy.h"
#include "sys/proc_find.h"
#include "wire/connection.h"

enum {
    ANSWER_MAX = 8 * 1024 * 1024, /* some 300 bytes a frontend */
    COMMANDS_MAX = 8 * 1024,      /* a line must fit into tune.bufsize, 16 KiB by default */
    SHOWN = 120,
};

/* No servers and backends. */
static const char show_frontends[] = "show info;show stat -1 1 -1\n";
static const char unknown_command[] = "Unknown command";

/* --- the socket --- */

/* Remembers the owner of the socket, when it is a Unix socket and in our namespace: the process that has called
 * listen(2), the master. */
static void remember_process(struct cr_strvec *memory, int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    struct cr_proc process;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid > 0 && cr_proc_read(peer.pid, &process))
        cr_drain_memory_add_process(memory, &process);
}

/* The whole answer is in connection->received. A connection has one line of commands, and ends. */
static bool ask(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, const char *commands,
                struct cr_connection *connection, struct cr_error *err)
{
    if (!cr_connection_open(target->address, attempt->cancel_fd, attempt->deadline_ms, connection, err))
        return false;
    connection->received.max = ANSWER_MAX;
    bool ok = cr_connection_send(connection, commands, strlen(commands), err);
    /* The master process does not end the connection after such an answer. */
    while (ok && !connection->ended && !cr_starts_with(cr_buf_text(&connection->received), unknown_command))
        ok = cr_connection_receive(connection, err);
    if (ok && cr_starts_with(cr_buf_text(&connection->received), unknown_command))
        ok = cr_error_set(err, CR_ERR_INVALID,
                          "%s does not know HAProxy's \"show stat\" and \"shutdown frontend\": is it the socket of the "
                          "master process (-S)? Name the \"stats socket\" of the global section",
                          target->address);
    return ok;
}

/* *reached: a process has taken the connection; may be NULL. */
static bool look(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_strvec *memory,
                 struct cr_haproxy_stats *out, bool *reached, struct cr_error *err)
{
    CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
    bool answered = ask(target, attempt, show_frontends, &connection, err);
    if (reached)
        *reached = connection.fd >= 0;
    if (!answered)
        return false;
    remember_process(memory, connection.fd);
    return cr_haproxy_stats_read(cr_buf_text(&connection.received), &target->ignored, out, err) ||
           cr_error_wrap(err, "%s", target->address);
}

/* --- begin --- */

/* As many as fit into a line, from *at on. */
static void add_commands(const struct cr_strvec *frontends, size_t *at, struct cr_buf *out)
{
    while (*at < frontends->len && out->len < COMMANDS_MAX)
        cr_buf_printf(out, "%sshutdown frontend %s", out->len ? ";" : "", frontends->items[(*at)++]);
    cr_buf_puts(out, "\n");
}

/* What it answers in words is kept for the error, when one is needed: whether it has worked is seen afterwards. */
static bool shut_down(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                      const struct cr_strvec *frontends, struct cr_buf *said, struct cr_error *err)
{
    for (size_t at = 0; at < frontends->len;) {
        CR_CLEANUP(cr_connection) struct cr_connection connection = {.fd = -1};
        CR_CLEANUP(cr_buf) struct cr_buf commands = {0};
        add_commands(frontends, &at, &commands);
        if (!ask(target, attempt, cr_buf_text(&commands), &connection, err))
            return false;
        const char *words = cr_buf_text(&connection.received) + strspn(cr_buf_text(&connection.received), "\n");
        cr_buf_printf(said, "%.*s", (int)strcspn(words, "\n"), words);
    }
    return true;
}

static bool refused(const struct cr_drain_target *target, const char *frontend, const char *said, struct cr_error *err)
{
    cr_autofree char *words = cr_text_clip(said, SHOWN);
    if (strstr(said, "ermission denied"))
        return cr_error_set(err, CR_ERR_FORBIDDEN, "HAProxy at %s: %s: its socket needs \"level admin\"",
                            target->address, words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "HAProxy at %s has not shut down its frontend %s: %s", target->address,
                        frontend, words[0] ? words : "it does not say why");
}

static void remember_frontends(struct cr_strvec *memory, const struct cr_strvec *frontends)
{
    for (size_t i = 0; memory && i < frontends->len; i++) {
        cr_autofree char *text = cr_asprintf("frontend %s", frontends->items[i]);
        cr_strvec_add_unique(memory, text);
    }
}

static bool begin(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt, struct cr_error *err)
{
    CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats before = {0};
    CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats after = {0};
    CR_CLEANUP(cr_buf) struct cr_buf said = {0};
    if (!look(target, attempt, target->memory, &before, NULL, err))
        return false;
    if (!before.frontends.len)
        return cr_error_set(err, CR_ERR_INVALID,
                            "HAProxy at %s has no frontend but those whose connections are not counted: name fewer "
                            "with --ignore-listener",
                            target->address);
    remember_frontends(target->memory, &before.frontends);
    if (!shut_down(target, attempt, &before.running, &said, err) || !look(target, attempt, NULL, &after, NULL, err))
        return false;
    return !after.running.len || refused(target, after.running.items[0], cr_buf_text(&said), err);
}

/* --- count --- */

/* Before 2.5 they are not shown any more, and with them the connections that they still have. */
static bool all_are_shown(const struct cr_drain_target *target, const struct cr_haproxy_stats *stats,
                          struct cr_error *err)
{
    static const char prefix[] = "frontend ";
    for (size_t i = 0; target->memory && i < target->memory->len; i++) {
        const char *text = target->memory->items[i];
        if (cr_starts_with(text, prefix) && !cr_strvec_has(&stats->frontends, text + strlen(prefix)))
            return cr_error_set(err, CR_ERR_INVALID,
                                "HAProxy at %s no longer shows its %s, so that nobody knows who is still connected: "
                                "this needs HAProxy 2.5 or later",
                                target->address, text);
    }
    return stats->frontends.len ||
           cr_error_set(err, CR_ERR_INVALID, "HAProxy at %s shows no frontend", target->address);
}

/* Workers from before a reload answer at no socket, and are there as long as they have clients; the number of these
 * clients is not known. Where the processes of HAProxy are not to be seen, these workers are not either. */
static bool old_workers_are_gone(const struct cr_drain_target *target, pid_t pid, struct cr_error *err)
{
    CR_CLEANUP(cr_procs) struct cr_procs workers = {0};
    struct cr_proc worker;
    struct cr_proc master;
    if (!cr_proc_read(pid, &worker) || !cr_streq(worker.name, "haproxy") || !cr_proc_read(worker.parent, &master) ||
        !cr_streq(master.name, worker.name))
        return true;
    if (!cr_proc_children(master.pid, &workers, err))
        return false;
    for (size_t i = 0; i < workers.len; i++)
        if (workers.items[i].pid != pid && cr_streq(workers.items[i].name, worker.name))
            return cr_error_set(err, CR_ERR_TRANSIENT,
                                "HAProxy at %s was reloaded, and its process of before (%d) still has clients, which "
                                "cannot be counted",
                                target->address, (int)workers.items[i].pid);
    return true;
}

static bool count_frontends(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                            struct cr_drain_count *out, bool *reached, struct cr_error *err)
{
    CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats stats = {0};
    if (!look(target, attempt, NULL, &stats, reached, err) || !all_are_shown(target, &stats, err))
        return false;
    if (stats.running.len)
        return cr_error_set(err, CR_ERR_CONFLICT,
                            "HAProxy at %s has its frontend %s open again: it was reloaded in the midst of the drain, "
                            "and who is connected to the old process cannot be seen",
                            target->address, stats.running.items[0]);
    if (!old_workers_are_gone(target, stats.pid, err))
        return false;
    *out = (struct cr_drain_count){.open = stats.open};
    return true;
}

/* That nothing answers at the socket is no proof of the end of HAProxy; that its process is gone, too, is. Another
 * process that answers there may be its successor, and has clients. */
static bool count(const struct cr_drain_target *target, const struct cr_drain_attempt *attempt,
                  struct cr_drain_count *out, struct cr_error *err)
{
    struct cr_error why = {0};
    bool reached = false;
    if (count_frontends(target, attempt, out, &reached, &why))
        return true;
    if (!reached && cr_drain_memory_has_ended(target->memory)) {
        *out = (struct cr_drain_count){.ended = true};
        return true;
    }
    return cr_error_set(err, why.kind, "%s", why.text);
}

static bool prepare(struct cr_drain_target *target, struct cr_error *err)
{
    return target->address ||
           cr_error_set(err, CR_ERR_INVALID,
                        "--proxy haproxy needs --admin-address: the path of its \"stats socket\" with \"level admin\"");
}

const struct cr_drain_strategy cr_drain_haproxy = {
    .name = "haproxy",
    .begins = "shuts down HAProxy's frontends",
    .prepare = prepare,
    .begin = begin,
    .count = count,
};
