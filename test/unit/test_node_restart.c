#include "controlplane/agent/node_restart.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/xattr.h>

#include "support/nodetree.h"

#include "base/clock.h"
#include "controlplane/agent/static_pod.h"
#include "sys/file.h"

#define MANIFESTS "/etc/kubernetes/manifests"
#define MANIFEST  MANIFESTS "/kube-apiserver.yaml"
#define BESIDE    "/etc/kubernetes/.kube-apiserver.yaml.certroll"

static const char head[] = "# written by hand, two  spaces\napiVersion: v1\nkind: Pod\nmetadata:\n";
static const char name[] = "  name: kube-apiserver\n";
static const char rest[] = "spec:\n  hostNetwork: true\n  containers:\n  - name: kube-apiserver\n"
                           "    image: r/kube-apiserver:v1.36.3\n    command: [kube-apiserver, --secure-port=6443]\n";

/* --- a node of a static pod, or of a kubelet --- */

struct scene {
    struct node_tree tree;
    struct cr_node_layout layout;
    struct cr_node_look look;
    struct cr_node_program program;
    struct cr_static_pod *pods[1];
    char *manifests[1];
    struct cr_strvec components, command;
    struct cr_node_allowed allowed;
    struct cr_node_act act;
};

static char apiserver[] = "kube-apiserver", kubelet[] = "kubelet", manifest_path[] = MANIFEST,
            old_process[] = "boot-1-1", new_process[] = "boot-2-2", first_token[] = "token-1",
            second_token[] = "token-2", localhost[] = "127.0.0.1";

static void scene_dispose(struct scene *s)
{
    cr_static_pod_free(s->pods[0]);
    cr_strvec_dispose(&s->components);
    cr_strvec_dispose(&s->command);
    tree_dispose(&s->tree);
}
CR_DEFINE_DISPOSE(scene, struct scene, scene_dispose)

static void scene_init(struct scene *s, const char *component)
{
    *s = (struct scene){0};
    tree_init(&s->tree);
    s->layout.root = s->tree.root;
    s->allowed = (struct cr_node_allowed){
        .components = &s->components, .kubelet_command = &s->command, .command_timeout_ms = 20 * 1000};
    cr_strvec_add(&s->components, component);
}

static void scene_init_manifest(struct scene *s)
{
    scene_init(s, apiserver);
    cr_autofree char *text = cr_asprintf("%s%s%s", head, name, rest);
    tree_write(&s->tree, MANIFEST, text);
    s->pods[0] = cr_static_pod_read(text, strlen(text), NULL);
    assert_non_null(s->pods[0]);
    s->manifests[0] = manifest_path;
    s->look = (struct cr_node_look){.pods = s->pods, .manifests = s->manifests, .pods_len = 1};
    s->program = (struct cr_node_program){.component = apiserver,
                                          .pod = apiserver,
                                          .container = apiserver,
                                          .manifest = manifest_path,
                                          .running = true,
                                          .identity = old_process};
    s->act = (struct cr_node_act){
        .token = first_token, .component = apiserver, .phase = CR_NODE_ACT_RESTARTING, .process = old_process};
}

static void scene_init_kubelet(struct scene *s)
{
    scene_init(s, kubelet);
    s->look = (struct cr_node_look){.has_kubelet = true,
                                    .kubelet = {.address = localhost, .port = 10250, .healthz_address = localhost}};
    s->program = (struct cr_node_program){.component = kubelet, .running = true, .identity = old_process};
    s->act = (struct cr_node_act){
        .token = first_token, .component = kubelet, .phase = CR_NODE_ACT_RESTARTING, .process = old_process};
}

static bool begin(struct scene *s, struct cr_error *err)
{
    *err = (struct cr_error){0};
    return cr_node_restart_begin(&s->layout, &s->look, &s->program, &s->act, &s->allowed, err);
}

static void must_begin(struct scene *s)
{
    struct cr_error err;
    if (!begin(s, &err))
        fail_msg("%s: %s", cr_error_kind_name(err.kind), err.text);
}

