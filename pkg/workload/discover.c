#include "workload/discover.h"

#include <stdlib.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "pki/digest.h"

/* --- names of consumers that were found. --- */

enum { CR_FOUND_NAME_MAX = 63 }; /* as the schema has it for consumers[].name */

enum { HASH_SHOWN = 8 };

/* "Deployment" and "Web.v1" to "deployment-web-v1": what a consumer's name may consist of. Owned. */
static char *words_of(const char *kind, const char *name)
{
    char *words = cr_asprintf("%s-%s", kind, name);
    for (char *c = words; *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
        else if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            *c = '-';
    }
    return words;
}

/* The words say all there is: no character was replaced, none is too many. */
static bool is_complete(const char *words, const char *name)
{
    return strlen(words) <= CR_FOUND_NAME_MAX && cr_ends_with(words, name) && !cr_ends_with(words, "-");
}

static char *hashed(const char *words, const char *kind, const char *name, int attempt)
{
    char hex[CR_SHA256_HEX];
    cr_autofree char *seed = cr_asprintf("%s/%s/%d", kind, name, attempt);
    cr_sha256_hex(seed, strlen(seed), hex);
    size_t len = strlen(words);
    if (len > CR_FOUND_NAME_MAX - HASH_SHOWN - 1)
        len = CR_FOUND_NAME_MAX - HASH_SHOWN - 1;
    while (len && words[len - 1] == '-')
        len--;
    return cr_asprintf("%.*s-%.*s", (int)len, words, HASH_SHOWN, hex);
}

/* "deployment-web": the same for the same workload, as long as no other has that name. Names of Kubernetes may have 253
 * characters and dots: such a one, and one that is taken, gets a hash of kind and name at its end. Owned. */
static char *found_name(const char *kind, const char *name, const struct cr_strmap *taken)
{
    cr_autofree char *words = words_of(kind, name);
    if (is_complete(words, name) && !cr_strmap_get(taken, words))
        return cr_steal(&words);
    for (int attempt = 0;; attempt++) {
        char *candidate = hashed(words, kind, name, attempt);
        if (!cr_strmap_get(taken, candidate))
            return candidate;
        free(candidate);
    }
}

/* A Secret or a consumer that belongs to the policy. */
struct candidate {
    const char *kind; /* NULL: a Secret */
    const char *name;
    int64_t created_ms;
    bool known; /* the status has an entry of it */
    bool leaving;
};

struct candidates {
    struct candidate *items;
    size_t len;
};

static void add_candidate(struct candidates *list, struct candidate candidate)
{
    list->items = cr_reallocarray(list->items, list->len + 1, sizeof *list->items);
    list->items[list->len++] = candidate;
}

static int by_name(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    int order = strcmp(cr_or_empty(x->kind), cr_or_empty(y->kind));
    return order ? order : strcmp(x->name, y->name);
}

static int by_claim(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->created_ms != y->created_ms)
        return x->created_ms < y->created_ms ? -1 : 1;
    return by_name(a, b);
}

/* Those with the best claim, by their names: the order in which they are shown does not change with their age. */
static void choose(struct candidates *list, size_t room)
{
    if (!list->len)
        return;
    qsort(list->items, list->len, sizeof *list->items, by_claim);
    if (list->len > room)
        list->len = room;
    qsort(list->items, list->len, sizeof *list->items, by_name);
}

/* Owned map with an entry for each of the keys. */
static void mark(struct cr_strmap *map, const char *key)
{
    static char there;
    cr_strmap_set(map, key, &there);
}

static void mark_target(struct cr_strmap *map, const char *kind, const char *name)
{
    cr_autofree char *key = cr_asprintf("%s/%s", cr_or_empty(kind), cr_or_empty(name));
    mark(map, key);
}

static bool has_target(const struct cr_strmap *map, const char *kind, const char *name)
{
    cr_autofree char *key = cr_asprintf("%s/%s", kind, name);
    return cr_strmap_get(map, key) != NULL;
}

/* The name as the expansion's own, for elements of the policy that are not of the spec. */
static char *keep(struct cr_expansion *out, const char *name)
{
    cr_strvec_add(&out->names, name);
    return out->names.items[out->names.len - 1];
}

/* --- Secrets --- */

/* Secrets that a program keeps for itself, with whatever labels it copies to them: no workload's material. */
static const struct {
    const char *type;  /* how it begins */
    const char *label; /* which it has, with "true"; NULL: any */
} others[] = {
    {"kubernetes.io/service-account-token", NULL},
    {"bootstrap.kubernetes.io/token", NULL},
    {"helm.sh/release", NULL}, /* Helm 3: a release */
    /* cert-manager, pkg/apis/certmanager/v1/types.go: the key of a Certificate that is being issued, and no more. A
     * secretTemplate may put the label on the certificate as well, which is of another type. */
    {"Opaque", "cert-manager.io/next-private-key"},
};

static bool may_be_material(const char *type, const struct cr_json *labels)
{
    for (size_t i = 0; i < cr_array_len(others); i++) {
        bool typed = cr_starts_with(cr_or_empty(type), others[i].type);
        bool labelled = !others[i].label || cr_streq(cr_json_string(cr_json_get(labels, others[i].label)), "true");
        if (typed && labelled)
            return false;
    }
    return true;
}

