/* Random worlds of a trust domain: pods that take up what is published when their kubelets come by, policies that say
 * so, lag, are suspended and lose their memory, CAs and sources that change in the middle of a change, objects that may
 * not be written or read for a while or are deleted, and an operator that is killed at any write. At every moment every
 * pod's leaf verifies against the bundle of every other; and when the world calms down, all is as wanted. The same
 * world with bundle and leaf in one write shows that this can fail. What the status claims is true of every pod at that
 * moment, also beside another writer, with caches that are old and a clock that is set back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "trust/rules/domain_plan.h"
#include "evidence/evidence.h"
#include "support/chance.h"

enum { LEAVES = 3, TARGETS = 2, OBJECTS = LEAVES + TARGETS, UNCOVERED = OBJECTS - 1, PODS = 3, CAS = 24 };
enum { GAMES = 100, MANY_GAMES = 3000, TROUBLE_STEPS = 50, CALM_STEPS = 600, REST_STEPS = 8 };
enum { SECOND = 1000, STEP_MS = 4 * SECOND, REFRESH_MS = 80 * SECOND, SLOW_MS = 300 * SECOND };
static const int64_t start_ms = 1800000000000;
static const int64_t year_ms = 365LL * 24 * 3600 * SECOND;

/* --- the model --- */

struct model_leaf {
    int id; /* 0: none */
    uint32_t verifies;
    int64_t not_before_ms;
};

struct content {
    uint32_t bundle;
    struct model_leaf leaf;
};

struct pod {
    struct content has;
    bool runs;
    int64_t refresh_ms; /* when its kubelet comes by, or it is restarted */
};

struct object {
    bool there;
    struct content now;
    uint64_t version;
    char token[16];
    struct model_leaf source, previous;
    struct content before; /* what another program puts back */
    bool is_put_back;      /* by that one */
    uint32_t source_cas;
    struct pod pods[PODS];
    bool slow; /* its pods take up nothing before they are restarted */
    bool refused, suspended;
    bool unread;                    /* it has more values than are read */
    struct cr_secret_status seen;   /* what its policy remembers */
    struct cr_policy_status cached; /* of that, as the operator has it */
    int issued[CAS];                /* how often, by which CA */
};

struct game {
    bool issue, cross_sign, naive, distrusts;
    bool has_other_writer; /* beside which handshakes may fail */
    bool is_stale;         /* the operator's view of policies */
    int64_t set_back_ms;   /* so far its clock is behind */
    struct cr_domain domain;
    struct cr_domain_leaf leaves[LEAVES];
    struct cr_domain_target targets[TARGETS];
    char uid[8], token[16], ca_secret[8];
    struct object objects[OBJECTS];
    struct cr_domain_status recorded; /* by the API server */
    struct cr_domain_status status;   /* as the operator has it */
    int current, next;                /* CAs, -1: none */
    char next_token[16];
    bool staging;
    int cas, leaf_ids;
    int64_t now_ms;
    uint64_t versions;
    int failures, reissues, tokens;
    int converged, distrusted, retired; /* how often the status has claimed that */
};

static void fingerprint_of(char kind, int id, char out[CR_SHA256_HEX])
{
    memset(out, '0', CR_SHA256_HEX - 1);
    out[CR_SHA256_HEX - 1] = '\0';
    out[0] = kind;
    out[1] = (char)('a' + id / 26 / 26 % 26);
    out[2] = (char)('a' + id / 26 % 26);
    out[3] = (char)('a' + id % 26);
}

static uint32_t bit(int ca)
{
    return (uint32_t)1 << ca;
}

static struct model_leaf leaf_by(struct game *g, uint32_t verifies)
{
    return (struct model_leaf){.id = ++g->leaf_ids, .verifies = verifies, .not_before_ms = g->now_ms};
}

/* The operator's. */
static int64_t clock_of(const struct game *g)
{
    return g->now_ms - g->set_back_ms;
}

static bool is_distrusted(const struct game *g, int ca)
{
    char fingerprint[CR_SHA256_HEX];
    fingerprint_of('a', ca, fingerprint);
    return cr_domain_distrusts(&g->domain, fingerprint);
}

/* --- the pods --- */

/* Every pod connects to every other. */
static void shake_hands(struct game *g)
{
    for (int a = 0; a < LEAVES * PODS; a++) {
        const struct pod *shows = &g->objects[a / PODS].pods[a % PODS];
        for (int b = 0; b < OBJECTS * PODS && shows->runs; b++) {
            const struct pod *verifies = &g->objects[b / PODS].pods[b % PODS];
            g->failures += verifies->runs && !(shows->has.leaf.verifies & verifies->has.bundle);
        }
    }
}

