#include "reloader/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"

/* The fields of /proc/<pid>/stat behind the name, which is in parentheses and may hold any character: state is the
 * first of them, starttime the 20th. */
static bool parse_stat(const char *text, struct cr_proc *out)
{
    char state = 0;
    int parent = 0;
    unsigned long long started = 0;
    const char *open = strchr(text, '(');
    const char *close = strrchr(text, ')');
    if (!open || !close ||
        sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
               &parent, &started) != 3)
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1), open + 1);
    out->parent = parent;
    out->started = started;
    return state != 'Z' && state != 'X';
}

bool cr_proc_read(pid_t pid, struct cr_proc *out)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    *out = (struct cr_proc){.pid = pid};
    return len && parse_stat(text, out);
}

/* Not the owner of the folder: that is root for who has changed its user by itself (proc(5), dumpable). */
bool cr_proc_user(pid_t pid, uid_t *out)
{
    char path[64];
    char line[256];
    unsigned user = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "Uid: %u", &user) == 1;
    if (file)
        fclose(file);
    *out = user;
    return found;
}

/* Of another user's process it cannot be read: then the kernel's name alone counts. */
static bool has_file(pid_t pid, const char *name)
{
    char path[64];
    char file[4096];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(path, file, sizeof file - 1);
    if (len <= 0)
        return false;
    file[len] = '\0';
    const char *base = strrchr(file, '/');
    return base && cr_streq(base + 1, name);
}

static bool is_named(const struct cr_proc *process, const char *name)
{
    return strncmp(process->name, name, CR_PROC_NAME - 1) == 0 || has_file(process->pid, name);
}

struct matches {
    struct cr_proc *items;
    size_t len;
};

static void add_if_named(struct matches *to, const char *entry, const char *name)
{
    char *end = NULL;
    long pid = strtol(entry, &end, 10);
    struct cr_proc process;
    if (*end || pid <= 1 || pid == getpid() || !cr_proc_read((pid_t)pid, &process) || !is_named(&process, name))
        return;
    to->items = cr_reallocarray(to->items, to->len + 1, sizeof *to->items);
    to->items[to->len++] = process;
}

static struct matches find_all(const char *name)
{
    struct matches found = {0};
    DIR *folder = opendir("/proc");
    if (!folder)
        return found;
    for (const struct dirent *entry = NULL; (entry = readdir(folder));)
        add_if_named(&found, entry->d_name, name);
    closedir(folder);
    return found;
}

static bool has_parent_in(const struct matches *all, const struct cr_proc *process)
{
    for (size_t i = 0; i < all->len; i++)
        if (all->items[i].pid == process->parent)
            return true;
    return false;
}

static bool not_found(const char *name, struct cr_error *err)
{
    /* Alone in its namespace a container's process has pid 1 itself; else the pod's pause container has. */
    if (getpid() == 1)
        return cr_error_set(err, CR_ERR_NOT_FOUND,
                            "no process is named '%s': this container sees its own processes only. Set "
                            "shareProcessNamespace: true in the pod's spec",
                            name);
    return cr_error_set(err, CR_ERR_NOT_FOUND, "no process is named '%s': is it running?", name);
}

bool cr_proc_find(const char *name, struct cr_proc *out, struct cr_error *err)
{
    struct matches found = find_all(name);
    cr_autofree struct cr_proc *items = found.items;
    const struct cr_proc *first = NULL;
    for (size_t i = 0; i < found.len; i++) {
        if (has_parent_in(&found, &items[i]))
            continue;
        if (first)
            return cr_error_set(err, CR_ERR_CONFLICT,
                                "several processes are named '%s' (%d, %d), and none is the parent of the others: name "
                                "the one by its pidFile",
                                name, (int)first->pid, (int)items[i].pid);
        first = &items[i];
    }
    if (!first)
        return not_found(name, err);
    *out = *first;
    return true;
}

/* Of the first thread: who takes signals by sigwait has blocked them there. */
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

int64_t cr_proc_started_wall_ms(const struct cr_proc *process)
{
    int64_t ticks = sysconf(_SC_CLK_TCK);
    return cr_clock_wall_ms() - cr_clock_boot_ms() + (int64_t)process->started * 1000 / ticks;
}
