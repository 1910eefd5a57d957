/* Why something that a TrustDomain, spec.trust of a policy or certgen publishes is not written as it should be. The
 * program decides by the enum alone; its name is in the status, in conditions, Events and metrics. The sentence beside
 * it is for people, and is made here. Pure. */
#ifndef CR_API_TRUST_PROBLEM_H
#define CR_API_TRUST_PROBLEM_H

#include <stdbool.h>

#include "pki/bundle.h"
#include "pki/material.h"

/* The owner of a published object, or the one that may become its owner (consent): cr_domain_title, or
 * "CertRotationPolicy/<ns>/<name>". */
#define CR_DOMAIN_ANNOTATION "certroll.dev/trust-domain"

enum cr_trust_reason {
    CR_TRUST_FINE = 0,
    /* The place. */
    CR_TRUST_NOT_OURS,          /* "NotOurs": it is there, and its owner has not consented */
    CR_TRUST_OTHER_DOMAIN,      /* "OtherDomain": it belongs to another domain or policy */
    CR_TRUST_NO_CONSENT,        /* "NoConsent": its namespace has not consented */
    CR_TRUST_NAMESPACE_MISSING, /* "NamespaceMissing" */
    CR_TRUST_RESERVED,          /* "Reserved": a Secret that the domain reads, or keeps keys in */
    CR_TRUST_TARGET_IS_SOURCE,  /* "TargetIsSource": of a policy, a Secret that its selector matches */
    CR_TRUST_IMMUTABLE,         /* "Immutable" */
    CR_TRUST_NOT_FOUND,         /* "NotFound": it is not there, and not made by certroll */
    CR_TRUST_NO_CA_BUNDLE,      /* "NoCABundle": it has nothing that a caBundle could be put into */
    CR_TRUST_OTHER_WRITER,      /* "OtherWriter": another controller writes it as well */
    CR_TRUST_KEYSTORE_PASSWORD, /* "KeystorePassword": the password of its keystore is missing */
    CR_TRUST_FORBIDDEN,         /* "Forbidden": the operator has no right to write it */
    CR_TRUST_CANNOT_READ,       /* "CannotRead": it, or its source, is there with more values than are read */
    CR_TRUST_INVALID,           /* "Invalid": it cannot be made, or the API server refuses it for another reason */
    /* The leaf, or where it comes from. */
    CR_TRUST_KEY_NOT_ACCEPTED, /* "KeyNotAccepted": a consumer takes no key of its kind */
    CR_TRUST_SOURCE_NOT_FOUND, /* "SourceNotFound" */
    CR_TRUST_SOURCE_UNUSABLE,  /* "SourceUnusable": of a policy, one of its Secrets */
    CR_TRUST_DISTRUSTED_CA,    /* "DistrustedCA": the source's leaf is of a CA that spec.distrust lists */
    CR_TRUST_UNKNOWN_ISSUER,   /* "UnknownIssuer": the source's leaf verifies against no CA at hand */
    CR_TRUST_NEEDS_ISSUER,     /* "NewCANeedsItsIssuer": its CA is no root, and the root above is not at hand */
    CR_TRUST_NO_CA,            /* "NoCA": nothing to be trusted is there, or it is not valid now */
    CR_TRUST_EMPTY,            /* and as cr_material_problem_name: "EmptyMaterial" */
    CR_TRUST_UNPARSABLE,
    CR_TRUST_KEY_MISMATCH,
    CR_TRUST_ENCRYPTED,
    CR_TRUST_EXPIRED,
    CR_TRUST_NOT_YET,
    CR_TRUST_INCOMPLETE,
    CR_TRUST_MATERIAL_TOO_COSTLY,
    /* The bundle. */
    CR_TRUST_WOULD_CUT_OFF,     /* "BundleWouldCutOff": a client of a leaf in use would not verify it any more */
    CR_TRUST_BUNDLE_TOO_COSTLY, /* "BundleTooCostly": to find out who would be cut off takes more than may be spent */
    CR_TRUST_REASONS,
};

/* As in the comments above. Static; "" for CR_TRUST_FINE. */
const char *cr_trust_reason_name(enum cr_trust_reason reason);
/* False: no name of a reason; left alone. */
bool cr_trust_reason_parse(const char *text, enum cr_trust_reason *reason);
enum cr_trust_reason cr_trust_reason_of_material(enum cr_material_problem problem);
enum cr_trust_reason cr_trust_reason_of_bundle(enum cr_bundle_proof proof); /* CR_TRUST_FINE: it is proved */
/* What is missing may still be made by others, as with what is applied beside the domain: it is waited for. For all
 * other reasons somebody has to mend something. */
bool cr_trust_may_come(enum cr_trust_reason reason);
/* The object belongs to others: nothing of ours is read there any more. */
bool cr_trust_is_foreign(enum cr_trust_reason reason);

/* What a sentence is about; all borrowed, what does not apply is NULL. */
struct cr_trust_about {
    const char *object;    /* "Secret ns/name" */
    const char *owner;     /* its owner by its annotation, or who else writes it */
    const char *wanted;    /* the owner that it would have to have */
    const char *detail;    /* in the words of the API server, or of the code that has looked */
    const char *ca;        /* its subject */
    const char *leaf;      /* that a client of it would not verify any more: "Secret ns/name" */
    const char *client;    /* which: "OpenSSL" */
    const char *component; /* that grants the right: "trust-domains" */
};

/* One sentence that names what is wrong and what to do, for a reason that several kinds of publication have: NotOurs,
 * OtherDomain, TargetIsSource, Immutable, OtherWriter (owner: who, detail: until when), Forbidden, SourceUnusable,
 * NewCANeedsItsIssuer, BundleWouldCutOff, BundleTooCostly. For all other reasons it is the detail. Owned. */
char *cr_trust_problem_text(enum cr_trust_reason reason, const struct cr_trust_about *about);

#endif
