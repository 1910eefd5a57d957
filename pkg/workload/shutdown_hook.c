#include "workload/shutdown_hook.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "catalogue/settings.h"
#include "codec/json.h"
#include "drain/flags.h"

/* The command line of a shutdown manager, as far as a pod template shows it: of a hook, or of a container.
 */

enum shutdown_reading {
    CR_SHUTDOWN_NOT_IT,
    CR_SHUTDOWN_FLAGS_KNOWN,   /* it runs that command with these flags */
    CR_SHUTDOWN_FLAGS_UNKNOWN, /* it runs that command, with flags that are not known */
};

struct shutdown_command {
    enum shutdown_reading reading;
    struct cr_strvec argv;
    struct cr_drain_flags flags; /* of FLAGS_KNOWN; borrows from argv */
};

static void shutdown_command_dispose(struct shutdown_command *command)
{
    cr_drain_flags_dispose(&command->flags);
    cr_strvec_dispose(&command->argv);
    *command = (struct shutdown_command){0};
}

CR_DEFINE_DISPOSE(shutdown_command, struct shutdown_command, shutdown_command_dispose)

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
static enum shutdown_reading read_argv(bool whole, enum cr_drain_command command, struct shutdown_command *out)
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

/* Whether the container's exec preStop runs "shutdown". out need not be initialised. */
static void shutdown_command_of_hook(const struct cr_json *container, struct shutdown_command *out)
{
    *out = (struct shutdown_command){0};
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

/* Whether the container itself runs "serve" or "envoy shutdown-manager". out need not be initialised. */
static void shutdown_command_of_container(const struct cr_json *container, struct shutdown_command *out)
{
    *out = (struct shutdown_command){0};
    bool whole = collect_container(container, &out->argv);
    out->reading = read_argv(whole, CR_DRAIN_COMMAND_SERVE, out);
}

enum { GRACE_S = 30, GRACE_MAX_S = 10 * 365 * 24 * 3600, MS = 1000 };

/* --- the pod --- */

/* A container with HTTP endpoints that hooks may ask. */
struct manager {
    const struct cr_json *container;
    struct shutdown_command command;
};

struct pod {
    const struct cr_json **containers; /* owned; those that keep running, borrowed from the pod spec */
    size_t len;
    int64_t grace_ms;
    struct manager *managers; /* owned; NULL: not looked for yet */
    size_t managers_len;
};

/* kubernetes.io/docs/concepts/workloads/pods/sidecar-containers: such an init container runs as long as the pod. */
static bool keeps_running(const struct cr_json *container, bool init)
{
    return !init || cr_streq(cr_json_string_at(container, "restartPolicy"), "Always");
}

static void look_at(const struct cr_json *pod_spec, struct pod *pod)
{
    static const char *const lists[] = {"initContainers", "containers"};
    size_t most = cr_json_len(cr_json_get(pod_spec, lists[0])) + cr_json_len(cr_json_get(pod_spec, lists[1]));
    int64_t grace_s = cr_json_int_at(pod_spec, GRACE_S, "terminationGracePeriodSeconds");
    pod->grace_ms = (grace_s < 0 ? GRACE_S : grace_s > GRACE_MAX_S ? GRACE_MAX_S : grace_s) * MS;
    pod->containers = cr_calloc(most, sizeof(struct cr_json *));
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(pod_spec, lists[i]);
        for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c))
            if (keeps_running(c, i == 0) && cr_json_string_at(c, "name"))
                pod->containers[pod->len++] = c;
    }
}

/* Once, however many hooks there are: a template of others may have thousands of containers. */
static void look_for_managers(struct pod *pod)
{
    if (pod->managers)
        return;
    pod->managers = cr_calloc(pod->len, sizeof(struct manager));
    for (size_t i = 0; i < pod->len; i++) {
        struct manager *manager = &pod->managers[pod->managers_len];
        manager->container = pod->containers[i];
        shutdown_command_of_container(pod->containers[i], &manager->command);
        if (manager->command.reading == CR_SHUTDOWN_NOT_IT)
            shutdown_command_dispose(&manager->command);
        else
            pod->managers_len++;
    }
}

