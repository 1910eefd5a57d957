/* Which program a container of a manifest ends up as, and with which words. */
#include "controlplane/agent/static_internal.h"

#include <string.h>

#include "base/strings.h"
#include "controlplane/agent/shell_words.h"
#include "catalogue/settings.h"

/* Wrappers within wrappers: a log runner that starts a shell that starts the program. */
enum { LAYERS_MAX = 4 };

static const char *base_name(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash ? slash + 1 : word;
}

static void drop_first(struct cr_strvec *words, size_t count)
{
    struct cr_strvec rest = {0};
    for (size_t i = count; i < words->len; i++)
        cr_strvec_add(&rest, words->items[i]);
    cr_strvec_dispose(words);
    *words = rest;
}

/* --- a shell: sh [options] -c script --- */

static bool is_shell(const char *program)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ash"};
    for (size_t i = 0; i < cr_array_len(shells); i++)
        if (cr_streq(program, shells[i]))
            return true;
    return false;
}

/* Where the script stands: behind the options of which one, by itself or among others ("-ec"), is "c"; 0: nowhere. */
static size_t script_of(const struct cr_strvec *argv)
{
    bool command = false;
    size_t i = 1;
    for (; i < argv->len && argv->items[i][0] == '-' && !cr_streq(argv->items[i], "--"); i++) {
        const char *option = argv->items[i];
        bool is_long = option[1] == '-';
        command = command || (!is_long && strchr(option, 'c'));
        /* "-o pipefail" */
        i += !is_long && cr_ends_with(option, "o");
    }
    i += i < argv->len && cr_streq(argv->items[i], "--");
    return command && i < argv->len ? i : 0;
}

static bool unwrap_shell(struct cr_static_container *container)
{
    size_t script = script_of(&container->argv);
    if (!script) {
        container->argv_known = false;
        return false;
    }
    struct cr_strvec words = {0};
    bool known = cr_shell_words(container->argv.items[script], &words);
    container->argv_known = container->argv_known && known;
    cr_strvec_dispose(&container->argv);
    container->argv = words;
    return true;
}

/* --- programs that start another one --- */

static bool is_assignment(const char *word)
{
    return word[0] != '-' && strchr(word, '=');
}

static bool is_option(const char *word)
{
    return word[0] == '-';
}

static bool is_nothing(const char *word)
{
    (void)word;
    return false;
}

/* What each takes before the program's name; options only as "--flag=value", the form in which all of them are seen. */
static const struct wrapper {
    const char *program;
    bool (*own)(const char *word);
} wrappers[] = {
    {"hyperkube", is_nothing}, {"kube-log-runner", is_option}, {"go-runner", is_option},
    {"tini", is_option},       {"dumb-init", is_option},       {"env", is_assignment},
};

static bool unwrap_program(struct cr_static_container *container, const struct wrapper *wrapper)
{
    const struct cr_strvec *argv = &container->argv;
    size_t i = 1;
    while (i < argv->len && wrapper->own(argv->items[i]) && !cr_streq(argv->items[i], "--"))
        i++;
    i += i < argv->len && cr_streq(argv->items[i], "--");
    if (i == argv->len || is_option(argv->items[i])) {
        container->argv_known = false;
        return false;
    }
    drop_first(&container->argv, i);
    return true;
}

static bool unwrap(struct cr_static_container *container)
{
    const char *program = container->argv.len ? base_name(container->argv.items[0]) : NULL;
    if (is_shell(program))
        return unwrap_shell(container);
    for (size_t i = 0; i < cr_array_len(wrappers); i++)
        if (cr_streq(program, wrappers[i].program))
            return unwrap_program(container, &wrappers[i]);
    return false;
}

void cr_static_command(struct cr_static_container *container)
{
    container->argv_known = cr_settings_argv(container->json, &container->argv);
    container->argv_has_name = cr_json_len(cr_json_get(container->json, "command")) > 0;
    int layers = 0;
    while (container->argv_has_name && layers < LAYERS_MAX && unwrap(container))
        layers++;
    if (layers == LAYERS_MAX)
        container->argv_known = false;
}
