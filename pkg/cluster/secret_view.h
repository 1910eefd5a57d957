/* Secrets as the cache keeps them: digests of the material, for the key names that policies use, and nothing that could
 * rebuild a key. Data of Secrets that no policy names is dropped unread. */
#ifndef CR_CLUSTER_SECRET_VIEW_H
#define CR_CLUSTER_SECRET_VIEW_H

#include "api/policy.h"
#include "base/cleanup.h"
#include "codec/json.h"
#include "cluster/secret_refs.h"
#include "pki/material.h"

/* Removes and wipes every field that carries data: what is left of a Secret is not secret. */
void cr_secret_strip(struct cr_json *json);

/* Keys of a Secret that are read: API servers count the bytes of values, but not how many there are. One that has more
 * is TooCostly. */
enum { CR_SECRET_KEYS_MAX = 10 * 1000 };

/* What one Secret holds, seen through one policy's key names. */
struct cr_secret_view {
    char *resource_version;
    bool immutable;
    char *on_missing_name; /* its annotation CR_MISSING_NAME_ANNOTATION, cut; NULL: it has none */
    struct cr_material material;
    enum cr_material_problem problem;
    char *problem_text;
};
void cr_secret_view_free(struct cr_secret_view *view);
CR_DEFINE_CLEANUP(cr_secret_view, struct cr_secret_view, cr_secret_view_free)

/* What is seen through the key names of each policy that names the Secret. Immutable. */
struct cr_secret_views;
void cr_secret_views_free(struct cr_secret_views *views);
CR_DEFINE_CLEANUP(cr_secret_views, struct cr_secret_views, cr_secret_views_free)
/* Owned; NULL when no policy names the Secret. Not on the loop: certificates are verified. */
struct cr_secret_views *cr_secret_views_read(struct cr_secret_refs *refs, const struct cr_json *secret);
/* A copy, owned; NULL when it was not read through these names. views: may be NULL. */
struct cr_secret_view *cr_secret_view_find(const struct cr_secret_views *views, const struct cr_policy_secret *names);
/* Reads a whole Secret object, the data of which may be a text (cr_json_text). key NULL: opaque material is only named.
 * Owned; never NULL.
 *
 * The digests of opaque material are made with a key derived from it, for this Secret seen through these names alone:
 * the same password in two Secrets does not show, and other names are another first sight, not a change. */
struct cr_secret_view *cr_secret_view_read(const struct cr_json *secret, const struct cr_policy_secret *names,
                                           const unsigned char *key);

#endif
