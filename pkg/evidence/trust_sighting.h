/* What a look at a pod shows of the CAs that it verifies its peers against. Pure: facts in, one verdict out. */
#ifndef CR_EVIDENCE_TRUST_SIGHTING_H
#define CR_EVIDENCE_TRUST_SIGHTING_H

#include "api/policy.h"
#include "pki/material.h"
#include "evidence/sighting.h"

/* A server's request for a client certificate (RFC 8446, sections 4.3.2 and 4.2.4; RFC 5246, section 7.4.4). */
enum { CR_ANNOUNCED_MAX = 16 };
struct cr_announced {
    bool asked;                                /* for a client certificate */
    bool more;                                 /* than fit: says nothing then */
    size_t len;                                /* 0: it names none */
    unsigned char names[CR_ANNOUNCED_MAX][32]; /* SHA-256 of each distinguished name's DER */
};

/* What a server made of a canary: in TLS 1.3 only application data means that it was accepted. */
enum cr_canary_verdict { CR_CANARY_NONE, CR_CANARY_TRUSTED, CR_CANARY_UNTRUSTED, CR_CANARY_UNKNOWN };

/* One TLS context of Envoy's /certs page. */
struct cr_certs_context {
    struct cr_strvec cas;    /* serial numbers, lower-case hex without leading zeros */
    struct cr_strvec leaves; /* of cert_chain */
    char *ca_path;           /* NULL: inline */
};

/* One look at one pod. Owned parts. */
struct cr_trust_sighting {
    int64_t at_ms; /* wall, of the part that was looked at the longest ago; 0: one never was */
    /* Parallel to the consumer's verify.endpoints. */
    struct cr_endpoint_trust {
        bool reached;
        struct cr_announced announced;
        enum cr_canary_verdict canary;
        char canary_ca[CR_SHA256_HEX]; /* fingerprint of the CA that it was of; "" */
    } * endpoints;
    size_t endpoints_len;
    /* Of verify.certsPage. */
    bool page_read;
    struct cr_certs_context *contexts;
    size_t contexts_len;
    char words[CR_SIGHTING_WORDS]; /* why the page was not read; "" */
};
void cr_trust_sighting_dispose(struct cr_trust_sighting *sighting);
CR_DEFINE_DISPOSE(cr_trust_sighting, struct cr_trust_sighting, cr_trust_sighting_dispose)

/* Which CAs came and which went: the same for all pods. Elements are borrowed. */
struct cr_trust_change {
    const struct cr_material *target;
    const struct cr_ca **added; /* in the order of the bundle */
    size_t added_len;
    const struct cr_ca **removed;
    size_t removed_len;
    bool before_unknown; /* the CAs of before were too many to be remembered: any may have gone */
};
/* target: as it was read, with subjects and serials. before: as status remembers it. Both are borrowed. out need not
 * be initialised. */
void cr_trust_change_make(const struct cr_material *before, const struct cr_material *target,
                          struct cr_trust_change *out);
void cr_trust_change_dispose(struct cr_trust_change *change);
CR_DEFINE_DISPOSE(cr_trust_change, struct cr_trust_change, cr_trust_change_dispose)

struct cr_trust_question {
    unsigned roles; /* CR_ROLE_BIT of those of CLIENT_CA, SERVER_CA that the consumer plays with this Secret */
    const struct cr_trust_change *change;
    const struct cr_policy_verify *verify;
    const bool *others; /* parallel to verify->endpoints: whether it counts for another Secret that has trust of
                         * its own; NULL: none does */
    const struct cr_strvec *mounts;           /* where the pods have this Secret: directories and files */
    int64_t since_ms;                         /* what was seen before says nothing */
    const struct cr_trust_sighting *sighting; /* NULL: no probe looks */
};

/* CR_SHOWN_NEW: every role was seen to have all CAs that came and none that went. CR_SHOWN_OLD: one was positively seen
 * otherwise. CR_SHOWN_UNKNOWN: not looked at since, or not reached. CR_SHOWN_NOTHING: what was seen shows nothing of
 * it, or cannot: judged by time.
 *
 * An endpoint that asks clients for a certificate shows how it verifies them; the page shows both directions.
 * - Names: a CA that came and is not announced is not trusted. One that is announced is, unless another CA of the
 * target or of before has, or may have, the same name: names are all that is announced. For CAs that went the other way
 *   round. Names of which none is of the target or of before are of another bundle.
 * - A canary is asked for one CA: accepted, that one is trusted, whatever the names say. Refused, it counts where names
 *   show that this bundle is meant.
 * - The page lists serial numbers. A context is of this Secret by its file; when it has none, by a CA that it shares
 *   with the target. Serial numbers of less than 64 bits do not distinguish certificates (CA/Browser Forum, Baseline
 *   Requirements, 7.1).
 * CAs that are expired when looked at need not be shown: software may leave them out. */
void cr_trust_judge(const struct cr_trust_question *question, struct cr_shown_leaf *out);

/* Whether a look could show anything of these roles. */
bool cr_trust_can_be_seen(unsigned roles, const struct cr_policy_verify *verify);

/* The same of a leaf that a pod presents as a client, which only the page shows. old_serial: of the settled leaf, "":
 * not known. CR_SHOWN_NOTHING: the page lists neither. */
void cr_page_leaf_judge(const struct cr_trust_sighting *sighting, const struct cr_policy_verify *verify,
                        int64_t since_ms, const char *serial, const char *old_serial, struct cr_shown_leaf *out);

#endif
