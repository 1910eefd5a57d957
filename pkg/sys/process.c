#include "sys/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"

enum {
    /* Its end is looked for so often: what it left running may hold the pipes open, so their end is no sign of it. */
    TICK_MS = 20,
    KILL_MS = 1000, /* so long what was killed is waited for */
    LEFT_MAX = 64,
    PIECE = 4096,
    /* At a time, so that the clock is looked at whatever comes; as much as a pipe holds at most (pipe(7)). */
    PIECES = 1024 * 1024 / PIECE,
};

/* --- which file, which environment --- */

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static char *search(const char *command)
{
    const char *folders = getenv("PATH");
    cr_autofree char *copy = cr_strdup(folders ? folders : "/usr/local/bin:/usr/bin:/bin");
    char *rest = NULL;
    for (char *folder = strtok_r(copy, ":", &rest); folder; folder = strtok_r(NULL, ":", &rest)) {
        cr_autofree char *path = cr_asprintf("%s/%s", folder, command);
        if (folder[0] == '/' && is_program(path))
            return cr_steal(&path);
    }
    return NULL;
}

char *cr_process_find(const char *command, struct cr_error *err)
{
    if (!strchr(command, '/')) {
        char *path = *command ? search(command) : NULL;
        if (!path)
            cr_error_set(err, CR_ERR_NOT_FOUND, "no program '%s' in the folders of $PATH", command);
        return path;
    }
    if (is_program(command))
        return cr_strdup(command);
    cr_error_set(err, CR_ERR_NOT_FOUND, "%s is no program that may be executed", command);
    return NULL;
}

static bool is_overridden(const char *entry, const struct cr_strvec *overrides)
{
    size_t name = strcspn(entry, "=") + 1; /* with the "=" */
    for (size_t i = 0; i < overrides->len; i++)
        if (strncmp(entry, overrides->items[i], name) == 0)
            return true;
    return false;
}

void cr_process_environment(const struct cr_strvec *overrides, struct cr_strvec *out)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (strchr(*entry, '=') && !is_overridden(*entry, overrides))
            cr_strvec_add(out, *entry);
    for (size_t i = 0; i < overrides->len; i++)
        cr_strvec_add(out, overrides->items[i]);
}

/* --- the child --- */

/* Its two pipes, and what is known of it. */
struct child {
    const struct cr_process *process;
    pid_t pid;
    bool ended;
    int out; /* our ends; -1 once it closed its own */
    int err;
    struct cr_buf *output;
    size_t taken;
    char line[CR_PROCESS_LINE]; /* of stderr, not ended yet */
    size_t line_len;
    struct cr_process_end *end;
};

static bool no_resources(struct cr_error *err, const char *what)
{
    int error = errno;
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: %s", what, strerror(error));
}

/* NULL at the end, for the kernel. The strings stay the vector's. Owned. */
static char **null_terminated(const struct cr_strvec *v)
{
    char **list = cr_calloc(v->len + 1, sizeof *list);
    for (size_t i = 0; i < v->len; i++)
        list[i] = v->items[i];
    return list;
}

static void describe_child(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int out, int err)
{
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all); /* we ignore SIGPIPE; an ignored signal would stay so */
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(files);
    posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(files, err, STDERR_FILENO);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    /* Not every library marks its sockets close-on-exec. */
    posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
}

