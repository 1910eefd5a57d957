#include "sidecar/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/testcerts.h"
#include "sys/file.h"

/* A folder with a material and its configuration. */
struct scene {
    char folder[64];
    struct test_cert *ca, *leaf;
    struct cr_sidecar_config config;
};

static char *path_in(const struct scene *s, const char *name)
{
    return cr_asprintf("%s/%s", s->folder, name);
}

static void put(const struct scene *s, const char *name, const char *text)
{
    cr_autofree char *path = path_in(s, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void get(const struct scene *s, const char *name, struct cr_buf *out)
{
    struct cr_error err = {0};
    cr_autofree char *path = path_in(s, name);
    if (!cr_file_read(path, 1 << 20, out, &err))
        fail_msg("%s", err.text);
}

static bool exists(const struct scene *s, const char *name)
{
    cr_autofree char *path = path_in(s, name);
    return access(path, F_OK) == 0;
}

static mode_t mode_of(const struct scene *s, const char *name)
{
    struct stat is;
    cr_autofree char *path = path_in(s, name);
    assert_int_equal(stat(path, &is), 0);
    return is.st_mode & 07777;
}

static ino_t inode_of(const struct scene *s, const char *name)
{
    struct stat is;
    cr_autofree char *path = path_in(s, name);
    assert_int_equal(stat(path, &is), 0);
    return is.st_ino;
}

/* Owned: each @ is the folder. */
static char *fill(const struct scene *s, const char *text)
{
    struct cr_buf out = CR_BUF_INIT(0);
    for (; *text; text++) {
        if (*text == '@')
            cr_buf_puts(&out, s->folder);
        else
            cr_buf_printf(&out, "%c", *text);
    }
    return cr_buf_steal(&out);
}

/* outputs: of one material with all parts. */
static void begin(struct scene *s, const char *outputs)
{
    struct cr_error err = {0};
    *s = (struct scene){.folder = "/tmp/certroll-output-XXXXXX"};
    assert_non_null(mkdtemp(s->folder));
    s->ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    s->leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf", .issuer = s->ca});
    put(s, "tls.crt", s->leaf->cert_pem);
    put(s, "tls.key", s->leaf->key_pem);
    put(s, "ca.crt", s->ca->cert_pem);
    put(s, "password", "changeit\n");
    cr_autofree char *filled = fill(s, outputs);
    cr_autofree char *text = cr_asprintf("materials: [{name: web, certificate: %s/tls.crt, privateKey: %s/tls.key, "
                                         "trust: %s/ca.crt, outputs: [%s]}]",
                                         s->folder, s->folder, s->folder, filled);
    if (!cr_sidecar_config_parse(text, strlen(text), &s->config, &err))
        fail_msg("%s", err.text);
}

static void end(struct scene *s)
{
    cr_autofree char *command = cr_asprintf("rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
    test_cert_free(s->leaf);
    test_cert_free(s->ca);
    cr_sidecar_config_dispose(&s->config);
}

static bool try_write(const struct scene *s, bool *changed, struct cr_error *err)
{
    enum cr_material_problem problem;
    CR_CLEANUP(cr_reading) struct cr_reading reading;
    struct cr_output_seed seed;
    if (!cr_reading_take(&s->config.materials[0], cr_clock_wall_ms(), &reading, &problem, err))
        fail_msg("the test's own material: %s", err->text);
    cr_output_seed(&reading, &seed);
    *changed = false;
    return cr_outputs_write(&s->config.materials[0], &reading, &seed, changed, err);
}

/* Whether a file that was there was replaced. */
static bool write_ok(const struct scene *s)
{
    bool changed = false;
    struct cr_error err = {0};
    if (!try_write(s, &changed, &err))
        fail_msg("%s", err.text);
    return changed;
}

static void renew(struct scene *s)
{
    test_cert_free(s->leaf);
    s->leaf = test_cert_new(&(struct test_cert_spec){.cn = "leaf", .issuer = s->ca});
    put(s, "tls.crt", s->leaf->cert_pem);
    put(s, "tls.key", s->leaf->key_pem);
}

static void the_parts_stand_in_their_order(void **state)
{
    (void)state;
    struct scene s;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    begin(&s, "{type: PEM, path: @/web.pem, parts: [trust, privateKey, certificate]}");
    write_ok(&s);
    get(&s, "web.pem", &text);
    cr_autofree char *expected = test_concat(s.leaf->cert_pem, s.leaf->key_pem, s.ca->cert_pem, NULL);
    assert_string_equal(cr_buf_text(&text), expected);
    assert_int_equal(mode_of(&s, "web.pem"), 0400);
    end(&s);
}

static void blocks_are_never_joined(void **state)
{
    (void)state;
    struct scene s;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    begin(&s, "{type: PEM, path: @/web.pem, parts: [privateKey, certificate]}");
    s.leaf->cert_pem[strlen(s.leaf->cert_pem) - 1] = '\0';
    put(&s, "tls.crt", s.leaf->cert_pem);
    write_ok(&s);
    get(&s, "web.pem", &text);
    assert_null(strstr(cr_buf_text(&text), "----------"));
    end(&s);
}

static void what_is_as_it_should_be_is_left_alone(void **state)
{
    (void)state;
    static const char *const outputs[] = {
        "{type: PEM, path: @/out, parts: [privateKey, certificate], mode: \"0440\"}",
        "{type: Keystore, path: @/out, passwordFile: @/password}",
        "{type: Truststore, path: @/out, passwordFile: @/password, mode: \"0644\"}",
    };
    for (size_t i = 0; i < cr_array_len(outputs); i++) {
        struct scene s;
        begin(&s, outputs[i]);
        assert_false(write_ok(&s)); /* there was none that a program might have read */
        ino_t first = inode_of(&s, "out");
        assert_false(write_ok(&s));
        assert_int_equal(inode_of(&s, "out"), first);
        renew(&s);
        assert_true(write_ok(&s));
        assert_false(exists(&s, ".out.certroll"));
        end(&s);
    }
}

static void another_password_or_mode_or_content_is_a_change(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "{type: Keystore, path: @/out, passwordFile: @/password}");
    write_ok(&s);
    put(&s, "password", "other");
    assert_true(write_ok(&s));
    cr_autofree char *path = path_in(&s, "out");
    assert_int_equal(chmod(path, 0444), 0);
    assert_true(write_ok(&s));
    assert_int_equal(mode_of(&s, "out"), 0400);
    assert_int_equal(unlink(path), 0);
    put(&s, "out", "half");
    assert_true(write_ok(&s));
    end(&s);
}

static void a_link_is_replaced_not_followed(void **state)
{
    (void)state;
    struct scene s;
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    begin(&s, "{type: PEM, path: @/out, parts: [trust]}");
    put(&s, "elsewhere", "precious");
    cr_autofree char *from = path_in(&s, "elsewhere");
    cr_autofree char *to = path_in(&s, "out");
    cr_autofree char *beside = path_in(&s, ".out.certroll");
    assert_int_equal(symlink(from, to), 0);
    assert_int_equal(symlink(from, beside), 0);
    assert_true(write_ok(&s));
    get(&s, "elsewhere", &text);
    assert_string_equal(cr_buf_text(&text), "precious");
    assert_false(exists(&s, ".out.certroll"));
    end(&s);
}

static void what_a_killed_process_left_is_removed(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "{type: PEM, path: @/out, parts: [privateKey]}");
    put(&s, ".out.certroll", "-----BEGIN PRIV");
    write_ok(&s);
    assert_false(exists(&s, ".out.certroll"));
    put(&s, ".out.certroll", "-----BEGIN PRIV");
    assert_false(write_ok(&s));
    assert_false(exists(&s, ".out.certroll"));
    end(&s);
}

/* RLIMIT_FSIZE stops a write in its middle, as a full disk does. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    struct scene s;
    struct rlimit before;
    CR_CLEANUP(cr_buf) struct cr_buf old = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf now = CR_BUF_INIT(0);
    begin(&s, "{type: PEM, path: @/out, parts: [certificate, privateKey, trust]}");
    write_ok(&s);
    get(&s, "out", &old);
    renew(&s);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {100, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool changed = false;
    struct cr_error err = {0};
    bool written = try_write(&s, &changed, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(written);
    assert_false(changed);
    assert_int_equal(err.kind, CR_ERR_TRANSIENT);
    get(&s, "out", &now);
    assert_string_equal(cr_buf_text(&now), cr_buf_text(&old));
    assert_false(exists(&s, ".out.certroll"));
    assert_true(write_ok(&s));
    end(&s);
}

/* A program that begins now would find a certificate without its key. */
static void one_that_cannot_be_written_holds_the_others_back(void **state)
{
    (void)state;
    struct scene s;
    bool changed = false;
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf old = CR_BUF_INIT(0);
    CR_CLEANUP(cr_buf) struct cr_buf now = CR_BUF_INIT(0);
    begin(&s, "{type: PEM, path: @/crt, parts: [certificate]}, {type: PEM, path: @/folder/key, parts: [privateKey]}");
    cr_autofree char *folder = path_in(&s, "folder");
    cr_autofree char *away = path_in(&s, "away");
    assert_int_equal(mkdir(folder, 0700), 0);
    write_ok(&s);
    get(&s, "crt", &old);
    renew(&s);
    assert_int_equal(rename(folder, away), 0);
    assert_false(try_write(&s, &changed, &err));
    assert_false(changed);
    assert_non_null(strstr(err.text, "/folder/key: its folder is not there"));
    get(&s, "crt", &now);
    assert_string_equal(cr_buf_text(&now), cr_buf_text(&old));
    assert_false(exists(&s, ".crt.certroll"));
    assert_int_equal(rename(away, folder), 0);
    assert_true(write_ok(&s));
    end(&s);
}

static void what_cannot_be_written_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *output, *password;
        enum cr_error_kind kind;
        const char *words;
    } cases[] = {
        {"{type: PEM, path: @/none/out, parts: [trust]}", "a", CR_ERR_NOT_FOUND, "/none/out: its folder is not there"},
        {"{type: PEM, path: @/tls.crt/out, parts: [trust]}", "a", CR_ERR_NOT_FOUND, "its folder is not there"},
        {"{type: PEM, path: /proc/out, parts: [trust]}", "a", CR_ERR_NOT_FOUND, "output /proc/out"},
        {"{type: Truststore, path: @/out, passwordFile: @/none}", "a", CR_ERR_NOT_FOUND, "/none"},
        {"{type: Truststore, path: @/out, passwordFile: @/password}", "\n", CR_ERR_INVALID, "must be a password"},
        {"{type: Truststore, path: @/out, passwordFile: @/password}", "\xc3\xa4", CR_ERR_INVALID, "password"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct scene s;
        bool changed = false;
        struct cr_error err = {0};
        begin(&s, cases[i].output);
        put(&s, "password", cases[i].password);
        assert_false(try_write(&s, &changed, &err));
        assert_false(changed);
        if (err.kind != cases[i].kind || !strstr(err.text, cases[i].words))
            fail_msg("%s: %s: %s", cases[i].output, cr_error_kind_name(err.kind), err.text);
        end(&s);
    }
}

