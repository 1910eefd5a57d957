#include "sys/proc_find.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/file.h"

enum {
    PID_FILE_MAX = 4096, /* PostgreSQL's has some lines more */
    /* A pid file is written by a process that is there already: ticks and the clocks' reading are as coarse as this. */
    STALE_MS = 2000,
};

static const char own_proc[] = "/proc";

/* The file of another user's process cannot be read: then the kernel's name alone counts. */
static bool has_file(const char *proc, pid_t pid, const char *name)
{
    char file[4096];
    cr_autofree char *path = cr_asprintf("%s/%d/exe", proc, (int)pid);
    ssize_t len = readlink(path, file, sizeof file - 1);
    if (len <= 0)
        return false;
    file[len] = '\0';
    const char *base = strrchr(file, '/');
    return base && cr_streq(base + 1, name);
}

static bool is_named(const char *proc, const struct cr_proc *process, const char *name)
{
    return strncmp(process->name, name, CR_PROC_NAME - 1) == 0 || has_file(proc, process->pid, name);
}

/* --- all of them --- */

void cr_procs_dispose(struct cr_procs *procs)
{
    free(procs->items);
    *procs = (struct cr_procs){0};
}

/* What is looked for. */
struct wanted {
    const char *proc; /* the folder; our own process has a number in ours only */
    const char *name; /* NULL: any */
    pid_t parent;     /* 0: any */
};

static void add_if_wanted(struct cr_procs *to, const char *entry, const struct wanted *wanted)
{
    char *end = NULL;
    long pid = strtol(entry, &end, 10);
    struct cr_proc process;
    if (*end || pid < 1 || (pid == getpid() && cr_streq(wanted->proc, own_proc)) ||
        !cr_proc_read_in(wanted->proc, (pid_t)pid, &process))
        return;
    if ((wanted->name && !is_named(wanted->proc, &process, wanted->name)) ||
        (wanted->parent && process.parent != wanted->parent))
        return;
    to->items = cr_reallocarray(to->items, to->len + 1, sizeof *to->items);
    to->items[to->len++] = process;
}

static bool list(const struct wanted *wanted, struct cr_procs *out, struct cr_error *err)
{
    DIR *folder = opendir(wanted->proc);
    if (!folder)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s: %s", wanted->proc, strerror(errno));
    for (const struct dirent *entry = NULL; (entry = readdir(folder));)
        add_if_wanted(out, entry->d_name, wanted);
    closedir(folder);
    return true;
}

bool cr_proc_children(pid_t parent, struct cr_procs *out, struct cr_error *err)
{
    return list(&(struct wanted){.proc = own_proc, .parent = parent}, out, err);
}

bool cr_procs_named(const char *proc, const char *name, struct cr_procs *out, struct cr_error *err)
{
    return list(&(struct wanted){.proc = proc, .name = name}, out, err);
}

/* --- by its name --- */

static bool has_parent_in(const struct cr_procs *all, const struct cr_proc *process)
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
    CR_CLEANUP(cr_procs) struct cr_procs found = {0};
    const struct cr_proc *first = NULL;
    if (!list(&(struct wanted){.proc = own_proc, .name = name}, &found, err))
        return false;
    for (size_t i = 0; i < found.len; i++) {
        if (has_parent_in(&found, &found.items[i]))
            continue;
        if (first)
            return cr_error_set(err, CR_ERR_CONFLICT,
                                "several processes are named '%s' (%d, %d), and none is the parent of the others: name "
                                "the one by its pid file",
                                name, (int)first->pid, (int)found.items[i].pid);
        first = &found.items[i];
    }
    if (!first)
        return not_found(name, err);
    *out = *first;
    return true;
}

/* --- by a file --- */

static bool parse_pid(const char *path, const char *text, pid_t *pid, struct cr_error *err)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number <= 0 || number > INT32_MAX)
        return cr_error_set(err, CR_ERR_NOT_FOUND, "%s holds no pid on its first line", path);
    *pid = (pid_t)number;
    return true;
}

static bool read_pid_file(const char *path, pid_t *pid, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!cr_file_read_regular(path, PID_FILE_MAX, &text, err))
        return false;
    cr_buf_puts(&text, ""); /* an empty file has a text, too */
    const char *content = cr_buf_text(&text) + strspn(cr_buf_text(&text), " \t");
    char line[32];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(content, " \t\r\n"), content);
    return parse_pid(path, line, pid, err);
}

/* A pid file that its program left behind may name another process by now. */
static bool is_stale(const char *path, int64_t booted_ms, const struct cr_proc *process)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return true;
    int64_t written_ms = info.st_mtim.tv_sec * 1000LL + info.st_mtim.tv_nsec / 1000000;
    int64_t set_forward_ms = cr_proc_booted_wall_ms() - booted_ms;
    int64_t started_ms = cr_proc_started_wall_ms(process) - (set_forward_ms > 0 ? set_forward_ms : 0);
    return started_ms > written_ms + STALE_MS;
}

bool cr_proc_find_by_file(const char *path, int64_t booted_ms, struct cr_proc *out, struct cr_error *err)
{
    pid_t pid = 0;
    if (!read_pid_file(path, &pid, err))
        return false;
    if (pid == getpid())
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s says pid %d, which is this very process: set shareProcessNamespace: true in the pod's "
                            "spec, so that both mean the same by a number",
                            path, (int)pid);
    if (!cr_proc_read(pid, out))
        return cr_error_set(err, CR_ERR_NOT_FOUND,
                            "there is no process %d, which %s names: is the program running, and does the pod have "
                            "shareProcessNamespace: true?",
                            (int)pid, path);
    if (is_stale(path, booted_ms, out))
        return cr_error_set(err, CR_ERR_NOT_FOUND,
                            "process %d (%s) has started after %s was written: the file is of a program that has ended",
                            (int)pid, out->name, path);
    return true;
}
