#include "catalogue/settings.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "base/strvec.h"

void cr_settings_dispose(struct cr_settings *settings)
{
    for (size_t i = 0; i < settings->len; i++) {
        free(settings->items[i].name);
        free(settings->items[i].value);
    }
    free(settings->items);
    *settings = (struct cr_settings){0};
}

/* What is being read, and how many bytes of expanded text it may still take. */
struct reading {
    struct cr_settings *out;
    struct cr_strvec words; /* of the command line */
    size_t budget;
};

static void add(struct cr_settings *out, bool env, const char *name, const char *value)
{
    if (out->len == CR_SETTINGS_MAX) {
        out->cut = true;
        return;
    }
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] =
        (struct cr_setting){.env = env, .name = cr_strdup(name), .value = cr_strdup_or_null(value)};
}

/* The last definition of a variable wins, as in the container. */
static const char *variable(const struct cr_settings *settings, const char *name, size_t len)
{
    for (size_t i = settings->len; i > 0; i--) {
        const struct cr_setting *s = &settings->items[i - 1];
        if (s->env && strlen(s->name) == len && strncmp(s->name, name, len) == 0)
            return s->value;
    }
    return NULL;
}

/* One step of the expansion: from a "$" on, what it stands for and how much of the text that takes.
 * k8s.io/kubernetes third_party/forked/golang/expansion: $(VAR) when VAR is known, else as it stands; $$ is one $. */
static const char *expand_dollar(const struct cr_settings *settings, const char **text)
{
    const char *p = *text;
    const char *end = p[1] == '(' ? strchr(p, ')') : NULL;
    const char *value = end ? variable(settings, p + 2, (size_t)(end - p - 2)) : NULL;
    if (value) {
        *text = end + 1;
        return value;
    }
    *text += p[1] == '$' ? 2 : 1;
    return "$";
}

/* Owned. */
static char *expand(struct reading *reading, const char *text)
{
    struct cr_buf buf = CR_BUF_INIT(reading->budget);
    bool fits = true;
    while (*text && fits) {
        size_t plain = strcspn(text, "$");
        fits = cr_buf_append(&buf, text, plain);
        text += plain;
        if (*text && fits) {
            const char *value = expand_dollar(reading->out, &text);
            fits = cr_buf_append(&buf, value, strlen(value));
        }
    }
    reading->out->cut = reading->out->cut || !fits;
    /* 0 would mean no cap. */
    reading->budget -= buf.len < reading->budget ? buf.len : reading->budget - 1;
    return cr_buf_steal(&buf);
}

/* A value with a dollar left in it is not the value that the program gets. */
static const char *known(const char *value)
{
    return strchr(value, '$') ? NULL : value;
}

static void collect_variables(const struct cr_json *container, struct reading *reading)
{
    const struct cr_json *env = cr_json_get(container, "env");
    for (const struct cr_json *var = cr_json_first(env); var; var = cr_json_next(var)) {
        const char *name = cr_json_string_at(var, "name");
        if (!name)
            continue;
        cr_autofree char *value = expand(reading, cr_or_empty(cr_json_string_at(var, "value")));
        add(reading->out, true, name, cr_json_get(var, "valueFrom") ? NULL : known(value));
    }
    reading->out->hidden_env = cr_json_len(cr_json_get(container, "envFrom")) > 0;
}

/* The words of one argument: itself, or those of the script that it is. */
static void add_words(struct reading *reading, const char *argument)
{
    static const char between[] = " \t\r\n\"'\\;";
    for (const char *p = argument + strspn(argument, between); *p; p += strspn(p, between)) {
        size_t len = strcspn(p, between);
        if (reading->words.len == CR_SETTINGS_MAX) {
            reading->out->cut = true;
            return;
        }
        cr_autofree char *word = cr_strndup(p, len);
        cr_strvec_add(&reading->words, word);
        p += len;
    }
}

static void for_each_argument(const struct cr_json *container, struct reading *reading,
                              void (*take)(struct reading *reading, const char *argument))
{
    static const char *const lists[] = {"command", "args"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(container, lists[i]);
        for (const struct cr_json *j = cr_json_first(list); j; j = cr_json_next(j)) {
            cr_autofree char *argument = expand(reading, cr_or_empty(cr_json_string(j)));
            take(reading, argument);
        }
    }
}

/* What follows a flag of one letter may itself be a setting: "postgres -c ssl_ca_file=/certs/ca.crt". */
static void add_assignment(const char *word, struct cr_settings *out)
{
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    if (len == 0 || word[0] == '-' || word[len] != '=')
        return;
    cr_autofree char *name = cr_strndup(word, len);
    add(out, false, name, known(word + len + 1));
}

static void add_flag(const char *word, const char *next, struct cr_settings *out)
{
    const char *name = word + strspn(word, "-");
    size_t len = strcspn(name, "=");
    cr_autofree char *flag = cr_strndup(name, len);
    if (len && name[len] == '=')
        add(out, false, flag, known(name + len + 1));
    else if (len && next && *next != '-')
        add(out, false, flag, known(next));
    else if (len)
        add(out, false, flag, "");
    if (len == 1 && next)
        add_assignment(next, out);
}

void cr_settings_collect(const struct cr_json *container, struct cr_settings *out)
{
    *out = (struct cr_settings){0};
    struct reading reading = {.out = out, .budget = CR_SETTINGS_MAX_BYTES};
    collect_variables(container, &reading);
    for_each_argument(container, &reading, add_words);
    for (size_t i = 0; i < reading.words.len; i++)
        if (reading.words.items[i][0] == '-')
            add_flag(reading.words.items[i], i + 1 < reading.words.len ? reading.words.items[i + 1] : NULL, out);
    cr_strvec_dispose(&reading.words);
}

static void add_argument(struct reading *reading, const char *argument)
{
    if (reading->words.len == CR_SETTINGS_MAX || !known(argument))
        reading->out->cut = true;
    if (reading->words.len < CR_SETTINGS_MAX)
        cr_strvec_add(&reading->words, argument);
}

bool cr_settings_argv(const struct cr_json *container, struct cr_strvec *out)
{
    CR_CLEANUP(cr_settings) struct cr_settings settings = {0};
    struct reading reading = {.out = &settings, .budget = CR_SETTINGS_MAX_BYTES};
    collect_variables(container, &reading);
    for_each_argument(container, &reading, add_argument);
    *out = reading.words;
    return !settings.cut;
}