bool cr_discover_selects(const struct cr_policy *policy, const char *type, const struct cr_json *labels)
{
    return may_be_material(type, labels) && cr_selector_matches(&policy->secret_selector, labels);
}

static const struct cr_secret_status *remembered(const struct cr_policy_status *status, const char *name)
{
    for (size_t i = 0; i < status->secrets_len; i++)
        if (cr_streq(status->secrets[i].name, name))
            return &status->secrets[i];
    return NULL;
}

static const struct cr_view_secret *viewed(const struct cr_view *view, const char *name)
{
    for (size_t i = 0; i < view->secrets_len; i++)
        if (cr_streq(view->secrets[i].name, name))
            return &view->secrets[i];
    return NULL;
}

static bool used_by_a_consumer(const struct cr_policy *policy, const struct cr_view *view, const char *secret)
{
    for (size_t i = 0; i < view->users_len; i++)
        if (cr_strvec_has(view->users[i].secrets, secret) &&
            (policy->discover.enabled || cr_policy_consumer_of(policy, view->users[i].kind, view->users[i].name)))
            return true;
    return false;
}

static void add_matching(const struct cr_policy *policy, const struct cr_policy_status *status,
                         const struct cr_view *view, struct candidates *out)
{
    for (size_t i = 0; i < view->secrets_len; i++) {
        const struct cr_view_secret *secret = &view->secrets[i];
        if (cr_discover_selects(policy, secret->type, secret->labels) && !cr_policy_secret_of(policy, secret->name))
            add_candidate(out, (struct candidate){.name = secret->name,
                                                  .created_ms = secret->created_ms,
                                                  .known = remembered(status, secret->name) != NULL});
    }
}

/* It is there without its label, but not done with: a change is pending, or it was missed, and whether it came back
 * with other material (kubectl create, then kubectl label) is still to be looked at. */
static bool is_unfinished(const struct cr_secret_status *memory)
{
    return memory->problem_reason ? cr_streq(memory->problem_reason, CR_PROBLEM_NOT_FOUND) : memory->pending.set;
}

/* What was selected and is not any more. */
static void add_remembered(const struct cr_policy *policy, const struct cr_policy_status *status,
                           const struct cr_view *view, struct candidates *out)
{
    for (size_t i = 0; i < status->secrets_len; i++) {
        const struct cr_secret_status *memory = &status->secrets[i];
        if (!memory->selected || cr_policy_secret_of(policy, memory->name))
            continue;
        const struct cr_view_secret *secret = viewed(view, memory->name);
        if (secret && cr_discover_selects(policy, secret->type, secret->labels))
            continue;
        bool missed = !secret && policy->secret_selector.len && used_by_a_consumer(policy, view, memory->name);
        bool unfinished = secret && is_unfinished(memory);
        if (missed || unfinished)
            add_candidate(out, (struct candidate){.name = memory->name, .known = true, .leaving = unfinished});
    }
}

static void expand_secrets(const struct cr_policy *policy, const struct cr_policy_status *status,
                           const struct cr_view *view, struct cr_expansion *out)
{
    static char certificate[] = "tls.crt";
    static char private_key[] = "tls.key";
    static char trust[] = "ca.crt";
    struct candidates found = {0};
    add_matching(policy, status, view, &found);
    add_remembered(policy, status, view, &found);
    out->secrets_wanted = policy->secrets_len + found.len;
    choose(&found, policy->secrets_len < CR_POLICY_SECRETS_MAX ? CR_POLICY_SECRETS_MAX - policy->secrets_len : 0);

    struct cr_policy *expanded = &out->policy;
    expanded->secrets = cr_calloc(policy->secrets_len + found.len + 1, sizeof *expanded->secrets);
    expanded->secrets_len = policy->secrets_len;
    if (policy->secrets_len)
        memcpy(expanded->secrets, policy->secrets, policy->secrets_len * sizeof *policy->secrets);
    for (size_t i = 0; i < found.len; i++)
        expanded->secrets[expanded->secrets_len++] = (struct cr_policy_secret){.name = keep(out, found.items[i].name),
                                                                               .certificate = certificate,
                                                                               .private_key = private_key,
                                                                               .trust = trust,
                                                                               .selected = true,
                                                                               .leaving = found.items[i].leaving};
    free(found.items);
}

/* --- consumers --- */

static bool uses_any(const struct cr_view_user *user, const struct cr_strmap *secrets)
{
    for (size_t i = 0; i < user->secrets->len; i++)
        if (cr_strmap_get(secrets, user->secrets->items[i]))
            return true;
    return false;
}

