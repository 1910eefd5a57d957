/* When and by whom Secrets are read. What reading one means is test_secret_view's: here it ends when the test lets it.
 */
#include "cluster/secret_reader.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "codec/json_text.h"
#include "support/yamltext.h"

enum { DEADLINE_MS = 20 * 1000, POLL_MS = 2, KIB = 1024, MIB = 1024 * KIB };

#define AUTO_SNAPSHOT CR_CLEANUP(cr_snapshot) struct cr_snapshot *

/* --- instead of secret_view.c --- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct cr_strvec begun; /* names of Secrets, in the order in which they were begun to be read */
    bool closed;            /* the thread that reads waits until it is open */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

struct cr_secret_views {
    char *name;
};

void cr_secret_views_free(struct cr_secret_views *views)
{
    if (views)
        free(views->name);
    free(views);
}

/* "open" in the name: that one is read at once. */
struct cr_secret_views *cr_secret_views_read(struct cr_secret_refs *refs, const struct cr_json *secret)
{
    (void)refs;
    const char *name = cr_json_string_at(secret, "metadata", "name");
    pthread_mutex_lock(&gate.lock);
    cr_strvec_add(&gate.begun, name);
    while (gate.closed && !strstr(name, "open"))
        pthread_cond_wait(&gate.change, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    struct cr_secret_views *views = cr_new(struct cr_secret_views);
    views->name = cr_strdup(name);
    return views;
}

struct cr_secret_view *cr_secret_view_find(const struct cr_secret_views *views, const struct cr_policy_secret *names)
{
    (void)names;
    struct cr_secret_view *view = views ? cr_new(struct cr_secret_view) : NULL;
    if (view)
        view->resource_version = cr_strdup(views->name);
    return view;
}

void cr_secret_view_free(struct cr_secret_view *view)
{
    if (view)
        free(view->resource_version);
    free(view);
}

void cr_secret_strip(struct cr_json *json)
{
    cr_json_free_secret(cr_json_take(json, "data"));
}

static void close_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = true;
    cr_strvec_dispose(&gate.begun);
    pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = false;
    pthread_cond_broadcast(&gate.change);
    pthread_mutex_unlock(&gate.lock);
}

static size_t count_begun(void)
{
    pthread_mutex_lock(&gate.lock);
    size_t len = gate.begun.len;
    pthread_mutex_unlock(&gate.lock);
    return len;
}

static void wait_for_begun(size_t len)
{
    int64_t end = cr_clock_monotonic_ms() + DEADLINE_MS;
    while (count_begun() < len) {
        if (cr_clock_monotonic_ms() > end)
            fail_msg("only %zu of %zu are read", count_begun(), len);
        usleep(POLL_MS * 1000);
    }
}

/* --- Secrets --- */

struct fixture {
    struct cr_secret_refs *refs;
    struct cr_secret_reader *reader;
};

static int begin(void **state)
{
    struct fixture *f = cr_new(struct fixture);
    f->refs = cr_secret_refs_new();
    f->reader = cr_secret_reader_new(f->refs);
    close_gate();
    *state = f;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    open_gate();
    cr_secret_reader_free(f->reader);
    cr_secret_refs_free(f->refs);
    cr_strvec_dispose(&gate.begun);
    free(f);
    return 0;
}

static void name_it(struct fixture *f, const char *ns, const char *name)
{
    cr_autofree char *text = cr_asprintf(
        "{apiVersion: certroll.dev/v1alpha1, kind: CertRotationPolicy,"
        " metadata: {name: p, namespace: %s, uid: pu, resourceVersion: \"1\"}, spec: {secrets: [{name: %s}],"
        " consumers: [{name: c, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}]}}",
        ns, name);
    CR_CLEANUP(cr_json) struct cr_json *json = test_yaml(text);
    struct cr_error err = {0};
    CR_CLEANUP(cr_policy) struct cr_policy *policy = cr_policy_decode(json, &err);
    if (!policy)
        fail_msg("%s", err.text);
    cr_secret_refs_add(f->refs, policy);
}

/* As a watch brings it; data has so many bytes. */
static struct cr_snapshot *bring(struct fixture *f, const char *ns, const char *name, size_t size)
{
    name_it(f, ns, name);
    cr_autofree char *text = cr_asprintf("{metadata: {name: %s, namespace: %s, resourceVersion: \"7\"}}", name, ns);
    struct cr_json *secret = test_yaml(text);
    cr_autofree char *data = cr_malloc(size + 1);
    memset(data, 'A', size);
    data[size] = '\0';
    cr_json_set(secret, "data", cr_json_new_text(data, size));
    struct cr_snapshot *snapshot = cr_snapshot_new(secret);
    cr_secret_reader_project(f->reader, secret, snapshot);
    assert_null(cr_json_get(secret, "data"));
    return snapshot;
}

static const struct cr_policy_secret any;

static bool is_read(struct cr_snapshot *snapshot)
{
    CR_CLEANUP(cr_secret_view) struct cr_secret_view *view = cr_secret_reader_view(snapshot->extra, &any);
    return view != NULL;
}

static size_t waiting(struct fixture *f)
{
    size_t bytes;
    return cr_secret_reader_waiting(f->reader, &bytes);
}

/* --- rules --- */

static void what_comes_is_read_though_nobody_asks(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT one = bring(f, "ns", "one", KIB);
    AUTO_SNAPSHOT two = bring(f, "ns", "two", KIB);
    wait_for_begun(1);
    open_gate();
    wait_for_begun(2);
    assert_true(is_read(one) && is_read(two));
    assert_int_equal(count_begun(), 2);
    assert_int_equal(waiting(f), 0);
}

