/* However the network cuts an answer, it is the same one. The first byte says how long the pieces are, the second what
 * was asked and how the connection ends. */
#include "fuzz.h"

#include <string.h>

#include "wire/http_parse.h"

enum { MAX_BODY = 512, TO_HEAD = 1, BROKEN = 2 };

struct outcome {
    bool ok;   /* of all that was fed */
    bool done; /* before the end of the connection */
    bool whole;
    int status;
    struct cr_buf body;
};

static struct outcome play(const char *data, size_t size, size_t piece, unsigned char how)
{
    struct cr_error err = {0};
    struct cr_http_parse parse;
    struct outcome out = {.ok = true, .body = CR_BUF_INIT(0)};
    cr_http_parse_init(&parse, how & TO_HEAD ? "HEAD" : "GET", MAX_BODY);
    for (size_t at = 0; out.ok && at < size; at += piece)
        out.ok = cr_http_parse_feed(&parse, data + at, size - at < piece ? size - at : piece, &out.body, &err);
    require(out.ok || err.kind == CR_ERR_INVALID);
    out.done = cr_http_parse_is_done(&parse);
    out.whole = out.ok && cr_http_parse_end(&parse, how & BROKEN, &err);
    out.status = parse.status;
    require(out.whole || err.text[0]);
    cr_http_parse_dispose(&parse);
    return out;
}

static void check(const struct outcome *out, unsigned char how)
{
    require(out->body.len <= MAX_BODY);
    require(!out->whole || (out->status >= 200 && out->status <= 999));
    require(!out->done || out->ok);
    require(!(how & BROKEN) || out->whole == out->done);
    require(!(how & TO_HEAD) || !out->body.len);
    require(out->status || !out->body.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const char *text = (const char *)data + 2;
    struct outcome whole = play(text, size - 2, size - 2, data[1]);
    struct outcome pieces = play(text, size - 2, (size_t)data[0] + 1, data[1]);
    check(&whole, data[1]);
    require(whole.ok == pieces.ok && whole.done == pieces.done && whole.whole == pieces.whole);
    require(whole.status == pieces.status);
    if (whole.ok) { /* else a piece that is too long is not taken at all */
        require(whole.body.len == pieces.body.len);
        require(!whole.body.len || memcmp(whole.body.data, pieces.body.data, whole.body.len) == 0);
    }
    cr_buf_dispose(&whole.body);
    cr_buf_dispose(&pieces.body);
    return 0;
}
