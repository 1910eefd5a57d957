/* A file of the checkout, such as a page or a manifest that is compared with the code. Ends the test on failure. */
#ifndef TEST_SUPPORT_CHECKOUTFILE_H
#define TEST_SUPPORT_CHECKOUTFILE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

/* Owned. path: below the top of the checkout. */
static inline char *test_checkout_file(const char *path)
{
    enum { MOST = 1024 * 1024 };
    cr_autofree char *whole = cr_asprintf("%s/%s", CERTROLL_SOURCE_DIR, path);
    FILE *file = fopen(whole, "re");
    assert_non_null(file);
    char *text = cr_calloc(1, MOST);
    assert_true(fread(text, 1, MOST - 1, file) > 0 && feof(file));
    assert_int_equal(fclose(file), 0);
    return text;
}

#endif
