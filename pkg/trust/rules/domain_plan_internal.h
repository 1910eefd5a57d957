/* What the parts of a domain's plan share. */
#ifndef CR_TRUST_RULES_DOMAIN_PLAN_INTERNAL_H
#define CR_TRUST_RULES_DOMAIN_PLAN_INTERNAL_H

#include "trust/rules/domain_plan.h"

/* For so long after another program has overwritten a leaf no CA is retired; after the second time within a day no leaf
 * is written there either, and each time for twice as long. */
#define CR_OVERWRITTEN_HOLD_MS (3600LL * 1000)

/* The reason of Distrusted while a person has to look at what spec.distrust lists. */
#define CR_DOMAIN_UNKNOWN_CA "UnknownCA"
/* The reason of Ready while not all objects that the spec names or selects are in force. */
#define CR_DOMAIN_TOO_MANY_OBJECTS "TooManyObjects"

/* What becomes of the leaf of one object. */
struct domain_leaf {
    enum cr_leaf_act act;
    size_t issuer;
    bool cross_signed;
    bool waits;       /* another leaf is wanted, and not all readers trust it yet */
    size_t waits_on;  /* the object with such a reader */
    bool held_back;   /* wanted and trusted, but the stage is held */
    bool put_back;    /* a person put the previous one back, and that is effective */
    bool switches_ca; /* what is wanted is not trusted by all who trust what is published */
    enum cr_trust_reason problem;
    char *problem_text; /* owned */
};

struct domain_ctx {
    const struct cr_domain_world *world;
    struct cr_domain_plan *plan;
    bool has_current, has_next; /* ISSUE: usable; the next one is not the current one yet */
    bool renewal_refused;       /* another CA is needed, or staged, and the CA Secret may not be replaced */
    bool may_record;            /* not suspended: tokens are handled, stages go on */
    /* [cas_len] */
    bool *current;    /* CAs that shall be in every bundle */
    bool *newest;     /* those current CAs that are not counted among the previous */
    bool *anywhere;   /* published in an object of ours */
    bool *needed;     /* a leaf in use, or one about to be, verifies against it alone */
    bool *retained;   /* a bundle that has shrunk */
    bool *distrusted; /* spec.distrust lists it: it shall be in no bundle */
    bool *stray;      /* distrusted, and found in a bundle into which the domain had not put it */
    /* [objects_len] */
    bool *unrecorded; /* what is published is not what the status says: evidence of it does not count yet */
    struct domain_leaf *leaves;
    bool *bundles; /* [objects_len * cas_len]: what each shall have */

    bool arrived;                     /* all of what is published, at the levels that the domain demands */
    bool trust_arrived, leaf_arrived; /* the bundles and the leaves of it */
    bool trusted;                     /* every CA that shall be current, by all readers */
    bool failed;
    bool is_put_back; /* a leaf is */
    bool waits;       /* a leaf is wanted that is not trusted yet */
    bool holds;       /* one is held back */
    bool grows, shrinks, switches;
    bool overdue; /* the distrust of a CA waits for nothing any more that the domain cannot bring about */
};

/* --- domain_queries.c: queries of the world --- */

/* It is not ours, or not any more: only its record mentions it. */
bool cr_domain_is_foreign(const struct cr_domain_object *object);
/* A caBundle of an object that others create. */
bool cr_domain_is_ca_bundle(const struct domain_ctx *ctx, const struct cr_domain_object *object);
/* It was ours and has been deleted, or cannot be read: its readers have what was there, until it is there again. */
bool cr_domain_is_missed(const struct domain_ctx *ctx, size_t object);
/* One is: consumers that present its leaf are not considered before it is there again. */
bool cr_domain_misses_any(const struct domain_ctx *ctx);
/* Ours, with something that consumers may read. */
bool cr_domain_is_there(const struct domain_ctx *ctx, size_t object);
bool cr_domain_has_bundle(const struct domain_ctx *ctx, const struct cr_domain_object *object);
bool cr_domain_may_write(const struct cr_domain_object *object);
/* Its leaf is left to another program, which overwrites ours. Its bundle is corrected where it would cut off its
 * readers. */
bool cr_domain_has_other_writer(const struct cr_domain_object *object);
/* Whether the status that is on record lists the CA. domain_stage.c */
bool cr_domain_was_listed(const struct domain_ctx *ctx, const char *ca);
/* Whether the only problem of the object is that another program writes it as well. domain_report.c */
bool cr_domain_is_contested(const struct domain_ctx *ctx, size_t at);
/* Its leaves keep the CAs that they verify against: it is the domain's, and its owner consents. No other object can
 * keep a CA that should go. */
bool cr_domain_keeps_cas(const struct cr_domain_object *object);
/* One of its leaves; not found, if there is none. */
const struct cr_domain_leaf_view *cr_domain_leaf_at(const struct cr_domain_object *object, enum cr_domain_leaf_at at);
bool cr_domain_has_ca(const struct cr_domain_object *object, size_t ca);
bool cr_domain_leaf_verifies(const struct cr_domain_leaf_view *leaf, size_t ca);
/* With one of the CAs at hand. */
bool cr_domain_leaf_verifies_any(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf);
bool cr_domain_is_usable(const struct cr_domain_leaf_view *leaf);
bool cr_domain_is_expired(const struct domain_ctx *ctx, size_t ca);
const struct cr_domain_leaf *cr_domain_leaf_of(const struct domain_ctx *ctx, size_t object);
/* It has arrived at the level that the domain demands. */
bool cr_domain_has_trust(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence);
bool cr_domain_has_leaf(const struct domain_ctx *ctx, const struct cr_domain_evidence *evidence);
/* NULL: nothing is known of what is published there. */
const struct cr_domain_evidence *cr_domain_evidence_of(const struct domain_ctx *ctx, size_t object);
bool cr_domain_token_is_new(const struct domain_ctx *ctx, enum cr_rotate_what what);
void cr_domain_trust_digest(const struct cr_domain_world *world, const struct cr_domain_object *object,
                            char out[CR_SHA256_HEX]);

