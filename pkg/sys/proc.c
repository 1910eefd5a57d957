#include "sys/proc.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"

/* Ticks of 2,900 years: no kernel writes more, and the milliseconds of more cannot be counted. */
#define STARTED_MAX ((unsigned long long)INT64_MAX / 1000000)

/* The fields of /proc/<pid>/stat behind the name, which is in parentheses and may hold any character: state is the
 * first of them, starttime the 20th. */
static bool parse_stat(const char *text, struct cr_proc *out)
{
    char state = 0;
    int parent = 0;
    unsigned long long started = 0;
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (!open || !close || close < open ||
        sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
               &parent, &started) != 3 ||
        started > STARTED_MAX)
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1), open + 1);
    out->parent = parent;
    out->started = started;
    return state != 'Z' && state != 'X';
}

bool cr_proc_read(pid_t pid, struct cr_proc *out)
{
    return cr_proc_read_in("/proc", pid, out);
}

bool cr_proc_read_in(const char *proc, pid_t pid, struct cr_proc *out)
{
    char text[1024];
    cr_autofree char *path = cr_asprintf("%s/%d/stat", proc, (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    *out = (struct cr_proc){.pid = pid};
    return len && parse_stat(text, out);
}

bool cr_proc_is_there(const struct cr_proc *process)
{
    struct cr_proc now;
    return cr_proc_read(process->pid, &now) && now.started == process->started;
}

/* Not the owner of the folder: that is root for a process that has changed its user by itself (proc(5), dumpable). */
bool cr_proc_user_in(const char *proc, pid_t pid, uid_t *out)
{
    char line[256];
    unsigned user = 0;
    bool found = false;
    cr_autofree char *path = cr_asprintf("%s/%d/status", proc, (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "Uid: %u", &user) == 1;
    if (file)
        fclose(file);
    *out = user;
    return found;
}

bool cr_proc_user(pid_t pid, uid_t *out)
{
    return cr_proc_user_in("/proc", pid, out);
}

/* The masks of the first thread: a program that takes signals by sigwait has blocked them there. */
bool cr_proc_takes(pid_t pid, int signal)
{
    char path[64];
    char line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        unsigned long long found = 0;
        char kind[4];
        if (sscanf(line, "Sig%3[a-zA-Z]: %llx", kind, &found) == 2 && (cr_streq(kind, "Blk") || cr_streq(kind, "Cgt")))
            mask |= found;
    }
    fclose(file);
    return mask >> (signal - 1) & 1;
}

int64_t cr_proc_booted_wall_ms(void)
{
    return cr_clock_wall_ms() - cr_clock_boot_ms();
}

int64_t cr_proc_started_wall_ms(const struct cr_proc *process)
{
    int64_t ticks = sysconf(_SC_CLK_TCK);
    return cr_proc_booted_wall_ms() + (int64_t)process->started * 1000 / ticks;
}