static void what_no_policy_names_is_not_kept(void **state)
{
    struct fixture *f = *state;
    struct cr_json *secret = test_yaml("{metadata: {name: nobodys, namespace: ns}, data: {a: YQ==}}");
    AUTO_SNAPSHOT snapshot = cr_snapshot_new(secret);
    cr_secret_reader_project(f->reader, secret, snapshot);
    assert_null(snapshot->extra);
    assert_false(is_read(snapshot));
    assert_int_equal(waiting(f), 0);
}

static void namespaces_alternate(void **state)
{
    struct fixture *f = *state;
    static const char *const names[][2] = {{"a", "a1"}, {"a", "a2"}, {"a", "a3"}, {"a", "a4"},
                                           {"b", "b1"}, {"c", "c1"}, {"b", "b2"}, {"d", "d1"}};
    static const char *const order[] = {"a1", "a2", "b1", "c1", "d1", "a3", "b2", "a4"};
    struct cr_snapshot *snapshots[cr_array_len(names)];
    snapshots[0] = bring(f, names[0][0], names[0][1], KIB);
    wait_for_begun(1);
    for (size_t i = 1; i < cr_array_len(names); i++)
        snapshots[i] = bring(f, names[i][0], names[i][1], KIB);
    open_gate();
    wait_for_begun(cr_array_len(order));
    for (size_t i = 0; i < cr_array_len(order); i++)
        assert_string_equal(gate.begun.items[i], order[i]);
    for (size_t i = 0; i < cr_array_len(names); i++)
        cr_snapshot_unref(snapshots[i]);
}

/* The thread is busy with another one. */
static void who_needs_one_at_once_reads_it_itself(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT slow = bring(f, "a", "slow", KIB);
    wait_for_begun(1);
    AUTO_SNAPSHOT behind = bring(f, "a", "behind", KIB);
    AUTO_SNAPSHOT wanted = bring(f, "b", "open", KIB);
    assert_true(is_read(wanted));
    assert_int_equal(waiting(f), 1);
    open_gate();
    assert_true(is_read(slow) && is_read(behind));
    assert_int_equal(count_begun(), 3);
}

static void *ask(void *snapshot)
{
    return (void *)(uintptr_t)is_read(snapshot);
}

static void who_comes_meanwhile_waits_for_the_same_reading(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[3];
    AUTO_SNAPSHOT snapshot = bring(f, "ns", "one", KIB);
    wait_for_begun(1);
    for (size_t i = 0; i < cr_array_len(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, snapshot), 0);
    open_gate();
    for (size_t i = 0; i < cr_array_len(threads); i++) {
        void *read = NULL;
        pthread_join(threads[i], &read);
        assert_non_null(read);
    }
    assert_int_equal(count_begun(), 1);
}

/* The caller that needs another has to fetch it. */
static void what_waits_is_bounded_by_namespace_and_in_all(void **state)
{
    struct fixture *f = *state;
    struct cr_snapshot *snapshots[16];
    size_t len = 0;
    size_t bytes;
    snapshots[len++] = bring(f, "first", "first", KIB);
    wait_for_begun(1);
    for (size_t i = 0; i < 3; i++)
        snapshots[len++] = bring(f, "a", "secret", MIB);
    assert_int_equal(cr_secret_reader_waiting(f->reader, &bytes), 2);
    assert_int_equal(bytes, CR_SECRET_READER_NAMESPACE_BYTES_MAX);
    assert_false(is_read(snapshots[len - 1]));
    static const char *const others[] = {"b", "c", "d", "e"};
    for (size_t i = 0; i < cr_array_len(others); i++) {
        snapshots[len++] = bring(f, others[i], "secret", MIB);
        snapshots[len++] = bring(f, others[i], "secret", MIB);
    }
    assert_int_equal(cr_secret_reader_waiting(f->reader, &bytes), 8);
    assert_int_equal(bytes, CR_SECRET_READER_BYTES_MAX);
    assert_false(is_read(snapshots[len - 1]));
    open_gate();
    assert_true(is_read(snapshots[1]) && is_read(snapshots[len - 3]));
    for (size_t i = 0; i < len; i++)
        cr_snapshot_unref(snapshots[i]);
}

static void what_is_gone_is_not_read(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT slow = bring(f, "a", "slow", KIB);
    wait_for_begun(1);
    struct cr_snapshot *gone = bring(f, "a", "gone", KIB);
    assert_int_equal(waiting(f), 1);
    cr_snapshot_unref(gone);
    assert_int_equal(waiting(f), 0);
    open_gate();
    assert_true(is_read(slow));
    assert_int_equal(count_begun(), 1);
}

static void a_snapshot_may_outlive_the_reader(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT slow = bring(f, "a", "open", KIB);
    AUTO_SNAPSHOT waits = bring(f, "b", "open-too", KIB);
    assert_true(is_read(slow));
    cr_secret_reader_free(f->reader);
    f->reader = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_is_read_though_nobody_asks, begin, end),
        cmocka_unit_test_setup_teardown(what_no_policy_names_is_not_kept, begin, end),
        cmocka_unit_test_setup_teardown(namespaces_alternate, begin, end),
        cmocka_unit_test_setup_teardown(who_needs_one_at_once_reads_it_itself, begin, end),
        cmocka_unit_test_setup_teardown(who_comes_meanwhile_waits_for_the_same_reading, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_is_bounded_by_namespace_and_in_all, begin, end),
        cmocka_unit_test_setup_teardown(what_is_gone_is_not_read, begin, end),
        cmocka_unit_test_setup_teardown(a_snapshot_may_outlive_the_reader, begin, end),
    };
    return cmocka_run_group_tests_name("secret_reader", tests, NULL, NULL);
}
