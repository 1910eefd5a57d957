#include "controlplane/agent/manifest_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "codec/yaml.h"
#include "controlplane/agent/static_pod.h"
#include "sys/file.h"

static const char annotation[] = "certroll.dev/restart";

/* How many bytes both texts begin and end with alike, none counted twice. */
static size_t alike(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t shorter = a_len < b_len ? a_len : b_len;
    size_t begin = 0;
    size_t end = 0;
    while (begin < shorter && a[begin] == b[begin])
        begin++;
    while (end < shorter - begin && a[a_len - end - 1] == b[b_len - end - 1])
        end++;
    return begin + end;
}

/* The Pod that a text is, the annotation apart; annotations that are empty without it are none. Owned. */
static char *others(const char *rule, const char *text)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_static_pod_read(text, strlen(text), &err);
    if (!pod)
        fail_msg("%s: %s in\n%s", rule, err.text, text);
    struct cr_buf out = CR_BUF_INIT(0);
    for (const struct cr_json *j = cr_json_first(pod->json); j; j = cr_json_next(j)) {
        if (cr_streq(cr_json_key(j), "metadata"))
            continue;
        cr_autofree char *value = cr_json_print(j);
        cr_buf_printf(&out, "%s=%s\n", cr_json_key(j), value);
    }
    const struct cr_json *metadata = cr_json_get(pod->json, "metadata");
    for (const struct cr_json *j = cr_json_first(metadata); j; j = cr_json_next(j)) {
        if (cr_streq(cr_json_key(j), "annotations"))
            continue;
        cr_autofree char *value = cr_json_print(j);
        cr_buf_printf(&out, "metadata.%s=%s\n", cr_json_key(j), value);
    }
    const struct cr_json *annotations = cr_json_get(metadata, "annotations");
    for (const struct cr_json *j = cr_json_first(annotations); j; j = cr_json_next(j))
        if (!cr_streq(cr_json_key(j), annotation))
            cr_buf_printf(&out, "annotation %s=%s\n", cr_json_key(j), cr_or_empty(cr_json_string(j)));
    return cr_buf_steal(&out);
}

static void annotate(const char *rule, const char *text, const char *value, struct cr_buf *out, bool *changed)
{
    struct cr_error err = {0};
    if (!cr_manifest_annotate(text, strlen(text), annotation, value, out, changed, &err))
        fail_msg("%s: %s", rule, err.text);
}

static void check_value(const char *rule, const char *text, const char *value)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *pod = cr_static_pod_read(text, strlen(text), &err);
    if (!pod || !cr_streq(cr_static_pod_annotation(pod, annotation), value))
        fail_msg("%s: %s", rule, pod ? cr_or_empty(cr_static_pod_annotation(pod, annotation)) : err.text);
}

/* What holds of every text that is taken: what is new stands in one place and at most `removed` bytes are gone; all
 * else of the Pod is the same; once more changes nothing; another value changes the value alone. */
static void check_laws(const char *rule, const char *before, const char *after, size_t removed)
{
    size_t same = alike(before, strlen(before), after, strlen(after));
    if (same + removed < strlen(before))
        fail_msg("%s: only %zu bytes of %zu are as they were:\n%s", rule, same, strlen(before), after);
    check_value(rule, after, "t-1");
    cr_autofree char *old_others = others(rule, before);
    cr_autofree char *new_others = others(rule, after);
    assert_string_equal(old_others, new_others);

    bool changed = true;
    CR_CLEANUP(cr_buf) struct cr_buf again = CR_BUF_INIT(0);
    annotate(rule, after, "t-1", &again, &changed);
    assert_false(changed);
    assert_string_equal(again.data, after);

    CR_CLEANUP(cr_buf) struct cr_buf other = CR_BUF_INIT(0);
    annotate(rule, after, "t-22", &other, &changed);
    assert_true(changed);
    check_value(rule, other.data, "t-22");
    assert_true(alike(after, strlen(after), other.data, other.len) + strlen("\"t-1\"") >= strlen(after));
    CR_CLEANUP(cr_buf) struct cr_buf back = CR_BUF_INIT(0);
    annotate(rule, other.data, "t-1", &back, &changed);
    assert_string_equal(back.data, after);
}

