#include "policy/controller/reservations.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "policy/rules/look_again.h"

_Static_assert((int)CR_RESERVATIONS_KEPT_MS > (int)CR_LOOK_AGAIN_MOST_MS,
               "a policy is planned again before it loses its places");

/* A namespace. Kept for good: its count of moves must not start again from 0. */
struct namespace_load {
    char *ns;
    TAILQ_HEAD(, slot) slots;
    int taken;
    int called; /* places that are kept for who was called */
    uint64_t moves;
};

/* A workload that is being restarted. */
struct slot {
    TAILQ_ENTRY(slot) link;
    struct namespace_load *load;
    char *key; /* "ns/kind/name" */
    char *kind;
    char *name;
    int claims;  /* policies that restart it */
    bool rolls;  /* a rollout was begun here */
    bool evicts; /* its pods are evicted from here */
    bool held;   /* it counts against the limit of all namespaces */
    int64_t since_ms;
};

/* What one policy has of a slot. */
struct claim {
    struct slot *slot;
    char *version;    /* of the workload, when the write was sent; NULL: it was found under way */
    bool unanswered;  /* that write */
    bool before;      /* it was under way already */
    int64_t taken_ms; /* monotonic, as below: when the write was sent */
    int64_t seen_ms;  /* last by a plan */
};

struct party { /* a policy */
    TAILQ_ENTRY(party) link;
    char *policy;
    struct namespace_load *load;
    struct claim *claims;
    size_t claims_len;
    bool expected; /* it is to be planned before anything begins */
    bool planned;
    bool in_line;
    bool called;
    int64_t called_ms;
};

struct cr_reservations {
    struct cr_reservations_options options;
    struct cr_metric *in_flight;
    pthread_mutex_t lock;      /* guards what is below */
    struct cr_strmap *loads;   /* by namespace */
    struct cr_strmap *slots;   /* by key */
    struct cr_strmap *parties; /* by policy */
    TAILQ_HEAD(, party) line;
    int called;
    int held; /* slots */
    size_t expected;
    bool expects;
    int64_t began_ms; /* with that */
    uint64_t moves;
};

static void load_free(void *value)
{
    struct namespace_load *load = value;
    free(load->ns);
    free(load);
}

static void slot_free(void *value)
{
    struct slot *slot = value;
    free(slot->key);
    free(slot->kind);
    free(slot->name);
    free(slot);
}

static void party_free(void *value)
{
    struct party *party = value;
    for (size_t i = 0; i < party->claims_len; i++)
        free(party->claims[i].version);
    free(party->claims);
    free(party->policy);
    free(party);
}

struct cr_reservations *cr_reservations_new(const struct cr_reservations_options *options)
{
    struct cr_reservations *all = cr_new(struct cr_reservations);
    all->options = *options;
    if (options->metrics)
        all->in_flight = cr_metrics_gauge(options->metrics, "certroll_restarts_in_flight",
                                          "Workloads that are being restarted.", CR_LABELS("namespace"));
    pthread_mutex_init(&all->lock, NULL);
    all->loads = cr_strmap_new(load_free);
    all->slots = cr_strmap_new(slot_free);
    all->parties = cr_strmap_new(party_free);
    TAILQ_INIT(&all->line);
    return all;
}

