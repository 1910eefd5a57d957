#include "api/trust_problem.h"

#include "base/alloc.h"
#include "base/strings.h"

/* What is wrong with material has the name that it has everywhere. */
static const struct row {
    const char *name;
    enum cr_material_problem material; /* CR_MATERIAL_OK: name has it */
    bool may_come;
} rows[CR_TRUST_REASONS] = {
    [CR_TRUST_FINE] = {""},
    [CR_TRUST_NOT_OURS] = {"NotOurs"},
    [CR_TRUST_OTHER_DOMAIN] = {"OtherDomain"},
    [CR_TRUST_NO_CONSENT] = {"NoConsent"},
    [CR_TRUST_NAMESPACE_MISSING] = {"NamespaceMissing", .may_come = true},
    [CR_TRUST_RESERVED] = {"Reserved"},
    [CR_TRUST_TARGET_IS_SOURCE] = {"TargetIsSource"},
    [CR_TRUST_IMMUTABLE] = {"Immutable"},
    [CR_TRUST_NOT_FOUND] = {"NotFound", .may_come = true},
    [CR_TRUST_NO_CA_BUNDLE] = {"NoCABundle"},
    [CR_TRUST_OTHER_WRITER] = {"OtherWriter"},
    [CR_TRUST_KEYSTORE_PASSWORD] = {"KeystorePassword", .may_come = true},
    [CR_TRUST_FORBIDDEN] = {"Forbidden"},
    [CR_TRUST_CANNOT_READ] = {"CannotRead"},
    [CR_TRUST_INVALID] = {"Invalid"},
    [CR_TRUST_KEY_NOT_ACCEPTED] = {"KeyNotAccepted"},
    [CR_TRUST_SOURCE_NOT_FOUND] = {"SourceNotFound", .may_come = true},
    [CR_TRUST_SOURCE_UNUSABLE] = {"SourceUnusable"},
    [CR_TRUST_DISTRUSTED_CA] = {"DistrustedCA"},
    [CR_TRUST_UNKNOWN_ISSUER] = {"UnknownIssuer"},
    [CR_TRUST_NEEDS_ISSUER] = {"NewCANeedsItsIssuer"},
    [CR_TRUST_NO_CA] = {"NoCA", .may_come = true},
    [CR_TRUST_EMPTY] = {.material = CR_MATERIAL_EMPTY, .may_come = true},
    [CR_TRUST_UNPARSABLE] = {.material = CR_MATERIAL_UNPARSABLE},
    [CR_TRUST_KEY_MISMATCH] = {.material = CR_MATERIAL_KEY_MISMATCH},
    [CR_TRUST_ENCRYPTED] = {.material = CR_MATERIAL_ENCRYPTED},
    [CR_TRUST_EXPIRED] = {.material = CR_MATERIAL_EXPIRED},
    [CR_TRUST_NOT_YET] = {.material = CR_MATERIAL_NOT_YET, .may_come = true},
    [CR_TRUST_INCOMPLETE] = {.material = CR_MATERIAL_INCOMPLETE},
    [CR_TRUST_MATERIAL_TOO_COSTLY] = {.material = CR_MATERIAL_TOO_COSTLY},
    [CR_TRUST_WOULD_CUT_OFF] = {"BundleWouldCutOff"},
    [CR_TRUST_BUNDLE_TOO_COSTLY] = {"BundleTooCostly"},
};

const char *cr_trust_reason_name(enum cr_trust_reason reason)
{
    if ((size_t)reason >= cr_array_len(rows))
        return "";
    return rows[reason].name ? rows[reason].name : cr_material_problem_name(rows[reason].material);
}

bool cr_trust_may_come(enum cr_trust_reason reason)
{
    return (size_t)reason < cr_array_len(rows) && rows[reason].may_come;
}

bool cr_trust_reason_parse(const char *text, enum cr_trust_reason *reason)
{
    for (size_t i = CR_TRUST_FINE + 1; i < cr_array_len(rows); i++) {
        if (!cr_streq(cr_trust_reason_name((enum cr_trust_reason)i), text))
            continue;
        *reason = (enum cr_trust_reason)i;
        return true;
    }
    return false;
}

enum cr_trust_reason cr_trust_reason_of_material(enum cr_material_problem problem)
{
    if (problem == CR_MATERIAL_OK)
        return CR_TRUST_FINE;
    for (size_t i = CR_TRUST_FINE + 1; i < cr_array_len(rows); i++)
        if (rows[i].material == problem)
            return (enum cr_trust_reason)i;
    return CR_TRUST_UNPARSABLE;
}