#define TOP      "apiVersion: v1\nkind: Pod\n"
#define SPEC     "spec: {containers: []}\n"
#define OURS     "\"certroll.dev/restart\": \"t-1\""
#define CRLF_TOP "apiVersion: v1\r\nkind: Pod\r\n"

/* clang-format off */
static const struct edit_case {
    const char *rule;
    const char *before;
    const char *after;
    size_t removed;
} cases[] = {
    {"before other annotations",
     TOP "metadata:\n  annotations:\n    a/b: c\n  name: p\n" SPEC,
     TOP "metadata:\n  annotations:\n    " OURS "\n    a/b: c\n  name: p\n" SPEC, 0},
    {"no annotations: first in metadata",
     TOP "metadata:\n  name: p\n" SPEC,
     TOP "metadata:\n  annotations:\n    " OURS "\n  name: p\n" SPEC, 0},
    {"metadata last, without an end of line",
     TOP "metadata:\n    name: p",
     TOP "metadata:\n    annotations:\n      " OURS "\n    name: p", 0},
    {"the value replaced, quotes, comment and place as they are",
     TOP "metadata:\n  annotations:\n    a: b\n    certroll.dev/restart: old # why\n    c: d\n  name: p\n",
     TOP "metadata:\n  annotations:\n    a: b\n    certroll.dev/restart: \"t-1\" # why\n    c: d\n  name: p\n", 3},
    {"a value in single quotes", TOP "metadata: {name: p, annotations: {'certroll.dev/restart': 'o''ld'}}\n",
     TOP "metadata: {name: p, annotations: {'certroll.dev/restart': \"t-1\"}}\n", 7},
    {"a value of several lines", TOP "metadata:\n  annotations:\n    certroll.dev/restart: one\n      two\n  name: p\n",
     TOP "metadata:\n  annotations:\n    certroll.dev/restart: \"t-1\"\n  name: p\n", 13},
    {"a value with a tag", TOP "metadata:\n  name: p\n  annotations:\n    certroll.dev/restart: !!str 1\n",
     TOP "metadata:\n  name: p\n  annotations:\n    certroll.dev/restart: \"t-1\"\n", 7},
    {"an empty value", TOP "metadata:\n  annotations:\n    certroll.dev/restart:\n  name: p\n",
     TOP "metadata:\n  annotations:\n    certroll.dev/restart: \"t-1\"\n  name: p\n", 0},
    {"null", TOP "metadata:\n  annotations:\n    certroll.dev/restart: ~\n  name: p\n",
     TOP "metadata:\n  annotations:\n    certroll.dev/restart: \"t-1\"\n  name: p\n", 1},
    {"comments stay where they are",
     "# top\n" TOP "metadata: # of it\n  # what follows\n  annotations: # these\n  # less deep\n    # about a\n    a: b # here\n  name: p\n# end\n",
     "# top\n" TOP "metadata: # of it\n  # what follows\n  annotations: # these\n    " OURS "\n  # less deep\n    # about a\n    a: b # here\n  name: p\n# end\n", 0},
    {"a comment before the first key of metadata",
     TOP "metadata:\n\n  # the name\n  name: p\n", TOP "metadata:\n  annotations:\n    " OURS "\n\n  # the name\n  name: p\n", 0},
    {"CRLF", CRLF_TOP "metadata:\r\n  annotations: # c\r\n      a: b\r\n  name: p\r\n",
     CRLF_TOP "metadata:\r\n  annotations: # c\r\n      " OURS "\r\n      a: b\r\n  name: p\r\n", 0},
    {"CRLF, no annotations", CRLF_TOP "metadata:\r\n name: p\r\n",
     CRLF_TOP "metadata:\r\n annotations:\r\n   " OURS "\r\n name: p\r\n", 0},
    {"annotations as deep as metadata's other keys are no child", TOP "metadata:\n  annotations:\n  name: p\n",
     TOP "metadata:\n  annotations: {" OURS "}\n  name: p\n", 0},
    {"null annotations", TOP "metadata:\n  name: p\n  annotations: null # none\n",
     TOP "metadata:\n  name: p\n  annotations: {" OURS "} # none\n", 4},
    {"empty annotations at the very end", TOP "metadata:\n  name: p\n  annotations:",
     TOP "metadata:\n  name: p\n  annotations: {" OURS "}", 0},
    {"{}", TOP "metadata:\n  annotations: {}\n  name: p\n", TOP "metadata:\n  annotations: {" OURS "}\n  name: p\n", 0},
    {"flow annotations in block metadata", TOP "metadata:\n  annotations: {a: b}\n  name: p\n",
     TOP "metadata:\n  annotations: {" OURS ", a: b}\n  name: p\n", 0},
    {"flow metadata", TOP "metadata: {name: p}\n", TOP "metadata: {\"annotations\": {" OURS "}, name: p}\n", 0},
    {"flow of several lines, a comment behind the brace", TOP "metadata: { # c\n    name: p\n  }\n",
     TOP "metadata: { \"annotations\": {" OURS "}, # c\n    name: p\n  }\n", 0},
    {"a comma at the end", TOP "metadata: {name: p, annotations: {a: b,},}\n",
     TOP "metadata: {name: p, annotations: {" OURS ", a: b,},}\n", 0},
    {"JSON on one line", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\": {" OURS "}, \"name\":\"p\"}}", 0},
    {"JSON of many lines, with tabs",
     "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\n\t\t\"annotations\": {\n\t\t\t\"a\": \"b\"\n\t\t},\n\t\t\"name\": \"p\"\n\t}\n}\n",
     "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\n\t\t\"annotations\": {\n\t\t\t" OURS ",\n\t\t\t\"a\": \"b\"\n\t\t},\n\t\t\"name\": \"p\"\n\t}\n}\n", 0},
    {"JSON with null", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": null}}",
     "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": {" OURS "}}}", 4},
    {"JSON with the annotation, an escape in its key",
     "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": {\"certroll.dev\\/restart\": \"old\"}}}",
     "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": {\"certroll.dev\\/restart\": \"t-1\"}}}", 5},
    {"one document, with its marks", "%YAML 1.1\n---\n" TOP "metadata:\n  name: p\n...\n",
     "%YAML 1.1\n---\n" TOP "metadata:\n  annotations:\n    " OURS "\n  name: p\n...\n", 0},
    {"a mark at the end with nothing behind it", TOP "metadata:\n  name: p\n---\n",
     TOP "metadata:\n  annotations:\n    " OURS "\n  name: p\n---\n", 0},
    {"characters of several bytes before", "# \xc3\xa9\xe2\x82\xac\n" TOP "metadata:\n  labels: {\"a\": \xf0\x9f\x98\x80}\n  annotations:\n    a: \xc3\xa9\n  name: p\n",
     "# \xc3\xa9\xe2\x82\xac\n" TOP "metadata:\n  labels: {\"a\": \xf0\x9f\x98\x80}\n  annotations:\n    " OURS "\n    a: \xc3\xa9\n  name: p\n", 0},
    {"a block of lines before", TOP "spec: {}\nmetadata:\n  annotations:\n    a: |\n      metadata:\n        annotations:\n    b: c\n  name: p\n",
     TOP "spec: {}\nmetadata:\n  annotations:\n    " OURS "\n    a: |\n      metadata:\n        annotations:\n    b: c\n  name: p\n", 0},
    {"other metadata and annotations are no business of ours",
     "spec:\n  template:\n    metadata: {annotations: {certroll.dev/restart: a}}\n  containers:\n  - metadata:\n      annotations: {}\n" TOP "metadata:\n  labels:\n    annotations: x\n  name: p\n",
     "spec:\n  template:\n    metadata: {annotations: {certroll.dev/restart: a}}\n  containers:\n  - metadata:\n      annotations: {}\n" TOP "metadata:\n  annotations:\n    " OURS "\n  labels:\n    annotations: x\n  name: p\n", 0},
    {"blanks at line ends and tabs where YAML allows them", TOP "metadata: \t\n  annotations:\t \n    a:\tb\t\n  name: p\n",
     TOP "metadata: \t\n  annotations:\t \n    " OURS "\n    a:\tb\t\n  name: p\n", 0},
    {"a tag on the mapping", TOP "metadata: !!map\n  annotations: !!map\n    a: b\n  name: p\n",
     TOP "metadata: !!map\n  annotations: !!map\n    " OURS "\n    a: b\n  name: p\n", 0},
    {"a tag on a key", TOP "metadata:\n  name: p\n  annotations:\n    !!str a: b\n",
     TOP "metadata:\n  name: p\n  annotations:\n    " OURS "\n    !!str a: b\n", 0},
    {"another token", TOP "metadata:\n  annotations: {certroll.dev/restart: t-0}\n  name: p\n",
     TOP "metadata:\n  annotations: {certroll.dev/restart: \"t-1\"}\n  name: p\n", 3},
};
/* clang-format on */

static void test_edits(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        const struct edit_case *c = &cases[i];
        bool changed = false;
        CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
        annotate(c->rule, c->before, "t-1", &out, &changed);
        assert_true(changed);
        if (!cr_streq(out.data, c->after))
            fail_msg("%s:\n%s", c->rule, out.data);
        check_laws(c->rule, c->before, out.data, c->removed);
    }
}

