#include "kube/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

static void kind_and_text_come_from_the_status(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        int http;
        int header_ms;
        const char *body;
        enum cr_error_kind kind;
        const char *text;
        int retry_ms;
    } cases[] = {
        {"not found", 404, 0,
         "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"pods \\\"x\\\" not found\",\"code\":404}",
         CR_ERR_NOT_FOUND, "GET /p: pods \"x\" not found", 0},
        {"the reason wins over the code", 500, 0, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"m\"}",
         CR_ERR_CONFLICT, "GET /p: m", 0},
        {"already exists is a conflict", 409, 0, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"m\"}",
         CR_ERR_CONFLICT, "GET /p: m", 0},
        {"expired", 410, 0, "{\"kind\":\"Status\",\"reason\":\"Expired\",\"message\":\"too old\"}", CR_ERR_GONE,
         "GET /p: too old", 0},
        {"forbidden", 403, 0, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}", CR_ERR_FORBIDDEN,
         "GET /p: no", 0},
        {"invalid", 422, 0, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"m\"}", CR_ERR_INVALID,
         "GET /p: m", 0},
        {"a uid that differs is a failed precondition", 422, 0,
         "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":"
         "\"FieldValueInvalid\",\"field\":\"metadata.uid\"}]}}",
         CR_ERR_CONFLICT, "GET /p: m", 0},
        {"a reason that is not known: the code", 409, 0, "{\"kind\":\"Status\",\"reason\":\"New\",\"message\":\"m\"}",
         CR_ERR_CONFLICT, "GET /p: m", 0},
        {"no message: the code", 401, 0, "{\"kind\":\"Status\",\"reason\":\"Unauthorized\"}", CR_ERR_UNAUTHORIZED,
         "GET /p: HTTP 401", 0},
        {"an eviction says which budget", 429, 0,
         "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"Cannot evict.\",\"details\":{\"causes\":[{"
         "\"reason\":\"DisruptionBudget\",\"message\":\"The budget x needs 2.\"}]}}",
         CR_ERR_THROTTLED, "GET /p: Cannot evict. The budget x needs 2.", 0},
        {"retryAfterSeconds", 500, 0,
         "{\"kind\":\"Status\",\"reason\":\"ServerTimeout\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":3}}",
         CR_ERR_THROTTLED, "GET /p: m", 3000},
        {"the longer of header and body", 429, 5000,
         "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":1}}", CR_ERR_THROTTLED, "GET /p: m",
         5000},
        {"no pause of days", 503, 0,
         "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":99999999}}", CR_ERR_THROTTLED,
         "GET /p: m", 3600 * 1000},
        {"5xx without Retry-After", 503, 0, "{\"kind\":\"Status\",\"message\":\"m\"}", CR_ERR_TRANSIENT, "GET /p: m",
         0},
        {"503 with Retry-After", 503, 2000, "", CR_ERR_THROTTLED, "GET /p: HTTP 503", 2000},
        {"a proxy's own page: its first line", 502, 0, "<html>Bad\x01 Gateway\nmore", CR_ERR_TRANSIENT,
         "GET /p: HTTP 502: <html>Bad Gateway", 0},
        {"unknown group", 404, 0, "404 page not found\n", CR_ERR_NOT_FOUND, "GET /p: HTTP 404: 404 page not found", 0},
        {"JSON of another kind", 400, 0, "{\"kind\":\"Pod\"}", CR_ERR_INVALID, "GET /p: HTTP 400: {\"kind\":\"Pod\"}",
         0},
        {"broken Status", 408, 0, "{\"kind\":\"Status\"", CR_ERR_TRANSIENT, "GET /p: HTTP 408: {\"kind\":\"Status\"",
         0},
        {"a redirect is no answer", 302, 0, "", CR_ERR_TRANSIENT, "GET /p: HTTP 302", 0},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        assert_false(cr_status_from_response("GET /p", cases[i].http, cases[i].header_ms, cases[i].body,
                                             strlen(cases[i].body), &err));
        if (err.kind != cases[i].kind || strcmp(err.text, cases[i].text) != 0 ||
            err.retry_after_ms != cases[i].retry_ms)
            fail_msg("%s: %s, '%s', retry after %d", cases[i].rule, cr_error_kind_name(err.kind), err.text,
                     err.retry_after_ms);
    }
    assert_false(cr_status_from_response("GET /p", 500, 0, NULL, 0, NULL));
}

static void a_frame_carries_its_code(void **state)
{
    (void)state;
    static const struct {
        const char *frame;
        enum cr_error_kind kind;
    } cases[] = {
        {"{\"code\":410,\"message\":\"too old resource version\"}", CR_ERR_GONE},
        {"{\"code\":410,\"reason\":\"Expired\"}", CR_ERR_GONE},
        {"{\"code\":500,\"reason\":\"InternalError\"}", CR_ERR_TRANSIENT},
        {"{}", CR_ERR_TRANSIENT},
        {"{\"code\":-5}", CR_ERR_TRANSIENT},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_json) struct cr_json *status = cr_json_parse(cases[i].frame, strlen(cases[i].frame), NULL);
        assert_false(cr_status_from_object("watch", status, &err));
        assert_int_equal(err.kind, cases[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kind_and_text_come_from_the_status),
        cmocka_unit_test(a_frame_carries_its_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
