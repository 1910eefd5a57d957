/* What an error is and says. */
#ifndef TEST_SUPPORT_SAYS_H
#define TEST_SUPPORT_SAYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"

static inline void assert_says(const struct cr_error *err, enum cr_error_kind kind, const char *words)
{
    if (err->kind != kind || !strstr(err->text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(err->kind),
                 err->text);
}

#endif
