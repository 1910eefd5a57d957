#include "controlplane/agent/static_pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "sys/file.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: kube-system}\nspec:\n"

static struct cr_static_pod *read_text(const char *rule, const char *text)
{
    struct cr_error err = {0};
    struct cr_static_pod *pod = cr_static_pod_read(text, strlen(text), &err);
    if (!pod)
        fail_msg("%s: %s", rule, err.text);
    return pod;
}

/* --- programs and their words --- */

/* "name(init) process@version: word|word", a "?" behind words that are not all known. */
static char *as_text(const struct cr_static_pod *pod)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < pod->len; i++) {
        const struct cr_static_container *c = &pod->containers[i];
        cr_autofree char *words = cr_strvec_join(&c->argv, "|");
        const char *process = cr_static_container_process(c);
        cr_buf_printf(&buf, "%s%s%s %s@%s: %s%s", i ? "\n" : "", c->name, c->init ? "(init)" : "",
                      process ? process : "-", c->version ? c->version : "-", words, c->argv_known ? "" : "?");
    }
    return cr_buf_steal(&buf);
}

/* clang-format off */
static const struct words_case {
    const char *rule;
    const char *spec;
    const char *words;
} words_cases[] = {
    {"kubeadm: all in command",
     "  containers: [{name: a, image: 'r/kube-scheduler:v1.36.3', command: [kube-scheduler, --leader-elect=true, --kubeconfig=/s.conf]}]",
     "a kube-scheduler@v1.36.3: kube-scheduler|--leader-elect=true|--kubeconfig=/s.conf"},
    {"RKE2: the name in command, flags in args, one image for all",
     "  containers: [{name: kube-apiserver, image: 'index.docker.io/rancher/hardened-kubernetes:v1.36.1-rke2r1-build20260601', "
     "command: [kube-apiserver], args: ['--tls-cert-file=/c.crt', --v, '2']}]",
     "kube-apiserver kube-apiserver@v1.36.1-rke2r1-build20260601: kube-apiserver|--tls-cert-file=/c.crt|--v|2"},
    {"without a command the image names the program",
     "  containers: [{name: a, image: i, args: [--a, b]}]", "a -@-: --a|b"},
    {"neither", "  containers: [{name: a, image: 'r:5000/i@sha256:00'}]", "a -@-: "},
    {"init containers come first; a sidecar among them is none",
     "  containers: [{name: c, image: i}]\n  initContainers: [{name: a, image: i}, {name: b, image: i, restartPolicy: Always}]",
     "a(init) -@-: \nb -@-: \nc -@-: "},
    {"$(VAR) of the container is expanded, as the kubelet does",
     "  containers: [{name: a, image: i, command: [etcd, '--cert-file=$(D)/s.crt', '$$(D)'], env: [{name: D, value: /pki}]}]",
     "a etcd@-: etcd|--cert-file=/pki/s.crt|$(D)?"},
    {"a variable from elsewhere leaves the words open",
     "  containers: [{name: a, image: i, command: [etcd, '--name=$(N)'], env: [{name: N, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]",
     "a etcd@-: etcd|--name=$(N)?"},
    {"a program that a variable names is not told",
     "  containers: [{name: a, image: i, command: ['/x/$(P)', b], env: [{name: P, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]",
     "a -@-: /x/$(P)|b?"},

    {"one sh -c", "  containers: [{name: a, image: i, command: [/bin/sh, -c, 'kube-apiserver --a=/b --c \"d e\"']}]",
     "a kube-apiserver@-: kube-apiserver|--a=/b|--c|d e"},
    {"the script in args", "  containers: [{name: a, image: i, command: [/bin/bash, -ec], args: [\"exec /usr/bin/etcd --a='b'\\\"c\\\"\\\\ d\"]}]",
     "a etcd@-: /usr/bin/etcd|--a=bc d"},
    {"options of the shell; words behind the script are its own parameters",
     "  containers: [{name: a, image: i, command: [bash, -o, pipefail, --norc, -c, 'etcd --a', x, y]}]", "a etcd@-: etcd|--a"},
    {"redirections are no words", "  containers: [{name: a, image: i, command: [sh, -c, 'exec kube-apiserver --a=b 1>>/var/log/k.log 2>&1 < /dev/null --c']}]",
     "a kube-apiserver@-: kube-apiserver|--a=b|--c"},
    {"what is done before the program does not matter",
     "  containers: [{name: a, image: i, command: [sh, -c, \"set -eu\\nulimit -n 65536 && A=b exec etcd \\\\\\n  --a \\\\\\n  --b # why\\n\"]}]",
     "a etcd@-: etcd|--a|--b"},
    {"an exec is the program, though others have more words",
     "  containers: [{name: a, image: i, command: [sh, -c, 'echo a b c d e f; exec etcd --a']}]", "a etcd@-: etcd|--a"},
    {"the shell's own variable leaves them open", "  containers: [{name: a, image: i, command: [sh, -c, 'exec etcd --name=\"$HOST\"']}]",
     "a etcd@-: etcd|--name=$HOST?"},
    {"a dollar in single quotes is one; but the kubelet has looked first, and we say no more than it knows",
     "  containers: [{name: a, image: i, command: [sh, -c, \"exec etcd --name='$HOST'\"]}]", "a etcd@-: etcd|--name=$HOST?"},
    {"a pipe", "  containers: [{name: a, image: i, command: [sh, -c, 'kube-apiserver --a --b 2>&1 | tee /log']}]",
     "a kube-apiserver@-: kube-apiserver|--a|--b?"},
    {"a job, and who waits for it", "  containers: [{name: a, image: i, command: [sh, -c, 'kube-apiserver --a & wait']}]",
     "a kube-apiserver@-: kube-apiserver|--a?"},
    {"what comes behind the program", "  containers: [{name: a, image: i, command: [sh, -c, 'etcd --a; sleep 1']}]", "a etcd@-: etcd|--a?"},
    {"or", "  containers: [{name: a, image: i, command: [sh, -c, 'etcd --a || etcd --a --b']}]", "a etcd@-: etcd|--a|--b?"},
    {"a condition", "  containers: [{name: a, image: i, command: [sh, -c, 'if true; then exec etcd --a; fi']}]", "a then@-: then|exec|etcd|--a?"},
    {"a pattern", "  containers: [{name: a, image: i, command: [sh, -c, 'etcd --a=*.crt']}]", "a etcd@-: etcd|--a=*.crt?"},
    {"another folder", "  containers: [{name: a, image: i, command: [sh, -c, 'cd /x; exec etcd --a=b']}]", "a etcd@-: etcd|--a=b?"},
    {"a text in the script", "  containers: [{name: a, image: i, command: [sh, -c, \"cat <<E\\nE\\nexec etcd --a\"]}]", "a etcd@-: etcd|--a?"},
    {"a quote without an end", "  containers: [{name: a, image: i, command: [sh, -c, 'etcd --a=\"b']}]", "a etcd@-: etcd|--a=b?"},
    {"a shell with a script's file", "  containers: [{name: a, image: i, command: [sh, -e, /run.sh]}]", "a sh@-: sh|-e|/run.sh?"},
    {"a shell with an empty script", "  containers: [{name: a, image: i, command: [sh, -c, '']}]", "a -@-: ?"},

    {"hyperkube", "  containers: [{name: a, image: i, command: [/hyperkube, kube-proxy, --a]}]", "a kube-proxy@-: kube-proxy|--a"},
    {"a log runner", "  containers: [{name: a, image: i, command: [/go-runner, --log-file=/l, --also-stdout=false, /usr/local/bin/kube-scheduler, --a]}]",
     "a kube-scheduler@-: /usr/local/bin/kube-scheduler|--a"},
    {"an init with its end of options, and a shell in it", "  containers: [{name: a, image: i, command: [/sbin/tini, -g, --, sh, -c, 'exec etcd --a']}]",
     "a etcd@-: etcd|--a"},
    {"env", "  containers: [{name: a, image: i, command: [env, A=b, etcd, --c=d]}]", "a etcd@-: etcd|--c=d"},
    {"env with an option", "  containers: [{name: a, image: i, command: [env, -i, etcd]}]", "a env@-: env|-i|etcd?"},
    {"a wrapper of nothing", "  containers: [{name: a, image: i, command: [tini, --]}]", "a tini@-: tini|--?"},
    {"wrappers without an end", "  containers: [{name: a, image: i, command: [env, env, env, env, env, env, etcd]}]",
     "a env@-: env|env|etcd?"},
};
/* clang-format on */

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(words_cases); i++) {
        const struct words_case *c = &words_cases[i];
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        cr_buf_printf(&text, HEAD "%s\n", c->spec);
        CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = read_text(c->rule, text.data);
        cr_autofree char *words = as_text(pod);
        if (!cr_streq(words, c->words))
            fail_msg("%s: \"%s\" instead of \"%s\"", c->rule, words, c->words);
    }
}

