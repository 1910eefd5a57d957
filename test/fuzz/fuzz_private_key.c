/* A private key in PEM: refused with words that have nothing of it, or written in one form, which is read as the same
 * key. */
#include "fuzz.h"

#include <string.h>

#include "pki/private_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cr_pem_input in = {(const char *)data, size};
    struct cr_error err = {0};
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_read(&in, &err);
    if (!key) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !strpbrk(err.text, "\r\n"));
        return 0;
    }
    CR_CLEANUP(cr_buf) struct cr_buf pem = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf again = {.secret = true};
    require(cr_private_key_write(key, &pem, &err));
    const struct cr_pem_input written = {cr_buf_text(&pem), pem.len};
    CR_CLEANUP(cr_private_key) struct cr_private_key *same = cr_private_key_read(&written, &err);
    require(same && cr_private_key_write(same, &again, &err));
    require(again.len == pem.len && memcmp(again.data, pem.data, pem.len) == 0);
    return 0;
}
