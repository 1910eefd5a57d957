#include "cluster/secret_watches.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "cluster/secret_watches_internal.h"
#include "kube/object.h"

enum {
    BURST_MS = 50, /* policies come many at once (kubectl apply -f a folder), and each would be a decision */
    OWN_PATIENCE_MS = 5 * 1000, /* how long all others wait for the answer about one Secret or selector */
};

/* How long a look takes, and a scan of what is left over, follows from what all namespaces have, and any of them may
 * cause one. On the loop they have a fifth of its time, and a twentieth, at most. */
enum { PAUSES_OF_LOOK = 4, PAUSES_OF_SCAN = 19 };

static void schedule_refresh(struct cr_secret_watches *watches, int64_t delay_ms)
{
    int64_t now = cr_clock_monotonic_ms();
    int64_t due = now + delay_ms > watches->rests_until_ms ? now + delay_ms : watches->rests_until_ms;
    if (watches->armed && watches->due_ms <= due)
        return;
    watches->armed = true;
    watches->due_ms = due;
    cr_timer_arm(watches->timer, due - now);
}

/* --- what a watch asks and reports --- */

static bool wants(void *arg, const char *ns, const char *name)
{
    const struct cr_secret_watch *watch = arg;
    const struct cr_secret_group *group = watch->group;
    if (watch->kind != CR_SECRET_SHARED)
        return watch->kind == CR_SECRET_BY_LABEL || cr_streq(watch->what, name);
    /* Labels are not known yet: project looks at them. */
    if (watch->shared >= CR_SHARED_USUAL && cr_strmap_len(group->selectors))
        return true;
    /* An unwanted Secret is taken out of the store when the wanted ones are scanned, or when it changes. So a store is
     * always up to date, even if a policy came and went before the scan. */
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    const struct cr_secret_watches_options *options = &group->watches->options;
    return cr_strmap_get(group->wanted, key) || cr_policy_index_wants_secret(options->index, ns, name) ||
           cr_domain_index_wants_secret(options->domains, ns, name) || cr_secret_watch_holds(watch, ns, name);
}

static bool is_taken(const struct cr_secret_group *group, const struct cr_json *json)
{
    const char *ns = cr_or_empty(cr_json_string_at(json, "metadata", "namespace"));
    const char *name = cr_or_empty(cr_json_string_at(json, "metadata", "name"));
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    if (cr_strmap_get(group->wanted, key))
        return true;
    CR_CLEANUP(cr_strvec) struct cr_strvec policies = {0};
    cr_policy_index_of_secret(group->watches->options.index, ns, name, NULL, json, &policies);
    return policies.len > 0 || cr_domain_index_wants_secret(group->watches->options.domains, ns, name);
}

static bool is_wanted(const struct cr_secret_watch *watch, const struct cr_json *json)
{
    return watch->kind != CR_SECRET_SHARED || is_taken(watch->group, json);
}

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cr_secret_watch *watch = arg;
    const struct cr_secret_watches_options *options = &watch->group->watches->options;
    return is_wanted(watch, json) && options->project(options->arg, json, snapshot);
}

static void on_change(void *arg, const struct cr_change *change)
{
    const struct cr_secret_watch *watch = arg;
    struct cr_secret_watches *watches = watch->group->watches;
    CR_CLEANUP(cr_packed)
    struct cr_packed *other = cr_secret_group_find(watch->group, watch, change->ns, change->name);
    /* Which watch is needed depends on what exists, and of which type. */
    if (watches->options.scope != CR_SECRET_SCOPE_NAMED && (!change->before || !change->after) &&
        cr_informer_synced(watch->informer))
        schedule_refresh(watches, BURST_MS);
    /* The other informer delivers the pending notification. */
    if (other && (!change->after || !cr_decimal_less(cr_packed_resource_version(other),
                                                     cr_or_empty(cr_obj_resource_version(change->after->json)))))
        return;
    struct cr_change notified = *change;
    if (other && (!notified.before ||
                  cr_decimal_less(cr_packed_resource_version(notified.before), cr_packed_resource_version(other))))
        notified.before = other;
    watches->options.on_change(watches->options.arg, &notified);
}

