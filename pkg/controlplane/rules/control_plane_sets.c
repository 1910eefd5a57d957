/* Fingerprints as bits, so that thousands of files are compared by a word each. */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/strings.h"

bool cr_cp_is_print(const char *text)
{
    return text && strspn(text, "0123456789abcdef") == CR_SHA256_HEX - 1 && !text[CR_SHA256_HEX - 1];
}

static uint64_t find(const struct cp_set *set, const char *print, size_t len)
{
    for (size_t i = 0; i < set->len; i++)
        if (strncmp(set->items[i], print, len) == 0 && !set->items[i][len])
            return (uint64_t)1 << i;
    return 0;
}

uint64_t cr_cp_bit_in(const struct cp_set *set, const char *print)
{
    return print ? find(set, print, strlen(print)) : 0;
}

uint64_t cr_cp_bit(struct cp_set *set, const char *print)
{
    uint64_t bit = cr_cp_bit_in(set, print);
    if (bit || !cr_cp_is_print(print))
        return bit;
    if (set->len == CP_SET_MAX) {
        set->over = true;
        return 0;
    }
    set->items[set->len] = print;
    return (uint64_t)1 << set->len++;
}

uint64_t cr_cp_bits(struct cp_set *set, const struct cr_strvec *prints)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < prints->len; i++)
        bits |= cr_cp_bit(set, prints->items[i]);
    return bits;
}

uint64_t cr_cp_bits_in(const struct cp_set *set, const struct cr_strvec *prints)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < prints->len; i++)
        bits |= find(set, prints->items[i], strlen(prints->items[i]));
    return bits;
}

bool cr_cp_has_all(const struct cp_set *set, const struct cr_strvec *prints)
{
    for (size_t i = 0; i < prints->len; i++)
        if (!cr_cp_bit_in(set, prints->items[i]))
            return false;
    return true;
}

uint64_t cr_cp_bits_of_text(const struct cp_set *set, const char *text)
{
    uint64_t bits = 0;
    for (const char *p = cr_or_empty(text); *p; p += strspn(p, ",")) {
        size_t len = strcspn(p, ",");
        bits |= find(set, p, len);
        p += len;
    }
    return bits;
}

const char *cr_cp_first(const struct cp_set *set, uint64_t bits)
{
    const char *first = NULL;
    for (size_t i = 0; i < set->len; i++)
        if (bits >> i & 1 && (!first || strcmp(set->items[i], first) < 0))
            first = set->items[i];
    return first;
}

char *cr_cp_text(const struct cp_set *set, uint64_t bits)
{
    struct cr_buf text = CR_BUF_INIT(0);
    while (bits) {
        const char *first = cr_cp_first(set, bits);
        if (!first)
            break;
        cr_buf_printf(&text, "%s%s", text.len ? "," : "", first);
        bits &= ~find(set, first, strlen(first));
    }
    return cr_buf_steal(&text);
}