static void take_up(struct object *object, struct pod *pod, int64_t now_ms)
{
    pod->has = object->now;
    pod->runs = true;
    pod->refresh_ms = now_ms + 1 + draw(object->slow ? SLOW_MS : REFRESH_MS);
}

static void run_pods(struct game *g)
{
    for (int i = 0; i < OBJECTS; i++)
        for (int k = 0; k < PODS && g->objects[i].there; k++)
            if (g->objects[i].pods[k].refresh_ms <= g->now_ms || (i != UNCOVERED && one_in(200)))
                take_up(&g->objects[i], &g->objects[i].pods[k], g->now_ms);
}

/* --- the policies --- */

static void material_of(const struct content *content, struct cr_material *out)
{
    *out = (struct cr_material){.has_leaf = content->leaf.id != 0};
    if (content->leaf.id) {
        fingerprint_of('l', content->leaf.id, out->leaf);
        fingerprint_of('c', content->leaf.id, out->chain);
    }
    out->trust = cr_calloc((size_t)__builtin_popcount(content->bundle) + 1, sizeof *out->trust);
    for (int ca = 0; ca < CAS; ca++)
        if (content->bundle & bit(ca))
            fingerprint_of('a', ca, out->trust[out->trust_len++].fingerprint);
}

static bool has_same_trust(const struct cr_material *a, const struct cr_material *b)
{
    if (a->trust_len != b->trust_len)
        return false;
    for (size_t i = 0; i < a->trust_len; i++)
        if (strcmp(a->trust[i].fingerprint, b->trust[i].fingerprint) != 0)
            return false;
    return true;
}

static unsigned changes_of(const struct cr_material *a, const struct cr_material *b)
{
    return (strcmp(a->leaf, b->leaf) ? CR_CHANGE_LEAF_RENEWED : 0u) |
           (has_same_trust(a, b) ? 0u : CR_CHANGE_TRUST_ADDED | CR_CHANGE_TRUST_REMOVED);
}

static bool have_all(const struct object *object)
{
    for (int k = 0; k < PODS; k++)
        if (object->pods[k].has.bundle != object->now.bundle || object->pods[k].has.leaf.id != object->now.leaf.id)
            return false;
    return true;
}

static void forget_policy(struct object *object)
{
    struct cr_policy_status status = {.secrets = cr_new(struct cr_secret_status), .secrets_len = 1};
    status.secrets[0] = object->seen;
    cr_policy_status_dispose(&status);
    object->seen = (struct cr_secret_status){0};
}

static void observe(struct object *object)
{
    free(object->seen.observed_resource_version);
    object->seen.observed_resource_version = cr_asprintf("%llu", (unsigned long long)object->version);
}

static void see_change(struct object *object, const struct cr_material *now)
{
    struct cr_secret_status *seen = &object->seen;
    unsigned changes = changes_of(&seen->settled, now);
    if (seen->pending.set && !changes_of(&seen->pending.target, now))
        return;
    if (!seen->pending.set && !changes)
        return;
    if (seen->pending.set)
        changes |= changes_of(&seen->pending.target, now);
    cr_material_copy(&seen->pending.target, now);
    seen->pending.set = true;
    seen->pending.changes = changes;
    observe(object);
}

static void settle(struct game *g, struct object *object)
{
    struct cr_secret_status *seen = &object->seen;
    cr_material_copy(&seen->settled, &seen->pending.target);
    cr_material_dispose(&seen->pending.target);
    seen->pending = (struct cr_pending_change){0};
    seen->trust_by = seen->leaf_by = one_in(2) ? CR_SETTLED_INFERRED : CR_SETTLED_VERIFIED;
    seen->settled_ms = clock_of(g);
}

static void run_policy(struct game *g, struct object *object)
{
    CR_CLEANUP(cr_material) struct cr_material now = {0};
    /* A consumer that reads once is seen from the start: time does not show what it had before a first sight. */
    bool lags = one_in(3) && (object->seen.has_settled || !object->slow);
    if (g->is_stale && object->seen.name && one_in(2))
        cr_policy_status_copy(&object->cached, &(struct cr_policy_status){.secrets = &object->seen, .secrets_len = 1});
    if (!object->there || lags)
        return;
    material_of(&object->now, &now);
    if (!object->seen.name)
        object->seen.name = cr_strdup("s");
    if (!object->seen.has_settled) {
        cr_material_copy(&object->seen.settled, &now);
        object->seen.has_settled = true;
        object->seen.settled_ms = clock_of(g);
        observe(object);
        return;
    }
    see_change(object, &now);
    if (object->seen.pending.set && !object->suspended && have_all(object) &&
        !changes_of(&object->seen.pending.target, &now))
        settle(g, object);
}

