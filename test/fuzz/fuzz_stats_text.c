/* What stands on a proxy's port may be anything: connections are counted within bounds, or it is refused; half an
 * answer is never a whole one. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "drain/envoy_listeners.h"
#include "drain/stats_text.h"

static void check_number(const char *text, size_t len)
{
    uint64_t open = 7;
    struct cr_error err = {0};
    bool ok = cr_stats_number(text, len, &open, &err);
    require(ok == (err.kind == CR_ERR_NONE) && (ok || open == 7));
}

static void check_listeners(const char *page)
{
    static const struct cr_strvec none;
    CR_CLEANUP(cr_strvec) struct cr_strvec out = {0};
    cr_envoy_listeners_left_out(page, &none, &out);
    for (size_t i = 0; i < out.len; i++)
        require(!strpbrk(out.items[i], ":\r\n"));
}

static void check_envoy(const char *text, size_t len)
{
    static const struct cr_strvec none;
    char *left_out[] = {(char[]){"a"}};
    const struct cr_strvec some = {.items = left_out, .len = 1};
    uint64_t open = 7;
    uint64_t less = 7;
    struct cr_error err = {0};
    bool ok = cr_stats_envoy(text, len, &none, &open, &err);
    require(ok == (err.kind == CR_ERR_NONE) && (ok || open == 7));
    if (!ok)
        return;
    require(cr_stats_envoy(text, len, &some, &less, NULL) && less <= open);
    require(!cr_stats_envoy(text, len - 1, &none, &open, NULL)); /* its last line is not ended */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_malloc(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_number(text, size);
    check_envoy(text, size);
    check_listeners(text);
    return 0;
}