/* No policy waits for what was held already. */
static void notify_if_missing(const struct cr_secret_group *group, const char *key)
{
    const struct cr_secret_watches_options *options = &group->watches->options;
    const char *name = strchr(key, '/') + 1;
    cr_autofree char *ns = cr_strndup(key, (size_t)(name - 1 - key));
    CR_CLEANUP(cr_packed) struct cr_packed *found = cr_secret_group_find(group, NULL, ns, name);
    if (!found)
        options->on_known(options->arg, ns, name);
}

static void notify_known(const struct cr_secret_watch *watch)
{
    const struct cr_secret_group *group = watch->group;
    const struct cr_secret_watches_options *options = &group->watches->options;
    if (watch->kind == CR_SECRET_BY_NAME) {
        cr_autofree char *key = cr_asprintf("%s/%s", watch->ns, watch->what);
        notify_if_missing(group, key);
    } else if (watch->kind == CR_SECRET_BY_LABEL) {
        options->on_known(options->arg, watch->ns, NULL);
    } else if (watch->shared == CR_SHARED_ALL) {
        for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->wanted, &it);)
            notify_if_missing(group, it.key);
    }
    if (watch->kind != CR_SECRET_SHARED || watch->shared < CR_SHARED_USUAL)
        return;
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->selectors, &it);) {
        cr_autofree char *ns = cr_strndup(it.key, strcspn(it.key, "/"));
        options->on_known(options->arg, ns, NULL);
    }
}

static void on_first_sync(void *arg)
{
    const struct cr_secret_watch *watch = arg;
    schedule_refresh(watch->group->watches, 0);
    notify_known(watch);
}

static void on_refused(void *arg)
{
    const struct cr_secret_watch *watch = arg;
    const struct cr_secret_watches_options *options = &watch->group->watches->options;
    schedule_refresh(watch->group->watches, 0);
    options->on_known(options->arg, watch->ns, watch->kind == CR_SECRET_BY_NAME ? watch->what : NULL);
}

/* --- one watch --- */

static void watch_free(void *value)
{
    struct cr_secret_watch *watch = value;
    if (!watch)
        return;
    free(watch->ns);
    free(watch->what);
    free(watch);
}

static struct cr_secret_watch *begin(struct cr_secret_group *group, enum cr_secret_watch_kind kind, const char *ns,
                                     const char *what, enum cr_shared_scope shared)
{
    const struct cr_secret_watches_options *options = &group->watches->options;
    struct cr_secret_watch *watch = cr_new(struct cr_secret_watch);
    *watch = (struct cr_secret_watch){.group = group,
                                      .kind = kind,
                                      .shared = shared,
                                      .ns = cr_strdup_or_null(ns),
                                      .what = cr_strdup_or_null(what),
                                      .began = group->generation,
                                      .desired = true};
    cr_autofree char *by_name = kind == CR_SECRET_BY_NAME ? cr_asprintf("metadata.name=%s", what) : NULL;
    const struct cr_informer_options informer = {
        .watch = {.resource = &cr_res_secrets,
                  .ns = ns,
                  .secret = true,
                  .apart = "data",
                  .label_selector = kind == CR_SECRET_BY_LABEL ? what : NULL,
                  .field_selector = by_name ? by_name : cr_shared_scope_field_selector(shared)},
        .wants = wants,
        .project = project,
        .on_change = on_change,
        .on_refused = on_refused,
        .on_first_sync = on_first_sync,
        .arg = watch,
        .partial = true,
        .on_demand = options->scope == CR_SECRET_SCOPE_NAMED,
        .patience_ms = kind == CR_SECRET_SHARED ? 0 : OWN_PATIENCE_MS,
    };
    watch->informer = cr_informer_new(options->client, options->loop, &informer);
    cr_manager_add_informer(options->manager, watch->informer);
    cr_informer_start(watch->informer);
    return watch;
}