/* --- files --- */

static const char files_pod[] =
    HEAD "  containers:\n"
         "  - name: a\n"
         "    image: i\n"
         "    env: [{name: N, value: one}, {name: F, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n"
         "    volumeMounts:\n"
         "    - {name: pki, mountPath: /etc/kubernetes/pki/}\n"
         "    - {name: etcd, mountPath: /etc/kubernetes/pki/etcd}\n"
         "    - {name: conf, mountPath: /etc/kubernetes/scheduler.conf}\n"
         "    - {name: open, mountPath: /open}\n"
         "    - {name: pki, mountPath: /part, subPath: sub/./folder}\n"
         "    - {name: pki, mountPath: /expr, subPathExpr: of-$(N)}\n"
         "    - {name: pki, mountPath: /hidden, subPathExpr: of-$(F)}\n"
         "    - {name: pki, mountPath: /up, subPath: ../x}\n"
         "    - {name: token, mountPath: /var/run/token}\n"
         "    - {name: nobody, mountPath: /nobody}\n"
         "    - {name: relative, mountPath: /relative}\n"
         "    - {name: pki, mountPath: no/slash}\n"
         "    - {name: socket, mountPath: /run/s}\n"
         "  volumes:\n"
         "  - {name: pki, hostPath: {path: //srv/pki/, type: DirectoryOrCreate}}\n"
         "  - {name: etcd, hostPath: {path: /srv/etcd, type: Directory}}\n"
         "  - {name: conf, hostPath: {path: /srv/s.conf, type: FileOrCreate}}\n"
         "  - {name: open, hostPath: {path: /srv/open}}\n"
         "  - {name: token, projected: {sources: []}}\n"
         "  - {name: relative, hostPath: {path: srv}}\n"
         "  - {name: socket, hostPath: {path: /run/s, type: Socket}}\n";

