/* What a look at a pod tells of the CAs that it verifies its peers against. Pure: facts in, one verdict out. */
#ifndef CR_ROTATION_TRUST_SIGHTING_H
#define CR_ROTATION_TRUST_SIGHTING_H

#include "api/policy.h"
#include "pki/material.h"
#include "rotation/sighting.h"

/* A server's request for a client certificate (RFC 8446, sections 4.3.2 and 4.2.4; RFC 5246, section 7.4.4). */
enum { CR_ANNOUNCED_MAX = 16 };
struct cr_announced {
    bool asked;                                /* for a client certificate */
    bool more;                                 /* than fit: says nothing then */
    size_t len;                                /* 0: it names none */
    unsigned char names[CR_ANNOUNCED_MAX][32]; /* SHA-256 of each distinguished name's DER */
};

/* What a server made of a canary (outage-baseline: in TLS 1.3 only application data means accepted). */
enum cr_canary_verdict { CR_CANARY_NONE, CR_CANARY_TRUSTED, CR_CANARY_UNTRUSTED, CR_CANARY_UNKNOWN };

/* One TLS context of Envoy's /certs page. */
struct cr_certs_context {
    struct cr_strvec cas;    /* serial numbers, lower-case hex without leading zeros */
    struct cr_strvec leaves; /* of cert_chain */
    char *ca_path;           /* NULL: inline */
};

/* One look at one pod. Owned parts. */
struct cr_trust_sighting {
    int64_t at_ms; /* wall; 0: never */
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

struct cr_trust_question {
    unsigned roles; /* CR_ROLE_BIT of those of CLIENT_CA, SERVER_CA that the consumer plays with this Secret */
    const struct cr_material *target; /* with subjects and serials of its CAs */
    const struct cr_ca *before;       /* the CAs of the settled trust; what is known of them */
    size_t before_len;
    unsigned changes;                         /* CR_CHANGE_* */
    bool leaf_by_page;                        /* the leaf changed as well, as a client's: Envoy's page tells */
    int64_t since_ms;                         /* what was seen before says nothing */
    const struct cr_trust_sighting *sighting; /* NULL: never looked */
};

/* CR_SHOWN_NEW: every role was seen to have all of the target's CAs and none that it lost. CR_SHOWN_OLD: positively
 * seen without a CA of the target. CR_SHOWN_NOTHING: nothing seen speaks of it, judged by time. A role that cannot be
 * seen (a pure client without a page) makes the whole CR_SHOWN_NOTHING unless another is OLD. */
void cr_trust_judge(const struct cr_trust_question *question, struct cr_shown_leaf *out);

#endif
