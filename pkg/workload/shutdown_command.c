#include "workload/shutdown_command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "catalogue/settings.h"

void cr_shutdown_command_dispose(struct cr_shutdown_command *command)
{
    cr_drain_flags_dispose(&command->flags);
    cr_strvec_dispose(&command->argv);
    *command = (struct cr_shutdown_command){0};
}

/* --- words --- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_ours(const char *word)
{
    return cr_streq(last_part(word), "certroll-shutdown-manager");
}

/* "contour serve" and "envoy-gateway server" are other programs: only behind the word envoy they are managers. */
static bool is_manager(const struct cr_strvec *argv)
{
    if (!argv->len)
        return false;
    const char *program = last_part(argv->items[0]);
    bool theirs = cr_streq(program, "contour") || cr_streq(program, "envoy-gateway");
    return is_ours(program) || (theirs && cr_strvec_has(argv, "envoy"));
}

/* All words, also those of an argument that is a shell's script. */
static void add_words(const char *argument, struct cr_strvec *out)
{
    static const char between[] = " \t\r\n\"'\\;&|()";
    for (const char *p = argument + strspn(argument, between); *p; p += strspn(p, between)) {
        size_t len = strcspn(p, between);
        cr_autofree char *word = cr_strndup(p, len);
        cr_strvec_add(out, word);
        p += len;
    }
}

/* "timeout 60 certroll-shutdown-manager shutdown", "exec contour envoy shutdown"; if the program of an image is not
 * known, the words behind it: "envoy shutdown-manager". */
static bool names(const struct cr_strvec *argv, enum cr_drain_command command)
{
    const char *theirs = command == CR_DRAIN_COMMAND_SHUTDOWN ? "shutdown" : "shutdown-manager";
    const char *ours = command == CR_DRAIN_COMMAND_SHUTDOWN ? "shutdown" : "serve";
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    bool program = false;
    for (size_t i = 0; i < argv->len; i++)
        add_words(argv->items[i], &words);
    for (size_t i = 0; i < words.len; i++) {
        if (i && cr_streq(words.items[i - 1], "envoy") && cr_streq(words.items[i], theirs))
            return true;
        if (program && cr_streq(words.items[i], ours))
            return true;
        program = program || is_ours(words.items[i]);
    }
    return false;
}

/* whole: argv is what the process gets. */
static enum cr_shutdown_reading read_argv(bool whole, enum cr_drain_command command, struct cr_shutdown_command *out)
{
    struct cr_error err = {0};
    if (whole && is_manager(&out->argv) && cr_drain_flags_parse((int)out->argv.len, out->argv.items, &out->flags, &err))
        return out->flags.command == command ? CR_SHUTDOWN_FLAGS_KNOWN : CR_SHUTDOWN_NOT_IT;
    return names(&out->argv, command) ? CR_SHUTDOWN_FLAGS_UNKNOWN : CR_SHUTDOWN_NOT_IT;
}

/* --- of a hook --- */

/* The kubelet expands nothing there: a "$(" would reach the program as it stands, or a shell's. As many words as are
 * read of a container. */
static bool collect_hook(const struct cr_json *command, struct cr_strvec *argv)
{
    bool whole = cr_json_len(command) <= CR_SETTINGS_MAX;
    for (const struct cr_json *word = cr_json_first(command); word; word = cr_json_next(word)) {
        cr_strvec_add(argv, cr_or_empty(cr_json_string(word)));
        whole = whole && !strstr(argv->items[argv->len - 1], "$(");
    }
    return whole;
}

void cr_shutdown_command_of_hook(const struct cr_json *container, struct cr_shutdown_command *out)
{
    *out = (struct cr_shutdown_command){0};
    bool whole = collect_hook(cr_json_at(container, "lifecycle", "preStop", "exec", "command"), &out->argv);
    out->reading = read_argv(whole, CR_DRAIN_COMMAND_SHUTDOWN, out);
}

/* --- of a container --- */

/* What an image runs if its container names no command. NULL: not known. */
static const char *program_of_image(const char *image)
{
    const char *base = last_part(cr_or_empty(image));
    size_t len = strcspn(base, ":@");
    cr_autofree char *name = cr_strndup(base, len);
    if (cr_streq(name, "contour"))
        return "contour";
    if (cr_streq(name, "gateway") || cr_streq(name, "envoy-gateway")) /* docker.io/envoyproxy/gateway */
        return "envoy-gateway";
    return strstr(name, "shutdown-manager") ? "certroll-shutdown-manager" : NULL;
}

static bool collect_container(const struct cr_json *container, struct cr_strvec *argv)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    bool whole = cr_settings_argv(container, &words);
    const char *program =
        cr_json_len(cr_json_get(container, "command")) ? NULL : program_of_image(cr_json_string_at(container, "image"));
    if (program)
        cr_strvec_add(argv, program);
    for (size_t i = 0; i < words.len; i++)
        cr_strvec_add(argv, words.items[i]);
    return whole;
}

void cr_shutdown_command_of_container(const struct cr_json *container, struct cr_shutdown_command *out)
{
    *out = (struct cr_shutdown_command){0};
    bool whole = collect_container(container, &out->argv);
    out->reading = read_argv(whole, CR_DRAIN_COMMAND_SERVE, out);
}