/* clang-format off */
static const struct file_case {
    const char *rule;
    const char *path;
    const char *file; /* "host", "host (alone)", or what is said of a path that is none */
} file_cases[] = {
    {"in a folder", "/etc/kubernetes/pki/ca.crt", "/srv/pki/ca.crt"},
    {"in a folder of it", "/etc/kubernetes/pki/a/ca.crt", "/srv/pki/a/ca.crt"},
    {"the longest mount counts", "/etc/kubernetes/pki/etcd/ca.crt", "/srv/etcd/ca.crt"},
    {"a name that only begins alike", "/etc/kubernetes/pki/etcd2/ca.crt", "/srv/pki/etcd2/ca.crt"},
    {"slashes and dots", "//etc/./kubernetes//pki/ca.crt/", "/srv/pki/ca.crt"},
    {"the folder itself", "/etc/kubernetes/pki", "/srv/pki"},
    {"a file", "/etc/kubernetes/scheduler.conf", "/srv/s.conf (alone)"},
    {"below a file is nothing", "/etc/kubernetes/scheduler.conf/x", "Unknown: is below a mount that is a file"},
    {"a socket is no folder", "/run/s", "/run/s (alone)"},
    {"in what may be either, so it is a folder", "/open/ca.crt", "/srv/open/ca.crt"},
    {"what may be either, itself", "/open", "/srv/open (alone)"},
    {"in a part of a volume", "/part/a", "/srv/pki/sub/folder/a"},
    {"the part itself", "/part", "/srv/pki/sub/folder (alone)"},
    {"a part that a variable names", "/expr/a", "/srv/pki/of-one/a"},
    {"a part that a hidden variable names", "/hidden/a", "Unknown: is below a mount of which the manifest does not say what it shows"},
    {"a part above the volume", "/up/a", "Unknown: is below a mount of which the manifest does not say what it shows"},
    {"a projected volume", "/var/run/token/ca.crt", "Elsewhere: is in a volume that is no folder of the host"},
    {"a volume that is not there", "/nobody/a", "Unknown: is below a mount of which the manifest does not say what it shows"},
    {"a host path that is relative", "/relative/a", "Unknown: is below a mount of which the manifest does not say what it shows"},
    {"a mount without its slash", "/no/slash/a", "/srv/pki/a"},
    {"outside of any mount", "/etc/ssl/certs/ca.crt", "Image: is below no mount, so the image's own"},
    {"the folder above the mounts", "/etc/kubernetes", "Image: is below no mount, so the image's own"},
    {"a relative path", "pki/ca.crt", "Unknown: is relative to a folder that cannot be told"},
    {"upwards", "/etc/kubernetes/pki/../pki/ca.crt", "Unknown: has \"..\" in it"},
    {"dots that are a name", "/etc/kubernetes/pki/..data/...", "/srv/pki/..data/..."},
    {"a variable", "$HOME/ca.crt", "Unknown: is not shown by the manifest"},
    {"nothing", "", "Unknown: is not shown by the manifest"},
};
/* clang-format on */