static void forget(struct pod *pod)
{
    for (size_t i = 0; i < pod->managers_len; i++)
        shutdown_command_dispose(&pod->managers[i].command);
    free(pod->managers);
    free(pod->containers);
}

/* --- times --- */

/* Contour's has no time-out of its own, and a manager that takes its place has none but by a flag. */
static int64_t bounded(int64_t ms)
{
    return ms < 0 || ms >= CR_DRAIN_UNBOUNDED_MS ? CR_SHUTDOWN_UNKNOWN_MS : ms;
}

/* Owned words; NULL: all is well. Which drain begins with these flags: an endpoint that waits for another hook begins
 * none. */
static char *misfit_of(const struct cr_drain_flags *flags, int64_t grace_ms, bool drains)
{
    struct cr_error err = {0};
    char given[CR_TIME_TEXT];
    char has[CR_TIME_TEXT];
    if (flags->ignored.kind != CR_ERR_NONE)
        return cr_asprintf("not all of its flags are taken: %s", flags->ignored.text);
    cr_duration_format(flags->grace_ms, given);
    cr_duration_format(grace_ms, has);
    if (flags->grace_ms >= 0 && flags->grace_ms != grace_ms)
        return cr_asprintf("--termination-grace-period %s is not what the pod has, terminationGracePeriodSeconds %s: "
                           "give both the same, %s",
                           given, has,
                           flags->grace_ms > grace_ms ? "or the kubelet ends the proxy in the midst of its drain"
                                                      : "or connections are given less time than there is");
    if (drains && bounded(flags->rules.timeout_ms) >= 0 && !cr_drain_rules_check(&flags->rules, grace_ms, &err))
        return cr_strdup(err.text);
    return NULL;
}

static struct cr_shutdown_hook *add_hook(struct cr_shutdown_hooks *hooks, const struct cr_json *container)
{
    hooks->items = cr_reallocarray(hooks->items, hooks->len + 1, sizeof *hooks->items);
    hooks->items[hooks->len] =
        (struct cr_shutdown_hook){.container = cr_json_string_at(container, "name"), .most_ms = CR_SHUTDOWN_UNKNOWN_MS};
    return &hooks->items[hooks->len++];
}

/* --- exec --- */

static void find_exec(const struct pod *pod, const struct cr_json *container, struct cr_shutdown_hooks *out)
{
    CR_CLEANUP(shutdown_command) struct shutdown_command command;
    shutdown_command_of_hook(container, &command);
    if (command.reading == CR_SHUTDOWN_NOT_IT)
        return;
    struct cr_shutdown_hook *hook = add_hook(out, container);
    if (command.reading == CR_SHUTDOWN_FLAGS_UNKNOWN)
        return;
    cr_autofree char *misfit = misfit_of(&command.flags, pod->grace_ms, true);
    hook->most_ms = bounded(command.flags.rules.timeout_ms);
    hook->misfit = misfit ? cr_asprintf("container %s: %s", hook->container, misfit) : NULL;
}

/* --- httpGet --- */

static int64_t port_named(const struct cr_json *container, const char *name)
{
    const struct cr_json *ports = cr_json_get(container, "ports");
    for (const struct cr_json *port = cr_json_first(ports); port; port = cr_json_next(port))
        if (cr_streq(cr_json_string_at(port, "name"), name))
            return cr_json_int_at(port, 0, "containerPort");
    return 0;
}

/* A name is looked for in the hook's own container, as the kubelet does, which takes a text of digits for a number. */
static int64_t asked_port(const struct cr_json *container, const struct cr_json *port)
{
    const char *name = cr_json_string(port);
    if (!name)
        return cr_json_int(port, 0);
    int64_t number = port_named(container, name);
    return number ? number : strtol(name, NULL, 10);
}

/* 0: it serves nowhere. */
static int64_t served_port(const struct cr_drain_flags *flags)
{
    const char *colon = flags->address ? strrchr(flags->address, ':') : NULL;
    return colon ? strtol(colon + 1, NULL, 10) : 0;
}

static bool is_path(const char *path, const char *wanted)
{
    return path && strncmp(path, wanted, strcspn(path, "?")) == 0 && strlen(wanted) == strcspn(path, "?");
}

