/* What a container is started with: flags of its command line and variables, as far as the pod template shows them.
 * Pure. The node agent reads the same of static pods. */
#ifndef CR_CATALOGUE_SETTINGS_H
#define CR_CATALOGUE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/strvec.h"
#include "codec/json.h"

struct cr_setting {
    bool env;
    char *name;  /* variable, or flag without its dashes */
    char *value; /* NULL: it comes from elsewhere (valueFrom, or a variable that the template does not show) */
};

struct cr_settings {
    struct cr_setting *items;
    size_t len;
    bool hidden_env; /* envFrom: there are variables that the template does not show */
    bool cut;        /* there are more than we read */
};

void cr_settings_dispose(struct cr_settings *settings);
CR_DEFINE_DISPOSE(cr_settings, struct cr_settings, cr_settings_dispose)

/* $(VAR) is expanded in values, command and args as the kubelet does: variables of this container that have a literal
 * value; what stays unexpanded, a shell's $VAR too, makes the value unknown. Flags: "--flag=value", "--flag value" and
 * the same with one dash; "-c name=value" is "name", too; a flag without a value has an empty one; also inside of an
 * argument that is a shell's script. Borrowed container. */
void cr_settings_collect(const struct cr_json *container, struct cr_settings *out);
/* Command and args, one element each, expanded in the same way. False: the process may be given others than these,
 * since a variable that the template does not show stands in them, or they are too long. out is valid in any case. */
bool cr_settings_argv(const struct cr_json *container, struct cr_strvec *out) CR_MUST_USE;
/* Caps: variables may refer to one another, so that a small template can mean a huge text. */
enum { CR_SETTINGS_MAX = 4096, CR_SETTINGS_MAX_BYTES = 1024 * 1024 };

#endif
