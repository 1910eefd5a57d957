/* Which Secrets policies name, and through which key names they read them. */
#ifndef CR_CLUSTER_SECRET_REFS_H
#define CR_CLUSTER_SECRET_REFS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/policy.h"
#include "base/cleanup.h"

/* Of a policy's Secret only the key names count here: certificate, private_key, trust, opaque and has_opaque. */
bool cr_key_names_equal(const struct cr_policy_secret *a, const struct cr_policy_secret *b);
void cr_key_names_dispose(struct cr_policy_secret *names);

/* Thread-safe. */
struct cr_secret_refs;
struct cr_secret_refs *cr_secret_refs_new(void);
void cr_secret_refs_free(struct cr_secret_refs *refs);
CR_DEFINE_CLEANUP(cr_secret_refs, struct cr_secret_refs, cr_secret_refs_free)
/* Adds what the policy names. Of the ways to read one Secret there are at most 16, the most recently requested ones;
 * for another, cr_secret_view_find returns NULL. */
void cr_secret_refs_add(struct cr_secret_refs *refs, const struct cr_policy *policy);
/* No policy names the Secret any more. key: "ns/name". */
void cr_secret_refs_remove(struct cr_secret_refs *refs, const char *key);
/* Whether any policy names it. */
bool cr_secret_refs_has(struct cr_secret_refs *refs, const char *key);
/* From now on opaque material is digested with this key. Copied; 32 random bytes. */
enum { CR_VIEW_KEY = 32 };
void cr_secret_refs_use_key(struct cr_secret_refs *refs, const unsigned char key[CR_VIEW_KEY]);

/* How policies read one Secret. */
struct cr_secret_ways {
    struct cr_policy_secret *items; /* owned, with their key names; all else is not set */
    size_t len;
    bool has_digest_key;
    unsigned char digest_key[CR_VIEW_KEY];
};
void cr_secret_ways_dispose(struct cr_secret_ways *ways); /* wipes the key */
CR_DEFINE_DISPOSE(cr_secret_ways, struct cr_secret_ways, cr_secret_ways_dispose)
/* A copy, so that no other thread waits while certificates are read; ways is zeroed. len 0: no policy names the Secret.
 */
void cr_secret_refs_ways(struct cr_secret_refs *refs, const char *key, struct cr_secret_ways *ways);

#endif
