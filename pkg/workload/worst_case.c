#include "workload/worst_case.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/strings.h"

/* --- a count or a percentage (k8s.io/apimachinery/pkg/util/intstr) --- */

enum rounding { ROUND_DOWN, ROUND_UP };

/* As written in the field, and what is meant when it is absent. */
struct share {
    const struct cr_json *value;
    const char *fallback; /* "25%", "1" */
};

static void print_share(const struct share *share, char *out, size_t size)
{
    if (cr_json_is_number(share->value))
        snprintf(out, size, "%lld", (long long)cr_json_int(share->value, -1));
    else
        snprintf(out, size, "%.32s", share->value ? cr_or_empty(cr_json_string(share->value)) : share->fallback);
}

/* Digits alone; -1: it is something else, or too big to be meant. */
static int64_t parse_digits(const char *text, size_t len)
{
    int64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + (text[i] - '0');
        if (n > INT_MAX)
            return -1;
    }
    return len ? n : -1;
}

/* Of total; -1: neither a count nor a percentage. */
static int resolve(const struct share *share, int total, enum rounding rounding)
{
    char text[40];
    print_share(share, text, sizeof text);
    size_t len = strlen(text);
    bool percent = len > 0 && text[len - 1] == '%';
    bool is_text = share->value && !cr_json_is_number(share->value);
    int64_t n = parse_digits(text, percent ? len - 1 : len);
    if (n < 0 || (is_text && !percent))
        return -1;
    if (percent)
        n = (n * total + (rounding == ROUND_UP ? 99 : 0)) / 100;
    return n > INT_MAX ? INT_MAX : (int)n;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* --- verdicts --- */

static void say(struct cr_worst_case *out, const char *fmt, ...) CR_PRINTF(2, 3);
static void say(struct cr_worst_case *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->text, sizeof out->text, fmt, args);
    va_end(args);
}

static void replaces_nothing(struct cr_worst_case *out)
{
    out->way = CR_WORST_NOTHING;
    out->replaced = out->unavailable = out->surge = 0;
}

static void is_unknown(struct cr_worst_case *out)
{
    out->way = CR_WORST_UNKNOWN;
    out->replaced = out->unavailable = out->desired;
    out->surge = 0;
}

static void on_delete(struct cr_worst_case *out)
{
    replaces_nothing(out);
    say(out, "strategy OnDelete replaces a pod only when it is deleted");
}

static void unknown_strategy(struct cr_worst_case *out, const char *type)
{
    is_unknown(out);
    say(out, "strategy %.32s is not known", type);
}

static void unreadable(struct cr_worst_case *out, const char *field, const struct share *share)
{
    char text[40];
    print_share(share, text, sizeof text);
    is_unknown(out);
    say(out, "%s '%s' is neither a count nor a percentage", field, text);
}

/* Sets unavailable and surge by the fields of a rolling update, and says so. False: they cannot be read, which is then
 * the verdict. */
static bool rolls(struct cr_worst_case *out, const struct share *unavailable, const struct share *surge,
                  enum rounding rounding)
{
    char unavailable_text[40];
    char surge_text[40];
    print_share(unavailable, unavailable_text, sizeof unavailable_text);
    print_share(surge, surge_text, sizeof surge_text);
    out->unavailable = resolve(unavailable, out->desired, rounding);
    out->surge = resolve(surge, out->desired, ROUND_UP);
    if (out->unavailable < 0) {
        unreadable(out, "maxUnavailable", unavailable);
        return false;
    }
    if (out->surge < 0) {
        unreadable(out, "maxSurge", surge);
        return false;
    }
    /* Both may round to none, and then nothing would ever move. */
    if (out->unavailable == 0 && out->surge == 0)
        out->unavailable = 1;
    out->unavailable = least(out->unavailable, out->desired);
    say(out, "maxUnavailable %s, maxSurge %s of %d pods", unavailable_text, surge_text, out->desired);
    return true;
}

/* --- kinds --- */

static int replicas_of(const struct cr_json *workload)
{
    int64_t n = cr_json_int_at(workload, 1, "spec", "replicas");
    return n < 0 || n > INT_MAX ? 1 : (int)n;
}

static const char *type_of(const struct cr_json *strategy)
{
    const char *type = cr_json_string_at(strategy, "type");
    return type ? type : "RollingUpdate";
}

static void of_deployment(const struct cr_json *workload, struct cr_worst_case *out)
{
    const struct cr_json *strategy = cr_json_at(workload, "spec", "strategy");
    const struct cr_json *rolling = cr_json_get(strategy, "rollingUpdate");
    const struct share unavailable = {cr_json_get(rolling, "maxUnavailable"), "25%"};
    const struct share surge = {cr_json_get(rolling, "maxSurge"), "25%"};
    out->desired = out->replaced = replicas_of(workload);
    if (cr_streq(type_of(strategy), "Recreate")) {
        out->unavailable = out->desired;
        say(out, "strategy Recreate takes all pods away before it starts new ones");
    } else if (cr_streq(type_of(strategy), "RollingUpdate")) {
        (void)rolls(out, &unavailable, &surge, ROUND_DOWN);
    } else {
        unknown_strategy(out, type_of(strategy));
    }
}

