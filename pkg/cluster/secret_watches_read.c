/* Reading what the watches of Secrets hold, from any thread: the newest of several copies, and whether a Secret
 * that is in none is known to be absent. */
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/secret_watches_internal.h"

/* --- one watch --- */

static struct cr_packed *stored(const struct cr_secret_watch *watch, const char *ns, const char *name)
{
    return cr_store_get_packed(cr_informer_store(watch->informer), ns, name);
}

bool cr_secret_watch_holds(const struct cr_secret_watch *watch, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *found = stored(watch, ns, name);
    return found != NULL;
}

bool cr_secret_watch_is_synced(const struct cr_secret_watch *watch)
{
    struct cr_error err = {0};
    return cr_informer_synced(watch->informer) && !cr_informer_refused(watch->informer, &err);
}

/* --- all of a group --- */

struct cr_secret_group *cr_secret_group_of(struct cr_secret_watches *watches, const char *ns)
{
    for (size_t i = 0; i < watches->groups_len; i++)
        if (!watches->groups[i].ns || cr_streq(watches->groups[i].ns, ns))
            return &watches->groups[i];
    return NULL;
}

struct cr_secret_watch *cr_secret_group_shared(const struct cr_secret_group *group)
{
    struct cr_secret_watch *last =
        group->shared_watches_len ? group->shared_watches[group->shared_watches_len - 1] : NULL;
    return last && last->desired ? last : NULL;
}

/* Takes found. */
static void take_newer(struct cr_packed **best, struct cr_packed *found)
{
    if (*best && found && !cr_decimal_less(cr_packed_resource_version(*best), cr_packed_resource_version(found))) {
        cr_packed_unref(found);
    } else if (found) {
        cr_packed_unref(*best);
        *best = found;
    }
}

struct cr_packed *cr_secret_group_find(const struct cr_secret_group *group, const struct cr_secret_watch *but,
                                       const char *ns, const char *name)
{
    struct cr_packed *best = NULL;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    const struct cr_secret_watch *named = cr_strmap_get(group->named, key);
    if (named && named != but)
        take_newer(&best, stored(named, ns, name));
    for (size_t i = 0; i < group->shared_watches_len; i++)
        if (group->shared_watches[i] != but)
            take_newer(&best, stored(group->shared_watches[i], ns, name));
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->labelled, &it);) {
        const struct cr_secret_watch *labelled = it.value;
        if (labelled != but && cr_streq(labelled->ns, ns))
            take_newer(&best, stored(labelled, ns, name));
    }
    return best;
}

bool cr_secret_group_selects(const struct cr_secret_group *group, const char *ns, const char *name)
{
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(group->labelled, &it);) {
        const struct cr_secret_watch *labelled = it.value;
        if (labelled->desired && cr_strmap_get(group->selectors, it.key) && cr_streq(labelled->ns, ns) &&
            cr_secret_watch_is_synced(labelled) && cr_secret_watch_holds(labelled, ns, name))
            return true;
    }
    return false;
}

/* Whether the list of that shared watch covered the wanted Secret: then a Secret that it does not have does not exist.
 */
static bool had(const struct cr_secret_watch *shared, const struct cr_secret_wanted *wanted)
{
    return wanted && wanted->since <= shared->began;
}

/* --- for any thread --- */

static struct cr_secret_group *hold(struct cr_secret_watches *watches, const char *ns)
{
    pthread_rwlock_rdlock(&watches->lock);
    return cr_secret_group_of(watches, ns);
}

static void let_go(struct cr_secret_watches *watches)
{
    pthread_rwlock_unlock(&watches->lock);
}

struct cr_packed *cr_secret_watches_get_packed(struct cr_secret_watches *watches, const char *ns, const char *name)
{
    const struct cr_secret_group *group = hold(watches, ns);
    struct cr_packed *found = group ? cr_secret_group_find(group, NULL, ns, name) : NULL;
    let_go(watches);
    return found;
}

struct cr_snapshot *cr_secret_watches_get(struct cr_secret_watches *watches, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *found = cr_secret_watches_get_packed(watches, ns, name);
    return cr_packed_open(found);
}

/* Whether a watch in sync would have the Secret, whatever its type. */
static bool is_covered(const struct cr_secret_group *group, const char *key)
{
    const struct cr_secret_watch *named = cr_strmap_get(group->named, key);
    if (named && cr_secret_watch_is_synced(named))
        return true;
    const struct cr_secret_wanted *wanted = cr_strmap_get(group->wanted, key);
    for (size_t i = 0; i < group->shared_watches_len; i++)
        if (group->shared_watches[i]->shared == CR_SHARED_ALL && had(group->shared_watches[i], wanted) &&
            cr_secret_watch_is_synced(group->shared_watches[i]))
            return true;
    return false;
}

