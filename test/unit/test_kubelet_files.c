#include "controlplane/agent/kubelet_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

#define HEAD "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
/* What `kubeadm init phase kubelet-start` of 1.36 writes, but for what has nothing to do with files. */
#define KUBEADM                                                                                                        \
    "apiVersion: kubelet.config.k8s.io/v1beta1\nauthentication:\n  anonymous:\n    enabled: false\n"                   \
    "  webhook:\n    cacheTTL: 0s\n    enabled: true\n  x509:\n    clientCAFile: /etc/kubernetes/pki/ca.crt\n"         \
    "containerRuntimeEndpoint: \"\"\ncpuManagerReconcilePeriod: 0s\ncrashLoopBackOff: {}\nfileCheckFrequency: 0s\n"    \
    "kind: KubeletConfiguration\nlogging:\n  flushFrequency: 0\n  options:\n    json:\n      infoBufferSize: \"0\"\n"  \
    "rotateCertificates: true\nstaticPodPath: /etc/kubernetes/manifests\nvolumeStatsAggPeriod: 0s\n"
#define KUBEADM_FLAGS                                                                                                  \
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf "         \
    "--config=/var/lib/kubelet/config.yaml"
#define CURRENT(which) "/var/lib/kubelet/pki/kubelet-" which "-current.pem"
#define OWN            "cert /var/lib/kubelet/pki/kubelet.crt -, key /var/lib/kubelet/pki/kubelet.key -"
#define CONFIG         "--config=/var/lib/kubelet/config.yaml"

/* clang-format off */
static const struct row {
    const char *rule;
    const char *flags;    /* behind "kubelet", by spaces */
    const char *config;
    const char *parts[2]; /* of --config-dir */
    const char *want;     /* what is there: "ca PATH PARAMETER, …" */
    const char *settings; /* behind --rotate-certificates=; NULL: "false" */
} rows[] = {
    {"kubeadm's", KUBEADM_FLAGS, KUBEADM, {NULL},
     "ca /etc/kubernetes/pki/ca.crt authentication.x509.clientCAFile, " OWN ", "
     "kubeconfig /etc/kubernetes/kubelet.conf --kubeconfig, bootstrap /etc/kubernetes/bootstrap-kubelet.conf "
     "--bootstrap-kubeconfig, pods /etc/kubernetes/manifests staticPodPath, client " CURRENT("client"), "true"},
    {"RKE2 before 1.32 has flags only", "--client-ca-file=/r/client-ca.crt --kubeconfig=/r/kubelet.kubeconfig "
     "--pod-manifest-path=/r/pod-manifests --tls-cert-file=/r/serving-kubelet.crt --tls-private-key-file=/r/serving-kubelet.key",
     NULL, {NULL},
     "ca /r/client-ca.crt --client-ca-file, cert /r/serving-kubelet.crt --tls-cert-file, "
     "key /r/serving-kubelet.key --tls-private-key-file, kubeconfig /r/kubelet.kubeconfig --kubeconfig, "
     "pods /r/pod-manifests --pod-manifest-path", NULL},
    {"RKE2 since has parts only", "--config-dir=/r/kubelet.conf.d --kubeconfig=/r/k", NULL,
     {HEAD "authentication: {x509: {clientCAFile: /r/ca.crt}}\ntlsCertFile: /r/s.crt\ntlsPrivateKeyFile: /r/s.key\n"},
     "ca /r/ca.crt authentication.x509.clientCAFile, cert /r/s.crt tlsCertFile, key /r/s.key tlsPrivateKeyFile, "
     "kubeconfig /r/k --kubeconfig", NULL},
    {"nothing is given", "", NULL, {NULL}, OWN, NULL},
    {"a flag is above the file", CONFIG " --client-ca-file /f/ca --rotate-certificates=false", KUBEADM, {NULL},
     "ca /f/ca --client-ca-file, " OWN ", pods /etc/kubernetes/manifests staticPodPath", NULL},
    {"also an empty one", CONFIG " --client-ca-file= --pod-manifest-path=", KUBEADM, {NULL},
     OWN ", client " CURRENT("client"), "true"},
    {"a part is above the file, a later part above an earlier", CONFIG " --config-dir=/d", KUBEADM,
     {HEAD "authentication: {x509: {clientCAFile: /one}}\nrotateCertificates: false\n", HEAD "authentication: {x509: {clientCAFile: /two}}\n"},
     "ca /two authentication.x509.clientCAFile, " OWN ", pods /etc/kubernetes/manifests staticPodPath", NULL},
    {"what a part leaves alone stays", CONFIG " --config-dir=/d", KUBEADM, {HEAD "authentication: {anonymous: {enabled: true}}\n"},
     "ca /etc/kubernetes/pki/ca.crt authentication.x509.clientCAFile, " OWN ", pods /etc/kubernetes/manifests staticPodPath, "
     "client " CURRENT("client"), "true"},
    {"null takes it away, above it as well", CONFIG " --config-dir=/d", KUBEADM, {HEAD "authentication: null\nstaticPodPath: null\n"},
     OWN ", client " CURRENT("client"), "true"},
    {"of the file, paths are below its folder; of parts and flags, below the kubelet's",
     "--config=etc/config.yaml --config-dir=d --tls-private-key-file=k", HEAD "tlsCertFile: c.crt\n", {HEAD "staticPodPath: pods\n"},
     "cert /run/etc/c.crt tlsCertFile, key /run/k --tls-private-key-file, pods /run/pods staticPodPath", NULL},
    {"it makes its own pair in its own folder", "--cert-dir=/c", NULL, {NULL}, "cert /c/kubelet.crt -, key /c/kubelet.key -", NULL},
    {"it asks for its serving certificate", CONFIG, HEAD "serverTLSBootstrap: true\n", {NULL}, "server " CURRENT("server"), NULL},
    {"by its flag, with files beside it", "--rotate-server-certificates --tls-cert-file=/c --tls-private-key-file=/k", NULL, {NULL},
     "cert /c --tls-cert-file, key /k --tls-private-key-file, server " CURRENT("server"), NULL},
    {"gates of all places are merged, the flag's above", CONFIG " --config-dir=/d --feature-gates=A=true,B=F --feature-gates=C=1",
     HEAD "featureGates: {A: false, D: true, E: true}\n", {HEAD "featureGates: {E: null, D: false}\n"}, OWN,
     "false --feature-gates=A=true,D=false,B=false,C=true"},
    {"null takes all gates away", CONFIG " --config-dir=/d", HEAD "featureGates: {A: false}\n", {HEAD "featureGates: null\n"}, OWN, NULL},
    {"underscores", "--client_ca_file=/ca", NULL, {NULL}, "ca /ca --client-ca-file, " OWN, NULL},
    {"hyperkube", "kubelet --client-ca-file=/ca", NULL, {NULL}, "ca /ca --client-ca-file, " OWN, NULL},
};