/* --- the world as the plan sees it --- */

struct view {
    struct cr_domain_world world;
    struct cr_domain_ca cas[CAS];
    int ids[CAS]; /* of the model */
    struct cr_domain_object objects[OBJECTS];
    bool bundles[OBJECTS][CAS], verifies[OBJECTS * 3][CAS];
    struct cr_domain_evidence evidence[OBJECTS];
    char names[OBJECTS][4];
};

static bool is_unread(const struct object *object)
{
    return object->there && object->unread;
}

static uint32_t at_hand(const struct game *g)
{
    uint32_t all = 0;
    for (int i = 0; i < OBJECTS; i++) {
        if (is_unread(&g->objects[i]))
            continue;
        all |= g->objects[i].there ? g->objects[i].now.bundle : 0;
        all |= g->objects[i].source_cas | g->objects[i].source.verifies;
    }
    all |= g->current >= 0 ? bit(g->current) : 0;
    return all | (g->next >= 0 ? bit(g->next) : 0);
}

static uint32_t in_sources(const struct game *g)
{
    uint32_t all = 0;
    for (int i = 0; i < LEAVES; i++)
        if (!is_unread(&g->objects[i]))
            all |= g->objects[i].source_cas | g->objects[i].source.verifies;
    return all;
}

static size_t index_of(const struct view *v, int ca)
{
    for (size_t i = 0; i < v->world.cas_len; i++)
        if (v->ids[i] == ca)
            return i;
    return v->world.cas_len;
}

static void view_cas(const struct game *g, struct view *v)
{
    for (int ca = CAS - 1; ca >= 0; ca--) {
        if (!(at_hand(g) & bit(ca)))
            continue;
        struct cr_domain_ca *out = &v->cas[v->world.cas_len];
        fingerprint_of('a', ca, out->fingerprint);
        out->subject = "CA";
        out->root = true;
        out->in_source = in_sources(g) & bit(ca);
        out->not_before_ms = start_ms - SECOND + ca;
        out->not_after_ms = start_ms + 10 * year_ms;
        v->ids[v->world.cas_len++] = ca;
    }
}

static void spread(const struct view *v, uint32_t mask, bool *out)
{
    for (size_t i = 0; i < v->world.cas_len; i++)
        out[i] = mask & bit(v->ids[i]);
}

static void view_leaf(const struct view *v, const struct model_leaf *leaf, bool *verifies,
                      struct cr_domain_leaf_view *out)
{
    out->verifies = verifies;
    out->found = leaf->id != 0;
    if (!leaf->id)
        return;
    fingerprint_of('l', leaf->id, out->fingerprint);
    out->not_before_ms = leaf->not_before_ms;
    out->not_after_ms = leaf->not_before_ms + year_ms;
    spread(v, leaf->verifies, verifies);
}

static void judge(struct game *g, struct view *v, int i)
{
    struct object *object = &g->objects[i];
    const struct cr_domain_object_status *known =
        cr_domain_status_object(&g->status, v->objects[i].kind, "ns", v->names[i]);
    CR_CLEANUP(cr_material) struct cr_material material = {0};
    char policy_name[] = "p";
    const struct cr_policy policy = {.name = policy_name, .discover.enabled = true, .suspend = object->suspended};
    const struct cr_policy_status status = {.secrets = &object->seen, .secrets_len = object->seen.name ? 1 : 0};
    char secret[] = "s";
    const struct cr_covering_policy covering = {&policy, g->is_stale ? &object->cached : &status};
    material_of(&object->now, &material);
    cr_domain_evidence_judge(
        &(struct cr_domain_evidence_input){.secret = i == UNCOVERED ? NULL : secret,
                                           .material = &material,
                                           .written_version = known ? known->written_version : NULL,
                                           .written_ms = known ? known->written_ms : 0,
                                           .covering = &covering,
                                           .covering_len = i == UNCOVERED ? 0 : 1,
                                           .uncovered = CR_UNCOVERED_DELAY,
                                           .now_ms = clock_of(g)},
        &v->evidence[i]);
    v->objects[i].evidence = &v->evidence[i];
}

static void look_for_other_writer(struct game *g, struct view *v, int i)
{
    struct cr_domain_object *out = &v->objects[i];
    const struct cr_domain_object_status *known = cr_domain_status_object(&g->status, out->kind, out->ns, out->name);
    if (!known || !g->objects[i].there)
        return;
    if (g->objects[i].is_put_back && !cr_domain_is_as_recorded(&v->world, out, known))
        out->changed_by = "gitops";
    if (out->is_leaf && !out->refused && cr_domain_other_writer_until_ms(&v->world, known))
        out->refused = CR_TRUST_OTHER_WRITER;
}