/* --- the parts, in this order --- */

void cr_domain_plan_objects(struct domain_ctx *ctx);                  /* domain_record.c: what is on record of each */
void cr_domain_forget_other_writers(struct cr_domain_status *status); /* domain_record.c: the spec was edited */
void cr_domain_plan_distrust(struct domain_ctx *ctx);                 /* domain_distrust.c: CAs that shall go now */
void cr_domain_plan_tokens(struct domain_ctx *ctx);                   /* domain_tokens.c: what a person asks for */
void cr_domain_plan_arrivals(struct domain_ctx *ctx);                 /* domain_permit.c */
void cr_domain_plan_leaves(struct domain_ctx *ctx);                   /* domain_leaves.c */
void cr_domain_plan_bundles(struct domain_ctx *ctx);                  /* domain_bundle.c */
void cr_domain_plan_writes(struct domain_ctx *ctx); /* domain_writes.c: what is to be written, and the end of it */
void cr_domain_plan_stage(struct domain_ctx *ctx);  /* domain_stage.c */
void cr_domain_plan_report(struct domain_ctx *ctx); /* domain_report.c */
void cr_domain_plan_distrust_end(struct domain_ctx *ctx); /* domain_distrust.c: no reader trusts them any more */
void cr_domain_plan_conditions(struct domain_ctx *ctx);   /* domain_conditions.c */
void cr_domain_plan_progress(struct domain_ctx *ctx);     /* domain_progress.c: by the other conditions */

/* domain_permit.c: whether no reader loses anything when a leaf that verifies against these CAs is published there;
 * else the one that would, in *blocker. */
bool cr_domain_may_publish(const struct domain_ctx *ctx, size_t object, const bool *verifies, size_t *blocker);
/* Whether a reader of what may be written trusts a leaf now, and by none of the CAs that are kept (by their index). An
 * object that could not be written for a whole rotation has only the CA of before, by which a cross-signed leaf still
 * verifies. */
bool cr_domain_would_cut_off(const struct domain_ctx *ctx, const bool *kept);
/* It is trusted by all that trust what is published there, known or not. */
bool cr_domain_is_equivalent(const struct domain_ctx *ctx, size_t object, const bool *verifies);

/* domain_distrust.c: it verifies against CAs of spec.distrust alone. */
bool cr_domain_needs_distrusted(const struct domain_ctx *ctx, const struct cr_domain_leaf_view *leaf);
/* Its published leaf verifies against CAs of spec.distrust alone, and is in use. */
bool cr_domain_is_lost(const struct domain_ctx *ctx, size_t object);
/* What is on record of a distrusted CA; NULL: nothing yet. Borrowed. */
struct cr_domain_distrusted *cr_domain_distrusted_record(struct cr_domain_status *status, const char *fingerprint);
/* Some object has one of them. */
bool cr_domain_publishes_distrusted(const struct domain_ctx *ctx);
/* Whether the distrusted CAs go with the bundles of this plan. Call it when the plan's leaves are known. */
bool cr_domain_drops_distrusted(const struct domain_ctx *ctx);
/* Whether the object, or a reader of it, may still have a distrusted CA. */
bool cr_domain_has_distrusted(const struct domain_ctx *ctx, size_t object);

/* domain_plan.c: the next CA was distrusted, or has ended, before it could be promoted: if there must be another one
 * still, it takes its place. */
bool cr_domain_is_next_over(const struct domain_ctx *ctx);

/* domain_report.c: an object is left as it is, for a reason that status.objects[].problem has. */
bool cr_domain_has_problem(const struct domain_ctx *ctx);

/* domain_writes.c: the object is there, or the writes of this plan create it. */
bool cr_domain_will_be_there(const struct domain_ctx *ctx, size_t object);

/* domain_tokens.c */
bool cr_domain_is_put_back(const struct domain_ctx *ctx, size_t object);
/* Whether the object's previous leaf is to be put back now. */
bool cr_domain_puts_back(const struct domain_ctx *ctx, size_t object);

/* domain_renewal.c: due, and a new one that ends at limit_ms at the latest would be worth it. */
bool cr_domain_is_due(const struct cr_domain_life *life, int64_t not_before_ms, int64_t not_after_ms, const char *key,
                      int64_t limit_ms, int64_t now_ms);

/* The reason of Held while a person's leaves of before stand. */
#define CR_DOMAIN_PUT_BACK "PutBack"

/* Adds an Event. Takes message. */
void cr_domain_say(struct domain_ctx *ctx, bool warning, const char *reason, char *message);
/* Plans again at this time at the latest. */
void cr_domain_requeue_at(struct domain_ctx *ctx, int64_t at_ms);

#endif
