#include "controlplane/agent/report.h"

#include "support/nodescene.h"
#include "support/testcerts.h"

/* A node as a look finds it: real parameters of manifests and of a kubelet, and contents by letters. What was reported
 * goes through JSON each time, as it does for the next agent. */

#define PKI "/etc/kubernetes/pki/"
#define POD(name, words)                                                                                               \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: kube-system}\nspec:\n  hostNetwork: true\n"      \
    "  containers:\n  - {name: " name ", volumeMounts: [{name: k, mountPath: /etc/kubernetes}], " words "}\n"          \
    "  volumes: [{name: k, hostPath: {path: /etc/kubernetes, type: Directory}}]\n"
#define APISERVER                                                                                                      \
    POD("kube-apiserver",                                                                                              \
        "image: 'r/kube-apiserver:v1.36.3', command: [kube-apiserver, --tls-cert-file=" PKI                            \
        "s.crt, --tls-private-key-file=" PKI "s.key, --etcd-cafile=" PKI "etcd.crt, --service-account-key-file=" PKI   \
        "sa.pub, --service-account-key-file=" PKI "sa.pub]")
#define ETCD                                                                                                           \
    POD("etcd", "image: 'r/etcd:3.6.8-0', command: [etcd], livenessProbe: {exec: {command: [etcdctl, --cacert=" PKI    \
                "etcd.crt, endpoint, health]}}")
#define SCHEDULER                                                                                                      \
    POD("kube-scheduler",                                                                                              \
        "image: 'r/kube-scheduler:v1.36.3', command: [kube-scheduler, --kubeconfig=/etc/kubernetes/scheduler.conf]")
#define CONFIG                                                                                                         \
    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"                                      \
    "clusters: [{name: k, cluster: {certificate-authority-data: Q0EK}}]\n"                                             \
    "users: [{name: u, user: {client-certificate-data: Q0VSVAo=, client-key-data: S0VZCg==}}]\n"
#define KUBELET_CONFIG                                                                                                 \
    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"                                          \
    "authentication: {x509: {clientCAFile: " PKI "ca.crt}}\n"

enum { PROGRAMS = 4, FILES = 8 };

struct scene {
    struct cr_catalogue *catalogue;
    struct cr_static_pod *pods[3];
    struct cr_node_look look;
    struct cr_node_program programs[PROGRAMS];
    struct cr_node_proof proofs[PROGRAMS];
    struct {
        const char *path;
        const char *letters; /* fingerprints */
        int ctime;
    } files[FILES];
    struct cr_strvec allowed_names;
    struct cr_node_allowed allowed;
    struct cr_node_report report; /* the last one, as the API server has it */
    int now;
};

static char names[PROGRAMS][32] = {"etcd", "kube-apiserver", "kube-scheduler", "kubelet"};
static char manifests[3][64] = {"/m/etcd.yaml", "/m/kube-apiserver.yaml", "/m/kube-scheduler.yaml"};
static char *manifest_list[3] = {manifests[0], manifests[1], manifests[2]};
static struct scene_file kubeconfigs[] = {{"/etc/kubernetes/scheduler.conf", CONFIG}, {NULL, NULL}};

static void contents_dispose(struct scene *s)
{
    for (size_t i = 0; s->look.contents && i < s->look.parameters.len; i++) {
        cr_node_material_dispose(&s->look.contents[i].material);
        cr_strvec_dispose(&s->look.contents[i].issuers);
    }
    free(s->look.contents);
    s->look.contents = NULL;
}

static void scene_dispose(struct scene *s)
{
    contents_dispose(s);
    cr_node_parameters_dispose(&s->look.parameters);
    for (size_t i = 0; i < cr_array_len(s->pods); i++)
        cr_static_pod_free(s->pods[i]);
    for (size_t i = 0; i < PROGRAMS; i++)
        free(s->programs[i].identity);
    cr_ca_set_free(s->look.cas);
    cr_strvec_dispose(&s->allowed_names);
    cr_node_report_dispose(&s->report);
    cr_catalogue_free(s->catalogue);
}
CR_DEFINE_DISPOSE(scene, struct scene, scene_dispose)