/* Only its name is known, and what is kept of it in staging. */
static void view_unread(const struct object *object, struct view *v, int i)
{
    struct cr_domain_object *out = &v->objects[i];
    out->found = false;
    out->refused = CR_TRUST_CANNOT_READ;
    out->issued_for = out->token = NULL;
    view_leaf(v, &(struct model_leaf){0}, v->verifies[3 * i], &out->published);
    view_leaf(v, &(struct model_leaf){0}, v->verifies[3 * i + 1], &out->source);
    view_leaf(v, &object->previous, v->verifies[3 * i + 2], &out->previous);
}

static void view_object(struct game *g, struct view *v, int i)
{
    struct object *object = &g->objects[i];
    struct cr_domain_object *out = &v->objects[i];
    snprintf(v->names[i], sizeof v->names[i], "o%d", i);
    *out = (struct cr_domain_object){.kind = i == UNCOVERED ? "ConfigMap" : "Secret",
                                     .ns = "ns",
                                     .name = v->names[i],
                                     .is_leaf = i < LEAVES,
                                     .spec = (size_t)(i < LEAVES ? i : i - LEAVES),
                                     .found = object->there,
                                     .refused = object->refused ? CR_TRUST_FORBIDDEN : CR_TRUST_FINE,
                                     .refused_text = "for a while",
                                     .bundle = v->bundles[i],
                                     .issued_for = object->is_put_back ? NULL : "spec",
                                     .wanted_for = "spec",
                                     .token = object->is_put_back ? NULL : object->token};
    if (is_unread(object)) {
        view_unread(object, v, i);
        return;
    }
    spread(v, object->there ? object->now.bundle : 0, v->bundles[i]);
    view_leaf(v, &object->now.leaf, v->verifies[3 * i], &out->published);
    view_leaf(v, &object->source, v->verifies[3 * i + 1], &out->source);
    view_leaf(v, &object->previous, v->verifies[3 * i + 2], &out->previous);
    if (object->there)
        judge(g, v, i);
    look_for_other_writer(g, v, i);
}

static void view_authority(const struct game *g, struct view *v)
{
    struct cr_domain_authority_view *out = &v->world.authority;
    out->current = g->current >= 0 ? CR_DOMAIN_CA_USABLE : CR_DOMAIN_CA_ABSENT;
    out->next = g->next >= 0 ? CR_DOMAIN_CA_USABLE : CR_DOMAIN_CA_ABSENT;
    out->current_ca = index_of(v, g->current);
    out->next_ca = index_of(v, g->next);
    out->next_token = g->next_token;
}

static void look(struct game *g, struct view *v)
{
    memset(v, 0, sizeof *v);
    v->world.domain = &g->domain;
    v->world.status = &g->status;
    v->world.cas = v->cas;
    v->world.now_ms = clock_of(g);
    view_cas(g, v);
    for (int i = 0; i < OBJECTS; i++)
        view_object(g, v, i);
    view_authority(g, v);
    v->world.objects = v->objects;
    v->world.objects_len = OBJECTS;
    v->world.staging_found = g->staging;
}

static void forget_view(struct view *v)
{
    for (int i = 0; i < OBJECTS; i++)
        cr_domain_evidence_dispose(&v->evidence[i]);
}

/* --- the operator --- */

static bool trouble; /* things go wrong */

static bool is_killed(void)
{
    return trouble && one_in(12);
}

static void put_leaf(struct game *g, const struct view *v, const struct cr_domain_write *write)
{
    struct object *object = &g->objects[write->object];
    if (write->save_previous) {
        object->previous = object->now.leaf;
        g->staging = true;
    }
    switch (write->leaf) {
    case CR_LEAF_ACT_MIRROR:
        object->now.leaf = object->source;
        break;
    case CR_LEAF_ACT_ISSUE:
        object->now.leaf = leaf_by(g, bit(v->ids[write->issuer]) | (write->cross_signed ? bit(g->current) : 0));
        object->issued[v->ids[write->issuer]]++;
        break;
    case CR_LEAF_ACT_PUT_BACK:
        object->now.leaf = object->previous;
        break;
    case CR_LEAF_ACT_KEEP:
        return;
    }
    snprintf(object->token, sizeof object->token, "%s", g->token);
}

