/* What the entries of the catalogue name, for the code that asks a running process by these names. */
#include "catalogue/catalogue_internal.h"

#include "base/strings.h"

bool cr_component_parameter(const struct cr_component *component, size_t i, struct cr_known_parameter *out)
{
    for (size_t u = 0; component && u < component->uses_len; u++) {
        const struct cr_use *use = &component->uses[u];
        const struct cr_strvec *const lists[] = {
            [CR_PARAMETER_FLAG] = &use->flags,
            [CR_PARAMETER_VARIABLE] = &use->env,
            [CR_PARAMETER_CONFIG] = &use->config,
            [CR_PARAMETER_PATH] = &use->paths,
        };
        for (size_t kind = 0; kind < cr_array_len(lists); kind++) {
            if (i < lists[kind]->len) {
                *out = (struct cr_known_parameter){.name = lists[kind]->items[i],
                                                   .kind = (enum cr_parameter_kind)kind,
                                                   .roles = use->roles,
                                                   .hands_on = use->hands_on};
                return true;
            }
            i -= lists[kind]->len;
        }
    }
    return false;
}
