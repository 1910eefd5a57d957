#include "cluster/policy_index.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "kube/object.h"
#include "workload/discover.h"

/* What is known of one policy. */
struct entry {
    char *key; /* "ns/name" */
    char *ns;  /* its first part */
    /* Keys of by_place under which the policy is found; those of Secrets also when the policy is not usable. */
    struct cr_strvec places;
    struct cr_policy *policy; /* of one with a selector; NULL: names say all */
    size_t comparisons;       /* of its selector with one label, at most */
    bool usable;
    bool discovers;
    bool says_conflict;
    bool waits_for_budget;
    bool deleting;
    int64_t generation;
    uint64_t added_in; /* the last question that it was added to the answer of */
};

struct entries {
    struct entry **items; /* borrowed */
    size_t len;
};

struct cr_policy_index {
    pthread_mutex_t lock;
    struct cr_strmap *policies;  /* "ns/name" → struct entry, owned */
    struct cr_strmap *by_place;  /* "ns/Secret/name" and "ns/Deployment/name" → struct entries, never empty */
    struct cr_strmap *selecting; /* namespace → struct entries, never empty */
    struct cr_strmap *waiting;   /* the same of those that wait for a budget */
    uint64_t question;
    size_t comparisons_left; /* of the question */
};

/* A millisecond or so: the loop asks, on which all watches of all namespaces depend. */
enum { COMPARISONS_MAX = 256 * 1024 };

static const char secret_kind[] = "Secret";

static void entry_free(void *value)
{
    struct entry *entry = value;
    if (!entry)
        return;
    free(entry->key);
    free(entry->ns);
    cr_strvec_dispose(&entry->places);
    cr_policy_free(entry->policy);
    free(entry);
}

static void entries_free(void *value)
{
    struct entries *entries = value;
    free(entries->items);
    free(entries);
}

struct cr_policy_index *cr_policy_index_new(void)
{
    struct cr_policy_index *index = cr_new(struct cr_policy_index);
    pthread_mutex_init(&index->lock, NULL);
    index->policies = cr_strmap_new(entry_free);
    index->by_place = cr_strmap_new(entries_free);
    index->selecting = cr_strmap_new(entries_free);
    index->waiting = cr_strmap_new(entries_free);
    return index;
}

void cr_policy_index_free(struct cr_policy_index *index)
{
    if (!index)
        return;
    cr_strmap_free(index->waiting);
    cr_strmap_free(index->selecting);
    cr_strmap_free(index->by_place);
    cr_strmap_free(index->policies);
    pthread_mutex_destroy(&index->lock);
    free(index);
}

/* --- one policy --- */

static char *place_of(const char *ns, const char *kind, const char *name)
{
    return cr_asprintf("%s/%s/%s", cr_or_empty(ns), kind, cr_or_empty(name));
}

static void add_place(struct entry *entry, const char *kind, const char *name)
{
    cr_autofree char *place = place_of(entry->ns, kind, name);
    cr_strvec_add_unique(&entry->places, place);
}

static bool says_conflict(const struct cr_json *object)
{
    const struct cr_json *conditions = cr_json_at(object, "status", "conditions");
    for (const struct cr_json *c = cr_json_first(conditions); c; c = cr_json_next(c))
        if (cr_streq(cr_json_string_at(c, "type"), "Conflict"))
            return cr_streq(cr_json_string_at(c, "status"), "True");
    return false;
}

/* Each eviction needs a budget's leave, and what holds the next one for a moment is not in the status. */
static bool is_being_evicted(const struct cr_json *consumer)
{
    return cr_json_get(consumer, "evicting") &&
           cr_streq(cr_json_string_at(consumer, "state"), cr_consumer_state_name(CR_CONSUMER_RESTARTING));
}

static bool waits_for_budget(const struct cr_json *object)
{
    const struct cr_json *consumers = cr_json_at(object, "status", "consumers");
    for (const struct cr_json *c = cr_json_first(consumers); c; c = cr_json_next(c)) {
        enum cr_hold hold = CR_HOLD_NONE;
        if (is_being_evicted(c) ||
            (cr_hold_parse(cr_json_string_at(c, "blockedReason"), &hold) && cr_hold_waits_for_budget(hold)))
            return true;
    }
    return false;
}

