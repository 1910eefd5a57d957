#include "workload/sidecar.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "evidence/diff.h"

/* --- which container --- */

/* kubernetes.io/docs/concepts/workloads/pods/sidecar-containers: it runs as long as the pod. */
static bool keeps_running(const struct cr_json *container, bool init)
{
    return !init || cr_streq(cr_json_string_at(container, "restartPolicy"), "Always");
}

/* The number of its port of that name; 0: it has none. */
static int port_of(const struct cr_json *container)
{
    const struct cr_json *ports = cr_json_get(container, "ports");
    for (const struct cr_json *port = cr_json_first(ports); port; port = cr_json_next(port)) {
        int64_t number = cr_json_int_at(port, 0, "containerPort");
        if (cr_streq(cr_json_string_at(port, "name"), CR_SIDECAR_PORT_NAME) && number > 0 && number <= 65535)
            return (int)number;
    }
    return 0;
}

struct cr_sidecar_container cr_sidecar_find(const struct cr_json *pod_spec)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(pod_spec, lists[i]);
        for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c)) {
            const char *name = cr_json_string_at(c, "name");
            int port = keeps_running(c, i == 1) ? port_of(c) : 0;
            if (name && port)
                return (struct cr_sidecar_container){.container = name, .port = port};
        }
    }
    return (struct cr_sidecar_container){0};
}

static const struct cr_json *named(const struct cr_json *list, const char *name)
{
    for (const struct cr_json *item = cr_json_first(list); name && item; item = cr_json_next(item))
        if (cr_streq(cr_json_string_at(item, "name"), name))
            return item;
    return NULL;
}

static const struct cr_json *container_of(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar)
{
    const struct cr_json *c = named(cr_json_get(pod_spec, "containers"), sidecar->container);
    return c ? c : named(cr_json_get(pod_spec, "initContainers"), sidecar->container);
}

static bool has_word(const struct cr_json *words, const char *wanted)
{
    for (const struct cr_json *word = cr_json_first(words); word; word = cr_json_next(word))
        if (cr_streq(cr_json_string(word), wanted))
            return true;
    return false;
}

bool cr_sidecar_prepares(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                         const char *container)
{
    const struct cr_json *init = named(cr_json_get(pod_spec, "initContainers"), container);
    const char *image = cr_json_string_at(init, "image");
    return sidecar->container && image && !keeps_running(init, true) &&
           cr_streq(image, cr_json_string_at(container_of(pod_spec, sidecar), "image")) &&
           (has_word(cr_json_get(init, "command"), "--once") || has_word(cr_json_get(init, "args"), "--once"));
}

/* --- what it has --- */

static bool brings(const struct cr_usage *usage, const char *key)
{
    return key && (usage->keys.len == 0 || cr_strvec_has(&usage->keys, key));
}

unsigned cr_sidecar_classes(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                            const struct cr_policy_secret *secret)
{
    bool certificate = false, private_key = false, trust = false;
    CR_CLEANUP(cr_usage_list) struct cr_usage_list usages = {0};
    if (!sidecar->container)
        return 0;
    cr_usage_collect(pod_spec, secret->name, &usages);
    for (size_t i = 0; i < usages.len; i++) {
        const struct cr_usage *usage = &usages.items[i];
        if (!cr_usage_refreshes(usage->kind) || !cr_streq(usage->container, sidecar->container))
            continue;
        certificate = certificate || brings(usage, secret->certificate);
        private_key = private_key || brings(usage, secret->private_key);
        trust = trust || brings(usage, secret->trust);
    }
    return (certificate && private_key ? CR_CLASS_LEAF : 0u) | (trust ? CR_CLASS_TRUST : 0u);
}

/* --- which containers read what it makes --- */

/* One that it writes to, or where a socket of the program is. */
static bool is_shared(const struct cr_json *volume)
{
    static const char *const given[] = {"secret", "projected", "configMap", "downwardAPI"};
    for (size_t i = 0; i < cr_array_len(given); i++)
        if (cr_json_get(volume, given[i]))
            return false;
    return volume != NULL;
}

static bool share_a_volume(const struct cr_json *pod_spec, const struct cr_json *a, const struct cr_json *b)
{
    const struct cr_json *mounts = cr_json_get(a, "volumeMounts");
    for (const struct cr_json *mount = cr_json_first(mounts); mount; mount = cr_json_next(mount)) {
        const char *volume = cr_json_string_at(mount, "name");
        if (named(cr_json_get(b, "volumeMounts"), volume) && is_shared(named(cr_json_get(pod_spec, "volumes"), volume)))
            return true;
    }
    return false;
}

static size_t add_readers(const struct cr_json *pod_spec, const struct cr_json *sidecar, bool all,
                          const struct cr_json **out)
{
    static const char *const lists[] = {"initContainers", "containers"};
    size_t len = 0;
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        const struct cr_json *list = cr_json_get(pod_spec, lists[i]);
        for (const struct cr_json *c = cr_json_first(list); c; c = cr_json_next(c))
            if (c != sidecar && keeps_running(c, i == 0) && (all || share_a_volume(pod_spec, sidecar, c)))
                out[len++] = c;
    }
    return len;
}

const struct cr_json **cr_sidecar_readers(const struct cr_json *pod_spec, const struct cr_sidecar_container *sidecar,
                                          size_t *len)
{
    const struct cr_json *own = container_of(pod_spec, sidecar);
    size_t most =
        cr_json_len(cr_json_get(pod_spec, "containers")) + cr_json_len(cr_json_get(pod_spec, "initContainers"));
    const struct cr_json **readers = cr_calloc(most, sizeof(struct cr_json *));
    *len = add_readers(pod_spec, own, false, readers);
    if (!*len)
        *len = add_readers(pod_spec, own, true, readers);
    return readers;
}
