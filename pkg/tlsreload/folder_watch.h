/* Notices when files may have changed, by the folders that lead to them (inotify(7)): a file itself is the wrong thing
 * to watch, since it is mostly replaced, not written. Every folder is watched that a path goes through by symbolic
 * links, so that the swap of ..data in a Secret's volume is seen (also when the earlier folder stays), as are renames,
 * writes in place, and folders that are removed and come back. No thread of its own, no timer: its owner polls its
 * descriptor. Not thread-safe. */
#ifndef CR_TLSRELOAD_FOLDER_WATCH_H
#define CR_TLSRELOAD_FOLDER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

enum {
    CR_FOLDER_WATCH_QUIET_MS = 100, /* so long nothing must happen: writers take several steps */
    CR_FOLDER_WATCH_MOST_MS = 1000, /* so long a change waits at most for the quiet */
};

struct cr_folder_watch;
/* paths: of files, which need not exist. Copied. Errors: Transient, no inotify instance is to be had (the sysctl
 * fs.inotify.max_user_instances is named). */
struct cr_folder_watch *cr_folder_watch_new(const char *const *paths, size_t len, struct cr_error *err) CR_MUST_USE;
void cr_folder_watch_free(struct cr_folder_watch *watch);
CR_DEFINE_CLEANUP(cr_folder_watch, struct cr_folder_watch, cr_folder_watch_free)

/* Readable when something happened; then call cr_folder_watch_due. */
int cr_folder_watch_fd(const struct cr_folder_watch *watch);

/* Takes in what happened and says how long until the files are to be read: 0, now, and the change counts as taken; -1,
 * nothing happened, wait for the descriptor; else milliseconds, after which, or when the descriptor is readable again,
 * it is asked again. now_ms: monotonic. Events that the kernel dropped count as a change of everything. */
int cr_folder_watch_due(struct cr_folder_watch *watch, int64_t now_ms);
/* Whether a change that was noticed waits for its quiet: the files are being written. Else what cr_folder_watch_due
 * says is the next look at folders that cannot be watched, which is due again and again. */
bool cr_folder_watch_is_pending(const struct cr_folder_watch *watch);

#endif
