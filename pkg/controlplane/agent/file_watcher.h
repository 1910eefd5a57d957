/* Reports that something which was read may have changed: files (tlsreload/folder_watch), and folders whose entries
 * were listed (inotify(7)). It has a thread of its own, so it notices a change while the node is being surveyed. */
#ifndef CR_CONTROLPLANE_AGENT_FILE_WATCHER_H
#define CR_CONTROLPLANE_AGENT_FILE_WATCHER_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"

struct cr_file_watcher;
/* changed: called on its thread, after CR_FOLDER_WATCH_QUIET_MS without another change; it must not block. Errors:
 * Transient (no thread, no descriptors). Owned. */
struct cr_file_watcher *cr_file_watcher_start(void (*changed)(void *arg), void *arg, struct cr_error *err);
/* Replaces the watched paths and folders, which are absolute and copied. If they differ from those of before, it calls
 * changed once more, because something may have happened in between. It watches a folder again that has become another
 * inode. Any thread; it does not block. */
void cr_file_watcher_set(struct cr_file_watcher *watcher, const struct cr_strvec *paths,
                         const struct cr_strvec *folders);
/* False: files cannot be watched, so that changes are found only by a periodic survey; err says why. Any thread. */
bool cr_file_watcher_works(struct cr_file_watcher *watcher, struct cr_error *err) CR_MUST_USE;
/* Once this returns, changed is not called again. */
void cr_file_watcher_free(struct cr_file_watcher *watcher);
CR_DEFINE_CLEANUP(cr_file_watcher, struct cr_file_watcher, cr_file_watcher_free)

#endif
