#include "runtime/start_check.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/strings.h"

/* What the check finds at each try; it stays with the last. NULL: it holds. */
struct scene {
    const char *const *script;
    size_t len;
    atomic_size_t tries;
    atomic_bool cancelled;
    bool blocks; /* the first try lasts until it is cancelled */
    struct cr_buf reported;
    atomic_bool passed;
};

static bool holds(void *arg, struct cr_error *err)
{
    struct scene *scene = arg;
    size_t try = atomic_fetch_add(&scene->tries, 1);
    while (scene->blocks && !atomic_load(&scene->cancelled))
        sched_yield();
    const char *why = scene->script[try < scene->len ? try : scene->len - 1];
    return !why || cr_error_set(err, CR_ERR_FORBIDDEN, "%s", why);
}

static void on_refused(void *arg, const struct cr_error *why)
{
    struct scene *scene = arg;
    cr_buf_printf(&scene->reported, "%s;", why->text);
}

static void cancel(void *arg)
{
    struct scene *scene = arg;
    atomic_store(&scene->cancelled, true);
}

static void on_passed(void *arg)
{
    struct scene *scene = arg;
    atomic_store(&scene->passed, true);
}

static struct cr_start_check *start(struct scene *scene)
{
    struct cr_start_check *check = cr_start_check_new(&(struct cr_start_check_options){
        .holds = holds, .on_refused = on_refused, .cancel = cancel, .arg = scene, .first_ms = 1, .max_ms = 2});
    cr_start_check_start(check, on_passed, scene);
    return check;
}

static void it_is_asked_until_it_holds_and_each_reason_is_reported_once(void **state)
{
    (void)state;
    static const char *const script[] = {"a", "a", "b", "b", "b", "a", NULL};
    struct scene scene = {.script = script, .len = cr_array_len(script)};
    CR_CLEANUP(cr_start_check) struct cr_start_check *check = start(&scene);
    struct cr_error err = {0};
    while (!atomic_load(&scene.passed))
        sched_yield();
    assert_true(cr_start_check_passed(check, &err));
    cr_start_check_stop(check);
    assert_int_equal(atomic_load(&scene.tries), cr_array_len(script));
    assert_string_equal(cr_buf_text(&scene.reported), "a;b;a;");
    cr_buf_dispose(&scene.reported);
}

static void until_then_it_says_why_not(void **state)
{
    (void)state;
    static const char *const script[] = {"no policy"};
    struct scene scene = {.script = script, .len = 1};
    CR_CLEANUP(cr_start_check) struct cr_start_check *check = start(&scene);
    struct cr_error err = {0};
    while (atomic_load(&scene.tries) < 3)
        sched_yield();
    assert_false(cr_start_check_passed(check, &err));
    assert_string_equal(err.text, "no policy");
    cr_start_check_stop(check);
    assert_false(atomic_load(&scene.passed));
    cr_buf_dispose(&scene.reported);
}

static void before_the_first_answer_it_has_not_passed(void **state)
{
    (void)state;
    static const char *const script[] = {NULL};
    struct scene scene = {.script = script, .len = 1, .blocks = true};
    CR_CLEANUP(cr_start_check) struct cr_start_check *check = start(&scene);
    struct cr_error err = {0};
    while (!atomic_load(&scene.tries))
        sched_yield();
    assert_false(cr_start_check_passed(check, &err));
    assert_true(*err.text);
    cr_start_check_stop(check); /* and what holds waits for ends with it */
    assert_false(atomic_load(&scene.passed));
    assert_string_equal(cr_buf_text(&scene.reported), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_until_it_holds_and_each_reason_is_reported_once),
        cmocka_unit_test(until_then_it_says_why_not),
        cmocka_unit_test(before_the_first_answer_it_has_not_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
