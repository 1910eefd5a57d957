/* Tells when something that was looked at may have changed: files, by tlsreload/folder_watch, and folders whose entries
 * were listed, by inotify(7). A thread of its own, so that a change is heard while the node is being looked at. */
#ifndef CR_NODE_LOOKOUT_H
#define CR_NODE_LOOKOUT_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"

struct cr_lookout;
/* changed: called in its thread, after CR_FOLDER_WATCH_QUIET_MS without another change; it must not block. Errors:
 * Transient (no thread, no descriptors). */
struct cr_lookout *cr_lookout_start(void (*changed)(void *arg), void *arg, struct cr_error *err);
/* What is to be watched from now on, absolute; copied. When that differs from what was watched, changed is called once
 * more: something may have happened in between. Folders that are another inode by now are watched anew in any case. Any
 * thread; nothing is waited for. */
void cr_lookout_set(struct cr_lookout *lookout, const struct cr_strvec *paths, const struct cr_strvec *folders);
/* False: files cannot be watched, and are seen only by looking now and then; err says why. Any thread. */
bool cr_lookout_sees(struct cr_lookout *lookout, struct cr_error *err) CR_MUST_USE;
/* changed is not called any more when this returns. */
void cr_lookout_free(struct cr_lookout *lookout);
CR_DEFINE_CLEANUP(cr_lookout, struct cr_lookout, cr_lookout_free)

#endif