static enum cr_secret_known known(const struct cr_secret_group *group, const char *ns, const char *name)
{
    CR_CLEANUP(cr_packed) struct cr_packed *found = cr_secret_group_find(group, NULL, ns, name);
    if (found)
        return CR_SECRET_HELD;
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    return is_covered(group, key) ? CR_SECRET_ABSENT : CR_SECRET_UNKNOWN;
}

enum cr_secret_known cr_secret_watches_known(struct cr_secret_watches *watches, const char *ns, const char *name)
{
    const struct cr_secret_group *group = hold(watches, ns);
    enum cr_secret_known what = group ? known(group, ns, name) : CR_SECRET_ABSENT;
    let_go(watches);
    return what;
}

struct collected {
    struct cr_strmap *found; /* name → struct cr_packed, owned */
};

static void unref_packed(void *packed)
{
    cr_packed_unref(packed);
}

static void collect(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    const struct collected *to = arg;
    const struct cr_packed *before = cr_strmap_get(to->found, name);
    (void)ns;
    if (!before || cr_decimal_less(cr_packed_resource_version(before), cr_packed_resource_version(packed)))
        cr_strmap_set(to->found, name, cr_packed_ref(packed));
}

static void collect_from(const struct cr_secret_watch *watch, const char *ns, struct collected *to)
{
    if (!watch->ns || cr_streq(watch->ns, ns))
        cr_store_visit(cr_informer_store(watch->informer), ns, collect, to);
}

void cr_secret_watches_visit(struct cr_secret_watches *watches, const char *ns, cr_store_visit_fn visit, void *arg)
{
    struct collected all = {.found = cr_strmap_new(unref_packed)};
    const struct cr_secret_group *group = hold(watches, ns);
    for (size_t i = 0; group && i < group->shared_watches_len; i++)
        collect_from(group->shared_watches[i], ns, &all);
    for (struct cr_strmap_iter it = {0}; group && cr_strmap_next(group->labelled, &it);)
        collect_from(it.value, ns, &all);
    for (struct cr_strmap_iter it = {0}; group && cr_strmap_next(group->named, &it);)
        collect_from(it.value, ns, &all);
    let_go(watches);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(all.found, &it);)
        visit(arg, ns, it.key, it.value);
    cr_strmap_free(all.found);
}

static bool knows_selected(const struct cr_secret_group *group, const char *key)
{
    const struct cr_secret_watch *labelled = cr_strmap_get(group->labelled, key);
    if (labelled && cr_secret_watch_is_synced(labelled))
        return true;
    const struct cr_secret_wanted *wanted = cr_strmap_get(group->selectors, key);
    for (size_t i = 0; i < group->shared_watches_len; i++)
        if (group->shared_watches[i]->shared >= CR_SHARED_USUAL && had(group->shared_watches[i], wanted) &&
            cr_secret_watch_is_synced(group->shared_watches[i]))
            return true;
    return false;
}

bool cr_secret_watches_knows_selected(struct cr_secret_watches *watches, const char *ns, const char *selector)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, selector);
    const struct cr_secret_group *group = hold(watches, ns);
    bool knows = group && knows_selected(group, key);
    let_go(watches);
    return knows;
}

/* --- what may not be seen --- */

static bool refusal_of_shared(const struct cr_secret_group *group, struct cr_error *err)
{
    for (size_t i = group->shared_watches_len; i > 0; i--)
        if (cr_informer_refused(group->shared_watches[i - 1]->informer, err))
            return true;
    return false;
}

/* Some watch that is not refused has it, or knows that it is not there. */
static bool is_seen(const struct cr_secret_group *group, const char *key, const char *ns, const char *name)
{
    if (is_covered(group, key) || cr_secret_group_selects(group, ns, name))
        return true;
    for (size_t i = 0; i < group->shared_watches_len; i++)
        if (cr_secret_watch_is_synced(group->shared_watches[i]) &&
            cr_secret_watch_holds(group->shared_watches[i], ns, name))
            return true;
    return false;
}

bool cr_secret_watches_refused(struct cr_secret_watches *watches, const char *ns, const char *name,
                               struct cr_error *err)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, name);
    const struct cr_secret_group *group = hold(watches, ns);
    bool refused = false;
    if (group && !is_seen(group, key, ns, name)) {
        const struct cr_secret_watch *named = cr_strmap_get(group->named, key);
        refused = (named && cr_informer_refused(named->informer, err)) || refusal_of_shared(group, err);
    }
    let_go(watches);
    return refused;
}

bool cr_secret_watches_refused_selected(struct cr_secret_watches *watches, const char *ns, const char *selector,
                                        struct cr_error *err)
{
    cr_autofree char *key = cr_asprintf("%s/%s", ns, selector);
    const struct cr_secret_group *group = hold(watches, ns);
    bool refused = false;
    if (group && !knows_selected(group, key)) {
        const struct cr_secret_watch *labelled = cr_strmap_get(group->labelled, key);
        refused = labelled ? cr_informer_refused(labelled->informer, err) : refusal_of_shared(group, err);
    }
    let_go(watches);
    return refused;
}