static void publish(struct game *g, const struct view *v, const struct cr_domain_write *write)
{
    struct object *object = &g->objects[write->object];
    assert_false(object->refused || is_unread(object));
    if (object->there && write->leaf != CR_LEAF_ACT_KEEP)
        object->before = object->now;
    object->is_put_back = object->is_put_back && write->leaf == CR_LEAF_ACT_KEEP;
    object->now.bundle = 0;
    for (size_t ca = 0; ca < v->world.cas_len; ca++)
        object->now.bundle |= write->bundle[ca] ? bit(v->ids[ca]) : 0;
    assert_true(object->now.bundle != 0);
    put_leaf(g, v, write);
    object->version = ++g->versions;
    for (int k = 0; k < PODS; k++)
        if (!object->pods[k].runs)
            take_up(object, &object->pods[k], g->now_ms);
    object->there = true;
    if (object->slow && !object->seen.has_settled)
        run_policy(g, object);
    struct cr_domain_object_status *record =
        cr_domain_status_object_add(&g->status, v->objects[write->object].kind, "ns", v->names[write->object]);
    free(record->written_version);
    record->written_version = cr_asprintf("%llu", (unsigned long long)object->version);
    record->written_ms = clock_of(g);
    shake_hands(g);
}

static void end_staging(struct game *g)
{
    g->staging = false;
    g->next = -1;
    g->next_token[0] = '\0';
    for (int i = 0; i < OBJECTS; i++)
        g->objects[i].previous = (struct model_leaf){0};
}

static int new_ca(struct game *g)
{
    assert_true(g->cas < CAS);
    return g->cas++;
}

/* False: killed. */
static bool act(struct game *g, const struct view *v, const struct cr_domain_plan *plan)
{
    if (is_killed())
        return false;
    if (plan->first_ca) {
        assert_true(g->current < 0);
        g->current = new_ca(g);
        return true;
    }
    if (plan->stage_next_ca) {
        assert_true(g->next < 0 || is_distrusted(g, g->next));
        g->next = new_ca(g);
        g->staging = true;
        if (g->domain.rotate == CR_ROTATE_CA)
            snprintf(g->next_token, sizeof g->next_token, "%s", g->token);
        return true;
    }
    for (size_t i = 0; i < plan->writes_len; i++) {
        if (trouble && one_in(15))
            continue; /* this one fails, the others go on */
        publish(g, v, &plan->writes[i]);
        if (is_killed())
            return false;
    }
    if (plan->writes_len)
        return true;
    if (plan->promote_ca) {
        g->current = g->next;
        if (is_killed())
            return false;
        end_staging(g);
    } else if (plan->delete_staging) {
        end_staging(g);
    }
    return true;
}

static bool claims(const struct cr_domain_status *status, const char *type, bool value)
{
    const struct cr_condition *condition = cr_domain_status_condition_get(status, type);
    return condition && condition->reason && condition->status == value;
}

/* What the status says of all pods, each of them bears out at this moment. */
static void expect_true(struct game *g, const struct cr_domain_status *status)
{
    bool converged = claims(status, "Converged", true);
    bool distrusted = claims(status, "Distrusted", true);
    bool retired = claims(status, "RetirementPending", false);
    g->converged += converged;
    g->distrusted += distrusted;
    g->retired += retired;
    for (int i = 0; i < OBJECTS * PODS; i++) {
        const struct object *object = &g->objects[i / PODS];
        const struct pod *pod = &object->pods[i % PODS];
        if (!pod->runs)
            continue;
        if (converged &&
            (!object->there || pod->has.bundle != object->now.bundle || pod->has.leaf.id != object->now.leaf.id))
            fail_msg("Converged is True, and a pod of object %d has something else: %s", i / PODS,
                     cr_domain_status_condition_get(status, "Converged")->message);
        if (retired && (pod->has.bundle & ~object->now.bundle))
            fail_msg("nothing is to be retired, and a pod of object %d trusts what is published no more", i / PODS);
        for (int ca = 0; ca < g->cas && distrusted; ca++)
            if (is_distrusted(g, ca) && (pod->has.bundle & bit(ca)))
                fail_msg("Distrusted is True, and a pod of object %d trusts CA %d", i / PODS, ca);
    }
}

static void record(struct game *g, const struct cr_domain_status *status)
{
    expect_true(g, status);
    cr_domain_status_copy(&g->recorded, status);
    cr_domain_status_copy(&g->status, status);
}

