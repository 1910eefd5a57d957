/* Secrets as folders, written as a kubelet writes a volume (kubernetes pkg/volume/util/atomic_writer.go): a folder with
 * everything, `..data` made to point to it by one rename, links for the entries. What programs know from a pod works
 * here as well, and a crash leaves the old files or the new ones. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "certgen/store_internal.h"
#include "sys/file.h"

enum { ENTRY_MAX = 1024 * 1024 };

static const char data_link[] = "..data";

static char *title(const struct cr_certgen_store *store, size_t secret)
{
    return cr_asprintf("%s/%s", store->folder, store->set->secrets[secret].name);
}

static bool fail(struct cr_error *err, const char *path)
{
    return cr_error_set(err, errno == EACCES || errno == EPERM || errno == EROFS ? CR_ERR_FORBIDDEN : CR_ERR_INVALID,
                        "%s: %s", path, strerror(errno));
}

/* --- reading --- */

/* What is not there is no error. */
static bool read_entry(const char *folder, const char *entry, struct cr_buf *out, struct cr_error *err)
{
    cr_autofree char *path = cr_asprintf("%s/%s", folder, entry);
    struct cr_error why = {0};
    if (cr_file_read(path, ENTRY_MAX, out, &why) || why.kind == CR_ERR_NOT_FOUND)
        return true;
    *err = why;
    return false;
}

static bool read_folder(struct cr_certgen_store *store, size_t index, struct cr_certgen_found *out,
                        struct cr_error *err)
{
    const struct cr_certgen_secret *secret = &store->set->secrets[index];
    cr_autofree char *folder = title(store, index);
    for (size_t i = 0; i < cr_array_len(cr_certgen_entries); i++)
        if (!secret->opaque_key && !read_entry(folder, cr_certgen_entries[i], &out->data[i], err))
            return false;
    CR_CLEANUP(cr_buf) struct cr_buf opaque = {.secret = true};
    if (secret->opaque_key && !read_entry(folder, secret->opaque_key, &opaque, err))
        return false;
    out->has_opaque = opaque.len > 0;
    for (size_t i = 0; i < cr_array_len(out->data); i++)
        out->found |= out->data[i].len > 0;
    out->found |= out->has_opaque;
    return true;
}

/* --- writing --- */

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return fsync(fd) == 0;
}

static bool write_file(const char *folder, const char *entry, const void *bytes, size_t len, mode_t mode,
                       struct cr_error *err)
{
    cr_autofree char *path = cr_asprintf("%s/%s", folder, entry);
    cr_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    return (fd >= 0 && fchmod(fd, mode) == 0 && write_all(fd, bytes, len)) || fail(err, path);
}

static bool sync_folder(const char *folder, struct cr_error *err)
{
    cr_autofd int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fd >= 0 && fsync(fd) == 0) || fail(err, folder);
}

/* `name` in the folder becomes a link to target, in place of whatever file or link it is. */
static bool put_link(const char *folder, const char *name, const char *target, struct cr_error *err)
{
    cr_autofree char *path = cr_asprintf("%s/%s", folder, name);
    cr_autofree char *half = cr_asprintf("%s/..%s_tmp", folder, name);
    (void)unlink(half);
    return (symlink(target, half) == 0 && rename(half, path) == 0) || fail(err, path);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *each = NULL; folder && (each = readdir(folder));)
        (void)unlinkat(dirfd(folder), each->d_name, 0);
    if (folder)
        closedir(folder);
    (void)rmdir(path);
}

/* Removes folders of earlier writes, also of those that were killed: only folders with the names that we give. */
static void remove_old(const char *folder, const char *keep)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *each = NULL; dir && (each = readdir(dir));) {
        if (!cr_starts_with(each->d_name, "..certgen-") || cr_streq(each->d_name, keep))
            continue;
        cr_autofree char *path = cr_asprintf("%s/%s", folder, each->d_name);
        remove_folder(path);
    }
    if (dir)
        closedir(dir);
}

static bool make_folder(const char *path, struct cr_error *err)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST || fail(err, path);
}

/* With its parents. */
static bool make_folders(const char *path, struct cr_error *err)
{
    cr_autofree char *part = cr_strdup(path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!make_folder(part, err))
            return false;
        *slash = '/';
    }
    return make_folder(part, err);
}

static struct cr_pem_input merged(const struct cr_certgen_found *read, const struct cr_certgen_write *write, int entry)
{
    return write->data[entry].data ? write->data[entry] : cr_certgen_entry(read, entry);
}

static bool fill(const struct cr_certgen_secret *secret, const char *folder, const struct cr_certgen_found *read,
                 const struct cr_certgen_write *write, struct cr_error *err)
{
    if (write->opaque)
        return write_file(folder, secret->opaque_key, write->opaque, (size_t)secret->opaque_bytes, 0600, err);
    for (int i = 0; i < (int)cr_array_len(cr_certgen_entries); i++) {
        const struct cr_pem_input bytes = merged(read, write, i);
        mode_t mode = i == CR_CERTGEN_DATA_PRIVATE_KEY ? 0600 : 0644;
        if (bytes.data && !write_file(folder, cr_certgen_entries[i], bytes.data, bytes.len, mode, err))
            return false;
    }
    return true;
}

static bool link_entries(const struct cr_certgen_secret *secret, const char *folder,
                         const struct cr_certgen_found *read, const struct cr_certgen_write *write,
                         struct cr_error *err)
{
    for (int i = 0; i < (int)cr_array_len(cr_certgen_entries); i++) {
        cr_autofree char *target = cr_asprintf("%s/%s", data_link, cr_certgen_entries[i]);
        if (merged(read, write, i).data && !put_link(folder, cr_certgen_entries[i], target, err))
            return false;
    }
    cr_autofree char *target = cr_asprintf("%s/%s", data_link, cr_or_empty(secret->opaque_key));
    return !write->opaque || put_link(folder, secret->opaque_key, target, err);
}

static bool write_folder(struct cr_certgen_store *store, size_t index, const struct cr_certgen_found *read,
                         const struct cr_certgen_write *write, char **version, struct cr_error *err)
{
    const struct cr_certgen_secret *secret = &store->set->secrets[index];
    cr_autofree char *folder = title(store, index);
    *version = NULL;
    if (!make_folders(folder, err))
        return false;
    cr_autofree char *path = cr_asprintf("%s/..certgen-XXXXXX", folder);
    if (!mkdtemp(path) || chmod(path, 0755) != 0)
        return fail(err, folder);
    const char *name = strrchr(path, '/') + 1;
    /* The data must be on the disk before anything points to it. */
    if (!fill(secret, path, read, write, err) || !sync_folder(path, err) || !put_link(folder, data_link, name, err)) {
        remove_folder(path);
        return false;
    }
    if (!link_entries(secret, folder, read, write, err) || !sync_folder(folder, err))
        return false;
    remove_old(folder, name);
    return true;
}

struct cr_certgen_store *cr_certgen_store_files(const char *folder, const struct cr_certgen_set *set)
{
    static const struct cr_certgen_store_kind kind = {title, read_folder, write_folder};
    struct cr_certgen_store *store = cr_new(struct cr_certgen_store);
    *store = (struct cr_certgen_store){.kind = &kind, .set = set, .folder = cr_strdup(folder)};
    return store;
}