static void must_not_begin(struct scene *s, enum cr_error_kind kind, const char *words)
{
    struct cr_error err;
    if (begin(s, &err))
        fail_msg("it was begun; expected %s", words);
    if (err.kind != kind || !strstr(err.text, words))
        fail_msg("want %s: %s, is %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(err.kind), err.text);
}

/* --- files of the host --- */

static char *real_path(const struct scene *s, const char *host)
{
    return cr_asprintf("%s%s", s->tree.root, host);
}

static char *text_of(const struct scene *s, const char *host)
{
    cr_autofree char *path = real_path(s, host);
    struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err = {0};
    if (!cr_file_read(path, 1 << 20, &text, &err))
        fail_msg("%s", err.text);
    return cr_buf_steal(&text);
}

static struct stat stat_of(const struct scene *s, const char *host)
{
    cr_autofree char *path = real_path(s, host);
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st;
}

static bool is_there(const struct scene *s, const char *host)
{
    cr_autofree char *path = real_path(s, host);
    return access(path, F_OK) == 0;
}

static void assert_manifest(const struct scene *s, const char *annotations)
{
    cr_autofree char *want = cr_asprintf("%s%s%s%s", head, annotations, name, rest);
    cr_autofree char *is = text_of(s, MANIFEST);
    assert_string_equal(is, want);
}

#define ANNOTATED(token) "  annotations:\n    \"certroll.dev/restart\": \"" token "\"\n"

/* --- the manifest --- */

static void one_annotation_is_added_and_nothing_else(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    must_begin(&s);
    assert_manifest(&s, ANNOTATED("token-1"));
    assert_false(is_there(&s, BESIDE));
}

static void it_is_done_once_for_each_token(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    must_begin(&s);
    struct stat first = stat_of(&s, MANIFEST);
    /* The look may be of before: what the manifest says by now counts. */
    must_begin(&s);
    assert_int_equal(stat_of(&s, MANIFEST).st_ino, first.st_ino);
    s.act.token = second_token;
    must_not_begin(&s, CR_ERR_CONFLICT, "somebody has just written it");
    cr_static_pod_free(s.pods[0]);
    cr_autofree char *text = text_of(&s, MANIFEST);
    s.pods[0] = cr_static_pod_read(text, strlen(text), NULL);
    must_begin(&s);
    assert_manifest(&s, ANNOTATED("token-2"));
}

static void owner_and_mode_are_kept(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *path = real_path(&s, MANIFEST);
    uid_t user = geteuid() == 0 ? 4711 : geteuid();
    gid_t group = geteuid() == 0 ? 4712 : getegid();
    assert_int_equal(chown(path, user, group), 0);
    assert_int_equal(chmod(path, 0640), 0);
    must_begin(&s);
    struct stat st = stat_of(&s, MANIFEST);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_uid, user);
    assert_int_equal(st.st_gid, group);
}

/* Where the kernel has none, nothing can be seen of it. */
static void a_label_is_kept(void **state)
{
    (void)state;
    static const char label[] = "system_u:object_r:etc_t:s0";
    char is[64] = "";
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *path = real_path(&s, MANIFEST);
    if (setxattr(path, "security.selinux", label, sizeof label, 0) != 0)
        skip();
    must_begin(&s);
    assert_int_equal(getxattr(path, "security.selinux", is, sizeof is), sizeof label);
    assert_string_equal(is, label);
}

/* Other than a rename into it the folder sees nothing: a kubelet that reads at any moment reads a whole file. */
static void the_kubelet_never_sees_a_half(void **state)
{
    (void)state;
    char events[4096];
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *folder = real_path(&s, MANIFESTS);
    cr_autofd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    uint32_t writing = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM;
    assert_true(inotify_add_watch(watch, folder, writing) >= 0);
    must_begin(&s);
    ssize_t len = read(watch, events, sizeof events);
    assert_true(len > 0);
    size_t moved = 0;
    for (ssize_t at = 0; at < len;) {
        struct inotify_event event;
        memcpy(&event, events + at, sizeof event);
        assert_string_equal(events + at + sizeof event, "kube-apiserver.yaml");
        assert_false(event.mask & (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM));
        moved += (event.mask & IN_MOVED_TO) != 0;
        at += (ssize_t)(sizeof event + event.len);
    }
    assert_int_equal(moved, 1);
}