/* Answers whether it has anything more to do at once. */
static bool reconcile_once(struct game *g, bool *killed)
{
    struct view v;
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    look(g, &v);
    cr_domain_plan_make(&v.world, &plan);
    bool acts = plan.first_ca || plan.stage_next_ca || plan.writes_len || plan.promote_ca || plan.delete_staging;
    *killed = is_killed();
    if (!*killed && plan.record_first)
        record(g, &plan.status);
    else if (!*killed && acts)
        *killed = !act(g, &v, &plan);
    else if (!*killed)
        record(g, &plan.status);
    forget_view(&v);
    return !*killed && (plan.record_first || acts);
}

static void reconcile(struct game *g)
{
    bool killed = false;
    for (int round = 0; round < 30; round++) {
        if (reconcile_once(g, &killed))
            continue;
        if (killed)
            cr_domain_status_copy(&g->status, &g->recorded);
        return;
    }
    if (!trouble)
        fail_msg("the operator finds no rest");
}

/* What many do: the new bundle and the new leaf in one write, everywhere. */
static void reconcile_naively(struct game *g)
{
    int ca = g->issue ? g->cas - 1 : -1;
    if (g->issue && (ca < 0 || !g->objects[0].there))
        ca = new_ca(g);
    for (int i = 0; i < OBJECTS; i++) {
        struct object *object = &g->objects[i];
        uint32_t newest = g->issue ? bit(ca) : in_sources(g);
        if (object->there && (object->now.bundle & newest) == newest)
            continue;
        object->now.bundle |= newest;
        if (i < LEAVES)
            object->now.leaf = g->issue ? leaf_by(g, newest) : object->source;
        for (int k = 0; k < PODS && !object->there; k++)
            take_up(object, &object->pods[k], g->now_ms);
        object->there = true;
    }
    shake_hands(g);
}

/* --- what happens --- */

static void ask(struct game *g, enum cr_rotate_what what)
{
    snprintf(g->token, sizeof g->token, "t%d", ++g->tokens);
    g->domain.rotate_token = g->token;
    g->domain.rotate = what;
    g->reissues += what != CR_ROTATE_CA;
}

/* As cert-manager does: another CA, and each certificate renewed when its time comes. */
static void change_sources(struct game *g, int ca, bool all)
{
    for (int i = 0; i < LEAVES; i++) {
        if (!all && !one_in(2))
            continue;
        g->objects[i].source = leaf_by(g, bit(ca));
        g->objects[i].source_cas = bit(ca);
    }
}

static void change_ca(struct game *g)
{
    if (g->cas + 4 >= CAS)
        return;
    if (g->naive && g->issue)
        (void)new_ca(g);
    else if (g->issue)
        ask(g, CR_ROTATE_CA);
    else
        change_sources(g, new_ca(g), false);
}

/* Any CA but a source's newest, which nothing would replace. */
static void distrust(struct game *g)
{
    int most = g->issue ? g->cas : g->cas - 1;
    if (!g->distrusts || most < 1 || g->cas + 4 >= CAS || g->domain.distrust.len == CR_DOMAIN_DISTRUST_MAX)
        return;
    char fingerprint[CR_SHA256_HEX];
    fingerprint_of('a', g->issue && g->current >= 0 && one_in(2) ? g->current : (int)draw((uint64_t)most), fingerprint);
    cr_strvec_add_unique(&g->domain.distrust, fingerprint);
}

/* Deleted by a person; pods keep what they have read. Nothing could make another leaf that all of them trust. */
static void take_away(struct object *object)
{
    object->there = false;
    object->now = (struct content){0};
}

/* Before that, what cannot be read may never have been the domain's, and nothing waits for it. */
static bool is_recorded(struct game *g, int i)
{
    char name[4];
    snprintf(name, sizeof name, "o%d", i);
    const struct cr_domain_object_status *record =
        cr_domain_status_object(&g->recorded, i == UNCOVERED ? "ConfigMap" : "Secret", "ns", name);
    return record && *record->trust;
}

/* A program that knows what it has put there once, and puts it back. */
static void put_back(struct game *g, struct object *object)
{
    if (!object->there || !object->before.leaf.id)
        return;
    object->now = object->before;
    object->is_put_back = true;
    object->version = ++g->versions;
}

static void stir(struct game *g)
{
    struct object *object = &g->objects[draw(OBJECTS)];
    switch (draw(32)) {
    case 0:
    case 1:
    case 9:
    case 10:
        change_ca(g);
        break;
    case 2:
        if (!g->issue)
            change_sources(g, g->cas - 1, false);
        else if (!g->naive)
            ask(g, CR_ROTATE_LEAVES);
        break;
    case 3:
        if (!g->naive)
            ask(g, CR_ROTATE_PREVIOUS_LEAVES);
        break;
    case 4:
    case 5:
        object->refused = !object->refused;
        break;
    case 6:
    case 7:
        object->suspended = !object->suspended;
        break;
    case 8:
        if (!object->slow &&
            !object->suspended) /* time proves nothing of a consumer that takes longer than a kubelet */
            forget_policy(object);
        break;
    case 11: /* back to the CA before */
        if (!g->issue && g->cas > 1)
            change_sources(g, g->cas - 2, true);
        break;
    case 12:
        if (!g->naive && object >= g->objects + LEAVES)
            take_away(object);
        break;
    case 13:
        distrust(g);
        break;
    case 14:
        if (!g->naive && is_recorded(g, (int)(object - g->objects)))
            object->unread = !object->unread;
        break;
    default:
        break;
    }
}