/* If its flags are not known, it may serve any port. */
static bool is_asked(const struct manager *manager, int64_t port)
{
    return manager->command.reading == CR_SHUTDOWN_FLAGS_UNKNOWN || served_port(&manager->command.flags) == port;
}

static void add_asking(const struct pod *pod, const struct cr_json *container, const struct cr_json *get,
                       const struct manager *manager, struct cr_shutdown_hooks *out)
{
    const struct cr_drain_flags *flags = &manager->command.flags;
    struct cr_shutdown_hook *hook = add_hook(out, container);
    if (manager->command.reading == CR_SHUTDOWN_FLAGS_UNKNOWN)
        return;
    hook->waits = is_path(cr_json_string_at(get, "path"), "/shutdown/ready") || flags->waits_for_file;
    hook->most_ms = bounded(hook->waits ? flags->ready_timeout_ms : flags->rules.timeout_ms);
    cr_autofree char *misfit = misfit_of(flags, pod->grace_ms, !hook->waits);
    if (misfit)
        hook->misfit = cr_asprintf("container %s, which the preStop of %s asks: %s",
                                   cr_json_string_at(manager->container, "name"), hook->container, misfit);
}

/* Its host is not looked at: a pod in its node's network is asked at 127.0.0.1. */
static void find_http(struct pod *pod, const struct cr_json *container, struct cr_shutdown_hooks *out)
{
    const struct cr_json *get = cr_json_at(container, "lifecycle", "preStop", "httpGet");
    const char *path = cr_json_string_at(get, "path");
    if (!is_path(path, "/shutdown") && !is_path(path, "/shutdown/ready"))
        return;
    look_for_managers(pod);
    int64_t port = asked_port(container, cr_json_get(get, "port"));
    for (size_t i = 0; i < pod->managers_len; i++) {
        if (!is_asked(&pod->managers[i], port))
            continue;
        add_asking(pod, container, get, &pod->managers[i], out);
        return;
    }
}

/* --- all --- */

void cr_shutdown_hooks_find(const struct cr_json *pod_spec, struct cr_shutdown_hooks *out)
{
    struct pod pod = {0};
    look_at(pod_spec, &pod);
    *out = (struct cr_shutdown_hooks){.grace_ms = pod.grace_ms};
    for (size_t i = 0; i < pod.len; i++) {
        find_exec(&pod, pod.containers[i], out);
        find_http(&pod, pod.containers[i], out);
    }
    forget(&pod);
}

void cr_shutdown_hooks_dispose(struct cr_shutdown_hooks *hooks)
{
    for (size_t i = 0; i < hooks->len; i++)
        free(hooks->items[i].misfit);
    free(hooks->items);
    *hooks = (struct cr_shutdown_hooks){0};
}

static bool any_notifies(const struct cr_shutdown_hooks *hooks)
{
    for (size_t i = 0; i < hooks->len; i++)
        if (!hooks->items[i].waits)
            return true;
    return false;
}

/* One that waits for another and has no time-out ends with it. */
int64_t cr_shutdown_hooks_most_ms(const struct cr_shutdown_hooks *hooks)
{
    int64_t most_ms = 0;
    bool notified = any_notifies(hooks);
    for (size_t i = 0; i < hooks->len; i++) {
        const struct cr_shutdown_hook *hook = &hooks->items[i];
        if (hook->waits && notified)
            continue;
        if (hook->most_ms == CR_SHUTDOWN_UNKNOWN_MS)
            return CR_SHUTDOWN_UNKNOWN_MS;
        if (hook->most_ms > most_ms)
            most_ms = hook->most_ms;
    }
    return most_ms < hooks->grace_ms ? most_ms : hooks->grace_ms;
}

char *cr_shutdown_hooks_misfit(const struct cr_shutdown_hooks *hooks)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec texts = {0};
    for (size_t i = 0; i < hooks->len; i++)
        if (hooks->items[i].misfit)
            cr_strvec_add_unique(&texts, hooks->items[i].misfit);
    return texts.len ? cr_strvec_join(&texts, "; ") : NULL;
}
