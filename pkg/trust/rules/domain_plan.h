/* The plan of one trust domain: the present state, in; what to publish and to say, out. Pure. Level-based: it is
 * computed from what is published, staged and seen, never from which step came before, so it can be killed at any
 * write.
 *
 * The rules (docs/design.md, "Trust first"):
 *   1. A bundle may always grow. It shrinks only while everything that is published has arrived everywhere, and never
 *      by a CA that a leaf needs which is published, in a source, or kept to be put back.
 *   2. A leaf is published when no reader can lose it: every object that is there is known to trust it
 *      (cr_domain_evidence.trusted), or it is trusted by all who trust the published one, as a renewal is, and one that
 *      is cross-signed.
 *   3. A CA that spec.distrust lists is replaced at once and goes when what replaces it has arrived. What the domain
 *      cannot bring about holds that until a deadline; then leaves that it cannot replace are lost with the CA.
 *   4. The stage is what is still to come of that: Trusting (a bundle has not arrived, or a leaf waits for one),
 *      Switching (a leaf has not arrived), Retiring (a CA can go, or has gone and that has not arrived), Idle. Past the
 *      deadline of a stage, or when something failed, it is Held: no leaf of another CA is published, but for one that
 *      would end, until evidence comes; then it goes on by itself. */
#ifndef CR_TRUST_RULES_DOMAIN_PLAN_H
#define CR_TRUST_RULES_DOMAIN_PLAN_H

#include "api/domain.h"
#include "api/domain_status.h"
#include "trust/rules/domain_evidence.h"

/* --- what is (all borrowed) --- */

/* A CA at hand, in published bundles, sources, the CA Secret or staging; each once, newest notBefore first. */
struct cr_domain_ca {
    char fingerprint[CR_SHA256_HEX];
    const char *subject;
    int64_t not_before_ms, not_after_ms;
    bool root;
    bool in_source; /* a source's ca.crt, or the issuer of a source's leaf, has it */
};

/* A leaf as published or in a source. */
struct cr_domain_leaf_view {
    bool found;
    enum cr_trust_reason problem; /* CR_TRUST_FINE: it can be used. found may be true otherwise, too */
    const char *problem_text;     /* in words */
    char fingerprint[CR_SHA256_HEX];
    int64_t not_before_ms, not_after_ms;
    const bool *verifies; /* [cas_len]: with that CA alone trusted, and the chain it is served with */
    bool costly; /* with what is at hand, to find that out takes more than certroll may spend: it verifies against none
                  * that is known, and still is in use */
};

/* An object that the domain writes: first a Secret for each of spec.leaves, then trust targets, a selector's namespaces
 * expanded. */
struct cr_domain_object {
    const char *kind, *ns, *name;
    bool is_leaf;
    size_t spec;                  /* index into leaves or targets */
    bool found;                   /* it is there, and was read */
    bool unknown;                 /* it may be there as it was: without consent, and it could not be read */
    const char *version;          /* the resourceVersion of what is there; NULL: nothing is */
    enum cr_trust_reason refused; /* why it may not be written; CR_TRUST_FINE: it may */
    const char *refused_text;     /* in words */
    /* The result of the last try to give it another bundle. CR_TRUST_WOULD_CUT_OFF: it keeps the one that it has;
     * CR_TRUST_BUNDLE_TOO_COSTLY: it may grow, and loses nothing. CR_TRUST_FINE: nothing is known against it. */
    enum cr_trust_reason kept;
    const char *kept_text;      /* in words */
    const char *contested_text; /* no leaf: another program has overwritten it again and again; NULL: none has lately */
    const bool *bundle;         /* [cas_len]: published there now */
    bool bundle_foreign;        /* its trust has what is no CA at hand or cannot be read: rewritten */
    struct cr_domain_leaf_view published; /* leaves */
    struct cr_domain_leaf_view source;    /* MIRROR */
    struct cr_domain_leaf_view previous;  /* in staging: what was published before */
    const char *issued_for;               /* annotation: digest of the spec that it was issued by; NULL: not by us */
    const char *wanted_for;               /* that digest for the spec as it is */
    const char *token;                    /* annotation: the rotate token that it was last issued or put back for */
    const struct cr_domain_evidence *evidence; /* NULL: nothing is published yet */
    const char
        *changed_by; /* what is there is not what is on record, and that program wrote it; NULL: it is, or we did */
};

enum cr_domain_ca_state { CR_DOMAIN_CA_ABSENT, CR_DOMAIN_CA_USABLE, CR_DOMAIN_CA_BROKEN };

