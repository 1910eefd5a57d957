#include "sidecar/delivery.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

static const char *const states[] = {[CR_DELIVERY_PENDING] = "Pending",
                                     [CR_DELIVERY_DELIVERED] = "Delivered",
                                     [CR_DELIVERY_REFUSED] = "Refused",
                                     [CR_DELIVERY_FAILING] = "Failing"};
_Static_assert(cr_array_len(states) == CR_DELIVERY_STATES, "a name for each state");

const char *cr_delivery_state_name(enum cr_delivery_state state)
{
    return states[state];
}

void cr_delivery_digests(const struct cr_material *material, struct cr_delivery_digests *out)
{
    *out = (struct cr_delivery_digests){0};
    memcpy(out->leaf, material->leaf, sizeof out->leaf);
    memcpy(out->chain, material->chain, sizeof out->chain);
    cr_material_trust_digest(material, out->trust);
}

bool cr_delivery_same(const struct cr_delivery_digests *a, const struct cr_delivery_digests *b)
{
    return cr_streq(a->leaf, b->leaf) && cr_streq(a->chain, b->chain) && cr_streq(a->trust, b->trust);
}

/* How many parts of it may fail each for itself. */
static size_t count_parts(const struct cr_trigger_spec *spec)
{
    if (spec->type == CR_TRIGGER_HAPROXY)
        return spec->haproxy.certificates.len + spec->haproxy.ca_files.len;
    return spec->type == CR_TRIGGER_SOCKET ? spec->socket.exchanges_len : 1;
}

/* One trigger, which takes up all or nothing. */
static bool is_one_step(const struct cr_sidecar_material *material)
{
    return material->triggers_len == 1 && count_parts(material->triggers) == 1;
}

struct cr_delivery_rules cr_delivery_rules_of(const struct cr_sidecar_material *material)
{
    return (struct cr_delivery_rules){.triggers = material->triggers_len,
                                      .proof = material->proof.endpoints_len > 0,
                                      .proof_is_conclusive = is_one_step(material),
                                      .proof_timeout_ms = material->proof.timeout_ms};
}

void cr_delivery_init(struct cr_delivery *d, const struct cr_delivery_rules *rules, uint64_t chance)
{
    *d = (struct cr_delivery){.rules = *rules, .chance = chance | 1, .took_ms = -1};
    if (rules->recorded) {
        d->is_delivered = true;
        d->delivered = rules->record;
    }
}

/* --- steps --- */

struct cr_delivery_step cr_delivery_next(const struct cr_delivery *d, int64_t monotonic_ms)
{
    static const enum cr_delivery_act acts[] = {
        [CR_PHASE_READ] = CR_ACT_READ,       [CR_PHASE_OUTPUT] = CR_ACT_OUTPUT, [CR_PHASE_LOOK] = CR_ACT_LOOK,
        [CR_PHASE_TRIGGER] = CR_ACT_TRIGGER, [CR_PHASE_PROVE] = CR_ACT_LOOK,    [CR_PHASE_IDLE] = CR_ACT_WAIT};
    if (d->phase == CR_PHASE_IDLE)
        return (struct cr_delivery_step){.act = CR_ACT_WAIT, .wait_ms = -1};
    if (d->not_before > monotonic_ms)
        return (struct cr_delivery_step){.act = CR_ACT_WAIT, .wait_ms = d->not_before - monotonic_ms};
    return (struct cr_delivery_step){.act = acts[d->phase], .trigger = d->trigger};
}

static void go(struct cr_delivery *d, enum cr_delivery_phase phase)
{
    d->phase = phase;
    d->not_before = 0;
}

static void say(struct cr_delivery *d, const char *words)
{
    snprintf(d->words, sizeof d->words, "%.*s", (int)cr_utf8_fit(words, sizeof d->words - 1), words);
}

/* xorshift64 (Marsaglia, 2003): spreads retries, nothing more. */
static int64_t jitter(struct cr_delivery *d, int64_t ms)
{
    d->chance ^= d->chance << 13;
    d->chance ^= d->chance >> 7;
    d->chance ^= d->chance << 17;
    return ms * 4 / 5 + (int64_t)(d->chance % (uint64_t)(ms * 2 / 5 + 1));
}

static int64_t backoff(struct cr_delivery *d, unsigned failures)
{
    int64_t ms = CR_DELIVERY_RETRY_MS;
    for (unsigned i = 1; i < failures && ms < CR_DELIVERY_RETRY_MOST_MS; i++)
        ms *= 2;
    return jitter(d, ms < CR_DELIVERY_RETRY_MOST_MS ? ms : CR_DELIVERY_RETRY_MOST_MS);
}

