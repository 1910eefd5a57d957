#include "policy/controller/acts_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/base64.h"
#include "policy/controller/acts.h"
#include "policy/controller/acts_pages.h"
#include "policy/controller/acts_trust.h"
#include "policy/controller/pod_guard.h"
#include "workload/sidecar.h"

/* The part of a round of probes that asks the sidecars of pods what has become of their material. */

enum { CR_SIDECAR_PAGES_MAX = 64 }; /* of one round */

struct reading {
    const struct cr_actor *actor;
    const char *ns;
    int64_t began_ms;
};

static const char *read_page(const struct cr_page *page, struct cr_sidecar_sighting *seen)
{
    struct cr_error problem = {0};
    if (!page) {
        snprintf(seen->words, sizeof seen->words, "%s", CR_PAGE_REFUSED);
        return "refused";
    }
    if (page->problem[0]) {
        snprintf(seen->words, sizeof seen->words, "%s", page->problem);
        return "unreachable";
    }
    if (!cr_sidecar_page_read(cr_buf_text(&page->body), page->body.len, seen, &problem)) {
        snprintf(seen->words, sizeof seen->words, "%s", problem.text);
        return "invalid";
    }
    return "read";
}

/* Takes what the page has. */
static void remember_page(void *arg, const struct cr_page_look *look, const struct cr_page *page)
{
    const struct reading *reading = arg;
    struct cr_sidecar_sighting seen = {0};
    const char *outcome = read_page(page, &seen);
    seen.at_ms = reading->began_ms;
    cr_memory_saw_sidecar(reading->actor->memory, look->pod->uid, look->pod->started_ms, &seen);
    cr_metric_add(reading->actor->sidecar_pages, CR_LABELS(reading->ns, outcome), 1);
}

static struct cr_page_look *sidecar_looks_of(const struct cr_gathered *gathered, const struct cr_plan *plan,
                                             size_t *len)
{
    struct cr_page_look *looks = cr_calloc(plan->probes_len, sizeof *looks);
    *len = 0;
    for (size_t i = 0; i < plan->probes_len; i++) {
        const struct cr_plan_pod *what = &plan->probes[i];
        const struct cr_world_pod *pod = &gathered->consumers[what->consumer].pods[what->pod];
        if (what->sidecar_port)
            looks[(*len)++] = (struct cr_page_look){.pod = pod,
                                                    .port = what->sidecar_port,
                                                    .path = CR_SIDECAR_PATH,
                                                    .max = CR_SIDECAR_PAGE_MAX,
                                                    .read_ms = pod->sidecar ? pod->sidecar->at_ms : 0};
    }
    return looks;
}

/* Reads the pages of those sidecars that the plan asks for, at most CR_SIDECAR_PAGES_MAX and those first that were
 * read the longest ago, and remembers them. Blocks for up to 2 s. */
static void act_read_sidecars(const struct cr_actor *actor, const struct cr_gathered *gathered,
                              const struct cr_plan *plan)
{
    size_t len = 0;
    cr_autofree struct cr_page_look *looks = sidecar_looks_of(gathered, plan, &len);
    struct reading reading = {.actor = actor, .ns = gathered->world.policy->ns, .began_ms = cr_clock_wall_ms()};
    cr_act_read_looks(actor, looks, len, CR_SIDECAR_PAGES_MAX, remember_page, &reading);
}

enum {
    TARGETS_MAX = 4 * CR_PROBE_AT_ONCE, /* of one round; the remaining ones come with the next */
    ONE_WAVE_MS = 1500,
    ALL_WAVES_MS = 3000,
    CLIENTS_MS = 2000, /* for reading clients' Secrets; each consumer may have one */
};

/* One endpoint of one pod. */
struct look {
    size_t consumer;
    size_t endpoint;
    const struct cr_world_pod *pod;
    const struct cr_plan_pod *what; /* of the plan */
};

/* The client certificate of one consumer, for one round. */
struct presented {
    bool tried;
    struct cr_probe_client *client; /* owned; NULL: none */
    struct cr_error problem;        /* why there is none although there should be */
};

/* --- which --- */

static const struct cr_policy_verify *verify_of(const struct cr_gathered *gathered, size_t consumer)
{
    return &gathered->world.policy->consumers[consumer].verify;
}

static int64_t asked_ms(const struct look *look)
{
    return look->pod->sightings ? look->pod->sightings[look->endpoint].at_ms : 0;
}

static int by_age(const void *a, const void *b)
{
    int64_t first = asked_ms(a);
    int64_t second = asked_ms(b);
    return first < second ? -1 : first > second;
}

/* Endpoints that find no place come with the next round. Moves those that stay to the front, and returns their number.
 */
static size_t fit(const struct cr_actor *actor, struct look *looks, size_t len)
{
    size_t kept = 0;
    size_t canaries = 0;
    for (size_t i = 0; i < len && kept < TARGETS_MAX; i++) {
        bool wants_canary = looks[i].what->trust && cr_act_has_canary(actor, looks[i].what->canary_ca);
        if (wants_canary && canaries == CR_CANARIES_MAX)
            continue;
        canaries += wants_canary;
        looks[kept++] = looks[i];
    }
    return kept;
}

