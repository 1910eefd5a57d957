#include "cluster/watch_scope.h"

#include "base/strings.h"

enum {
    LEAST_SHARE = 5
}; /* the minimum of a group, when there are many groups: a shared watch is no cheaper for a namespace with few Secrets
    */

static bool needs_own(const struct cr_watch_scope_item *item, enum cr_shared_scope shared, bool fresh)
{
    if (item->selected)
        return false;
    return shared == CR_SHARED_NONE || item->least > shared || (!fresh && item->passed_over);
}

/* Watches of their own beside that shared one. fresh: its list is still to come, and has all that is wanted now. */
static size_t count_own(const struct cr_watch_scope_in *in, enum cr_shared_scope shared, bool fresh)
{
    size_t count = 0;
    for (size_t i = 0; i < in->len; i++)
        count += needs_own(&in->items[i], shared, fresh);
    return count;
}

struct cr_watch_scope cr_watch_scope_decide(const struct cr_watch_scope_in *in)
{
    struct cr_watch_scope out = {.shared = CR_SHARED_NONE};
    if (in->scope == CR_SECRET_SCOPE_NAMED)
        return out;
    size_t low = in->limit * CR_WATCH_SCOPE_LOW_PERCENT / 100;
    while (out.shared < CR_SHARED_ALL && count_own(in, out.shared, true) > (out.shared < in->present ? low : in->limit))
        out.shared++;
    bool passed_over =
        out.shared != CR_SHARED_NONE && out.shared == in->present && count_own(in, out.shared, false) > in->limit;
    out.relist = passed_over && !in->listing;
    out.later = passed_over && in->listing;
    return out;
}

bool cr_watch_scope_own(const struct cr_watch_scope_in *in, struct cr_watch_scope decided,
                        const struct cr_watch_scope_item *item)
{
    return needs_own(item, decided.shared, decided.relist || decided.later || decided.shared != in->present);
}

size_t cr_watch_scope_share(size_t groups)
{
    size_t share = groups ? CR_WATCH_SCOPE_LIMIT / groups : CR_WATCH_SCOPE_LIMIT;
    return share < LEAST_SHARE ? LEAST_SHARE : share;
}

enum cr_shared_scope cr_shared_scope_of_type(const char *type)
{
    if (cr_streq(type, "kubernetes.io/tls"))
        return CR_SHARED_TLS;
    if (cr_streq(type, "kubernetes.io/service-account-token") || cr_streq(type, "helm.sh/release.v1"))
        return CR_SHARED_ALL;
    return CR_SHARED_USUAL;
}

const char *cr_shared_scope_field_selector(enum cr_shared_scope shared)
{
    switch (shared) {
    case CR_SHARED_TLS:
        return "type=kubernetes.io/tls";
    case CR_SHARED_USUAL:
        return "type!=kubernetes.io/service-account-token,type!=helm.sh/release.v1";
    default:
        return NULL;
    }
}
