/* Entries of a Secret, divided by NUL bytes: certificate, key and trust, the rest is opaque. Material is whole or there
 * is a problem with words. */
#include "fuzz.h"

#include <string.h>

#include "pki/material.h"

static struct cr_pem_input next_entry(const char **at, const char *end)
{
    if (*at == end)
        return (struct cr_pem_input){0};
    const char *stop = memchr(*at, '\0', (size_t)(end - *at));
    struct cr_pem_input in = {*at, (size_t)((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : end;
    return in;
}

static void check_whole(const struct cr_material *m)
{
    require(m->has_leaf || m->trust_len || m->opaque[0]);
    require(cr_opaque_is_valid(m->opaque) && m->opaque_keys.len <= CR_OPAQUE_KEYS_MAX);
    require(m->has_leaf == (strlen(m->leaf) == 64) && m->has_leaf == (strlen(m->issuer) == 64));
    require(m->has_leaf == (m->key_type[0] != '\0'));
    require(m->anchors.len <= m->trust_len);
    struct cr_material copy = {0};
    cr_material_copy(&copy, m);
    cr_material_dispose(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_ms = INT64_C(1795241421000); /* 2026-11-21; the seeds are valid for long */
    const char *at = (const char *)data;
    const char *end = at + size;
    struct cr_material_input in = {0};
    in.certificate = next_entry(&at, end);
    in.private_key = next_entry(&at, end);
    in.trust = next_entry(&at, end);
    struct cr_opaque_entry opaque[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    for (struct cr_pem_input rest; in.opaque_len < 4 && (rest = next_entry(&at, end)).data; in.opaque_len++)
        opaque[in.opaque_len] = (struct cr_opaque_entry){names[in.opaque_len], rest.data, rest.len};
    in.opaque = opaque;
    in.opaque_key = size % 2 ? "0123456789abcdef" : NULL;
    in.opaque_key_len = size % 2 ? 16 : 0;
    struct cr_error err = {0};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    if (cr_material_parse(&in, now_ms, &m, &problem, &err)) {
        require(problem == CR_MATERIAL_OK);
        check_whole(&m);
    } else {
        require(problem != CR_MATERIAL_OK && err.kind == CR_ERR_INVALID && err.text[0]);
        require(!strpbrk(err.text, "\r\n") && !m.trust && !m.has_leaf);
    }
    return 0;
}