static void what_a_crash_left_is_no_hindrance(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    tree_write(&s.tree, BESIDE, "half a mani");
    must_begin(&s);
    assert_manifest(&s, ANNOTATED("token-1"));
    assert_false(is_there(&s, BESIDE));
}

static void a_folder_may_be_a_link_of_the_host(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *from = real_path(&s, MANIFESTS);
    cr_autofree char *to = tree_make_way(s.tree.root, "/data/k8s/static");
    assert_int_equal(rename(from, to), 0);
    tree_link(&s.tree, MANIFESTS, "/data/k8s/static");
    must_begin(&s);
    cr_autofree char *is = text_of(&s, "/data/k8s/static/kube-apiserver.yaml");
    assert_non_null(strstr(is, ANNOTATED("token-1")));
    assert_false(is_there(&s, "/data/k8s/.kube-apiserver.yaml.certroll"));
}

static void what_cannot_be_replaced_is_refused_and_left_alone(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *text = text_of(&s, MANIFEST);
    tree_write(&s.tree, "/srv/kube-apiserver.yaml", text);
    tree_link(&s.tree, MANIFEST, "/srv/kube-apiserver.yaml");
    must_not_begin(&s, CR_ERR_INVALID, "it is a symbolic link");
    tree_remove(&s.tree, MANIFEST);
    must_not_begin(&s, CR_ERR_NOT_FOUND, MANIFEST ": cannot open it");
    cr_autofree char *path = real_path(&s, MANIFEST);
    assert_int_equal(mkfifo(path, 0600), 0);
    must_not_begin(&s, CR_ERR_INVALID, "it is no file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    must_not_begin(&s, CR_ERR_INVALID, "it is no file");
    assert_int_equal(rmdir(path), 0);
    tree_write(&s.tree, MANIFEST, "kind: Pod\nmetadata: [\n");
    must_not_begin(&s, CR_ERR_INVALID, "the manifest");
    assert_false(is_there(&s, BESIDE));
}

static void a_manifest_written_meanwhile_is_looked_at_again(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_autofree char *other = cr_asprintf("%s%s%s    env: [{name: A, value: b}]\n", head, name, rest);
    tree_write(&s.tree, MANIFEST, other);
    must_not_begin(&s, CR_ERR_CONFLICT, "somebody has just written it");
    cr_autofree char *is = text_of(&s, MANIFEST);
    assert_string_equal(is, other);
    /* A comment is no other Pod. */
    cr_autofree char *comment = cr_asprintf("%s%s%s# by hand\n", head, name, rest);
    tree_write(&s.tree, MANIFEST, comment);
    must_begin(&s);
    cr_autofree char *now = text_of(&s, MANIFEST);
    assert_true(cr_ends_with(now, "# by hand\n"));
}

static void what_is_not_allowed_is_not_done(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    cr_strvec_dispose(&s.components);
    cr_strvec_add(&s.components, "kubelet");
    must_not_begin(&s, CR_ERR_FORBIDDEN,
                   "kube-apiserver is not restarted: --allow-restart of the agent does not name it");
    assert_manifest(&s, "");
}

static void an_order_of_another_component_is_none_of_this(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_manifest(&s);
    s.act.component = kubelet;
    must_not_begin(&s, CR_ERR_INTERNAL, "another component");
    assert_manifest(&s, "");
}

/* --- the kubelet --- */

static void set_command(struct scene *s, const char *script)
{
    cr_strvec_dispose(&s->command);
    cr_strvec_add(&s->command, "/bin/sh");
    cr_strvec_add(&s->command, "-c");
    cr_strvec_add(&s->command, script);
    cr_strvec_add(&s->command, s->tree.root);
}

static void the_command_is_run_once_for_each_process(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_kubelet(&s);
    set_command(&s, "echo restarted >>\"$0/ran\"");
    must_begin(&s);
    cr_autofree char *once = text_of(&s, "/ran");
    assert_string_equal(once, "restarted\n");
    /* It ended before it could do anything: the process of before still runs. */
    must_begin(&s);
    s.program.identity = new_process;
    must_begin(&s);
    cr_autofree char *twice = text_of(&s, "/ran");
    assert_string_equal(twice, "restarted\nrestarted\n");
}

static void a_kubelet_that_does_not_run_is_started_by_it(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_kubelet(&s);
    set_command(&s, "echo restarted >>\"$0/ran\"");
    s.program.running = false;
    s.program.identity = NULL;
    must_begin(&s);
    assert_true(is_there(&s, "/ran"));
}

static void a_command_that_fails_says_why(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_kubelet(&s);
    set_command(&s, "echo first >&2; echo no such unit >&2; exit 5");
    must_not_begin(&s, CR_ERR_TRANSIENT, "the kubelet's restart: /bin/sh ended with status 5: no such unit");
    set_command(&s, "kill -9 $$");
    must_not_begin(&s, CR_ERR_TRANSIENT, "the kubelet's restart: /bin/sh was ended by signal 9");
    cr_strvec_dispose(&s.command);
    cr_strvec_add(&s.command, "/nonexistent/restart");
    must_not_begin(&s, CR_ERR_NOT_FOUND, "/nonexistent/restart");
}

static void a_command_that_does_not_end_is_ended(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init_kubelet(&s);
    set_command(&s, "exec sleep 600");
    s.allowed.command_timeout_ms = 200;
    int64_t before = cr_clock_monotonic_ms();
    must_not_begin(&s, CR_ERR_TRANSIENT, "the kubelet's restart: /bin/sh");
    assert_true(cr_clock_monotonic_ms() - before < 60 * 1000);
}

/* --- how it would be done --- */

static void the_way_is_said_or_why_there_is_none(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    struct cr_node_component out = {0};
    scene_init_manifest(&s);
    cr_node_restart_way(&s.look, &s.program, &s.allowed, &out);
    assert_string_equal(out.restart, "Manifest");
    assert_null(out.restart_refused);
    s.pods[0]->host_network = false;
    cr_node_restart_way(&s.look, &s.program, &s.allowed, &out);
    assert_null(out.restart);
    assert_string_equal(out.restart_refused,
                        "nobody could tell whether it is well again: its pod is not in the node's network");
    s.program.manifest = NULL;
    cr_node_restart_way(&s.look, &s.program, &s.allowed, &out);
    assert_string_equal(out.restart_refused, "it has no manifest");
    cr_node_restart_way(&s.look, &s.program, NULL, &out);
    assert_string_equal(out.restart_refused, "--allow-restart of the agent does not name it");
    free(out.restart);
    free(out.restart_refused);
}

static void a_kubelet_needs_a_command(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    struct cr_node_component out = {0};
    scene_init_kubelet(&s);
    cr_node_restart_way(&s.look, &s.program, &s.allowed, &out);
    assert_string_equal(out.restart_refused, "the agent has no --kubelet-restart-command");
    set_command(&s, "true");
    cr_node_restart_way(&s.look, &s.program, &s.allowed, &out);
    assert_string_equal(out.restart, "Command");
    assert_null(out.restart_refused);
    free(out.restart);
}

/* --- what has become of it --- */

enum { DEADLINE_S = 300 };

struct look {
    const char *process; /* NULL: does not run; "": there is no such program */
    enum cr_node_health health;
    const char *row; /* "<loaded> <evidence> <changed s>" of a file of it; NULL: all is loaded */
    int now;
    enum cr_node_act_phase want;
    const char *message; /* NULL: none */
};

#define SERVING CR_NODE_HEALTH_SERVING
#define FAILING CR_NODE_HEALTH_FAILING
#define OLD     "boot-1-1"
#define NEW     "boot-2-2"
#define NEWER   "boot-3-3"

static const struct {
    const char *rule;
    struct look looks[5];
} follows[] = {
    {"from step to step",
     {{OLD, SERVING, "RestartNeeded Inferred 50", 1000, CR_NODE_ACT_RESTARTING, "the process of before still runs"},
      {NULL, FAILING, NULL, 1010, CR_NODE_ACT_RESTARTING, "it does not run"},
      {NEW, FAILING, NULL, 1020, CR_NODE_ACT_PROVING, "/readyz answers 500"},
      {NEW, SERVING, NULL, 1040, CR_NODE_ACT_DONE, NULL}}},
    {"what came to its end stays there",
     {{NEW, SERVING, NULL, 1020, CR_NODE_ACT_DONE, NULL}, {OLD, FAILING, NULL, 9000, CR_NODE_ACT_DONE, NULL}}},
    {"the process does not go",
     {{OLD, SERVING, NULL, 1299, CR_NODE_ACT_RESTARTING, "the process of before still runs"},
      {OLD, SERVING, NULL, 1300, CR_NODE_ACT_FAILED, "the process of before still runs"}}},
    {"no other comes", {{NULL, FAILING, NULL, 1300, CR_NODE_ACT_FAILED, "it does not run"}}},
    {"it is taken away",
     {{"", SERVING, NULL, 1100, CR_NODE_ACT_RESTARTING, "there is no such component on the node any more"}}},
    {"it is not well in time",
     {{NEW, FAILING, NULL, 1100, CR_NODE_ACT_PROVING, "/readyz answers 500"},
      {NEW, FAILING, NULL, 1300, CR_NODE_ACT_FAILED, "/readyz answers 500"}}},
    {"nobody can tell", {{NEW, CR_NODE_HEALTH_UNKNOWN, NULL, 1100, CR_NODE_ACT_PROVING, "/readyz answers 500"}}},
    {"it crashes and comes again",
     {{NEW, FAILING, NULL, 1100, CR_NODE_ACT_PROVING, "/readyz answers 500"},
      {NULL, FAILING, NULL, 1110, CR_NODE_ACT_PROVING, "it does not run"},
      {NEWER, SERVING, NULL, 1120, CR_NODE_ACT_DONE, NULL}}},
    {"it serves something else than its file has",
     {{NEW, SERVING, "Unknown Verified 50", 1100, CR_NODE_ACT_PROVING, "--tls-cert-file: so it is"},
      {NEW, SERVING, NULL, 1110, CR_NODE_ACT_DONE, NULL}}},
    {"a file that it should have read, and has not",
     {{NEW, SERVING, "RestartNeeded Inferred 50", 1100, CR_NODE_ACT_PROVING, "--tls-cert-file: so it is"}}},
    {"one that was changed again since is another restart's",
     {{NEW, SERVING, "RestartNeeded Inferred 1050", 1100, CR_NODE_ACT_DONE, NULL}}},
    {"also when that is seen", {{NEW, SERVING, "Soon Verified 1050", 1100, CR_NODE_ACT_DONE, NULL}}},
    {"one that comes by itself", {{NEW, SERVING, "Soon Inferred 1050", 1100, CR_NODE_ACT_DONE, NULL}}},
    {"what cannot be told is not waited for", {{NEW, SERVING, "Unknown None 50", 1100, CR_NODE_ACT_DONE, NULL}}},
    {"a clock that was set back begins the time anew",
     {{OLD, SERVING, NULL, 500, CR_NODE_ACT_RESTARTING, "the process of before still runs"},
      {OLD, SERVING, NULL, 799, CR_NODE_ACT_RESTARTING, "the process of before still runs"},
      {OLD, SERVING, NULL, 800, CR_NODE_ACT_FAILED, "the process of before still runs"}}},
};

static struct cr_node_file row_of(const char *words, char *component)
{
    static char parameter[] = "--tls-cert-file", why[] = "so it is";
    struct cr_node_file row = {
        .component = component, .parameter = parameter, .why = why, .loaded = CR_NODE_LOADED_YES};
    char loaded[32];
    char evidence[32];
    int changed = 0;
    if (!words)
        return row;
    assert_int_equal(sscanf(words, "%31s %31s %d", loaded, evidence, &changed), 3);
    assert_true(cr_node_loaded_parse(loaded, &row.loaded));
    assert_true(cr_node_evidence_parse(evidence, &row.evidence));
    row.changed_ms = (int64_t)changed * 1000;
    return row;
}

/* The act goes through the report: each look may be another agent's. */
static void follow(const struct look *look, struct cr_node_act *act)
{
    cr_autofree char *process = cr_strdup_or_null(look->process);
    const struct cr_node_program program = {
        .component = apiserver, .running = process, .identity = process, .started_ms = 1015 * 1000};
    struct cr_node_proof proof = {.health = look->health};
    if (look->health != SERVING)
        snprintf(proof.message, sizeof proof.message, "/readyz answers 500");
    /* Nothing of another component counts. */
    const struct cr_node_file rows[] = {row_of("RestartNeeded Verified 50", kubelet), row_of(look->row, apiserver)};
    bool none = process && !*process;
    cr_node_restart_follow(none ? NULL : &program, &proof, rows, cr_array_len(rows), (int64_t)DEADLINE_S * 1000,
                           (int64_t)look->now * 1000, act);
}

static void a_restart_is_followed_to_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(follows); i++) {
        struct cr_node_act act = {.token = first_token,
                                  .component = apiserver,
                                  .phase = CR_NODE_ACT_RESTARTING,
                                  .started_ms = 1000 * 1000,
                                  .process = old_process};
        for (const struct look *look = follows[i].looks; look->now; look++) {
            follow(look, &act);
            if (act.phase != look->want || (look->want != CR_NODE_ACT_DONE && !cr_streq(act.message, look->message)))
                fail_msg("%s at %d: want %s (%s), is %s (%s)", follows[i].rule, look->now,
                         cr_node_act_phase_name(look->want), cr_or_empty(look->message),
                         cr_node_act_phase_name(act.phase), cr_or_empty(act.message));
            bool over = act.phase == CR_NODE_ACT_DONE || act.phase == CR_NODE_ACT_FAILED;
            assert_true(over == (act.finished_ms != 0));
        }
        free(act.message);
    }
}

