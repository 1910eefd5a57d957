#include "sidecar/delivery_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "sidecar/record.h"
#include "support/inchild.h"
#include "support/testcerts.h"
#include "support/testserver.h"
#include "sys/file.h"

enum { PATIENCE_MS = 60 * 1000 };

struct scene {
    char folder[64];
    struct cr_sidecar_config config;
    struct cr_metrics *metrics;
    struct cr_sidecar_metrics registered;
    struct cr_delivery_worker_options options;
};

static void put(const struct scene *s, const char *name, const char *text)
{
    cr_autofree char *path = cr_asprintf("%s/%s", s->folder, name);
    cr_autofree char *beside = cr_asprintf("%s/%s.new", s->folder, name);
    FILE *f = fopen(beside, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(beside, path), 0);
}

static void put_cert(const struct scene *s, const struct test_cert *cert)
{
    put(s, "files/tls.key", cert->key_pem);
    put(s, "files/tls.crt", cert->cert_pem);
}

/* Where the material is. */
static char *files_of(const struct scene *s)
{
    return cr_asprintf("%s/files", s->folder);
}

/* further: of the material; each trigger leaves a line in the file "told". */
static void begin(struct scene *s, const char *further)
{
    struct cr_error err = {0};
    *s = (struct scene){.folder = "/tmp/certroll-delivery-worker-XXXXXX", .metrics = cr_metrics_new()};
    assert_non_null(mkdtemp(s->folder));
    cr_autofree char *files = files_of(s);
    assert_int_equal(mkdir(files, 0755), 0);
    cr_autofree char *text = cr_asprintf(
        "materials: [{name: web, certificate: %s/tls.crt, privateKey: %s/tls.key, outputs: [{type: PEM, path: "
        "%s/out.pem, parts: [certificate]}], triggers: [{type: Command, timeout: 5m, command: {argv: [/bin/sh, -c, "
        "\"echo told "
        ">> %s/told; %s\"]}}]}]",
        files, files, s->folder, s->folder, further);
    if (!cr_sidecar_config_parse(text, strlen(text), &s->config, &err))
        fail_msg("%s", err.text);
    cr_sidecar_metrics_register(&s->registered, s->metrics);
    s->options = (struct cr_delivery_worker_options){
        .material = &s->config.materials[0], .metrics = &s->registered, .state_folder = s->folder};
}

static void end(struct scene *s)
{
    cr_autofree char *command = cr_asprintf("rm -rf %s", s->folder);
    assert_int_equal(system(command), 0);
    cr_sidecar_config_dispose(&s->config);
    cr_metrics_free(s->metrics);
}

static struct cr_delivery_worker *start(const struct scene *s)
{
    struct cr_error err = {0};
    struct cr_delivery_worker *worker = cr_delivery_worker_start(&s->options, &err);
    if (!worker)
        fail_msg("%s", err.text);
    return worker;
}

static bool comes_to(struct cr_delivery_worker *worker, enum cr_delivery_state state, unsigned attempts,
                     struct cr_delivery *view)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    int64_t until = cr_clock_monotonic_ms() + PATIENCE_MS;
    for (;;) {
        cr_delivery_worker_view(worker, view);
        if (view->state == state && view->attempts == attempts)
            return true;
        if (cr_clock_monotonic_ms() > until)
            return false;
        nanosleep(&pause, NULL);
    }
}

static void wait_for(struct cr_delivery_worker *worker, enum cr_delivery_state state, unsigned attempts)
{
    struct cr_delivery view;
    if (!comes_to(worker, state, attempts, &view))
        fail_msg("still %s after %u attempts: %s", cr_delivery_state_name(view.state), view.attempts, view.words);
}

/* Lines of a file with this in them. */
static size_t count_lines(const struct scene *s, const char *name, const char *text)
{
    cr_autofree char *path = cr_asprintf("%s/%s", s->folder, name);
    char line[2048];
    size_t count = 0;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return count;
}

static size_t count_notified(const struct scene *s)
{
    return count_lines(s, "told", "");
}