static char *file_text(const struct cr_static_container *container, const char *path)
{
    static const char *const places[] = {"Host", "Image", "Elsewhere", "Unknown"};
    CR_CLEANUP(cr_static_file) struct cr_static_file file = {0};
    cr_static_container_file(container, path, &file);
    struct cr_buf buf = CR_BUF_INIT(0);
    if (file.place == CR_STATIC_PLACE_HOST)
        cr_buf_printf(&buf, "%s%s%s", file.path, file.alone ? " (alone)" : "", cr_or_empty(file.why));
    else
        cr_buf_printf(&buf, "%s: %s%s%s", places[file.place], file.why, cr_or_empty(file.path),
                      file.alone ? " (alone)" : "");
    return cr_buf_steal(&buf);
}

static void check_file(const char *rule, const struct cr_static_container *container, const char *path,
                       const char *wanted)
{
    cr_autofree char *text = file_text(container, path);
    if (!cr_streq(text, wanted))
        fail_msg("%s: \"%s\" instead of \"%s\"", rule, text, wanted);
}

static void test_files(void **state)
{
    (void)state;
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = read_text("files", files_pod);
    assert_int_equal(pod->containers[0].mounts_len, 13);
    for (size_t i = 0; i < cr_array_len(file_cases); i++)
        check_file(file_cases[i].rule, &pod->containers[0], file_cases[i].path, file_cases[i].file);
}

