#include "controlplane/agent/given_flags.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

void cr_given_flags_dispose(struct cr_given_flags *flags)
{
    for (size_t i = 0; i < flags->len; i++) {
        free(flags->items[i].name);
        free(flags->items[i].value);
    }
    free(flags->items);
    free(flags->stray);
    *flags = (struct cr_given_flags){0};
}

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0;
}

/* word: with its dashes; next: the word behind it, NULL when there is none. True: it was its value. */
static bool add(struct cr_given_flags *out, const char *word, const char *next)
{
    const char *name = word + (word[1] == '-' ? 2 : 1);
    size_t len = strcspn(name, "=");
    bool takes_next = name[len] == '\0' && next && !is_flag(next) && strcmp(next, "--") != 0;
    struct cr_given_flag flag = {.name = cr_strndup(name, len)};
    for (char *p = strchr(flag.name, '_'); p; p = strchr(p, '_'))
        *p = '-';
    flag.value = cr_strdup_or_null(name[len] == '=' ? name + len + 1 : takes_next ? next : NULL);
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] = flag;
    return takes_next;
}

static void add_stray(struct cr_given_flags *out, const char *word)
{
    if (!out->stray)
        out->stray = cr_strdup(word);
}

void cr_given_flags_read(char *const *words, size_t len, struct cr_given_flags *out)
{
    *out = (struct cr_given_flags){0};
    for (size_t i = 0; i < len; i++) {
        if (strcmp(words[i], "--") == 0) {
            if (i + 1 < len)
                add_stray(out, words[i + 1]);
            return;
        }
        if (!is_flag(words[i])) {
            add_stray(out, words[i]);
        } else if (out->len == CR_GIVEN_FLAGS_MAX) {
            out->cut = true;
            return;
        } else {
            i += add(out, words[i], i + 1 < len ? words[i + 1] : NULL);
        }
    }
}

const struct cr_given_flag *cr_given_flags_find(const struct cr_given_flags *flags, const char *name)
{
    for (size_t i = flags->len; i > 0; i--)
        if (cr_streq(flags->items[i - 1].name, name))
            return &flags->items[i - 1];
    return NULL;
}

const char *cr_given_flags_text(const struct cr_given_flags *flags, const char *name)
{
    const struct cr_given_flag *flag = cr_given_flags_find(flags, name);
    return flag && flag->value && *flag->value ? flag->value : NULL;
}

bool cr_given_flag_bool(const struct cr_given_flag *flag, bool *out)
{
    static const char *const words[][6] = {{"0", "f", "F", "false", "FALSE", "False"},
                                           {"1", "t", "T", "true", "TRUE", "True"}};
    if (!flag->value) {
        *out = true;
        return true;
    }
    for (size_t value = 0; value < 2; value++)
        for (size_t i = 0; i < cr_array_len(words[value]); i++)
            if (cr_streq(flag->value, words[value][i])) {
                *out = value == 1;
                return true;
            }
    return false;
}
