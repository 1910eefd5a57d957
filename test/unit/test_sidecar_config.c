#include "sidecar/config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "sidecar/address.h"

static void parse(const char *text, struct cr_sidecar_config *out)
{
    struct cr_error err = {0};
    if (!cr_sidecar_config_parse(text, strlen(text), out, &err))
        fail_msg("%s", err.text);
}

static void what_is_not_said_has_defaults(void **state)
{
    (void)state;
    static const char text[] =
        "materials:\n"
        "- name: web\n"
        "  certificate: /tls/tls.crt\n"
        "  privateKey: /tls/tls.key\n"
        "  outputs: [{type: PEM, path: /run/web.pem, parts: [privateKey, certificate]}]\n"
        "  triggers: [{type: Signal, signal: {process: nginx}}, {type: HTTP, http: {url: \"http://[::1]:80/\"}}]\n"
        "  proof: {endpoints: [{port: 8443}]}\n"
        "- {name: ca, trust: /tls/ca.crt, outputs: [{type: Truststore, path: /run/ca.p12, passwordFile: /p}]}\n";
    CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config;
    parse(text, &config);
    assert_int_equal(config.materials_len, 2);
    assert_null(config.envoy_admin);
    const struct cr_sidecar_material *web = &config.materials[0];
    assert_null(web->trust);
    assert_int_equal(web->outputs[0].parts, CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY);
    assert_int_equal(web->outputs[0].mode, 0400);
    assert_int_equal(web->outputs[0].owner, -1);
    assert_int_equal(web->outputs[0].group, -1);
    assert_int_equal(web->triggers_len, 2);
    assert_int_equal(web->triggers[0].signal.number, SIGHUP);
    assert_int_equal(web->triggers[0].timeout_ms, 10000);
    assert_string_equal(web->triggers[1].http.method, "POST");
    assert_int_equal(web->triggers[1].http.status_from, 200);
    assert_int_equal(web->triggers[1].http.status_to, 299);
    assert_string_equal(web->proof.endpoints[0].address, "127.0.0.1");
    assert_int_equal(web->proof.endpoints[0].protocol, CR_PROBE_TLS);
    assert_int_equal(web->proof.timeout_ms, 10000);
    assert_int_equal(config.materials[1].outputs[0].mode, 0444);
    assert_int_equal(config.materials[1].proof.endpoints_len, 0);
}