static const struct refusal {
    const char *flags;
    const char *config;
    const char *part;
    const char *words;
} refusals[] = {
    {"server", NULL, NULL, "'kubelet' is no kubelet's command line: a word without a flag: server"},
    {CONFIG, NULL, NULL, "/var/lib/kubelet/config.yaml, the kubelet's configuration, was not read"},
    {"", HEAD, NULL, "the kubelet was not started with --config"},
    {"", NULL, HEAD, "the kubelet was not started with --config-dir"},
    {CONFIG, "", NULL, "/var/lib/kubelet/config.yaml is no KubeletConfiguration of kubelet.config.k8s.io/v1beta1"},
    {CONFIG, "kind: KubeletConfiguration\napiVersion: v1\n", NULL, "/var/lib/kubelet/config.yaml is no KubeletConfiguration"},
    {CONFIG, "kind: [", NULL, "/var/lib/kubelet/config.yaml: "},
    {CONFIG " --config-dir=/d", HEAD, "tlsCertFile: /x\n", "/d/1.conf is no KubeletConfiguration"},
    {CONFIG, HEAD "tlsCertFile: 7\n", NULL, "/var/lib/kubelet/config.yaml: tlsCertFile is no text"},
    {CONFIG, HEAD "authentication: {x509: yes-please}\n", NULL,
     "/var/lib/kubelet/config.yaml: what is above clientCAFile in authentication.x509.clientCAFile is no object"},
    {CONFIG, HEAD "rotateCertificates: 'true'\n", NULL, "/var/lib/kubelet/config.yaml: rotateCertificates is neither true nor false"},
    {CONFIG, HEAD "featureGates: [A]\n", NULL, "/var/lib/kubelet/config.yaml: featureGates is no object"},
    {CONFIG, HEAD "featureGates: {A: 1}\n", NULL, "/var/lib/kubelet/config.yaml: featureGates has a gate that is neither true nor false"},
    {"--rotate-certificates=maybe", NULL, NULL, "the kubelet's --rotate-certificates is neither true nor false"},
    {"--feature-gates=A", NULL, NULL, "the kubelet's --feature-gates: 'A' is neither true nor false"},
    {"--tls-cert-file --v=2", NULL, NULL, "the kubelet's --tls-cert-file has no value"},
    {"--port=http", NULL, NULL, "the kubelet's port is none"},
    {"--port=70000", NULL, NULL, "the kubelet's port is none"},
    {CONFIG, HEAD "healthzPort: '7'\n", NULL, "the kubelet's healthzPort is none"},
};

