/* The URL of a drain in anybody's flags: refused with words, or where something listens that needs no name server, and
 * what fits into a request's line. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "drain/url.h"
#include "wire/address.h"

static void check_url(const char *text)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
    if (!cr_drain_url_parse(text, &url, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !url.address && !url.target);
        return;
    }
    struct cr_address address;
    require(cr_address_parse(url.address, &address, &err));
    require(url.target[0] == '/' && !strpbrk(url.target, " \r\n")); /* it becomes a part of a request's line */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    check_url(text);
    return 0;
}