static bool keep_capabilities(uint32_t kept)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{.effective = kept, .permitted = kept}};
    return syscall(SYS_capset, &head, data) == 0;
}

/* 0: as it should be. words: of the refusal; NULL: it is written, and the second time found as it should be. */
static int write_with_capabilities(const struct scene *s, uint32_t kept, const char *words)
{
    bool changed = false;
    struct cr_error err = {0};
    if (!keep_capabilities(kept))
        return 2;
    bool good = try_write(s, &changed, &err);
    if (words)
        return !good && err.kind == CR_ERR_FORBIDDEN && strstr(err.text, words) && !exists(s, "out") ? 0 : 3;
    return good && try_write(s, &changed, &err) && !changed ? 0 : 4;
}

static void another_owner_takes_the_two_capabilities_of_the_documents(void **state)
{
    (void)state;
    static const struct {
        uint32_t kept;
        const char *words;
    } cases[] = {
        {0, "capability CHOWN"},
        {CAP_TO_MASK(CAP_CHOWN), "capability DAC_READ_SEARCH"},
        {CAP_TO_MASK(CAP_CHOWN) | CAP_TO_MASK(CAP_DAC_READ_SEARCH), NULL},
    };
    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct scene s;
        int status = 0;
        begin(&s, "{type: PEM, path: @/out, parts: [privateKey], owner: 12345, group: 12345, mode: \"0400\"}");
        pid_t pid = fork();
        if (pid == 0)
            _exit(write_with_capabilities(&s, cases[i].kept, cases[i].words));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_stand_in_their_order),
        cmocka_unit_test(blocks_are_never_joined),
        cmocka_unit_test(what_is_as_it_should_be_is_left_alone),
        cmocka_unit_test(another_password_or_mode_or_content_is_a_change),
        cmocka_unit_test(a_link_is_replaced_not_followed),
        cmocka_unit_test(what_a_killed_process_left_is_removed),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(one_that_cannot_be_written_holds_the_others_back),
        cmocka_unit_test(what_cannot_be_written_is_named),
        cmocka_unit_test(another_owner_takes_the_two_capabilities_of_the_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