void cr_reservations_free(struct cr_reservations *all)
{
    if (!all)
        return;
    cr_strmap_free(all->parties);
    cr_strmap_free(all->slots);
    cr_strmap_free(all->loads);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* --- all below with the lock held, up to the interface --- */

static struct namespace_load *load_of(struct cr_reservations *all, const char *ns)
{
    struct namespace_load *load = cr_strmap_get(all->loads, ns);
    if (load)
        return load;
    load = cr_new(struct namespace_load);
    load->ns = cr_strdup(ns);
    TAILQ_INIT(&load->slots);
    cr_strmap_set(all->loads, ns, load);
    return load;
}

static struct party *party_of(struct cr_reservations *all, const char *policy)
{
    struct party *party = cr_strmap_get(all->parties, policy);
    if (party)
        return party;
    party = cr_new(struct party);
    party->policy = cr_strdup(policy);
    cr_strmap_set(all->parties, policy, party);
    return party;
}

static struct slot *find_slot(const struct cr_reservations *all, const char *ns, struct cr_reserved workload)
{
    if (!cr_strmap_len(all->slots))
        return NULL;
    cr_autofree char *key = cr_asprintf("%s/%s/%s", ns, workload.kind, workload.name);
    return cr_strmap_get(all->slots, key);
}

static struct claim *find_claim(const struct party *party, const struct slot *slot)
{
    for (size_t i = 0; party && slot && i < party->claims_len; i++)
        if (party->claims[i].slot == slot)
            return &party->claims[i];
    return NULL;
}

static void count(const struct cr_reservations *all, struct namespace_load *load, int more)
{
    load->taken += more;
    if (!all->in_flight)
        return;
    if (load->taken)
        cr_metric_set(all->in_flight, CR_LABELS(load->ns), load->taken);
    else
        cr_metric_remove(all->in_flight, CR_LABELS(load->ns));
}

static struct slot *add_slot(struct cr_reservations *all, struct namespace_load *load, struct cr_reserved workload,
                             int64_t now_ms)
{
    struct slot *slot = cr_new(struct slot);
    *slot = (struct slot){.load = load,
                          .key = cr_asprintf("%s/%s/%s", load->ns, workload.kind, workload.name),
                          .kind = cr_strdup(workload.kind),
                          .name = cr_strdup(workload.name),
                          .held = true,
                          .since_ms = now_ms};
    all->held++;
    cr_strmap_set(all->slots, slot->key, slot);
    TAILQ_INSERT_TAIL(&load->slots, slot, link);
    count(all, load, 1);
    return slot;
}

/* Taken, or seen to be under way. */
static struct claim *claim(struct cr_reservations *all, struct party *party, struct namespace_load *load,
                           struct cr_reserved workload, int64_t now_ms)
{
    struct slot *slot = find_slot(all, load->ns, workload);
    struct claim *known = find_claim(party, slot);
    if (known)
        return known;
    if (!slot)
        slot = add_slot(all, load, workload, now_ms);
    slot->claims++;
    party->claims = cr_reallocarray(party->claims, party->claims_len + 1, sizeof *party->claims);
    party->claims[party->claims_len] = (struct claim){.slot = slot};
    return &party->claims[party->claims_len++];
}

static void drop_claim(struct cr_reservations *all, struct party *party, struct claim *gone)
{
    struct slot *slot = gone->slot;
    bool unseen = slot->evicts || gone->unanswered;
    free(gone->version);
    *gone = party->claims[--party->claims_len];
    if (--slot->claims)
        return;
    all->held -= slot->held;
    TAILQ_REMOVE(&slot->load->slots, slot, link);
    count(all, slot->load, -1);
    if (unseen && all->options.on_unseen_end)
        all->options.on_unseen_end(all->options.arg, slot->load->ns);
    cr_strmap_remove(all->slots, slot->key);
}

/* --- limits --- */

static bool has_limits(const struct cr_reservations *all)
{
    return all->options.limits.per_namespace || all->options.limits.total;
}

static bool is_unknown(const struct cr_reservations *all)
{
    return has_limits(all) && (!all->expects || all->expected);
}

/* For a policy that has `own` of the places that are kept for called policies. */
static int free_in(const struct cr_reservations *all, const struct namespace_load *load, int own)
{
    return all->options.limits.per_namespace - load->taken - load->called + own;
}

static int free_in_all(const struct cr_reservations *all, int own)
{
    return all->options.limits.total - all->held - all->called + own;
}

static bool has_room_in_all(const struct cr_reservations *all, int own)
{
    return !is_unknown(all) && (!all->options.limits.total || free_in_all(all, own) > 0);
}

static bool has_room(const struct cr_reservations *all, const struct namespace_load *load, int own)
{
    return has_room_in_all(all, own) && (!all->options.limits.per_namespace || free_in(all, load, own) > 0);
}

/* --- the line --- */

static void step_out(struct cr_reservations *all, struct party *party)
{
    if (!party->in_line)
        return;
    TAILQ_REMOVE(&all->line, party, link);
    all->called -= party->called;
    party->load->called -= party->called;
    party->in_line = party->called = false;
}

/* The policy that waits longest in the namespace with the fewest places: a namespace that has a thousand in the line
 * keeps no other one waiting. NULL: none waits, or there is no room. */
static struct party *next_in_line(const struct cr_reservations *all)
{
    struct party *next = NULL;
    struct party *party;
    if (!has_room_in_all(all, 0))
        return NULL;
    TAILQ_FOREACH(party, &all->line, link)
    {
        const struct namespace_load *load = party->load;
        if (party->called || !has_room(all, load, 0))
            continue;
        if (!next || load->taken + load->called < next->load->taken + next->load->called)
            next = party;
    }
    return next;
}

/* As many as there is room for. */
static void call_next(struct cr_reservations *all, int64_t now_ms)
{
    for (struct party *party; (party = next_in_line(all));) {
        party->called = true;
        party->called_ms = now_ms;
        all->called++;
        party->load->called++;
        all->options.on_place(all->options.arg, party->policy);
    }
}

static void expect_no_more(struct cr_reservations *all, struct party *party)
{
    all->expected -= party->expected;
    party->expected = false;
}

/* --- the interface --- */

void cr_reservations_expect(struct cr_reservations *all, const struct cr_strvec *policies, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    if (!all->expects)
        all->began_ms = now_ms;
    for (size_t i = 0; !all->expects && i < policies->len; i++) {
        struct party *party = party_of(all, policies->items[i]);
        all->expected += !party->expected;
        party->expected = true;
    }
    all->expects = true;
    pthread_mutex_unlock(&all->lock);
}

bool cr_reservations_expects(struct cr_reservations *all)
{
    pthread_mutex_lock(&all->lock);
    bool expects = all->expects;
    pthread_mutex_unlock(&all->lock);
    return expects;
}

void cr_reservations_put_off(struct cr_reservations *all, const char *policy, const char *ns,
                             const struct cr_policy_status *status, bool soon, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = party_of(all, policy);
    for (size_t i = 0; !party->planned && i < status->consumers_len; i++) {
        const struct cr_consumer_status *consumer = &status->consumers[i];
        struct cr_reserved workload = {.kind = consumer->kind, .name = consumer->target};
        if (consumer->state == CR_CONSUMER_RESTARTING && workload.kind && workload.name &&
            !find_claim(party, find_slot(all, ns, workload)))
            claim(all, party, load_of(all, ns), workload, now_ms)->seen_ms = now_ms;
    }
    if (!soon || now_ms - all->began_ms >= CR_RESERVATIONS_EXPECTED_MS)
        expect_no_more(all, party);
    step_out(all, party);
    call_next(all, now_ms);
    pthread_mutex_unlock(&all->lock);
}

void cr_reservations_forget(struct cr_reservations *all, const char *policy, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = cr_strmap_get(all->parties, policy);
    if (party) {
        while (party->claims_len)
            drop_claim(all, party, &party->claims[party->claims_len - 1]);
        expect_no_more(all, party);
        step_out(all, party);
        cr_strmap_remove(all->parties, policy);
        call_next(all, now_ms);
    }
    pthread_mutex_unlock(&all->lock);
}

struct cr_world_limits cr_reservations_limits(struct cr_reservations *all, const char *policy, const char *ns)
{
    struct cr_world_limits limits = {.per_namespace = all->options.limits.per_namespace,
                                     .total = all->options.limits.total};
    pthread_mutex_lock(&all->lock);
    const struct party *party = cr_strmap_get(all->parties, policy);
    int own = party && party->called;
    limits.remembers = party && party->planned;
    limits.unknown = is_unknown(all);
    limits.namespace_free = free_in(all, load_of(all, ns), own);
    limits.total_free = free_in_all(all, own);
    pthread_mutex_unlock(&all->lock);
    return limits;
}

/* Whatever state the workload has now comes from that write or from another one: the write has been done, or never will
 * be. */
static bool is_open(const struct claim *claim, const char *version, int64_t now_ms)
{
    return claim->unanswered && cr_streq(claim->version, version) &&
           now_ms - claim->taken_ms < CR_RESERVATIONS_UNANSWERED_MS;
}

struct cr_world_claim cr_reservations_claim(struct cr_reservations *all, const char *policy, const char *ns,
                                            struct cr_reserved workload, const char *version, int64_t now_ms)
{
    struct cr_world_claim out = {0};
    pthread_mutex_lock(&all->lock);
    const struct slot *slot = find_slot(all, ns, workload);
    const struct claim *own = slot ? find_claim(cr_strmap_get(all->parties, policy), slot) : NULL;
    out.any = slot != NULL;
    out.ours = own != NULL;
    out.unanswered = own && is_open(own, version, now_ms);
    pthread_mutex_unlock(&all->lock);
    return out;
}

uint64_t cr_reservations_moves(struct cr_reservations *all, const char *ns)
{
    pthread_mutex_lock(&all->lock);
    uint64_t moves = load_of(all, ns)->moves;
    pthread_mutex_unlock(&all->lock);
    return moves;
}

void cr_reservations_list(struct cr_reservations *all, const char *ns, struct cr_strvec *kinds, struct cr_strvec *names,
                          struct cr_strvec *versions)
{
    pthread_mutex_lock(&all->lock);
    const struct namespace_load *load = load_of(all, ns);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(all->parties, &it);) {
        const struct party *party = it.value;
        for (size_t i = 0; i < party->claims_len; i++) {
            const struct claim *claim = &party->claims[i];
            if (claim->slot->load != load || !claim->slot->rolls || !claim->version)
                continue;
            cr_strvec_add(kinds, claim->slot->kind);
            cr_strvec_add(names, claim->slot->name);
            cr_strvec_add(versions, claim->version);
        }
    }
    pthread_mutex_unlock(&all->lock);
}

