/* The flags that a program of Kubernetes or etcd was started with, out of its words: "--name=value", "--name value",
 * one dash or two, and "_" for "-" in a name, as their libraries take them (component-base cli/flag
 * WordSepNormalizeFunc, pflag, Go's flag). Which flags take a value need not be known: none of these programs takes
 * words beside its flags, so a word behind a flag is its value. Pure. */
#ifndef CR_CONTROLPLANE_AGENT_GIVEN_FLAGS_H
#define CR_CONTROLPLANE_AGENT_GIVEN_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct cr_given_flag {
    char *name;  /* without its dashes, "-" for "_" */
    char *value; /* NULL: none was given ("--rotate-certificates") */
};

struct cr_given_flags {
    struct cr_given_flag *items; /* in their order */
    size_t len;
    char *stray; /* the first word that belongs to no flag; NULL: none */
    bool cut;    /* there are more than CR_GIVEN_FLAGS_MAX: these are the first */
};

enum { CR_GIVEN_FLAGS_MAX = 1024 };

/* The words behind the program's name. What stands behind "--" belongs to no flag. Owned. */
void cr_given_flags_read(char *const *words, size_t len, struct cr_given_flags *out);
void cr_given_flags_dispose(struct cr_given_flags *flags);
CR_DEFINE_DISPOSE(cr_given_flags, struct cr_given_flags, cr_given_flags_dispose)

/* The last of that name, which is the one that counts; name: without dashes. Borrowed; NULL: it was not given. */
const struct cr_given_flag *cr_given_flags_find(const struct cr_given_flags *flags, const char *name);
/* Its value; NULL: not given, or without one, or with an empty one, which these programs take as not given. */
const char *cr_given_flags_text(const struct cr_given_flags *flags, const char *name);

/* As strconv.ParseBool reads it, and a flag without a value is true. False: it is neither. */
bool cr_given_flag_bool(const struct cr_given_flag *flag, bool *out);

#endif