static void every_field_is_read(void **state)
{
    (void)state;
    static const char text[] =
        "materials:\n"
        "- name: web\n"
        "  certificate: /tls/tls.crt\n"
        "  privateKey: /tls/tls.key\n"
        "  trust: /tls/ca.crt\n"
        "  outputs: [{type: Keystore, path: /run/k.p12, passwordFile: /pw, mode: \"0440\", owner: 70, group: 71}]\n"
        "  triggers:\n"
        "  - {type: Signal, timeout: 3s, signal: {name: SIGUSR2, pidFile: /run/pid}}\n"
        "  - type: HTTP\n"
        "    http:\n"
        "      method: PUT\n"
        "      url: https://127.0.0.1:2019/load\n"
        "      headers: [\"A: 1\", \"A: 1\"]\n"
        "      body: \"${combined} ${privateKey.json}\"\n"
        "      caFile: /a\n"
        "      certificateFile: /b\n"
        "      privateKeyFile: /c\n"
        "      serverName: admin\n"
        "      status: {from: 204, to: 204}\n"
        "  - {type: Socket, socket: {address: /run/app.sock, eachAnew: true, exchanges: [{send: \"r\\n\", expect: OK},"
        " {send: \"${trust}\"}]}}\n"
        "  - {type: Command, command: {argv: [app, -v, -v, \"${trust.path}\"]}}\n"
        "  - {type: HAProxy, haproxy: {address: \"127.0.0.1:9999\", certificates: [/run/web.pem], caFiles: [/ca]}}\n"
        "  - {type: Redis, redis: {address: \"[::1]:6379\", user: admin, passwordFile: /pw}}\n"
        "  proof: {timeout: 20s, endpoints: [{address: \"::1\", port: 5432, serverName: db, protocol: PostgreSQL}]}\n"
        "envoyAdmin: 127.0.0.1:9901\n";
    CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config;
    parse(text, &config);
    const struct cr_sidecar_material *web = &config.materials[0];
    assert_string_equal(web->name, "web");
    assert_string_equal(web->certificate, "/tls/tls.crt");
    assert_string_equal(web->private_key, "/tls/tls.key");
    assert_string_equal(web->trust, "/tls/ca.crt");
    const struct cr_output_spec *output = &web->outputs[0];
    assert_int_equal(output->type, CR_OUTPUT_KEYSTORE);
    assert_string_equal(output->path, "/run/k.p12");
    assert_string_equal(output->password_file, "/pw");
    assert_int_equal(output->mode, 0440);
    assert_int_equal(output->owner, 70);
    assert_int_equal(output->group, 71);
    assert_int_equal(web->triggers_len, 6);
    const struct cr_trigger_spec *t = web->triggers;
    assert_int_equal(t[0].timeout_ms, 3000);
    assert_int_equal(t[0].signal.number, SIGUSR2);
    assert_string_equal(t[0].signal.pid_file, "/run/pid");
    assert_string_equal(t[1].http.method, "PUT");
    assert_string_equal(t[1].http.url, "https://127.0.0.1:2019/load");
    assert_int_equal(t[1].http.headers.len, 2);
    assert_string_equal(t[1].http.body, "${combined} ${privateKey.json}");
    assert_string_equal(t[1].http.ca_file, "/a");
    assert_string_equal(t[1].http.certificate_file, "/b");
    assert_string_equal(t[1].http.private_key_file, "/c");
    assert_string_equal(t[1].http.server_name, "admin");
    assert_int_equal(t[1].http.status_from, 204);
    assert_int_equal(t[1].http.status_to, 204);
    assert_string_equal(t[2].socket.address, "/run/app.sock");
    assert_true(t[2].socket.reconnect_each);
    assert_int_equal(t[2].socket.exchanges_len, 2);
    assert_string_equal(t[2].socket.exchanges[0].send, "r\n");
    assert_string_equal(t[2].socket.exchanges[0].expect, "OK");
    assert_null(t[2].socket.exchanges[1].expect);
    assert_int_equal(t[3].command.argv.len, 4); /* also what stands there twice */
    assert_string_equal(t[4].haproxy.address, "127.0.0.1:9999");
    assert_string_equal(t[4].haproxy.certificates.items[0], "/run/web.pem");
    assert_string_equal(t[4].haproxy.ca_files.items[0], "/ca");
    assert_string_equal(t[5].redis.address, "[::1]:6379");
    assert_string_equal(t[5].redis.user, "admin");
    assert_string_equal(t[5].redis.password_file, "/pw");
    assert_string_equal(web->proof.endpoints[0].address, "::1");
    assert_int_equal(web->proof.endpoints[0].port, 5432);
    assert_string_equal(web->proof.endpoints[0].server_name, "db");
    assert_int_equal(web->proof.endpoints[0].protocol, CR_PROBE_POSTGRESQL);
    assert_int_equal(web->proof.timeout_ms, 20000);
    assert_string_equal(config.envoy_admin, "127.0.0.1:9901");
}

struct refusal {
    const char *text, *words;
};

static void assert_refused(const char *text, const char *words)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_sidecar_config) struct cr_sidecar_config config;
    if (cr_sidecar_config_parse(text, strlen(text), &config, &err))
        fail_msg("taken: %s", text);
    assert_int_equal(err.kind, CR_ERR_INVALID);
    assert_int_equal(config.materials_len, 0);
    if (!strstr(err.text, words))
        fail_msg("%s: want \"%s\", got: %s", text, words, err.text);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"[]", "it must be a mapping"},
        {"a: [", "not YAML"},
        {"{}", "materials is required"},
        {"materials: []", "there is none"},
        {"material: []", "material: there is no such field"},
        {"materials: [{name: Web, trust: /ca}]", "materials[0].name: 'Web'"},
        {"materials: [{name: web}]", "materials[0]: give certificate and privateKey, or trust"},
        {"materials: [{name: web, certificate: /a}]", "materials[0]: certificate and privateKey go together"},
        {"materials: [{name: web, trust: ca.crt}]", "materials[0].trust must be an absolute path"},
        {"materials: [{name: web, trust: /ca, key: /k}]", "materials[0].key: there is no such field"},
        {"materials: [{name: a, trust: /ca}, {name: a, trust: /ca}]", "materials[1].name: 'a' stands twice"},
        {"materials: [{name: a, trust: /ca}]\nenvoyAdmin: 10.0.0.1:9901", "envoyAdmin: '10.0.0.1:9901' is neither"},
        {"materials: [{name: a, trust: /ca, proof: {}}]", "materials[0].proof.endpoints is required"},
        {"materials: [{name: a, trust: /ca, proof: {endpoints: [{port: 0}]}}]", "endpoints[0].port must be"},
        {"materials: [{name: a, trust: /ca, proof: {endpoints: [{port: 1, address: 10.0.0.1}]}}]", "is not loopback"},
        {"materials: [{name: a, trust: /ca, proof: {endpoints: [{port: 1, host: a}]}}]", "host: there is no such"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        assert_refused(cases[i].text, cases[i].words);
}

