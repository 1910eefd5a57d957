/* A kubeadm cluster of tests as its nodes report it: three nodes, each with etcd, an API server, a controller manager,
 * a scheduler and a kubelet. CAs and keys are letters, and a leaf is a digit and the letters of the CAs that it
 * verifies against: "1a". PKIs have letters of their own: a, b, c the cluster's, e, f etcd's, p, q the front proxy's;
 * x, y, z are keys of service accounts. */
#ifndef TEST_SUPPORT_CONTROLPLANESCENE_H
#define TEST_SUPPORT_CONTROLPLANESCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "controlplane/rules/control_plane_plan.h"

enum { SCENE_NODES = 3, SCENE_ROWS = 32, SCENE_COMPONENTS = 5, SCENE_TEXT = 12, SCENE_OBJECTS = 4 };
static const int64_t scene_now = 1800000000000;
enum { SCENE_SECOND = 1000, SCENE_MINUTE = 60 * SCENE_SECOND, SCENE_HOUR = 60 * SCENE_MINUTE };

static const char *const scene_components[SCENE_COMPONENTS] = {"etcd", "kube-apiserver", "kube-controller-manager",
                                                               "kube-scheduler", "kubelet"};

/* All cases are told that fail, not the first alone. */
#define scene_check_each(cases, check)                                                                                 \
    do {                                                                                                               \
        size_t bad = 0;                                                                                                \
        for (size_t i = 0; i < cr_array_len(cases); i++)                                                               \
            bad += !check(&(cases)[i]);                                                                                \
        assert_int_equal(bad, 0);                                                                                      \
    } while (0)

enum scene_kind {
    TRUST = CR_NODE_FILE_TRUST,
    LEAF = CR_NODE_FILE_LEAF,
    SIGNER = CR_NODE_FILE_SIGNER,
    KEYS = CR_NODE_FILE_KEYS
};

/* delay: seconds till it is taken up without a restart; -1: never. */
struct scene_parameter {
    const char *component, *parameter, *via;
    enum cr_role role;
    enum scene_kind kind;
    int delay;
    const char *file; /* its name on the node: two of one name are one file */
    const char *content;
    bool embedded;
};