enum cr_trust_reason cr_trust_reason_of_bundle(enum cr_bundle_proof proof)
{
    switch (proof) {
    case CR_BUNDLE_WOULD_CUT_OFF:
        return CR_TRUST_WOULD_CUT_OFF;
    case CR_BUNDLE_TOO_COSTLY:
        return CR_TRUST_BUNDLE_TOO_COSTLY;
    case CR_BUNDLE_PROVED:
        break;
    }
    return CR_TRUST_FINE;
}

bool cr_trust_is_foreign(enum cr_trust_reason reason)
{
    return reason == CR_TRUST_NOT_OURS || reason == CR_TRUST_OTHER_DOMAIN;
}

/* --- sentences --- */

static char *forbidden(const struct cr_trust_about *about)
{
    if (!about->component)
        return cr_strdup(cr_or_empty(about->detail));
    return cr_asprintf("%s. The component %s grants this right: apply manifests/components/%s if it is missing",
                       cr_or_empty(about->detail), about->component, about->component);
}

static char *would_cut_off(const struct cr_trust_about *about)
{
    if (!about->leaf)
        return cr_strdup(cr_or_empty(about->detail));
    return cr_asprintf("%s keeps its bundle: with the new one %s would not verify the leaf of %s any more, in no order "
                       "of the CAs; replace that leaf first, or give the new CA a name and key identifiers of its own",
                       about->object, cr_or_empty(about->client), about->leaf);
}

static char *other_writer(const struct cr_trust_about *about)
{
    if (!about->owner)
        return cr_strdup(cr_or_empty(about->detail));
    return cr_asprintf(
        "'%.200s' overwrites what is published in %s, so nothing is written there until %s, or until the spec is "
        "edited; "
        "let only one of both write it (for cert-manager: another secretName, as in your manifests). CAs that the "
        "domain's own leaves need stay trusted meanwhile",
        about->owner, about->object, cr_or_empty(about->detail));
}

char *cr_trust_problem_text(enum cr_trust_reason reason, const struct cr_trust_about *about)
{
    switch (reason) {
    case CR_TRUST_NOT_OURS:
        return cr_asprintf("%s is not written by %s: its owner lets it be overwritten with the "
                           "annotation " CR_DOMAIN_ANNOTATION ": %s",
                           about->object, about->detail, about->wanted);
    case CR_TRUST_OTHER_DOMAIN:
        return cr_asprintf("%s belongs to '%.300s' by its annotation " CR_DOMAIN_ANNOTATION
                           ": change it to %s, or publish elsewhere",
                           about->object, about->owner, about->wanted);
    case CR_TRUST_TARGET_IS_SOURCE:
        return cr_asprintf("%s is matched by spec.secretSelector, so it is read, and not written", about->object);
    case CR_TRUST_IMMUTABLE:
        return cr_asprintf("%s is immutable: publish under another name, since kubelets keep the old content of one "
                           "that is deleted and created again",
                           about->object);
    case CR_TRUST_SOURCE_UNUSABLE:
        return cr_asprintf("%s cannot be used, so the bundles of spec.trust stay as they are: %s", about->object,
                           cr_or_empty(about->detail));
    case CR_TRUST_NEEDS_ISSUER:
        return cr_asprintf("CA '%.200s' is no root, and the CA that issued it is not there: OpenSSL, and all that is "
                           "built on it, refuses its leaves. Put its issuers up to the root into ca.crt beside it%s%s",
                           cr_or_empty(about->ca), about->object ? ", in " : "", cr_or_empty(about->object));
    case CR_TRUST_OTHER_WRITER:
        return other_writer(about);
    case CR_TRUST_FORBIDDEN:
        return forbidden(about);
    case CR_TRUST_WOULD_CUT_OFF:
        return would_cut_off(about);
    case CR_TRUST_BUNDLE_TOO_COSTLY:
        if (!about->object)
            return cr_strdup(cr_or_empty(about->detail));
        return cr_asprintf("%s keeps every CA that it has, and the new ones stand behind them: to verify all leaves in "
                           "use with another bundle would take more than certroll may spend",
                           about->object);
    default:
        return cr_strdup(cr_or_empty(about->detail));
    }
}
