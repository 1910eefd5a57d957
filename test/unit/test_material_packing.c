#include "pki/material_packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"

/* All different, so that no two are mixed up. */
static void digest(int number, char out[CR_SHA256_HEX])
{
    cr_sha256_hex(&number, sizeof number, out);
}

static struct cr_ca ca(int number)
{
    struct cr_ca made = {.serial = "7", .not_before_ms = -number, .not_after_ms = 1795300000000 + number};
    digest(number, made.fingerprint);
    digest(number + 1, made.identity);
    digest(number + 2, made.subject);
    return made;
}

static void fill_leaf(struct cr_material *m)
{
    m->has_leaf = true;
    digest(1, m->leaf);
    digest(2, m->chain);
    digest(3, m->key);
    strcpy(m->serial, "1234567890abcdef1234567890abcdef12345678");
    strcpy(m->key_type, "ECDSA-P256");
    digest(4, m->issuer);
    m->not_before_ms = 1795300000001;
    m->not_after_ms = 1795300000002;
    cr_strvec_add(&m->anchors, m->leaf);
    cr_strvec_add(&m->anchors, m->issuer);
    cr_strvec_add(&m->names, "web.example");
    cr_strvec_add(&m->names, "*.example");
}

static void fill_trust(struct cr_material *m)
{
    m->trust_len = 2;
    m->trust = cr_calloc(2, sizeof *m->trust);
    m->trust[0] = ca(10);
    m->trust[1] = ca(20);
    m->trust[1].subject[CR_SUBJECT_REMEMBERED] = '\0'; /* as it is read from status */
}

static void fill_opaque(struct cr_material *m)
{
    digest(5, m->opaque + CR_OPAQUE_KEY_ID + 1);
    memcpy(m->opaque, "0123abcd:", CR_OPAQUE_KEY_ID + 1);
    cr_strvec_add(&m->opaque_keys, "hmac=0123456789abcdef");
    cr_strvec_add(&m->opaque_keys, "unread=");
}

static void fill_summary(struct cr_material *m)
{
    m->trust_summary.count = 300;
    digest(6, m->trust_summary.digest);
    m->trust_summary.not_after_ms = 1795300000003;
}

static bool same(const struct cr_material *a, const struct cr_material *b)
{
    bool same_trust = a->trust_len == b->trust_len;
    for (size_t i = 0; same_trust && i < a->trust_len; i++) {
        const struct cr_ca *x = &a->trust[i];
        const struct cr_ca *y = &b->trust[i];
        same_trust = strcmp(x->fingerprint, y->fingerprint) == 0 && strcmp(x->identity, y->identity) == 0 &&
                     strcmp(x->subject, y->subject) == 0 && strcmp(x->serial, y->serial) == 0 &&
                     x->not_before_ms == y->not_before_ms && x->not_after_ms == y->not_after_ms;
    }
    return same_trust && a->has_leaf == b->has_leaf && strcmp(a->leaf, b->leaf) == 0 &&
           strcmp(a->chain, b->chain) == 0 && strcmp(a->key, b->key) == 0 && strcmp(a->serial, b->serial) == 0 &&
           strcmp(a->key_type, b->key_type) == 0 && strcmp(a->issuer, b->issuer) == 0 &&
           cr_strvec_equal(&a->anchors, &b->anchors) && a->not_before_ms == b->not_before_ms &&
           a->not_after_ms == b->not_after_ms && cr_strvec_equal(&a->names, &b->names) &&
           a->trust_summary.count == b->trust_summary.count &&
           strcmp(a->trust_summary.digest, b->trust_summary.digest) == 0 &&
           a->trust_summary.not_after_ms == b->trust_summary.not_after_ms && strcmp(a->opaque, b->opaque) == 0 &&
           cr_strvec_equal(&a->opaque_keys, &b->opaque_keys);
}

typedef void (*fill_fn)(struct cr_material *m);

static void material_comes_back_with_each_of_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        fill_fn fill[4];
    } cases[] = {
        {"none", {0}},
        {"a leaf", {fill_leaf}},
        {"trust", {fill_trust}},
        {"trust that was too long", {fill_summary}},
        {"a leaf and a summary", {fill_leaf, fill_summary}},
        {"opaque", {fill_opaque}},
        {"all", {fill_leaf, fill_trust, fill_summary, fill_opaque}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CR_CLEANUP(cr_material) struct cr_material written = {0};
        CR_CLEANUP(cr_material) struct cr_material read = {0};
        CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
        for (size_t part = 0; part < 4 && cases[i].fill[part]; part++)
            cases[i].fill[part](&written);
        cr_material_pack(&packed, &written);
        struct cr_unpacking left = cr_unpacking_of(packed.data, packed.len);
        cr_material_unpack(&left, &read);
        if (!same(&written, &read) || !cr_unpacking_at_end(&left))
            fail_msg("%s does not come back", cases[i].what);
    }
}

static void a_leaf_takes_less_than_half_of_its_struct(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    CR_CLEANUP(cr_buf) struct cr_buf packed = {0};
    fill_leaf(&m);
    cr_material_pack(&packed, &m);
    assert_in_range(packed.len, 1, sizeof m / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(material_comes_back_with_each_of_its_parts),
        cmocka_unit_test(a_leaf_takes_less_than_half_of_its_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
