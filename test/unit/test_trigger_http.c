#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/testserver.h"
#include "support/triggerscene.h"

/* What the server saw last, and what it says. */
struct admin {
    int status;
    const char *headers;
    const char *body;
    char *seen;
    char *client;
    bool forced;
};

static void admin_dispose(struct admin *a)
{
    free(a->seen);
    free(a->client);
}
CR_DEFINE_DISPOSE(admin, struct admin, admin_dispose)

static void serve(struct test_conn *conn, void *arg)
{
    struct admin *a = arg;
    if (!test_conn_request(conn))
        return;
    free(a->seen);
    free(a->client);
    a->forced =
        test_conn_has(conn, "Cache-Control: must-revalidate") && test_conn_has(conn, "Content-Type: application/json");
    a->seen = cr_asprintf("%.*s|%s", (int)strcspn(conn->head, "\r"), conn->head, cr_or_empty(conn->body));
    a->client = cr_strdup(cr_or_empty(conn->client_cn));
    test_conn_answer(conn, a->status, cr_or_empty(a->headers), cr_or_empty(a->body));
}

static struct trigger_scene http_scene(char *url)
{
    struct trigger_scene s = scene_of(CR_TRIGGER_HTTP);
    s.spec.http.url = url;
    s.spec.http.status_from = 200;
    s.spec.http.status_to = 299;
    return s;
}

