/* The kubelet's command line. */
#include "controlplane/agent/kubelet_files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strvec.h"

void cr_kubelet_command_dispose(struct cr_kubelet_command *command)
{
    cr_given_flags_dispose(&command->flags);
    free(command->folder);
    free(command->config);
    free(command->config_dir);
    *command = (struct cr_kubelet_command){0};
}

static bool split(const char *cmdline, size_t len, struct cr_strvec *words, struct cr_error *err)
{
    if (!len || !*cmdline)
        return cr_error_set(err, CR_ERR_INVALID, "the kubelet's command line is empty");
    if (len > CR_KUBELET_COMMAND_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "the kubelet's command line is longer than %d bytes",
                            CR_KUBELET_COMMAND_MAX);
    for (const char *p = cmdline, *end = cmdline + len; p < end;) {
        const char *stop = memchr(p, '\0', (size_t)(end - p));
        if (!stop || words->len == CR_KUBELET_WORDS_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "the kubelet's command line is cut after %zu words", words->len);
        cr_strvec_add(words, p);
        p = stop + 1;
    }
    return true;
}

static char *absolute(const char *folder, const char *path)
{
    if (!path)
        return NULL;
    return path[0] == '/' ? cr_strdup(path) : cr_asprintf("%s/%s", cr_streq(folder, "/") ? "" : folder, path);
}

/* "/usr/bin/kubelet-1.36 --…" and "hyperkube kubelet --…" are one. 0: it is none. */
static size_t first_flag(const char *program, const struct cr_strvec *words)
{
    if (words->len > 1 && cr_streq(words->items[1], "kubelet"))
        return 2;
    const char *slash = strrchr(program, '/');
    return strstr(slash ? slash : program, "kubelet") ? 1 : 0;
}

bool cr_kubelet_command_read(const char *cmdline, size_t len, const char *folder, struct cr_kubelet_command *out,
                             struct cr_error *err)
{
    *out = (struct cr_kubelet_command){0};
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    if (!split(cmdline, len, &words, err))
        return false;
    const char *program = cmdline; /* the first word */
    size_t first = first_flag(program, &words);
    if (!first)
        return cr_error_set(err, CR_ERR_INVALID, "'%s' is no kubelet's command line", program);
    cr_given_flags_read(words.items + first, words.len - first, &out->flags);
    const char *stray = out->flags.stray;
    if (stray || out->flags.cut) {
        cr_error_set(err, CR_ERR_INVALID, "'%s' is no kubelet's command line: %s%s", program,
                     stray ? "a word without a flag: " : "too many flags", cr_or_empty(stray));
        cr_kubelet_command_dispose(out);
        return false;
    }
    out->folder = cr_strdup(folder);
    out->config = absolute(folder, cr_given_flags_text(&out->flags, "config"));
    out->config_dir = absolute(folder, cr_given_flags_text(&out->flags, "config-dir"));
    return true;
}
