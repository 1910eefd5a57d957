/* What changed between two states of the material of one Secret. Pure. Certificates are compared by DER digests, never
 * by text; overlap is judged by verification (material's anchors). */
#ifndef CR_EVIDENCE_DIFF_H
#define CR_EVIDENCE_DIFF_H

#include "api/status.h"
#include "codec/json.h"
#include "pki/material.h"

/* The classes that consumers care about; a restart is remembered by the digest of just those that forced it. */
enum cr_class {
    CR_CLASS_LEAF = 1u << 0,
    CR_CLASS_TRUST = 1u << 1,
    CR_CLASS_OPAQUE = 1u << 2,
};

/* CR_CHANGE_* bits, 0 for the same material whatever its text, order of duplicates or labels. A chain that changed
 * under the same leaf counts as LeafRenewed (peers see it). The order of a trust bundle alone is no change.
 *
 * Leaf: KeyChanged and IssuerChanged say how a new leaf differs from the old one; they never come without LeafRenewed.
 * A leaf that appears or vanishes is LeafRenewed and KeyChanged.
 *
 * Trust, by identity (subject and key): TrustAdded, TrustRemoved; TrustRenewed is another certificate of an identity in
 * both. TrustReplaced is set *beside* TrustAdded or TrustRemoved when the change leaves no overlap: the leaf before
 * does not verify against the trust after, or a new leaf not against the trust before, so that somewhere between the
 * two states peers refuse each other. It is judged by the leaves' anchors; a leaf that never verified against the trust
 * beside it says nothing, then an identity in common is the overlap. Trust that appears or vanishes as a whole is
 * TrustAdded or TrustRemoved alone. Only the digest is known of a list that was too long to be remembered: whatever
 * changed counts as TrustReplaced, beside TrustAdded and TrustRemoved.
 *
 * Opaque: digests by another key, or none for want of a key, are no change (cr_opaque_comparable). */
unsigned cr_diff(const struct cr_material *before, const struct cr_material *after);

/* The names of opaque entries that appeared, vanished or changed, added to names. False: it cannot be determined which
 * ones, so it may be any; names is as it was. */
bool cr_diff_opaque_keys(const struct cr_material *before, const struct cr_material *after,
                         struct cr_strvec *names) CR_MUST_USE;

/* Classes touched by a set of changes. */
unsigned cr_diff_classes(unsigned changes);

/* Owned words for a person: "leaf renewed with a new key; CA replaced without overlap". "nothing" for 0. */
char *cr_diff_describe(unsigned changes);
/* The same as a clause: "the leaf was renewed with a new key and the CA was replaced without overlap". Owned. */
char *cr_diff_sentence(unsigned changes);

/* Annotation on the pod template of a restarted workload, one per Secret: "certroll.dev/<16 hex of SHA-256(name)>". */
enum { CR_ANNOTATION_NAME = 64 };
void cr_restart_annotation_name(const char *secret, char out[CR_ANNOTATION_NAME]);
/* "leaf=<16 hex>,leaf.version=<decimal>,trust=<16 hex>,…,opaque=<8 hex>.<16 hex>,…,workload=<16 hex>,at=<decimal>":
 * only the classes given, so that a later change of another class does not restart. Trust is digested as a set; that of
 * opaque material begins with the id of its key; a class without material is "none". Here without versions, workload
 * and time. Owned. */
char *cr_restart_annotation_value(const struct cr_material *material, unsigned classes);
/* Whether an annotation value (NULL: none) shows that these classes of this material were already restarted for: each
 * class given is in it with the same digest. */
bool cr_restart_annotation_covers(const char *value, const struct cr_material *material, unsigned classes);
/* Whether the value has a digest of opaque material by another key than this material's: it says nothing of it. */
bool cr_restart_annotation_is_rekeyed(const char *value, const struct cr_material *material);
/* The value with the given classes set and the other classes kept as they were in `before` (NULL: none); what is not
 * of this form is dropped. version: the Secret's resourceVersion at which the change was seen; it is only remembered as
 * a number of at most 20 digits, else (NULL, too) those classes have none. Owned. */
char *cr_restart_annotation_merge(const char *before, const struct cr_material *material, unsigned classes,
                                  const char *version);
bool cr_restart_annotation_is_version(const char *text);
/* Whether this one class was restarted for at a version of the Secret after the first and not after the second. */
bool cr_restart_annotation_is_between(const char *value, enum cr_class class, const char *after, const char *until);
/* At this very version. */
bool cr_restart_annotation_is_at(const char *value, enum cr_class class, const char *version);
/* The greatest version in it, of any class. Owned; NULL: it has none. */
char *cr_restart_annotation_newest(const char *value);

/* The value, and that it is for the workload of this UID, by a restart of that time (wall clock). A manifest is copied
 * with its annotations, to another name, namespace or cluster: what they say of the Secret is not true there. Owned. */
char *cr_restart_annotation_for(const char *value, const char *uid, int64_t at_ms);
/* The value of that name, unless it says that it is for another workload; NULL: there is none. Borrowed. annotations:
 * of a pod template, or of a pod of the workload. */
const char *cr_restart_annotation_read(const struct cr_json *annotations, const char *name, const char *uid);
/* The value in the workload's own template; for an Argo Rollout in its own annotations, as long as its spec.restartAt
 * is not older. */
const char *cr_restart_annotation_of(const struct cr_json *workload, const char *name);
/* When certroll restarted the workload last, for any Secret and policy; 0: not known. */
int64_t cr_restart_annotation_at_ms(const struct cr_json *workload);

#endif
