/* A bundle and a chain in PEM, divided by a NUL byte: the set has each CA once, what it writes is read again as the
 * same set, and a chain verifies against none that it does not have. */
#include "split.h"

#include "fuzz.h"

#include "base/alloc.h"
#include "pki/ca_set.h"

static void check_facts(const struct cr_ca_set *set)
{
    for (size_t i = 0; i < cr_ca_set_len(set); i++) {
        const struct cr_ca_facts *facts = cr_ca_set_facts(set, i);
        require(cr_ca_set_find(set, facts->fingerprint) == i && facts->subject);
        require(i == 0 || cr_ca_set_facts(set, i - 1)->not_before_ms >= facts->not_before_ms);
    }
}

/* Any order is a bundle of the same CAs. */
static void check_written(const struct cr_ca_set *set)
{
    struct cr_error err = {0};
    size_t len = cr_ca_set_len(set);
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *again = cr_ca_set_new();
    cr_autofree size_t *order = cr_calloc(len + 1, sizeof *order);
    cr_autofree bool *has = cr_calloc(len + 1, sizeof *has);
    for (size_t i = 0; i < len; i++)
        order[i] = len - 1 - i;
    if (!cr_ca_set_write(set, order, len, &text, &err)) {
        require(err.kind == CR_ERR_INVALID);
        return;
    }
    if (!len)
        return;
    const struct cr_pem_input in = {cr_buf_text(&text), text.len};
    require(cr_ca_set_compare(set, &in, has));
    for (size_t i = 0; i < len; i++)
        require(has[i]);
    require(cr_ca_set_add(again, &in, NULL, &err) && cr_ca_set_len(again) == len);
    require(cr_ca_set_add(again, &in, NULL, &err) && cr_ca_set_len(again) == len);
    cr_ca_set_sort(again);
    for (size_t i = 0; i < len; i++)
        require(strcmp(cr_ca_set_facts(set, i)->fingerprint, cr_ca_set_facts(again, i)->fingerprint) == 0);
}

static void check_chain(const struct cr_ca_set *set, const struct cr_pem_input *chain)
{
    const int64_t now_ms = INT64_C(1795241421000); /* 2026-11-21; the seeds are valid for long */
    struct cr_error err = {0};
    struct cr_chain_facts facts = {0};
    bool any = false;
    size_t len = cr_ca_set_len(set);
    cr_autofree bool *verifies = cr_calloc(len + 1, sizeof *verifies);
    if (!cr_ca_set_verify(set, chain, now_ms, &facts, verifies, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0]);
        return;
    }
    require(strlen(facts.fingerprint) == CR_SHA256_HEX - 1);
    for (size_t i = 0; i < len; i++)
        any = any || verifies[i];
    require(!any || facts.not_after_ms > now_ms);
    require(!any || cr_ca_set_knows_issuer(set, chain));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct split split = split_of(data, size);
    const struct cr_pem_input bundle = split_next(&split);
    const struct cr_pem_input chain = split_next(&split);
    struct cr_error err = {0};
    CR_CLEANUP(cr_ca_set) struct cr_ca_set *set = cr_ca_set_new();
    if (!cr_ca_set_add(set, &bundle, NULL, &err))
        require(err.kind == CR_ERR_INVALID && err.text[0] && cr_ca_set_len(set) == 0);
    char anchor[CR_SHA256_HEX] = "";
    if (chain.data && cr_ca_set_add_anchor(set, &chain, &bundle, anchor, &err))
        require(cr_ca_set_find(set, anchor) < cr_ca_set_len(set));
    cr_ca_set_sort(set);
    check_facts(set);
    check_written(set);
    if (chain.data)
        check_chain(set, &chain);
    return 0;
}
