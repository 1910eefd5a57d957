#include "tlsreload/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strings.h"

enum {
    TRIES = 6,
    FIRST_PAUSE_MS = 1, /* doubled with each try */
    /* Two ticks of the slowest kernel (CONFIG_HZ=100): the times of files move with ticks, so a file that was written
     * to later than that may be written to again under the same time. */
    SETTLE_MS = 20,
};

/* One file on its way into a buffer. */
struct source {
    const char *path; /* borrowed */
    int fd;
    struct stat opened;
    struct stat mount;         /* of the ..data beside it; all zero when there is none */
    char generation[NAME_MAX]; /* what that ..data leads to */
};

struct sources {
    struct source *items; /* owned */
    size_t len;
};

static void sources_close(struct sources *s)
{
    for (size_t i = 0; i < s->len; i++)
        if (s->items[i].fd >= 0)
            close(s->items[i].fd);
    for (size_t i = 0; i < s->len; i++)
        s->items[i].fd = -1;
}

static void sources_dispose(struct sources *s)
{
    sources_close(s);
    free(s->items);
}
CR_DEFINE_DISPOSE(sources, struct sources, sources_dispose)

static void pause_ms(int ms)
{
    const struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

static bool moved(struct cr_error *err, const char *path)
{
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: changes while it is read", path);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The link that a kubelet swaps (pkg/volume/util/atomic_writer.go): each swap is a new link, so its identity and times
 * show more than its target, which may come back. */
static void look_at_mount(struct source *source)
{
    const char *slash = strrchr(source->path, '/');
    cr_autofree char *link = cr_asprintf("%.*s..data", slash ? (int)(slash - source->path + 1) : 0, source->path);
    source->mount = (struct stat){0};
    memset(source->generation, 0, sizeof source->generation);
    if (lstat(link, &source->mount) != 0 || !S_ISLNK(source->mount.st_mode))
        source->mount = (struct stat){0};
    else if (readlink(link, source->generation, sizeof source->generation - 1) < 0)
        source->generation[0] = '\0';
}

/* Not blocking: a pipe in the place of a file would wait for its writer. */
static bool open_one(struct source *source, struct cr_error *err)
{
    look_at_mount(source);
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (source->fd < 0 || fstat(source->fd, &source->opened) != 0)
        return cr_error_set_file(err, source->path);
    if (S_ISREG(source->opened.st_mode))
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "%s: is %s, a file is expected", source->path,
                        S_ISDIR(source->opened.st_mode) ? "a folder" : "no regular file");
}

/* That the path still leads to what was opened. The open file keeps its inode from being used again. */
static bool still_there(struct source *source, struct cr_error *err)
{
    struct stat now;
    if (stat(source->path, &now) != 0)
        return cr_error_set_file(err, source->path);
    struct source again = {.path = source->path};
    look_at_mount(&again);
    if (same_inode(&now, &source->opened) && same_inode(&again.mount, &source->mount) &&
        same_time(&again.mount.st_ctim, &source->mount.st_ctim) && cr_streq(again.generation, source->generation))
        return true;
    return moved(err, source->path);
}

static bool open_at_one_moment(struct sources *s, struct cr_error *err)
{
    for (size_t i = 0; i < s->len; i++)
        if (!open_one(&s->items[i], err))
            return false;
    for (size_t i = 0; i < s->len; i++)
        if (!still_there(&s->items[i], err))
            return false;
    return true;
}

/* A file is fresh that was written to just now; times that lie ahead (of another machine's clock) say nothing. */
static bool is_fresh(const struct source *source)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec *written = &source->opened.st_mtim;
    int64_t age_ms = ((int64_t)now.tv_sec - written->tv_sec) * 1000 + (now.tv_nsec - written->tv_nsec) / 1000000;
    return age_ms >= 0 && age_ms < SETTLE_MS;
}

static bool any_fresh(const struct sources *s)
{
    for (size_t i = 0; i < s->len; i++)
        if (is_fresh(&s->items[i]))
            return true;
    return false;
}