static const struct { const char *flags; const char *config; int port; const char *address; int healthz; const char *healthz_address; } serving[] = {
    {"", NULL, 10250, "0.0.0.0", 10248, "127.0.0.1"},
    {CONFIG, HEAD "port: 0\naddress: ''\n", 10250, "0.0.0.0", 10248, "127.0.0.1"},
    {CONFIG, HEAD "port: 1250\naddress: '192.0.2.7'\n", 1250, "192.0.2.7", 10248, "127.0.0.1"},
    {CONFIG " --port=2 --address=::", HEAD "port: 1250\naddress: '192.0.2.7'\n", 2, "::", 10248, "127.0.0.1"},
    {CONFIG, HEAD "enableServer: false\n", 0, "0.0.0.0", 10248, "127.0.0.1"},
    {CONFIG " --enable-server", HEAD "enableServer: false\n", 10250, "0.0.0.0", 10248, "127.0.0.1"},
    {CONFIG, HEAD "healthzPort: 0\n", 10250, "0.0.0.0", 0, "127.0.0.1"},
    {CONFIG, HEAD "healthzPort: null\nhealthzBindAddress: ''\n", 10250, "0.0.0.0", 10248, "127.0.0.1"},
    {CONFIG, HEAD "healthzPort: 7\nhealthzBindAddress: '::1'\n", 10250, "0.0.0.0", 7, "::1"},
    {CONFIG " --healthz-port=8 --healthz-bind-address=192.0.2.7", HEAD "healthzPort: 7\n", 10250, "0.0.0.0", 8, "192.0.2.7"},
};
static const struct { const char *flags; const char *root; } roots[] = {
    {"", "/var/lib/kubelet"}, {"--root-dir=", "/var/lib/kubelet"}, {"--root-dir=/data/kubelet", "/data/kubelet"}, {"--root-dir=k", "/run/k"},
};
/* clang-format on */

static bool command_of(const char *flags, struct cr_kubelet_command *out, struct cr_error *err)
{
    cr_autofree char *line = cr_asprintf("kubelet%s%s", *flags ? " " : "", flags);
    size_t len = strlen(line) + 1;
    for (char *p = strchr(line, ' '); p; p = strchr(p + 1, ' '))
        *p = '\0';
    return cr_kubelet_command_read(line, len, "/run", out, err);
}

static bool read_files(const char *flags, const char *config, const char *const parts[2], struct cr_kubelet_files *out,
                       struct cr_error *err)
{
    CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
    if (!command_of(flags, &command, err))
        return false;
    struct cr_kubelet_text whole = {.path = command.config ? command.config : "/x", .text = config};
    whole.len = config ? strlen(config) : 0;
    struct cr_kubelet_text more[2] = {{.path = "/d/1.conf", .text = parts[0]}, {.path = "/d/2.conf", .text = parts[1]}};
    struct cr_kubelet_texts texts = {.config = config ? &whole : NULL, .parts = more};
    for (; texts.parts_len < 2 && parts[texts.parts_len]; texts.parts_len++)
        more[texts.parts_len].len = strlen(parts[texts.parts_len]);
    return cr_kubelet_files_read(&command, &texts, out, err);
}

static void put(struct cr_buf *buf, const char *what, const struct cr_kubelet_file *file)
{
    if (file->path)
        cr_buf_printf(buf, "%s%s %s %s", buf->len ? ", " : "", what, file->path,
                      file->parameter ? file->parameter : "-");
}

static void put_pair(struct cr_buf *buf, const char *what, const char *path)
{
    if (path)
        cr_buf_printf(buf, "%s%s %s", buf->len ? ", " : "", what, path);
}

