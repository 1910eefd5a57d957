#include "api/policy_order.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

bool cr_policy_order_decode(const struct cr_node *consumer, struct cr_policy_consumer *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(consumer, "after", CR_POLICY_AFTER_MAX, &array, err))
        return false;
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        const char *name = cr_json_string(item);
        if (!name || !*name)
            return cr_error_set(err, CR_ERR_INVALID, "%s must be a list of names of consumers", array.path);
        cr_strvec_add_unique(&out->after, name);
    }
    return true;
}

/* --- names --- */

static bool is_listed(const struct cr_node *spec, const char *name)
{
    const struct cr_json *consumers = cr_json_get(spec->json, "consumers");
    for (const struct cr_json *item = cr_json_first(consumers); item; item = cr_json_next(item))
        if (cr_streq(cr_json_string_at(item, "name"), name))
            return true;
    return false;
}

static bool names_are_listed(const struct cr_node *spec, const struct cr_policy_consumer *consumer,
                             struct cr_error *err)
{
    for (size_t i = 0; i < consumer->after.len; i++)
        if (!is_listed(spec, consumer->after.items[i]))
            return cr_error_set(err, CR_ERR_INVALID, "consumer '%s': after[%zu]: '%s' is none of spec.consumers",
                                consumer->name, i, consumer->after.items[i]);
    return true;
}

/* --- circles --- */

struct walk {
    const struct cr_policy *policy;
    size_t way[CR_POLICY_CONSUMERS_MAX]; /* from the consumer that it began at */
    size_t way_len;
    bool cleared[CR_POLICY_CONSUMERS_MAX]; /* no circle can be come to from there */
};

/* policy->consumers_len: it is not acted on. */
static size_t index_of(const struct cr_policy *policy, const char *name)
{
    size_t i = 0;
    while (i < policy->consumers_len && !cr_streq(policy->consumers[i].name, name))
        i++;
    return i;
}

static bool say_circle(const struct walk *walk, size_t first, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    size_t len = walk->way_len;
    for (size_t i = first; i < len; i++)
        cr_buf_printf(&text, "%s'%s' comes after '%s'", i > first ? ", " : "",
                      walk->policy->consumers[walk->way[i]].name,
                      walk->policy->consumers[walk->way[i + 1 < len ? i + 1 : first]].name);
    return cr_error_set(err, CR_ERR_INVALID, "spec.consumers: %s: none could be the first", cr_buf_text(&text));
}

/* On the way already: a circle. */
static bool is_new_on_way(const struct walk *walk, size_t consumer, struct cr_error *err)
{
    for (size_t i = 0; i < walk->way_len; i++)
        if (walk->way[i] == consumer)
            return say_circle(walk, i, err);
    return true;
}

/* As deep as there are consumers, at most. */
static bool follow(struct walk *walk, size_t consumer, struct cr_error *err)
{
    const struct cr_strvec *after = &walk->policy->consumers[consumer].after;
    if (!is_new_on_way(walk, consumer, err))
        return false;
    if (walk->cleared[consumer])
        return true;
    walk->way[walk->way_len++] = consumer;
    for (size_t i = 0; i < after->len; i++) {
        size_t before = index_of(walk->policy, after->items[i]);
        if (before < walk->policy->consumers_len && !follow(walk, before, err))
            return false;
    }
    walk->way_len--;
    walk->cleared[consumer] = true;
    return true;
}

bool cr_policy_order_check(const struct cr_node *spec, const struct cr_policy *policy, struct cr_error *err)
{
    struct walk walk = {.policy = policy};
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (!names_are_listed(spec, &policy->consumers[i], err))
            return false;
    for (size_t i = 0; i < policy->consumers_len; i++)
        if (!follow(&walk, i, err))
            return false;
    return true;
}