static void add_key(void *keys, const char *ns, const char *name, struct cr_packed *packed)
{
    (void)packed;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    cr_strvec_add(keys, key);
}

/* Removes the informer, and with it what only it held. held: adds the keys that it had. */
static void end(struct cr_secret_watch *watch, struct cr_strvec *held)
{
    cr_store_visit(cr_informer_store(watch->informer), NULL, add_key, held);
    cr_manager_remove_informer(watch->group->watches->options.manager, watch->informer);
    watch_free(watch);
}

/* --- what is wanted --- */

static void note_in(struct cr_secret_group *group, struct cr_strmap *map, const char *ns, const char *what)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, what);
    struct cr_secret_wanted *wanted = cr_strmap_get(map, key);
    if (!wanted) {
        wanted = cr_new(struct cr_secret_wanted);
        wanted->since = group->generation;
        cr_strmap_set(map, key, wanted);
    }
    wanted->seen = group->generation;
}

static void note_secret(void *arg, const char *ns, const char *name)
{
    struct cr_secret_group *group = cr_secret_group_of(arg, ns);
    if (group && group->begun)
        note_in(group, group->wanted, ns, name);
}

static void note_selector(void *arg, const char *ns, const char *selector)
{
    struct cr_secret_group *group = cr_secret_group_of(arg, ns);
    if (group && group->begun)
        note_in(group, group->selectors, ns, selector);
}

static void drop_unwanted(struct cr_secret_group *group, struct cr_strmap *map, struct cr_strvec *gone)
{
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it);)
        if (((const struct cr_secret_wanted *)it.value)->seen != group->generation)
            cr_strvec_add(gone, it.key);
    for (size_t i = 0; i < gone->len; i++)
        cr_strmap_remove(map, gone->items[i]);
}

static void drop_all_unwanted(struct cr_secret_group *group)
{
    const struct cr_secret_watches_options *options = &group->watches->options;
    CR_CLEANUP(cr_strvec) struct cr_strvec secrets = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec selectors = {0};
    drop_unwanted(group, group->wanted, &secrets);
    drop_unwanted(group, group->selectors, &selectors);
    group->dropped |= secrets.len || selectors.len;
    for (size_t i = 0; i < secrets.len; i++)
        options->on_unwanted(options->arg, secrets.items[i]);
}

static void look_what_is_wanted(struct cr_secret_watches *watches)
{
    for (size_t i = 0; i < watches->groups_len; i++)
        watches->groups[i].generation++;
    cr_policy_index_visit_secrets(watches->options.index, note_secret, watches);
    cr_domain_index_visit_secrets(watches->options.domains, note_secret, watches);
    if (watches->options.scope != CR_SECRET_SCOPE_NAMED)
        cr_policy_index_visit_selectors(watches->options.index, note_selector, watches);
    for (size_t i = 0; i < watches->groups_len; i++)
        drop_all_unwanted(&watches->groups[i]);
}

/* --- unwanted Secrets leave shared watches, which ignore what happens to them --- */

struct leftovers {
    const struct cr_secret_watch *watch;
    struct cr_strvec keys;
};

static void find_leftover(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct leftovers *found = arg;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    if (cr_strmap_get(found->watch->group->wanted, key))
        return;
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(packed);
    if (found->watch->shared < CR_SHARED_USUAL || !is_wanted(found->watch, opened->json))
        cr_strvec_add(&found->keys, key);
}

