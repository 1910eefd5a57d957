/* A CA's certificate with those above it, and its key, divided by a NUL byte: refused with words, or a CA that is valid
 * and whose own certificate is read again as the same. */
#include "split.h"

#include "fuzz.h"

#include "pki/authority.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_ms = INT64_C(1795241421000); /* 2026-11-21; the seeds are valid for long */
    struct split split = split_of(data, size);
    const struct cr_pem_input certificate = split_next(&split);
    const struct cr_pem_input key = split_next(&split);
    struct cr_error err = {0};
    CR_CLEANUP(cr_authority)
    struct cr_authority *authority = cr_authority_read(&certificate, &key, now_ms, &err);
    if (!authority) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !strpbrk(err.text, "\r\n"));
        return 0;
    }
    require(cr_authority_not_after_ms(authority) > now_ms);
    const char *pem = cr_authority_certificate(authority);
    const struct cr_pem_input own = {pem, strlen(pem)};
    CR_CLEANUP(cr_authority) struct cr_authority *again = cr_authority_read(&own, &key, now_ms, &err);
    require(again && strcmp(cr_authority_certificate(again), pem) == 0);
    require(cr_authority_not_after_ms(again) >= cr_authority_not_after_ms(authority));
    return 0;
}