static char *file_of(const char *text)
{
    char *path = cr_strdup("/tmp/certroll-http-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void remove_file(char *path)
{
    unlink(path);
    free(path);
}
CR_DEFINE_CLEANUP(file, char, remove_file)

static void a_request_is_sent_as_it_is_configured(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin a = {.status = 200};
    const struct test_server_options options = {.serve = serve, .arg = &a};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    cr_autofree char *url = test_server_url(server, "/load?x=1");
    char *headers[] = {(char[]){"Cache-Control: must-revalidate"}, (char[]){"Content-Type: application/json"}};
    char body[] = "{\"key\": \"${privateKey.json}\"}", method[] = "PUT";
    CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
    s.spec.http.headers = (struct cr_strvec){.items = headers, .len = 2};
    s.spec.http.body = body;
    s.spec.http.method = method;
    scene_must_pull(&s);
    test_server_free(cr_steal(&server));
    assert_string_equal(a.seen, "PUT /load?x=1 HTTP/1.1|{\"key\": \"THE PRIVATE KEY\\n\"}");
    assert_true(a.forced);
}

static void a_file_is_sent_as_it_is(void **state)
{
    (void)state;
    CR_CLEANUP(admin) struct admin a = {.status = 204};
    const struct test_server_options options = {.serve = serve, .arg = &a};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    cr_autofree char *url = test_server_url(server, "/load");
    CR_CLEANUP(file) char *path = file_of("{\"not\": \"${ours}\"}");
    CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
    s.spec.http.body_file = path;
    scene_must_pull(&s);
    test_server_free(cr_steal(&server));
    assert_string_equal(a.seen, "POST /load HTTP/1.1|{\"not\": \"${ours}\"}");
}

static void the_status_decides(void **state)
{
    static const struct {
        int status;
        int from, to;
        const char *words; /* NULL: success */
    } cases[] = {
        {200, 200, 299, NULL},
        {299, 200, 299, NULL},
        {302, 200, 399, NULL},
        {302, 200, 299, "it answered HTTP 302: loading config: no"},
        {400, 200, 299, "POST http://127.0.0.1"},
        {500, 200, 299, "it answered HTTP 500: loading config: no"},
        {200, 204, 204, "it answered HTTP 200"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(admin)
        struct admin a = {.status = cases[i].status, .headers = "Location: /other\r\n", .body = "loading config:\n no"};
        const struct test_server_options options = {.serve = serve, .arg = &a};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        cr_autofree char *url = test_server_url(server, "/load");
        CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
        s.spec.http.status_from = cases[i].from;
        s.spec.http.status_to = cases[i].to;
        if (cases[i].words)
            scene_must_fail(&s, CR_ERR_TRANSIENT, cases[i].words);
        else
            scene_must_pull(&s);
        assert_int_equal(test_server_accepted(server), 1); /* a redirect is not followed */
        test_server_free(cr_steal(&server));
        assert_string_equal(a.seen, "POST /load HTTP/1.1|");
    }
}

struct tls_scene {
    struct test_cert *ca, *server, *client;
    char *ca_file, *certificate, *private_key;
};

static struct tls_scene tls_scene_new(void)
{
    struct tls_scene t = {.ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true})};
    t.server = test_cert_new(
        &(struct test_cert_spec){.cn = "server", .dns = {"admin.example"}, .ips = {"127.0.0.1"}, .issuer = t.ca});
    t.client = test_cert_new(&(struct test_cert_spec){.cn = "sidecar", .issuer = t.ca});
    t.ca_file = file_of(t.ca->cert_pem);
    t.certificate = file_of(t.client->cert_pem);
    t.private_key = file_of(t.client->key_pem);
    return t;
}

static void tls_scene_dispose(struct tls_scene *t)
{
    test_cert_free(t->ca);
    test_cert_free(t->server);
    test_cert_free(t->client);
    remove_file(t->ca_file);
    remove_file(t->certificate);
    remove_file(t->private_key);
}
CR_DEFINE_DISPOSE(tls_scene, struct tls_scene, tls_scene_dispose)

static void https_is_verified_and_may_present_a_certificate(void **state)
{
    static char right[] = "admin.example", wrong[] = "other.example";
    (void)state;
    CR_CLEANUP(tls_scene) struct tls_scene t = tls_scene_new();
    const struct {
        char *ca_file, *certificate, *server_name;
        const char *words; /* NULL: success */
    } cases[] = {
        {t.ca_file, t.certificate, NULL, NULL},           {t.ca_file, t.certificate, right, NULL},
        {t.ca_file, t.certificate, wrong, "not trusted"}, {NULL, t.certificate, NULL, "not trusted"},
        {t.ca_file, NULL, NULL, "https://127.0.0.1"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(admin) struct admin a = {.status = 200};
        const struct test_server_options options = {.serve = serve, .arg = &a, .cert = t.server, .client_ca = t.ca};
        CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
        cr_autofree char *url = test_server_url(server, "/load");
        CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
        s.spec.http.ca_file = cases[i].ca_file;
        s.spec.http.server_name = cases[i].server_name;
        s.spec.http.certificate_file = cases[i].certificate;
        s.spec.http.private_key_file = cases[i].certificate ? t.private_key : NULL;
        if (cases[i].words)
            scene_must_fail(&s, CR_ERR_TRANSIENT, cases[i].words);
        else
            scene_must_pull(&s);
        test_server_free(cr_steal(&server));
        if (!cases[i].words)
            assert_string_equal(a.client, "sidecar");
    }
}

static void what_cannot_be_sent_is_said(void **state)
{
    static char missing[] = "/tmp/certroll-http/of/nobody", url[] = "http://127.0.0.1:1/";
    (void)state;
    CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
    scene_must_fail(&s, CR_ERR_TRANSIENT, "POST http://127.0.0.1:1: ");
    char *headers[] = {(char[]){"No header"}};
    s.spec.http.headers = (struct cr_strvec){.items = headers, .len = 1};
    scene_must_fail(&s, CR_ERR_INVALID, "header 1 is not of the form");
    s.spec.http.body_file = missing;
    scene_must_fail(&s, CR_ERR_NOT_FOUND, missing);
}

static void it_has_its_time_and_can_be_cancelled(void **state)
{
    (void)state;
    const struct test_server_options options = {.serve = test_serve_silence};
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&options);
    cr_autofree char *url = test_server_url(server, "/load");
    CR_CLEANUP(scene) struct trigger_scene s = http_scene(url);
    s.spec.timeout_ms = 200;
    scene_must_fail(&s, CR_ERR_TRANSIENT, "no answer within");
    cr_autofd int cancel = eventfd(1, EFD_CLOEXEC);
    s.spec.timeout_ms = PATIENCE_MS;
    assert_false(cr_trigger_pull(&s.spec, &s.material, &s.reading, 0, cancel, &s.err));
    assert_int_equal(s.err.kind, CR_ERR_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_sent_as_it_is_configured),
        cmocka_unit_test(a_file_is_sent_as_it_is),
        cmocka_unit_test(the_status_decides),
        cmocka_unit_test(https_is_verified_and_may_present_a_certificate),
        cmocka_unit_test(what_cannot_be_sent_is_said),
        cmocka_unit_test(it_has_its_time_and_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
