/* The catalogue's facts in words: parts of the sentences that explain decisions to people. */
#include "catalogue/words.h"

#include <stdio.h>

#include "base/strings.h"
#include "catalogue/catalogue_internal.h"

const char *cr_role_words(enum cr_role role)
{
    static const char *const words[CR_ROLE_COUNT] = {
        [CR_ROLE_SERVER_LEAF] = "server leaf", [CR_ROLE_CLIENT_LEAF] = "client leaf", [CR_ROLE_CLIENT_CA] = "client CA",
        [CR_ROLE_SERVER_CA] = "server CA",     [CR_ROLE_OPAQUE] = "opaque material",
    };
    return (size_t)role < CR_ROLE_COUNT ? words[role] : "";
}

/* snprintf with a result that is meant to be cut. */
static void put(char *out, size_t size, const char *fmt, ...) CR_PRINTF(3, 4);
static void put(char *out, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out, size, fmt, args);
    va_end(args);
}

void cr_component_title(const struct cr_component *component, char *out, size_t size)
{
    if (!component)
        put(out, size, "%s", "an unknown component");
    else if (component->title)
        put(out, size, "%s (%s)", component->title, component->name);
    else
        put(out, size, "%s", component->name);
}

/* "its client CA (GRPC_CLIENT_TLS_CACERT)". */
static void object_of(enum cr_role role, const char *parameter, char *out, size_t size)
{
    if (parameter)
        put(out, size, "its %s (%s)", cr_role_words(role), parameter);
    else
        put(out, size, "its %s", cr_role_words(role));
}

/* "reads its server leaf again on SIGHUP, which its certroll-sidecar sends". */
static void notified_phrase(const struct cr_capability *capability, const char *object, enum cr_notifier notifier,
                            char *out, size_t size)
{
    static const char *const nouns[CR_METHOD_COUNT] = {
        [CR_METHOD_HTTP] = "an HTTP request", [CR_METHOD_COMMAND] = "a command"};
    const char *noun = cr_or_empty(nouns[capability->method]);
    const char *what = capability->signal ? capability->signal : noun[0] ? "" : "a signal";
    put(out, size, "reads %s again%s on %s%s%s", object, notifier == CR_NOTIFIER_SIDECAR ? "" : " only", noun,
        noun[0] && what[0] ? ", " : "", what);
}

/* Who notifies the program. */
static const char *notifier_clause(enum cr_method method, enum cr_notifier notifier)
{
    bool gives = method == CR_METHOD_COMMAND;
    switch (notifier) {
    case CR_NOTIFIER_NONE:
        return gives ? ", which nothing in the pod gives" : ", which nothing in the pod sends";
    case CR_NOTIFIER_SIDECAR:
        return gives ? ", which its certroll-sidecar gives" : ", which its certroll-sidecar sends";
    case CR_NOTIFIER_UNNAMED:
        break;
    }
    return "";
}

static void method_phrase(const struct cr_capability *capability, const char *object, enum cr_notifier notifier,
                          char *out, size_t size)
{
    switch (capability->method) {
    case CR_METHOD_WATCH:
        put(out, size, "watches %s", object);
        return;
    case CR_METHOD_PER_HANDSHAKE:
        put(out, size, "reads %s at each handshake", object);
        return;
    case CR_METHOD_POLL:
        put(out, size, "polls %s", object);
        return;
    case CR_METHOD_API_WATCH:
        put(out, size, "watches %s through the API server", object);
        return;
    case CR_METHOD_SIGNAL:
    case CR_METHOD_HTTP:
    case CR_METHOD_COMMAND:
        notified_phrase(capability, object, notifier, out, size);
        return;
    case CR_METHOD_RESTART:
        put(out, size, "reads %s once at start", object);
        return;
    case CR_METHOD_UNKNOWN:
    case CR_METHOD_COUNT:
        break;
    }
    put(out, size, "is not known to reload %s", object);
}

void cr_capability_phrase(const struct cr_capability *capability, enum cr_role role, const char *parameter,
                          enum cr_notifier notifier, char *out, size_t size)
{
    char object[96];
    char phrase[192];
    object_of(role, parameter, object, sizeof object);
    bool doubtful = !capability->verified && capability->source && capability->method != CR_METHOD_UNKNOWN &&
                    capability->method != CR_METHOD_RESTART;
    bool notified = !doubtful && cr_method_is_notified(capability->method);
    if (doubtful)
        put(phrase, sizeof phrase, "is said to reload %s, but nobody has verified it", object);
    else if (capability->says)
        put(phrase, sizeof phrase, "%s", capability->says);
    else
        method_phrase(capability, object, notifier, phrase, sizeof phrase);
    put(out, size, "%s%s%s", phrase, notified ? notifier_clause(capability->method, notifier) : "",
        capability->assumed ? " (the strictest, as its image tells no known version)" : "");
}