void cr_reservations_list_evicting(struct cr_reservations *all, const char *policy, const char *ns,
                                   struct cr_strvec *kinds, struct cr_strvec *names)
{
    pthread_mutex_lock(&all->lock);
    const struct namespace_load *load = load_of(all, ns);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(all->parties, &it);) {
        const struct party *party = it.value;
        for (size_t i = 0; i < party->claims_len && !cr_streq(party->policy, policy); i++) {
            const struct slot *slot = party->claims[i].slot;
            if (slot->load != load || !slot->evicts)
                continue;
            cr_strvec_add(kinds, slot->kind);
            cr_strvec_add(names, slot->name);
        }
    }
    pthread_mutex_unlock(&all->lock);
}

static bool lists(const struct cr_reserved *workloads, size_t len, const struct slot *slot)
{
    for (size_t i = 0; i < len; i++)
        if (cr_streq(workloads[i].name, slot->name) && cr_streq(workloads[i].kind, slot->kind))
            return true;
    return false;
}

void cr_reservations_follow(struct cr_reservations *all, const char *policy, const char *ns,
                            const struct cr_reserved *workloads, size_t len, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = party_of(all, policy);
    for (size_t i = 0; i < len; i++)
        claim(all, party, load_of(all, ns), workloads[i], now_ms)->seen_ms = now_ms;
    for (size_t i = party->claims_len; i-- > 0;)
        if (!lists(workloads, len, party->claims[i].slot))
            drop_claim(all, party, &party->claims[i]);
    expect_no_more(all, party);
    party->planned = true;
    call_next(all, now_ms);
    pthread_mutex_unlock(&all->lock);
}

