/* The file by which one process notifies another of its pod that the drain is over: Contour's /admin/ok, Envoy
 * Gateway's /tmp/shutdown-ready. A file that an earlier life of a container has left behind means nothing. */
#ifndef CR_DRAIN_READY_FILE_H
#define CR_DRAIN_READY_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

struct cr_ready_file {
    const char *path;  /* borrowed */
    struct stat stale; /* what was there and could not be removed */
    bool has_stale;
};

/* For the process that waits, before any process is asked to wait: removes what is there. What cannot be removed is
 * remembered, so that it does not count. */
void cr_ready_file_watch(struct cr_ready_file *file, const char *path);
/* Whether another process has written it since. Errors: as cr_error_set_file, but that it is not there. */
bool cr_ready_file_is_there(const struct cr_ready_file *file, bool *there, struct cr_error *err) CR_MUST_USE;
/* For who drains, when it begins: what is there is of another drain. */
bool cr_ready_file_remove(const char *path, struct cr_error *err) CR_MUST_USE;
/* Another file takes its place whole; text: what it says, for a person. */
bool cr_ready_file_write(const char *path, const char *text, struct cr_error *err) CR_MUST_USE;

#endif
