#include "controlplane/agent/node_restart_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "controlplane/agent/host_way.h"
#include "controlplane/agent/manifest_edit.h"
#include "controlplane/agent/manifest_text.h"
#include "sys/file.h"
#include "sys/process.h"

/* A static pod is restarted by an annotation in its manifest, which the kubelet makes a new pod of. */

/* One manifest that is rewritten. */
struct rewrite {
    const char *manifest; /* the host's path, for words */
    const char *name;     /* in its folder; borrowed from manifest */
    char *beside;         /* the name of the file that takes its place, in the folder above */
    int folder, above;    /* -1: not opened */
    int file;             /* the manifest as it was read */
    struct stat was;
    struct cr_buf text;
    bool is_beside;
    struct cr_error *err;
};

static void rewrite_dispose(struct rewrite *r)
{
    if (r->is_beside)
        unlinkat(r->above, r->beside, 0);
    cr_fd_cleanup(&r->file);
    cr_fd_cleanup(&r->above);
    cr_fd_cleanup(&r->folder);
    cr_buf_dispose(&r->text);
    free(r->beside);
}
CR_DEFINE_DISPOSE(rewrite, struct rewrite, rewrite_dispose)

/* doing: "write the manifest". Always false. */
static bool fail(const struct rewrite *r, const char *doing)
{
    int error = errno;
    enum cr_error_kind kind = error == ENOENT || error == ENOTDIR                   ? CR_ERR_NOT_FOUND
                              : error == EACCES || error == EPERM || error == EROFS ? CR_ERR_FORBIDDEN
                                                                                    : CR_ERR_TRANSIENT;
    return cr_error_set(r->err, kind, "%s: cannot %s: %s", r->manifest, doing, strerror(error));
}

/* --- what is there --- */

