/* What a container's mounts show it of the host, and which file of the host a path of its means. */
#include "controlplane/agent/static_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "catalogue/settings.h"

/* --- paths --- */

/* Absolute, each slash once and none at the end, without "."; NULL for a relative path and one with "..", since where
 * that leads is not known without looking at the links before it. Owned. */
static char *clean(const char *path)
{
    if (!path || path[0] != '/')
        return NULL;
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && strncmp(path, "..", 2) == 0)
            return NULL;
        if (len && !(len == 1 && *path == '.'))
            cr_buf_printf(&out, "/%.*s", (int)len, path);
        path += len + (path[len] == '/');
    }
    return out.len ? cr_buf_steal(&out) : cr_strdup("/");
}

/* Below a clean path; NULL as in clean. Owned. */
static char *below(const char *folder, const char *path)
{
    cr_autofree char *joined = cr_asprintf("%s/%s", folder, path);
    return clean(joined);
}

/* What of a clean path is below a clean folder: "" the folder itself, NULL when it is elsewhere. */
static const char *rest_below(const char *folder, const char *path)
{
    size_t len = cr_streq(folder, "/") ? 0 : strlen(folder);
    if (strncmp(path, folder, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return path + len + strspn(path + len, "/");
}

/* --- mounts --- */

static const struct cr_json *named(const struct cr_json *list, const char *name)
{
    for (const struct cr_json *item = cr_json_first(list); name && item; item = cr_json_next(item))
        if (cr_streq(cr_json_string_at(item, "name"), name))
            return item;
    return NULL;
}

/* $(VAR) in it is expanded as in an argument: by the variables of the container. Owned; NULL: some are not shown. */
static char *expanded(const struct cr_json *container, const char *text)
{
    CR_CLEANUP(cr_json) struct cr_json *other = cr_json_new_object();
    const struct cr_json *env = cr_json_get(container, "env");
    if (env)
        cr_json_set(other, "env", cr_json_copy(env));
    struct cr_json *args = cr_json_new_array();
    cr_json_add(args, cr_json_new_string(text));
    cr_json_set(other, "args", args);
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    return cr_settings_argv(other, &words) && words.len == 1 ? cr_strdup(words.items[0]) : NULL;
}

/* The part of the volume that is mounted: "" all of it, NULL when it is not known. Owned. */
static char *sub_path_of(const struct cr_json *container, const struct cr_json *mount)
{
    const char *expression = cr_json_string_at(mount, "subPathExpr");
    cr_autofree char *path = expression && *expression ? expanded(container, expression)
                                                       : cr_strdup(cr_or_empty(cr_json_string_at(mount, "subPath")));
    return path && path[0] != '/' ? cr_steal(&path) : NULL; /* the kubelet takes no absolute one */
}

static enum cr_static_mount_kind kind_of(const char *type)
{
    if (!type || !*type)
        return CR_STATIC_MOUNT_EITHER;
    return cr_starts_with(type, "Directory") ? CR_STATIC_MOUNT_FOLDER : CR_STATIC_MOUNT_FILE;
}

static void show_host(struct cr_static_mount *out, const struct cr_json *host_path, char *sub_path)
{
    cr_autofree char *sub = sub_path;
    cr_autofree char *host = clean(cr_json_string_at(host_path, "path"));
    out->host = host && sub ? below(host, sub) : NULL;
    out->sub = !sub || *sub;
    if (!out->host)
        out->kind = CR_STATIC_MOUNT_UNKNOWN;
    else
        out->kind = out->sub ? CR_STATIC_MOUNT_EITHER : kind_of(cr_json_string_at(host_path, "type"));
}

static struct cr_static_mount read_mount(const struct cr_json *pod, const struct cr_json *container,
                                         const struct cr_json *mount)
{
    const struct cr_json *volume = named(cr_json_at(pod, "spec", "volumes"), cr_json_string_at(mount, "name"));
    /* makeMounts puts a slash before a path without one. One that is not known may hide anything: it is everywhere.
     */
    cr_autofree char *path = below("", cr_or_empty(cr_json_string_at(mount, "mountPath")));
    struct cr_static_mount out = {.path = cr_strdup(path ? path : "/"), .kind = CR_STATIC_MOUNT_UNKNOWN};
    if (!path || !volume)
        return out;
    if (cr_json_get(volume, "hostPath"))
        show_host(&out, cr_json_get(volume, "hostPath"), sub_path_of(container, mount));
    else
        out.kind = CR_STATIC_MOUNT_ELSEWHERE;
    return out;
}

bool cr_static_mounts(const struct cr_json *pod, struct cr_static_container *container, struct cr_error *err)
{
    const struct cr_json *mounts = cr_json_get(container->json, "volumeMounts");
    size_t len = cr_json_len(mounts);
    if (len > CR_STATIC_POD_MOUNTS_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "the manifest's container %.64s has more than %d mounts",
                            container->name, CR_STATIC_POD_MOUNTS_MAX);
    container->mounts = cr_calloc(len, sizeof *container->mounts);
    for (const struct cr_json *mount = cr_json_first(mounts); mount; mount = cr_json_next(mount))
        container->mounts[container->mounts_len++] = read_mount(pod, container->json, mount);
    return true;
}

/* --- a path of the container --- */

void cr_static_file_dispose(struct cr_static_file *file)
{
    free(file->path);
    *file = (struct cr_static_file){0};
}

static struct cr_static_file no_file(enum cr_static_place place, const char *why)
{
    return (struct cr_static_file){.place = place, .why = why};
}

/* Owned; NULL: not known. */
static char *absolute(const struct cr_static_container *container, const char *path)
{
    const char *working = cr_json_string_at(container->json, "workingDir");
    if (path[0] == '/' || !working)
        return clean(path);
    cr_autofree char *folder = clean(working);
    return folder ? below(folder, path) : NULL;
}

static const struct cr_static_mount *mount_of(const struct cr_static_container *container, const char *path)
{
    const struct cr_static_mount *best = NULL;
    for (size_t i = 0; i < container->mounts_len; i++) {
        const struct cr_static_mount *mount = &container->mounts[i];
        if (rest_below(mount->path, path) && (!best || strlen(mount->path) > strlen(best->path)))
            best = mount;
    }
    return best;
}

static struct cr_static_file file_of(const struct cr_static_mount *mount, const char *path)
{
    const char *rest = rest_below(mount->path, path);
    if (mount->kind == CR_STATIC_MOUNT_ELSEWHERE)
        return no_file(CR_STATIC_PLACE_ELSEWHERE, "is in a volume that is no folder of the host");
    if (mount->kind == CR_STATIC_MOUNT_UNKNOWN)
        return no_file(CR_STATIC_PLACE_UNKNOWN, "is below a mount of which the manifest does not say what it shows");
    if (*rest && mount->kind == CR_STATIC_MOUNT_FILE)
        return no_file(CR_STATIC_PLACE_UNKNOWN, "is below a mount that is a file");
    return (struct cr_static_file){
        .place = CR_STATIC_PLACE_HOST,
        .path = below(mount->host, rest),
        .alone = !*rest && mount->kind != CR_STATIC_MOUNT_FOLDER,
    };
}

void cr_static_container_file(const struct cr_static_container *container, const char *path, struct cr_static_file *out)
{
    if (!path || !*path || strchr(path, '$')) {
        *out = no_file(CR_STATIC_PLACE_UNKNOWN, "is not shown by the manifest");
        return;
    }
    cr_autofree char *clean_path = absolute(container, path);
    const struct cr_static_mount *mount = clean_path ? mount_of(container, clean_path) : NULL;
    if (!clean_path)
        *out = no_file(CR_STATIC_PLACE_UNKNOWN,
                       path[0] == '/' ? "has \"..\" in it" : "is relative to a folder that cannot be told");
    else if (!mount)
        *out = no_file(CR_STATIC_PLACE_IMAGE, "is below no mount, so the image's own");
    else
        *out = file_of(mount, clean_path);
}
