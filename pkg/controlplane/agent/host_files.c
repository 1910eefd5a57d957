#include "controlplane/agent/host_files.h"

#include <dirent.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "tlsreload/snapshot.h"

enum { TRIES = 4 }; /* of a writer who swaps links all the time; each is several of cr_snapshot_read's */

void cr_host_files_dispose(struct cr_host_files *files)
{
    for (size_t i = 0; i < files->len; i++) {
        struct cr_host_file *file = files->items[i];
        free(file->host);
        cr_host_way_dispose(&file->way);
        cr_buf_dispose(&file->text);
        free(file);
    }
    free(files->items);
    *files = (struct cr_host_files){0};
}

static struct cr_host_file *find(const struct cr_host_files *files, const char *host)
{
    for (size_t i = 0; i < files->len; i++)
        if (cr_streq(files->items[i]->host, host))
            return files->items[i];
    return NULL;
}

static struct cr_host_file *add(struct cr_host_files *files, const char *host)
{
    struct cr_host_file *file = cr_new(struct cr_host_file);
    file->host = cr_strdup(host);
    file->text.secret = true;
    files->items = cr_reallocarray(files->items, files->len + 1, sizeof *files->items);
    return files->items[files->len++] = file;
}

/* --- several at one moment --- */

struct group {
    const char *root;
    struct cr_host_file **items;
    size_t len;
};

static void look(const struct group *group)
{
    for (size_t i = 0; i < group->len; i++) {
        struct cr_host_file *file = group->items[i];
        cr_host_way_dispose(&file->way);
        file->err = (struct cr_error){0};
        file->exists = cr_host_way_go(group->root, file->host, &file->way, &file->err);
    }
}

/* Into the files' buffers, by way of others, since those of a snapshot stand side by side. */
static bool read_once(const struct group *group, struct cr_error *err)
{
    cr_autofree const char **paths = cr_calloc(group->len + 1, sizeof *paths);
    cr_autofree struct cr_buf *texts = cr_calloc(group->len + 1, sizeof *texts);
    for (size_t i = 0; i < group->len; i++) {
        paths[i] = group->items[i]->exists ? group->items[i]->way.path : NULL;
        texts[i].secret = true;
    }
    bool read = cr_snapshot_read(paths, group->len, CR_HOST_FILE_MAX, texts, err);
    for (size_t i = 0; i < group->len; i++) {
        cr_buf_dispose(&group->items[i]->text);
        group->items[i]->text = texts[i];
    }
    return read;
}

/* That none was swapped between the one file's way and the other's, back and forth as it may be. */
static bool ways_agree(const struct group *group)
{
    for (size_t i = 1; i < group->len; i++)
        for (size_t k = 0; k < i; k++)
            if (!cr_host_way_agree(&group->items[i]->way, &group->items[k]->way))
                return false;
    return true;
}

/* Links are followed before it is read: whether they lead there still. */
static bool still_there(const struct group *group)
{
    for (size_t i = 0; i < group->len; i++) {
        const struct cr_host_file *file = group->items[i];
        struct cr_error err = {0};
        CR_CLEANUP(cr_host_way) struct cr_host_way now;
        bool exists = cr_host_way_go(group->root, file->host, &now, &err);
        if (exists != file->exists || (exists && !cr_host_way_same(&now, &file->way)))
            return false;
    }
    return true;
}

static bool read_at_one_moment(const struct group *group, struct cr_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        *err = (struct cr_error){0};
        look(group);
        if (ways_agree(group) && read_once(group, err) && still_there(group))
            return true;
    }
    if (!err->kind)
        cr_error_set(err, CR_ERR_TRANSIENT, "changes while it is read");
    return false;
}

/* "/host/etc/…" is nothing that a person knows. */
static void say(struct cr_host_file *file, const struct cr_error *why)
{
    const char *words = why->text;
    size_t len = strlen(file->way.path);
    if (cr_starts_with(words, file->way.path) && cr_starts_with(words + len, ": "))
        words += len + 2;
    cr_buf_reset(&file->text);
    cr_error_set(&file->err, why->kind, "%s: %s", file->host, words);
}

/* One that is no file, or not to be read, keeps the others from nothing; of those that change all the time one by one
 * would be of different moments. */
static bool is_of_one_file(const struct cr_error *err)
{
    return err->kind == CR_ERR_INVALID || err->kind == CR_ERR_FORBIDDEN;
}

static void read_group(const struct group *group)
{
    struct cr_error err = {0};
    if (read_at_one_moment(group, &err))
        return;
    for (size_t i = 0; i < group->len; i++) {
        struct cr_host_file *file = group->items[i];
        const struct group alone = {.root = group->root, .items = &file, .len = 1};
        if (group->len > 1 && is_of_one_file(&err))
            read_group(&alone);
        else if (file->exists)
            say(file, &err);
    }
}

void cr_host_files_read_together(struct cr_host_files *files, const char *const *hosts, size_t len,
                                 const struct cr_host_file **out)
{
    cr_autofree struct cr_host_file **items = cr_calloc(len + 1, sizeof *items);
    struct group group = {.root = files->root, .items = items};
    for (size_t i = 0; i < len; i++) {
        struct cr_host_file *file = find(files, hosts[i]);
        if (!file)
            file = group.items[group.len++] = add(files, hosts[i]);
        out[i] = file;
    }
    if (group.len)
        read_group(&group);
}

const struct cr_host_file *cr_host_files_read(struct cr_host_files *files, const char *host)
{
    const struct cr_host_file *file = NULL;
    cr_host_files_read_together(files, &host, 1, &file);
    return file;
}

void cr_host_files_paths(const struct cr_host_files *files, struct cr_strvec *paths)
{
    for (size_t i = 0; i < files->len; i++) {
        const struct cr_host_file *file = files->items[i];
        cr_autofree char *name = cr_asprintf("%s%s", files->root, file->host);
        cr_strvec_add_unique(paths, name);
        for (size_t k = 0; k < file->way.links.len; k++)
            cr_strvec_add_unique(paths, file->way.links.items[k]);
        if (file->way.path)
            cr_strvec_add_unique(paths, file->way.path);
    }
}

/* --- folders --- */

static bool is_entry(const char *name)
{
    return !cr_streq(name, ".") && !cr_streq(name, "..");
}

bool cr_host_folder_list(const char *root, const char *host, size_t max, struct cr_strvec *out, struct cr_error *err)
{
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    if (!cr_host_way_go(root, host, &way, err))
        return false;
    DIR *folder = opendir(way.path);
    if (!folder && errno == ENOTDIR)
        return cr_error_set(err, CR_ERR_INVALID, "%s: is no folder", host);
    if (!folder)
        return cr_error_set_file(err, host);
    for (const struct dirent *entry = NULL; out->len <= max && (entry = readdir(folder));)
        if (is_entry(entry->d_name))
            cr_strvec_add(out, entry->d_name);
    closedir(folder);
    cr_strvec_sort(out);
    return out->len <= max || cr_error_set(err, CR_ERR_INVALID, "%s: has more than %zu entries", host, max);
}