static void test_working_dir_and_mounts_that_hide_anything(void **state)
{
    (void)state;
    static const char volumes[] = "  volumes: [{name: v, hostPath: {path: /, type: Directory}}]\n";
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text,
                  HEAD "  containers:\n"
                       "  - {name: a, image: i, workingDir: /w, volumeMounts: [{name: v, mountPath: /w}]}\n"
                       "  - {name: b, image: i, workingDir: w, volumeMounts: [{name: v, mountPath: /}]}\n"
                       "  - {name: c, image: i, volumeMounts: [{name: v, mountPath: /a/../b},\n"
                       "     {name: v, mountPath: /a}]}\n%s",
                  volumes);
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = read_text("working folder", text.data);
    check_file("below the working folder", &pod->containers[0], "pki/ca.crt", "/pki/ca.crt");
    check_file("a working folder that is relative", &pod->containers[1], "ca.crt",
               "Unknown: is relative to a folder that cannot be told");
    check_file("the root of all", &pod->containers[1], "/ca.crt", "/ca.crt");
    check_file("its own root", &pod->containers[1], "/", "/");
    check_file("a mount with dots may be anywhere", &pod->containers[2], "/b/ca.crt",
               "Unknown: is below a mount of which the manifest does not say what it shows");
    check_file("but below a longer one", &pod->containers[2], "/a/ca.crt", "/ca.crt");
}

/* --- what kubeadm 1.36.3 writes (test/testdata/static-pods) --- */

static struct cr_static_pod *kubeadm_pod(const char *component)
{
    char path[512];
    snprintf(path, sizeof path, CERTROLL_SOURCE_DIR "/test/testdata/static-pods/kubeadm-%s.yaml", component);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    struct cr_error err = {0};
    if (!cr_file_read(path, CR_YAML_MAX_BYTES, &text, &err))
        fail_msg("%s", err.text);
    return read_text(component, cr_buf_text(&text));
}

static void test_kubeadm(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *component;
        const char *version;
        const char *path;
        const char *file;
    } cases[] = {
        {"kube-apiserver", "v1.36.3", "/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.crt"},
        {"kube-controller-manager", "v1.36.3", "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/controller-manager.conf (alone)"},
        {"kube-scheduler", "v1.36.3", "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/scheduler.conf (alone)"},
        {"kube-scheduler", "v1.36.3", "/etc/kubernetes/pki/ca.crt", "Image: is below no mount, so the image's own"},
        {"etcd", "3.6.8-0", "/etc/kubernetes/pki/etcd/server.crt", "/etc/kubernetes/pki/etcd/server.crt"},
    };
    /* clang-format on */
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = kubeadm_pod(cases[i].component);
        assert_string_equal(pod->name, cases[i].component);
        assert_string_equal(pod->ns, "kube-system");
        assert_true(pod->host_network);
        assert_int_equal(pod->len, 1);
        const struct cr_static_container *c = &pod->containers[0];
        assert_true(c->argv_known);
        assert_string_equal(cr_static_container_process(c), cases[i].component);
        assert_string_equal(cr_component_name(cr_static_container_component(c, catalogue)), cases[i].component);
        assert_string_equal(c->version, cases[i].version);
        check_file(cases[i].component, c, cases[i].path, cases[i].file);
    }
}

static void test_component(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *container;
        const char *component;
    } cases[] = {
        {"the process before the image", "{name: a, image: 'rancher/hardened-kubernetes:v1.36.1', command: [kube-apiserver]}", "kube-apiserver"},
        {"the image where there is no process", "{name: a, image: 'registry.k8s.io/kube-scheduler:v1.36.1', args: [--a]}", "kube-scheduler"},
        {"the image where the process says nothing", "{name: a, image: 'registry.k8s.io/kube-scheduler:v1.36.1', command: [/run.sh]}", "kube-scheduler"},
        {"nobody knows", "{name: a, image: 'b/c', command: [d]}", NULL},
    };
    /* clang-format on */
    struct cr_error err = {0};
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
        cr_buf_printf(&text, HEAD "  containers: [%s]\n", cases[i].container);
        CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = read_text(cases[i].rule, text.data);
        const char *name = cr_component_name(cr_static_container_component(&pod->containers[0], catalogue));
        if (!cr_streq(name, cases[i].component))
            fail_msg("%s: %s", cases[i].rule, cr_or_empty(name));
    }
}

