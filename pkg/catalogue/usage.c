#include "catalogue/usage.h"

#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"

const char *cr_usage_kind_name(enum cr_usage_kind kind)
{
    static const char *const names[] = {
        [CR_USAGE_VOLUME] = "Volume",
        [CR_USAGE_PROJECTED] = "Projected",
        [CR_USAGE_SUBPATH] = "SubPath",
        [CR_USAGE_ENV] = "Env",
    };
    return (size_t)kind < cr_array_len(names) ? names[kind] : "";
}

bool cr_usage_refreshes(enum cr_usage_kind kind)
{
    return kind == CR_USAGE_VOLUME || kind == CR_USAGE_PROJECTED;
}

void cr_usage_list_dispose(struct cr_usage_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        struct cr_usage *usage = &list->items[i];
        free(usage->container);
        free(usage->image);
        free(usage->directory);
        cr_strvec_dispose(&usage->keys);
        cr_strvec_dispose(&usage->paths);
    }
    free(list->items);
    *list = (struct cr_usage_list){0};
}

/* One container of a walk through the PodSpec. */
struct walk {
    const struct cr_json *pod_spec;
    const struct cr_strmap *volumes; /* see volumes_with */
    const struct cr_json *container;
    const char *secret;
    bool init;
    struct cr_usage_list *out;
    size_t *bytes; /* of its texts so far */
};

/* No more is looked at. */
static bool is_full(const struct walk *walk)
{
    return walk->out->len >= CR_USAGES_MAX || *walk->bytes >= CR_USAGES_BYTES_MAX;
}

static struct cr_usage *add_usage(const struct walk *walk, enum cr_usage_kind kind)
{
    struct cr_usage_list *out = walk->out;
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    struct cr_usage *usage = &out->items[out->len++];
    *usage = (struct cr_usage){
        .container = cr_strdup(cr_or_empty(cr_json_string_at(walk->container, "name"))),
        .image = cr_strdup(cr_or_empty(cr_json_string_at(walk->container, "image"))),
        .init = walk->init,
        .kind = kind,
    };
    *walk->bytes += strlen(usage->container) + strlen(usage->image);
    return usage;
}

/* Takes path. */
static void add_file(const struct walk *walk, struct cr_usage *usage, const char *key, char *path)
{
    *walk->bytes += strlen(key) + strlen(path);
    cr_strvec_add(&usage->keys, key);
    cr_strvec_add(&usage->paths, path);
    free(path);
}

/* "/certs/" and "/certs" are the same place. */
static char *without_trailing_slash(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    return cr_strndup(path, len);
}

/* --- mounts --- */

/* The volume's root as a path inside of it sees it: "./tls.crt" and "..data/tls.crt" are tls.crt. */
static const char *inside_of_volume(const char *sub_path)
{
    static const char *const same[] = {"./", "..data/"};
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < cr_array_len(same); i++) {
            if (cr_starts_with(sub_path, same[i])) {
                sub_path += strlen(same[i]);
                again = true;
            }
        }
    }
    return cr_streq(sub_path, ".") || cr_streq(sub_path, "..data") ? "" : sub_path;
}

/* Where a path of the volume shows below a mount of the sub-path; NULL when it does not. "" is the whole volume. */
static char *below_sub_path(const char *directory, const char *sub_path, const char *path)
{
    size_t len = strlen(sub_path);
    if (len == 0)
        return cr_asprintf("%s/%s", directory, path);
    if (strncmp(path, sub_path, len) != 0)
        return NULL;
    if (path[len] == '\0')
        return cr_strdup(directory);
    return path[len] == '/' ? cr_asprintf("%s%s", directory, path + len) : NULL;
}

