/* Several files as they were at one moment, or not at all. */
#ifndef CR_TLSRELOAD_SNAPSHOT_H
#define CR_TLSRELOAD_SNAPSHOT_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Reads the files into out[] (set .secret of those that hold keys before; what they held is dropped). A path of NULL is
 * skipped. That no file changed between the first and the last byte is seen by their identity, size and times before
 * and after, and by the folder that ..data leads to. Errors: NotFound, Forbidden, Invalid (a folder, or more than max
 * bytes), Transient (they keep changing, or the disk gives errors): out is empty then. Blocks for as long as the disk
 * takes and some tries; any thread. Material that fits together is the caller's to check: a writer that replaces
 * two files one by one has moments of rest, too. */
bool cr_snapshot_read(const char *const *paths, size_t len, size_t max, struct cr_buf *out,
                      struct cr_error *err) CR_MUST_USE;

#endif
