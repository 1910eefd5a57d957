#include "kube/managed_fields.h"

#include <stdbool.h>
#include <string.h>

#include "base/strings.h"

static bool is_one_of(const char *key, const char *const *fields)
{
    for (size_t i = 0; fields[i]; i++)
        if (cr_streq(key, fields[i]))
            return true;
    return false;
}

/* Bounded by the depth that is parsed at all. NOLINTNEXTLINE(misc-no-recursion) */
static bool has_any(const struct cr_json *part, const char *const *fields)
{
    for (const struct cr_json *field = cr_json_first(part); field; field = cr_json_next(field)) {
        const char *key = cr_json_key(field);
        if (is_one_of(key, fields) || (!cr_streq(key, "f:metadata") && has_any(field, fields)))
            return true;
    }
    return false;
}

/* RFC 3339 in UTC, as the API server writes it: their order as texts is that of the times. */
static bool is_later(const char *time, const char *than)
{
    return strcmp(cr_or_empty(time), cr_or_empty(than)) > 0;
}

const char *cr_managed_fields_other(const struct cr_json *object, const char *const *fields)
{
    const char *other = NULL;
    const char *other_at = NULL;
    const char *own_at = NULL;
    const struct cr_json *entries = cr_json_at(object, "metadata", "managedFields");
    for (const struct cr_json *entry = cr_json_first(entries); entry; entry = cr_json_next(entry)) {
        const char *manager = cr_json_string(cr_json_get(entry, "manager"));
        const char *time = cr_json_string(cr_json_get(entry, "time"));
        if (!manager || !has_any(cr_json_get(entry, "fieldsV1"), fields))
            continue;
        bool own = cr_streq(manager, CR_FIELD_MANAGER);
        if (own && (!own_at || is_later(time, own_at)))
            own_at = time;
        else if (!own && (!other || is_later(time, other_at))) {
            other = manager;
            other_at = time;
        }
    }
    return other && !is_later(own_at, other_at) ? other : NULL;
}