static void add_kubelet(struct scene *s)
{
    scene_add_kubelet(&s->look.parameters, s->catalogue, "--config=/config.yaml", KUBELET_CONFIG, "v1.36.3", NULL);
}

static void add_pods(struct scene *s)
{
    static const char *const texts[] = {ETCD, APISERVER, SCHEDULER};
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        struct cr_error err = {0};
        s->pods[i] = cr_static_pod_read(texts[i], strlen(texts[i]), &err);
        if (!s->pods[i])
            fail_msg("%s", err.text);
        scene_add_pod(&s->look.parameters, s->catalogue, texts[i], kubeconfigs);
        s->programs[i] = (struct cr_node_program){
            .component = names[i], .pod = names[i], .container = names[i], .manifest = manifests[i]};
    }
    s->programs[3] = (struct cr_node_program){.component = names[3]};
}

/* start: seconds, and its identity. */
static void run(struct scene *s, size_t program, int start)
{
    free(s->programs[program].identity);
    s->programs[program].running = start > 0;
    s->programs[program].started_ms = (int64_t)start * 1000;
    s->programs[program].identity = start > 0 ? cr_asprintf("boot-%zu-%d", program, start) : NULL;
}

static void put(struct scene *s, const char *path, const char *letters, int ctime)
{
    for (size_t i = 0; i < FILES; i++)
        if (!s->files[i].path || cr_streq(s->files[i].path, path)) {
            s->files[i].path = path;
            s->files[i].letters = letters;
            s->files[i].ctime = ctime;
            return;
        }
    fail();
}

static void scene_init(struct scene *s)
{
    struct cr_error err = {0};
    *s = (struct scene){.catalogue = cr_catalogue_builtin(&err), .now = 100};
    assert_non_null(s->catalogue);
    add_pods(s);
    add_kubelet(s);
    s->look.programs = s->programs;
    s->look.programs_len = PROGRAMS;
    s->look.has_kubelet = true;
    s->look.pods = s->pods;
    s->look.manifests = manifest_list;
    s->look.pods_len = 3;
    s->look.cas = cr_ca_set_new();
    cr_strvec_add(&s->allowed_names, "kube-apiserver");
    s->allowed.components = &s->allowed_names;
    for (size_t i = 0; i < PROGRAMS; i++) {
        run(s, i, 50);
        s->proofs[i].health = CR_NODE_HEALTH_SERVING;
    }
    put(s, PKI "s.crt", "1", 10);
    put(s, PKI "s.key", "", 10);
    put(s, PKI "etcd.crt", "2", 10);
    put(s, PKI "sa.pub", "3", 10);
    put(s, PKI "ca.crt", "4", 10);
    put(s, "/etc/kubernetes/scheduler.conf", "4", 10);
    s->report.node = cr_strdup("node-1");
}

/* Whether the row is a key, of which a look keeps no fingerprint. */
static bool is_key(const struct cr_node_parameter *row)
{
    return row->role != CR_ROLE_OPAQUE &&
           (cr_ends_with(row->parameter, "key") || cr_ends_with(row->parameter, "key-file") ||
            cr_ends_with(row->parameter, "KeyFile"));
}

static void add_print(struct cr_strvec *to, char letter)
{
    char print[65];
    memset(print, letter, 64);
    print[64] = '\0';
    cr_strvec_add(to, print);
}

static void fill(const struct scene *s, const struct cr_node_parameter *row, struct cr_node_content *out)
{
    bool trust = row->role == CR_ROLE_CLIENT_CA || row->role == CR_ROLE_SERVER_CA;
    for (size_t i = 0; i < FILES; i++) {
        if (!s->files[i].path || !cr_streq(s->files[i].path, row->host))
            continue;
        out->exists = true;
        out->ctime_ms = (int64_t)s->files[i].ctime * 1000;
        out->material.kind = row->role == CR_ROLE_OPAQUE ? CR_NODE_FILE_KEYS
                             : trust                     ? CR_NODE_FILE_TRUST
                                                         : CR_NODE_FILE_LEAF;
        for (const char *p = is_key(row) ? "" : s->files[i].letters; *p; p++)
            add_print(&out->material.prints, *p);
        return;
    }
    out->material.problem = cr_strdup("No such file or directory");
}

