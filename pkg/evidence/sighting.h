/* What a pod's endpoints show of one Secret. Pure: sightings in, one verdict out. */
#ifndef CR_EVIDENCE_SIGHTING_H
#define CR_EVIDENCE_SIGHTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/policy.h"
#include "base/strvec.h"
#include "pki/digest.h"

enum cr_probe_seen {
    CR_SEEN_NOTHING, /* never asked */
    CR_SEEN_LEAF,
    CR_SEEN_UNREACHABLE,
    CR_SEEN_NOT_TLS,
    CR_SEEN_UNPROVED,   /* a certificate was shown, but not the proof that the pod has its key */
    CR_SEEN_TOO_COSTLY, /* given up for a limit of probes */
};

/* What became of the client certificate that was presented. */
enum cr_client_verdict {
    CR_CLIENT_NONE,     /* none was to be presented, or the server did not ask for one */
    CR_CLIENT_ACCEPTED, /* the server went on */
    CR_CLIENT_UNKNOWN,  /* no objection, but no sign of consent either */
    CR_CLIENT_REFUSED,  /* an alert, or the Secret has nothing that could be presented */
};

enum { CR_SIGHTING_WORDS = 112 };

/* One look at one endpoint of one pod. */
struct cr_sighting {
    enum cr_probe_seen seen;
    enum cr_client_verdict client;
    int64_t at_ms; /* wall; 0: never */
    char leaf[CR_SHA256_HEX];
    char words[CR_SIGHTING_WORDS]; /* for a person: why there is no leaf, or why the client was refused; else "" */
};

struct cr_sightings_input {
    const char *secret;             /* the Secret with the leaf that has changed */
    const char *leaf;               /* the new one */
    const struct cr_strvec *names;  /* names that the new leaf is for; NULL: none */
    const struct cr_strvec *old;    /* the leaves before; NULL: no change is known */
    const struct cr_strvec *others; /* leaves of the policy's other Secrets: settled, new and old; may be NULL */
    const struct cr_policy_verify *verify;
    enum cr_on_missing_name on_missing_name; /* Report: the new leaf counts for any name that is asked for */
    const struct cr_sighting *sightings;     /* parallel to verify->endpoints */
    int64_t since_ms;                        /* what was seen before says nothing */
};

enum cr_shown {
    CR_SHOWN_NOTHING, /* no endpoint is one of this Secret: judged by time */
    CR_SHOWN_NEW,     /* each endpoint of this Secret shows the new leaf, which is for the name asked for */
    CR_SHOWN_OLD,     /* at least one shows an old one */
    CR_SHOWN_UNKNOWN, /* at least one that may be of this Secret shows neither */
    /* The pod's certroll-sidecar has passed the new material on, and nothing can show more (sidecar_sighting.h). */
    CR_SHOWN_DELIVERED,
};

enum { CR_SHOWN_WHY = 160 };

struct cr_shown_leaf {
    enum cr_shown shown;
    int64_t old_ms;         /* with CR_SHOWN_OLD: when an old leaf was last seen */
    bool other;             /* with CR_SHOWN_UNKNOWN: a leaf was seen, and it is another one */
    char why[CR_SHOWN_WHY]; /* old, unknown: "port 8443 (web.example) still serves the old leaf" */
};

/* A leaf that is seen, which includes the proof of its key (net/tls_probe.h), counts for the Secret that it is of; one
 * of another Secret of the policy says nothing, unless the endpoint names the Secret that it must show. What shows no
 * leaf at all could be of any Secret, so it is unknown. */
void cr_sightings_judge(const struct cr_sightings_input *input, struct cr_shown_leaf *out);

/* "port 8443 (web.example)", for people. */
void cr_endpoint_name(const struct cr_verify_endpoint *endpoint, char *out, size_t size);

#endif