static void it_follows_its_files_while_it_is_looked_at(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "");
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    CR_CLEANUP(test_cert) struct test_cert *b = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    put_cert(&s, a);
    struct cr_delivery_worker *worker = start(&s);
    wait_for(worker, CR_DELIVERY_DELIVERED, 0);
    put_cert(&s, b);
    wait_for(worker, CR_DELIVERY_DELIVERED, 1);
    put(&s, "files/tls.key", a->key_pem);
    wait_for(worker, CR_DELIVERY_REFUSED, 1);
    put_cert(&s, a);
    wait_for(worker, CR_DELIVERY_DELIVERED, 1);
    cr_delivery_worker_free(worker);
    assert_int_equal(count_notified(&s), 2);
    end(&s);
}

/* What a killed process leaves behind, as its record. */
static void it_knows_by_its_record_what_is_left_to_do(void **state)
{
    (void)state;
    struct scene s;
    struct cr_error err = {0};
    struct cr_delivery_digests other = {.leaf = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    begin(&s, "");
    memcpy(other.chain, other.leaf, sizeof other.chain);
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    put_cert(&s, a);
    assert_true(cr_record_write(s.folder, "web", &other, &err));
    static const unsigned attempts[] = {1, 0}; /* the second process has nothing to do */
    for (size_t i = 0; i < cr_array_len(attempts); i++) {
        struct cr_delivery_worker *worker = start(&s);
        wait_for(worker, CR_DELIVERY_DELIVERED, attempts[i]);
        cr_delivery_worker_free(worker);
    }
    assert_int_equal(count_notified(&s), 1);
    end(&s);
}

/* If the process is killed now, it is not known whether the program has it. */
static void its_record_says_nothing_while_it_notifies(void **state)
{
    (void)state;
    struct scene s;
    struct cr_delivery view;
    struct cr_delivery_digests record;
    begin(&s, "exit 1");
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    CR_CLEANUP(test_cert) struct test_cert *b = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    put_cert(&s, a);
    struct cr_delivery_worker *worker = start(&s);
    wait_for(worker, CR_DELIVERY_DELIVERED, 0);
    cr_delivery_worker_view(worker, &view);
    assert_true(cr_record_read(s.folder, "web", &record));
    assert_string_equal(record.leaf, view.delivered.leaf);
    put_cert(&s, b);
    wait_for(worker, CR_DELIVERY_FAILING, 1);
    cr_delivery_worker_free(worker);
    assert_true(cr_record_read(s.folder, "web", &record));
    assert_string_equal(record.leaf, "");
    end(&s);
}

/* An alert on it would not end. */
static void cas_alone_have_no_end_to_show(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "");
    CR_CLEANUP(test_cert) struct test_cert *ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    put(&s, "ca.crt", ca->cert_pem);
    cr_autofree char *trust = cr_asprintf("%s/ca.crt", s.folder);
    char name[] = "cas";
    const struct cr_sidecar_material material = {.name = name, .trust = trust};
    s.options.material = &material;
    struct cr_delivery_worker *worker = start(&s);
    wait_for(worker, CR_DELIVERY_DELIVERED, 0);
    cr_delivery_worker_free(worker);
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(s.metrics, &page);
    assert_non_null(strstr(cr_buf_text(&page), "certroll_sidecar_material_state{material=\"cas\""));
    assert_null(strstr(cr_buf_text(&page), "certroll_sidecar_not_after_timestamp_seconds{material=\"cas\""));
    end(&s);
}

static void a_record_that_is_not_one_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "- -", "- - -extra", "0123 - -\n", "gg gg gg\n"};
    struct scene s;
    struct cr_delivery_digests read;
    begin(&s, "");
    assert_false(cr_record_read(s.folder, "none", &read));
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        put(&s, "web.delivered", texts[i]);
        if (cr_record_read(s.folder, "web", &read))
            fail_msg("taken: '%s'", texts[i]);
    }
    put(&s, "web.delivered", "- - -\n");
    assert_true(cr_record_read(s.folder, "web", &read));
    assert_string_equal(read.leaf, "");
    end(&s);
}

