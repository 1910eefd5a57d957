#include "net/probe_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void an_answer_gives_its_status_as_soon_as_it_can(void **state)
{
    static const struct {
        const char *rule;
        const char *data;
        bool complete;
        bool has_data;
        int status;
        bool of_certificate;
    } cases[] = {
        {"nothing came", "", false, false, 0, false},
        {"it may become HTTP", "HTT", false, true, 0, false},
        {"it may become a status", "HTTP/1.1 20", false, true, 0, false},
        {"HTTP/1.1", "HTTP/1.1 200", true, true, 200, false},
        {"HTTP/1.0", "HTTP/1.0 401 Unauthorized\r\n", true, true, 401, false},
        {"Envoy takes no HTTP/1.0", "HTTP/1.1 426 Upgrade Required\r\n", true, true, 426, false},
        {"what is refused may be the certificate", "HTTP/1.1 400 Bad Request\r\n\r\n", false, true, 400, false},
        {"as nginx says it",
         "HTTP/1.1 400 Bad Request\r\n\r\n<center><h1>400 Bad Request</h1></center>\r\n"
         "<center>The SSL certificate error</center>\r\n",
         true, true, 400, true},
        {"a page about it is no refusal", "HTTP/1.1 200 OK\r\n\r\nThe SSL certificate error", true, true, 200, false},
        {"Redis", "-ERR unknown command 'OPTIONS'", true, true, 0, false},
        {"a frame of HTTP/2, without its zeros", "\x12\x04", true, true, 0, false},
        {"a status that is no number", "HTTP/1.1 2x0 OK", true, true, 0, false},
        {"HTTP/1 in name only", "HTTP/1.1\t\t\t\t", true, true, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_probe_answer answer = {.alert = -1};
        bool complete = cr_probe_answer_read(cases[i].data, strlen(cases[i].data), &answer);
        if (complete != cases[i].complete || answer.data != cases[i].has_data || answer.status != cases[i].status ||
            answer.of_certificate != cases[i].of_certificate || answer.alert != -1)
            fail_msg("%s: complete %d, data %d, status %d, of the certificate %d", cases[i].rule, complete, answer.data,
                     answer.status, answer.of_certificate);
    }
}

/* Bytes come in any cut: what was said of a beginning is never taken back, but for "not yet". */
static void more_bytes_only_add(void **state)
{
    static const char text[] =
        "HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n<center>The SSL certificate error</center>";
    (void)state;
    struct cr_probe_answer answer = {.alert = -1};
    for (size_t len = 0; len < sizeof text - 1; len++) {
        bool complete = cr_probe_answer_read(text, len, &answer);
        assert_int_equal(complete, answer.of_certificate);
        assert_int_equal(answer.status, len >= strlen("HTTP/1.1 400") ? 400 : 0);
    }
    assert_true(answer.of_certificate);
}

static void a_request_is_inert(void **state)
{
    (void)state;
    size_t len = 0;
    unsigned alpn_len = 0;
    const char *bytes = cr_probe_request_bytes(CR_PROBE_HTTP1, &len);
    assert_int_equal(len, strlen(bytes));
    assert_ptr_equal(strstr(bytes, "OPTIONS / HTTP/1.0\r\n"), bytes);
    assert_null(strstr(bytes, "Host:")); /* Redis logs an attack */
    assert_string_equal(bytes + len - 4, "\r\n\r\n");
    assert_null(cr_probe_request_alpn(CR_PROBE_HTTP1, &alpn_len));
    assert_null(cr_probe_request_alpn(CR_PROBE_NO_REQUEST, &alpn_len));

    bytes = cr_probe_request_bytes(CR_PROBE_HTTP2, &len);
    assert_int_equal(len, 24 + 9); /* the preface, and the head of a frame that is empty */
    assert_memory_equal(bytes + 24, "\0\0\0\4\0\0\0\0\0", 9);
    assert_memory_equal(cr_probe_request_alpn(CR_PROBE_HTTP2, &alpn_len), "\2h2", 3);
    assert_int_equal(alpn_len, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_gives_its_status_as_soon_as_it_can),
        cmocka_unit_test(more_bytes_only_add),
        cmocka_unit_test(a_request_is_inert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
