#include "kube/exec_plugin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "support/testcerts.h"

#define V1           "client.authentication.k8s.io/v1"
#define V1BETA1      "client.authentication.k8s.io/v1beta1"
#define PRINTED(v)   "{\"apiVersion\":\"" v "\",\"kind\":\"ExecCredential\",\"status\":"
#define STATUS(text) PRINTED(V1) text "}"

static void tokens_and_their_end_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *version, *text, *token;
        int64_t expires_ms;
    } cases[] = {
        {V1, STATUS("{\"token\":\"abc\"}"), "abc", INT64_MAX},
        {V1, STATUS("{\"token\":\"abc\",\"expirationTimestamp\":null,\"clientKeyData\":\"\",\"later\":1}") "\n", "abc",
         INT64_MAX},
        {V1, STATUS("{\"token\":\"abc\",\"expirationTimestamp\":\"2026-11-21T06:00:00+01:00\"}"), "abc", 1795237200000},
        {V1BETA1, PRINTED(V1BETA1) "{\"token\":\"abc\"}}", "abc", INT64_MAX},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_exec_credential) struct cr_exec_credential credential = {0};
        struct cr_error err = {0};
        if (!cr_exec_credential_decode(cases[i].version, cases[i].text, strlen(cases[i].text), &credential, &err))
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_string_equal(credential.token, cases[i].token);
        assert_null(credential.cert_pem);
        assert_true(credential.expires_ms == cases[i].expires_ms);
    }
}

static void what_is_no_credential_is_reported_and_never_shown(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no JSON"},
        {"SECRET", "no JSON"},
        {STATUS("{\"token\":\"SECRET\"}") "SECRET", "no JSON"},
        {"[\"SECRET\"]", "something else than an ExecCredential"},
        {"{\"kind\":\"ExecCredential\"}", "something else"},
        {"{\"apiVersion\":\"" V1 "\",\"kind\":\"Status\"}", "something else"},
        {PRINTED(V1BETA1) "{\"token\":\"SECRET\"}}", "has apiVersion " V1 ", but it printed " V1BETA1},
        {"{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\"}", "has no status"},
        {STATUS("null"), "has no status"},
        {STATUS("{}"), "neither a token nor a client certificate"},
        {STATUS("{\"token\":\"\"}"), "neither a token nor a client certificate"},
        {STATUS("{\"token\":12}"), "status.token is no text"},
        {STATUS("{\"token\":\"SECRET\\nX-Remote-User: root\"}"), "characters that no token has"},
        {STATUS("{\"token\":\"SECRET\",\"expirationTimestamp\":\"tomorrow\"}"), "status.expirationTimestamp"},
        {STATUS("{\"token\":\"SECRET\",\"expirationTimestamp\":1}"), "status.expirationTimestamp is no text"},
        {STATUS("{\"clientCertificateData\":\"SECRET\"}"), "only one of"},
        {STATUS("{\"token\":\"t\",\"clientKeyData\":\"SECRET\"}"), "only one of"},
        {STATUS("{\"clientCertificateData\":\"SECRET\",\"clientKeyData\":\"SECRET\"}"), "status.clientCertificateData"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_exec_credential) struct cr_exec_credential credential = {0};
        struct cr_error err = {0};
        if (cr_exec_credential_decode(V1, cases[i].text, strlen(cases[i].text), &credential, &err))
            fail_msg("%s was taken", cases[i].text);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].says) || strstr(err.text, "SECRET"))
            fail_msg("%s: '%s'", cases[i].text, err.text);
        assert_null(credential.token);
        assert_null(credential.cert_pem);
    }
}

static char *with_certificate(const struct test_cert *cert, const struct test_cert *key)
{
    CR_CLEANUP(cr_json) struct cr_json *printed = cr_json_new_object();
    cr_json_set_string(printed, "apiVersion", V1);
    cr_json_set_string(printed, "kind", "ExecCredential");
    struct cr_json *status = cr_json_object_in(printed, "status");
    cr_json_set_string(status, "clientCertificateData", cert->cert_pem);
    cr_json_set_string(status, "clientKeyData", key->key_pem);
    return cr_json_print(printed);
}