static void what_was_not_begun_is_not_followed(void **state)
{
    (void)state;
    static const enum cr_node_act_phase phases[] = {CR_NODE_ACT_NONE, CR_NODE_ACT_WAITING, CR_NODE_ACT_REFUSED};
    const struct look look = {NEW, SERVING, NULL, 9000, CR_NODE_ACT_NONE, NULL};
    for (size_t i = 0; i < cr_array_len(phases); i++) {
        struct cr_node_act act = {.phase = phases[i], .process = old_process};
        follow(&look, &act);
        assert_int_equal(act.phase, phases[i]);
        assert_int_equal(act.finished_ms, 0);
    }
}

static void nothing_is_done_unasked(void **state)
{
    (void)state;
    const struct cr_node_program program = {.component = apiserver, .running = true, .identity = new_process};
    struct cr_node_act act = {.phase = CR_NODE_ACT_RESTARTING, .started_ms = 1000, .process = old_process};
    cr_node_restart_follow(&program, NULL, NULL, 0, 60 * 1000, 2000, &act);
    assert_int_equal(act.phase, CR_NODE_ACT_PROVING);
    assert_string_equal(act.message, "nobody has asked it yet whether it is well");
    free(act.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_annotation_is_added_and_nothing_else),
        cmocka_unit_test(it_is_done_once_for_each_token),
        cmocka_unit_test(owner_and_mode_are_kept),
        cmocka_unit_test(a_label_is_kept),
        cmocka_unit_test(the_kubelet_never_sees_a_half),
        cmocka_unit_test(what_a_crash_left_is_no_hindrance),
        cmocka_unit_test(a_folder_may_be_a_link_of_the_host),
        cmocka_unit_test(what_cannot_be_replaced_is_refused_and_left_alone),
        cmocka_unit_test(a_manifest_written_meanwhile_is_looked_at_again),
        cmocka_unit_test(what_is_not_allowed_is_not_done),
        cmocka_unit_test(an_order_of_another_component_is_none_of_this),
        cmocka_unit_test(the_command_is_run_once_for_each_process),
        cmocka_unit_test(a_kubelet_that_does_not_run_is_started_by_it),
        cmocka_unit_test(a_command_that_fails_says_why),
        cmocka_unit_test(a_command_that_does_not_end_is_ended),
        cmocka_unit_test(the_way_is_said_or_why_there_is_none),
        cmocka_unit_test(a_kubelet_needs_a_command),
        cmocka_unit_test(a_restart_is_followed_to_its_end),
        cmocka_unit_test(what_was_not_begun_is_not_followed),
        cmocka_unit_test(nothing_is_done_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
