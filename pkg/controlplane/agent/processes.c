#include "controlplane/agent/processes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/agent/kubelet_files.h"
#include "sys/file.h"

static bool read_link(const char *path, char out[PATH_MAX])
{
    ssize_t len = readlink(path, out, PATH_MAX - 1);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

enum network { OURS, ANOTHER, UNSEEN };

/* Where the namespace itself may not be seen (without CAP_SYS_PTRACE; an AppArmor profile of containers takes that
 * right back towards the host's processes): each network has a /proc/<pid>/net of its own; any process may look at its
 * files, and no other network has their inodes. */
static enum network network_by_files(const struct cr_node_layout *layout, const struct cr_proc *process)
{
    struct stat own;
    struct stat its;
    cr_autofree char *path = cr_asprintf("%s/%d/net/dev", layout->proc, (int)process->pid);
    if (stat("/proc/self/net/dev", &own) != 0 || stat(path, &its) != 0)
        return UNSEEN;
    return own.st_ino == its.st_ino ? OURS : ANOTHER;
}

/* "net:[4026531840]" (namespaces(7)). */
static enum network network_of(const struct cr_node_layout *layout, const struct cr_proc *process)
{
    char own[PATH_MAX];
    char its[PATH_MAX];
    cr_autofree char *path = cr_asprintf("%s/%d/ns/net", layout->proc, (int)process->pid);
    if (read_link(path, its))
        return read_link("/proc/self/ns/net", own) && cr_streq(own, its) ? OURS : ANOTHER;
    return errno == EACCES || errno == EPERM ? network_by_files(layout, process) : ANOTHER /* it has ended */;
}

static int youngest_first(const void *a, const void *b)
{
    const struct cr_proc *x = a;
    const struct cr_proc *y = b;
    if (x->started != y->started)
        return x->started > y->started ? -1 : 1;
    return x->pid > y->pid ? -1 : x->pid < y->pid;
}

static const struct cr_proc *parent_in(const struct cr_procs *all, const struct cr_proc *process)
{
    for (size_t i = 0; i < all->len; i++)
        if (all->items[i].pid == process->parent)
            return &all->items[i];
    return NULL;
}

/* In the midst of execve(2) it has none. */
static bool has_own_words(const struct cr_node_layout *layout, const struct cr_proc *process,
                          const struct cr_proc *parent)
{
    CR_CLEANUP(cr_buf) struct cr_buf words = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf others = CR_BUF_INIT(0);
    struct cr_error err = {0};
    if (!cr_node_process_words(layout, process, &words, &err) || !words.len)
        return false;
    return !cr_node_process_words(layout, parent, &others, &err) || words.len != others.len ||
           memcmp(words.data, others.data, words.len) != 0;
}

/* Or it was when it was found, and has become another program or ended since. A program that a script of its name
 * starts has other words than the script, and is meant. */
static bool is_just_forked(const struct cr_node_layout *layout, const struct cr_procs *all,
                           const struct cr_proc *process)
{
    struct cr_proc now;
    const struct cr_proc *parent = parent_in(all, process);
    return parent && (!has_own_words(layout, process, parent) || !cr_proc_read_in(layout->proc, process->pid, &now) ||
                      !cr_streq(now.name, process->name));
}

static void drop_just_forked(const struct cr_node_layout *layout, struct cr_procs *found)
{
    struct cr_proc *kept = cr_calloc(found->len + 1, sizeof *kept);
    size_t len = 0;
    for (size_t i = 0; i < found->len; i++)
        if (!is_just_forked(layout, found, &found->items[i]))
            kept[len++] = found->items[i];
    free(found->items);
    *found = (struct cr_procs){.items = kept, .len = len};
}

bool cr_node_processes_find(const struct cr_node_layout *layout, const char *name, struct cr_procs *out,
                            struct cr_error *err)
{
    pid_t unseen = 0;
    size_t kept = 0;
    *out = (struct cr_procs){0};
    if (!cr_procs_named(layout->proc, name, out, err))
        return false;
    for (size_t i = 0; i < out->len; i++) {
        enum network network = layout->own_network_only ? network_of(layout, &out->items[i]) : OURS;
        if (network == OURS)
            out->items[kept++] = out->items[i];
        else if (network == UNSEEN)
            unseen = out->items[i].pid;
    }
    out->len = kept;
    drop_just_forked(layout, out);
    if (out->len)
        qsort(out->items, out->len, sizeof *out->items, youngest_first);
    if (kept || !unseen)
        return true;
    return cr_error_set(err, CR_ERR_FORBIDDEN,
                        "in which network process %d (%s) is cannot be seen: the agent needs CAP_SYS_PTRACE",
                        (int)unseen, name);
}

/* proc_sys_kernel(5). Without it pid and ticks have to do. */
static char *boot_id(const struct cr_node_layout *layout)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_autofree char *path = cr_asprintf("%s/sys/kernel/random/boot_id", layout->proc);
    struct cr_error err = {0};
    if (!cr_file_read(path, 128, &text, &err))
        return cr_strdup("0");
    return cr_strndup(cr_buf_text(&text), strcspn(cr_buf_text(&text), "\r\n"));
}

void cr_node_processes_set(const struct cr_node_layout *layout, const struct cr_proc *process,
                           struct cr_node_program *program)
{
    cr_autofree char *boot = boot_id(layout);
    program->running = true;
    program->process = *process;
    program->started_ms = cr_proc_started_wall_ms(process);
    free(program->identity);
    program->identity = cr_asprintf("%s-%d-%llu", boot, (int)process->pid, (unsigned long long)process->started);
}

/* The length of the boot's id, which may have a '-' itself, and the ticks. */
static bool read_identity(const char *identity, size_t *boot, unsigned long long *ticks)
{
    const char *last = identity ? strrchr(identity, '-') : NULL;
    const char *before = last ? memrchr(identity, '-', (size_t)(last - identity)) : NULL;
    if (!before)
        return false;
    *boot = (size_t)(before - identity);
    *ticks = strtoull(last + 1, NULL, 10);
    return true;
}

bool cr_node_process_began_after(const char *identity, const char *other)
{
    size_t boot, other_boot;
    unsigned long long ticks, other_ticks;
    if (!read_identity(identity, &boot, &ticks) || !read_identity(other, &other_boot, &other_ticks))
        return false;
    return boot != other_boot || memcmp(identity, other, boot) != 0 || ticks > other_ticks;
}

bool cr_node_process_words(const struct cr_node_layout *layout, const struct cr_proc *process, struct cr_buf *out,
                           struct cr_error *err)
{
    cr_autofree char *path = cr_asprintf("%s/%d/cmdline", layout->proc, (int)process->pid);
    return cr_file_read(path, CR_KUBELET_COMMAND_MAX, out, err);
}

char *cr_node_process_folder(const struct cr_node_layout *layout, const struct cr_proc *process)
{
    char folder[PATH_MAX];
    cr_autofree char *path = cr_asprintf("%s/%d/cwd", layout->proc, (int)process->pid);
    return read_link(path, folder) && folder[0] == '/' ? cr_strdup(folder)
                                                       : cr_asprintf("/proc/%d/cwd", (int)process->pid);
}
