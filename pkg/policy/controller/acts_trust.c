#include "policy/controller/acts_trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "policy/controller/acts_pages.h"
#include "evidence/certs_page.h"

enum { CANARIES_MS = 6000 };

bool cr_act_has_canary(const struct cr_actor *actor, const char *ca)
{
    int64_t now_ms = cr_clock_wall_ms();
    return ca[0] && actor->canaries && cr_canaries_has(actor->canaries, ca, now_ms, now_ms);
}

/* --- names --- */

static void note_names(const struct cr_probe_result *result, struct cr_endpoint_trust *trust)
{
    const struct cr_probe_announced *from = &result->announced;
    *trust = (struct cr_endpoint_trust){.reached = result->outcome == CR_PROBE_SERVED};
    if (!trust->reached)
        return;
    size_t len = from->len < CR_ANNOUNCED_MAX ? from->len : CR_ANNOUNCED_MAX;
    trust->announced = (struct cr_announced){.asked = from->asked, .more = from->more || len < from->len, .len = len};
    memcpy(trust->announced.names, from->names, len * sizeof from->names[0]);
}

/* The CA as a Secret of the policy has it now; NULL: no Secret has it. */
static const struct cr_ca *find_ca(const struct cr_gathered *gathered, const char *fingerprint)
{
    for (size_t i = 0; i < gathered->world.policy->secrets_len; i++) {
        const struct cr_material *material = gathered->secrets[i].material;
        for (size_t k = 0; material && k < material->trust_len; k++)
            if (cr_streq(material->trust[k].fingerprint, fingerprint))
                return &material->trust[k];
    }
    return NULL;
}

static bool has_name(const struct cr_announced *announced, const char *subject)
{
    for (size_t i = 0; i < announced->len; i++) {
        char name[CR_SHA256_HEX];
        for (size_t k = 0; k < sizeof announced->names[i]; k++)
            snprintf(&name[2 * k], 3, "%02x", announced->names[i][k]);
        if (cr_streq(name, subject))
            return true;
    }
    return false;
}

/* Whether there may be another CA of that name, or one with an unknown name: the status remembers only the first digits
 * of subjects. */
static bool may_share_name(const struct cr_material *material, const struct cr_ca *ca)
{
    if (material->trust_summary.count)
        return true;
    for (size_t i = 0; i < material->trust_len; i++) {
        const struct cr_ca *other = &material->trust[i];
        if (!cr_streq(other->fingerprint, ca->fingerprint) &&
            strncmp(other->subject, ca->subject, strlen(other->subject)) == 0)
            return true;
    }
    return false;
}

static bool is_named_alone(const struct cr_gathered *gathered, const struct cr_ca *ca)
{
    const struct cr_policy_status *status = &gathered->status;
    for (size_t i = 0; i < gathered->world.policy->secrets_len; i++)
        if (gathered->secrets[i].material && may_share_name(gathered->secrets[i].material, ca))
            return false;
    for (size_t i = 0; i < status->secrets_len; i++)
        if (status->secrets[i].has_settled && may_share_name(&status->secrets[i].settled, ca))
            return false;
    return true;
}

/* Names decide it when the CA is not among them, or when it is and no other CA has its name. */
static bool names_leave_it_open(const struct cr_gathered *gathered, const struct cr_announced *announced,
                                const char *fingerprint)
{
    const struct cr_ca *ca = find_ca(gathered, fingerprint);
    if (!announced->len || announced->more || !ca || !ca->subject[0])
        return true;
    return has_name(announced, ca->subject) && !is_named_alone(gathered, ca);
}

/* --- canaries --- */

static enum cr_canary_verdict verdict_of(enum cr_probe_trust trust)
{
    static const enum cr_canary_verdict verdicts[] = {[CR_PROBE_TRUST_UNASKED] = CR_CANARY_NONE,
                                                      [CR_PROBE_TRUSTED] = CR_CANARY_TRUSTED,
                                                      [CR_PROBE_UNTRUSTED] = CR_CANARY_UNTRUSTED,
                                                      [CR_PROBE_TRUST_UNKNOWN] = CR_CANARY_UNKNOWN};
    return verdicts[trust];
}

