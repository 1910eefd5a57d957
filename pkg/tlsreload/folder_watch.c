#include "tlsreload/folder_watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "tlsreload/folder_watch_internal.h"

enum {
    /* What changes where names lead to; and what changes files that stay. */
    NAMES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF,
    CONTENT = IN_MODIFY | IN_CLOSE_WRITE,
    LOST = IN_Q_OVERFLOW | IN_UNMOUNT | IN_IGNORED,
    READS = 64, /* of the queue in one go: a writer who never rests must not keep the owner here */
};

/* A folder on the way, or a file itself: by another name (a hard link, a file that is mounted) it is written to without
 * a word to its folder. */
struct place {
    int wd;
    struct cr_strvec names; /* that the paths look up in it */
    bool wanted;            /* while the ways are walked again */
};

struct cr_folder_watch {
    int fd;
    struct cr_strvec paths; /* absolute */
    struct place *places;   /* owned */
    size_t len;
    struct cr_sightings seen; /* of what cannot be watched */
    bool pending;
    int64_t first_ms; /* while pending */
    int64_t last_ms;
};

static void place_dispose(struct place *place)
{
    cr_strvec_dispose(&place->names);
}

static struct place *place_of(struct cr_folder_watch *watch, int wd)
{
    for (size_t i = 0; i < watch->len; i++)
        if (watch->places[i].wd == wd)
            return &watch->places[i];
    return NULL;
}

static struct place *place_add(struct cr_folder_watch *watch, int wd)
{
    watch->places = cr_reallocarray(watch->places, watch->len + 1, sizeof *watch->places);
    struct place *place = &watch->places[watch->len++];
    *place = (struct place){.wd = wd};
    return place;
}

/* One inode has one watch, whatever the paths that lead to it: masks are added. */
static struct place *add_watch(struct cr_folder_watch *watch, const char *path, uint32_t mask)
{
    int wd = inotify_add_watch(watch->fd, path, mask | IN_MASK_ADD | IN_DONT_FOLLOW);
    if (wd < 0)
        return NULL;
    struct place *place = place_of(watch, wd);
    if (!place)
        place = place_add(watch, wd);
    place->wanted = true;
    return place;
}

/* What is not there, or not any more, comes by the folder above it. */
static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Before anything is looked up in it, so that nothing happens between. */
static void on_folder(void *arg, const char *folder, const char *name, bool last)
{
    struct cr_folder_watch *watch = arg;
    struct place *place = add_watch(watch, folder, last ? NAMES | CONTENT : NAMES);
    if (place)
        cr_strvec_add_unique(&place->names, name);
    else if (!is_gone(errno))
        watch->seen.needed = true;
}

static void on_file(void *arg, const char *path)
{
    /* The watch of its folder notices changes of a file that cannot be watched. */
    (void)add_watch(arg, path, NAMES | CONTENT);
}

static void drop_unwanted(struct cr_folder_watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->len; i++) {
        struct place *place = &watch->places[i];
        if (place->wanted) {
            watch->places[kept++] = *place;
            continue;
        }
        (void)inotify_rm_watch(watch->fd, place->wd); /* an error: it has gone by itself */
        place_dispose(place);
    }
    watch->len = kept;
}

static void walk_all(struct cr_folder_watch *watch)
{
    static const struct cr_way_visitor visitor = {.on_folder = on_folder, .on_file = on_file};
    for (size_t i = 0; i < watch->len; i++) {
        watch->places[i].wanted = false;
        cr_strvec_dispose(&watch->places[i].names);
    }
    watch->seen.needed = false;
    for (size_t i = 0; i < watch->paths.len; i++)
        cr_way_walk(watch->paths.items[i], &visitor, watch);
    drop_unwanted(watch);
}

static bool add_path(struct cr_folder_watch *watch, const char *path, struct cr_error *err)
{
    cr_autofree char *absolute = cr_way_absolute(path, err);
    if (absolute)
        cr_strvec_add(&watch->paths, absolute);
    return absolute != NULL;
}

static bool open_queue(struct cr_folder_watch *watch, struct cr_error *err)
{
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd >= 0)
        return true;
    return cr_error_set(err, CR_ERR_TRANSIENT, "files cannot be watched: %s%s", strerror(errno),
                        errno == EMFILE
                            ? " (or the inotify instances of this user: raise the sysctl fs.inotify.max_user_instances)"
                            : "");
}

