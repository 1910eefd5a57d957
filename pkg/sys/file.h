/* Files that are read whole: kubeconfigs, tokens, certificates and keys. */
#ifndef CR_SYS_FILE_H
#define CR_SYS_FILE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* Appends the whole file to out; blocks. Text may hold NUL bytes: judge by out->len. Set out->secret first for keys and
 * tokens: then no copy stays behind. More than max bytes, or a folder, is Invalid; NotFound, Forbidden as the kernel
 * says, any other trouble Transient. On failure out is as it was. */
bool cr_file_read(const char *path, size_t max, struct cr_buf *out, struct cr_error *err) CR_MUST_USE;
/* Likewise, for a file that another program may put there: a pipe, which would block until that one writes, or anything
 * else that is no regular file is Invalid. */
bool cr_file_read_regular(const char *path, size_t max, struct cr_buf *out, struct cr_error *err) CR_MUST_USE;

#endif
