#include "controllers/town.h"

#include "base/alloc.h"
#include "base/strings.h"
#include "controllers/project.h"
#include "kube/object.h"

struct cr_town {
    struct cr_snapshots kept;
    struct cr_view_secret *secrets;
    struct cr_view_user *users;
    struct cr_view view;
};

static void add_secrets(struct cr_town *town, struct cr_cache *cache, const char *ns)
{
    CR_CLEANUP(cr_snapshots) struct cr_snapshots found = {0};
    cr_cache_all(cache, CR_CACHED_SECRETS, ns, &found);
    town->secrets = cr_calloc(found.len, sizeof *town->secrets);
    for (size_t i = 0; i < found.len; i++) {
        const struct cr_json *json = found.items[i]->json;
        cr_snapshots_add(&town->kept, found.items[i]);
        town->secrets[i] = (struct cr_view_secret){.name = cr_obj_name(json),
                                                   .type = cr_json_string_at(json, "type"),
                                                   .labels = cr_json_at(json, "metadata", "labels"),
                                                   .created_ms = cr_obj_created_ms(json)};
    }
    town->view.secrets = town->secrets;
    town->view.secrets_len = found.len;
}

/* Only who uses a Secret at all. */
static void add_users(struct cr_town *town, struct cr_cache *cache, enum cr_cached what, const char *ns)
{
    CR_CLEANUP(cr_snapshots) struct cr_snapshots found = {0};
    cr_cache_all(cache, what, ns, &found);
    town->users = cr_reallocarray(town->users, town->view.users_len + found.len + 1, sizeof *town->users);
    for (size_t i = 0; i < found.len; i++) {
        const struct cr_json *json = found.items[i]->json;
        const struct cr_strvec *uses = cr_projected_uses(found.items[i]);
        if (!uses->len)
            continue;
        cr_snapshots_add(&town->kept, found.items[i]);
        town->users[town->view.users_len++] = (struct cr_view_user){.kind = cr_cached_kind(what),
                                                                    .name = cr_obj_name(json),
                                                                    .created_ms = cr_obj_created_ms(json),
                                                                    .secrets = uses};
    }
    town->view.users = town->users;
}

struct cr_town *cr_town_new(struct cr_cache *cache, const char *ns)
{
    static const enum cr_cached users[] = {CR_CACHED_DEPLOYMENTS, CR_CACHED_STATEFULSETS, CR_CACHED_DAEMONSETS,
                                           CR_CACHED_INGRESSES, CR_CACHED_GATEWAYS};
    struct cr_town *town = cr_new(struct cr_town);
    add_secrets(town, cache, ns);
    for (size_t i = 0; i < cr_array_len(users); i++)
        add_users(town, cache, users[i], ns);
    return town;
}

void cr_town_free(struct cr_town *town)
{
    if (!town)
        return;
    cr_snapshots_dispose(&town->kept);
    free(town->secrets);
    free(town->users);
    free(town);
}

const struct cr_view *cr_town_view(const struct cr_town *town)
{
    return &town->view;
}
