/* Files of the host as one look finds them: each is read once, and those that belong together at one moment. Private to
 * pkg/controlplane/agent. One thread. */
#ifndef CR_CONTROLPLANE_AGENT_HOST_FILES_H
#define CR_CONTROLPLANE_AGENT_HOST_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "controlplane/agent/host_way.h"

enum { CR_HOST_FILE_MAX = 1024 * 1024 };

struct cr_host_file {
    char *host;             /* its name */
    struct cr_host_way way; /* as it was when it was read */
    struct cr_buf text;     /* secret */
    bool exists;
    struct cr_error err; /* why it was not read; kind None: it was */
};

struct cr_host_files {
    const char *root;            /* borrowed */
    struct cr_host_file **items; /* owned, each owned */
    size_t len;
};
/* Wipes what was read. */
void cr_host_files_dispose(struct cr_host_files *files);
CR_DEFINE_DISPOSE(cr_host_files, struct cr_host_files, cr_host_files_dispose)

/* Reads it unless it was read. Borrowed until files goes. */
const struct cr_host_file *cr_host_files_read(struct cr_host_files *files, const char *host);
/* Reads those at one moment, where none of them was read before. What is missing or cannot be read says so, and keeps
 * the others from nothing. out: [len], borrowed. */
void cr_host_files_read_together(struct cr_host_files *files, const char *const *hosts, size_t len,
                                 const struct cr_host_file **out);
/* Appends what is to be watched for them: each by its name, the links to it, and where it is. */
void cr_host_files_paths(const struct cr_host_files *files, struct cr_strvec *paths);

/* The entries of a folder, sorted by their bytes, but "." and "..". Errors: as cr_host_way_go, Invalid (no folder, more
 * than max). */
bool cr_host_folder_list(const char *root, const char *host, size_t max, struct cr_strvec *out,
                         struct cr_error *err) CR_MUST_USE;

#endif