/* The error of posix_spawn, or 0. */
static int spawn(const struct cr_process *process, int out, int err, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    describe_child(&files, &attributes, out, err);
    cr_autofree char **argv = null_terminated(process->argv);
    cr_autofree char **environment = null_terminated(process->environment);
    int error = posix_spawn(pid, process->path, &files, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static bool spawn_failed(const struct cr_process *process, int error, struct cr_error *err)
{
    enum cr_error_kind kind = CR_ERR_TRANSIENT;
    if (error == ENOENT || error == ENOTDIR)
        kind = CR_ERR_NOT_FOUND;
    else if (error == EACCES || error == EPERM || error == ENOEXEC)
        kind = CR_ERR_FORBIDDEN;
    return cr_error_set(err, kind, "%s cannot be executed: %s", process->path, strerror(error));
}

static bool start(struct child *child, struct cr_error *err)
{
    int out[2];
    int error[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return no_resources(err, "pipe");
    cr_autofd int out_theirs = out[1];
    child->out = out[0];
    if (pipe2(error, O_CLOEXEC) != 0)
        return no_resources(err, "pipe");
    cr_autofd int err_theirs = error[1];
    child->err = error[0];
    fcntl(child->out, F_SETFL, O_NONBLOCK);
    fcntl(child->err, F_SETFL, O_NONBLOCK);
    int failure = spawn(child->process, out_theirs, err_theirs, &child->pid);
    return !failure || spawn_failed(child->process, failure, err);
}

static void close_pipe(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* --- what it says --- */

static bool take_output(struct child *child, const char *data, size_t len, struct cr_error *err)
{
    child->taken += len;
    if (child->taken <= child->process->max_output && cr_buf_append(child->output, data, len))
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "it printed more than %zu bytes", child->process->max_output);
}

static void end_line(struct child *child)
{
    while (child->line_len && child->line[child->line_len - 1] == ' ')
        child->line_len--;
    child->line[child->line_len] = '\0';
    if (child->line_len)
        memcpy(child->end->last_words, child->line, child->line_len + 1);
    child->line_len = 0;
}

static void take_words(struct child *child, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '\n')
            end_line(child);
        else if (child->line_len + 1 < sizeof child->line && (isprint(c) || (c == '\t' && child->line_len)))
            child->line[child->line_len++] = (char)(c == '\t' ? ' ' : c);
    }
}

/* Reads what there is; a pipe that has ended is closed. */
static bool read_pipe(struct child *child, int *fd, struct cr_error *err)
{
    char piece[PIECE];
    bool ok = true;
    for (int i = 0; ok && *fd >= 0 && i <= PIECES; i++) {
        ssize_t n = read(*fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0)
            close_pipe(fd);
        else if (fd == &child->out)
            ok = take_output(child, piece, (size_t)n, err);
        else
            take_words(child, piece, (size_t)n);
    }
    explicit_bzero(piece, sizeof piece);
    return ok;
}

static bool read_pipes(struct child *child, struct cr_error *err)
{
    return read_pipe(child, &child->err, err) && read_pipe(child, &child->out, err);
}

/* --- its end --- */

/* It is not reaped: until its group is, the number is its own. */
static bool has_ended(struct child *child)
{
    siginfo_t info = {0};
    bool known = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (known && !info.si_pid)
        return false;
    /* Not known, ECHILD: we were started with SIGCHLD ignored. */
    bool exited = known && info.si_code == CLD_EXITED;
    child->ended = true;
    child->end->status = exited ? info.si_status : -1;
    child->end->signal = known && !exited ? info.si_status : 0;
    return true;
}

/* Whether something of it is a child of ours still. */
static bool reap_group(pid_t group, int64_t until_ms)
{
    for (;;) {
        pid_t pid = waitpid(-group, NULL, WNOHANG);
        if (pid < 0 && errno != EINTR)
            return false;
        if (pid == 0 && cr_clock_monotonic_ms() >= until_ms)
            return true;
        if (pid == 0)
            poll(NULL, 0, TICK_MS);
    }
}

/* Groups that outlast their first process. What is in them becomes a child of ours where we are the first process of a
 * container, and once it has ended nobody else would ever reap it. */
static struct {
    pthread_mutex_t lock;
    pid_t groups[LEFT_MAX];
    size_t len;
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reap_left(void)
{
    pthread_mutex_lock(&left.lock);
    size_t kept = 0;
    for (size_t i = 0; i < left.len; i++)
        if (reap_group(left.groups[i], 0))
            left.groups[kept++] = left.groups[i];
    left.len = kept;
    pthread_mutex_unlock(&left.lock);
}

static void leave(pid_t group)
{
    pthread_mutex_lock(&left.lock);
    if (left.len < LEFT_MAX)
        left.groups[left.len++] = group;
    pthread_mutex_unlock(&left.lock);
}

/* What was not killed is not waited for. */
static void end_group(const struct child *child)
{
    int64_t until_ms = 0;
    if (!child->ended) {
        kill(-child->pid, SIGKILL);
        until_ms = cr_clock_monotonic_ms() + KILL_MS;
    }
    if (reap_group(child->pid, until_ms))
        leave(child->pid);
}

/* Until something is to be read, or a tick. False: cancelled. */
static bool wait_a_little(const struct child *child)
{
    struct pollfd fds[] = {{.fd = child->process->cancel_fd, .events = POLLIN},
                           {.fd = child->out, .events = POLLIN},
                           {.fd = child->err, .events = POLLIN}}; /* negative ones are passed over */
    return poll(fds, cr_array_len(fds), TICK_MS) <= 0 || !fds[0].revents;
}

static bool follow(struct child *child, struct cr_error *err)
{
    int64_t deadline = cr_clock_monotonic_ms() + child->process->timeout_ms;
    for (;;) {
        if (!wait_a_little(child))
            return cr_error_set(err, CR_ERR_CANCELLED, "shutting down");
        bool ended = has_ended(child); /* before reading: so that what it said last is read */
        if (!read_pipes(child, err))
            return false;
        if (ended)
            return true;
        if (cr_clock_monotonic_ms() >= deadline)
            return cr_error_set(err, CR_ERR_TRANSIENT, "it did not end within %d s",
                                (child->process->timeout_ms + 999) / 1000); /* never "within 0 s" */
    }
}

bool cr_process_run(const struct cr_process *process, struct cr_buf *out, struct cr_process_end *end,
                    struct cr_error *err)
{
    *end = (struct cr_process_end){.status = -1};
    struct child child = {.process = process, .out = -1, .err = -1, .output = out, .end = end};
    reap_left();
    bool ok = start(&child, err);
    if (ok) {
        ok = follow(&child, err);
        end_group(&child);
    }
    end_line(&child);
    close_pipe(&child.out);
    close_pipe(&child.err);
    return ok;
}

void cr_process_forbid_cores(void)
{
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
        cr_log(CR_LOG_WARN, "core dumps cannot be switched off");
}