bool cr_reservations_take(struct cr_reservations *all, const struct cr_reservation *what, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = party_of(all, what->policy);
    struct namespace_load *load = load_of(all, what->ns);
    bool had = find_slot(all, what->ns, what->workload);
    bool as_seen = *what->moves == load->moves;
    bool may = (as_seen || !what->under_budget) && (had || has_room(all, load, party->called));
    if (may) {
        if (!had)
            step_out(all, party);
        struct claim *mine = claim(all, party, load, what->workload, now_ms);
        mine->slot->rolls = mine->slot->rolls || !what->evicts;
        mine->slot->evicts = mine->slot->evicts || what->evicts;
        free(mine->version);
        *mine = (struct claim){.slot = mine->slot,
                               .version = cr_strdup_or_null(what->version),
                               .before = mine->seen_ms != 0,
                               .unanswered = true,
                               .taken_ms = now_ms,
                               .seen_ms = now_ms};
        load->moves = ++all->moves;
        if (as_seen)
            *what->moves = load->moves;
    }
    pthread_mutex_unlock(&all->lock);
    return may;
}

/* After a start, a plan found the place that the policy has; from now on its purpose is known. */
bool cr_reservations_may_evict(struct cr_reservations *all, const struct cr_reservation *what)
{
    pthread_mutex_lock(&all->lock);
    struct namespace_load *load = load_of(all, what->ns);
    struct claim *mine =
        find_claim(cr_strmap_get(all->parties, what->policy), find_slot(all, what->ns, what->workload));
    bool may = *what->moves == load->moves || !what->under_budget;
    if (may && mine)
        mine->slot->evicts = true;
    if (may && what->under_budget)
        *what->moves = load->moves = ++all->moves;
    pthread_mutex_unlock(&all->lock);
    return may;
}

