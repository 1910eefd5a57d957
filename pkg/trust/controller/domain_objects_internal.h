/* What the files of domain_objects share. */
#ifndef CR_TRUST_CONTROLLER_DOMAIN_OBJECTS_INTERNAL_H
#define CR_TRUST_CONTROLLER_DOMAIN_OBJECTS_INTERNAL_H

#include "kube/entry.h"
#include "trust/controller/domain_objects.h"
#include "pki/authority.h"
#include "pki/ca_set.h"
#include "pki/issue.h"

#define CR_DOMAIN_STAGING_LABEL "certroll.dev/staging"
#define CR_DOMAIN_STAGING       "certroll-staging-"

/* What a view of a leaf borrows. */
struct cr_leaf_memory {
    bool *verifies;
    char *problem;
    bool costly; /* as cr_domain_leaf_view's */
};

/* An object that the domain writes, with what it is made of. */
struct cr_domain_item {
    const struct cr_resource *resource;
    char *ns; /* NULL: in none */
    char *name;
    bool is_leaf;
    size_t spec; /* index into the domain's leaves or targets */
    /* The place: why nothing may be written there, in words. */
    enum cr_trust_reason closed;
    char *closed_text;
    bool is_unread;  /* nor is anything there that was published */
    bool is_unknown; /* it could not be read */
    /* As they were read, or written since. NULL: not there. */
    struct cr_json *object;
    struct cr_json *source;   /* MIRROR */
    struct cr_json *password; /* of a keystore */
    /* In words, why these could not be read, though they are there; NULL: they were, or are not there. */
    char *source_unread, *password_unread;

    /* The view. */
    enum cr_trust_reason refused;
    char *refused_text;
    bool *bundle;
    struct cr_leaf_memory published, mirrored, previous;
    char *issued_for, *token;
    char *costly_trust; /* why leaves could not be verified with the CAs of its source; NULL: they can */
    char wanted_for[CR_SHA256_HEX];
    bool has_material, has_source;
    struct cr_material material, source_material;
};

/* A CA whose key the domain has. */
struct cr_held_ca {
    struct cr_authority *authority; /* NULL: missing or broken */
    char anchor[CR_SHA256_HEX];     /* what is trusted for it; "" without one */
    enum cr_domain_ca_state state;
    char *problem;
};

/* Who would be cut off by a bundle, as cr_bundle_finding, with a leaf of its own. */
struct cr_domain_finding {
    enum cr_bundle_proof proof;
    bool keeps;         /* what is published is unchanged */
    bool beyond_asking; /* as cr_bundle_finding's */
    char leaf[336];     /* "Secret ns/name"; "": none */
    const char *client; /* static; NULL */
};

/* Different texts that one object has in its places (webhooks of a configuration), which are all checked; with more, it
 * cannot be determined who would be cut off. */
enum { CR_DOMAIN_PLACES_MAX = 8 };

/* What is known of replacing one bundle by another. */
struct cr_domain_proof {
    char digest[CR_SHA256_HEX]; /* of what was asked */
    size_t *order;              /* owned; CAs of the set. NULL: nothing was asked */
    size_t len;                 /* 0: there is none */
    struct cr_domain_finding finding;
};

struct cr_domain_objects {
    struct cr_client *client;
    const struct cr_domain *domain;
    const struct cr_domain_status *status;
    int64_t now_ms;
    char *title;
    const char *own_ns; /* of the CA Secret and staging; NULL: not known */
    char *staging_name;

    struct cr_domain_item *items;
    size_t items_len;
    struct cr_strvec without_consent; /* as cr_domain_world's */
    size_t beyond;                    /* as cr_domain_world's */
    char *beyond_example;
    struct cr_json *ca_secret; /* as read, or written since; NULL: not there */
    struct cr_json *staging;

    /* The view. */
    struct cr_ca_set *set;
    struct cr_domain_ca *cas;
    bool *issued;
    struct cr_domain_proof proofs[8];
    size_t proofs_next;
    struct cr_domain_object *views;
    struct cr_held_ca current, next;
    char *cannot_renew;
    char *cannot_cross_sign;
    char *next_token;
};

/* "Secret ns/name". Owned. */
char *cr_domain_object_label(const struct cr_resource *resource, const char *ns, const char *name);
static inline const struct cr_domain_target *cr_domain_item_target(const struct cr_domain_objects *objects,
                                                                   const struct cr_domain_item *item)
{
    return &objects->domain->targets[item->spec];
}
static inline const struct cr_domain_leaf *cr_domain_item_leaf(const struct cr_domain_objects *objects,
                                                               const struct cr_domain_item *item)
{
    return &objects->domain->leaves[item->spec];
}
bool cr_domain_item_is_secret(const struct cr_domain_item *item);
bool cr_domain_item_is_ca_bundle(const struct cr_domain_objects *objects, const struct cr_domain_item *item);

/* domain_places.c: the items, without what is there; a place that may not be written to is noted. And what is beyond.
 */
void cr_domain_items_list(struct cr_domain_objects *objects, const struct cr_domain_reader *reader);

/* domain_read.c: all GETs. */
bool cr_domain_items_read(struct cr_domain_objects *objects, struct cr_error *err) CR_MUST_USE;
/* An object that need not exist: then *out is NULL. Errors name it. */
bool cr_domain_get(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                   const char *name, struct cr_json **out, struct cr_error *err) CR_MUST_USE;

/* domain_objects.c: to an error that a right is missing it adds which component of the manifests grants it. */
void cr_domain_name_component(const struct cr_resource *resource, bool writes, struct cr_error *err);