static void add_remembered(struct entry *entry, const struct cr_json *object)
{
    const struct cr_json *secrets = cr_json_at(object, "status", "secrets");
    for (const struct cr_json *c = cr_json_first(secrets); c; c = cr_json_next(c))
        if (cr_json_string_at(c, "name"))
            add_place(entry, secret_kind, cr_json_string_at(c, "name"));
}

static void add_named(struct entry *entry, const struct cr_policy *policy)
{
    for (size_t i = 0; i < policy->secrets_len; i++)
        add_place(entry, secret_kind, policy->secrets[i].name);
    for (size_t i = 0; i < policy->consumers_len; i++)
        add_place(entry, policy->consumers[i].kind, policy->consumers[i].target);
}

static size_t comparisons_of(const struct cr_selector *selector)
{
    size_t count = 0;
    for (size_t i = 0; i < selector->len; i++)
        count += 1 + selector->items[i].values.len;
    return count;
}

/* Takes policy. */
static struct entry *entry_new(const struct cr_json *object, struct cr_policy *policy)
{
    struct entry *entry = cr_new(struct entry);
    entry->key = cr_obj_key(object);
    entry->ns = cr_strdup(cr_or_empty(cr_obj_namespace(object)));
    entry->generation = cr_obj_generation(object);
    entry->deleting = cr_obj_deleting(object);
    entry->says_conflict = says_conflict(object);
    entry->waits_for_budget = policy && waits_for_budget(object);
    entry->usable = policy != NULL;
    add_remembered(entry, object);
    if (!policy)
        return entry;
    add_named(entry, policy);
    entry->discovers = policy->discover.enabled;
    entry->comparisons = comparisons_of(&policy->secret_selector);
    if (policy->secret_selector.len)
        entry->policy = policy;
    else
        cr_policy_free(policy);
    return entry;
}

/* --- lists of them --- */

static void list(struct cr_strmap *map, const char *key, struct entry *entry)
{
    struct entries *entries = cr_strmap_get(map, key);
    if (!entries) {
        entries = cr_new(struct entries);
        cr_strmap_set(map, key, entries);
    }
    entries->items = cr_reallocarray(entries->items, entries->len + 1, sizeof(struct entry *));
    entries->items[entries->len++] = entry;
}

static void unlist(struct cr_strmap *map, const char *key, const struct entry *entry)
{
    struct entries *entries = cr_strmap_get(map, key);
    for (size_t i = 0; entries && i < entries->len; i++) {
        if (entries->items[i] != entry)
            continue;
        entries->items[i] = entries->items[--entries->len];
        break;
    }
    if (entries && !entries->len)
        cr_strmap_remove(map, key);
}

static void list_all(struct cr_policy_index *index, struct entry *entry)
{
    for (size_t i = 0; entry->usable && i < entry->places.len; i++)
        list(index->by_place, entry->places.items[i], entry);
    if (entry->policy)
        list(index->selecting, entry->ns, entry);
    if (entry->waits_for_budget)
        list(index->waiting, entry->ns, entry);
}

static void unlist_all(struct cr_policy_index *index, const struct entry *entry)
{
    for (size_t i = 0; entry->usable && i < entry->places.len; i++)
        unlist(index->by_place, entry->places.items[i], entry);
    if (entry->policy)
        unlist(index->selecting, entry->ns, entry);
    if (entry->waits_for_budget)
        unlist(index->waiting, entry->ns, entry);
}

/* --- answers: under the lock, and none twice for one question --- */

static void answer(struct cr_policy_index *index, struct entry *entry, struct cr_strvec *keys)
{
    if (entry->added_in != index->question)
        cr_strvec_add(keys, entry->key);
    entry->added_in = index->question;
}

typedef bool (*counts_fn)(const struct entry *entry);

static bool any(const struct entry *entry)
{
    (void)entry;
    return true;
}

static bool discovers(const struct entry *entry)
{
    return entry->discovers;
}

static bool waits_for_others(const struct entry *entry)
{
    return entry->says_conflict;
}

