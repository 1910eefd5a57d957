#include "base/strvec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

void cr_strvec_dispose(struct cr_strvec *v)
{
    for (size_t i = 0; i < v->len; i++)
        free(v->items[i]);
    free(v->items);
    *v = (struct cr_strvec){0};
}

void cr_strvec_add(struct cr_strvec *v, const char *s)
{
    if (v->len == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 1; /* most that are kept have one */
        v->items = cr_reallocarray(v->items, v->cap, sizeof *v->items);
    }
    v->items[v->len++] = cr_strdup(s);
}

bool cr_strvec_has(const struct cr_strvec *v, const char *s)
{
    for (size_t i = 0; i < v->len; i++)
        if (strcmp(v->items[i], s) == 0)
            return true;
    return false;
}

bool cr_strvec_add_unique(struct cr_strvec *v, const char *s)
{
    if (cr_strvec_has(v, s))
        return false;
    cr_strvec_add(v, s);
    return true;
}

void cr_strvec_copy(struct cr_strvec *to, const struct cr_strvec *from)
{
    for (size_t i = 0; i < from->len; i++)
        cr_strvec_add(to, from->items[i]);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void cr_strvec_sort(struct cr_strvec *v)
{
    if (v->len)
        qsort(v->items, v->len, sizeof *v->items, compare);
}

bool cr_strvec_equal(const struct cr_strvec *a, const struct cr_strvec *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

char *cr_strvec_join(const struct cr_strvec *v, const char *separator)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < v->len; i++) {
        if (i)
            cr_buf_puts(&buf, separator);
        cr_buf_puts(&buf, v->items[i]);
    }
    return cr_buf_steal(&buf);
}