/* What is reported now, after it was written and read again. */
static void report(struct scene *s)
{
    struct cr_error err = {0};
    contents_dispose(s);
    s->look.contents = cr_calloc(s->look.parameters.len + 1, sizeof *s->look.contents);
    for (size_t i = 0; i < s->look.parameters.len; i++)
        fill(s, &s->look.parameters.items[i], &s->look.contents[i]);
    CR_CLEANUP(cr_node_report) struct cr_node_report made;
    cr_node_report_make(&s->look, s->proofs, &s->allowed, &s->report, (int64_t)s->now * 1000, &made);
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_new_object();
    cr_json_set_string(object, "kind", CR_NODE_REPORT_KIND);
    cr_json_set_string(cr_json_object_in(object, "metadata"), "name", "node-1");
    cr_json_set(object, "status", cr_node_report_encode_status(&made));
    cr_node_report_dispose(&s->report);
    assert_true(cr_node_report_decode(object, &s->report, &err));
}

static char *status_text(const struct cr_node_report *of)
{
    CR_CLEANUP(cr_json) struct cr_json *status = cr_node_report_encode_status(of);
    cr_json_remove(status, "seen");
    return cr_json_print(status);
}

/* "component parameter<via: loaded", one a line. Owned. */
static char *rows_of(const struct cr_node_report *of, const char *component)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < of->files_len; i++) {
        const struct cr_node_file *row = &of->files[i];
        if (!component || cr_streq(row->component, component))
            cr_buf_printf(&buf, "%s %s%s%s: %s\n", row->component, row->parameter, row->via ? "<" : "",
                          cr_or_empty(row->via), cr_node_loaded_name(row->loaded));
    }
    return cr_buf_steal(&buf);
}

static void assert_rows(const struct scene *s, const char *component, const char *want)
{
    cr_autofree char *is = rows_of(&s->report, component);
    if (!cr_streq(is, want))
        fail_msg("want\n%s, is\n%s", want, is);
}

static const struct cr_node_component *component_of(const struct scene *s, const char *name)
{
    const struct cr_node_component *found = cr_node_report_component(&s->report, name);
    if (!found)
        fail_msg("no %s", name);
    return found;
}

/* --- tests --- */

static void each_file_of_the_node_has_a_row(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    report(&s);
    /* A kubeconfig has the rows of what is in it; what a probe starts has rows without a program. */
    assert_rows(&s, NULL,
                "etcdctl --cacert: Loaded\n"
                "kube-apiserver --tls-cert-file: Loaded\nkube-apiserver --tls-private-key-file: Loaded\n"
                "kube-apiserver --etcd-cafile: Loaded\nkube-apiserver --service-account-key-file: Loaded\n"
                "kube-apiserver --service-account-key-file: Loaded\n"
                "kube-scheduler kubeconfig certificate-authority<--kubeconfig: Loaded\n"
                "kube-scheduler kubeconfig client-certificate<--kubeconfig: Loaded\n"
                "kube-scheduler kubeconfig client-key<--kubeconfig: Loaded\n"
                "kubelet authentication.x509.clientCAFile: Loaded\nkubelet tlsCertFile: Unknown\n"
                "kubelet tlsPrivateKeyFile: Unknown\n");
    assert_int_equal(s.report.components_len, PROGRAMS);
    assert_string_equal(component_of(&s, "etcd")->pod, "etcd-node-1");
    assert_null(component_of(&s, "kubelet")->pod);
    assert_string_equal(component_of(&s, "kube-apiserver")->restart, "Manifest");
    assert_string_equal(component_of(&s, "etcd")->restart_refused, "--allow-restart of the agent does not name it");
    assert_int_equal(s.report.troubles.len, 0);
}

