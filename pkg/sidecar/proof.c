#include "sidecar/proof.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"

/* Connections to each endpoint, at once: while a program changes over, some of its workers are new and some are not. */
enum { LOOKS = 4, TARGETS_MAX = LOOKS * CR_SIDECAR_ENDPOINTS_MAX };

/* --- announced names --- */

static void hex_of(const unsigned char digest[32], char out[CR_SHA256_HEX])
{
    for (size_t i = 0; i < 32; i++)
        snprintf(&out[2 * i], 3, "%02x", digest[i]);
}

static const struct cr_ca *find_subject(const struct cr_material *material, const char *subject)
{
    for (size_t i = 0; material && i < material->trust_len; i++)
        if (cr_streq(material->trust[i].subject, subject))
            return &material->trust[i];
    return NULL;
}

static bool is_announced(const struct cr_probe_announced *announced, const struct cr_ca *ca)
{
    char name[CR_SHA256_HEX];
    for (size_t i = 0; i < announced->len; i++) {
        hex_of(announced->names[i], name);
        if (cr_streq(name, ca->subject))
            return true;
    }
    return false;
}

/* Whether the announced names are of this material's CAs, and which of them are of neither or only of the material
 * before. */
struct names {
    bool ours;
    bool dropped;
    bool foreign;
};

static struct names sort_names(const struct cr_probe_announced *announced, const struct cr_material *wanted,
                               const struct cr_material *before)
{
    struct names names = {0};
    for (size_t i = 0; i < announced->len; i++) {
        char name[CR_SHA256_HEX];
        hex_of(announced->names[i], name);
        bool now = find_subject(wanted, name) != NULL;
        bool then = find_subject(before, name) != NULL;
        names.ours = names.ours || now || then;
        names.dropped = names.dropped || (then && !now);
        names.foreign = names.foreign || (!then && !now);
    }
    return names;
}

/* A CA of the material before, or another of the new one, has the name of a CA that is not the same: a name says
 * nothing of them. */
static bool is_ambiguous(const struct cr_material *wanted, const struct cr_material *before, const struct cr_ca *ca)
{
    const struct cr_ca *then = find_subject(before, ca->subject);
    if (then && !cr_streq(then->fingerprint, ca->fingerprint))
        return true;
    return find_subject(wanted, ca->subject) != ca;
}

enum trust { TRUST_SILENT, TRUST_OLD, TRUST_LIKELY, TRUST_SEEN };

static enum trust judge_trust(const struct cr_probe_announced *announced, const struct cr_material *wanted,
                              const struct cr_material *before, int64_t now_ms)
{
    bool conclusive = before != NULL;
    struct names names = sort_names(announced, wanted, before);
    /* An empty list is allowed, and many servers have it; of a list that was cut nothing is missing for sure. */
    if (!wanted->trust_len || !announced->asked || !announced->len || announced->more || !names.ours)
        return TRUST_SILENT;
    for (size_t i = 0; i < wanted->trust_len; i++) {
        const struct cr_ca *ca = &wanted->trust[i];
        bool expired = ca->not_after_ms < now_ms; /* software may leave those out */
        if (!expired && !is_announced(announced, ca))
            return TRUST_OLD;
        conclusive = conclusive && !is_ambiguous(wanted, before, ca);
    }
    if (names.dropped)
        return TRUST_OLD;
    return conclusive && !names.foreign ? TRUST_SEEN : TRUST_LIKELY;
}

/* --- one endpoint --- */

struct finding {
    enum cr_proof_verdict verdict;
    enum trust trust;
    const char *words;
};

static struct finding judge(const struct cr_probe_result *seen, const struct cr_material *wanted,
                            const struct cr_material *before, int64_t now_ms)
{
    if (seen->outcome != CR_PROBE_SERVED)
        return (struct finding){.verdict = CR_PROOF_UNKNOWN, .words = seen->detail};
    enum trust trust = judge_trust(&seen->announced, wanted, before, now_ms);
    if (wanted->has_leaf && !cr_streq(seen->leaf, wanted->leaf))
        return (struct finding){.verdict = CR_PROOF_OLD, .trust = trust, .words = "serves another leaf"};
    if (trust == TRUST_OLD)
        return (struct finding){
            .verdict = CR_PROOF_OLD, .trust = trust, .words = "announces the CAs of before to its clients"};
    if (!wanted->has_leaf && trust == TRUST_SILENT)
        return (struct finding){
            .verdict = CR_PROOF_NONE, .trust = trust, .words = "announces none of these CAs to its clients"};
    return (struct finding){.verdict = CR_PROOF_NEW, .trust = trust, .words = ""};
}

/* --- all of them --- */

/* The one that says the most against it. */
static bool is_worse(enum cr_proof_verdict a, enum cr_proof_verdict b)
{
    static const int order[] = {[CR_PROOF_NEW] = 0, [CR_PROOF_NONE] = 1, [CR_PROOF_UNKNOWN] = 2, [CR_PROOF_OLD] = 3};
    return order[a] > order[b];
}

static void probe_all(const struct cr_sidecar_material *material, int timeout_ms, struct cr_probe_result *results)
{
    struct cr_probe_target targets[TARGETS_MAX];
    size_t len = material->proof.endpoints_len * LOOKS;
    for (size_t i = 0; i < len; i++) {
        const struct cr_proof_endpoint *endpoint = &material->proof.endpoints[i / LOOKS];
        targets[i] = (struct cr_probe_target){.address = endpoint->address,
                                              .port = endpoint->port,
                                              .server_name = endpoint->server_name,
                                              .protocol = endpoint->protocol};
    }
    cr_tls_probe(targets, len, timeout_ms, results);
}

static void take(const struct cr_proof_endpoint *endpoint, const struct cr_probe_result *seen,
                 const struct finding *finding, struct cr_proof *out)
{
    out->verdict = finding->verdict;
    snprintf(out->served, sizeof out->served, "%s", seen->leaf);
    snprintf(out->words, sizeof out->words, finding->words[0] ? "port %d: %s" : "", endpoint->port, finding->words);
}

/* trust_seen: one endpoint that shows the CAs is enough, since others may verify no clients; but none may be in
 * doubt. */
void cr_proof_look(const struct cr_sidecar_material *material, const struct cr_material *wanted,
                   const struct cr_material *before, int timeout_ms, struct cr_proof *out)
{
    struct cr_probe_result results[TARGETS_MAX];
    size_t seen = 0;
    size_t doubtful = 0;
    *out = (struct cr_proof){.verdict = CR_PROOF_NONE};
    if (!material->proof.endpoints_len)
        return;
    probe_all(material, timeout_ms, results);
    for (size_t i = 0; i < material->proof.endpoints_len * LOOKS; i++) {
        struct finding finding = judge(&results[i], wanted, before, cr_clock_wall_ms());
        seen += finding.trust == TRUST_SEEN;
        doubtful += finding.trust == TRUST_LIKELY;
        if (i == 0 || is_worse(finding.verdict, out->verdict))
            take(&material->proof.endpoints[i / LOOKS], &results[i], &finding, out);
    }
    out->trust_seen = out->verdict == CR_PROOF_NEW && seen && !doubtful;
}