/* The least recently asked ones come first: otherwise the first would be due again before the last were asked. */
static struct look *looks_of(const struct cr_actor *actor, const struct cr_gathered *gathered,
                             const struct cr_plan *plan, size_t *count)
{
    struct look *looks = NULL;
    size_t len = 0;
    for (size_t i = 0; i < plan->probes_len; i++) {
        const struct cr_plan_pod *what = &plan->probes[i];
        size_t endpoints = verify_of(gathered, what->consumer)->endpoints_len;
        looks = cr_reallocarray(looks, len + endpoints, sizeof *looks);
        for (size_t e = 0; e < endpoints; e++)
            looks[len++] = (struct look){.consumer = what->consumer,
                                         .endpoint = e,
                                         .pod = &gathered->consumers[what->consumer].pods[what->pod],
                                         .what = what};
    }
    if (len)
        qsort(looks, len, sizeof *looks, by_age);
    *count = fit(actor, looks, len);
    return looks;
}

/* --- the client --- */

static bool decode(const struct cr_json *secret, const char *key, struct cr_buf *out)
{
    const char *text = cr_json_string_at(secret, "data", key);
    return !text || cr_base64_decode(text, strlen(text), out, NULL);
}

/* Read from the API server for this round only: caches have no keys. */
static struct cr_probe_client *fetch_client(const struct cr_actor *actor, const char *ns, const char *name,
                                            struct cr_error *err)
{
    struct cr_json *secret = cr_client_get(actor->client, &cr_res_secrets, ns, name, err);
    if (!secret)
        return NULL;
    CR_CLEANUP(cr_buf) struct cr_buf certificate = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf key = {.secret = true};
    bool read = decode(secret, "tls.crt", &certificate) && decode(secret, "tls.key", &key);
    cr_json_free_secret(secret);
    if (!read) {
        cr_error_set(err, CR_ERR_INVALID, "an entry is not base64");
        return NULL;
    }
    return cr_probe_client_new(cr_buf_text(&certificate), certificate.len, cr_buf_text(&key), key.len, err);
}

static const struct cr_probe_client *client_of(const struct cr_actor *actor, const struct cr_gathered *gathered,
                                               struct presented *all, size_t consumer)
{
    const char *name = verify_of(gathered, consumer)->client_secret_name;
    struct presented *presented = &all[consumer];
    if (name && !presented->tried)
        presented->client = fetch_client(actor, gathered->world.policy->ns, name, &presented->problem);
    presented->tried = true;
    return presented->client;
}

/* --- what was seen --- */

static enum cr_probe_seen seen_of(enum cr_probe_outcome outcome)
{
    switch (outcome) {
    case CR_PROBE_SERVED:
        return CR_SEEN_LEAF;
    case CR_PROBE_NOT_TLS:
        return CR_SEEN_NOT_TLS;
    case CR_PROBE_UNPROVED:
        return CR_SEEN_UNPROVED;
    case CR_PROBE_TOO_COSTLY:
        return CR_SEEN_TOO_COSTLY;
    default:
        return CR_SEEN_UNREACHABLE;
    }
}

static enum cr_client_verdict verdict_of(enum cr_probe_consent consent)
{
    static const enum cr_client_verdict verdicts[] = {[CR_PROBE_NO_CLIENT] = CR_CLIENT_NONE,
                                                      [CR_PROBE_ACCEPTED] = CR_CLIENT_ACCEPTED,
                                                      [CR_PROBE_SILENT] = CR_CLIENT_UNKNOWN,
                                                      [CR_PROBE_DENIED] = CR_CLIENT_REFUSED};
    return verdicts[consent];
}

static const char *outcome_word(enum cr_probe_outcome outcome)
{
    static const char *const words[] = {
        [CR_PROBE_SERVED] = "served",     [CR_PROBE_UNREACHABLE] = "unreachable", [CR_PROBE_NOT_TLS] = "not_tls",
        [CR_PROBE_UNPROVED] = "unproved", [CR_PROBE_TOO_COSTLY] = "too_costly",   [CR_PROBE_REFUSED] = "refused"};
    return words[outcome];
}

static void remember(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct look *look,
                     const struct cr_probe_result *result, const struct presented *presented)
{
    struct cr_sighting sighting = {
        .seen = seen_of(result->outcome), .client = verdict_of(result->consent), .at_ms = cr_clock_wall_ms()};
    snprintf(sighting.leaf, sizeof sighting.leaf, "%s", result->leaf);
    snprintf(sighting.words, sizeof sighting.words, "%s", result->detail);
    if (presented && presented->problem.kind != CR_ERR_NONE) {
        sighting.client = CR_CLIENT_REFUSED;
        if (result->outcome == CR_PROBE_SERVED)
            snprintf(sighting.words, sizeof sighting.words, "%s", presented->problem.text);
    }
    const struct cr_policy *policy = gathered->world.policy;
    cr_memory_probed(actor->memory, look->pod->uid, look->pod->started_ms, verify_of(gathered, look->consumer),
                     look->endpoint, &sighting);
    cr_metric_add(actor->probes, CR_LABELS(policy->ns, outcome_word(result->outcome)), 1);
}