/* At least one, where a small percentage rounds to none. */
static void roll_stateful_set(const struct cr_json *rolling, struct cr_worst_case *out)
{
    const struct share unavailable = {cr_json_get(rolling, "maxUnavailable"), "1"};
    const struct share no_surge = {NULL, "0"};
    int64_t partition = cr_json_int_at(rolling, 0, "partition");
    if (!rolls(out, &unavailable, &no_surge, ROUND_DOWN))
        return;
    if (partition >= out->desired && out->desired > 0) {
        replaces_nothing(out);
        say(out, "partition %lld leaves all %d pods as they are", (long long)partition, out->desired);
        return;
    }
    char strategy[40];
    print_share(&unavailable, strategy, sizeof strategy);
    out->replaced = out->desired - (partition > 0 ? (int)partition : 0);
    out->unavailable = least(out->unavailable, out->replaced);
    if (partition > 0)
        say(out, "maxUnavailable %s of %d pods, of which partition %lld leaves %lld as they are", strategy,
            out->desired, (long long)partition, (long long)partition);
    else
        say(out, "a StatefulSet, which cannot surge, with maxUnavailable %s of %d pods", strategy, out->desired);
}

static void of_stateful_set(const struct cr_json *workload, struct cr_worst_case *out)
{
    const struct cr_json *strategy = cr_json_at(workload, "spec", "updateStrategy");
    out->desired = out->replaced = replicas_of(workload);
    if (cr_streq(type_of(strategy), "OnDelete"))
        on_delete(out);
    else if (cr_streq(type_of(strategy), "RollingUpdate"))
        roll_stateful_set(cr_json_get(strategy, "rollingUpdate"), out);
    else
        unknown_strategy(out, type_of(strategy));
}

/* On how many nodes it should be is known only from its status. */
static bool is_counted(const struct cr_json *workload)
{
    int64_t observed = cr_json_int_at(workload, 0, "status", "observedGeneration");
    return observed > 0 && observed >= cr_json_int_at(workload, 0, "metadata", "generation");
}

static void of_daemon_set(const struct cr_json *workload, struct cr_worst_case *out)
{
    const struct cr_json *strategy = cr_json_at(workload, "spec", "updateStrategy");
    const struct cr_json *rolling = cr_json_get(strategy, "rollingUpdate");
    const struct share unavailable = {cr_json_get(rolling, "maxUnavailable"), "1"};
    const struct share surge = {cr_json_get(rolling, "maxSurge"), "0"};
    int64_t nodes = cr_json_int_at(workload, 0, "status", "desiredNumberScheduled");
    out->desired = out->replaced = nodes < 0 || nodes > INT_MAX ? 0 : (int)nodes;
    if (cr_streq(type_of(strategy), "OnDelete")) {
        on_delete(out);
    } else if (!cr_streq(type_of(strategy), "RollingUpdate")) {
        unknown_strategy(out, type_of(strategy));
    } else if (!is_counted(workload)) {
        is_unknown(out);
        say(out, "its controller has not yet said on how many nodes it should be");
    } else {
        (void)rolls(out, &unavailable, &surge, ROUND_UP); /* unlike the others */
    }
}

static void of_replica_set(const struct cr_json *workload, struct cr_worst_case *out)
{
    out->desired = replicas_of(workload);
    replaces_nothing(out);
    say(out, "a ReplicaSet without a Deployment replaces no pod when its template changes");
}

/* The restart takes no step of its canary or blue-green strategy, only how many pods may go; at least one. */
static void of_argo_rollout(const struct cr_json *workload, struct cr_worst_case *out)
{
    const struct cr_json *strategy = cr_json_at(workload, "spec", "strategy");
    const struct cr_json *canary = cr_json_get(strategy, "canary");
    const struct cr_json *settings = canary ? canary : cr_json_get(strategy, "blueGreen");
    const struct share unavailable = {cr_json_get(settings, "maxUnavailable"), "25%"};
    const struct share no_surge = {NULL, "0"};
    out->desired = out->replaced = replicas_of(workload);
    out->way = CR_WORST_EVICTS;
    if (rolls(out, &unavailable, &no_surge, ROUND_DOWN))
        say(out, "the controller of Argo Rollouts evicts up to %d of %d pods at a time", out->unavailable,
            out->desired);
}

void cr_worst_case_of(const char *kind, const struct cr_json *workload, struct cr_worst_case *out)
{
    static void (*const rules[CR_UPDATES])(const struct cr_json *, struct cr_worst_case *) = {
        [CR_UPDATE_DEPLOYMENT] = of_deployment,     [CR_UPDATE_STATEFUL_SET] = of_stateful_set,
        [CR_UPDATE_DAEMON_SET] = of_daemon_set,     [CR_UPDATE_NOTHING] = of_replica_set,
        [CR_UPDATE_ARGO_ROLLOUT] = of_argo_rollout,
    };
    enum cr_kind_update update = cr_consumer_kind_of(kind)->update;
    *out = (struct cr_worst_case){.way = CR_WORST_ROLLS};
    if (update != CR_UPDATE_UNKNOWN) {
        rules[update](workload, out);
        return;
    }
    out->desired = replicas_of(workload);
    is_unknown(out);
    say(out, "how a %.64s replaces its pods is not known", cr_or_empty(kind));
}