/* clang-format off */
static const struct scene_parameter scene_parameters[] = {
    {"etcd", "--trusted-ca-file", NULL, CR_ROLE_CLIENT_CA, TRUST, -1, "etcd-ca", "e"},
    {"etcd", "--trusted-ca-file", NULL, CR_ROLE_SERVER_CA, TRUST, -1, "etcd-ca", "e"},
    {"etcd", "--peer-trusted-ca-file", NULL, CR_ROLE_CLIENT_CA, TRUST, -1, "etcd-ca", "e"},
    {"etcd", "--peer-trusted-ca-file", NULL, CR_ROLE_SERVER_CA, TRUST, -1, "etcd-ca", "e"},
    {"etcd", "--cert-file", NULL, CR_ROLE_SERVER_LEAF, LEAF, 1, "etcd-server", "1e"},
    {"etcd", "--peer-cert-file", NULL, CR_ROLE_SERVER_LEAF, LEAF, 1, "etcd-peer", "1e"},
    {"kube-apiserver", "--tls-cert-file", NULL, CR_ROLE_SERVER_LEAF, LEAF, 5, "apiserver", "1a"},
    {"kube-apiserver", "--client-ca-file", NULL, CR_ROLE_CLIENT_CA, TRUST, 5, "ca", "a"},
    {"kube-apiserver", "--requestheader-client-ca-file", NULL, CR_ROLE_CLIENT_CA, TRUST, 5, "proxy-ca", "p"},
    {"kube-apiserver", "--proxy-client-cert-file", NULL, CR_ROLE_CLIENT_LEAF, LEAF, 5, "proxy-client", "1p"},
    {"kube-apiserver", "--etcd-cafile", NULL, CR_ROLE_SERVER_CA, TRUST, -1, "etcd-ca", "e"},
    {"kube-apiserver", "--etcd-certfile", NULL, CR_ROLE_CLIENT_LEAF, LEAF, 1, "etcd-client", "1e"},
    {"kube-apiserver", "--kubelet-certificate-authority", NULL, CR_ROLE_SERVER_CA, TRUST, 300, "ca", "a"},
    {"kube-apiserver", "--kubelet-client-certificate", NULL, CR_ROLE_CLIENT_LEAF, LEAF, 300, "kubelet-client", "1a"},
    {"kube-apiserver", "--service-account-key-file", NULL, CR_ROLE_OPAQUE, KEYS, -1, "sa.pub", "x"},
    {"kube-apiserver", "--service-account-signing-key-file", NULL, CR_ROLE_OPAQUE, KEYS, -1, "sa.key", "x"},
    {"kube-controller-manager", "--client-ca-file", NULL, CR_ROLE_CLIENT_CA, TRUST, 5, "ca", "a"},
    {"kube-controller-manager", "--root-ca-file", NULL, CR_ROLE_SERVER_CA, TRUST, -1, "ca", "a"},
    {"kube-controller-manager", "--cluster-signing-cert-file", NULL, CR_ROLE_OPAQUE, SIGNER, 5, "signing", "a"},
    {"kube-controller-manager", "--service-account-private-key-file", NULL, CR_ROLE_OPAQUE, KEYS, -1, "sa.key", "x"},
    {"kube-controller-manager", "kubeconfig certificate-authority", "--kubeconfig", CR_ROLE_SERVER_CA, TRUST, -1, "cm.conf", "a", true},
    {"kube-controller-manager", "kubeconfig client-certificate", "--kubeconfig", CR_ROLE_CLIENT_LEAF, LEAF, -1, "cm.leaf", "1a", true},
    {"kube-scheduler", "kubeconfig certificate-authority", "--kubeconfig", CR_ROLE_SERVER_CA, TRUST, -1, "scheduler.conf", "a", true},
    {"kube-scheduler", "kubeconfig client-certificate", "--kubeconfig", CR_ROLE_CLIENT_LEAF, LEAF, -1, "scheduler.leaf", "1a", true},
    {"kubelet", "authentication.x509.clientCAFile", NULL, CR_ROLE_CLIENT_CA, TRUST, 5, "ca", "a"},
    {"kubelet", "kubeconfig certificate-authority", "--kubeconfig", CR_ROLE_SERVER_CA, TRUST, -1, "kubelet.conf", "a", true},
    {"kubelet", "kubeconfig client-certificate", "--kubeconfig", CR_ROLE_CLIENT_LEAF, LEAF, -1, "kubelet.leaf", "1a"},
    {"kubelet", "tlsCertFile", NULL, CR_ROLE_SERVER_LEAF, LEAF, 5, "kubelet-serving", "1a"},
};
/* clang-format on */
enum { SCENE_PARAMETERS = sizeof scene_parameters / sizeof *scene_parameters };

/* --- letters --- */

static inline bool scene_is_ca(char letter)
{
    return letter >= 'a' && letter <= 'z';
}

static inline void scene_print(char letter, char out[CR_SHA256_HEX])
{
    for (int i = 0; i < CR_SHA256_HEX - 1; i += 2)
        snprintf(out + i, 3, "%02x", (unsigned char)letter);
}

/* Lists of the status as letters: "ab". */
static inline void scene_letters(const char *list, char *out, size_t size)
{
    size_t len = 0;
    for (const char *p = cr_or_empty(list); *p && len + 1 < size; p += strcspn(p, ","), p += *p == ',') {
        unsigned letter = '?';
        sscanf(p, "%2x", &letter);
        out[len++] = (char)letter;
    }
    out[len] = '\0';
}

static inline void scene_add_prints(struct cr_strvec *to, const char *letters)
{
    char print[CR_SHA256_HEX];
    for (const char *p = letters; *p; p++)
        if (scene_is_ca(*p)) {
            scene_print(*p, print);
            cr_strvec_add(to, print);
        }
}

/* A leaf's own fingerprint: of all of its text. */
static inline void scene_add_leaf(struct cr_strvec *to, const char *leaf)
{
    char print[CR_SHA256_HEX];
    cr_sha256_hex(leaf, strlen(leaf), print);
    cr_strvec_add(to, print);
}

/* --- the model --- */

struct scene_row {
    char file[SCENE_TEXT]; /* what is in it; "!": broken */
    char has[SCENE_TEXT];  /* what the process has; "?": not known, and only a restart helps */
    int64_t changed_ms;
};

struct scene_node {
    bool absent; /* no agent ever */
    int64_t seen_ms;
    struct scene_row rows[SCENE_PARAMETERS];
    bool running[SCENE_COMPONENTS], failing[SCENE_COMPONENTS], refused[SCENE_COMPONENTS];
    int64_t started_ms[SCENE_COMPONENTS];
    int process[SCENE_COMPONENTS];
    bool own;                /* the kubelet's pair is its own */
    char tokens[SCENE_TEXT]; /* keys that tokens on the node are of; "?": its agent does not look */
    char order[40], order_component[32];
    struct cr_node_act act; /* its texts are the scene's */
    char act_token[40], act_component[32];
    const char *trouble;
};

