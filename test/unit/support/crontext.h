/* Schedules of tests, out of their text. */
#ifndef TEST_SUPPORT_CRONTEXT_H
#define TEST_SUPPORT_CRONTEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "codec/cron.h"

/* Ends the test program when the text is wrong. */
static inline struct cr_cron test_cron(const char *text)
{
    struct cr_cron cron;
    struct cr_error err = {0};
    if (!cr_cron_parse(text, &cron, &err)) {
        fprintf(stderr, "the test's own schedule: %s: %s\n", text, err.text);
        abort();
    }
    return cron;
}

#endif