struct cr_domain_authority_view {          /* ISSUE */
    enum cr_domain_ca_state current, next; /* the CA Secret; staging */
    const char *current_problem, *next_problem;
    size_t current_ca, next_ca; /* indexes into cas; cas_len: its certificate cannot be read */
    const char *next_token;     /* the rotate token it was made for; NULL */
    const char *cannot_renew;   /* the CA Secret belongs to another owner: why it may not be replaced; NULL: it may */
    const char *cannot_cross_sign; /* why the old CA cannot sign the next; NULL: it can, or it was not asked for */
};

/* Where the domain would publish as well, beyond CR_DOMAIN_OBJECTS_MAX. */
struct cr_domain_beyond {
    size_t objects;
    const char *example; /* "Secret ns/name": the first of them; NULL: none */
};

struct cr_domain_world {
    const struct cr_domain *domain;
    const struct cr_domain_status *status;
    const struct cr_domain_ca *cas;
    size_t cas_len;
    const bool *issued; /* as cr_bundle_question's; NULL: not known */
    const struct cr_domain_object *objects;
    size_t objects_len;
    /* Namespaces that a target selects and that have not consented: sorted; one that several targets select is there
     * several times. NULL: none. */
    const struct cr_strvec *without_consent;
    struct cr_domain_beyond beyond;
    struct cr_domain_authority_view authority;
    bool staging_found;
    struct cr_domain_forecast forecast;
    const char *problem;                 /* something needed cannot be read or written: nothing is done; NULL */
    enum cr_trust_reason problem_reason; /* beside it: CR_TRUST_FORBIDDEN, or CR_TRUST_FINE for any other */
    int64_t now_ms;
};

/* --- what to do, in this order; each write is to be followed by a new plan or by none --- */

enum cr_leaf_act { CR_LEAF_ACT_KEEP, CR_LEAF_ACT_MIRROR, CR_LEAF_ACT_ISSUE, CR_LEAF_ACT_PUT_BACK };

struct cr_domain_write {
    size_t object;
    bool *bundle; /* owned, [cas_len]: what it shall have; in the order [current…, previous, newest first] */
    enum cr_leaf_act leaf;
    size_t issuer;      /* ISSUE: index into cas, the current or the next CA */
    bool cross_signed;  /* ISSUE: with the cross-certificate behind it */
    bool save_previous; /* what is published goes into staging before it is overwritten */
};

struct cr_domain_plan {
    struct cr_domain_status status;
    bool record_first;  /* the status must be written before the acts (a token is handled, a leaf rejected) */
    bool stage_next_ca; /* make the next CA, in staging; the next plan does the rest */
    bool first_ca;      /* there is no CA at all: make the CA Secret itself */
    struct cr_domain_write *writes;
    size_t writes_len;
    bool promote_ca; /* the next CA becomes the CA Secret's */
    bool delete_staging;
    struct cr_domain_event {
        bool warning;
        const char *reason; /* static */
        char *message;      /* owned */
    } * events;
    size_t events_len;
    int64_t requeue_after_ms; /* 0: not before something changes */
};

void cr_domain_plan_make(const struct cr_domain_world *world, struct cr_domain_plan *plan);
void cr_domain_plan_dispose(struct cr_domain_plan *plan);
CR_DEFINE_DISPOSE(cr_domain_plan, struct cr_domain_plan, cr_domain_plan_dispose)

/* Status of a domain that cannot be used: Ready and Converged are False with the reason "Invalid"; what was remembered
 * stays. */
void cr_domain_plan_invalid(const struct cr_domain_status *before, int64_t generation, const char *problem,
                            int64_t now_ms, struct cr_domain_status *out);

/* Owned: "Secret ns/name". */
char *cr_domain_object_title(const struct cr_domain_object *object);
/* Whether what is published there is what is on record. */
bool cr_domain_is_as_recorded(const struct cr_domain_world *world, const struct cr_domain_object *object,
                              const struct cr_domain_object_status *record);
/* Until when nothing is written there, since another program overwrites it: an hour from the second time within a day
 * on, and each time twice as long, up to 16 hours. An edit of the domain's spec ends it. 0: it may be written. */
int64_t cr_domain_other_writer_until_ms(const struct cr_domain_world *world,
                                        const struct cr_domain_object_status *record);

/* Something that the domain cannot bring about held the distrust of a CA past spec.evidence.stageDeadline. */
bool cr_domain_distrust_is_overdue(const struct cr_domain *domain, const struct cr_domain_status *status,
                                   int64_t now_ms);

/* A CA of spec.distrust is not known to be gone. Until then what was published counts, also where a namespace has
 * withdrawn its consent or is selected no more. */
bool cr_domain_distrust_is_pending(const struct cr_domain *domain, const struct cr_domain_status *status);

/* When a CA or leaf with that life is renewed. key: spreads the renewals of certificates that were issued together (up
 * to a tenth of their life earlier), the same way after a restart. */
int64_t cr_domain_renewal_ms(const struct cr_domain_life *life, int64_t not_before_ms, int64_t not_after_ms,
                             const char *key);

#endif
