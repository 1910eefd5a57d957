/* A folder that is written as a kubelet writes a Secret's volume (pkg/volume/util/atomic_writer.go): the files of each
 * generation in a folder of their own, ..data a link to the one that counts, and per file a link through it. */
#ifndef TEST_SECRETVOLUME_H
#define TEST_SECRETVOLUME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strvec.h"

struct secret_volume {
    char *folder; /* owned */
    char *next;   /* owned; the name of the folder that is being filled */
    int generation;
    struct cr_strvec paths; /* that were handed out */
};

/* For cmocka: *state is one in an empty folder; then gone, with all that is in it. */
int secret_volume_set_up(void **state);
int secret_volume_tear_down(void **state);

/* Borrowed, until the end of the test. */
const char *secret_volume_path(struct secret_volume *volume, const char *name);
/* A file of the generation that comes with the next swap, or of a folder by its name. */
void secret_volume_write(struct secret_volume *volume, const char *name, const char *text);
void secret_volume_write_in(struct secret_volume *volume, const char *folder, const char *name, const char *text);
/* Makes what was written count; the folder of before goes, or stays. */
void secret_volume_swap(struct secret_volume *volume, bool keep);
/* Makes ..data lead to that folder, in one step. */
void secret_volume_point(struct secret_volume *volume, const char *folder);
/* A file beside all that, written in place. */
void secret_volume_put(struct secret_volume *volume, const char *name, const void *data, size_t len);

/* A folder and all below it. */
void remove_tree(const char *path);

#endif