/* Those under way: parallel lists, each canary held. */
struct canaries {
    struct cr_probe_target *targets;
    enum cr_probe_trust *trusts;
    struct cr_trust_look **looks;
    size_t len;
};

static void add_canary(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_trust_look *look,
                       struct canaries *canaries)
{
    const struct cr_announced *announced = &look->trust.announced;
    if (!look->canary_ca[0] || !actor->canaries || !look->trust.reached || !announced->asked ||
        look->target->protocol != CR_PROBE_TLS || !names_leave_it_open(gathered, announced, look->canary_ca))
        return;
    const struct cr_probe_client *client = cr_canaries_hold(actor->canaries, look->canary_ca, cr_clock_wall_ms());
    if (!client)
        return;
    canaries->targets[canaries->len] = *look->target;
    canaries->targets[canaries->len].client = client;
    canaries->looks[canaries->len++] = look;
}

void cr_act_look_at_trust(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_trust_look *looks,
                          size_t count)
{
    cr_autofree struct cr_probe_target *targets = cr_calloc(count, sizeof *targets);
    cr_autofree enum cr_probe_trust *trusts = cr_calloc(count, sizeof *trusts);
    cr_autofree struct cr_trust_look **asked = cr_calloc(count, sizeof(struct cr_trust_look *));
    struct canaries canaries = {.targets = targets, .trusts = trusts, .looks = asked};
    for (size_t i = 0; i < count; i++) {
        note_names(looks[i].result, &looks[i].trust);
        add_canary(actor, gathered, &looks[i], &canaries);
    }
    if (canaries.len)
        cr_canary_probe(targets, canaries.len, CANARIES_MS, trusts);
    for (size_t i = 0; i < canaries.len; i++) {
        struct cr_endpoint_trust *trust = &asked[i]->trust;
        trust->canary = verdict_of(trusts[i]);
        snprintf(trust->canary_ca, sizeof trust->canary_ca, "%s", asked[i]->canary_ca);
        cr_canaries_release(actor->canaries, targets[i].client);
    }
}

/* --- pages --- */

struct reading {
    const struct cr_actor *actor;
    int64_t began_ms;
};

/* Takes what the page has. */
static void remember_page(void *arg, const struct cr_page_look *look, const struct cr_page *page)
{
    const struct reading *reading = arg;
    struct cr_trust_sighting seen = {0};
    struct cr_error problem = {0};
    if (!page || page->problem[0])
        snprintf(seen.words, sizeof seen.words, "%s", page ? page->problem : CR_PAGE_REFUSED);
    else if (!cr_certs_page_read(cr_buf_text(&page->body), page->body.len, &seen, &problem))
        snprintf(seen.words, sizeof seen.words, "%s", problem.text);
    cr_memory_saw_page(reading->actor->memory, look->pod->uid, look->pod->started_ms, look->extra, &seen,
                       reading->began_ms);
    cr_trust_sighting_dispose(&seen);
}

static struct cr_page_look *looks_of(const struct cr_gathered *gathered, const struct cr_plan *plan, size_t *len)
{
    struct cr_page_look *looks = cr_calloc(plan->probes_len, sizeof *looks);
    *len = 0;
    for (size_t i = 0; i < plan->probes_len; i++) {
        const struct cr_plan_pod *what = &plan->probes[i];
        const struct cr_policy_verify *verify = &gathered->world.policy->consumers[what->consumer].verify;
        const struct cr_world_pod *pod = &gathered->consumers[what->consumer].pods[what->pod];
        if (what->trust && verify->certs_port)
            looks[(*len)++] = (struct cr_page_look){.pod = pod,
                                                    .port = verify->certs_port,
                                                    .path = verify->certs_path,
                                                    .read_ms = pod->trust ? pod->trust->at_ms : 0,
                                                    .extra = verify};
    }
    return looks;
}

void cr_act_read_pages(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan,
                       int64_t began_ms)
{
    size_t len = 0;
    cr_autofree struct cr_page_look *looks = looks_of(gathered, plan, &len);
    struct reading reading = {.actor = actor, .began_ms = began_ms};
    cr_act_read_looks(actor, looks, len, CR_PAGES_MAX, remember_page, &reading);
}
