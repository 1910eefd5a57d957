/* What a pod says are its certificates: read within bounds and in one form, or refused with words that hold nothing of
 * it. */
#include "fuzz.h"

#include <string.h>

#include "evidence/certs_page.h"

static size_t check_serials(const struct cr_strvec *serials)
{
    for (size_t i = 0; i < serials->len; i++) {
        const char *serial = serials->items[i];
        size_t len = strlen(serial);
        require(len && len < CR_SERIAL_HEX && strspn(serial, "0123456789abcdef") == len);
        require(serial[0] != '0' || len == 1);
    }
    return serials->len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting seen = {0};
    bool read = cr_certs_page_read((const char *)data, size, &seen, &err);
    size_t serials = 0;
    require(read == seen.page_read && read == (err.text[0] == '\0') && (read || !seen.contexts_len));
    require(seen.contexts_len <= CR_CERTS_CONTEXTS_MAX);
    for (size_t i = 0; i < seen.contexts_len; i++) {
        const struct cr_certs_context *context = &seen.contexts[i];
        serials += check_serials(&context->cas) + check_serials(&context->leaves);
        require(!context->ca_path || (context->ca_path[0] == '/' && strlen(context->ca_path) <= CR_CERTS_PATH_MAX));
    }
    require(serials <= CR_CERTS_SERIALS_MAX);
    return 0;
}
