/* An answer of the API server that is none of success, or what a proxy says instead: an error with words, and a wait of
 * at most an hour. The first two bytes are the HTTP status. */
#include "fuzz.h"

#include <string.h>

#include "kube/status.h"

enum { HEADER_MS = 3000, LONGEST_MS = 3600 * 1000 };

static void check(const struct cr_error *err)
{
    require(err->kind != CR_ERR_NONE && strncmp(err->text, "GET /x: ", 8) == 0 && err->text[8]);
    require(err->retry_after_ms >= 0 && err->retry_after_ms <= LONGEST_MS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    int http_status = 300 + (data[0] << 8 | data[1]) % 300;
    const char *body = (const char *)data + 2;
    struct cr_error err = {0};
    require(!cr_status_from_response("GET /x", http_status, HEADER_MS, body, size - 2, &err));
    check(&err);
    require(err.retry_after_ms >= HEADER_MS);
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_parse(body, size - 2, NULL);
    if (!object)
        return 0;
    struct cr_error of_frame = {0};
    require(!cr_status_from_object("GET /x", object, &of_frame));
    check(&of_frame);
    return 0;
}