static void add_sub_path(const struct walk *walk, struct cr_usage *usage, const struct cr_json *items,
                         const char *sub_path)
{
    if (!sub_path || strstr(sub_path, "$("))
        return;
    cr_autofree char *trimmed = without_trailing_slash(inside_of_volume(sub_path));
    if (cr_json_len(items) == 0) {
        if (*trimmed)
            add_file(walk, usage, trimmed, cr_strdup(usage->directory));
        return;
    }
    for (const struct cr_json *item = cr_json_first(items); item && !is_full(walk); item = cr_json_next(item)) {
        char *path = below_sub_path(usage->directory, trimmed, cr_or_empty(cr_json_string_at(item, "path")));
        if (path)
            add_file(walk, usage, cr_or_empty(cr_json_string_at(item, "key")), path);
    }
}

static void add_items(const struct walk *walk, struct cr_usage *usage, const struct cr_json *items)
{
    for (const struct cr_json *item = cr_json_first(items); item && !is_full(walk); item = cr_json_next(item)) {
        const char *path = inside_of_volume(cr_or_empty(cr_json_string_at(item, "path")));
        add_file(walk, usage, cr_or_empty(cr_json_string_at(item, "key")),
                 cr_asprintf("%s/%s", usage->directory, path));
    }
}

/* kind: Volume or Projected, unless the mount has a sub-path. */
static void add_mount(const struct walk *walk, const struct cr_json *mount, enum cr_usage_kind kind,
                      const struct cr_json *items)
{
    const char *sub_path = cr_json_string_at(mount, "subPath");
    const char *expr = cr_json_string_at(mount, "subPathExpr");
    bool partial = (sub_path && *sub_path) || (expr && *expr);
    struct cr_usage *usage = add_usage(walk, partial ? CR_USAGE_SUBPATH : kind);
    usage->directory = without_trailing_slash(cr_or_empty(cr_json_string_at(mount, "mountPath")));
    *walk->bytes += strlen(usage->directory);
    if (partial)
        add_sub_path(walk, usage, items, sub_path && *sub_path ? sub_path : expr);
    else
        add_items(walk, usage, items);
}

/* What a volume has of the Secret. */
struct source {
    enum cr_usage_kind kind;
    const struct cr_json *items;
};

struct sources {
    struct source *items;
    size_t len;
};

static void sources_free(void *value)
{
    struct sources *sources = value;
    free(sources->items);
    free(sources);
}

static void add_source(struct sources *out, enum cr_usage_kind kind, const struct cr_json *from)
{
    out->items = cr_reallocarray(out->items, out->len + 1, sizeof *out->items);
    out->items[out->len++] = (struct source){.kind = kind, .items = cr_json_get(from, "items")};
}

/* Owned; NULL: it has nothing of the Secret. */
static struct sources *sources_of(const struct cr_json *volume, const char *secret)
{
    struct sources out = {0};
    if (cr_streq(cr_json_string_at(volume, "secret", "secretName"), secret))
        add_source(&out, CR_USAGE_VOLUME, cr_json_get(volume, "secret"));
    const struct cr_json *projected = cr_json_at(volume, "projected", "sources");
    for (const struct cr_json *source = cr_json_first(projected); source; source = cr_json_next(source))
        if (cr_streq(cr_json_string_at(source, "secret", "name"), secret))
            add_source(&out, CR_USAGE_PROJECTED, cr_json_get(source, "secret"));
    if (!out.len)
        return NULL;
    struct sources *kept = cr_new(struct sources);
    *kept = out;
    return kept;
}

/* The volumes that have something of the Secret, by their names, which are unique: name → struct sources. Owned; NULL:
 * there is none. */
static struct cr_strmap *volumes_with(const struct cr_json *pod_spec, const char *secret)
{
    struct cr_strmap *out = NULL;
    const struct cr_json *volumes = cr_json_get(pod_spec, "volumes");
    for (const struct cr_json *volume = cr_json_first(volumes); volume; volume = cr_json_next(volume)) {
        const char *name = cr_json_string_at(volume, "name");
        struct sources *sources = name ? sources_of(volume, secret) : NULL;
        if (!sources)
            continue;
        if (!out)
            out = cr_strmap_new(sources_free);
        cr_strmap_set(out, name, sources);
    }
    return out;
}

