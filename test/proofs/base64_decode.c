/* Any text is decoded or refused without a step beyond it; of what is refused not a byte is handed over. */
#include "codec/base64.h"
#include "proof.h"

struct seen {
    size_t len;
    bool called;
};

static void see(void *arg, const void *bytes, size_t len)
{
    struct seen *seen = arg;
    require(__CPROVER_r_ok(bytes, len));
    seen->len += len;
    seen->called = true;
}

int main(void)
{
    size_t len = any_size(MAX);
    const char *text = any_bytes(len);
    struct seen seen = {0};
    struct cr_error err = {0};
    bool ok = cr_base64_decode_pieces(text, len, see, &seen, &err);
    require(ok == (err.kind == CR_ERR_NONE));
    require(ok || !seen.called);
    require(seen.len <= len / 4 * 3);
    return 0;
}