/* Again later, beginning with the files: they are checked right before anything is done with them. */
static void fail(struct cr_delivery *d, const char *words, struct cr_delivery_now now)
{
    d->state = CR_DELIVERY_FAILING;
    d->failures++;
    say(d, words);
    go(d, CR_PHASE_READ);
    d->not_before = now.monotonic_ms + backoff(d, d->failures);
}

static bool is_delivered(const struct cr_delivery *d)
{
    return d->is_delivered && cr_delivery_same(&d->delivered, &d->found);
}

static void deliver(struct cr_delivery *d, struct cr_delivery_now now)
{
    bool news = !is_delivered(d) || d->notified;
    if (news || !d->delivered_ms)
        d->delivered_ms = now.wall_ms;
    d->took_ms = news && d->attempts ? now.monotonic_ms - d->found_at : -1;
    d->delivered = d->found;
    d->is_delivered = true;
    d->state = CR_DELIVERY_DELIVERED;
    d->notified = false;
    d->unsure = false;
    d->failures = 0;
    say(d, "");
    go(d, CR_PHASE_IDLE);
}

static void begin_look(struct cr_delivery *d, enum cr_delivery_phase phase)
{
    d->look_ms = CR_DELIVERY_LOOK_MS;
    go(d, phase);
}

/* The program has been notified of all; has it taken all up? */
static void finish_triggers(struct cr_delivery *d, struct cr_delivery_now now)
{
    d->notified = true;
    d->owed = false;
    d->leaf_proven = false;
    d->trust_proven = false;
    d->prove_until = now.monotonic_ms + d->rules.proof_timeout_ms;
    if (d->rules.proof)
        begin_look(d, CR_PHASE_PROVE);
    else
        deliver(d, now);
}

static void begin_triggers(struct cr_delivery *d, struct cr_delivery_now now)
{
    d->attempts++;
    d->trigger = 0;
    d->unsure = d->rules.triggers > 0;
    if (d->rules.triggers)
        go(d, CR_PHASE_TRIGGER);
    else
        finish_triggers(d, now);
}

/* The program need not be notified, as far as is known: it has this material, or begins with it. */
static bool may_have_it(const struct cr_delivery *d)
{
    return !d->owed && !d->unsure && (!d->is_delivered || is_delivered(d));
}

static bool is_other_chain(const struct cr_delivery_digests *a, const struct cr_delivery_digests *b)
{
    return cr_streq(a->leaf, b->leaf) && !cr_streq(a->chain, b->chain);
}

/* Whether the leaf of a handshake shows which file was taken: not where the program may have had it with another chain,
 * which shows nowhere. */
static bool leaf_shows_all(const struct cr_delivery *d)
{
    bool unknown = d->is_delivered && !d->delivered.leaf[0] && d->found.leaf[0];
    return !unknown && !d->had_leaf && !is_other_chain(&d->delivered, &d->found);
}

/* What a look shows that found all new: that the program was notified, or that a trigger that has failed worked all the
 * same. One that has not worked may hide behind another, and nothing of the CAs may show. */
static bool is_enough(const struct cr_delivery *d, const struct cr_proof *proof)
{
    bool shows_all = leaf_shows_all(d) && (!d->found.trust[0] || proof->trust_seen);
    return may_have_it(d) || d->notified || (d->rules.proof_is_conclusive && shows_all);
}

static bool is_proven(const struct cr_delivery *d)
{
    return d->leaf_proven || d->trust_proven;
}

/* --- what happened --- */

void cr_delivery_changed(struct cr_delivery *d)
{
    if (d->phase == CR_PHASE_TRIGGER && d->trigger == 0)
        d->attempts--; /* none was pulled */
    go(d, CR_PHASE_READ);
}

static void find(struct cr_delivery *d, const struct cr_delivery_digests *found, struct cr_delivery_now now)
{
    d->unsure = d->unsure || d->owed; /* also when this is what was delivered last */
    d->had_leaf = d->unsure && is_other_chain(&d->found, found);
    d->found = *found;
    d->found_ms = now.wall_ms;
    d->found_at = now.monotonic_ms;
    d->state = CR_DELIVERY_PENDING;
    d->attempts = 0;
    d->failures = 0;
    d->notified = false;
    d->owed = false;
    d->leaf_proven = false;
    d->trust_proven = false;
    say(d, "");
}

