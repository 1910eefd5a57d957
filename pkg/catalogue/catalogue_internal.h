/* The catalogue as its parts share it; not for others. */
#ifndef CR_CATALOGUE_CATALOGUE_INTERNAL_H
#define CR_CATALOGUE_CATALOGUE_INTERNAL_H

#include "base/strvec.h"
#include "catalogue/catalogue.h"
#include "catalogue/settings.h"
#include "catalogue/version.h"

/* Where a claim comes from. */
enum cr_confidence {
    CR_CONFIDENCE_VERIFIED,
    CR_CONFIDENCE_DOCUMENTED,
    CR_CONFIDENCE_EXPERIMENT,
    CR_CONFIDENCE_MEMORY,
    CR_CONFIDENCE_COUNT,
};
/* As the catalogue writes it; catalogue_read.c. */
extern const char *const cr_confidence_names[CR_CONFIDENCE_COUNT];

/* One line of the table: under which conditions what holds. All conditions that are given must hold. */
struct cr_rule {
    bool has_versions;
    struct cr_version_range versions;
    struct cr_strvec tags;         /* image tags without an order, listed */
    struct cr_strvec mentions;     /* any of them in a path that the container names */
    struct cr_strvec pod_mentions; /* any of them in an argument of any container of the pod */
    struct cr_strvec settings;     /* any of them: "NAME=PATTERN" or "NAME", a flag when it begins with a dash */
    enum cr_method method;
    int64_t max_delay_ms;
    char *trigger; /* what signal, request or command; NULL for other methods */
    char *says;    /* "watches its files by SDS"; NULL: said from the method */
    enum cr_confidence confidence;
    char *source;
};

/* What a component does with the material that one of these parameters points to. No parameter: with material that came
 * in by a way that is not known. */
struct cr_use {
    struct cr_strvec flags;
    struct cr_strvec env;
    struct cr_strvec config; /* names in configuration files: known to exist, but not visible in a pod template */
    struct cr_strvec paths;  /* files and folders that it reads without a setting */
    unsigned roles;
    /* The program only names the files to another container of the pod, which reads them itself: nothing to reload
     * here. No rules then. */
    bool hands_on;
    char *source;          /* of that claim; NULL otherwise */
    struct cr_rule *rules; /* the first that holds counts; the last has no condition of version or tag */
    size_t rules_len;
};

/* Types of keys that it accepts in a leaf: of its own in a leaf's role, of its peers in a CA's role. */
struct cr_key_types {
    unsigned roles;
    bool has_versions;
    struct cr_version_range versions;
    struct cr_strvec types; /* "ECDSA" is any curve, "ECDSA-P256" that one; cr_material.key_type */
    enum cr_confidence confidence;
    char *source;
};

struct cr_component {
    char *name;
    char *title; /* for sentences; NULL: the name */
    char *distribution;
    char *note;   /* for people; NULL: none */
    bool library; /* its versions are not those of an image */
    bool replaced;
    unsigned layer; /* 0: built in; a higher one wins */
    struct cr_strvec images;
    struct cr_key_types *key_types;
    size_t key_types_len;
    struct cr_use *uses;
    size_t uses_len;
    unsigned roles; /* of all uses that read what they point to */
};

struct cr_catalogue {
    struct cr_component *items;
    size_t len;
};

/* What the build embeds, in the order of names: pkg/catalogue/data/ *.yaml. */
struct cr_catalogue_file {
    const char *name;
    const char *text;
    const size_t *len;
};
extern const struct cr_catalogue_file cr_catalogue_files[];
extern const size_t cr_catalogue_files_len;

/* --- catalogue_free.c --- */
void cr_component_dispose(struct cr_component *component);

/* --- catalogue_read.c: parts of an entry, strictly; errors name the field --- */
struct cr_node;
bool cr_catalogue_read_fields(const struct cr_node *node, const char *const *allowed, struct cr_error *err) CR_MUST_USE;
/* A list of strings, none empty, none twice; absent is an empty list. */
bool cr_catalogue_read_strings(const struct cr_node *node, const char *key, struct cr_strvec *out,
                               struct cr_error *err) CR_MUST_USE;
bool cr_catalogue_read_roles(const struct cr_node *node, unsigned *out, struct cr_error *err) CR_MUST_USE;
bool cr_catalogue_read_rules(const struct cr_node *node, struct cr_use *use, struct cr_error *err) CR_MUST_USE;
bool cr_catalogue_read_key_types(const struct cr_node *node, struct cr_component *component,
                                 struct cr_error *err) CR_MUST_USE;

/* --- catalogue_conditions.c --- */

/* A running program as the conditions of rules see it. */
struct cr_subject {
    const struct cr_program *program;
    char *tag; /* owned; NULL: none */
    bool has_version;
    struct cr_version_span version;
    struct cr_settings settings;
};
void cr_subject_init(struct cr_subject *subject, const struct cr_program *program);
void cr_subject_dispose(struct cr_subject *subject);
CR_DEFINE_DISPOSE(cr_subject, struct cr_subject, cr_subject_dispose)
bool cr_rule_is_conditional(const struct cr_rule *rule);
/* All conditions of the rule; use: the use that the rule belongs to. */
enum cr_tri cr_rule_holds(const struct cr_use *use, const struct cr_rule *rule, const struct cr_subject *subject);
enum cr_tri cr_subject_in_range(const struct cr_subject *subject, bool has_versions,
                                const struct cr_version_range *versions);

/* Borrowed: the parameter as the use names it, NULL when it has none of that name. */
const char *cr_use_parameter(const struct cr_use *use, const char *name);

/* Worse for a rotation: what needs a restart before what needs a trigger before what reloads by itself. A claim from
 * memory counts as not known. */
int cr_capability_rank(const struct cr_capability *capability);

#endif
