#include "controlplane/agent/host_way.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

enum { LINKS = 40 }; /* as the kernel (MAXSYMLINKS) */

void cr_host_way_dispose(struct cr_host_way *way)
{
    free(way->path);
    cr_strvec_dispose(&way->links);
    cr_strvec_dispose(&way->targets);
    *way = (struct cr_host_way){0};
}

/* Where we are, below root and without links ("" is root), and what is still to go. */
struct walk {
    const char *root;
    struct cr_buf here;
    char *rest; /* owned */
    struct cr_host_way *out;
};

static void walk_dispose(struct walk *walk)
{
    cr_buf_dispose(&walk->here);
    free(walk->rest);
}
CR_DEFINE_DISPOSE(walk, struct walk, walk_dispose)

static void later(int64_t *ctime_ms, const struct stat *st)
{
    int64_t ms = st->st_ctim.tv_sec * INT64_C(1000) + st->st_ctim.tv_nsec / 1000000;
    if (ms > *ctime_ms)
        *ctime_ms = ms;
}

static void go_up(struct walk *walk)
{
    const char *slash = strrchr(cr_buf_text(&walk->here), '/');
    cr_buf_cut(&walk->here, slash ? (size_t)(slash - walk->here.data) : 0);
}

/* Owned; NULL: nothing is left. */
static char *next_part(struct walk *walk)
{
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t len = strcspn(start, "/");
    if (!len)
        return NULL;
    char *part = cr_strndup(start, len);
    cr_strset(&walk->rest, start + len);
    return part;
}

/* What the link says goes before the rest. */
static bool follow(struct walk *walk, const char *link)
{
    char target[PATH_MAX];
    ssize_t len = readlink(link, target, sizeof target - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    cr_strvec_add(&walk->out->links, link);
    cr_strvec_add(&walk->out->targets, target);
    if (walk->out->links.len > LINKS || !*target) {
        errno = *target ? ELOOP : ENOENT;
        return false;
    }
    if (*target == '/')
        cr_buf_cut(&walk->here, 0);
    char *rest = cr_asprintf("%s/%s", target, walk->rest);
    free(walk->rest);
    walk->rest = rest;
    return true;
}

/* False: errno says why. */
static bool step(struct walk *walk, const char *part)
{
    if (cr_streq(part, "."))
        return true;
    if (cr_streq(part, "..")) {
        go_up(walk);
        return true;
    }
    cr_strset(&walk->out->path, NULL);
    walk->out->path = cr_asprintf("%s%s/%s", walk->root, cr_buf_text(&walk->here), part);
    if (lstat(walk->out->path, &walk->out->end) != 0)
        return false;
    if (S_ISLNK(walk->out->end.st_mode)) {
        later(&walk->out->ctime_ms, &walk->out->end);
        return follow(walk, walk->out->path);
    }
    cr_buf_printf(&walk->here, "/%s", part);
    return true;
}

static bool walk_all(struct walk *walk)
{
    for (char *part; (part = next_part(walk));) {
        bool went = step(walk, part);
        int error = errno;
        free(part);
        errno = error;
        if (!went)
            return false;
    }
    /* ".." may have led elsewhere than the last step. */
    free(walk->out->path);
    walk->out->path = cr_asprintf("%s%s", walk->root, walk->here.len ? cr_buf_text(&walk->here) : "/");
    return lstat(walk->out->path, &walk->out->end) == 0;
}

bool cr_host_way_go(const char *root, const char *host, struct cr_host_way *out, struct cr_error *err)
{
    *out = (struct cr_host_way){.ctime_ms = INT64_MIN};
    CR_CLEANUP(walk) struct walk walk = {.root = root, .rest = cr_strdup(host), .out = out};
    if (walk_all(&walk)) {
        later(&out->ctime_ms, &out->end);
        return true;
    }
    out->ctime_ms = 0;
    return cr_error_set_file(err, host);
}

bool cr_host_way_same(const struct cr_host_way *a, const struct cr_host_way *b)
{
    return cr_streq(a->path, b->path) && a->end.st_dev == b->end.st_dev && a->end.st_ino == b->end.st_ino &&
           a->end.st_size == b->end.st_size && a->end.st_ctim.tv_sec == b->end.st_ctim.tv_sec &&
           a->end.st_ctim.tv_nsec == b->end.st_ctim.tv_nsec && a->ctime_ms == b->ctime_ms;
}

bool cr_host_way_agree(const struct cr_host_way *a, const struct cr_host_way *b)
{
    for (size_t i = 0; i < a->links.len; i++)
        for (size_t k = 0; k < b->links.len; k++)
            if (cr_streq(a->links.items[i], b->links.items[k]) && !cr_streq(a->targets.items[i], b->targets.items[k]))
                return false;
    return true;
}
