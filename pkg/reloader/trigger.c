#include "reloader/trigger.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "reloader/trigger_internal.h"

int cr_trigger_left_ms(const struct cr_trigger_job *job)
{
    int64_t left = job->deadline_ms - cr_clock_monotonic_ms();
    return left > 1 ? (int)left : 1;
}

/* --- names --- */

static void name_signal(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    const char *name = sigabbrev_np(spec->signal.number);
    const char *process = spec->signal.process;
    snprintf(out, size, "SIG%s to %s%s", name ? name : "?", process ? "" : "the process of ",
             cr_or_empty(process ? process : spec->signal.pid_file));
}

static void name_http(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    size_t len = strcspn(spec->http.url, "?#");
    snprintf(out, size, "%s %.*s", spec->http.method ? spec->http.method : "POST", (int)len, spec->http.url);
}

static void name_socket(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "socket %s", spec->socket.address);
}

static void name_command(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "command %s", spec->command.argv.len ? spec->command.argv.items[0] : "");
}

static void name_haproxy(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "HAProxy at %s", spec->haproxy.address);
}

static void name_redis(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    snprintf(out, size, "Redis at %s", spec->redis.address);
}

/* --- kinds --- */

static const struct {
    void (*name)(const struct cr_trigger_spec *spec, char *out, size_t size);
    bool (*pull)(const struct cr_trigger_job *job, struct cr_error *err);
} kinds[] = {
    [CR_TRIGGER_SIGNAL] = {name_signal, cr_trigger_signal},
    [CR_TRIGGER_HTTP] = {name_http, cr_trigger_http},
    [CR_TRIGGER_SOCKET] = {name_socket, cr_trigger_socket},
    [CR_TRIGGER_COMMAND] = {name_command, cr_trigger_command},
    [CR_TRIGGER_HAPROXY] = {name_haproxy, cr_trigger_haproxy},
    [CR_TRIGGER_REDIS] = {name_redis, cr_trigger_redis},
};

void cr_trigger_name(const struct cr_trigger_spec *spec, char *out, size_t size)
{
    kinds[spec->type].name(spec, out, size);
}

bool cr_trigger_pull(const struct cr_trigger_spec *spec, const struct cr_reloader_material *material,
                     const struct cr_reading *reading, int cancel_fd, struct cr_error *err)
{
    const struct cr_trigger_job job = {.spec = spec,
                                       .material = material,
                                       .reading = reading,
                                       .cancel_fd = cancel_fd,
                                       .deadline_ms = cr_clock_monotonic_ms() + spec->timeout_ms};
    return kinds[spec->type].pull(&job, err);
}
