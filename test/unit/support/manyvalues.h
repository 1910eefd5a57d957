/* JSON of more values than are read. */
#ifndef TEST_SUPPORT_MANYVALUES_H
#define TEST_SUPPORT_MANYVALUES_H

#include "base/buffer.h"

/* Owned: a text with an array of so many numbers in it. */
static inline char *text_of_many_values(const char *before, size_t numbers, const char *behind)
{
    struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text, "%s[0", before);
    for (size_t i = 1; i < numbers; i++)
        cr_buf_puts(&text, ",0");
    cr_buf_printf(&text, "]%s", behind);
    return cr_buf_steal(&text);
}

#endif