static void collect_mounts(const struct walk *walk)
{
    if (!walk->volumes)
        return;
    const struct cr_json *mounts = cr_json_get(walk->container, "volumeMounts");
    for (const struct cr_json *mount = cr_json_first(mounts); mount; mount = cr_json_next(mount)) {
        const char *name = cr_json_string_at(mount, "name");
        const struct sources *of = name ? cr_strmap_get(walk->volumes, name) : NULL;
        for (size_t i = 0; of && i < of->len && !is_full(walk); i++)
            add_mount(walk, mount, of->items[i].kind, of->items[i].items);
    }
}

/* --- environment --- */

static void collect_environment(const struct walk *walk)
{
    struct cr_usage *usage = NULL;
    const struct cr_json *env = cr_json_get(walk->container, "env");
    for (const struct cr_json *var = cr_json_first(env); var && !is_full(walk); var = cr_json_next(var)) {
        const struct cr_json *ref = cr_json_at(var, "valueFrom", "secretKeyRef");
        if (!cr_streq(cr_json_string_at(ref, "name"), walk->secret))
            continue;
        if (!usage)
            usage = add_usage(walk, CR_USAGE_ENV);
        add_file(walk, usage, cr_or_empty(cr_json_string_at(ref, "key")),
                 cr_strdup(cr_or_empty(cr_json_string_at(var, "name"))));
    }
    const struct cr_json *sources = cr_json_get(walk->container, "envFrom");
    for (const struct cr_json *source = cr_json_first(sources); source && !is_full(walk); source = cr_json_next(source))
        if (cr_streq(cr_json_string_at(source, "secretRef", "name"), walk->secret))
            add_usage(walk, CR_USAGE_ENV)->directory = cr_strdup(cr_or_empty(cr_json_string_at(source, "prefix")));
}

/* What is not looked at may be anything, in any container. */
static void end_with_unknown(const struct walk *walk)
{
    struct walk unknown = *walk;
    unknown.container = NULL;
    unknown.init = false;
    add_usage(&unknown, CR_USAGE_SUBPATH);
}

static void collect_containers(struct walk walk, const char *list)
{
    bool init = cr_streq(list, "initContainers");
    const struct cr_json *containers = cr_json_get(walk.pod_spec, list);
    for (const struct cr_json *c = cr_json_first(containers); c && !is_full(&walk); c = cr_json_next(c)) {
        walk.container = c;
        /* kubernetes.io/docs/concepts/workloads/pods/sidecar-containers: it runs as long as the pod. */
        walk.init = init && !cr_streq(cr_json_string_at(c, "restartPolicy"), "Always");
        collect_mounts(&walk);
        collect_environment(&walk);
        if (is_full(&walk))
            end_with_unknown(&walk);
    }
}

void cr_usage_collect(const struct cr_json *pod_spec, const char *secret, struct cr_usage_list *out)
{
    *out = (struct cr_usage_list){0};
    if (!secret)
        return;
    CR_CLEANUP(cr_strmap) struct cr_strmap *volumes = volumes_with(pod_spec, secret);
    size_t bytes = 0;
    struct walk walk = {.pod_spec = pod_spec, .volumes = volumes, .secret = secret, .out = out, .bytes = &bytes};
    collect_containers(walk, "initContainers");
    collect_containers(walk, "containers");
}

/* --- names --- */

/* Each once, in the order in which they come. All is done in one walk, since a user says how many there are. */
struct names {
    struct cr_strmap *known;
    struct cr_strvec *out;
};

static void mark(struct cr_strmap *map, const char *key)
{
    static char there;
    cr_strmap_set(map, key, &there);
}

static void add_name(struct names *names, const char *name)
{
    if (!name || !*name || cr_strmap_get(names->known, name))
        return;
    mark(names->known, name);
    cr_strvec_add(names->out, name);
}

static void names_of_volume(const struct cr_json *volume, struct names *names)
{
    add_name(names, cr_json_string_at(volume, "secret", "secretName"));
    const struct cr_json *sources = cr_json_at(volume, "projected", "sources");
    for (const struct cr_json *source = cr_json_first(sources); source; source = cr_json_next(source))
        add_name(names, cr_json_string_at(source, "secret", "name"));
}