struct cr_folder_watch *cr_folder_watch_new(const char *const *paths, size_t len, struct cr_error *err)
{
    CR_CLEANUP(cr_folder_watch) struct cr_folder_watch *watch = cr_new(struct cr_folder_watch);
    watch->fd = -1;
    for (size_t i = 0; i < len; i++)
        if (paths[i] && !add_path(watch, paths[i], err))
            return NULL;
    if (!open_queue(watch, err))
        return NULL;
    walk_all(watch);
    cr_sightings_changed(&watch->seen, &watch->paths);
    return cr_steal(&watch);
}

void cr_folder_watch_free(struct cr_folder_watch *watch)
{
    if (!watch)
        return;
    if (watch->fd >= 0)
        close(watch->fd);
    for (size_t i = 0; i < watch->len; i++)
        place_dispose(&watch->places[i]);
    free(watch->places);
    cr_strvec_dispose(&watch->paths);
    cr_sightings_dispose(&watch->seen);
    free(watch);
}

int cr_folder_watch_fd(const struct cr_folder_watch *watch)
{
    return watch->fd;
}

/* What happened to a neighbour of ours does not concern us. The queue may still have events of a watch that was
 * dropped. */
static bool concerns(struct cr_folder_watch *watch, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW)
        return true;
    struct place *place = place_of(watch, event->wd);
    return place && (event->len == 0 || cr_strvec_has(&place->names, event->name));
}

/* Whether one of the events concerns us; *moved: the ways may be others now. */
static bool take_events(struct cr_folder_watch *watch, const char *buf, size_t len, bool *moved)
{
    bool ours = false;
    for (size_t at = 0; at + sizeof(struct inotify_event) <= len;) {
        struct inotify_event event;
        memcpy(&event, buf + at, sizeof event);
        const struct inotify_event *whole = (const void *)(buf + at);
        if (concerns(watch, whole)) {
            ours = true;
            *moved |= (event.mask & (NAMES | LOST)) != 0;
        }
        at += sizeof event + event.len;
    }
    return ours;
}

static bool drain(struct cr_folder_watch *watch, bool *moved)
{
    _Alignas(struct inotify_event) char buf[16 * 1024];
    bool ours = false;
    for (int i = 0; i < READS; i++) {
        ssize_t n = read(watch->fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        ours |= take_events(watch, buf, (size_t)n, moved);
    }
    return ours;
}

static void note(struct cr_folder_watch *watch, int64_t now_ms)
{
    if (!watch->pending)
        watch->first_ms = now_ms;
    watch->pending = true;
    watch->last_ms = now_ms;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* -1: nothing is on its way. */
static int64_t wait_for_quiet(const struct cr_folder_watch *watch, int64_t now_ms)
{
    if (!watch->pending)
        return -1;
    int64_t due = least(watch->last_ms + CR_FOLDER_WATCH_QUIET_MS, watch->first_ms + CR_FOLDER_WATCH_MOST_MS);
    return due > now_ms ? due - now_ms : 0;
}

/* Folders that cannot be watched (no right to read them, no watches left) are looked at now and then. */
static int64_t wait_for_look(struct cr_folder_watch *watch, int64_t now_ms)
{
    if (!watch->seen.needed)
        return -1;
    if (now_ms >= watch->seen.next_ms) {
        watch->seen.next_ms = now_ms + CR_FOLDER_WATCH_LOOK_MS;
        walk_all(watch);
        if (cr_sightings_changed(&watch->seen, &watch->paths))
            note(watch, now_ms);
    }
    return watch->seen.next_ms - now_ms;
}

int cr_folder_watch_due(struct cr_folder_watch *watch, int64_t now_ms)
{
    bool moved = false;
    if (drain(watch, &moved))
        note(watch, now_ms);
    if (moved)
        walk_all(watch);
    int64_t sight = wait_for_look(watch, now_ms);
    int64_t quiet = wait_for_quiet(watch, now_ms);
    watch->pending = watch->pending && quiet != 0;
    if (quiet < 0 || sight < 0)
        return (int)(quiet < 0 ? sight : quiet);
    return (int)least(quiet, sight);
}

bool cr_folder_watch_is_pending(const struct cr_folder_watch *watch)
{
    return watch->pending;
}