/* domain_consent.c: whether the object is the domain's, or its owner lets it become so. */
bool cr_domain_owns(const struct cr_domain_objects *objects, const struct cr_json *object);
/* Fills refused and refused_text of the view. */
void cr_domain_consent_judge(const struct cr_domain_objects *objects, struct cr_domain_item *item);

/* domain_order.c: the bundle of this write, in an order that cuts off no peer that verifies a leaf of the domain with
 * what the object has now, in any of its places. Where no order does: the bundle plus those CAs that are published and
 * at hand, if that keeps every peer; if it does not, what is published, unchanged. Where it cannot be determined: all
 * that is published, followed by what is new. *finding: why it is not what the plan wanted; CR_BUNDLE_PROVED: it is.
 * Errors: Invalid, it has no CA. */
bool cr_domain_bundle_write(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_domain_write *write, struct cr_buf *out, struct cr_domain_finding *finding,
                            struct cr_error *err) CR_MUST_USE;
/* What was found so far: leaves may have changed. */
void cr_domain_proofs_forget(struct cr_domain_objects *objects);

/* domain_target_write.c: whether the object has the bundle, and its text. Texts of several places (webhooks) are
 * compared by the caller: each is one element, missing ones too. Owned array of len. */
struct cr_entry *cr_domain_bundles_read(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                                        size_t *len);
void cr_domain_bundles_free(struct cr_entry *entries, size_t len);
/* Creates or patches an object as a whole: body has `metadata` (annotations, labels), `data` and what else is the
 * kind's. What was read is the precondition; on success *held is the new object. Takes body, and wipes it. */
bool cr_domain_put(const struct cr_domain_objects *objects, const struct cr_resource *resource, const char *ns,
                   const char *name, struct cr_json *body, struct cr_json **held, struct cr_error *err) CR_MUST_USE;
/* Puts the bundle into a target that is no leaf's Secret. */
bool cr_domain_target_write(struct cr_domain_objects *objects, struct cr_domain_item *item, const struct cr_buf *bundle,
                            struct cr_error *err) CR_MUST_USE;
/* The annotation and label of what the domain writes. */
void cr_domain_mark(const struct cr_domain_objects *objects, struct cr_json *body);

/* domain_ca_bundle.c. Owned words, NULL: it can be written. */
char *cr_domain_ca_bundle_refuse(const struct cr_domain_target *target, const struct cr_json *object,
                                 enum cr_trust_reason *reason);
struct cr_entry *cr_domain_ca_bundle_read(const struct cr_domain_target *target, const struct cr_json *object,
                                          size_t *len);
/* The part of a merge patch that puts the bundle there. Owned. */
struct cr_json *cr_domain_ca_bundle_patch(const struct cr_domain_target *target, const struct cr_json *object,
                                          const struct cr_buf *bundle);

/* domain_ca_secret.c: reads the CA Secret and staging into current and next, and adds what is trusted for them to the
 * set. */
void cr_domain_authority_read(struct cr_domain_objects *objects);
/* After the set is sorted. */
void cr_domain_authority_view(struct cr_domain_objects *objects, struct cr_domain_authority_view *out);
/* The held CA (the next or the current one) that is this CA of the set. NULL: neither is. */
const struct cr_held_ca *cr_domain_authority_of(const struct cr_domain_objects *objects, size_t ca);
void cr_held_ca_dispose(struct cr_held_ca *ca);

/* domain_staging.c */
bool cr_domain_staging_is_ours(const struct cr_domain_objects *objects);
/* Entries "next" or "previous.<leaf>": certificate and key. */
void cr_domain_staging_leaf(const struct cr_domain_objects *objects, const char *what, struct cr_stored_leaf *out);
char *cr_domain_staging_previous(const struct cr_domain_leaf *leaf); /* that word; owned */
/* Digest of the spec that the previous leaf was issued by; found false: it was not issued. */
void cr_domain_staging_issued_for(const struct cr_domain_objects *objects, const struct cr_domain_leaf *leaf,
                                  struct cr_entry *out);
/* What the item publishes becomes its previous leaf. Nothing is written when it is that already. */
bool cr_domain_staging_save(struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            struct cr_error *err) CR_MUST_USE;
/* Takes data (and wipes it) and annotations (may be NULL). */
bool cr_domain_staging_put(struct cr_domain_objects *objects, struct cr_json *data, struct cr_json *annotations,
                           struct cr_error *err) CR_MUST_USE;

/* domain_keystore.c: puts keystore.p12 and truststore.p12 into data. */
bool cr_domain_keystore_put(const struct cr_domain_objects *objects, const struct cr_domain_item *item,
                            const struct cr_stored_leaf *leaf, struct cr_json *data, struct cr_error *err) CR_MUST_USE;
/* Owned words why it cannot be made for want of a password; NULL: it can. */
char *cr_domain_keystore_refuse(const struct cr_domain_objects *objects, const struct cr_domain_item *item);
/* What is published has no keystore, or one of other material or another password. */
bool cr_domain_keystore_is_stale(const struct cr_domain_objects *objects, const struct cr_domain_item *item);

/* domain_leaf_view.c: what a source has, and its CAs into the set. */
void cr_domain_source_read(struct cr_domain_objects *objects, struct cr_domain_item *item);
/* The leaves of an item: published, in its source, in staging. */
void cr_domain_leaf_views(struct cr_domain_objects *objects, struct cr_domain_item *item, struct cr_domain_object *out);
/* What the object publishes, as digests. */
void cr_domain_material_read(const struct cr_domain_objects *objects, struct cr_domain_item *item);
void cr_domain_item_forget_view(struct cr_domain_item *item);

#endif