struct scene_cluster {
    struct scene_node nodes[SCENE_NODES];
    int64_t now_ms;
    char leader[16];
};

static inline size_t scene_component(const char *name)
{
    for (size_t i = 0; i < SCENE_COMPONENTS; i++)
        if (cr_streq(scene_components[i], name))
            return i;
    fail_msg("the test's own component: %s", name);
    return 0;
}

static inline void scene_cluster_init(struct scene_cluster *cluster)
{
    memset(cluster, 0, sizeof *cluster);
    cluster->now_ms = scene_now;
    snprintf(cluster->leader, sizeof cluster->leader, "node-1");
    for (size_t n = 0; n < SCENE_NODES; n++) {
        struct scene_node *node = &cluster->nodes[n];
        node->seen_ms = scene_now - SCENE_SECOND;
        node->own = true;
        snprintf(node->tokens, sizeof node->tokens, "x");
        for (size_t i = 0; i < SCENE_PARAMETERS; i++) {
            snprintf(node->rows[i].file, SCENE_TEXT, "%s", scene_parameters[i].content);
            snprintf(node->rows[i].has, SCENE_TEXT, "%s", scene_parameters[i].content);
            node->rows[i].changed_ms = scene_now - 2 * SCENE_HOUR;
        }
        for (size_t i = 0; i < SCENE_COMPONENTS; i++) {
            node->running[i] = true;
            node->started_ms[i] = scene_now - SCENE_HOUR;
            node->process[i] = (int)(100 * n + i);
        }
    }
}

/* --- reports --- */

static inline void scene_fill(struct cr_node_file *file, const struct scene_row *row, enum scene_kind kind)
{
    file->kind = (enum cr_node_file_kind)kind;
    if (row->file[0] == '!') {
        file->kind = CR_NODE_FILE_UNREAD;
        file->problem = cr_strdup("is no certificate");
    } else if (kind == LEAF) {
        scene_add_leaf(&file->prints, row->file);
        scene_add_prints(&file->issuers, row->file);
    } else {
        scene_add_prints(&file->prints, row->file);
    }
    file->has_known = row->has[0] != '?';
    if (file->has_known && kind == LEAF)
        scene_add_leaf(&file->has, row->has);
    else if (file->has_known)
        scene_add_prints(&file->has, row->has);
}

static inline enum cr_node_loaded scene_loaded(const struct scene_cluster *cluster, const struct scene_row *row,
                                               const struct scene_parameter *parameter, bool running)
{
    if (row->file[0] == '!' || !running)
        return CR_NODE_LOADED_UNKNOWN;
    if (cr_streq(row->file, row->has))
        return CR_NODE_LOADED_YES;
    (void)cluster;
    return parameter->delay >= 0 && row->has[0] != '?' ? CR_NODE_LOADED_SOON : CR_NODE_LOADED_NO;
}

static inline void scene_report_file(const struct scene_cluster *cluster, const struct scene_node *node, size_t i,
                                     struct cr_node_file *file)
{
    const struct scene_parameter *parameter = &scene_parameters[i];
    bool pair = node->own && cr_streq(parameter->file, "kubelet.leaf");
    *file = (struct cr_node_file){.component = cr_strdup(parameter->component),
                                  .parameter = cr_strdup(parameter->parameter),
                                  .via = cr_strdup_or_null(parameter->via),
                                  .role = parameter->role,
                                  .place = cr_strdup(parameter->embedded ? "Embedded" : "Host"),
                                  .path = cr_asprintf("/k/%s", parameter->file),
                                  .own = pair,
                                  .changed_ms = node->rows[i].changed_ms,
                                  .due_ms = node->rows[i].changed_ms + (int64_t)parameter->delay * SCENE_SECOND};
    scene_fill(file, &node->rows[i], parameter->kind);
    bool running = node->running[scene_component(parameter->component)];
    /* An agent cannot tell what the kubelet has in memory, and says that it is what it writes. */
    file->loaded = pair ? CR_NODE_LOADED_YES : scene_loaded(cluster, &node->rows[i], parameter, running);
}

static inline void scene_report_cas(struct cr_node_report *report)
{
    static const char letters[] = "abcefpq";
    report->cas = cr_calloc(sizeof letters, sizeof *report->cas);
    for (const char *p = letters; *p; p++) {
        struct cr_node_ca *ca = &report->cas[report->cas_len++];
        scene_print(*p, ca->fingerprint);
        ca->not_after_ms = scene_now + (int64_t)(*p - 'a' + 1) * 1000 * SCENE_HOUR;
    }
}