void cr_delivery_read(struct cr_delivery *d, const struct cr_delivery_digests *found, struct cr_delivery_now now)
{
    d->refusals = 0;
    if (!d->found_ms || !cr_delivery_same(&d->found, found))
        find(d, found, now);
    else if (d->state == CR_DELIVERY_REFUSED)
        d->state = CR_DELIVERY_PENDING; /* what was there before is back */
    go(d, CR_PHASE_OUTPUT);
}

void cr_delivery_refuse(struct cr_delivery *d, const char *words, struct cr_delivery_now now)
{
    bool settling = ++d->refusals < CR_DELIVERY_SETTLE_READS;
    if (!settling) {
        d->state = CR_DELIVERY_REFUSED;
        say(d, words);
    }
    go(d, CR_PHASE_READ);
    d->not_before =
        now.monotonic_ms + (settling ? CR_DELIVERY_SETTLE_MS : backoff(d, d->refusals - CR_DELIVERY_SETTLE_READS + 1));
}

/* The material is in place; what does the program know of it? */
static void settle(struct cr_delivery *d, struct cr_delivery_now now)
{
    bool ask = d->rules.proof && !d->owed;
    if (may_have_it(d) && (!ask || (is_delivered(d) && is_proven(d))))
        deliver(d, now);
    else if (ask && d->notified && now.monotonic_ms < d->prove_until) /* the files were touched, and are the same */
        go(d, CR_PHASE_PROVE);
    else if (ask && (may_have_it(d) || d->failures)) /* what has failed may have worked all the same */
        begin_look(d, CR_PHASE_LOOK);
    else
        begin_triggers(d, now);
}

void cr_delivery_output(struct cr_delivery *d, bool changed, const char *failure, struct cr_delivery_now now)
{
    /* The program is notified of new material anyway. */
    if (changed && (!d->is_delivered || is_delivered(d))) {
        d->found_at = d->owed ? d->found_at : now.monotonic_ms;
        d->owed = true;
        d->state = d->state == CR_DELIVERY_DELIVERED ? CR_DELIVERY_PENDING : d->state;
    }
    if (failure) {
        fail(d, failure, now);
        return;
    }
    d->has_outputs = true;
    settle(d, now);
}

void cr_delivery_trigger(struct cr_delivery *d, const char *failure, struct cr_delivery_now now)
{
    if (failure)
        fail(d, failure, now);
    else if (++d->trigger < d->rules.triggers)
        go(d, CR_PHASE_TRIGGER);
    else
        finish_triggers(d, now);
}

static void look_again(struct cr_delivery *d, int64_t most_ms, struct cr_delivery_now now)
{
    d->not_before = now.monotonic_ms + d->look_ms;
    d->look_ms = d->look_ms * 2 < most_ms ? d->look_ms * 2 : most_ms;
}

/* Before the program was notified. */
static void look_first(struct cr_delivery *d, const struct cr_proof *proof, struct cr_delivery_now now)
{
    if (proof->verdict == CR_PROOF_UNKNOWN && may_have_it(d)) {
        if (d->state == CR_DELIVERY_PENDING)
            say(d, proof->words); /* it has not begun yet, and will read what is there */
        look_again(d, CR_DELIVERY_NOT_STARTED_MOST_MS, now);
    } else if (proof->verdict == CR_PROOF_NONE && may_have_it(d)) {
        deliver(d, now);
    } else {
        begin_triggers(d, now);
    }
}

static void follow_up(struct cr_delivery *d, const struct cr_proof *proof, struct cr_delivery_now now)
{
    if (proof->verdict == CR_PROOF_NONE)
        deliver(d, now);
    else if (now.monotonic_ms >= d->prove_until)
        fail(d, proof->words, now);
    else
        look_again(d, CR_DELIVERY_LOOK_MOST_MS, now);
}

void cr_delivery_look(struct cr_delivery *d, const struct cr_proof *proof, struct cr_delivery_now now)
{
    if (proof->served[0]) {
        memcpy(d->served, proof->served, sizeof d->served);
        d->served_ms = now.wall_ms;
    }
    if (proof->verdict == CR_PROOF_NEW && is_enough(d, proof)) {
        d->leaf_proven = d->found.leaf[0] != '\0';
        d->trust_proven = proof->trust_seen;
        deliver(d, now);
    } else if (d->phase == CR_PHASE_LOOK) {
        look_first(d, proof, now);
    } else {
        follow_up(d, proof, now);
    }
}