static void it_ends_at_once_while_a_trigger_hangs(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "exec sleep 300");
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    CR_CLEANUP(test_cert) struct test_cert *b = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    put_cert(&s, a);
    struct cr_delivery_worker *worker = start(&s);
    wait_for(worker, CR_DELIVERY_DELIVERED, 0);
    put_cert(&s, b);
    while (!count_notified(&s))
        wait_for(worker, CR_DELIVERY_PENDING, 1);
    int64_t began = cr_clock_monotonic_ms();
    cr_delivery_worker_free(worker);
    assert_in_range(cr_clock_monotonic_ms() - began, 0, PATIENCE_MS);
    end(&s);
}

enum { OTHER_USER = 65532 };

/* What a part in a process of its own works with. */
struct part {
    struct scene s;
    struct test_cert *before, *after;
};

static void play_part(struct part *part, void (*run)(void *part))
{
    part->before = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    part->after = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    begin(&part->s, "");
    in_child(run, part);
}

static void end_part(struct part *part)
{
    end(&part->s);
    test_cert_free(part->before);
    test_cert_free(part->after);
}

/* Its owner, who is not root, may go through it and replace its files, and not read it. */
static void follow_through_a_closed_folder(void *arg)
{
    const struct part *part = arg;
    struct cr_delivery view;
    cr_autofree char *files = files_of(&part->s);
    if (getuid() == 0) {
        NEED(chown(part->s.folder, OTHER_USER, OTHER_USER) == 0 && chown(files, OTHER_USER, OTHER_USER) == 0);
        NEED(setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
    }
    NEED(chmod(files, 0311) == 0);
    put_cert(&part->s, part->before);
    struct cr_delivery_worker *worker = start(&part->s);
    NEED(comes_to(worker, CR_DELIVERY_DELIVERED, 0, &view));
    put_cert(&part->s, part->after);
    NEED(comes_to(worker, CR_DELIVERY_DELIVERED, 1, &view));
    cr_delivery_worker_free(worker);
    NEED(chmod(files, 0755) == 0); /* so that it can be removed */
}

static void a_folder_that_cannot_be_watched_holds_no_trigger(void **state)
{
    (void)state;
    struct part part;
    play_part(&part, follow_through_a_closed_folder);
    assert_int_equal(count_notified(&part.s), 1);
    end_part(&part);
}

static void log_to_file(const struct scene *s)
{
    cr_autofree char *path = cr_asprintf("%s/log", s->folder);
    cr_autofd int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    NEED(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
}

static void deliver_one_and_refuse_one(void *arg)
{
    const struct part *part = arg;
    struct cr_delivery view;
    log_to_file(&part->s);
    put_cert(&part->s, part->before);
    struct cr_delivery_worker *worker = start(&part->s);
    NEED(comes_to(worker, CR_DELIVERY_DELIVERED, 0, &view));
    put_cert(&part->s, part->after);
    NEED(comes_to(worker, CR_DELIVERY_DELIVERED, 1, &view));
    put(&part->s, "files/tls.key", part->before->key_pem);
    NEED(comes_to(worker, CR_DELIVERY_REFUSED, 1, &view));
    cr_delivery_worker_free(worker);
}

/* An object, as all others log it: who collects events reads its fields. */
static void its_log_has_events_of_what_it_did(void **state)
{
    (void)state;
    struct part part;
    play_part(&part, deliver_one_and_refuse_one);
    cr_autofree char *path = cr_asprintf("%s/log", part.s.folder);
    CR_CLEANUP(cr_buf) struct cr_buf log = CR_BUF_INIT(0);
    size_t events = 0;
    assert_true(cr_file_read_regular(path, 1024 * 1024, &log, NULL));
    cr_buf_puts(&log, "");
    char *rest = NULL;
    for (char *line = strtok_r(log.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        CR_CLEANUP(cr_json) struct cr_json *json = cr_json_parse(line, strlen(line), NULL);
        assert_non_null(json);
        events += cr_json_int_at(json, 0, "ocsf", "class_uid") == 5019;
    }
    assert_int_equal(events, 2);
    end_part(&part);
}

static bool forbid_inotify(void)
{
    FILE *most = unshare(CLONE_NEWUSER) == 0 ? fopen("/proc/sys/user/max_inotify_instances", "w") : NULL;
    bool written = most && fputs("0", most) >= 0;
    return most && fclose(most) == 0 && written;
}

static bool finds_other(struct cr_delivery_worker *worker, const char *leaf, struct cr_delivery *view)
{
    int64_t until = cr_clock_monotonic_ms() + PATIENCE_MS;
    do {
        usleep(5 * 1000);
        cr_delivery_worker_view(worker, view);
    } while (cr_streq(view->found.leaf, leaf) && cr_clock_monotonic_ms() < until);
    return !cr_streq(view->found.leaf, leaf);
}

/* The program cannot start, perhaps for want of the second pair. */
static void wait_for_a_program_without_inotify(void *arg)
{
    const struct part *part = arg;
    char loopback[] = "127.0.0.1";
    struct cr_proof_endpoint nobody = {.address = loopback, .port = 1};
    struct cr_sidecar_material material = *part->s.options.material;
    material.proof.endpoints = &nobody;
    material.proof.endpoints_len = 1;
    struct scene s = part->s;
    s.options.material = &material;
    struct cr_delivery first;
    struct cr_delivery second;
    if (!forbid_inotify()) {
        print_message("skipped: inotify cannot be forbidden in a user namespace: %s\n", strerror(errno));
        _exit(IN_CHILD_SKIP);
    }
    log_to_file(&s);
    put_cert(&s, part->before);
    struct cr_delivery_worker *worker = start(&s);
    NEED(finds_other(worker, "", &first));
    put_cert(&s, part->after);
    NEED(finds_other(worker, first.found.leaf, &second));
    cr_delivery_worker_free(worker);
}

static void without_inotify_files_are_read_again_also_before_the_program_runs(void **state)
{
    (void)state;
    struct part part;
    play_part(&part, wait_for_a_program_without_inotify);
    assert_int_equal(count_lines(&part.s, "log", "cannot be watched"), 1);
    end_part(&part);
}

/* So no key is kept while the program is looked at, however long that takes. */
static void the_files_are_read_again_for_a_trigger_after_a_look(void **state)
{
    (void)state;
    struct scene s;
    begin(&s, "");
    CR_CLEANUP(test_cert) struct test_cert *a = test_cert_new(&(struct test_cert_spec){.cn = "a"});
    CR_CLEANUP(test_cert) struct test_cert *b = test_cert_new(&(struct test_cert_spec){.cn = "b"});
    CR_CLEANUP(test_server) struct test_server *server = test_server_new(&(struct test_server_options){.cert = b});
    char loopback[] = "127.0.0.1";
    struct cr_proof_endpoint endpoint = {.address = loopback, .port = test_server_port(server)};
    struct cr_sidecar_material material = *s.options.material;
    material.proof.endpoints = &endpoint;
    material.proof.endpoints_len = 1;
    material.proof.timeout_ms = PATIENCE_MS;
    s.options.material = &material;
    put_cert(&s, a);
    struct cr_delivery_worker *worker = start(&s);
    wait_for(worker, CR_DELIVERY_PENDING, 1);
    while (!count_notified(&s))
        wait_for(worker, CR_DELIVERY_PENDING, 1);
    CR_CLEANUP(cr_buf) struct cr_buf page = CR_BUF_INIT(0);
    cr_metrics_write(s.metrics, &page);
    assert_non_null(
        strstr(cr_buf_text(&page), "certroll_sidecar_readings_total{material=\"web\",result=\"success\"} 2\n"));
    test_server_swap(server, a);
    wait_for(worker, CR_DELIVERY_DELIVERED, 1);
    cr_delivery_worker_free(worker);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_follows_its_files_while_it_is_looked_at),
        cmocka_unit_test(it_knows_by_its_record_what_is_left_to_do),
        cmocka_unit_test(its_record_says_nothing_while_it_notifies),
        cmocka_unit_test(cas_alone_have_no_end_to_show),
        cmocka_unit_test(a_record_that_is_not_one_is_none),
        cmocka_unit_test(it_ends_at_once_while_a_trigger_hangs),
        cmocka_unit_test(a_folder_that_cannot_be_watched_holds_no_trigger),
        cmocka_unit_test(the_files_are_read_again_for_a_trigger_after_a_look),
        cmocka_unit_test(its_log_has_events_of_what_it_did),
        cmocka_unit_test(without_inotify_files_are_read_again_also_before_the_program_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