static void an_output_neither_bares_the_key_nor_overwrites_what_is_read(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"{path: /o, parts: [trust]}", "outputs[0].type is required"},
        {"{type: DER, path: /o}", "type must be one of PEM, Keystore, Truststore"},
        {"{type: PEM, parts: [trust]}", "path is required"},
        {"{type: PEM, path: o, parts: [trust]}", "must be an absolute path"},
        {"{type: PEM, path: /o/, parts: [trust]}", "must be that of a file"},
        {"{type: PEM, path: /o}", "parts is required"},
        {"{type: PEM, path: /o, parts: []}", "parts: there is none"},
        {"{type: PEM, path: /o, parts: [key]}", "'key' is none of certificate"},
        {"{type: PEM, path: /o, parts: [trust], passwordFile: /p}", "passwordFile: there is no such field"},
        {"{type: Keystore, path: /o}", "passwordFile is required"},
        {"{type: Keystore, path: /o, passwordFile: /p, parts: [trust]}", "parts: there is no such field"},
        {"{type: PEM, path: /o, parts: [privateKey], mode: \"0444\"}", "would let everybody at the key"},
        {"{type: PEM, path: /o, parts: [trust], mode: \"0777\"}", "without the right to execute"},
        {"{type: PEM, path: /o, parts: [trust], mode: \"4444\"}", "octal digits"},
        {"{type: PEM, path: /o, parts: [trust], mode: \"999\"}", "octal digits"},
        {"{type: PEM, path: /o, parts: [trust], mode: \"-1\"}", "octal digits"},
        {"{type: PEM, path: /o, parts: [trust], owner: -1}", "owner must be an integer"},
        {"{type: PEM, path: /tls/key, parts: [trust]}", "is read as material"},
        {"{type: PEM, path: /o, parts: [trust]}, {type: PEM, path: /o, parts: [trust]}", "is written by two outputs"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text = cr_asprintf(
            "materials: [{name: a, certificate: /tls/crt, privateKey: /tls/key, trust: /tls/ca, outputs: [%s]}]",
            cases[i].text);
        assert_refused(text, cases[i].words);
    }
    assert_refused("materials: [{name: a, trust: /ca, outputs: [{type: Keystore, path: /o, passwordFile: /p}]}]",
                   "materials[0].outputs[0]: the material has no certificate");
}