static void drop_leftovers(const struct cr_secret_watch *shared)
{
    struct leftovers found = {.watch = shared};
    cr_store_visit(cr_informer_store(shared->informer), NULL, find_leftover, &found);
    for (size_t i = 0; i < found.keys.len; i++)
        cr_packed_unref(cr_store_remove(cr_informer_store(shared->informer), found.keys.items[i]));
    cr_strvec_dispose(&found.keys);
}

/* A store has only what is wanted even before (wants, project), but for what it has had. */
static void drop_leftovers_in_time(struct cr_secret_group *group)
{
    int64_t began = cr_clock_monotonic_ms();
    if (!group->dropped)
        return;
    if (began < group->scan_after_ms) {
        schedule_refresh(group->watches, group->scan_after_ms - began);
        return;
    }
    for (size_t i = 0; i < group->shared_watches_len; i++)
        drop_leftovers(group->shared_watches[i]);
    group->dropped = false;
    int64_t ended = cr_clock_monotonic_ms();
    group->scan_after_ms = ended + PAUSES_OF_SCAN * (ended - began);
}

/* --- what is known of each, for the decision --- */

static enum cr_shared_scope type_of(struct cr_packed *packed)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(packed);
    return cr_shared_scope_of_type(cr_json_string_at(opened->json, "type"));
}

/* What does not exist may come as any type. */
static enum cr_shared_scope least_of_missing(const struct cr_secret_group *group, const char *key, uint64_t since)
{
    const struct cr_secret_watch *named = cr_strmap_get(group->named, key);
    if (named && cr_secret_watch_is_synced(named))
        return CR_SHARED_ALL;
    enum cr_shared_scope least = CR_SHARED_TLS;
    for (size_t i = 0; i < group->shared_watches_len; i++) {
        const struct cr_secret_watch *shared = group->shared_watches[i];
        if (since > shared->began || !cr_secret_watch_is_synced(shared))
            continue;
        enum cr_shared_scope beyond = shared->shared < CR_SHARED_ALL ? shared->shared + 1 : CR_SHARED_ALL;
        least = beyond > least ? beyond : least;
    }
    return least;
}

static struct cr_watch_scope_item item_of_secret(const struct cr_secret_group *group, const char *key, uint64_t since)
{
    const struct cr_secret_watch *shared = cr_secret_group_shared(group);
    const char *name = strchr(key, '/') + 1;
    cr_autofree char *ns = cr_strndup(key, (size_t)(name - 1 - key));
    bool in_shared = shared && cr_secret_watch_holds(shared, ns, name);
    struct cr_watch_scope_item item = {.passed_over = shared && since > shared->began && !in_shared,
                                       .selected = cr_secret_group_selects(group, ns, name)};
    if (in_shared && shared->shared == CR_SHARED_TLS) {
        item.least = CR_SHARED_TLS;
        return item;
    }
    CR_CLEANUP(cr_packed) struct cr_packed *found = cr_secret_group_find(group, NULL, ns, name);
    item.least = found ? type_of(found) : least_of_missing(group, key, since);
    return item;
}

static struct cr_watch_scope_item item_of_selector(const struct cr_secret_group *group, uint64_t since)
{
    const struct cr_secret_watch *shared = cr_secret_group_shared(group);
    return (struct cr_watch_scope_item){.least = CR_SHARED_USUAL, .passed_over = shared && since > shared->began};
}

/* --- from the decision to watches --- */

/* Its list, or that there is no right to it. */
static bool has_answered(const struct cr_secret_watch *watch)
{
    struct cr_error err = {0};
    return cr_informer_synced(watch->informer) || cr_informer_refused(watch->informer, &err);
}

static void desire_own(struct cr_secret_group *group, enum cr_secret_watch_kind kind, const char *key)
{
    struct cr_strmap *map = kind == CR_SECRET_BY_NAME ? group->named : group->labelled;
    struct cr_secret_watch *watch = cr_strmap_get(map, key);
    if (watch) {
        watch->desired = true;
        return;
    }
    const char *what = strchr(key, '/') + 1;
    cr_autofree char *ns = cr_strndup(key, (size_t)(what - 1 - key));
    /* What is never selected is left out (cr_discover_selects). */
    cr_strmap_set(map, key, begin(group, kind, ns, what, kind == CR_SECRET_BY_LABEL ? CR_SHARED_USUAL : CR_SHARED_ALL));
}