static void a_certificate_must_fit_its_key_and_its_end_counts(void **state)
{
    (void)state;
    CR_CLEANUP(test_cert) struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.cn = "client"});
    CR_CLEANUP(test_cert) struct test_cert *other = test_cert_new(&(struct test_cert_spec){.cn = "other"});
    CR_CLEANUP(cr_exec_credential) struct cr_exec_credential credential = {0};
    struct cr_error err = {0};
    cr_autofree char *wrong = with_certificate(cert, other);
    assert_false(cr_exec_credential_decode(V1, wrong, strlen(wrong), &credential, &err));
    assert_non_null(strstr(err.text, "status.clientKeyData"));
    cr_autofree char *right = with_certificate(cert, cert);
    if (!cr_exec_credential_decode(V1, right, strlen(right), &credential, &err))
        fail_msg("%s", err.text);
    assert_string_equal(credential.cert_pem, cert->cert_pem);
    assert_string_equal(credential.key_pem, cert->key_pem);
    assert_null(credential.token);
    assert_true(credential.expires_ms > cr_clock_wall_ms() && credential.expires_ms < INT64_MAX);
}

static struct cr_exec_plugin *script(const char *command, const char *text)
{
    struct cr_exec_plugin *plugin = cr_new(struct cr_exec_plugin);
    plugin->command = cr_strdup(command);
    plugin->api_version = cr_strdup(V1);
    plugin->install_hint = cr_strdup("get it from\nthe shop");
    cr_strvec_add(&plugin->args, "-c");
    cr_strvec_add(&plugin->args, text);
    cr_strvec_add(&plugin->args, "an argument");
    cr_strvec_add(&plugin->env, "PLUGIN_TOKEN=from the kubeconfig");
    return plugin;
}

static void it_is_run_with_its_arguments_and_variables(void **state)
{
    (void)state;
    setenv("PLUGIN_TOKEN", "ours", 1);
    CR_CLEANUP(cr_exec_plugin)
    struct cr_exec_plugin *plugin = script(
        "sh", "[ \"$PLUGIN_TOKEN\" = 'from the kubeconfig' ] && [ -n \"$HOME$PATH\" ] && [ \"$0\" = 'an argument' ] "
              "&& echo noise >&2 && echo '" STATUS("{\"token\":\"t\"}") "'");
    CR_CLEANUP(cr_exec_credential) struct cr_exec_credential credential = {0};
    struct cr_error err = {0};
    if (!cr_exec_plugin_run(plugin, -1, &credential, &err))
        fail_msg("%s", err.text);
    assert_string_equal(credential.token, "t");
}

static void its_trouble_is_reported_with_its_last_words(void **state)
{
    (void)state;
    static const struct {
        const char *command, *text, *says;
    } cases[] = {
        {"sh", "echo one >&2; echo 'log in first' >&2; exit 3",
         "credential plugin 'sh': failed with exit status 3: log in first"},
        {"sh", "exit 1", "credential plugin 'sh': failed with exit status 1"},
        {"sh", "kill -15 $$", "credential plugin 'sh': ended by signal 15"},
        {"sh", "yes", "credential plugin 'sh': it printed more than 1048576 bytes"},
        {"sh", "echo garbage; echo sorry >&2", "credential plugin 'sh': what it printed is no JSON: "},
        {"certroll-no-such-plugin", "",
         "credential plugin 'certroll-no-such-plugin': no program 'certroll-no-such-plugin' in the folders of $PATH: "
         "get "
         "it from the shop"},
        {"/etc/passwd", "",
         "credential plugin '/etc/passwd': /etc/passwd is no program that may be executed: get it from"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_exec_plugin) struct cr_exec_plugin *plugin = script(cases[i].command, cases[i].text);
        struct cr_exec_credential none;
        struct cr_error err = {0};
        assert_false(cr_exec_plugin_run(plugin, -1, &none, &err));
        assert_int_equal(err.kind, CR_ERR_UNAUTHORIZED);
        if (!cr_starts_with(err.text, cases[i].says))
            fail_msg("'%s' is not '%s'", err.text, cases[i].says);
        assert_null(none.token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_their_end_are_read),
        cmocka_unit_test(what_is_no_credential_is_reported_and_never_shown),
        cmocka_unit_test(a_certificate_must_fit_its_key_and_its_end_counts),
        cmocka_unit_test(it_is_run_with_its_arguments_and_variables),
        cmocka_unit_test(its_trouble_is_reported_with_its_last_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