static void answer_place(struct cr_policy_index *index, const char *place, counts_fn counts, struct cr_strvec *keys)
{
    const struct entries *entries = cr_strmap_get(index->by_place, place);
    for (size_t i = 0; entries && i < entries->len; i++)
        if (counts(entries->items[i]))
            answer(index, entries->items[i], keys);
}

/* Or it would take too long to know. */
static bool may_take(struct cr_policy_index *index, const struct entry *entry, const struct cr_json *json,
                     size_t labels_len)
{
    size_t comparisons = entry->comparisons * (1 + labels_len);
    bool is_cheap = comparisons <= index->comparisons_left;
    index->comparisons_left -= is_cheap ? comparisons : index->comparisons_left;
    return !is_cheap ||
           cr_discover_selects(entry->policy, cr_json_string_at(json, "type"), cr_json_at(json, "metadata", "labels"));
}

/* secret->secret: NULL when it does not exist. */
static void answer_selecting(struct cr_policy_index *index, const char *ns, const struct cr_used_secret *secret,
                             counts_fn counts, struct cr_strvec *keys)
{
    bool is_there = secret->secret || secret->unread;
    const struct entries *entries = is_there ? cr_strmap_get(index->selecting, cr_or_empty(ns)) : NULL;
    size_t labels_len = entries ? cr_json_len(cr_json_at(secret->secret, "metadata", "labels")) : 0;
    for (size_t i = 0; entries && i < entries->len; i++) {
        struct entry *entry = entries->items[i];
        bool is_open = entry->added_in != index->question && counts(entry);
        if (is_open && (secret->unread || may_take(index, entry, secret->secret, labels_len)))
            answer(index, entry, keys);
    }
}

static void answer_secret(struct cr_policy_index *index, const char *ns, const struct cr_used_secret *secret,
                          counts_fn counts, struct cr_strvec *keys)
{
    cr_autofree char *place = place_of(ns, secret_kind, secret->name);
    answer_place(index, place, counts, keys);
    answer_selecting(index, ns, secret, counts, keys);
}

static void ask(struct cr_policy_index *index)
{
    pthread_mutex_lock(&index->lock);
    index->question++;
    index->comparisons_left = COMPARISONS_MAX;
}

static void asked(struct cr_policy_index *index)
{
    pthread_mutex_unlock(&index->lock);
}

void cr_policy_index_of_secret(struct cr_policy_index *index, const char *ns, const char *name,
                               const struct cr_json *before, const struct cr_json *after, struct cr_strvec *keys)
{
    ask(index);
    answer_secret(index, ns, &(struct cr_used_secret){.name = name, .secret = before}, any, keys);
    answer_selecting(index, ns, &(struct cr_used_secret){.name = name, .secret = after}, any, keys);
    asked(index);
}

void cr_policy_index_of_secrets(struct cr_policy_index *index, const char *ns, const struct cr_used_secret *secrets,
                                size_t len, struct cr_strvec *keys)
{
    ask(index);
    for (size_t i = 0; i < len; i++)
        answer_secret(index, ns, &secrets[i], any, keys);
    asked(index);
}

void cr_policy_index_of_user(struct cr_policy_index *index, const char *ns, const char *kind, const char *name,
                             const struct cr_used_secret *used, size_t used_len, enum cr_index_users who,
                             struct cr_strvec *keys)
{
    cr_autofree char *place = place_of(ns, kind, name);
    ask(index);
    answer_place(index, place, any, keys);
    for (size_t i = 0; i < used_len; i++)
        answer_secret(index, ns, &used[i], who == CR_INDEX_ALL ? any : discovers, keys);
    asked(index);
}

void cr_policy_index_of_budgets(struct cr_policy_index *index, const char *ns, struct cr_strvec *keys)
{
    ask(index);
    const struct entries *entries = cr_strmap_get(index->waiting, cr_or_empty(ns));
    for (size_t i = 0; entries && i < entries->len; i++)
        answer(index, entries->items[i], keys);
    asked(index);
}

/* --- policies beside each other --- */

/* A status that changes matters only to a policy that waits for it: its own plan shows that. */
static bool only_status_moved(const struct entry *before, const struct entry *after)
{
    return before && after && before->generation == after->generation && before->deleting == after->deleting;
}