/* --- what it trusts --- */

static void remember_trust(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct look *look,
                           const struct cr_endpoint_trust *trust, int64_t began_ms)
{
    cr_memory_saw_trust(actor->memory, look->pod->uid, look->pod->started_ms, verify_of(gathered, look->consumer),
                        look->endpoint, trust, began_ms);
}

static void look_at_trust(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct look *looks,
                          size_t count, const struct cr_probe_target *targets, const struct cr_probe_result *results,
                          int64_t began_ms)
{
    cr_autofree struct cr_trust_look *trusts = cr_calloc(count, sizeof *trusts);
    cr_autofree const struct look **of = cr_calloc(count, sizeof(struct look *));
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        if (!looks[i].what->trust)
            continue;
        of[len] = &looks[i];
        trusts[len++] =
            (struct cr_trust_look){.target = &targets[i], .result = &results[i], .canary_ca = looks[i].what->canary_ca};
    }
    cr_act_look_at_trust(actor, gathered, trusts, len);
    for (size_t i = 0; i < len; i++)
        remember_trust(actor, gathered, of[i], &trusts[i].trust, began_ms);
}

/* --- the round --- */

/* An endpoint that may not be asked gets that as its result at once; the others become targets, and their looks are
 * moved to the front with them. Those that are left when the time for clients is over come with the next round. */
static size_t make_targets(const struct cr_actor *actor, const struct cr_gathered *gathered, struct look *looks,
                           size_t count, struct presented *presented, struct cr_probe_target *targets)
{
    size_t kept = 0;
    int64_t until_ms = cr_clock_monotonic_ms() + CLIENTS_MS;
    for (size_t i = 0; i < count && (!i || cr_clock_monotonic_ms() < until_ms); i++) {
        const struct look look = looks[i];
        const struct cr_verify_endpoint *endpoint = &verify_of(gathered, look.consumer)->endpoints[look.endpoint];
        if (!cr_pod_may_be_asked(actor->client, look.pod, endpoint->port)) {
            remember(
                actor, gathered, &look,
                &(struct cr_probe_result){.outcome = CR_PROBE_REFUSED, .detail = "not an address that may be asked"},
                NULL);
            if (look.what->trust)
                remember_trust(actor, gathered, &look, &(struct cr_endpoint_trust){0}, cr_clock_wall_ms());
            continue;
        }
        looks[kept] = look;
        targets[kept++] = (struct cr_probe_target){.address = look.pod->ip,
                                                   .port = endpoint->port,
                                                   .server_name = endpoint->server_name,
                                                   .protocol = endpoint->protocol,
                                                   .client = client_of(actor, gathered, presented, look.consumer)};
    }
    return kept;
}

static void run_round(const struct cr_actor *actor, const struct cr_gathered *gathered, const struct cr_plan *plan)
{
    size_t count = 0;
    size_t consumers = gathered->world.policy->consumers_len;
    cr_autofree struct look *looks = looks_of(actor, gathered, plan, &count);
    cr_autofree struct presented *presented = cr_calloc(consumers, sizeof *presented);
    cr_autofree struct cr_probe_target *targets = cr_calloc(count, sizeof *targets);
    cr_autofree struct cr_probe_result *results = cr_calloc(count, sizeof *results);
    int64_t began_ms = cr_clock_wall_ms();
    size_t asked = make_targets(actor, gathered, looks, count, presented, targets);
    if (asked)
        cr_tls_probe(targets, asked, asked <= CR_PROBE_AT_ONCE ? ONE_WAVE_MS : ALL_WAVES_MS, results);
    for (size_t i = 0; i < asked; i++)
        remember(actor, gathered, &looks[i], &results[i], &presented[looks[i].consumer]);
    look_at_trust(actor, gathered, looks, asked, targets, results, began_ms);
    cr_act_read_pages(actor, gathered, plan, began_ms);
    act_read_sidecars(actor, gathered, plan);
    for (size_t i = 0; i < consumers; i++)
        cr_probe_client_free(presented[i].client);
}

bool cr_act_probe(const struct cr_actor *actor, const struct cr_gathered *gathered, struct cr_plan *plan)
{
    const char *ns = gathered->world.policy->ns;
    if (!plan->probes_len)
        return false;
    if (actor->slots && !cr_probe_slots_take(actor->slots, ns, cr_clock_monotonic_ms())) {
        if (!plan->requeue_after_ms || plan->requeue_after_ms > CR_PROBE_SLOT_AGAIN_MS)
            plan->requeue_after_ms = CR_PROBE_SLOT_AGAIN_MS;
        return false;
    }
    run_round(actor, gathered, plan);
    if (actor->slots)
        cr_probe_slots_give_back(actor->slots, ns);
    return true;
}
