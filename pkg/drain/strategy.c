#include "drain/strategy.h"

#include "base/strings.h"

/* In the order in which messages name them; the last entry is NULL. */
static const struct cr_drain_strategy *const all[] = {
    &cr_drain_envoy, &cr_drain_haproxy, &cr_drain_nginx, &cr_drain_generic, NULL,
};

static bool refuse(const char *name, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    for (size_t i = 0; all[i]; i++)
        cr_strvec_add(&names, all[i]->name);
    cr_autofree char *list = cr_strvec_join(&names, ", ");
    return cr_error_set(err, CR_ERR_INVALID, "'%s' is no proxy that can be drained: these are %s", cr_or_empty(name),
                        list);
}

const struct cr_drain_strategy *cr_drain_strategy_find(const char *name, struct cr_error *err)
{
    for (size_t i = 0; all[i]; i++) {
        if (cr_streq(all[i]->name, name))
            return all[i];
    }
    refuse(name, err);
    return NULL;
}