static void desire_shared(struct cr_secret_group *group, struct cr_watch_scope decided)
{
    struct cr_secret_watch *present = cr_secret_group_shared(group);
    if (present && present->shared == decided.shared && !decided.relist)
        return;
    if (present)
        present->desired = false;
    if (decided.shared == CR_SHARED_NONE)
        return;
    group->shared_watches =
        cr_reallocarray(group->shared_watches, group->shared_watches_len + 1, sizeof(struct cr_secret_watch *));
    group->shared_watches[group->shared_watches_len++] =
        begin(group, CR_SECRET_SHARED, group->ns, NULL, decided.shared);
}

static void undesire(const struct cr_strmap *map)
{
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it);)
        ((struct cr_secret_watch *)it.value)->desired = false;
}

static struct cr_watch_scope_item *items_of(const struct cr_secret_group *group, struct cr_strvec *keys)
{
    struct cr_watch_scope_item *items =
        cr_calloc(cr_strmap_len(group->wanted) + cr_strmap_len(group->selectors) + 1, sizeof *items);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->wanted, &it); cr_strvec_add(keys, it.key))
        items[keys->len] = item_of_secret(group, it.key, ((const struct cr_secret_wanted *)it.value)->since);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->selectors, &it); cr_strvec_add(keys, it.key))
        items[keys->len] = item_of_selector(group, ((const struct cr_secret_wanted *)it.value)->since);
    return items;
}

static void decide(struct cr_secret_group *group)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    cr_autofree struct cr_watch_scope_item *items = items_of(group, &keys);
    const struct cr_secret_watch *present = cr_secret_group_shared(group);
    const struct cr_watch_scope_in in = {.scope = group->watches->options.scope,
                                         .limit = cr_watch_scope_share(group->watches->groups_len),
                                         .present = present ? present->shared : CR_SHARED_NONE,
                                         .listing = present && !has_answered(present),
                                         .items = items,
                                         .len = keys.len};
    const struct cr_watch_scope decided = cr_watch_scope_decide(&in);
    size_t secrets = cr_strmap_len(group->wanted);
    undesire(group->named);
    undesire(group->labelled);
    for (size_t i = 0; i < keys.len; i++)
        if (cr_watch_scope_own(&in, decided, &items[i]))
            desire_own(group, i < secrets ? CR_SECRET_BY_NAME : CR_SECRET_BY_LABEL, keys.items[i]);
    desire_shared(group, decided);
}

/* --- what is replaced ends --- */

static bool all_answered(const struct cr_strmap *map)
{
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it);) {
        const struct cr_secret_watch *watch = it.value;
        if (watch->desired && !has_answered(watch))
            return false;
    }
    return true;
}

/* A refused watch by name or label replaces the old one as well as it ever will; a refused shared watch does not, since
 * it is for more Secrets. */
static bool is_replaced(const struct cr_secret_group *group)
{
    const struct cr_secret_watch *shared = cr_secret_group_shared(group);
    return (!shared || cr_secret_watch_is_synced(shared)) && all_answered(group->named) &&
           all_answered(group->labelled);
}

/* Whether another watch has it as new. */
static bool is_handed_over(const struct cr_secret_watch *from, const char *key)
{
    const char *name = strchr(key, '/') + 1;
    cr_autofree char *ns = cr_strndup(key, (size_t)(name - 1 - key));
    CR_CLEANUP(cr_packed) struct cr_packed *packed = cr_store_get_packed(cr_informer_store(from->informer), ns, name);
    if (!packed)
        return true; /* deleted meanwhile */
    CR_CLEANUP(cr_packed) struct cr_packed *other = cr_secret_group_find(from->group, from, ns, name);
    if (other)
        return !cr_decimal_less(cr_packed_resource_version(other), cr_packed_resource_version(packed));
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *opened = cr_packed_open(packed);
    return !opened || !is_taken(from->group, opened->json);
}