static void test_kubeadm(void **state)
{
    (void)state;
    static const char *const components[] = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"};
    for (size_t i = 0; i < cr_array_len(components); i++) {
        char path[512];
        snprintf(path, sizeof path, CERTROLL_SOURCE_DIR "/test/testdata/static-pods/kubeadm-%s.yaml", components[i]);
        CR_CLEANUP(cr_buf) struct cr_buf before = CR_BUF_INIT(0);
        CR_CLEANUP(cr_buf) struct cr_buf after = CR_BUF_INIT(0);
        struct cr_error err = {0};
        bool changed = false;
        if (!cr_file_read(path, CR_YAML_MAX_BYTES, &before, &err))
            fail_msg("%s", err.text);
        annotate(components[i], before.data, "t-1", &after, &changed);
        assert_true(changed);
        check_laws(components[i], before.data, after.data, 0);
    }
}

/* The value that is there is ours already: not one byte changes, not even its quotes. */
static void test_the_same_is_no_change(void **state)
{
    (void)state;
    static const char *const texts[] = {
        TOP "metadata:\n  annotations: {certroll.dev/restart: t-1}\n  name: p\n",
        TOP "metadata:\n  annotations:\n    certroll.dev/restart: |-\n      t-1\n  name: p\n",
    };
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        bool changed = true;
        CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
        annotate("the same", texts[i], "t-1", &out, &changed);
        assert_false(changed);
        assert_string_equal(out.data, texts[i]);
    }
}