static void calm_down(struct game *g)
{
    trouble = false;
    for (int i = 0; i < OBJECTS; i++)
        g->objects[i].refused = g->objects[i].suspended = g->objects[i].unread = false;
    if (!g->issue)
        change_sources(g, g->cas - 1, true);
    if (g->domain.rotate == CR_ROTATE_PREVIOUS_LEAVES)
        ask(g, g->issue ? CR_ROTATE_CA : CR_ROTATE_LEAVES);
}

/* --- the game --- */

static void setup(struct game *g, bool naive)
{
    *g = (struct game){.issue = one_in(2), .naive = naive, .current = -1, .next = -1, .now_ms = start_ms};
    strcpy(g->uid, "uid");
    strcpy(g->ca_secret, "ca");
    g->domain = (struct cr_domain){
        .uid = g->uid,
        .authority = g->issue ? CR_AUTHORITY_ISSUE : CR_AUTHORITY_EXTERNAL,
        .ca = {.ca_secret = g->ca_secret, .life = {.duration_ms = 10 * year_ms}, .cross_sign = one_in(3)},
        .leaves = g->leaves,
        .leaves_len = LEAVES,
        .targets = g->targets,
        .targets_len = TARGETS,
        .retain_previous = (int)draw(2),
        .retire = (enum cr_retire)draw(3),
        .evidence = {.stage_deadline_ms = 120 * SECOND + (int64_t)draw(3600) * SECOND},
        .generation = 1};
    for (int i = 0; i < LEAVES; i++) {
        static char names[LEAVES][4] = {"l0", "l1", "l2"};
        g->leaves[i] = (struct cr_domain_leaf){.name = names[i],
                                               .source = g->issue ? CR_LEAF_ISSUE : CR_LEAF_MIRROR,
                                               .mirror = names[i],
                                               .life = {.duration_ms = year_ms}};
    }
    g->targets[UNCOVERED - LEAVES].kind = CR_TARGET_CONFIGMAP;
    g->targets[0].kind = CR_TARGET_SECRET;
    for (int i = 0; i < OBJECTS; i++)
        g->objects[i].slow = i != UNCOVERED && one_in(3);
    if (!g->issue)
        change_sources(g, new_ca(g), true);
    g->distrusts = !naive && one_in(2);
    if (g->distrusts) /* past it leaves may be lost */
        g->domain.evidence.stage_deadline_ms = INT64_C(168) * 3600 * SECOND;
}

static void step(struct game *g)
{
    g->now_ms += 1 + draw(2 * STEP_MS);
    if (g->is_stale && one_in(40))
        g->set_back_ms += draw(60 * SECOND);
    if (trouble && g->has_other_writer && one_in(5))
        put_back(g, &g->objects[draw(LEAVES)]);
    run_pods(g);
    shake_hands(g);
    for (int i = 0; i < UNCOVERED; i++)
        run_policy(g, &g->objects[i]);
    if (g->naive)
        reconcile_naively(g);
    else if (!one_in(3))
        reconcile(g);
}

static void play(struct game *g)
{
    trouble = true;
    for (int i = 0; i < TROUBLE_STEPS; i++) {
        stir(g);
        step(g);
    }
    calm_down(g);
    int rest = 0;
    for (int i = 0; i < CALM_STEPS && rest < REST_STEPS && !g->naive; i++) {
        step(g);
        rest = g->recorded.stage == CR_STAGE_IDLE && !g->staging ? rest + 1 : 0;
    }
}