static bool open_folders(struct rewrite *r, const struct cr_node_layout *layout)
{
    const char *slash = strrchr(r->manifest, '/');
    r->name = slash ? slash + 1 : r->manifest;
    r->beside = cr_asprintf(".%s.certroll", r->name);
    if (!slash || !*r->name)
        return cr_error_set(r->err, CR_ERR_INVALID, "%s: it is no manifest's path", r->manifest);
    cr_autofree char *host =
        slash == r->manifest ? cr_strdup("/") : cr_strndup(r->manifest, (size_t)(slash - r->manifest));
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    if (!cr_host_way_go(cr_or_empty(layout->root), host, &way, r->err))
        return false;
    r->folder = open(way.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r->above = r->folder < 0 ? -1 : openat(r->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->above >= 0 || fail(r, "open its folder and the one above");
}

/* The kubelet must never see a file that is half written, so it is written outside of its folder. */
static bool are_one_file_system(struct rewrite *r)
{
    struct stat folder;
    struct stat above;
    if (fstat(r->folder, &folder) != 0 || fstat(r->above, &above) != 0)
        return fail(r, "look at its folder");
    return folder.st_dev == above.st_dev ||
           cr_error_set(
               r->err, CR_ERR_INVALID,
               "%s: its folder is a mount of its own, so that no file can be renamed into it: the agent has to "
               "be given the folder above",
               r->manifest);
}

static bool read_text(struct rewrite *r)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", r->file);
    return cr_file_read(path, CR_YAML_MAX_BYTES, &r->text, r->err) || cr_error_wrap(r->err, "%s", r->manifest);
}

static bool read_manifest(struct rewrite *r)
{
    r->file = openat(r->folder, r->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (r->file < 0 && errno == ELOOP)
        return cr_error_set(
            r->err, CR_ERR_INVALID,
            "%s: it is a symbolic link, and a file in its place would be another: whoever keeps what it "
            "leads to restarts the pod",
            r->manifest);
    if (r->file < 0 || fstat(r->file, &r->was) != 0)
        return fail(r, "open it");
    if (!S_ISREG(r->was.st_mode))
        return cr_error_set(r->err, CR_ERR_INVALID, "%s: it is no file", r->manifest);
    return read_text(r);
}

static bool changed_meanwhile(const struct rewrite *r)
{
    return cr_error_set(r->err, CR_ERR_CONFLICT, "%s: somebody has just written it", r->manifest);
}

/* What was decided on is what was seen. */
static bool is_as_seen(const struct rewrite *r, const struct cr_node_look *look)
{
    CR_CLEANUP(cr_json) struct cr_json *now = cr_manifest_parse(r->text.data, r->text.len, r->err);
    if (!now)
        return cr_error_wrap(r->err, "%s", r->manifest);
    for (size_t i = 0; i < look->pods_len; i++)
        if (cr_streq(look->manifests[i], r->manifest) && cr_json_equal(now, look->pods[i]->json))
            return true;
    return changed_meanwhile(r);
}

/* Since it was read. */
static bool is_untouched(const struct rewrite *r)
{
    struct stat is;
    if (fstatat(r->folder, r->name, &is, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(r, "look at it again");
    bool same = is.st_dev == r->was.st_dev && is.st_ino == r->was.st_ino && is.st_size == r->was.st_size &&
                is.st_ctim.tv_sec == r->was.st_ctim.tv_sec && is.st_ctim.tv_nsec == r->was.st_ctim.tv_nsec;
    return same || changed_meanwhile(r);
}

/* --- what takes its place --- */

static bool write_all(int fd, const struct cr_buf *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Where there is none, or no such thing as labels, the kernel gives it that of its folder. */
static bool copy_label(int from, int to)
{
    static const char name[] = "security.selinux";
    char label[1024];
    ssize_t len = fgetxattr(from, name, label, sizeof label);
    if (len < 0)
        return errno == ENODATA || errno == ENOTSUP;
    return fsetxattr(to, name, label, (size_t)len, 0) == 0 || errno == ENOTSUP;
}

/* The mode last: a change of the owner may take bits of it. */
static bool write_beside(struct rewrite *r, const struct cr_buf *text)
{
    if (unlinkat(r->above, r->beside, 0) != 0 && errno != ENOENT)
        return fail(r, "remove what a restart before has left beside its folder");
    cr_autofd int fd =
        openat(r->above, r->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    r->is_beside = fd >= 0;
    if (fd < 0 || !write_all(fd, text))
        return fail(r, "write beside its folder");
    if (fchown(fd, r->was.st_uid, r->was.st_gid) != 0 || !copy_label(r->file, fd) ||
        fchmod(fd, r->was.st_mode & 07777) != 0)
        return fail(r, "give the new one its owner, label and mode");
    return fsync(fd) == 0 || fail(r, "write it to the disk");
}

static bool put_in_place(struct rewrite *r)
{
    if (!is_untouched(r))
        return false;
    if (renameat(r->above, r->beside, r->folder, r->name) != 0)
        return fail(r, "put the new one in its place");
    r->is_beside = false;
    /* Some file systems have no fsync for folders; the rename has happened all the same. */
    fsync(r->folder);
    fsync(r->above);
    return true;
}

/* As cr_node_restart_begin, of what is allowed. */
static bool node_restart_manifest(const struct cr_node_layout *layout, const struct cr_node_look *look,
                                  const struct cr_node_program *program, const char *token, struct cr_error *err)
{
    CR_CLEANUP(rewrite)
    struct rewrite r = {.manifest = program->manifest, .folder = -1, .above = -1, .file = -1, .err = err};
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(CR_YAML_MAX_BYTES);
    bool changed = false;
    if (!open_folders(&r, layout) || !read_manifest(&r))
        return false;
    if (!cr_manifest_annotate(r.text.data, r.text.len, CR_NODE_RESTART_ANNOTATION, token, &text, &changed, err))
        return cr_error_wrap(err, "%s", r.manifest);
    if (!changed)
        return true;
    return is_as_seen(&r, look) && are_one_file_system(&r) && write_beside(&r, &text) && put_in_place(&r);
}

/* The kubelet is restarted by a command of the agent's configuration. */

enum { OUTPUT_MAX = 1024 * 1024 /* which is not kept */ };

static bool judge(const char *command, const struct cr_process_end *end, struct cr_error *err)
{
    if (end->status == 0)
        return true;
    const char *colon = end->last_words[0] ? ": " : "";
    if (end->signal)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s was ended by signal %d%s%s", command, end->signal, colon,
                            end->last_words);
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s ended with status %d%s%s", command, end->status, colon,
                        end->last_words);
}

static bool run(const struct cr_node_allowed *allowed, struct cr_error *err)
{
    static const struct cr_strvec as_it_is = {0};
    const struct cr_strvec *argv = allowed->kubelet_command;
    CR_CLEANUP(cr_strvec) struct cr_strvec environment = {0};
    CR_CLEANUP(cr_buf) struct cr_buf output = CR_BUF_INIT(0);
    struct cr_process_end end = {0};
    cr_autofree char *path = cr_process_find(argv->items[0], err);
    if (!path)
        return false;
    cr_process_environment(&as_it_is, &environment);
    int64_t timeout_ms = allowed->command_timeout_ms;
    const struct cr_process process = {.path = path,
                                       .argv = argv,
                                       .environment = &environment,
                                       .timeout_ms = timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX,
                                       .max_output = OUTPUT_MAX,
                                       .cancel_fd = -1};
    if (!cr_process_run(&process, &output, &end, err))
        return cr_error_wrap(err, "%s", argv->items[0]);
    return judge(argv->items[0], &end, err);
}

/* Another process than the one that was to go is its successor: it is not restarted twice for one token. */
static bool restart_kubelet(const struct cr_node_program *program, const struct cr_node_act *act,
                            const struct cr_node_allowed *allowed, struct cr_error *err)
{
    const char *now = program->running ? program->identity : NULL;
    if (now && !cr_streq(now, act->process))
        return true;
    return run(allowed, err) || cr_error_wrap(err, "the kubelet's restart");
}

/* --- what may be done --- */

static bool is_allowed(const struct cr_node_allowed *allowed, const char *component)
{
    return allowed && allowed->components && cr_strvec_has(allowed->components, component);
}

/* Why it is not restarted; NULL: it may be. Static. */
static const char *refusal(const struct cr_node_program *program, const struct cr_node_allowed *allowed)
{
    if (!is_allowed(allowed, program->component))
        return "--allow-restart of the agent does not name it";
    if (cr_node_restart_is_kubelet(program))
        return allowed->kubelet_command && allowed->kubelet_command->len ? NULL
                                                                         : "the agent has no --kubelet-restart-command";
    return program->manifest ? NULL : "it has no manifest";
}

void cr_node_restart_way(const struct cr_node_look *look, const struct cr_node_program *program,
                         const struct cr_node_allowed *allowed, struct cr_node_component *out)
{
    struct cr_node_port ports[CR_NODE_PORTS_MAX];
    const char *unasked = NULL;
    const char *why = refusal(program, allowed);
    (void)cr_node_ports(look, program, ports, &unasked);
    cr_strset(&out->restart, NULL);
    cr_strset(&out->restart_refused, NULL);
    if (why)
        out->restart_refused = cr_strdup(why);
    else if (unasked)
        out->restart_refused = cr_asprintf("nobody could tell whether it is well again: %s", unasked);
    else
        out->restart = cr_strdup(cr_node_restart_is_kubelet(program) ? "Command" : "Manifest");
}

bool cr_node_restart_is_kubelet(const struct cr_node_program *program)
{
    return !program->manifest && cr_streq(program->component, "kubelet");
}

bool cr_node_restart_begin(const struct cr_node_layout *layout, const struct cr_node_look *look,
                           const struct cr_node_program *program, const struct cr_node_act *act,
                           const struct cr_node_allowed *allowed, struct cr_error *err)
{
    const char *why = refusal(program, allowed);
    if (!cr_streq(act->component, program->component) || !act->token)
        return cr_error_set(err, CR_ERR_INTERNAL, "the order is about another component");
    if (why)
        return cr_error_set(err, CR_ERR_FORBIDDEN, "%s is not restarted: %s", program->component, why);
    if (!program->manifest)
        return restart_kubelet(program, act, allowed, err); /* of others, refusal() */
    return node_restart_manifest(layout, look, program, act->token, err);
}