static void a_node_that_has_not_changed_is_reported_the_same(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    put(&s, PKI "etcd.crt", "22", 70); /* something is pending, too */
    report(&s);
    cr_autofree char *first = status_text(&s.report);
    for (int i = 0; i < 3; i++) {
        s.now += 20;
        for (size_t k = 0; k < PROGRAMS; k++)
            s.programs[k].started_ms += 7; /* worked out of another clock each time */
        report(&s);
        cr_autofree char *next = status_text(&s.report);
        assert_string_equal(first, next);
        assert_int_equal(s.report.seen_ms, s.now * 1000);
    }
}

static void a_change_is_remembered_until_another_process_has_it(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    report(&s);
    put(&s, PKI "etcd.crt", "25", 110);
    put(&s, PKI "sa.pub", "36", 110);
    s.now = 120;
    report(&s);
    const char *const pending =
        "kube-apiserver --tls-cert-file: Loaded\nkube-apiserver --tls-private-key-file: Loaded\n"
        "kube-apiserver --etcd-cafile: RestartNeeded\n"
        "kube-apiserver --service-account-key-file: RestartNeeded\n"
        "kube-apiserver --service-account-key-file: RestartNeeded\n";
    assert_rows(&s, "kube-apiserver", pending);
    assert_rows(&s, "etcdctl", "etcdctl --cacert: Loaded\n");
    /* A clock that was set back: it is another process all the same. */
    run(&s, 1, 90);
    s.now = 130;
    report(&s);
    cr_autofree char *rows = rows_of(&s.report, "kube-apiserver");
    assert_null(strstr(rows, "RestartNeeded"));
    assert_null(strstr(rows, "Unknown"));
}

static void a_process_that_is_not_seen_for_a_look_is_no_other(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    report(&s);
    put(&s, PKI "etcd.crt", "25", 110);
    s.now = 120;
    report(&s);
    for (int look = 0; look < 2; look++) {
        run(&s, 1, 0);
        s.now += 10;
        report(&s);
        assert_rows(&s, "kube-apiserver",
                    "kube-apiserver --tls-cert-file: Unknown\nkube-apiserver --tls-private-key-file: Unknown\n"
                    "kube-apiserver --etcd-cafile: Unknown\nkube-apiserver --service-account-key-file: Unknown\n"
                    "kube-apiserver --service-account-key-file: Unknown\n");
        run(&s, 1, look ? 135 : 50);
        s.now += 10;
        report(&s);
        cr_autofree char *rows = rows_of(&s.report, "kube-apiserver");
        assert_null(strstr(rows, "Unknown"));
        assert_true((strstr(rows, "--etcd-cafile: RestartNeeded") == NULL) == (look == 1));
    }
}

static void a_key_has_what_its_certificate_has(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    struct cr_node_proof *proof = &s.proofs[1];
    proof->len = 1;
    proof->ports[0].port = (struct cr_node_port){.tls = true, .port = 6443, .parameter = "--tls-cert-file"};
    proof->ports[0].probe.outcome = CR_PROBE_SERVED;
    memset(proof->ports[0].probe.leaf, '1', 64);
    report(&s);
    assert_int_equal(s.report.files[2].evidence, CR_NODE_EVIDENCE_VERIFIED);
    put(&s, PKI "s.crt", "7", 110);
    put(&s, PKI "s.key", "", 110);
    s.now = 111;
    report(&s);
    assert_rows(&s, "kube-apiserver",
                "kube-apiserver --tls-cert-file: Soon\nkube-apiserver --tls-private-key-file: Soon\n"
                "kube-apiserver --etcd-cafile: Loaded\nkube-apiserver --service-account-key-file: Loaded\n"
                "kube-apiserver --service-account-key-file: Loaded\n");
    assert_int_equal(s.report.files[2].due_ms, s.report.files[1].due_ms);
    memset(proof->ports[0].probe.leaf, '7', 64);
    report(&s);
    assert_int_equal(s.report.files[2].loaded, CR_NODE_LOADED_YES);
    assert_int_equal(s.report.files[2].evidence, CR_NODE_EVIDENCE_VERIFIED);
}