static void names_of_environment(const struct cr_json *container, struct names *names)
{
    const struct cr_json *env = cr_json_get(container, "env");
    for (const struct cr_json *var = cr_json_first(env); var; var = cr_json_next(var))
        add_name(names, cr_json_string_at(var, "valueFrom", "secretKeyRef", "name"));
    const struct cr_json *sources = cr_json_get(container, "envFrom");
    for (const struct cr_json *source = cr_json_first(sources); source; source = cr_json_next(source))
        add_name(names, cr_json_string_at(source, "secretRef", "name"));
}

static const char *const container_lists[] = {"initContainers", "containers"};

/* mounted: names of the volumes that count; NULL: all do. */
static void names_of_volumes(const struct cr_json *pod_spec, const struct cr_strmap *mounted, struct names *names)
{
    const struct cr_json *volumes = cr_json_get(pod_spec, "volumes");
    for (const struct cr_json *volume = cr_json_first(volumes); volume; volume = cr_json_next(volume)) {
        const char *name = cr_json_string_at(volume, "name");
        if (!mounted || (name && cr_strmap_get(mounted, name)))
            names_of_volume(volume, names);
    }
}

static void names_of_containers(const struct cr_json *pod_spec, struct names *names)
{
    for (size_t i = 0; i < cr_array_len(container_lists); i++) {
        const struct cr_json *containers = cr_json_get(pod_spec, container_lists[i]);
        for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c))
            names_of_environment(c, names);
    }
}

void cr_usage_secrets(const struct cr_json *pod_spec, struct cr_strvec *out)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *known = cr_strmap_new(NULL);
    struct names names = {.known = known, .out = out};
    names_of_volumes(pod_spec, NULL, &names);
    names_of_containers(pod_spec, &names);
}

static void mark_mounts(const struct cr_json *container, struct cr_strmap *mounted)
{
    const struct cr_json *mounts = cr_json_get(container, "volumeMounts");
    for (const struct cr_json *mount = cr_json_first(mounts); mount; mount = cr_json_next(mount))
        if (cr_json_string_at(mount, "name"))
            mark(mounted, cr_json_string_at(mount, "name"));
}

/* Names of the volumes that some container mounts. Owned. */
static struct cr_strmap *mounted_volumes(const struct cr_json *pod_spec)
{
    struct cr_strmap *mounted = cr_strmap_new(NULL);
    for (size_t i = 0; i < cr_array_len(container_lists); i++) {
        const struct cr_json *containers = cr_json_get(pod_spec, container_lists[i]);
        for (const struct cr_json *c = cr_json_first(containers); c; c = cr_json_next(c))
            mark_mounts(c, mounted);
    }
    return mounted;
}

void cr_usage_mounted(const struct cr_json *pod_spec, struct cr_strvec *out)
{
    CR_CLEANUP(cr_strmap) struct cr_strmap *known = cr_strmap_new(NULL);
    CR_CLEANUP(cr_strmap) struct cr_strmap *mounted = mounted_volumes(pod_spec);
    names_of_volumes(pod_spec, mounted, &(struct names){.known = known, .out = out});
}

/* --- whole objects --- */

/* A volume that no container mounts must be there when a pod starts, but is not read. */
static void names_of_workload(const struct cr_json *workload, struct names *names)
{
    const struct cr_json *pod_spec = cr_json_at(workload, "spec", "template", "spec");
    CR_CLEANUP(cr_strmap) struct cr_strmap *mounted = mounted_volumes(pod_spec);
    names_of_volumes(pod_spec, mounted, names);
    names_of_containers(pod_spec, names);
}

static void names_of_ingress(const struct cr_json *ingress, struct names *names)
{
    const struct cr_json *tls = cr_json_at(ingress, "spec", "tls");
    for (const struct cr_json *entry = cr_json_first(tls); entry; entry = cr_json_next(entry))
        add_name(names, cr_json_string_at(entry, "secretName"));
}

