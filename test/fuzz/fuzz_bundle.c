/* The bundle of now and the one before, divided by a NUL byte: refused with words, or one that has all that is current,
 * within its bounds; made of itself it is the same. */
#include "split.h"

#include "fuzz.h"

#include "pki/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_ms = INT64_C(1795241421000); /* 2026-11-21; the seeds are valid for long */
    struct split split = split_of(data, size);
    struct cr_bundle_input in = {.current = split_next(&split), .retain_previous = 1};
    const struct cr_pem_input previous = split_next(&split);
    const struct cr_pem_input chain = split_next(&split);
    const struct cr_bundle_leaf leaf = {.name = "leaf", .chain = chain};
    in.previous = &previous;
    in.previous_len = 1;
    in.leaves = &leaf;
    in.leaves_len = chain.len ? 1 : 0;
    struct cr_error err = {0};
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    if (!cr_bundle_make(&in, now_ms, &bundle, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0] && !strpbrk(err.text, "\r\n"));
        return 0;
    }
    require(bundle.len && bundle.len <= CR_BUNDLE_CAS_MAX && bundle.previous < bundle.len);
    require(strlen(bundle.pem) <= CR_BUNDLE_BYTES_MAX);
    const struct cr_bundle_input once_more = {.current = {bundle.pem, strlen(bundle.pem)}};
    CR_CLEANUP(cr_bundle) struct cr_bundle again = {0};
    require(cr_bundle_make(&once_more, now_ms, &again, &err));
    require(again.len == bundle.len && !again.previous && strcmp(again.pem, bundle.pem) == 0);
    return 0;
}