/* By name or memory: a Secret that only a selector takes is in the status a moment later. */
static void answer_neighbours(struct cr_policy_index *index, const struct entry *of, counts_fn counts,
                              struct cr_strvec *keys)
{
    for (size_t i = 0; of && i < of->places.len; i++)
        if (cr_starts_with(of->places.items[i] + strlen(of->ns) + 1, "Secret/"))
            answer_place(index, of->places.items[i], counts, keys);
}

/* before: no longer listed; after: not listed yet; so that neither is its own neighbour. Takes both. */
static void replace(struct cr_policy_index *index, struct entry *before, struct entry *after, struct cr_strvec *keys)
{
    counts_fn counts = only_status_moved(before, after) ? waits_for_others : any;
    answer_neighbours(index, before, counts, keys);
    answer_neighbours(index, after, counts, keys);
    entry_free(before);
    if (!after)
        return;
    list_all(index, after);
    cr_strmap_set(index->policies, after->key, after);
}

static struct entry *take(struct cr_policy_index *index, const char *key)
{
    struct entry *entry = cr_strmap_take(index->policies, key);
    if (entry)
        unlist_all(index, entry);
    return entry;
}

static bool selects_alike(const struct entry *a, const struct entry *b)
{
    if (!a->policy || !b->policy)
        return !a->policy && !b->policy;
    cr_autofree char *of_a = cr_selector_text(&a->policy->secret_selector);
    cr_autofree char *of_b = cr_selector_text(&b->policy->secret_selector);
    return cr_streq(of_a, of_b);
}

static bool wants_alike(const struct entry *before, const struct entry *after)
{
    return before && before->usable == after->usable && cr_strvec_equal(&before->places, &after->places) &&
           selects_alike(before, after);
}

bool cr_policy_index_put(struct cr_policy_index *index, const struct cr_json *object, struct cr_policy *policy,
                         struct cr_strvec *neighbours)
{
    struct entry *after = entry_new(object, policy);
    ask(index);
    struct entry *before = take(index, after->key);
    bool wants_other = !wants_alike(before, after);
    replace(index, before, after, neighbours);
    asked(index);
    return wants_other;
}

void cr_policy_index_remove(struct cr_policy_index *index, const char *ns, const char *name,
                            struct cr_strvec *neighbours)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    ask(index);
    replace(index, take(index, key), NULL, neighbours);
    asked(index);
}

/* --- what all of them want --- */

bool cr_policy_index_selects(struct cr_policy_index *index, const char *ns)
{
    pthread_mutex_lock(&index->lock);
    bool selects = cr_strmap_get(index->selecting, cr_or_empty(ns)) != NULL;
    pthread_mutex_unlock(&index->lock);
    return selects;
}

bool cr_policy_index_wants_secret(struct cr_policy_index *index, const char *ns, const char *name)
{
    cr_autofree char *place = place_of(ns, secret_kind, name);
    pthread_mutex_lock(&index->lock);
    bool wants = cr_strmap_get(index->by_place, place) != NULL;
    pthread_mutex_unlock(&index->lock);
    return wants;
}

void cr_policy_index_visit_secrets(struct cr_policy_index *index,
                                   void (*visit)(void *arg, const char *ns, const char *name), void *arg)
{
    pthread_mutex_lock(&index->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(index->by_place, &it);) {
        const struct entries *entries = it.value;
        const char *ns = entries->items[0]->ns; /* all are of the place's namespace */
        const char *kind = it.key + strlen(ns) + 1;
        if (cr_starts_with(kind, "Secret/"))
            visit(arg, ns, kind + strlen("Secret/"));
    }
    pthread_mutex_unlock(&index->lock);
}

void cr_policy_index_visit_selectors(struct cr_policy_index *index,
                                     void (*visit)(void *arg, const char *ns, const char *selector), void *arg)
{
    pthread_mutex_lock(&index->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(index->selecting, &it);) {
        const struct entries *entries = it.value;
        for (size_t i = 0; i < entries->len; i++) {
            cr_autofree char *text = cr_selector_text(&entries->items[i]->policy->secret_selector);
            visit(arg, it.key, text);
        }
    }
    pthread_mutex_unlock(&index->lock);
}
