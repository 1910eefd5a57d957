/* The fields of a kubeconfig, with errors that say where they are: for those who read one. Pure. What a client needs of
 * it is kube/config.h. */
#ifndef CR_KUBE_KUBECONFIG_READER_H
#define CR_KUBE_KUBECONFIG_READER_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/json.h"
#include "kube/config.h"

/* What is being read: for messages and relative paths. */
struct cr_kubeconfig_reader {
    const char *path;
    const char *what; /* "user 'admin'" */
    struct cr_error *err;
};

/* "<path>: <what>: <field> <problem>". Always false. */
bool cr_kubeconfig_invalid(const struct cr_kubeconfig_reader *in, const char *field, const char *problem);
/* *text: borrowed; NULL when the field is absent, null or empty, as client-go has it. */
bool cr_kubeconfig_text(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        const char **text) CR_MUST_USE;
/* The same, owned. */
bool cr_kubeconfig_copy(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        char **slot) CR_MUST_USE;
/* Absent and null are false. */
bool cr_kubeconfig_bool(const struct cr_kubeconfig_reader *in, const struct cr_json *object, const char *field,
                        bool *value) CR_MUST_USE;
/* A path, relative to the kubeconfig's own folder. Owned. */
char *cr_kubeconfig_resolve(const struct cr_kubeconfig_reader *in, const char *file);

/* What a field ending in -data holds. Owned; wiped by the caller when it is a secret. NULL: it is no base64, or no
 * text.
 */
char *cr_kubeconfig_decode(const struct cr_kubeconfig_reader *in, const char *field, const char *base64) CR_MUST_USE;

/* The context of that name, NULL: the one in current-context. *name: which that was. Both borrowed from the file. NULL:
 * there is none. */
const struct cr_json *cr_kubeconfig_context(const char *path, const struct cr_json *file, const char *wanted,
                                            const char **name, struct cr_error *err) CR_MUST_USE;
/* What the context names as its `kind`, "cluster" or "user". Borrowed. NULL: it is not there. */
const struct cr_json *cr_kubeconfig_part(const char *path, const struct cr_json *file, const struct cr_json *context,
                                         const char *kind, struct cr_error *err) CR_MUST_USE;

#endif
