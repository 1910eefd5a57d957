/* What a component does with a parameter and role, at the version that its image tag shows. */
#include "rotation/catalogue_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

int64_t cr_method_default_delay_ms(enum cr_method method)
{
    switch (method) {
    case CR_METHOD_WATCH:
    case CR_METHOD_API_WATCH:
        return 5000;
    case CR_METHOD_PER_HANDSHAKE:
        return 1000;
    case CR_METHOD_POLL:
        return INT64_C(5) * 60 * 1000;
    case CR_METHOD_UNKNOWN:
    case CR_METHOD_SIGNAL:
    case CR_METHOD_HTTP:
    case CR_METHOD_COMMAND:
    case CR_METHOD_RESTART:
    case CR_METHOD_COUNT:
        break;
    }
    return 0;
}

int cr_capability_rank(const struct cr_capability *capability)
{
    static const int ranks[CR_METHOD_COUNT] = {
        [CR_METHOD_API_WATCH] = 0, [CR_METHOD_PER_HANDSHAKE] = 1, [CR_METHOD_WATCH] = 2,
        [CR_METHOD_POLL] = 3,      [CR_METHOD_COMMAND] = 4,       [CR_METHOD_HTTP] = 5,
        [CR_METHOD_SIGNAL] = 6,    [CR_METHOD_UNKNOWN] = 7,       [CR_METHOD_RESTART] = 8,
    };
    if (!capability->verified && capability->method != CR_METHOD_RESTART)
        return ranks[CR_METHOD_UNKNOWN];
    return (size_t)capability->method < CR_METHOD_COUNT ? ranks[capability->method] : ranks[CR_METHOD_UNKNOWN];
}

/* --- conditions of a rule --- */

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

/* A container as its rules see it. */
struct subject {
    const struct cr_json *pod_spec;
    const struct cr_json *container;
    char *tag; /* owned; NULL: none */
    bool has_version;
    struct cr_version_span version;
};

static enum cr_tri tags_hold(const struct cr_use *use, const struct cr_rule *rule, const struct subject *subject)
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

static enum cr_tri version_holds(const struct cr_rule *rule, const struct subject *subject)
{
    if (!rule->has_versions)
        return CR_YES;
    return subject->has_version ? cr_version_in_range(&rule->versions, &subject->version) : CR_MAYBE;
}

static enum cr_tri rule_holds(const struct cr_use *use, const struct cr_rule *rule, const struct subject *subject)
{
    if (rule->mentions.len && !container_mentions(subject->pod_spec, subject->container, &rule->mentions))
        return CR_NO;
    if (rule->pod_mentions.len && !pod_mentions(subject->pod_spec, &rule->pod_mentions))
        return CR_NO;
    enum cr_tri tags = tags_hold(use, rule, subject);
    enum cr_tri version = version_holds(rule, subject);
    return tags < version ? tags : version;
}

/* --- the strictest of what may hold --- */

static struct cr_capability claim_of(const struct cr_rule *rule)
{
    return (struct cr_capability){
        .method = rule->method,
        .max_delay_ms = rule->max_delay_ms,
        .signal = rule->trigger,
        .says = rule->says,
        .verified = rule->confidence != CR_CONFIDENCE_MEMORY,
        .source = rule->source,
    };
}

/* Keeps the worse of two; among those that reload by themselves, the longest delay of any. */
static void keep_stricter(struct cr_capability *out, const struct cr_capability *other)
{
    int64_t longest = out->max_delay_ms > other->max_delay_ms ? out->max_delay_ms : other->max_delay_ms;
    if (cr_capability_rank(other) > cr_capability_rank(out))
        *out = *other;
    if (cr_method_default_delay_ms(out->method))
        out->max_delay_ms = longest;
}

/* The first rule that holds; where that hangs on a version that is not known, the strictest of those that may. */
static struct cr_capability resolve(const struct cr_use *use, const struct subject *subject)
{
    struct cr_capability result = {.method = CR_METHOD_UNKNOWN};
    bool found = false;
    bool differ = false;
    for (size_t i = 0; i < use->rules_len; i++) {
        enum cr_tri holds = rule_holds(use, &use->rules[i], subject);
        if (holds == CR_NO)
            continue;
        struct cr_capability claim = claim_of(&use->rules[i]);
        differ = differ || (found && cr_capability_rank(&claim) != cr_capability_rank(&result));
        if (found)
            keep_stricter(&result, &claim);
        else
            result = claim;
        found = true;
        if (holds == CR_YES)
            break;
    }
    result.assumed = differ;
    return result;
}

const char *cr_use_parameter(const struct cr_use *use, const char *name)
{
    const struct cr_strvec *lists[] = {&use->flags, &use->env, &use->config};
    for (size_t k = 0; name && k < cr_array_len(lists); k++)
        for (size_t i = 0; i < lists[k]->len; i++)
            if (cr_streq(lists[k]->items[i], name))
                return lists[k]->items[i];
    return NULL;
}

static bool resolve_uses(const struct cr_component *component, const struct subject *subject, const char *parameter,
                         enum cr_role role, struct cr_capability *out)
{
    bool found = false;
    for (size_t i = 0; component && i < component->uses_len; i++) {
        const struct cr_use *use = &component->uses[i];
        if (use->hands_on || !(use->roles & CR_ROLE_BIT(role)) || (parameter && !cr_use_parameter(use, parameter)))
            continue;
        struct cr_capability one = resolve(use, subject);
        if (found)
            keep_stricter(out, &one);
        else
            *out = one;
        found = true;
    }
    return found;
}

void cr_catalogue_capability(const struct cr_component *component, const struct cr_json *pod_spec,
                             const struct cr_json *container, const char *parameter, enum cr_role role,
                             struct cr_capability *out)
{
    *out = (struct cr_capability){.method = CR_METHOD_UNKNOWN};
    const char *image = cr_or_empty(cr_json_string_at(container, "image"));
    cr_autofree char *tag = cr_image_tag(image);
    struct subject subject = {.pod_spec = pod_spec, .container = container, .tag = tag};
    subject.has_version = cr_version_from_tag(tag, &subject.version);
    if (!resolve_uses(component, &subject, parameter, role, out) && parameter)
        resolve_uses(component, &subject, NULL, role, out);

    char title[128];
    char phrase[192];
    cr_component_title(component, title, sizeof title);
    cr_capability_phrase(out, role, parameter, phrase, sizeof phrase);
    int written = snprintf(out->why, sizeof out->why, "%s %s", title, phrase);
    (void)written;
}
