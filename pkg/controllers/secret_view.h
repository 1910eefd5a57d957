/* Secrets as the cache keeps them: digests of the material, for the key names that policies use, and nothing that could
 * rebuild a key. Data of Secrets that no policy names is dropped unread. */
#ifndef CR_CONTROLLERS_SECRET_VIEW_H
#define CR_CONTROLLERS_SECRET_VIEW_H

#include "api/policy.h"
#include "base/cleanup.h"
#include "codec/json.h"
#include "kube/client.h"
#include "pki/material.h"
#include "runtime/store.h"

/* Which Secrets policies name, with which keys. Thread-safe. */
struct cr_secret_refs;
struct cr_secret_refs *cr_secret_refs_new(void);
void cr_secret_refs_free(struct cr_secret_refs *refs);
CR_DEFINE_CLEANUP(cr_secret_refs, struct cr_secret_refs, cr_secret_refs_free)
/* Adds what the policy names. Of the ways to read one Secret there are at most 16, those that were asked for last; who
 * asks for another is told so by cr_secret_view_find. */
void cr_secret_refs_add(struct cr_secret_refs *refs, const struct cr_policy *policy);
/* No policy names the Secret any more. key: "ns/name". */
void cr_secret_refs_remove(struct cr_secret_refs *refs, const char *key);
/* With it opaque material is digested from now on. Copied; 32 random bytes. */
enum { CR_VIEW_KEY = 32 };
void cr_secret_refs_use_key(struct cr_secret_refs *refs, const unsigned char key[CR_VIEW_KEY]);

/* The informer's projection: strips data from json (wiped) and leaves the parsed views in the snapshot. */
void cr_secret_project(struct cr_secret_refs *refs, struct cr_json *json, struct cr_snapshot *snapshot);

/* What one Secret holds, seen through one policy's key names. */
struct cr_secret_view {
    char *resource_version;
    char *certificate; /* key names */
    char *private_key;
    char *trust;
    struct cr_strvec opaque; /* names of those that count, with has_opaque; else all others do */
    bool has_opaque;
    bool immutable;
    struct cr_material material;
    enum cr_material_problem problem;
    char *problem_text;
};
void cr_secret_view_free(struct cr_secret_view *view);
CR_DEFINE_CLEANUP(cr_secret_view, struct cr_secret_view, cr_secret_view_free)

/* Borrowed; NULL when the projection did not read it through these names (then it must be fetched). */
const struct cr_secret_view *cr_secret_view_find(const struct cr_snapshot *snapshot,
                                                 const struct cr_policy_secret *names);
/* Reads a whole Secret object, the data of which may be a text (cr_json_text). key NULL: opaque material is only named.
 * Owned; never NULL.
 *
 * The digests of opaque material are made with a key derived from it, for this Secret seen through these names alone:
 * the same password in two Secrets does not show, and other names are another first sight, not a change. */
struct cr_secret_view *cr_secret_view_read(const struct cr_json *secret, const struct cr_policy_secret *names,
                                           const unsigned char *key);

#endif
