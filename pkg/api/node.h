/* Strict reading of an object of ours: a JSON value together with its path, so that every error names the field and
 * says what is allowed. JSON null reads as absent, as the API server prunes it. Only for pkg/api, pkg/certgen and
 * pkg/sidecar. */
#ifndef CR_API_NODE_H
#define CR_API_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "codec/json.h"

enum { CR_NODE_PATH = 128 };

struct cr_node {
    const struct cr_json *json; /* borrowed; NULL: absent */
    char path[CR_NODE_PATH];    /* "spec.consumers[1].verify" */
};

/* Members of node, which may be absent itself; an absent member is a node with json NULL. */
bool cr_node_object(const struct cr_node *node, const char *key, struct cr_node *out, struct cr_error *err) CR_MUST_USE;
/* An array with at most max elements. */
bool cr_node_array(const struct cr_node *node, const char *key, size_t max, struct cr_node *out,
                   struct cr_error *err) CR_MUST_USE;
/* The element at index as an object. */
bool cr_node_item(const struct cr_node *array, const struct cr_json *item, size_t index, struct cr_node *out,
                  struct cr_error *err) CR_MUST_USE;
bool cr_node_has(const struct cr_node *node, const char *key);

/* The slot is replaced; the fallback (NULL: none) is copied when absent. An empty string is refused. */
bool cr_node_string(const struct cr_node *node, const char *key, const char *fallback, char **slot,
                    struct cr_error *err) CR_MUST_USE;
/* Must be there. */
bool cr_node_required(const struct cr_node *node, const char *key, char **slot, struct cr_error *err) CR_MUST_USE;
bool cr_node_bool(const struct cr_node *node, const char *key, bool fallback, bool *out,
                  struct cr_error *err) CR_MUST_USE;

struct cr_node_range {
    int64_t least, most, fallback;
};
/* A required integer has a fallback outside of the range. */
bool cr_node_int(const struct cr_node *node, const char *key, struct cr_node_range range, int *out,
                 struct cr_error *err) CR_MUST_USE;
/* GEP-2257; the range and the result in milliseconds. */
bool cr_node_duration(const struct cr_node *node, const char *key, struct cr_node_range range, int64_t *out_ms,
                      struct cr_error *err) CR_MUST_USE;
/* One of the words; its index, or fallback when absent. */
bool cr_node_enum(const struct cr_node *node, const char *key, const char *const *words, size_t count,
                  unsigned fallback, unsigned *out, struct cr_error *err) CR_MUST_USE;
/* The same for an enumeration whose values are the indices of its words, an array. */
#define CR_NODE_ENUM(node, key, words, fallback, slot, err)                                                            \
    ({                                                                                                                 \
        unsigned value_ = (fallback);                                                                                  \
        bool ok_ = cr_node_enum((node), (key), (words), cr_array_len(words), value_, &value_, (err));                  \
        *(slot) = (__typeof__(*(slot)))value_;                                                                         \
        ok_;                                                                                                           \
    })
/* Must be there. */
bool cr_node_must_have(const struct cr_node *node, const char *key, struct cr_error *err) CR_MUST_USE;
/* A list of at most max strings, none of them empty, as it stands there. */
bool cr_node_list(const struct cr_node *node, const char *key, size_t max, struct cr_strvec *out,
                  struct cr_error *err) CR_MUST_USE;
/* The same, duplicates left out. */
bool cr_node_strings(const struct cr_node *node, const char *key, size_t max, struct cr_strvec *out,
                     struct cr_error *err) CR_MUST_USE;

#endif
