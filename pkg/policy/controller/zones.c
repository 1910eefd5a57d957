#include "policy/controller/zones.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "sys/file.h"

struct cr_zones {
    pthread_mutex_t lock;
    struct cr_strmap *by_name;
    char *folder;
};

static void free_zone(void *zone)
{
    cr_tzif_free(zone);
}

struct cr_zones *cr_zones_new(const char *folder)
{
    struct cr_zones *zones = cr_new(struct cr_zones);
    pthread_mutex_init(&zones->lock, NULL);
    zones->by_name = cr_strmap_new(free_zone);
    zones->folder = cr_strdup(folder ? folder : CR_ZONES_FOLDER);
    return zones;
}

void cr_zones_free(struct cr_zones *zones)
{
    if (!zones)
        return;
    cr_strmap_free(zones->by_name);
    pthread_mutex_destroy(&zones->lock);
    free(zones->folder);
    free(zones);
}

/* Owned. */
static struct cr_tzif *load(const struct cr_zones *zones, const char *name, struct cr_error *err)
{
    if (cr_streq(name, "UTC"))
        return cr_tzif_new_utc();
    if (!cr_tzif_name_check(name, err))
        return NULL;
    cr_autofree char *path = cr_asprintf("%s/%s", zones->folder, name);
    CR_CLEANUP(cr_buf) struct cr_buf data = CR_BUF_INIT(0);
    struct cr_error failed = {0};
    struct cr_tzif *zone = NULL;
    if (cr_file_read(path, CR_TZIF_MAX, &data, &failed))
        zone = cr_tzif_parse(data.data, data.len, &failed);
    if (!zone && failed.kind == CR_ERR_NOT_FOUND)
        cr_error_set(err, CR_ERR_INVALID, "'%s' is not in the time zone database (%s)", name, zones->folder);
    else if (!zone)
        cr_error_set(err, failed.kind, "'%s' cannot be taken from the time zone database (%s): %s", name, zones->folder,
                     failed.text);
    return zone;
}

const struct cr_tzif *cr_zones_get(struct cr_zones *zones, const char *name, struct cr_error *err)
{
    pthread_mutex_lock(&zones->lock);
    struct cr_tzif *zone = cr_strmap_get(zones->by_name, name);
    if (!zone && (zone = load(zones, name, err)))
        cr_strmap_set(zones->by_name, name, zone);
    pthread_mutex_unlock(&zones->lock);
    return zone;
}

bool cr_zones_of(struct cr_zones *zones, const struct cr_policy *policy,
                 const struct cr_tzif *out[CR_POLICY_WINDOWS_MAX], struct cr_error *err)
{
    for (size_t i = 0; i < policy->restart.windows_len; i++) {
        out[i] = cr_zones_get(zones, policy->restart.windows[i].time_zone, err);
        if (!out[i])
            return cr_error_wrap(err, "spec.restart.windows[%zu].timeZone", i);
    }
    return true;
}