static inline void scene_report_tokens(const struct scene_node *node, struct cr_node_report *report)
{
    char print[CR_SHA256_HEX];
    report->tokens_known = node->tokens[0] != '?';
    report->tokens = cr_calloc(SCENE_TEXT, sizeof *report->tokens);
    for (const char *p = node->tokens; *p && report->tokens_known; p++) {
        scene_print(*p, print);
        report->tokens[report->tokens_len++] = (struct cr_node_token_count){.key = cr_strdup(print), .tokens = 3};
    }
}

static inline void scene_report_components(const struct scene_node *node, struct cr_node_report *report)
{
    report->components = cr_calloc(SCENE_COMPONENTS, sizeof *report->components);
    for (size_t i = 0; i < SCENE_COMPONENTS; i++) {
        struct cr_node_component *component = &report->components[report->components_len++];
        bool serves = node->running[i] && !node->failing[i];
        *component = (struct cr_node_component){
            .name = cr_strdup(scene_components[i]),
            .running = node->running[i],
            .process = node->running[i] ? cr_asprintf("boot-%d", node->process[i]) : NULL,
            .started_ms = node->running[i] ? node->started_ms[i] : 0,
            .restart = node->refused[i] ? NULL : cr_strdup("Manifest"),
            .restart_refused = node->refused[i] ? cr_strdup("--allow-restart does not list it") : NULL,
            .health = serves ? CR_NODE_HEALTH_SERVING : CR_NODE_HEALTH_FAILING};
    }
}

static inline void scene_report(const struct scene_cluster *cluster, size_t n, struct cr_node_report *report)
{
    const struct scene_node *node = &cluster->nodes[n];
    *report = (struct cr_node_report){.node = cr_asprintf("node-%zu", n + 1), .seen_ms = node->seen_ms};
    report->order.token = *node->order ? cr_strdup(node->order) : NULL;
    report->order.component = *node->order ? cr_strdup(node->order_component) : NULL;
    report->act = node->act;
    report->act.token = *node->act_token ? cr_strdup(node->act_token) : NULL;
    report->act.component = *node->act_component ? cr_strdup(node->act_component) : NULL;
    if (node->trouble)
        cr_strvec_add(&report->troubles, node->trouble);
    scene_report_components(node, report);
    scene_report_cas(report);
    scene_report_tokens(node, report);
    report->files = cr_calloc(SCENE_PARAMETERS, sizeof *report->files);
    for (size_t i = 0; i < SCENE_PARAMETERS; i++)
        scene_report_file(cluster, node, i, &report->files[report->files_len++]);
}

/* --- the world --- */

struct scene_object {
    char ns[16], name[16];
    char prints[SCENE_TEXT];
    char key; /* 0: none */
    bool terminating;
    bool out_of_reach;
};

struct scene_world {
    struct cr_node_report reports[SCENE_NODES];
    struct cr_control_plane_node nodes[SCENE_NODES];
    char names[SCENE_NODES][16];
    struct cr_strvec prints[2 * SCENE_OBJECTS];
    char keys[SCENE_OBJECTS][CR_SHA256_HEX];
    struct cr_control_plane_object objects[2 * SCENE_OBJECTS];
    struct cr_control_plane_world world;
};

static inline void scene_world_object(struct scene_world *w, size_t at, const struct scene_object *from)
{
    scene_add_prints(&w->prints[at], from->prints);
    w->objects[at] = (struct cr_control_plane_object){.ns = from->ns,
                                                      .name = from->name,
                                                      .terminating = from->terminating,
                                                      .out_of_reach = from->out_of_reach,
                                                      .prints = *from->prints ? &w->prints[at] : NULL};
}