static void health_is_since_it_is_so(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    report(&s);
    s.now = 120;
    report(&s);
    assert_int_equal(component_of(&s, "etcd")->health_ms, 100 * 1000);
    s.proofs[0].health = CR_NODE_HEALTH_FAILING;
    snprintf(s.proofs[0].message, sizeof s.proofs[0].message, "/readyz answers 503");
    report(&s);
    assert_int_equal(component_of(&s, "etcd")->health_ms, 120 * 1000);
    assert_string_equal(component_of(&s, "etcd")->health_message, "/readyz answers 503");
}

/* Without its process nothing is known of it, not even its files: a look has no rows. */
static void kubelet_goes(struct scene *s)
{
    contents_dispose(s);
    cr_node_parameters_dispose(&s->look.parameters);
    static const char *const texts[] = {ETCD, APISERVER, SCHEDULER};
    for (size_t i = 0; i < cr_array_len(texts); i++)
        scene_add_pod(&s->look.parameters, s->catalogue, texts[i], kubeconfigs);
    s->look.has_kubelet = false;
    run(s, 3, 0);
    s->proofs[3].health = CR_NODE_HEALTH_FAILING;
    snprintf(s->proofs[3].message, sizeof s->proofs[3].message, "it does not run");
}

static void kubelet_comes(struct scene *s, int start)
{
    contents_dispose(s);
    add_kubelet(s);
    s->look.has_kubelet = true;
    run(s, 3, start);
}

static void a_kubelet_that_is_away_keeps_its_rows(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    report(&s);
    kubelet_goes(&s);
    for (s.now = 120; s.now < 200; s.now += 20) {
        report(&s);
        assert_rows(&s, "kubelet",
                    "kubelet authentication.x509.clientCAFile: Unknown\nkubelet tlsCertFile: Unknown\n"
                    "kubelet tlsPrivateKeyFile: Unknown\n");
        const struct cr_node_component *kubelet = component_of(&s, "kubelet");
        assert_false(kubelet->running);
        assert_null(kubelet->process);
        assert_null(kubelet->restart);
        assert_string_equal(kubelet->health_message, "it does not run");
        assert_int_equal(s.report.components_len, PROGRAMS);
    }
    /* Its file was changed meanwhile, and then it began: it has it. */
    put(&s, PKI "ca.crt", "48", 150);
    kubelet_comes(&s, 190);
    report(&s);
    assert_rows(&s, "kubelet",
                "kubelet authentication.x509.clientCAFile: Loaded\nkubelet tlsCertFile: Unknown\n"
                "kubelet tlsPrivateKeyFile: Unknown\n");
}

static void an_agent_s_first_report_needs_none_before(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    s.look.contents = cr_calloc(s.look.parameters.len + 1, sizeof *s.look.contents);
    for (size_t i = 0; i < s.look.parameters.len; i++)
        fill(&s, &s.look.parameters.items[i], &s.look.contents[i]);
    CR_CLEANUP(cr_node_report) struct cr_node_report made;
    cr_node_report_make(&s.look, NULL, &s.allowed, NULL, 100 * 1000, &made);
    assert_null(made.node);
    assert_string_equal(made.components[0].pod, "etcd");
    assert_int_equal(made.components[0].health, CR_NODE_HEALTH_UNKNOWN);
    assert_string_equal(made.components[0].health_message, "it was not asked");
    assert_int_equal(made.files[1].loaded, CR_NODE_LOADED_YES);
}