static void find_users(const struct cr_policy *policy, const struct cr_policy_status *status,
                       const struct cr_view *view, const struct cr_expansion *expansion, struct candidates *out)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *secrets = cr_strmap_new(NULL);
    CR_CLEANUP(cr_strmap) struct cr_strmap *listed = cr_strmap_new(NULL);
    CR_CLEANUP(cr_strmap) struct cr_strmap *known = cr_strmap_new(NULL);
    for (size_t i = 0; i < expansion->policy.secrets_len; i++)
        mark(secrets, expansion->policy.secrets[i].name);
    for (size_t i = 0; i < policy->consumers_len; i++)
        mark_target(listed, policy->consumers[i].kind, policy->consumers[i].target);
    for (size_t i = 0; i < status->consumers_len; i++)
        mark_target(known, status->consumers[i].kind, status->consumers[i].target);
    for (size_t i = 0; i < view->users_len; i++) {
        const struct cr_view_user *user = &view->users[i];
        if (uses_any(user, secrets) && !has_target(listed, user->kind, user->name))
            add_candidate(out, (struct candidate){.kind = user->kind,
                                                  .name = user->name,
                                                  .created_ms = user->created_ms,
                                                  .known = has_target(known, user->kind, user->name)});
    }
}

/* As an entry of the spec that says no more than its target. */
static void add_consumer(struct cr_expansion *out, const struct candidate *found, const char *name)
{
    static const int64_t verify_timeout_ms = 60 * 1000;
    cr_autofree char *api_version = cr_resource_api_version(&cr_consumer_kind_of(found->kind)->resource);
    out->policy.consumers[out->policy.consumers_len++] =
        (struct cr_policy_consumer){.name = keep(out, name),
                                    .api_version = keep(out, api_version),
                                    .kind = keep(out, found->kind),
                                    .target = keep(out, found->name),
                                    .found = true,
                                    .optional = true,
                                    .verify = {.timeout_ms = verify_timeout_ms}};
}

static void expand_consumers(const struct cr_policy *policy, const struct cr_policy_status *status,
                             const struct cr_view *view, struct cr_expansion *out)
{
    struct candidates found = {0};
    if (policy->discover.enabled)
        find_users(policy, status, view, out, &found);
    out->consumers_wanted = policy->consumers_len + found.len;
    choose(&found, CR_POLICY_EFFECTIVE_MAX - policy->consumers_len);

    struct cr_policy *expanded = &out->policy;
    CR_CLEANUP(cr_strmap) struct cr_strmap *taken = cr_strmap_new(NULL);
    expanded->consumers = cr_calloc(policy->consumers_len + found.len + 1, sizeof *expanded->consumers);
    expanded->consumers_len = policy->consumers_len;
    for (size_t i = 0; i < policy->consumers_len; i++) {
        expanded->consumers[i] = policy->consumers[i];
        mark(taken, policy->consumers[i].name);
    }
    for (size_t i = 0; i < found.len; i++) {
        cr_autofree char *name = found_name(found.items[i].kind, found.items[i].name, taken);
        mark(taken, name);
        add_consumer(out, &found.items[i], name);
    }
    free(found.items);
}

/* --- pods that no consumer stands for --- */

static void add_other_pod(struct cr_expansion *out, const struct cr_view_pod *pod)
{
    for (size_t i = 0; i < out->policy.secrets_len; i++) {
        struct cr_other_pods *counted = pod->uncovered ? &out->uncovered[i] : &out->unmanaged[i];
        if (!cr_strvec_has(pod->secrets, out->policy.secrets[i].name))
            continue;
        if (!counted->pods++ || pod->created_ms < counted->created_ms) {
            counted->oldest = pod->name;
            counted->created_ms = pod->created_ms;
        }
    }
}

static void keep_oldest(struct cr_expansion *out, struct cr_other_pods *counted)
{
    for (size_t i = 0; i < out->policy.secrets_len; i++)
        if (counted[i].pods)
            counted[i].oldest = keep(out, counted[i].oldest);
}

static void find_other_pods(const struct cr_policy *policy, const struct cr_view *view, struct cr_expansion *out)
{
    out->unmanaged = cr_calloc(out->policy.secrets_len + 1, sizeof *out->unmanaged);
    out->uncovered = cr_calloc(out->policy.secrets_len + 1, sizeof *out->uncovered);
    for (size_t i = 0; policy->discover.enabled && i < view->pods_len; i++)
        add_other_pod(out, &view->pods[i]);
    keep_oldest(out, out->unmanaged);
    keep_oldest(out, out->uncovered);
}

/* --- all of it --- */

bool cr_discover_needed(const struct cr_policy *policy, const struct cr_policy_status *status)
{
    if (policy->secret_selector.len || policy->discover.enabled)
        return true;
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].selected) /* of a selector that is gone */
            return true;
    return false;
}

void cr_discover_expand(const struct cr_policy *policy, const struct cr_policy_status *status,
                        const struct cr_view *view, struct cr_expansion *out)
{
    *out = (struct cr_expansion){.policy = *policy};
    expand_secrets(policy, status, view, out);
    expand_consumers(policy, status, view, out);
    find_other_pods(policy, view, out);
}

void cr_expansion_dispose(struct cr_expansion *expansion)
{
    free(expansion->policy.secrets);
    free(expansion->policy.consumers);
    free(expansion->unmanaged);
    free(expansion->uncovered);
    cr_strvec_dispose(&expansion->names);
    *expansion = (struct cr_expansion){0};
}