static void expect(const struct row *row, const struct cr_kubelet_files *files)
{
    CR_CLEANUP(cr_buf) struct cr_buf is = CR_BUF_INIT(0);
    put(&is, "ca", &files->client_ca);
    put(&is, "cert", &files->certificate);
    put(&is, "key", &files->key);
    put(&is, "kubeconfig", &files->kubeconfig);
    put(&is, "bootstrap", &files->bootstrap_kubeconfig);
    put(&is, "pods", &files->static_pods);
    put_pair(&is, "client", files->client_pair);
    put_pair(&is, "server", files->server_pair);
    if (!cr_streq(cr_buf_text(&is), row->want))
        fail_msg("%s: want\n%s, is\n%s", row->rule, row->want, cr_buf_text(&is));
    assert_true(files->rotates_client == (files->client_pair != NULL));
    assert_true(files->rotates_server == (files->server_pair != NULL));

    cr_buf_reset(&is);
    const struct cr_json *command = cr_json_get(files->settings, "command");
    for (const struct cr_json *word = cr_json_first(command); word; word = cr_json_next(word))
        cr_buf_printf(&is, "%s%s", is.len ? " " : "", cr_json_string(word));
    cr_autofree char *want = cr_asprintf("kubelet --rotate-certificates=%s", row->settings ? row->settings : "false");
    if (!cr_streq(cr_buf_text(&is), want))
        fail_msg("%s: want settings '%s', is '%s'", row->rule, want, cr_buf_text(&is));
}

static void reads_flags_file_and_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_kubelet_files) struct cr_kubelet_files files = {0};
        if (!read_files(rows[i].flags, rows[i].config, rows[i].parts, &files, &err))
            fail_msg("%s: %s", rows[i].rule, err.text);
        expect(&rows[i], &files);
    }
}

static void refuses_with_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(refusals); i++) {
        struct cr_error err = {0};
        struct cr_kubelet_files files = {0};
        const char *parts[2] = {refusals[i].part, NULL};
        if (read_files(refusals[i].flags, refusals[i].config, parts, &files, &err))
            fail_msg("%s: was read", refusals[i].words);
        if (err.kind != CR_ERR_INVALID || !cr_starts_with(err.text, refusals[i].words))
            fail_msg("want '%s', is '%s'", refusals[i].words, err.text);
        assert_null(files.certificate.path);
        assert_null(files.settings);
    }
}

static void says_where_it_serves(void **state)
{
    (void)state;
    static const char *const none[2];
    for (size_t i = 0; i < cr_array_len(serving); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_kubelet_files) struct cr_kubelet_files files = {0};
        if (!read_files(serving[i].flags, serving[i].config, none, &files, &err))
            fail_msg("%s: %s", serving[i].flags, err.text);
        if (files.port != serving[i].port || !cr_streq(files.address, serving[i].address))
            fail_msg("%zu: %s port %d", i, files.address, files.port);
        if (files.healthz_port != serving[i].healthz || !cr_streq(files.healthz_address, serving[i].healthz_address))
            fail_msg("%zu: %s healthz port %d", i, files.healthz_address, files.healthz_port);
    }
}

static void says_where_pods_are(void **state)
{
    (void)state;
    static const char *const none[2];
    for (size_t i = 0; i < cr_array_len(roots); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_kubelet_files) struct cr_kubelet_files files = {0};
        assert_true(read_files(roots[i].flags, NULL, none, &files, &err));
        assert_string_equal(files.root, roots[i].root);
    }
}

static void a_command_line_is_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *words;
    } cases[] = {
        {"", 0, "the kubelet's command line is empty"},
        {"\0", 1, "the kubelet's command line is empty"},
        {"kubelet\0--v", 11, "the kubelet's command line is cut after 1 words"},
        {"/usr/local/bin/k3s server", 26, "'/usr/local/bin/k3s server' is no kubelet's command line"},
        {"/opt/kubelet/run", 17, "'/opt/kubelet/run' is no kubelet's command line"},
        {"/usr/bin/kubelet-1.36.3\0--v=2", 30, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
        bool read = cr_kubelet_command_read(cases[i].text, cases[i].len, "/", &command, &err);
        if (read == (cases[i].words != NULL) || !cr_streq(err.text, cr_or_empty(cases[i].words)))
            fail_msg("%zu: %d '%s'", i, read, err.text);
    }
    size_t len = CR_KUBELET_COMMAND_MAX + 1;
    cr_autofree char *big = cr_malloc(len);
    memset(big, 'a', len);
    big[len - 1] = '\0';
    struct cr_error err = {0};
    struct cr_kubelet_command command;
    assert_false(cr_kubelet_command_read(big, len, "/", &command, &err));
}

static void a_command_line_names_what_to_read(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_kubelet_command) struct cr_kubelet_command command = {0};
    assert_true(command_of("--config=a/b --config-dir /c", &command, &err));
    assert_string_equal(command.config, "/run/a/b");
    assert_string_equal(command.config_dir, "/c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_flags_file_and_parts), cmocka_unit_test(refuses_with_words),
        cmocka_unit_test(says_where_it_serves),       cmocka_unit_test(says_where_pods_are),
        cmocka_unit_test(a_command_line_is_whole),    cmocka_unit_test(a_command_line_names_what_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
