/* Under which conditions a rule of the catalogue holds for a program: its version, its settings, what its pod mentions.
 */
#include "catalogue/catalogue_internal.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

/* The volume of a mount comes from a driver or the host: an agent's socket, not files of configuration. */
static bool is_foreign_mount(const struct cr_json *pod_spec, const char *volume_name)
{
    const struct cr_json *volumes = cr_json_get(pod_spec, "volumes");
    for (const struct cr_json *volume = cr_json_first(volumes); volume; volume = cr_json_next(volume))
        if (cr_streq(cr_json_string_at(volume, "name"), volume_name))
            return cr_json_get(volume, "hostPath") || cr_json_get(volume, "csi");
    return false;
}

/* Whether some absolute path in the text has the word: "/sds" is in "--config-yaml={path: /sds/ca.json}", but neither
 * in "unix:///run/sds.sock" (an agent's socket) nor in "tls_certificate_sds_secret_configs" (which shows no file). */
static bool path_mentions(const char *text, const char *word)
{
    static const char between[] = " \t\r\n\"',=[]{}()";
    for (const char *p = text; p && *p;) {
        size_t len = strcspn(p, between);
        if (*p == '/' && memmem(p, len, word, strlen(word)))
            return true;
        p += len;
        p += strspn(p, between);
    }
    return false;
}

static bool any_path_mentions(const char *text, const struct cr_strvec *words)
{
    for (size_t i = 0; text && i < words->len; i++)
        if (path_mentions(text, words->items[i]))
            return true;
    return false;
}

static bool container_mentions(const struct cr_json *pod_spec, const struct cr_json *container,
                               const struct cr_strvec *words)
{
    const struct cr_json *mounts = cr_json_get(container, "volumeMounts");
    for (const struct cr_json *m = cr_json_first(mounts); m; m = cr_json_next(m))
        if (any_path_mentions(cr_json_string_at(m, "mountPath"), words) &&
            !is_foreign_mount(pod_spec, cr_json_string_at(m, "name")))
            return true;
    static const char *const lists[] = {"command", "args"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(container, lists[i]);
        for (const struct cr_json *word = cr_json_first(list); word; word = cr_json_next(word))
            if (any_path_mentions(cr_json_string(word), words))
                return true;
    }
    const struct cr_json *env = cr_json_get(container, "env");
    for (const struct cr_json *var = cr_json_first(env); var; var = cr_json_next(var))
        if (any_path_mentions(cr_json_string_at(var, "value"), words))
            return true;
    return false;
}

static bool arguments_mention(const struct cr_json *list, const struct cr_strvec *words)
{
    for (const struct cr_json *word = cr_json_first(list); word; word = cr_json_next(word))
        for (size_t i = 0; i < words->len; i++)
            if (cr_json_string(word) && strstr(cr_json_string(word), words->items[i]))
                return true;
    return false;
}

static bool pod_mentions(const struct cr_json *pod_spec, const struct cr_strvec *words)
{
    static const char *const lists[] = {"initContainers", "containers"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *containers = cr_json_get(pod_spec, lists[i]);
        for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c))
            if (arguments_mention(cr_json_get(c, "command"), words) || arguments_mention(cr_json_get(c, "args"), words))
                return true;
    }
    return false;
}

static bool is_commit_hash(const char *tag)
{
    size_t len = strspn(tag, "0123456789abcdef");
    return len >= 7 && tag[len] == '\0';
}

/* The same tag, or two lengths of one commit's hash. */
static bool same_tag(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return true;
    return is_commit_hash(a) && is_commit_hash(b) && (cr_starts_with(a, b) || cr_starts_with(b, a));
}

static bool is_listed(const struct cr_strvec *tags, const char *tag)
{
    for (size_t i = 0; tag && i < tags->len; i++)
        if (same_tag(tags->items[i], tag))
            return true;
    return false;
}

static enum cr_tri tags_hold(const struct cr_use *use, const struct cr_rule *rule, const struct cr_subject *subject)
{
    if (rule->tags.len == 0)
        return CR_YES;
    if (is_listed(&rule->tags, subject->tag))
        return CR_YES;
    for (size_t i = 0; i < use->rules_len; i++)
        if (is_listed(&use->rules[i].tags, subject->tag))
            return CR_NO;
    return CR_MAYBE;
}

