/* Parts of the configuration and what their readers share. Private to pkg/sidecar. */
#ifndef CR_SIDECAR_CONFIG_READ_H
#define CR_SIDECAR_CONFIG_READ_H

#include "api/node.h"
#include "sidecar/config.h"

/* A misspelt field would be silently without effect. */
bool cr_config_only(const struct cr_node *node, const char *const *known, size_t len, struct cr_error *err) CR_MUST_USE;
#define CR_CONFIG_ONLY(node, err, ...)                                                                                 \
    cr_config_only((node), (const char *const[]){__VA_ARGS__}, cr_array_len(((const char *const[]){__VA_ARGS__})),     \
                   (err))

/* A file by its absolute path; absent: NULL. */
bool cr_config_path(const struct cr_node *node, const char *key, char **slot, struct cr_error *err) CR_MUST_USE;
/* Which parts a material has, as enum cr_output_part. */
unsigned cr_config_parts(const struct cr_sidecar_material *material);

/* Reads node, an element of outputs or triggers, for material, which has its paths already. out is zeroed; the caller
 * disposes of it, also on failure. */
bool cr_config_trigger(const struct cr_node *node, const struct cr_sidecar_material *material,
                       struct cr_trigger_spec *out, struct cr_error *err) CR_MUST_USE;
void cr_config_trigger_dispose(struct cr_trigger_spec *trigger);

#endif