static void a_trigger_that_cannot_work_is_refused(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"{}", "triggers[0].type is required"},
        {"{type: Restart}", "type must be one of Signal, HTTP, Socket, Command, HAProxy, Redis"},
        {"{type: Signal}", "signal is required"},
        {"{type: Signal, signal: {process: a}, http: {}}", "http: there is no such field"},
        {"{type: Signal, signal: {process: a}, timeout: 1h}", "timeout must be a duration"},
        {"{type: Signal, signal: {}}", "signal: give either process or pidFile"},
        {"{type: Signal, signal: {process: a, pidFile: /p}}", "signal: give either process or pidFile"},
        {"{type: Signal, signal: {process: /usr/sbin/nginx}}", "without its folder"},
        {"{type: Signal, signal: {name: SIGTERM, process: a}}", "must be one of SIGHUP"},
        {"{type: HTTP, http: {}}", "http.url is required"},
        {"{type: HTTP, http: {url: /reload}}", "http.url must be http:// or https://"},
        {"{type: HTTP, http: {url: \"http://\"}}", "http.url must be"},
        {"{type: HTTP, http: {url: \"http://a b/\"}}", "http.url must be"},
        {"{type: HTTP, http: {url: \"http://user:pw@host/\"}}", "without user"},
        {"{type: HTTP, http: {url: \"http://a/\", method: post}}", "capital letters"},
        {"{type: HTTP, http: {url: \"http://a/\", headers: [\"A\"]}}", "headers[0] must be as"},
        {"{type: HTTP, http: {url: \"http://a/\", headers: [\"A: b\\r\\nC: d\"]}}", "on one line"},
        {"{type: HTTP, http: {url: \"http://a/\", body: a, bodyFile: /b}}", "either body or bodyFile"},
        {"{type: HTTP, http: {url: \"http://a/\", caFile: /a}}", "are for https"},
        {"{type: HTTP, http: {url: \"https://a/\", certificateFile: /a}}", "go together"},
        {"{type: HTTP, http: {url: \"http://a/\", status: {from: 300}}}", "from is above to"},
        {"{type: HTTP, http: {url: \"http://a/\", body: \"${key}\"}}", "of ${…} there are"},
        {"{type: HTTP, http: {url: \"http://a/\", body: \"${trust}\"}}", "${trust} is no part of the material"},
        {"{type: HTTP, http: {url: \"http://a/\", body: \"x${privateKey.json}\"}}", "by https, or to loopback, only"},
        {"{type: HTTP, http: {url: \"http://127.0.0.1.evil/\", body: \"${combined}\"}}", "by https, or to loopback"},
        {"{type: Socket, socket: {exchanges: [{send: a}]}}", "socket.address is required"},
        {"{type: Socket, socket: {address: \"10.0.0.1:1\", exchanges: [{send: a}]}}", "socket.address: '10.0.0.1:1'"},
        {"{type: Socket, socket: {address: /s}}", "exchanges is required"},
        {"{type: Socket, socket: {address: /s, exchanges: []}}", "exchanges: there is none"},
        {"{type: Socket, socket: {address: /s, exchanges: [{expect: a}]}}", "exchanges[0].send is required"},
        {"{type: Socket, socket: {address: /s, exchanges: [{send: \"${a}\"}]}}", "exchanges[0].send: of ${…}"},
        {"{type: Command, command: {}}", "argv is required"},
        {"{type: Command, command: {argv: []}}", "argv: there is none"},
        {"{type: Command, command: {argv: [a, \"${privateKey}\"]}}", "there are ${certificate.path}"},
        {"{type: HAProxy, haproxy: {address: /s}}", "give certificates, caFiles or both"},
        {"{type: HAProxy, haproxy: {address: /s, caFiles: [/a]}}", "the material has no trust"},
        {"{type: HAProxy, haproxy: {address: /s, certificates: [\"a;quit\"]}}", "must be without spaces"},
        {"{type: Redis, redis: {address: /s, user: a}}", "redis.user needs a passwordFile"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        cr_autofree char *text =
            cr_asprintf("materials: [{name: a, certificate: /crt, privateKey: /key, triggers: [%s]}]", cases[i].text);
        assert_refused(text, cases[i].words);
    }
    assert_refused("materials: [{name: a, trust: /ca, triggers: [{type: HAProxy, haproxy: {address: /s, certificates: "
                   "[/a]}}]}]",
                   "the material has no certificate");
}

static void only_this_pod_is_an_address(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool allowed;
    } cases[] = {
        {"/run/a.sock", true},
        {"127.0.0.1:1", true},
        {"127.1.2.3:65535", true},
        {"[::1]:80", true},
        {":80", true},
        {"::1:80", false},
        {"localhost:80", true},
        {"10.0.0.1:80", false},
        {"0.0.0.0:80", false},
        {"[::]:80", false},
        {"[::ffff:127.0.0.1]:80", false},
        {"127.0.0.1", false},
        {"127.0.0.1:0", false},
        {"127.0.0.1:65536", false},
        {"127.0.0.1:+1", false},
        {"127.0.0.1:", false},
        {"[::1:80", false},
        {"", false},
        {"@abstract", false},
        {"/012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "8",
         false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        struct cr_address address;
        if (cr_sidecar_address_parse(cases[i].text, &address, &err) != cases[i].allowed)
            fail_msg("'%s': %s", cases[i].text, err.text);
        assert_int_equal(err.kind, cases[i].allowed ? CR_ERR_NONE : CR_ERR_INVALID);
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct cr_error err = {0};
    struct cr_sidecar_config config;
    assert_false(cr_sidecar_config_load("/nonexistent/sidecar.yaml", &config, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/sidecar.yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_said_has_defaults),
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(an_output_neither_bares_the_key_nor_overwrites_what_is_read),
        cmocka_unit_test(a_trigger_that_cannot_work_is_refused),
        cmocka_unit_test(only_this_pod_is_an_address),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
