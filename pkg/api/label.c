#include "api/label.h"

#include <string.h>

enum { NAME_MAX_LEN = 63, PREFIX_MAX_LEN = 253 };

/* isalnum depends on the locale. */
static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits, and between them these, too. */
static bool is_word(const char *text, size_t len, const char *between)
{
    if (len == 0 || !is_alphanumeric(text[0]) || !is_alphanumeric(text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_alphanumeric(text[i]) && !strchr(between, text[i]))
            return false;
    return true;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);
    return len <= NAME_MAX_LEN && is_word(text, len, "-_.");
}

static bool is_subdomain(const char *text, size_t len)
{
    if (len > PREFIX_MAX_LEN)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            return false;
    const char *end = text + len;
    for (const char *part = text;; part++) {
        const char *dot = memchr(part, '.', (size_t)(end - part));
        const char *part_end = dot ? dot : end;
        if (!is_word(part, (size_t)(part_end - part), "-"))
            return false;
        if (!dot)
            return true;
        part = dot;
    }
}

bool cr_label_key_is_valid(const char *key)
{
    const char *slash = strchr(key, '/');
    return slash ? is_subdomain(key, (size_t)(slash - key)) && is_name(slash + 1) : is_name(key);
}

bool cr_label_value_is_valid(const char *value)
{
    return !*value || is_name(value);
}