static void expect_end(const struct game *g, uint64_t game)
{
    const struct cr_domain_status *status = &g->recorded;
    if (status->stage != CR_STAGE_IDLE || g->staging || g->next >= 0)
        fail_msg("game %llu ends in stage %s, staging %d: %s", (unsigned long long)game, cr_stage_name(status->stage),
                 g->staging, cr_or_empty(status->conditions[1].message));
    for (int i = 0; i < OBJECTS; i++) {
        const struct object *object = &g->objects[i];
        uint32_t wanted = g->issue ? bit(g->current) : bit(g->cas - 1);
        if (!object->there || (object->now.bundle & wanted) != wanted)
            fail_msg("game %llu: object %d lacks the newest CA", (unsigned long long)game, i);
        if (i < LEAVES && !(object->now.leaf.verifies & wanted))
            fail_msg("game %llu: leaf %d is not of the newest CA", (unsigned long long)game, i);
        if (i < LEAVES && !g->issue && object->now.leaf.id != object->source.id)
            fail_msg("game %llu: leaf %d is not that of its source", (unsigned long long)game, i);
        if (g->domain.retire == CR_RETIRE_CONVERGED && object->now.bundle != wanted)
            fail_msg("game %llu: object %d keeps more than the newest CA", (unsigned long long)game, i);
    }
}

/* Those that were ever there, at least; nothing is claimed of the others. */
static void expect_no_distrusted(const struct game *g, uint64_t game)
{
    for (size_t i = 0; i < g->recorded.distrusted_len; i++)
        if (!g->recorded.distrusted[i].gone_ms)
            fail_msg("game %llu: %s is not gone", (unsigned long long)game, g->recorded.distrusted[i].fingerprint);
    for (int ca = 0; ca < g->cas; ca++)
        for (int i = 0; i < OBJECTS * PODS && is_distrusted(g, ca); i++)
            if (g->objects[i / PODS].pods[i % PODS].runs && (g->objects[i / PODS].pods[i % PODS].has.bundle & bit(ca)))
                fail_msg("game %llu: a pod trusts CA %d", (unsigned long long)game, ca);
}

/* Each CA issues each leaf once, but for what a person asks for. */
static void expect_no_repetition(const struct game *g, uint64_t game)
{
    for (int i = 0; i < LEAVES; i++)
        for (int ca = 0; ca < CAS; ca++)
            if (g->objects[i].issued[ca] > 1 + g->reissues)
                fail_msg("game %llu: CA %d has issued leaf %d %d times", (unsigned long long)game, ca, i,
                         g->objects[i].issued[ca]);
}

static void teardown(struct game *g)
{
    cr_domain_status_dispose(&g->recorded);
    cr_domain_status_dispose(&g->status);
    cr_strvec_dispose(&g->domain.distrust);
    for (int i = 0; i < OBJECTS; i++) {
        cr_policy_status_dispose(&g->objects[i].cached);
        forget_policy(&g->objects[i]);
    }
}

static void seed_for(int game)
{
    seed = 88172645463325252ULL + (uint64_t)game * 2654435761ULL;
    for (int warm = 0; warm < 8; warm++)
        (void)draw(2);
}

static int play_all(bool naive, int games)
{
    int lost = 0;
    for (int i = 0; i < games; i++) {
        struct game g;
        seed_for(i);
        setup(&g, naive);
        play(&g);
        lost += g.failures > 0;
        if (!naive && g.failures)
            fail_msg("game %d: %d failed handshakes", i, g.failures);
        if (!naive) {
            expect_end(&g, (uint64_t)i);
            expect_no_repetition(&g, (uint64_t)i);
            expect_no_distrusted(&g, (uint64_t)i);
        }
        teardown(&g);
    }
    return lost;
}

static void no_handshake_fails_and_all_ends_as_wanted(void **state)
{
    (void)state;
    (void)play_all(false, getenv("CERTROLL_LONG") ? MANY_GAMES : GAMES);
}

static void no_summary_is_false(void **state)
{
    (void)state;
    int games = getenv("CERTROLL_LONG") ? MANY_GAMES / 3 : GAMES;
    int converged = 0;
    int distrusted = 0;
    int retired = 0;
    for (int i = 0; i < games; i++) {
        struct game g;
        seed_for(i);
        setup(&g, false);
        g.is_stale = one_in(2);
        g.has_other_writer = !g.is_stale || one_in(2);
        play(&g);
        converged += g.converged > 0;
        distrusted += g.distrusted > 0;
        retired += g.retired > 0;
        teardown(&g);
    }
    print_message("of %d games: Converged in %d, Distrusted in %d, nothing to retire in %d\n", games, converged,
                  distrusted, retired);
    assert_true(converged > games / 2 && distrusted > games / 10 && retired > games / 8);
}

static void bundle_and_leaf_in_one_write_fail_in_the_same_games(void **state)
{
    (void)state;
    assert_true(play_all(true, 20) > 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_handshake_fails_and_all_ends_as_wanted),
        cmocka_unit_test(no_summary_is_false),
        cmocka_unit_test(bundle_and_leaf_in_one_write_fail_in_the_same_games),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
