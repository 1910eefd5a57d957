/* Follows a path link by link, as kubelets and configuration managers replace links and not files, and sees
 * whether anything on the way changed. */
#include "tlsreload/folder_watch_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"

enum { LINKS = 40 }; /* as the kernel (MAXSYMLINKS) */

char *cr_way_absolute(const char *path, struct cr_error *err)
{
    char here[PATH_MAX];
    if (path[0] == '/')
        return cr_strdup(path);
    if (getcwd(here, sizeof here))
        return cr_asprintf("%s/%s", here, path);
    cr_error_set(err, CR_ERR_TRANSIENT, "%s: the folder that it is relative to: %s", path, strerror(errno));
    return NULL;
}

/* Where we are, a path without links ("" is the root), and what is still to go. */
struct way {
    struct cr_buf here;
    char *rest; /* owned */
    int links;
};

static void way_dispose(struct way *way)
{
    cr_buf_dispose(&way->here);
    free(way->rest);
}
CR_DEFINE_DISPOSE(way, struct way, way_dispose)

static const char *folder_of(const struct way *way)
{
    return way->here.len ? way->here.data : "/";
}

static void go_up(struct way *way)
{
    const char *slash = way->here.len ? strrchr(way->here.data, '/') : NULL;
    way->here.len = slash ? (size_t)(slash - way->here.data) : 0;
    if (way->here.data)
        way->here.data[way->here.len] = '\0';
}

/* The link stands in for its name: what it says goes before the rest. */
static bool follow(struct way *way, const char *target)
{
    if (++way->links > LINKS || !*target)
        return false;
    char *rest = cr_asprintf("%s/%s", target, way->rest);
    free(way->rest);
    way->rest = rest;
    if (*target == '/')
        cr_buf_reset(&way->here);
    return true;
}

/* Takes the next part off the rest. NULL: none is left. Owned. */
static char *next_part(struct way *way)
{
    const char *start = way->rest + strspn(way->rest, "/");
    size_t len = strcspn(start, "/");
    if (!len)
        return NULL;
    char *part = cr_strndup(start, len);
    char *rest = cr_strdup(start + len);
    free(way->rest);
    way->rest = rest;
    return part;
}

static bool is_last(const struct way *way)
{
    return way->rest[strspn(way->rest, "/")] == '\0';
}

static bool step(struct way *way, const char *part, const struct cr_way_visitor *visitor, void *arg)
{
    struct stat st;
    char target[PATH_MAX];
    visitor->on_folder(arg, folder_of(way), part, is_last(way));
    cr_autofree char *path = cr_asprintf("%s/%s", way->here.len ? way->here.data : "", part);
    if (lstat(path, &st) != 0)
        return false;
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n < 0)
            return false;
        target[n] = '\0';
        return follow(way, target);
    }
    cr_buf_printf(&way->here, "/%s", part);
    return true;
}

static bool go(struct way *way, const char *part, const struct cr_way_visitor *visitor, void *arg)
{
    if (strcmp(part, ".") == 0)
        return true;
    if (strcmp(part, "..") != 0)
        return step(way, part, visitor, arg);
    go_up(way);
    return true;
}

void cr_way_walk(const char *path, const struct cr_way_visitor *visitor, void *arg)
{
    CR_CLEANUP(way) struct way way = {.rest = cr_strdup(path)};
    for (char *part; (part = next_part(&way));) {
        bool went = go(&way, part, visitor, arg);
        free(part);
        if (!went)
            return;
    }
    visitor->on_file(arg, folder_of(&way));
}

struct cr_sighting {
    struct stat st; /* zeroed when the file was not there */
};

void cr_sightings_dispose(struct cr_sightings *seen)
{
    free(seen->items);
}

static bool differ(const struct stat *a, const struct stat *b)
{
    return a->st_dev != b->st_dev || a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mode != b->st_mode ||
           a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec ||
           a->st_ctim.tv_sec != b->st_ctim.tv_sec || a->st_ctim.tv_nsec != b->st_ctim.tv_nsec;
}

bool cr_sightings_changed(struct cr_sightings *seen, const struct cr_strvec *paths)
{
    bool changed = false;
    if (!seen->items)
        seen->items = cr_calloc(paths->len + 1, sizeof *seen->items);
    for (size_t i = 0; i < paths->len; i++) {
        struct stat st = {0};
        if (stat(paths->items[i], &st) != 0)
            st = (struct stat){0};
        changed |= differ(&st, &seen->items[i].st);
        seen->items[i].st = st;
    }
    return changed;
}
