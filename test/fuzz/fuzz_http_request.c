/* However the network cuts a request's head, it is the same one. The first byte says how long the pieces are. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "wire/http_request.h"

static size_t play(struct cr_http_ask *ask, const char *data, size_t size, size_t piece)
{
    size_t taken = 0;
    cr_http_ask_init(ask);
    for (size_t at = 0; at < size && !ask->whole && !ask->refused; at += piece)
        taken += cr_http_ask_feed(ask, data + at, size - at < piece ? size - at : piece);
    require(!(ask->whole && ask->refused));
    require(!ask->refused == !ask->problem);
    require(!ask->whole || (*ask->method && ask->path));
    require(ask->text.len <= CR_HTTP_REQUEST_MAX);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct cr_http_ask whole;
    struct cr_http_ask pieces;
    const char *text = (const char *)data + 1;
    size_t taken = play(&whole, text, size - 1, size - 1);
    size_t in_pieces = play(&pieces, text, size - 1, (size_t)data[0] + 1);
    require(whole.whole == pieces.whole && whole.refused == pieces.refused);
    if (whole.whole) {
        require(taken == in_pieces && whole.last == pieces.last && whole.has_body == pieces.has_body);
        require(cr_streq(whole.method, pieces.method) && cr_streq(whole.path, pieces.path));
        require(cr_streq(whole.authorization, pieces.authorization));
    }
    cr_http_ask_dispose(&whole);
    cr_http_ask_dispose(&pieces);
    return 0;
}