/* Starts from times that are old enough to show every write that comes behind them. */
static bool let_settle(struct sources *s, struct cr_error *err)
{
    if (!any_fresh(s))
        return true;
    pause_ms(SETTLE_MS);
    for (size_t i = 0; i < s->len; i++)
        if (fstat(s->items[i].fd, &s->items[i].opened) != 0)
            return cr_error_set_file(err, s->items[i].path);
    for (size_t i = 0; i < s->len; i++)
        if (is_fresh(&s->items[i]))
            return moved(err, s->items[i].path);
    return true;
}

static ssize_t read_some(int fd, void *chunk, size_t size)
{
    ssize_t n = 0;
    do
        n = read(fd, chunk, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool read_one(const struct source *source, size_t max, struct cr_buf *out, struct cr_error *err)
{
    char chunk[16 * 1024];
    ssize_t n = 0;
    bool fits = true;
    while (fits && (n = read_some(source->fd, chunk, sizeof chunk)) > 0)
        fits = out->len + (size_t)n <= max && cr_buf_append(out, chunk, (size_t)n);
    int error = errno;
    if (out->secret)
        explicit_bzero(chunk, sizeof chunk);
    errno = error;
    if (n < 0)
        return cr_error_set_file(err, source->path);
    return fits ||
           cr_error_set(err, CR_ERR_INVALID, "%s: longer than the %zu bytes that are allowed", source->path, max);
}

/* Not by the time of the inode's change: that moves when the folder of a file that is open here is removed, too. */
static bool unwritten(const struct source *source, struct cr_error *err)
{
    struct stat now;
    if (fstat(source->fd, &now) != 0)
        return cr_error_set_file(err, source->path);
    return (now.st_size == source->opened.st_size && same_time(&now.st_mtim, &source->opened.st_mtim)) ||
           moved(err, source->path);
}

static bool read_all(const struct sources *s, size_t max, struct cr_buf *const *out, struct cr_error *err)
{
    for (size_t i = 0; i < s->len; i++)
        if (!read_one(&s->items[i], max, out[i], err))
            return false;
    for (size_t i = 0; i < s->len; i++)
        if (!unwritten(&s->items[i], err))
            return false;
    return true;
}

/* First all are open at one moment, then none is written to while they are read: what the paths lead to meanwhile does
 * not matter, so that a writer that swaps all the time does not prevent reading. */
static bool try_once(struct sources *s, size_t max, struct cr_buf *const *out, struct cr_error *err)
{
    sources_close(s);
    for (size_t i = 0; i < s->len; i++)
        cr_buf_reset(out[i]);
    return open_at_one_moment(s, err) && let_settle(s, err) && read_all(s, max, out, err);
}

static bool passes(const struct cr_error *err)
{
    return err->kind == CR_ERR_NOT_FOUND || err->kind == CR_ERR_TRANSIENT;
}

static bool try_often(struct sources *s, size_t max, struct cr_buf *const *out, struct cr_error *err)
{
    struct cr_error why = {0};
    int wait = FIRST_PAUSE_MS;
    for (int i = 0; i < TRIES; i++, wait *= 2) {
        if (i)
            pause_ms(wait);
        if (try_once(s, max, out, &why))
            return true;
        if (!passes(&why))
            break;
    }
    return cr_error_set(err, why.kind, "%s", why.text);
}

bool cr_snapshot_read(const char *const *paths, size_t len, size_t max, struct cr_buf *out, struct cr_error *err)
{
    CR_CLEANUP(sources) struct sources s = {.items = cr_calloc(len + 1, sizeof *s.items)};
    cr_autofree struct cr_buf **into = cr_calloc(len + 1, sizeof *into);
    for (size_t i = 0; i < len; i++) {
        cr_buf_reset(&out[i]);
        if (!paths[i])
            continue;
        into[s.len] = &out[i];
        s.items[s.len++] = (struct source){.path = paths[i], .fd = -1};
    }
    if (try_often(&s, max, into, err))
        return true;
    for (size_t i = 0; i < len; i++)
        cr_buf_reset(&out[i]);
    return false;
}