void cr_reservations_answered(struct cr_reservations *all, const struct cr_reservation *what, bool accepted,
                              int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = party_of(all, what->policy);
    struct claim *mine = find_claim(party, find_slot(all, what->ns, what->workload));
    if (mine && (accepted || mine->before)) {
        mine->unanswered = false;
    } else if (mine) {
        drop_claim(all, party, mine);
        call_next(all, now_ms);
    }
    pthread_mutex_unlock(&all->lock);
}

void cr_reservations_wait(struct cr_reservations *all, const char *policy, const char *ns, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = party_of(all, policy);
    if (!party->in_line) {
        party->load = load_of(all, ns);
        party->in_line = true;
        TAILQ_INSERT_TAIL(&all->line, party, link);
    }
    call_next(all, now_ms);
    pthread_mutex_unlock(&all->lock);
}

void cr_reservations_leave(struct cr_reservations *all, const char *policy, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    struct party *party = cr_strmap_get(all->parties, policy);
    if (party && party->in_line) {
        step_out(all, party);
        call_next(all, now_ms);
    }
    pthread_mutex_unlock(&all->lock);
}

static void sweep(struct cr_reservations *all, struct party *party, int64_t now_ms)
{
    for (size_t i = party->claims_len; i-- > 0;)
        if (now_ms - party->claims[i].seen_ms > CR_RESERVATIONS_KEPT_MS)
            drop_claim(all, party, &party->claims[i]);
    if (party->called && now_ms - party->called_ms > CR_RESERVATIONS_CALLED_MS)
        step_out(all, party);
}

static void let_go(struct cr_reservations *all, struct slot *slot, int64_t now_ms)
{
    if (!slot->held || now_ms - slot->since_ms < CR_RESERVATIONS_HELD_MS)
        return;
    slot->held = false;
    all->held--;
}

void cr_reservations_sweep(struct cr_reservations *all, int64_t now_ms)
{
    pthread_mutex_lock(&all->lock);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(all->parties, &it);)
        sweep(all, it.value, now_ms);
    for (struct cr_strmap_iter it = {0}; cr_strmap_next(all->slots, &it);)
        let_go(all, it.value, now_ms);
    call_next(all, now_ms);
    pthread_mutex_unlock(&all->lock);
}