static void what_is_others_is_taken_over(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    CR_CLEANUP(cr_node_report) struct cr_node_report made;
    struct cr_node_report *before = &s.report;
    before->uid = cr_strdup("u");
    before->resource_version = cr_strdup("7");
    before->generation = 3;
    before->agent = cr_strdup("0.1.0");
    before->order = (struct cr_node_order){.token = cr_strdup("t"), .component = cr_strdup("etcd")};
    before->act = (struct cr_node_act){.token = cr_strdup("s"),
                                       .component = cr_strdup("kubelet"),
                                       .phase = CR_NODE_ACT_DONE,
                                       .message = cr_strdup("m"),
                                       .process = cr_strdup("p"),
                                       .started_ms = 1,
                                       .finished_ms = 2};
    before->tokens_known = true;
    before->tokens = cr_calloc(1, sizeof *before->tokens);
    before->tokens_len = 1;
    before->tokens[0] = (struct cr_node_token_count){.key = cr_strdup("k"), .tokens = 5};
    s.look.contents = cr_calloc(s.look.parameters.len + 1, sizeof *s.look.contents);
    cr_node_report_make(&s.look, s.proofs, &s.allowed, before, 100 * 1000, &made);
    assert_string_equal(made.node, "node-1");
    assert_string_equal(made.uid, "u");
    assert_string_equal(made.resource_version, "7");
    assert_int_equal(made.generation, 3);
    assert_string_equal(made.agent, "0.1.0");
    assert_string_equal(made.order.token, "t");
    assert_string_equal(made.order.component, "etcd");
    assert_string_equal(made.act.token, "s");
    assert_string_equal(made.act.process, "p");
    assert_string_equal(made.act.message, "m");
    assert_int_equal(made.act.phase, CR_NODE_ACT_DONE);
    assert_int_equal(made.act.finished_ms, 2);
    assert_true(made.tokens_known);
    assert_int_equal(made.tokens[0].tokens, 5);
}

static void a_long_bundle_is_cut_and_says_so(void **state)
{
    (void)state;
    CR_CLEANUP(scene) struct scene s;
    scene_init(&s);
    put(&s, PKI "etcd.crt", "0123456789abcdef0", 10);
    report(&s);
    assert_int_equal(s.report.files[3].prints.len, CR_NODE_REPORT_PRINTS_MAX);
    assert_true(s.report.files[3].more);
    assert_int_equal(s.report.files[3].loaded, CR_NODE_LOADED_YES);
    /* The difference is in a part that is not shown. */
    put(&s, PKI "etcd.crt", "0123456789abcdef1", 110);
    s.now = 120;
    report(&s);
    assert_int_equal(s.report.files[3].loaded, CR_NODE_LOADED_NO);
}

static void cas_and_troubles_are_reported(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(scene) struct scene s;
    CR_CLEANUP(test_cert)
    struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "kubernetes", .ca = true});
    scene_init(&s);
    const struct cr_pem_input pem = {ca->cert_pem, strlen(ca->cert_pem)};
    assert_true(cr_ca_set_add(s.look.cas, &pem, NULL, &err));
    cr_ca_set_sort(s.look.cas);
    cr_strvec_add(&s.look.parameters.troubles, "etcd: one of its words is not known");
    report(&s);
    assert_int_equal(s.report.cas_len, 1);
    assert_string_equal(s.report.cas[0].subject, "CN=kubernetes");
    assert_true(s.report.cas[0].not_after_ms > 0);
    assert_string_equal(s.report.troubles.items[0], "etcd: one of its words is not known");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_of_the_node_has_a_row),
        cmocka_unit_test(a_node_that_has_not_changed_is_reported_the_same),
        cmocka_unit_test(a_change_is_remembered_until_another_process_has_it),
        cmocka_unit_test(a_process_that_is_not_seen_for_a_look_is_no_other),
        cmocka_unit_test(a_key_has_what_its_certificate_has),
        cmocka_unit_test(health_is_since_it_is_so),
        cmocka_unit_test(a_kubelet_that_is_away_keeps_its_rows),
        cmocka_unit_test(an_agent_s_first_report_needs_none_before),
        cmocka_unit_test(what_is_others_is_taken_over),
        cmocka_unit_test(a_long_bundle_is_cut_and_says_so),
        cmocka_unit_test(cas_and_troubles_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
