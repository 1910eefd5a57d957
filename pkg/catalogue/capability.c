/* What a component does with a parameter and role, and which keys it accepts, at the version that its image tag shows.
 */
#include "catalogue/catalogue_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "catalogue/words.h"

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

bool cr_method_is_notified(enum cr_method method)
{
    return method == CR_METHOD_SIGNAL || method == CR_METHOD_HTTP || method == CR_METHOD_COMMAND;
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

/* --- the strictest of what may hold --- */

static struct cr_capability claim_of(const struct cr_rule *rule)
{
    return (struct cr_capability){
        .method = rule->method,
        .max_delay_ms = rule->max_delay_ms,
        .signal = rule->trigger,
        .says = rule->says,
        .verified = rule->confidence != CR_CONFIDENCE_MEMORY,
        .confidence = cr_confidence_names[rule->confidence],
        .source = rule->source,
    };
}

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t notified_delay_ms(const struct cr_capability *capability)
{
    return cr_method_is_notified(capability->method) ? capability->max_delay_ms : 0;
}

/* Keeps the worse of two. Among methods that reload by themselves, the longest delay of any; among methods that are
 * notified, the longest of these, since their delay begins when they are notified. */
static void keep_stricter(struct cr_capability *out, const struct cr_capability *other)
{
    struct cr_capability before = *out;
    if (cr_capability_rank(other) > cr_capability_rank(out))
        *out = *other;
    if (cr_method_default_delay_ms(out->method))
        out->max_delay_ms = longer(before.max_delay_ms, other->max_delay_ms);
    else if (cr_method_is_notified(out->method))
        out->max_delay_ms = longer(notified_delay_ms(&before), notified_delay_ms(other));
}

/* The first rule that holds; where that hangs on a version that is not known, the strictest of those that may. */
static struct cr_capability resolve(const struct cr_use *use, const struct cr_subject *subject)
{
    struct cr_capability result = {.method = CR_METHOD_UNKNOWN};
    bool found = false;
    bool differ = false;
    for (size_t i = 0; i < use->rules_len; i++) {
        enum cr_tri holds = cr_rule_holds(use, &use->rules[i], subject);
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
    const struct cr_strvec *lists[] = {&use->flags, &use->env, &use->config, &use->paths};
    for (size_t k = 0; name && k < cr_array_len(lists); k++)
        for (size_t i = 0; i < lists[k]->len; i++)
            if (cr_streq(lists[k]->items[i], name))
                return lists[k]->items[i];
    return NULL;
}

static bool resolve_uses(const struct cr_component *component, const struct cr_subject *subject, const char *parameter,
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

void cr_catalogue_capability(const struct cr_program *program, const char *parameter, enum cr_role role,
                             struct cr_capability *out)
{
    *out = (struct cr_capability){.method = CR_METHOD_UNKNOWN};
    const struct cr_component *component = program->component;
    CR_CLEANUP(cr_subject) struct cr_subject subject;
    cr_subject_init(&subject, program);
    if (!resolve_uses(component, &subject, parameter, role, out) && parameter)
        resolve_uses(component, &subject, NULL, role, out);

    char title[128];
    char phrase[192];
    cr_component_title(component, title, sizeof title);
    cr_capability_phrase(out, role, parameter, CR_NOTIFIER_NONE, phrase, sizeof phrase);
    int written = snprintf(out->why, sizeof out->why, "%s %s", title, phrase);
    (void)written;
}

/* --- key types --- */

/* "ECDSA" is any "ECDSA-P256". */
static bool is_key_type(const char *accepted, const char *key_type)
{
    size_t len = strlen(accepted);
    return strncmp(accepted, key_type, len) == 0 && (key_type[len] == '\0' || key_type[len] == '-');
}

static enum cr_acceptance accepts(const struct cr_key_types *entry, const char *key_type)
{
    if (entry->confidence == CR_CONFIDENCE_MEMORY)
        return CR_ACCEPTANCE_UNKNOWN;
    for (size_t i = 0; i < entry->types.len; i++)
        if (is_key_type(entry->types.items[i], key_type))
            return CR_ACCEPTANCE_YES;
    return CR_ACCEPTANCE_NO;
}

enum cr_acceptance cr_catalogue_accepts(const struct cr_program *program, const char *key_type, enum cr_role role)
{
    const struct cr_component *component = program->component;
    if (!component || !key_type || !*key_type)
        return CR_ACCEPTANCE_UNKNOWN;
    CR_CLEANUP(cr_subject) struct cr_subject subject;
    cr_subject_init(&subject, program);
    bool found = false;
    enum cr_acceptance answer = CR_ACCEPTANCE_UNKNOWN;
    for (size_t i = 0; i < component->key_types_len; i++) {
        const struct cr_key_types *entry = &component->key_types[i];
        enum cr_tri holds = cr_subject_in_range(&subject, entry->has_versions, &entry->versions);
        if (!(entry->roles & CR_ROLE_BIT(role)) || holds == CR_NO)
            continue;
        enum cr_acceptance one = accepts(entry, key_type);
        answer = !found || answer == one ? one : CR_ACCEPTANCE_UNKNOWN;
        found = true;
        if (holds == CR_YES)
            return answer;
    }
    /* Behind the last that may hold, nothing is said. */
    return CR_ACCEPTANCE_UNKNOWN;
}