/* gateway.networking.k8s.io SecretObjectReference: group "" and kind Secret are the defaults. */
static bool is_own_secret(const struct cr_json *ref, const struct cr_json *gateway)
{
    const char *group = cr_json_string_at(ref, "group");
    const char *kind = cr_json_string_at(ref, "kind");
    const char *ns = cr_json_string_at(ref, "namespace");
    return (!group || !*group) && (!kind || cr_streq(kind, "Secret")) &&
           (!ns || cr_streq(ns, cr_json_string_at(gateway, "metadata", "namespace")));
}

static void names_of_gateway(const struct cr_json *gateway, struct names *names)
{
    const struct cr_json *listeners = cr_json_at(gateway, "spec", "listeners");
    for (const struct cr_json *listener = cr_json_first(listeners); listener; listener = cr_json_next(listener)) {
        const struct cr_json *refs = cr_json_at(listener, "tls", "certificateRefs");
        for (const struct cr_json *ref = cr_json_first(refs); ref; ref = cr_json_next(ref))
            if (is_own_secret(ref, gateway))
                add_name(names, cr_json_string_at(ref, "name"));
    }
}

/* --- hosts --- */

static void add_host(struct cr_strvec *out, const char *host)
{
    if (host && *host && out->len < CR_USAGE_HOSTS_MAX)
        cr_strvec_add_unique(out, host);
}

static void hosts_of_ingress(const struct cr_json *ingress, const char *secret, struct cr_strvec *out)
{
    const struct cr_json *tls = cr_json_at(ingress, "spec", "tls");
    for (const struct cr_json *entry = cr_json_first(tls); entry; entry = cr_json_next(entry)) {
        if (!cr_streq(cr_json_string_at(entry, "secretName"), secret))
            continue;
        const struct cr_json *hosts = cr_json_get(entry, "hosts");
        for (const struct cr_json *host = cr_json_first(hosts); host; host = cr_json_next(host))
            add_host(out, cr_json_string(host));
    }
}

static void hosts_of_gateway(const struct cr_json *gateway, const char *secret, struct cr_strvec *out)
{
    const struct cr_json *listeners = cr_json_at(gateway, "spec", "listeners");
    for (const struct cr_json *listener = cr_json_first(listeners); listener; listener = cr_json_next(listener)) {
        const struct cr_json *refs = cr_json_at(listener, "tls", "certificateRefs");
        const struct cr_json *only = cr_json_first(refs);
        if (only && !cr_json_next(only) && is_own_secret(only, gateway) &&
            cr_streq(cr_json_string_at(only, "name"), secret))
            add_host(out, cr_json_string_at(listener, "hostname"));
    }
}

/* --- by kind --- */

/* What has no pods names Secrets in a way of its own. */
static const struct route_kind {
    const char *kind;
    void (*names)(const struct cr_json *object, struct names *names);
    void (*hosts)(const struct cr_json *object, const char *secret, struct cr_strvec *out);
} route_kinds[] = {
    {"Ingress", names_of_ingress, hosts_of_ingress},
    {"Gateway", names_of_gateway, hosts_of_gateway},
};

static const struct route_kind *route_kind_of(const char *kind)
{
    for (size_t i = 0; i < cr_array_len(route_kinds); i++)
        if (cr_streq(route_kinds[i].kind, kind))
            return &route_kinds[i];
    return NULL;
}

void cr_usage_of_object(const char *kind, const struct cr_json *object, struct cr_strvec *out)
{
    const struct route_kind *route = route_kind_of(kind);
    CR_CLEANUP(cr_strmap) struct cr_strmap *known = cr_strmap_new(NULL);
    struct names names = {.known = known, .out = out};
    if (route)
        route->names(object, &names);
    else if (cr_consumer_kind_has_pods(cr_consumer_kind_of(kind)))
        names_of_workload(object, &names);
}

void cr_usage_hosts(const char *kind, const struct cr_json *object, const char *secret, struct cr_strvec *out)
{
    const struct route_kind *route = route_kind_of(kind);
    if (route)
        route->hosts(object, secret, out);
}
