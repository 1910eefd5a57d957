/* The sets of Secrets of known projects, built in: pkg/certgen/profiles. */
#ifndef CR_CERTGEN_PROFILES_H
#define CR_CERTGEN_PROFILES_H

#include <stddef.h>

/* Static. */
struct cr_certgen_profile {
    const char *name; /* of its file: "contour.yaml" */
    const char *text;
    const size_t *len;
};
extern const struct cr_certgen_profile cr_certgen_profiles[];
extern const size_t cr_certgen_profiles_len;

/* "contour", "envoy-gateway"; NULL: there is none of that name. */
const struct cr_certgen_profile *cr_certgen_profile_find(const char *name);

#endif
