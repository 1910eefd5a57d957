/* How a path leads to its file, and how files look that cannot be watched. Private to pkg/tlsreload. */
#ifndef CR_TLSRELOAD_FOLDER_WATCH_INTERNAL_H
#define CR_TLSRELOAD_FOLDER_WATCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "tlsreload/folder_watch.h"

enum { CR_FOLDER_WATCH_LOOK_MS = 1000 };

struct cr_way_visitor {
    /* name is about to be looked up in folder, a path without links; last: as the path's last part, by now. */
    void (*on_folder)(void *arg, const char *folder, const char *name, bool last);
    /* The way's end, which exists. */
    void (*on_file)(void *arg, const char *path);
};

/* The same path wherever the process goes later. Owned. Errors: Transient, the working directory is not known. */
char *cr_way_absolute(const char *path, struct cr_error *err) CR_MUST_USE;
/* Goes the way of an absolute path, part by part and link by link as the kernel does (path_resolution(7)), as far as
 * there is one. */
void cr_way_walk(const char *path, const struct cr_way_visitor *visitor, void *arg);

/* How the files looked when they were last looked at. Zeroed at first. */
struct cr_sightings {
    bool needed;
    int64_t next_ms;           /* monotonic */
    struct cr_sighting *items; /* owned; one per path */
};
void cr_sightings_dispose(struct cr_sightings *seen);
/* Looks again: whether a file is another one, or was written to. */
bool cr_sightings_changed(struct cr_sightings *seen, const struct cr_strvec *paths);

#endif