enum cr_tri cr_subject_in_range(const struct cr_subject *subject, bool has_versions,
                                const struct cr_version_range *versions)
{
    if (!has_versions)
        return CR_YES;
    return subject->has_version ? cr_version_in_range(versions, &subject->version) : CR_MAYBE;
}

/* --- settings --- */

static bool names_setting(const struct cr_setting *setting, const char *name, size_t len)
{
    bool flag = *name == '-';
    size_t dashes = flag ? strspn(name, "-") : 0;
    return setting->env == !flag && strlen(setting->name) == len - dashes &&
           strncmp(setting->name, name + dashes, len - dashes) == 0;
}

/* What the template does not show may be set all the same: variables by envFrom, words beyond those that were read. */
static enum cr_tri when_not_shown(const struct cr_settings *settings, bool flag)
{
    return settings->cut || (!flag && settings->hidden_env) ? CR_MAYBE : CR_NO;
}

/* Each definition of gates adds to those before it (component-base cli/flag MapStringBool). A gate that a later
 * definition takes back still counts, which is the strict answer to a condition that asks for a gate that is off. */
static bool adds_up(const char *condition, size_t len)
{
    static const char gates[] = "--feature-gates";
    return len == sizeof gates - 1 && strncmp(condition, gates, len) == 0;
}

static enum cr_tri value_holds(const char *value, const char *pattern)
{
    if (!pattern)
        return CR_YES;
    if (!value)
        return CR_MAYBE;
    return fnmatch(pattern, value, 0) == 0 ? CR_YES : CR_NO;
}

/* The last definition counts, as for the process. A value that is not shown may be any. */
static enum cr_tri setting_holds(const struct cr_settings *settings, const char *condition)
{
    size_t len = strcspn(condition, "=");
    const char *pattern = condition[len] ? condition + len + 1 : NULL;
    enum cr_tri best = CR_NO;
    bool given = false;
    for (size_t i = settings->len; i > 0 && (!given || adds_up(condition, len)); i--) {
        const struct cr_setting *setting = &settings->items[i - 1];
        if (!names_setting(setting, condition, len))
            continue;
        enum cr_tri one = value_holds(setting->value, pattern);
        best = one > best ? one : best;
        given = true;
    }
    return given ? best : when_not_shown(settings, *condition == '-');
}

static enum cr_tri settings_hold(const struct cr_rule *rule, const struct cr_subject *subject)
{
    if (rule->settings.len == 0)
        return CR_YES;
    if (!subject->program->container)
        return CR_MAYBE;
    enum cr_tri best = CR_NO;
    for (size_t i = 0; i < rule->settings.len; i++) {
        enum cr_tri one = setting_holds(&subject->settings, rule->settings.items[i]);
        best = one > best ? one : best;
    }
    return best;
}

/* --- all together --- */

static enum cr_tri weaker(enum cr_tri a, enum cr_tri b)
{
    return a < b ? a : b;
}

bool cr_rule_is_conditional(const struct cr_rule *rule)
{
    return rule->has_versions || rule->tags.len || rule->mentions.len || rule->pod_mentions.len || rule->settings.len;
}

enum cr_tri cr_rule_holds(const struct cr_use *use, const struct cr_rule *rule, const struct cr_subject *subject)
{
    const struct cr_program *program = subject->program;
    if (rule->mentions.len && !container_mentions(program->pod_spec, program->container, &rule->mentions))
        return CR_NO;
    if (rule->pod_mentions.len && !pod_mentions(program->pod_spec, &rule->pod_mentions))
        return CR_NO;
    enum cr_tri answer = cr_subject_in_range(subject, rule->has_versions, &rule->versions);
    answer = weaker(answer, tags_hold(use, rule, subject));
    return weaker(answer, settings_hold(rule, subject));
}

/* --- the subject --- */

void cr_subject_init(struct cr_subject *subject, const struct cr_program *program)
{
    *subject = (struct cr_subject){.program = program};
    if (program->container)
        cr_settings_collect(program->container, &subject->settings);
    if (program->version) {
        subject->has_version = cr_version_from_tag(program->version, &subject->version);
        return;
    }
    if (program->component && program->component->library)
        return;
    subject->tag = cr_image_tag(cr_or_empty(cr_json_string_at(program->container, "image")));
    subject->has_version = cr_version_from_tag(subject->tag, &subject->version);
}

void cr_subject_dispose(struct cr_subject *subject)
{
    free(subject->tag);
    cr_settings_dispose(&subject->settings);
}