/* Watches are no copies of each other: one in sync may have received less than the one that it replaces, and without
 * this check a Secret would go back in time, or away. A watch that has not received anything lately has nothing to hand
 * over. */
static bool has_handed_over(const struct cr_secret_watch *watch)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    bool complete = true;
    if (cr_secret_watch_is_synced(watch))
        cr_store_visit(cr_informer_store(watch->informer), NULL, add_key, &keys);
    for (size_t i = 0; complete && i < keys.len; i++)
        complete = is_handed_over(watch, keys.items[i]);
    if (!complete)
        schedule_refresh(watch->group->watches, BURST_MS);
    return complete;
}

/* wanted NULL: what a watch has may be wanted for another reason. Watches end one by one: if one hands over to another
 * that ends as well, that one has to hand over in its turn. */
static void end_own(struct cr_strmap *map, const struct cr_strmap *wanted, bool replaced, struct cr_strvec *held)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec undesired = {0};
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(map, &it);) {
        const struct cr_secret_watch *watch = it.value;
        if (!watch->desired)
            cr_strvec_add(&undesired, it.key);
    }
    for (size_t i = 0; i < undesired.len; i++) {
        const char *key = undesired.items[i];
        bool unwanted = wanted && !cr_strmap_get(wanted, key);
        if (unwanted || (replaced && has_handed_over(cr_strmap_get(map, key))))
            end(cr_strmap_take(map, key), held);
    }
}

static void end_shared(struct cr_secret_group *group, struct cr_strvec *held)
{
    for (size_t i = 0; i < group->shared_watches_len;) {
        struct cr_secret_watch *shared = group->shared_watches[i];
        if (shared->desired || !has_handed_over(shared)) {
            i++;
            continue;
        }
        /* The next watch is compared with what all others hold, and this one is no longer among them. */
        group->shared_watches_len--;
        memmove(group->shared_watches + i, group->shared_watches + i + 1,
                (group->shared_watches_len - i) * sizeof(struct cr_secret_watch *));
        end(shared, held);
    }
}

static void end_replaced(struct cr_secret_group *group)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec held = {0};
    bool replaced = is_replaced(group);
    end_own(group->named, group->wanted, replaced, &held);
    end_own(group->labelled, NULL, replaced, &held);
    if (replaced)
        end_shared(group, &held);
    /* When a Secret was deleted, the other watches saw it, but left the notification to these, which were behind. */
    for (size_t i = 0; i < held.len; i++)
        notify_if_missing(group, held.items[i]);
}

/* --- all of it --- */

static const char *shared_text(enum cr_shared_scope shared)
{
    const char *selector = cr_shared_scope_field_selector(shared);
    return shared == CR_SHARED_NONE ? "no shared one" : selector ? selector : "all";
}

static size_t count_held(const struct cr_secret_group *group)
{
    size_t count = 0;
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->named, &it);)
        count += cr_store_len(cr_informer_store(((const struct cr_secret_watch *)it.value)->informer));
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->labelled, &it);)
        count += cr_store_len(cr_informer_store(((const struct cr_secret_watch *)it.value)->informer));
    for (size_t i = 0; i < group->shared_watches_len; i++)
        count += cr_store_len(cr_informer_store(group->shared_watches[i]->informer));
    return count;
}

