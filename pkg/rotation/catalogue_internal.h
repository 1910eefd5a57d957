/* The catalogue as its parts share it; not for others. */
#ifndef CR_ROTATION_CATALOGUE_INTERNAL_H
#define CR_ROTATION_CATALOGUE_INTERNAL_H

#include "base/strvec.h"
#include "rotation/catalogue.h"
#include "rotation/version.h"

/* Where a claim comes from. */
enum cr_confidence { CR_CONFIDENCE_VERIFIED, CR_CONFIDENCE_DOCUMENTED, CR_CONFIDENCE_EXPERIMENT, CR_CONFIDENCE_MEMORY };

/* One line of the table: under which conditions what holds. All conditions that are given must hold. */
struct cr_rule {
    bool has_versions;
    struct cr_version_range versions;
    struct cr_strvec tags;         /* image tags without an order, listed */
    struct cr_strvec mentions;     /* any of them in a path that the container names */
    struct cr_strvec pod_mentions; /* any of them in an argument of any container of the pod */
    enum cr_method method;
    int64_t max_delay_ms;
    char *trigger; /* what signal, request or command; NULL for other methods */
    char *says;    /* "watches its files by SDS"; NULL: said from the method */
    enum cr_confidence confidence;
    char *source;
};

/* What a component does with the material that one of these parameters points to. No parameter: with material of which
 * it cannot be told how it came in. */
struct cr_use {
    struct cr_strvec flags;
    struct cr_strvec env;
    struct cr_strvec config; /* names in configuration files: known to exist, but not visible in a pod template */
    unsigned roles;
    /* The program only names the files to another container of the pod, which reads them itself: nothing to reload
     * here. No rules then. */
    bool hands_on;
    char *source;          /* of that claim; NULL otherwise */
    struct cr_rule *rules; /* the first that holds counts; the last has no condition of version or tag */
    size_t rules_len;
};

struct cr_component {
    char *name;
    char *title; /* for sentences; NULL: the name */
    char *distribution;
    struct cr_strvec images;
    struct cr_use *uses;
    size_t uses_len;
    unsigned roles; /* of all uses that read what they point to */
};

struct cr_catalogue {
    struct cr_component *items;
    size_t len;
};

/* "Rate Limit (envoyproxy/ratelimit)". */
void cr_component_title(const struct cr_component *component, char *out, size_t size);

/* Borrowed: the parameter as the use names it, NULL when it has none of that name. */
const char *cr_use_parameter(const struct cr_use *use, const char *name);

/* The tag of an image, owned; NULL when it has none. A digest behind it is cut off. */
char *cr_image_tag(const char *image);

/* How long a method takes when nobody says: a watch 5 s (inotify and a debounce), a handshake 1 s (client-go reads its
 * files at most once a second), a poll 5 min (client-go's). 0 for methods that do not act by themselves. */
int64_t cr_method_default_delay_ms(enum cr_method method);

/* What a capability does in words: "reads its client CA (GRPC_CLIENT_TLS_CACERT) once at start". */
void cr_capability_phrase(const struct cr_capability *capability, enum cr_role role, const char *parameter, char *out,
                          size_t size);
/* "server leaf", "client CA", …: how a role is called in a sentence. */
const char *cr_role_words(enum cr_role role);

/* Worse for a rotation: what needs a restart before what needs a trigger before what reloads by itself. A claim from
 * memory counts as not known. */
int cr_capability_rank(const struct cr_capability *capability);

#endif