static void test_values(void **state)
{
    (void)state;
    static const char *const values[] = {"", " a b ", "a\"b\\c/d", "{}[]#: -", "$(X) %s"};
    for (size_t i = 0; i < cr_array_len(values); i++) {
        bool changed = false;
        CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
        annotate(values[i], TOP "metadata:\n  name: p\n", values[i], &out, &changed);
        check_value(values[i], out.data, values[i]);
        CR_CLEANUP(cr_buf) struct cr_buf json = CR_BUF_INIT(0);
        annotate(values[i], "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}", values[i], &json,
                 &changed);
        check_value(values[i], json.data, values[i]);
    }
}

static void check_refused(const char *rule, const char *text, const char *name, const char *value, const char *words)
{
    struct cr_error err = {0};
    bool changed = false;
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    cr_buf_puts(&out, "before");
    bool ok = cr_manifest_annotate(text, strlen(text), name, value, &out, &changed, &err);
    if (ok || err.kind != CR_ERR_INVALID || !cr_starts_with(err.text, "the manifest") || !strstr(err.text, words))
        fail_msg("%s: %s", rule, ok ? out.data : err.text);
    assert_string_equal(out.data, "before");
}

static void test_refused(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *rule;
        const char *text;
        const char *words;
    } refused[] = {
        {"an anchor", TOP "metadata: &m\n  name: p\n", "an anchor or alias at line 3"},
        {"an alias", TOP "metadata:\n  name: p\n  annotations: *a\n", "line 5"},
        {"a merge key", TOP "metadata:\n  <<: {a: b}\n  name: p\n", "a merge key"},
        {"several documents", TOP "metadata:\n  name: p\n---\n" TOP "metadata:\n  name: q\n", "a second document"},
        {"a tab as indentation", TOP "metadata:\n\tname: p\n", "line 4"},
        {"a key twice", TOP "metadata:\n  annotations: {a: b}\n  name: p\n  annotations: {}\n", "a key that was there before"},
        {"annotations twice in JSON", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"annotations\":{},\"annotations\":{}}}", "a key that was there before"},
        {"no Pod", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "a Service of \"v1\""},
        {"half a file", TOP "metadata:\n", "no metadata.name"},
        {"a block of lines", TOP "metadata:\n  annotations:\n    certroll.dev/restart: |\n      a\n  name: p\n", "the annotation's value is a block of lines"},
        {"a number", TOP "metadata:\n  annotations:\n    certroll.dev/restart: 1\n  name: p\n", "the annotation's value is no text"},
        {"a mapping as value", TOP "metadata:\n  annotations:\n    certroll.dev/restart: {}\n  name: p\n", "the annotation's value is no text"},
        {"a sequence of annotations", TOP "metadata:\n  annotations:\n  - a\n  name: p\n", "its annotations are no mapping"},
        {"annotations of text", TOP "metadata:\n  annotations: a\n  name: p\n", "its annotations are no mapping"},
        {"an explicit key", TOP "metadata:\n  ? name\n  : p\n", "something stands before the first key"},
        {"an explicit parent", TOP "? metadata\n: name: p\n", "something stands before the first key"},
        {"a tag on a line of its own", TOP "metadata:\n  !!map\n  name: p\n", "cannot be annotated"},
        {"flow style that is no JSON, where the kubelet takes it for that", "{apiVersion: v1, kind: Pod, metadata: {name: p}}", "not JSON"},
    };
    /* clang-format on */
    for (size_t i = 0; i < cr_array_len(refused); i++)
        check_refused(refused[i].rule, refused[i].text, annotation, "t-1", refused[i].words);
}