/* roots, secrets: at most SCENE_OBJECTS of each, up to one without a namespace. */
static inline void scene_world_make(const struct scene_cluster *cluster, const struct scene_object *roots,
                                    const struct scene_object *secrets, const struct cr_control_plane_policy *policy,
                                    const struct cr_control_plane_status *status,
                                    const struct cr_control_plane_workload_view *workloads, struct scene_world *w)
{
    memset(w, 0, sizeof *w);
    for (size_t n = 0; n < SCENE_NODES; n++) {
        scene_report(cluster, n, &w->reports[n]);
        snprintf(w->names[n], sizeof w->names[n], "node-%zu", n + 1);
        w->nodes[n] = (struct cr_control_plane_node){.name = w->names[n],
                                                     .report = cluster->nodes[n].absent ? NULL : &w->reports[n]};
    }
    struct cr_control_plane_world *world = &w->world;
    *world = (struct cr_control_plane_world){.policy = policy,
                                             .status = status,
                                             .nodes = w->nodes,
                                             .nodes_len = SCENE_NODES,
                                             .root_cas = w->objects,
                                             .token_secrets = w->objects + SCENE_OBJECTS,
                                             .workloads = workloads,
                                             .controller_manager_leader = *cluster->leader ? cluster->leader : NULL,
                                             .scheduler_leader = *cluster->leader ? cluster->leader : NULL,
                                             .now_ms = cluster->now_ms};
    for (size_t i = 0; roots && i < SCENE_OBJECTS && *roots[i].ns; i++)
        scene_world_object(w, world->root_cas_len++, &roots[i]);
    for (size_t i = 0; secrets && i < SCENE_OBJECTS && *secrets[i].ns; i++) {
        size_t at = SCENE_OBJECTS + world->token_secrets_len;
        scene_world_object(w, at, &secrets[i]);
        if (secrets[i].key) {
            scene_print(secrets[i].key, w->keys[i]);
            w->objects[at].key = w->keys[i];
            w->objects[at].has_token = true;
        }
        world->token_secrets_len++;
    }
}

static inline void scene_world_cleanup(struct scene_world *w)
{
    for (size_t n = 0; n < SCENE_NODES; n++)
        cr_node_report_dispose(&w->reports[n]);
    for (size_t i = 0; i < 2 * SCENE_OBJECTS; i++)
        cr_strvec_dispose(&w->prints[i]);
}

/* What there is now was there before certroll looked. */
static inline void scene_record(const struct cr_control_plane_world *world, struct cr_control_plane_status *status)
{
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(world, &plan);
    cr_strset(&status->root_ca, plan.status.root_ca);
    cr_strset(&status->signing_key, plan.status.signing_key);
}

static inline struct cr_control_plane_policy scene_policy(void)
{
    return (struct cr_control_plane_policy){.enforce = true,
                                            .generation = 1,
                                            .tokens = CR_CONTROL_PLANE_TOKENS_RESTART_KUBELETS,
                                            .renew_token_secrets = true,
                                            .step_deadline_ms = 5 * SCENE_MINUTE};
}

/* --- changes in words --- */

static inline void scene_set_row(struct scene_cluster *cluster, size_t n, size_t i, const char *file, const char *has)
{
    struct scene_row *row = &cluster->nodes[n].rows[i];
    snprintf(row->file, SCENE_TEXT, "%s", file);
    snprintf(row->has, SCENE_TEXT, "%s", has);
    row->changed_ms = cluster->now_ms - SCENE_SECOND;
}

/* "2 etcd --trusted-ca-file ef e": on node-2 ("*": on all) that file ("*": each of the component; a name: of all
 * components) has ef, and the process e. Words with one argument are switches. */
static inline void scene_edit(struct scene_cluster *cluster, const char *edit)
{
    char nodes[8], component[32], parameter[64], file[SCENE_TEXT], has[SCENE_TEXT];
    if (sscanf(edit, "%7s %31s %63s %11s %11s", nodes, component, parameter, file, has) != 5)
        fail_msg("the test's own edit: %s", edit);
    bool found = false;
    for (size_t n = 0; n < SCENE_NODES; n++)
        for (size_t i = 0; i < SCENE_PARAMETERS; i++) {
            const struct scene_parameter *p = &scene_parameters[i];
            bool here = nodes[0] == '*' || (size_t)(nodes[0] - '1') == n;
            bool its = cr_streq(component, "file")
                           ? cr_streq(p->file, parameter)
                           : cr_streq(p->component, component) && cr_streq(p->parameter, parameter);
            if (!here || !its)
                continue;
            scene_set_row(cluster, n, i, file, has);
            found = true;
        }
    if (!found)
        fail_msg("the test's own edit fits nothing: %s", edit);
}

/* Edits separated by "; ". */
static inline void scene_edits(struct scene_cluster *cluster, const char *edits)
{
    cr_autofree char *copy = cr_strdup(cr_or_empty(edits));
    char *save = NULL;
    for (char *edit = strtok_r(copy, ";", &save); edit; edit = strtok_r(NULL, ";", &save))
        if (edit[strspn(edit, " ")])
            scene_edit(cluster, edit);
}

#endif
