#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static ssize_t read_some(int fd, void *chunk, size_t size)
{
    ssize_t n = 0;
    do
        n = read(fd, chunk, size);
    while (n < 0 && errno == EINTR);
    return n;
}

/* By pieces and not by st_size: projected files and pipes (kubeconfig from a process substitution) have none to trust.
 */
static bool read_all(int fd, const char *path, size_t max, struct cr_buf *out, struct cr_error *err)
{
    char chunk[16 * 1024];
    size_t total = 0;
    bool ok = false;
    for (;;) {
        ssize_t n = read_some(fd, chunk, sizeof chunk);
        if (n <= 0) {
            ok = n == 0 || cr_error_set_file(err, path);
            break;
        }
        total += (size_t)n;
        if (total > max || !cr_buf_append(out, chunk, (size_t)n)) {
            cr_error_set(err, CR_ERR_INVALID, "%s: longer than the %zu bytes that are allowed", path, max);
            break;
        }
    }
    if (out->secret)
        explicit_bzero(chunk, sizeof chunk);
    return ok;
}

static void cut_back(struct cr_buf *out, size_t len)
{
    if (!out->data)
        return;
    if (out->secret)
        explicit_bzero(out->data + len, out->len - len);
    out->len = len;
    out->data[len] = '\0';
}

static bool read_whole(int fd, const char *path, size_t max, struct cr_buf *out, struct cr_error *err)
{
    size_t before = out->len;
    if (read_all(fd, path, max, out, err))
        return true;
    cut_back(out, before);
    return false;
}

bool cr_file_read(const char *path, size_t max, struct cr_buf *out, struct cr_error *err)
{
    cr_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? cr_error_set_file(err, path) : read_whole(fd, path, max, out, err);
}

bool cr_file_read_regular(const char *path, size_t max, struct cr_buf *out, struct cr_error *err)
{
    struct stat is;
    cr_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &is) != 0)
        return cr_error_set_file(err, path);
    if (!S_ISREG(is.st_mode))
        return cr_error_set(err, CR_ERR_INVALID, "%s: is %s, a file is expected", path,
                            S_ISDIR(is.st_mode) ? "a folder" : "no regular file");
    return read_whole(fd, path, max, out, err);
}