/* --- what is read at all --- */

static void test_json_and_annotations(void **state)
{
    (void)state;
    CR_CLEANUP(cr_static_pod)
    struct cr_static_pod *pod =
        read_text("JSON", " \n{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\", "
                          "\"annotations\": {\"x/y\": \"z\"}}, \"spec\": {\"containers\": []}}");
    assert_string_equal(pod->ns, "default");
    assert_false(pod->host_network);
    assert_int_equal(pod->len, 0);
    assert_string_equal(cr_static_pod_annotation(pod, "x/y"), "z");
    assert_null(cr_static_pod_annotation(pod, "x/z"));
    assert_null(cr_static_pod_annotation(NULL, "x/y"));
    cr_static_pod_free(NULL);
}

static void check_refused(const char *rule, const char *text, size_t len, const char *words)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_static_pod_read(text, len, &err);
    if (pod || err.kind != CR_ERR_INVALID || strncmp(err.text, "the manifest", 12) != 0 || !strstr(err.text, words))
        fail_msg("%s: %s", rule, pod ? "was read" : err.text);
}

static void test_refused(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *text;
        const char *words;
    } cases[] = {
        {"half a file", "apiVersion: v1\n", "no object with a kind"},
        {"nothing", "", "no object with a kind"},
        {"no object", "[a]", "no object with a kind"},
        {"a list of pods, which the kubelet does not read from a file", "apiVersion: v1\nkind: PodList\nmetadata: {name: a}\n", "a PodList of \"v1\""},
        {"another group's Pod", "apiVersion: x/v1\nkind: Pod\nmetadata: {name: a}\n", "a Pod of \"x/v1\""},
        {"no name", "apiVersion: v1\nkind: Pod\nmetadata: {name: ''}\n", "no metadata.name"},
        {"two documents, of which the kubelet takes the first", HEAD "  containers: []\n---\n" HEAD, "a second document"},
        {"anchors", "apiVersion: &a v1\nkind: Pod\nmetadata: {name: *a}\n", "an anchor or alias"},
        {"a key twice", "apiVersion: v1\nkind: Pod\nkind: Pod\n", "a key that was there before"},
        {"a key twice in JSON", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"kind\": \"Pod\"}", "a key that was there before"},
        {"flow style at the top is JSON to the kubelet, and so must be", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", "not JSON"},
        {"tabs", "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n", "line 4"},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(cases); i++)
        check_refused(cases[i].rule, cases[i].text, strlen(cases[i].text), cases[i].words);

    CR_CLEANUP(cr_buf) struct cr_buf many = CR_BUF_INIT(0);
    cr_buf_puts(&many, HEAD "  containers:\n");
    for (int i = 0; i <= CR_STATIC_POD_CONTAINERS_MAX; i++)
        cr_buf_puts(&many, "  - {name: a}\n");
    check_refused("containers", many.data, many.len, "more than 64 containers");
    cr_buf_reset(&many);
    cr_buf_puts(&many, HEAD "  containers:\n  - name: a\n    volumeMounts:\n");
    for (int i = 0; i <= CR_STATIC_POD_MOUNTS_MAX; i++)
        cr_buf_puts(&many, "    - {name: a}\n");
    check_refused("mounts", many.data, many.len, "container a has more than 256 mounts");
    cr_buf_reset(&many);
    cr_buf_puts(&many, HEAD "  containers: []\n#");
    for (size_t i = 0; i < CR_YAML_MAX_BYTES; i++)
        cr_buf_puts(&many, "x");
    check_refused("bytes", many.data, many.len, "1048576");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_working_dir_and_mounts_that_hide_anything),
        cmocka_unit_test(test_kubeadm),
        cmocka_unit_test(test_component),
        cmocka_unit_test(test_json_and_annotations),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
