#include "policy/controller/hosts_in_use.h"

#include <stdlib.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "cluster/project.h"
#include "catalogue/usage.h"

/* An Ingress or a Gateway that names a Secret of the policy. */
struct found {
    const char *kind;
    char *name;
    struct cr_packed *packed; /* a reference */
    int64_t created_ms;
};

struct search {
    const struct cr_policy *policy;
    const char *kind;
    struct found *items;
    size_t len;
};

static void search_cleanup(struct search *search)
{
    for (size_t i = 0; i < search->len; i++) {
        cr_packed_unref(search->items[i].packed);
        free(search->items[i].name);
    }
    free(search->items);
}

static bool names_any(const struct cr_policy *policy, const struct cr_strvec *uses)
{
    for (size_t i = 0; uses->len && i < policy->secrets_len; i++)
        if (cr_strvec_has(uses, policy->secrets[i].name))
            return true;
    return false;
}

static void add_found(void *arg, const char *ns, const char *name, struct cr_packed *packed)
{
    struct search *search = arg;
    const void *extra = cr_packed_extra(packed);
    (void)ns;
    if (!names_any(search->policy, cr_projected_uses(extra)))
        return;
    search->items = cr_reallocarray(search->items, search->len + 1, sizeof *search->items);
    search->items[search->len++] = (struct found){.kind = search->kind,
                                                  .name = cr_strdup(name),
                                                  .packed = cr_packed_ref(packed),
                                                  .created_ms = cr_projected_created_ms(extra)};
}

/* The oldest come first, so that a new object does not displace another. */
static int by_age(const void *a, const void *b)
{
    const struct found *first = a;
    const struct found *second = b;
    if (first->created_ms != second->created_ms)
        return first->created_ms < second->created_ms ? -1 : 1;
    int order = strcmp(first->kind, second->kind);
    return order ? order : strcmp(first->name, second->name);
}

/* Owned by out from now on. */
static const char *keep(struct cr_hosts_in_use *out, const char *text)
{
    cr_strvec_add(&out->texts, text);
    return out->texts.items[out->texts.len - 1];
}

/* What was taken so far. */
struct taking {
    struct cr_hosts_in_use *out;
    struct cr_strmap **seen; /* of each Secret; NULL: none was taken of it */
    size_t count;
};

static void take_hosts(struct taking *taking, size_t secret, const struct found *of, const struct cr_strvec *hosts)
{
    struct cr_secret_hosts *to = &taking->out->of[secret];
    if (!taking->seen[secret])
        taking->seen[secret] = cr_strmap_new(NULL);
    taking->out->hosts_beyond = taking->out->hosts_beyond || hosts->len == CR_USAGE_HOSTS_MAX;
    for (size_t i = 0; i < hosts->len; i++) {
        if (cr_strmap_get(taking->seen[secret], hosts->items[i]))
            continue;
        if (taking->count == CR_HOSTS_MAX) {
            taking->out->hosts_beyond = true;
            return;
        }
        taking->count++;
        cr_strmap_set(taking->seen[secret], hosts->items[i], to);
        to->items = cr_reallocarray(to->items, to->len + 1, sizeof *to->items);
        to->items[to->len++] = (struct cr_world_host){
            .host = keep(taking->out, hosts->items[i]), .kind = of->kind, .object = keep(taking->out, of->name)};
    }
}

static void take_object(struct taking *taking, const struct cr_policy *policy, const struct found *of)
{
    CR_CLEANUP(cr_snapshot) struct cr_snapshot *object = cr_packed_open(of->packed);
    const struct cr_strvec *uses = cr_projected_uses(cr_packed_extra(of->packed));
    for (size_t i = 0; object && i < policy->secrets_len; i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec hosts = {0};
        if (!cr_strvec_has(uses, policy->secrets[i].name))
            continue;
        cr_usage_hosts(of->kind, object->json, policy->secrets[i].name, &hosts);
        take_hosts(taking, i, of, &hosts);
    }
}

void cr_hosts_in_use_gather(struct cr_cache *cache, const struct cr_policy *policy, struct cr_hosts_in_use *out)
{
    *out = (struct cr_hosts_in_use){0};
    if (!cr_cache_looks_at_hosts(cache))
        return;
    __attribute__((cleanup(search_cleanup))) struct search search = {.policy = policy};
    for (size_t i = 0; i < cr_consumer_kinds_len; i++) {
        const struct cr_consumer_kind *kind = &cr_consumer_kinds[i];
        search.kind = kind->resource.kind;
        if (kind->manner == CR_KIND_BY_API)
            cr_cache_visit_kind(cache, kind, policy->ns, add_found, &search);
    }
    if (search.len)
        qsort(search.items, search.len, sizeof *search.items, by_age);
    size_t opened = search.len < CR_HOST_OBJECTS_MAX ? search.len : CR_HOST_OBJECTS_MAX;
    out->of = cr_calloc(policy->secrets_len, sizeof *out->of);
    out->objects_beyond = search.len - opened;
    struct taking taking = {.out = out, .seen = cr_calloc(policy->secrets_len, sizeof(struct cr_strmap *))};
    for (size_t i = 0; i < opened; i++)
        take_object(&taking, policy, &search.items[i]);
    for (size_t i = 0; i < policy->secrets_len; i++)
        cr_strmap_free(taking.seen[i]);
    free(taking.seen);
}

void cr_hosts_in_use_dispose(struct cr_hosts_in_use *hosts, size_t secrets_len)
{
    for (size_t i = 0; hosts->of && i < secrets_len; i++)
        free(hosts->of[i].items);
    free(hosts->of);
    cr_strvec_dispose(&hosts->texts);
    *hosts = (struct cr_hosts_in_use){0};
}