/* Logs once per change, when all watches have answered; changes of names only are not logged. */
static void log_scope(struct cr_secret_group *group)
{
    if (!is_replaced(group))
        return;
    const struct cr_secret_watch *shared = cr_secret_group_shared(group);
    cr_autofree char *text =
        cr_asprintf("%s, %zu by name, %zu by label", shared_text(shared ? shared->shared : CR_SHARED_NONE),
                    cr_strmap_len(group->named), cr_strmap_len(group->labelled));
    if (cr_streq(group->logged, text))
        return;
    cr_strset(&group->logged, text);
    cr_autofree char *held = cr_asprintf("%zu", count_held(group));
    cr_log(CR_LOG_INFO, "watches of Secrets", {"namespace", group->ns}, {"watches", text}, {"objects", held});
}

static void look(struct cr_secret_watches *watches)
{
    int64_t began = cr_clock_monotonic_ms();
    pthread_rwlock_wrlock(&watches->lock);
    look_what_is_wanted(watches);
    for (size_t i = 0; i < watches->groups_len; i++) {
        struct cr_secret_group *group = &watches->groups[i];
        if (!group->begun)
            continue;
        drop_leftovers_in_time(group);
        decide(group);
        end_replaced(group);
        log_scope(group);
    }
    pthread_rwlock_unlock(&watches->lock);
    int64_t ended = cr_clock_monotonic_ms();
    watches->rests_until_ms = ended + PAUSES_OF_LOOK * (ended - began);
}

static void on_timer(void *arg)
{
    struct cr_secret_watches *watches = arg;
    watches->armed = false;
    if (cr_clock_monotonic_ms() < watches->rests_until_ms) /* armed before the last look had ended */
        schedule_refresh(watches, 0);
    else
        look(watches);
}

void cr_secret_watches_begin(struct cr_secret_watches *watches, const char *ns)
{
    for (size_t i = 0; i < watches->groups_len; i++)
        if (!watches->groups[i].ns || cr_streq(watches->groups[i].ns, ns))
            watches->groups[i].begun = true;
    look(watches);
}

void cr_secret_watches_update(struct cr_secret_watches *watches)
{
    schedule_refresh(watches, BURST_MS);
}

static void group_init(struct cr_secret_group *group, struct cr_secret_watches *watches, const char *ns)
{
    *group = (struct cr_secret_group){.watches = watches,
                                      .ns = cr_strdup_or_null(ns),
                                      .wanted = cr_strmap_new(free),
                                      .selectors = cr_strmap_new(free),
                                      .named = cr_strmap_new(watch_free),
                                      .labelled = cr_strmap_new(watch_free)};
}

static void group_dispose(struct cr_secret_group *group)
{
    cr_strmap_free(group->wanted);
    cr_strmap_free(group->selectors);
    cr_strmap_free(group->named);
    cr_strmap_free(group->labelled);
    for (size_t i = 0; i < group->shared_watches_len; i++)
        watch_free(group->shared_watches[i]);
    free(group->shared_watches);
    free(group->logged);
    free(group->ns);
}

struct cr_secret_watches *cr_secret_watches_new(const struct cr_secret_watches_options *options)
{
    struct cr_secret_watches *watches = cr_new(struct cr_secret_watches);
    watches->options = *options;
    watches->groups_len = options->namespaces->len ? options->namespaces->len : 1;
    watches->groups = cr_calloc(watches->groups_len, sizeof *watches->groups);
    for (size_t i = 0; i < watches->groups_len; i++)
        group_init(&watches->groups[i], watches, options->namespaces->len ? options->namespaces->items[i] : NULL);
    watches->timer = cr_timer_new(options->loop, on_timer, watches);
    pthread_rwlock_init(&watches->lock, NULL);
    return watches;
}

void cr_secret_watches_free(struct cr_secret_watches *watches)
{
    if (!watches)
        return;
    cr_timer_free(watches->timer);
    for (size_t i = 0; i < watches->groups_len; i++)
        group_dispose(&watches->groups[i]);
    free(watches->groups);
    pthread_rwlock_destroy(&watches->lock);
    free(watches);
}
