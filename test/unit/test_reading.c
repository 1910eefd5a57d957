#include "sidecar/reading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testcerts.h"

struct files {
    char folder[64];
    char *certificate, *private_key, *trust;
};

static void begin(struct files *f)
{
    *f = (struct files){.folder = "/tmp/certroll-reading-XXXXXX"};
    assert_non_null(mkdtemp(f->folder));
    f->certificate = cr_asprintf("%s/tls.crt", f->folder);
    f->private_key = cr_asprintf("%s/tls.key", f->folder);
    f->trust = cr_asprintf("%s/ca.crt", f->folder);
}

static void end(struct files *f)
{
    cr_autofree char *command = cr_asprintf("rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    free(f->certificate);
    free(f->private_key);
    free(f->trust);
}

/* text NULL: the file goes. */
static void put(const char *path, const char *text)
{
    remove(path);
    FILE *file = text ? fopen(path, "w") : NULL;
    if (!text)
        return;
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void digests_are_those_of_the_secret(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "l", .issuer = ca});
    put(f.certificate, leaf->cert_pem);
    put(f.private_key, leaf->key_pem);
    put(f.trust, ca->cert_pem);
    const struct cr_sidecar_material material = {
        .certificate = f.certificate, .private_key = f.private_key, .trust = f.trust};
    const struct cr_material_input input = {
        .certificate = {leaf->cert_pem, strlen(leaf->cert_pem)},
        .private_key = {leaf->key_pem, strlen(leaf->key_pem)},
        .trust = {ca->cert_pem, strlen(ca->cert_pem)},
        .names = {"tls.crt", "tls.key", "ca.crt"},
    };
    struct cr_error err = {0};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_reading) struct cr_reading reading;
    CR_CLEANUP(cr_material) struct cr_material secret;
    assert_true(cr_reading_take(&material, cr_clock_wall_ms(), &reading, &problem, &err));
    assert_true(cr_material_parse(&input, cr_clock_wall_ms(), &secret, &problem, &err));
    char one[CR_SHA256_HEX], other[CR_SHA256_HEX];
    cr_material_trust_digest(&reading.material, one);
    cr_material_trust_digest(&secret, other);
    assert_string_equal(one, other);
    assert_string_equal(reading.material.leaf, secret.leaf);
    assert_string_equal(reading.material.chain, secret.chain);
    assert_true(reading.private_key.secret);
    assert_string_equal(cr_buf_text(&reading.private_key), leaf->key_pem);
    end(&f);
}

static void what_cannot_be_used_is_refused_with_its_path(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    CR_CLEANUP(test_cert) struct test_cert *b = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    CR_CLEANUP(test_cert)
    struct test_cert *old = test_cert_new(&(struct test_cert_spec){.cn = "o", .from_s = -7200, .until_s = -3600});
    cr_autofree char *half = cr_strndup(a->cert_pem, strlen(a->cert_pem) / 2);
    const struct {
        const char *certificate, *key, *trust;
        enum cr_material_problem problem;
        enum cr_error_kind kind;
        const char *path;
    } cases[] = {
        {a->cert_pem, b->key_pem, b->cert_pem, CR_MATERIAL_KEY_MISMATCH, CR_ERR_INVALID, f.private_key},
        {half, a->key_pem, b->cert_pem, CR_MATERIAL_UNPARSABLE, CR_ERR_INVALID, f.certificate},
        {"", a->key_pem, b->cert_pem, CR_MATERIAL_EMPTY, CR_ERR_INVALID, f.certificate},
        {a->cert_pem, "", b->cert_pem, CR_MATERIAL_EMPTY, CR_ERR_INVALID, f.private_key},
        {a->cert_pem, a->key_pem, "", CR_MATERIAL_EMPTY, CR_ERR_INVALID, f.trust},
        {old->cert_pem, old->key_pem, b->cert_pem, CR_MATERIAL_EXPIRED, CR_ERR_INVALID, f.certificate},
        {a->cert_pem, NULL, b->cert_pem, CR_MATERIAL_OK, CR_ERR_NOT_FOUND, f.private_key},
        {a->cert_pem, a->key_pem, NULL, CR_MATERIAL_OK, CR_ERR_NOT_FOUND, f.trust},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        put(f.certificate, cases[i].certificate);
        put(f.private_key, cases[i].key);
        put(f.trust, cases[i].trust);
        const struct cr_sidecar_material material = {
            .certificate = f.certificate, .private_key = f.private_key, .trust = f.trust};
        struct cr_error err = {0};
        enum cr_material_problem problem;
        struct cr_reading reading;
        if (cr_reading_take(&material, cr_clock_wall_ms(), &reading, &problem, &err))
            fail_msg("case %zu was taken", i);
        if (problem != cases[i].problem || err.kind != cases[i].kind || !strstr(err.text, cases[i].path))
            fail_msg("case %zu: %s: %s: %s", i, cr_material_problem_name(problem), cr_error_kind_name(err.kind),
                     err.text);
        assert_null(strstr(err.text, "BEGIN"));
        assert_int_equal(reading.private_key.len, 0);
    }
    end(&f);
}

static void trust_alone_is_a_material(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    put(f.trust, ca->cert_pem);
    const struct cr_sidecar_material material = {.trust = f.trust};
    struct cr_error err = {0};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_reading) struct cr_reading reading;
    if (!cr_reading_take(&material, cr_clock_wall_ms(), &reading, &problem, &err))
        fail_msg("%s", err.text);
    assert_false(reading.material.has_leaf);
    assert_int_equal(reading.material.trust_len, 1);
    end(&f);
}

static void a_look_needs_no_texts(void **state)
{
    (void)state;
    struct files f;
    begin(&f);
    CR_CLEANUP(test_cert) struct test_cert *leaf = test_cert_new(&(struct test_cert_spec){.cn = "l"});
    put(f.certificate, leaf->cert_pem);
    put(f.private_key, leaf->key_pem);
    const struct cr_sidecar_material material = {.certificate = f.certificate, .private_key = f.private_key};
    enum cr_material_problem problem;
    CR_CLEANUP(cr_reading) struct cr_reading reading;
    assert_true(cr_reading_take(&material, cr_clock_wall_ms(), &reading, &problem, NULL));
    assert_true(cr_reading_has_texts(&reading));
    cr_reading_drop_texts(&reading);
    assert_false(cr_reading_has_texts(&reading));
    assert_null(reading.private_key.data);
    assert_true(reading.material.has_leaf);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_secret),
        cmocka_unit_test(what_cannot_be_used_is_refused_with_its_path),
        cmocka_unit_test(trust_alone_is_a_material),
        cmocka_unit_test(a_look_needs_no_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
