/* The built-in catalogue, for all tests of a program: give both to cmocka_run_group_tests. */
#ifndef TEST_SUPPORT_BUILTIN_H
#define TEST_SUPPORT_BUILTIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "catalogue/catalogue.h"

static struct cr_catalogue *builtin;

static inline int load_builtin(void **state)
{
    (void)state;
    struct cr_error err = {0};
    builtin = cr_catalogue_builtin(&err);
    if (!builtin)
        fprintf(stderr, "the built-in catalogue: %s\n", err.text);
    return builtin ? 0 : -1;
}

static inline int free_builtin(void **state)
{
    (void)state;
    cr_catalogue_free(builtin);
    return 0;
}

#endif
