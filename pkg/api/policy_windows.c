#include "api/policy_windows.h"

#include "base/alloc.h"
#include "codec/tzif.h"

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };

static const struct cr_node_range duration_range = {MINUTE, INT64_C(168) * HOUR, 0};
static const struct cr_node_range override_range = {0, INT64_C(8760) * HOUR, CR_POLICY_NO_OVERRIDE};

void cr_policy_windows_dispose(struct cr_policy_restart *restart)
{
    for (size_t i = 0; i < restart->windows_len; i++)
        free(restart->windows[i].time_zone);
    free(restart->windows);
    restart->windows = NULL;
    restart->windows_len = 0;
}

static bool decode_schedule(const struct cr_node *node, struct cr_policy_window *out, struct cr_error *err)
{
    cr_autofree char *schedule = NULL;
    return cr_node_required(node, "schedule", &schedule, err) &&
           (cr_cron_parse(schedule, &out->opens, err) || cr_error_wrap(err, "%s.schedule", node->path));
}

static bool decode_duration(const struct cr_node *node, struct cr_policy_window *out, struct cr_error *err)
{
    if (!cr_node_has(node, "duration"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.duration is required", node->path);
    return cr_node_duration(node, "duration", duration_range, &out->duration_ms, err);
}

static bool decode_zone(const struct cr_node *node, struct cr_policy_window *out, struct cr_error *err)
{
    return cr_node_string(node, "timeZone", "UTC", &out->time_zone, err) &&
           (cr_tzif_name_check(out->time_zone, err) || cr_error_wrap(err, "%s.timeZone", node->path));
}

bool cr_policy_windows_decode(const struct cr_node *restart, struct cr_policy_restart *out, struct cr_error *err)
{
    struct cr_node array;
    if (!cr_node_array(restart, "windows", CR_POLICY_WINDOWS_MAX, &array, err))
        return false;
    out->windows = cr_calloc(cr_json_len(array.json) + 1, sizeof *out->windows);
    for (const struct cr_json *item = cr_json_first(array.json); item; item = cr_json_next(item)) {
        struct cr_node node;
        struct cr_policy_window *window = &out->windows[out->windows_len];
        if (!cr_node_item(&array, item, out->windows_len, &node, err))
            return false;
        out->windows_len++; /* before it is complete, so that it is disposed of */
        if (!decode_schedule(&node, window, err) || !decode_duration(&node, window, err) ||
            !decode_zone(&node, window, err))
            return false;
    }
    return cr_node_duration(restart, "overrideWindowBeforeExpiry", override_range, &out->override_window_ms, err);
}
