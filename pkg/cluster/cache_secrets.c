/* What of the cache is particular of Secrets: how they are projected, whom they concern, and what to say when they
 * may not be seen. */
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/cache_internal.h"
#include "cluster/project.h"

enum { NAMES_LISTED = 5 }; /* in one sentence */

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    const struct cr_cache *cache = arg;
    cr_secret_reader_project(cache->reader, json, snapshot);
    cr_project_secret(json);
    return true;
}

/* Labels matter only to selectors. */
static void on_change(void *arg, const struct cr_change *change)
{
    struct cr_cache *cache = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    bool selects = cr_policy_index_selects(cache->index, change->ns);
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *before = selects ? cr_packed_open(change->before) : NULL;
    cr_policy_index_of_secret(cache->index, change->ns, change->name, before ? before->json : NULL,
                              change->after ? change->after->json : NULL, &keys);
    cr_cache_notify(cache, &keys);
    cr_cache_notify_domains_of_secret(cache, change->ns, change->name);
}

static void on_known(void *arg, const char *ns, const char *name)
{
    struct cr_cache *cache = arg;
    CR_CLEANUP(cr_strvec) struct cr_strvec keys = {0};
    if (name)
        cr_policy_index_of_secret(cache->index, ns, name, NULL, NULL, &keys);
    else
        cr_cache_keys(cache, CR_CACHED_POLICIES, ns, &keys);
    cr_cache_notify(cache, &keys);
}

static void on_unwanted(void *arg, const char *key)
{
    const struct cr_cache *cache = arg;
    cr_secret_refs_remove(cache->refs, key);
    if (cache->options.on_secret_unwanted)
        cache->options.on_secret_unwanted(cache->options.arg, key);
}

struct cr_secret_watches *cr_cache_watch_secrets(struct cr_cache *cache, struct cr_manager *manager,
                                                 struct cr_client *client, struct cr_loop *loop)
{
    const struct cr_secret_watches_options options = {.manager = manager,
                                                      .client = client,
                                                      .loop = loop,
                                                      .namespaces = cache->options.namespaces,
                                                      .scope = cache->options.secret_scope,
                                                      .index = cache->index,
                                                      .domains = cache->domain_index,
                                                      .project = project,
                                                      .on_change = on_change,
                                                      .on_known = on_known,
                                                      .on_unwanted = on_unwanted,
                                                      .arg = cache};
    return cr_secret_watches_new(&options);
}

/* --- what a policy needs of them --- */

/* The Secrets that the policy names, then those that its selector has taken; each once. Other remembered Secrets leave
 * the policy in any case, so they are not needed. */
static void names_of(const struct cr_policy *policy, const struct cr_policy_status *status, struct cr_strvec *names)
{
    for (size_t i = 0; i < policy->secrets_len; i++)
        cr_strvec_add_unique(names, policy->secrets[i].name);
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].selected)
            cr_strvec_add_unique(names, status->secrets[i].name);
}

/* Owned; NULL: the policy has no selector, or none that is used. */
static char *selector_of(const struct cr_cache *cache, const struct cr_policy *policy)
{
    bool selects = policy->secret_selector.len && cache->options.secret_scope != CR_SECRET_SCOPE_NAMED;
    return selects ? cr_selector_text(&policy->secret_selector) : NULL;
}

bool cr_cache_waits_for_secrets(struct cr_cache *cache, const struct cr_policy *policy,
                                const struct cr_policy_status *status)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    names_of(policy, status, &names);
    for (size_t i = 0; i < names.len; i++)
        if (cr_secret_watches_known(cache->secrets, policy->ns, names.items[i]) == CR_SECRET_UNKNOWN)
            return true;
    cr_autofree char *selector = selector_of(cache, policy);
    return selector && !cr_secret_watches_knows_selected(cache->secrets, policy->ns, selector);
}

static void add_sentence(struct cr_buf *text, const char *what, const char *why)
{
    cr_buf_printf(text, "%s%s cannot be seen: %s.", text->len ? " " : "", what, why);
}

/* The first names, and how many more there are. */
static char *list_of(const struct cr_strvec *names)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec listed = {0};
    for (size_t i = 0; i < names->len && i < NAMES_LISTED; i++)
        cr_strvec_add(&listed, names->items[i]);
    cr_autofree char *joined = cr_strvec_join(&listed, ", ");
    return names->len > NAMES_LISTED ? cr_asprintf("%s and %zu more", joined, names->len - NAMES_LISTED)
                                     : cr_steal(&joined);
}

static void add_refused_names(const struct cr_cache *cache, const struct cr_strvec *names, const struct cr_error *err,
                              struct cr_buf *text)
{
    cr_autofree char *list = list_of(names);
    cr_autofree char *what = cr_asprintf("Secret%s %s", names->len > 1 ? "s" : "", list);
    bool named = cache->options.secret_scope == CR_SECRET_SCOPE_NAMED;
    cr_autofree char *why =
        cr_asprintf("%s%s%s%s", err->text, named ? " (of resourceNames: " : "", named ? list : "", named ? ")" : "");
    add_sentence(text, what, why);
}

void cr_cache_add_refused_secrets(struct cr_cache *cache, const struct cr_policy *policy,
                                  const struct cr_policy_status *status, struct cr_buf *text)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec refused = {0};
    struct cr_error first = {0};
    names_of(policy, status, &names);
    for (size_t i = 0; i < names.len; i++) {
        struct cr_error err = {0};
        if (!cr_secret_watches_refused(cache->secrets, policy->ns, names.items[i], &err))
            continue;
        first = refused.len ? first : err;
        cr_strvec_add(&refused, names.items[i]);
    }
    if (refused.len)
        add_refused_names(cache, &refused, &first, text);
    struct cr_error err = {0};
    cr_autofree char *selector = selector_of(cache, policy);
    if (selector && cr_secret_watches_refused_selected(cache->secrets, policy->ns, selector, &err))
        add_sentence(text, "What secretSelector takes", err.text);
}

void cr_cache_add_unseen_secrets(const struct cr_cache *cache, const struct cr_policy *policy, struct cr_buf *text)
{
    if (policy->secret_selector.len && cache->options.secret_scope == CR_SECRET_SCOPE_NAMED)
        cr_buf_puts(text, "secretSelector is not acted on: it needs the right to list Secrets, and the operator runs "
                          "with --secret-scope=named. Name the Secrets in spec.secrets.");
}

/* --- how they are read --- */

void cr_cache_expect_secrets(struct cr_cache *cache, const struct cr_policy *policy)
{
    cr_secret_refs_add(cache->refs, policy);
}

struct cr_packed *cr_cache_secret_packed(struct cr_cache *cache, const char *ns, const char *name)
{
    return cr_secret_watches_get_packed(cache->secrets, ns, name);
}

struct cr_secret_refs *cr_cache_secret_refs(struct cr_cache *cache)
{
    return cache->refs;
}

void cr_cache_project_secret(struct cr_cache *cache, struct cr_snapshot *snapshot)
{
    cr_secret_reader_project_now(cache->reader, snapshot->json, snapshot);
    cr_project_secret(snapshot->json);
}