static void test_refused_words(void **state)
{
    (void)state;
    static const char text[] = TOP "metadata:\n  name: p\n";
    char longest[CR_MANIFEST_VALUE_MAX + 2];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check_refused("a name with a blank", text, "a b", "", "no name of one");
    check_refused("a name of no bytes", text, "", "", "no name of one");
    check_refused("a name that would be another line", text, "a: b\nc", "", "no name of one");
    check_refused("a value of two lines", text, annotation, "a\nb", "printable");
    check_refused("a value beyond ASCII", text, annotation, "\xc3\xa9", "printable");
    check_refused("a value that is too long", text, annotation, longest, "256");
    longest[CR_MANIFEST_VALUE_MAX] = '\0';
    bool changed = false;
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    annotate("the longest", text, longest, &out, &changed);
    check_value("the longest", out.data, longest);
}

static void test_too_long(void **state)
{
    (void)state;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_puts(&text, TOP "metadata:\n  name: p\n#");
    while (text.len < CR_YAML_MAX_BYTES)
        cr_buf_puts(&text, "x");
    check_refused("it fits, but not with the annotation", text.data, annotation, "t-1", "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),    cmocka_unit_test(test_kubeadm), cmocka_unit_test(test_the_same_is_no_change),
        cmocka_unit_test(test_values),   cmocka_unit_test(test_refused), cmocka_unit_test(test_refused_words),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
