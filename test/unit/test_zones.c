#include "policy/controller/zones.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

static int setup(void **state)
{
    char *folder = cr_strdup("/tmp/certroll-zones-XXXXXX");
    assert_non_null(mkdtemp(folder));
    cr_autofree char *path = cr_asprintf("%s/Broken", folder);
    FILE *file = fopen(path, "w");
    fputs("no zone", file);
    fclose(file);
    cr_autofree char *sub = cr_asprintf("%s/Europe", folder);
    assert_int_equal(mkdir(sub, 0700), 0);
    *state = folder;
    return 0;
}

static int teardown(void **state)
{
    cr_autofree char *folder = *state;
    cr_autofree char *path = cr_asprintf("%s/Broken", folder);
    cr_autofree char *sub = cr_asprintf("%s/Europe", folder);
    unlink(path);
    rmdir(sub);
    rmdir(folder);
    return 0;
}

static void zones_are_read_once_and_kept(void **state)
{
    (void)state;
    CR_CLEANUP(cr_zones) struct cr_zones *zones = cr_zones_new(NULL);
    const struct cr_tzif *paris = cr_zones_get(zones, "Europe/Paris", NULL);
    assert_non_null(paris);
    assert_ptr_equal(cr_zones_get(zones, "Europe/Paris", NULL), paris);
    assert_int_equal(cr_tzif_offset(paris, 1783036800), 2 * 3600); /* 2026-07-03 */
}

static void utc_is_there_without_a_file(void **state)
{
    CR_CLEANUP(cr_zones) struct cr_zones *zones = cr_zones_new(*state);
    assert_non_null(cr_zones_get(zones, "UTC", NULL));
}

static void what_is_no_zone_is_reported(void **state)
{
    CR_CLEANUP(cr_zones) struct cr_zones *zones = cr_zones_new(*state);
    static const struct {
        const char *name;
        const char *problem;
    } cases[] = {
        {"Mars/Olympus", "'Mars/Olympus' is not in the time zone database (/tmp/certroll-zones-"},
        {"Broken", "it is no TZif file"},
        {"Europe", "'Europe' cannot be taken from"},
        {"../etc", "'../etc' is no name of a time zone"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++)
        for (int again = 0; again < 2; again++) {
            struct cr_error err = {0};
            assert_null(cr_zones_get(zones, cases[i].name, &err));
            assert_int_equal(err.kind, CR_ERR_INVALID);
            if (!strstr(err.text, cases[i].problem))
                fail_msg("%s", err.text);
        }
}

static void an_unknown_zone_names_its_field(void **state)
{
    CR_CLEANUP(cr_zones) struct cr_zones *zones = cr_zones_new(*state);
    static char names[][16] = {"UTC", "Mars/Olympus"};
    struct cr_policy_window windows[] = {{.time_zone = names[0]}, {.time_zone = names[1]}};
    struct cr_policy policy = {.restart = {.windows = windows, .windows_len = 1}};
    const struct cr_tzif *out[CR_POLICY_WINDOWS_MAX] = {0};
    struct cr_error err = {0};
    assert_true(cr_zones_of(zones, &policy, out, &err));
    assert_non_null(out[0]);
    policy.restart.windows_len = 2;
    assert_false(cr_zones_of(zones, &policy, out, &err));
    assert_true(cr_starts_with(err.text, "spec.restart.windows[1].timeZone: 'Mars/Olympus' is not in"));
}

enum { THREADS = 4 };

static void *take_all(void *arg)
{
    static const char *const names[] = {"Europe/Paris", "Asia/Tokyo", "UTC", "America/New_York", "Europe/Dublin"};
    struct cr_zones *zones = arg;
    int64_t sum = 0;
    for (int again = 0; again < 100; again++)
        for (size_t i = 0; i < cr_array_len(names); i++)
            sum += cr_tzif_offset(cr_zones_get(zones, names[i], NULL), 1783036800);
    return sum == (2 + 9 - 4 + 1) * 3600 * 100 ? zones : NULL;
}

/* Under TSan, this is what shows a race. */
static void threads_share_them(void **state)
{
    (void)state;
    CR_CLEANUP(cr_zones) struct cr_zones *zones = cr_zones_new(NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_all, zones), 0);
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;
        pthread_join(threads[i], &good);
        assert_ptr_equal(good, zones);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zones_are_read_once_and_kept), cmocka_unit_test(utc_is_there_without_a_file),
        cmocka_unit_test(what_is_no_zone_is_reported),  cmocka_unit_test(an_unknown_zone_names_its_field),
        cmocka_unit_test(threads_share_them),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
