/* A program that reads again only when its pod's certroll-sidecar notifies it: what the sidecar's page shows, and what
 * becomes of it. */
#include "support/scene.h"

#include "evidence/diff.h"
#include "evidence/evidence.h"

/* One Deployment with one Secret and two pods: nginx, and its certroll-sidecar. */

static const char notified[] = "{name: web, image: 'nginx:1.27.4', volumeMounts: [{name: certs, mountPath: /certs}]}, "
                               "{name: sidecar, image: r, ports: [{name: certroll-reload, containerPort: 9950}], "
                               "volumeMounts: [{name: certs, mountPath: /certs}]}";
static const char alone[] = "{name: web, image: 'nginx:1.27.4', volumeMounts: [{name: certs, mountPath: /certs}]}";

enum { DELAY = 30 * SECOND, DEADLINE = CR_KUBELET_REFRESH_MS + DELAY };

static const char notified_of_two[] =
    "{name: web, image: 'nginx:1.27.4', volumeMounts: [{name: certs, mountPath: /certs}, {name: clients, mountPath: "
    "/clients}]}, {name: sidecar, image: r, ports: [{name: certroll-reload, containerPort: 9950}], volumeMounts: "
    "[{name: certs, mountPath: /certs}, {name: clients, mountPath: /clients}]}";

struct fixture {
    struct scene *s;
    struct cr_material clients; /* of a second Secret, with CAs alone */
    struct cr_world_secret both[2];
    struct cr_sidecar_sighting pages[SCENE_PODS];
    struct cr_trust_sighting trust[SCENE_PODS];
};

static void fixture_close(struct fixture *t)
{
    for (size_t i = 0; i < SCENE_PODS; i++) {
        cr_sidecar_sighting_dispose(&t->pages[i]);
        cr_trust_sighting_dispose(&t->trust[i]);
    }
    cr_material_dispose(&t->clients);
    scene_free(t->s);
}

#define FIXTURE __attribute__((cleanup(fixture_close))) struct fixture

/* --- material: words stand for leaves and CAs --- */

static void set_trust(struct cr_material *m, const char *cas)
{
    free(m->trust);
    m->trust = NULL;
    m->trust_len = 0;
    cr_strvec_dispose(&m->anchors);
    cr_autofree char *copy = cr_strdup(cas);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) && *word;) {
        struct cr_ca ca = {.not_after_ms = SCENE_START * 2LL};
        cr_sha256_hex(word, strlen(word), ca.fingerprint);
        memcpy(ca.identity, ca.fingerprint, sizeof ca.identity);
        memcpy(ca.subject, ca.fingerprint, sizeof ca.subject);
        snprintf(ca.serial, sizeof ca.serial, "%.32s", ca.fingerprint);
        m->trust = cr_reallocarray(m->trust, m->trust_len + 1, sizeof *m->trust);
        m->trust[m->trust_len++] = ca;
        cr_strvec_add(&m->anchors, ca.identity);
    }
}

static void hold(struct fixture *t, const char *leaf, const char *cas)
{
    static char versions[64][24];
    static unsigned written;
    scene_material(t->s, leaf);
    set_trust(&t->s->material, cas);
    snprintf(versions[written % 64], sizeof versions[0], "%u", 1000 + written);
    t->s->secret.resource_version = versions[written++ % 64];
}

static void trust_digest(const char *cas, char out[CR_SHA256_HEX])
{
    CR_CLEANUP(cr_material) struct cr_material m = {0};
    set_trust(&m, cas);
    cr_material_trust_digest(&m, out);
}

/* --- the fixture --- */

static void fit_out(struct fixture *t, const char *containers)
{
    cr_autofree char *text =
        cr_asprintf("containers: [%s]\nvolumes: [{name: certs, secret: {secretName: web}}, {name: clients, "
                    "secret: {secretName: clients}}]\n",
                    containers);
    cr_json_set(cr_json_edit(cr_json_edit(t->s->workloads[0], "spec"), "template"), "spec", test_yaml(text));
}

static void decree(struct fixture *t, const char *secrets, const char *verify)
{
    cr_autofree char *text =
        cr_asprintf("metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
                    "spec:\n"
                    "  secrets: [%s]\n"
                    "  restart: {coalesce: 0s}\n"
                    "  consumers: [{name: web, targetRef: {kind: Deployment, name: web}%s%s}]\n",
                    secrets, verify ? ", verify: " : "", cr_or_empty(verify));
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(text);
    cr_policy_free(t->s->policy);
    t->s->policy = cr_policy_decode(policy, &err);
    if (!t->s->policy)
        fail_msg("%s", err.text);
}

static void open_fixture(struct fixture *t, const char *containers, const char *verify)
{
    *t = (struct fixture){.s = scene_new("{coalesce: 0s}", 1)};
    decree(t, "{name: web}", verify);
    scene_workload(t->s, 0, 2, "");
    fit_out(t, containers);
    for (size_t i = 0; i < SCENE_PODS; i++) {
        t->s->pods[0][i].sidecar = &t->pages[i];
        t->s->pods[0][i].trust = verify ? &t->trust[i] : NULL;
    }
    hold(t, "old", "ca");
}

/* At rest for a minute, then the Secret holds this. */
static const struct cr_plan *change(struct fixture *t, const char *leaf, const char *cas)
{
    scene_due(t->s);
    scene_record(t->s);
    t->s->now_ms += 60 * SECOND;
    hold(t, leaf, cas);
    return scene_due(t->s);
}

static const struct cr_plan *after(struct fixture *t, int64_t ms)
{
    scene_record(t->s);
    t->s->now_ms += ms;
    return scene_due(t->s);
}

/* --- what a page says --- */

/* Words for leaves and CAs; NULL: no such part. */
struct said {
    enum cr_sidecar_state state;
    const char *found_leaf, *found_trust, *delivered_leaf, *delivered_trust, *served;
    bool leaf_proven, trust_proven;
    const char *words;
};

static void leaf_digest(const char *word, char out[CR_SHA256_HEX])
{
    out[0] = '\0';
    if (word)
        cr_sha256_hex(word, strlen(word), out);
}

static void see(struct fixture *t, size_t pod, const struct said *said)
{
    struct cr_sidecar_sighting *page = &t->pages[pod];
    cr_sidecar_sighting_dispose(page);
    *page = (struct cr_sidecar_sighting){
        .at_ms = t->s->now_ms, .read = true, .entries = cr_new(struct cr_sidecar_entry), .len = 1};
    struct cr_sidecar_entry *entry = page->entries;
    *entry = (struct cr_sidecar_entry){
        .name = "web", .state = said->state, .leaf_proven = said->leaf_proven, .trust_proven = said->trust_proven};
    leaf_digest(said->found_leaf, entry->found_leaf);
    leaf_digest(said->delivered_leaf, entry->delivered_leaf);
    leaf_digest(said->served, entry->served_leaf);
    trust_digest(cr_or_empty(said->found_trust), entry->found_trust);
    trust_digest(cr_or_empty(said->delivered_trust), entry->delivered_trust);
    snprintf(entry->words, sizeof entry->words, "%s", cr_or_empty(said->words));
}

static void see_all(struct fixture *t, const struct said *said)
{
    see(t, 0, said);
    see(t, 1, said);
}

/* All of it delivered. */
static struct said delivered(const char *leaf, const char *cas, bool leaf_proven, bool trust_proven)
{
    return (struct said){.state = CR_SIDECAR_DELIVERED,
                         .found_leaf = leaf,
                         .found_trust = cas,
                         .delivered_leaf = leaf,
                         .delivered_trust = cas,
                         .served = leaf_proven ? leaf : NULL,
                         .leaf_proven = leaf_proven,
                         .trust_proven = trust_proven};
}

static const struct cr_secret_status *secret(const struct fixture *t)
{
    return cr_status_secret(&t->s->plan.status, "web");
}

static void assert_pods(const struct fixture *t, int verified, int inferred, int stale, int unknown)
{
    const struct cr_pod_counts *pods = &scene_status(t->s, 0)->pods;
    if (pods->verified != verified || pods->inferred != inferred || pods->stale != stale || pods->unknown != unknown)
        fail_msg("verified %d, inferred %d, stale %d, unknown %d", pods->verified, pods->inferred, pods->stale,
                 pods->unknown);
}

static void assert_example(const struct fixture *t, const char *words)
{
    const struct cr_strvec *examples = &scene_status(t->s, 0)->examples;
    if (!examples->len || !strstr(examples->items[0], words))
        fail_msg("want \"%s\", got \"%s\"", words, examples->len ? examples->items[0] : "");
}

static void assert_settled(const struct fixture *t, enum cr_settled_by trust, enum cr_settled_by leaf)
{
    assert_false(secret(t)->pending.set);
    assert_string_equal(cr_settled_by_name(secret(t)->trust_by), cr_settled_by_name(trust));
    assert_string_equal(cr_settled_by_name(secret(t)->leaf_by), cr_settled_by_name(leaf));
}

static void assert_decided(const struct fixture *t, enum cr_decision_kind kind)
{
    assert_string_equal(cr_decision_name(scene_status(t->s, 0)->decision), cr_decision_name(kind));
}

/* --- the leaf --- */

static void pods_are_nudged_and_their_sidecars_asked(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    const struct cr_plan *p = change(&t, "new", "ca");
    assert_decided(&t, CR_DECISION_TRIGGER);
    assert_int_equal(p->restarts_len, 0);
    assert_int_equal(p->nudges_len, 2);
    assert_int_equal(p->probes_len, 2);
    assert_int_equal(p->probes[0].sidecar_port, 9950);
    assert_false(p->probes[0].trust);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "its certroll-sidecar has not been asked yet");
}

static void a_first_sight_asks_no_page(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    const struct cr_plan *p = scene_due(t.s);
    assert_int_equal(p->probes_len, 0);
    assert_int_equal(p->nudges_len, 0);
    assert_false(secret(&t)->pending.set);
}

static void what_is_delivered_and_proven_is_verified(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said old = delivered("old", "ca", true, false), new = delivered("new", "ca", true, false);
    see(&t, 0, &new);
    see(&t, 1, &old);
    after(&t, 300);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "its certroll-sidecar still sees an old one served in place of the new leaf");
    assert_true(secret(&t)->pending.set);
    see(&t, 1, &new);
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_FIRST_SIGHT, CR_SETTLED_VERIFIED);
    assert_int_equal(after(&t, SECOND)->probes_len, 0);
}

static void what_cannot_be_proven_is_inferred_at_once(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said new = delivered("new", "ca", false, false);
    see_all(&t, &new);
    after(&t, 300);
    assert_pods(&t, 0, 2, 0, 0);
    assert_settled(&t, CR_SETTLED_FIRST_SIGHT, CR_SETTLED_INFERRED);
}

static void a_proof_that_is_under_way_is_waited_for(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said new = delivered("new", "ca", false, false);
    new.state = CR_SIDECAR_PENDING;
    see_all(&t, &new);
    after(&t, 300);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "its certroll-sidecar has not yet seen in use the new leaf");
}

static void who_has_found_it_is_not_nudged_again(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said found = delivered("old", "ca", false, false), waits = found;
    found.found_leaf = "new";
    found.state = CR_SIDECAR_PENDING;
    see(&t, 0, &found);
    see(&t, 1, &waits);
    const struct cr_plan *p = after(&t, 3 * SECOND);
    assert_int_equal(p->nudges_len, 1);
    assert_int_equal(p->nudges[0].pod, 1);
    assert_example(&t, "its certroll-sidecar has not yet passed on the new leaf");
    assert_non_null(strstr(scene_status(t.s, 0)->examples.items[1], "has not yet found in its volume the new leaf"));
}

static void time_proves_nothing_of_a_sidecar(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said waits = delivered("old", "ca", false, false);
    const struct cr_plan *p = NULL;
    for (int i = 0; i < 20; i++) {
        see_all(&t, &waits);
        p = after(&t, 60 * SECOND);
        assert_int_equal(p->restarts_len, 0);
    }
    assert_pods(&t, 0, 0, 0, 2);
    assert_true(secret(&t)->pending.set);
    assert_decided(&t, CR_DECISION_TRIGGER);
}

static void what_was_seen_before_the_change_says_nothing(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    hold(&t, "old", "ca");
    struct said new = delivered("new", "ca", true, false);
    see_all(&t, &new);
    change(&t, "new", "ca");
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "has not been asked yet");
}

static void a_page_that_cannot_be_read_says_why_for_ever(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    for (int i = 0; i < 10; i++) {
        for (size_t k = 0; k < 2; k++)
            t.pages[k] = (struct cr_sidecar_sighting){.at_ms = t.s->now_ms, .words = "connection refused"};
        assert_int_equal(after(&t, 60 * SECOND)->restarts_len, 0);
    }
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "web-3: the page of its certroll-sidecar (port 9950) was not read: connection refused");
    const struct cr_condition *degraded = cr_status_condition_get(&t.s->plan.status, "Degraded");
    assert_string_equal(degraded->reason, "NotVerified");
}

static void another_secrets_material_says_nothing(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said other = delivered("other", "another", true, false);
    see_all(&t, &other);
    after(&t, 300);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "its certroll-sidecar has no material with the new leaf of this Secret");
}

/* --- the fall-back --- */

static struct said failing(void)
{
    struct said said = delivered("old", "ca", false, false);
    said.state = CR_SIDECAR_FAILING;
    said.found_leaf = "new";
    said.served = "old";
    said.words = "SIGHUP to nginx: no such process";
    return said;
}

static void an_old_leaf_past_the_deadline_is_restarted_for(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said said = failing();
    for (int64_t ms = 0; ms + 10 * SECOND < DEADLINE; ms += 10 * SECOND) {
        see_all(&t, &said);
        assert_int_equal(after(&t, 10 * SECOND)->restarts_len, 0);
    }
    assert_pods(&t, 0, 0, 2, 0);
    assert_example(&t, "still sees an old one served in place of the new leaf: SIGHUP to nginx: no such process");
    after(&t, 20 * SECOND);
    see_all(&t, &said);
    const struct cr_plan *p = after(&t, 100);
    assert_int_equal(p->restarts_len, 1);
    assert_non_null(strstr(p->restarts[0].why,
                           "2 of 2 pods still serve the old leaf past the deadline, so the reload by "
                           "its certroll-sidecar did not happen: restart."));
    assert_decided(&t, CR_DECISION_RESTART);
}

static void on_timeout_report_restarts_nothing(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, "{certsPage: {port: 9902}, onTimeout: Report}");
    change(&t, "new", "ca");
    struct said said = failing();
    for (int i = 0; i < 10; i++) {
        see_all(&t, &said);
        assert_int_equal(after(&t, 60 * SECOND)->restarts_len, 0);
    }
    assert_pods(&t, 0, 0, 2, 0);
}

/* A new pod would get the same. */
static void what_is_refused_is_not_restarted_for(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    struct said said = failing();
    said.state = CR_SIDECAR_REFUSED;
    said.words = "the key is too short";
    for (int i = 0; i < 10; i++) {
        see_all(&t, &said);
        assert_int_equal(after(&t, 60 * SECOND)->restarts_len, 0);
    }
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "cannot use what its volume has in place of the new leaf: the key is too short");
}

/* --- the CAs --- */

static void trust_has_arrived_when_it_is_passed_on_and_not_before(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "old", "new ca");
    assert_decided(&t, CR_DECISION_TRIGGER);
    struct said said = delivered("old", "ca", true, false);
    for (int i = 0; i < 10; i++) {
        see_all(&t, &said);
        after(&t, 60 * SECOND);
        assert_true(secret(&t)->pending.set);
    }
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "its certroll-sidecar has not yet found in its volume the new set of CAs");
    said = delivered("old", "new ca", true, false);
    see(&t, 0, &said);
    after(&t, SECOND);
    assert_pods(&t, 0, 1, 0, 1);
    assert_true(secret(&t)->pending.set);
    see(&t, 1, &said);
    after(&t, SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
}

static void trust_that_is_proven_is_verified(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "old", "new ca");
    struct said said = delivered("old", "new ca", true, true);
    see_all(&t, &said);
    after(&t, SECOND);
    assert_pods(&t, 2, 0, 0, 0);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

static void a_leaf_that_is_seen_says_nothing_of_cas_that_are_not(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "new ca");
    struct said said = delivered("new", "ca", true, false);
    see_all(&t, &said);
    after(&t, 10 * 60 * SECOND);
    see_all(&t, &said);
    after(&t, 100);
    assert_pods(&t, 0, 0, 0, 2);
    said = delivered("new", "new ca", true, false);
    see_all(&t, &said);
    after(&t, SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_VERIFIED);
}

/* The CAs of clients are in a Secret of their own, and go into one material with the leaf. */
static void hold_clients(struct fixture *t, const char *cas)
{
    set_trust(&t->clients, cas);
    t->both[0] = t->s->secret;
    t->both[1] = (struct cr_world_secret){.found = true, .resource_version = cas, .material = &t->clients};
    t->s->secrets = t->both;
}

static void cas_of_clients_beside_a_leaf(const char *cas_of_leaf, int inferred)
{
    FIXTURE t;
    open_fixture(&t, notified_of_two, NULL);
    decree(&t, "{name: web}, {name: clients}", NULL);
    hold(&t, "old", cas_of_leaf);
    hold_clients(&t, "theirs");
    scene_due(t.s);
    scene_record(t.s);
    t.s->now_ms += 60 * SECOND;
    hold_clients(&t, "new theirs");
    scene_due(t.s);
    assert_decided(&t, CR_DECISION_TRIGGER);
    struct said said = delivered("old", "theirs", true, false);
    see_all(&t, &said);
    after(&t, 10 * 60 * SECOND);
    see_all(&t, &said);
    after(&t, 100);
    assert_pods(&t, 0, 0, 0, 2);
    said = delivered("old", "new theirs", true, false);
    see_all(&t, &said);
    after(&t, SECOND);
    assert_pods(&t, 0, inferred, 0, 2 - inferred);
    assert_int_equal(cr_status_secret(&t.s->plan.status, "clients")->pending.set, !inferred);
}

static void cas_of_a_secret_of_their_own_arrive_beside_the_leaf_of_another(void **state)
{
    (void)state;
    cas_of_clients_beside_a_leaf("", 2);
    cas_of_clients_beside_a_leaf("ca", 2);
    cas_of_clients_beside_a_leaf("theirs", 2);
    cas_of_clients_beside_a_leaf("new theirs", 0); /* they may be those of the leaf's Secret */
}

static void a_sidecar_without_the_cas_is_reported(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "old", "new ca");
    struct said said = delivered("old", NULL, true, false);
    see_all(&t, &said);
    after(&t, 10 * 60 * SECOND);
    see_all(&t, &said);
    after(&t, 100);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "its certroll-sidecar has no material with the new set of CAs of this Secret");
}

/* --- a look of the policy's own counts more --- */

static void see_port(struct fixture *t, size_t pod, const char *leaf)
{
    scene_see(t->s, 0, pod, leaf);
    cr_trust_sighting_dispose(&t->trust[pod]);
    t->trust[pod] = (struct cr_trust_sighting){
        .at_ms = t->s->now_ms, .endpoints = cr_calloc(1, sizeof(struct cr_endpoint_trust)), .endpoints_len = 1};
    t->trust[pod].endpoints[0].reached = true;
}

static void a_handshake_counts_more_than_the_page(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, "{port: 8443}");
    change(&t, "new", "ca");
    struct said new = delivered("new", "ca", true, false), said = failing();
    see(&t, 0, &new);
    see_port(&t, 0, "old");
    see(&t, 1, &said);
    see_port(&t, 1, "new");
    after(&t, 300);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "port 8443 still serves the old leaf");
}

static void a_port_that_shows_nothing_of_cas_leaves_them_to_the_page(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, "{port: 8443}");
    const struct cr_plan *p = change(&t, "old", "new ca");
    assert_true(p->probes[0].trust);
    assert_int_equal(p->probes[0].sidecar_port, 9950);
    struct said said = delivered("old", "new ca", false, false);
    see_all(&t, &said);
    after(&t, 300);
    assert_pods(&t, 0, 0, 0, 2); /* a look at the port may yet do better */
    see_port(&t, 0, "old");
    see_port(&t, 1, "old");
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_VERIFIED); /* the port shows the leaf that was there */
}

/* --- the sidecar goes, or comes --- */

static void without_its_sidecar_it_is_restarted(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "new", "ca");
    assert_int_equal(after(&t, SECOND)->restarts_len, 0);
    fit_out(&t, alone);
    const struct cr_plan *p = after(&t, SECOND);
    assert_decided(&t, CR_DECISION_RESTART);
    assert_int_equal(p->restarts_len, 1);
    assert_int_equal(p->probes_len, 0);
}

static void a_chain_does_not_show_on_a_page(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, notified, NULL);
    change(&t, "old", "ca");
    scene_record(t.s);
    t.s->now_ms += SECOND;
    hold(&t, "old", "ca");
    cr_sha256_hex("chain", 5, t.s->material.chain);
    scene_due(t.s);
    assert_decided(&t, CR_DECISION_TRIGGER);
    struct said said = delivered("old", "ca", true, false);
    see_all(&t, &said);
    after(&t, SECOND);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "waits until");
    after(&t, DEADLINE);
    assert_settled(&t, CR_SETTLED_FIRST_SIGHT, CR_SETTLED_INFERRED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_nudged_and_their_sidecars_asked),
        cmocka_unit_test(a_first_sight_asks_no_page),
        cmocka_unit_test(what_is_delivered_and_proven_is_verified),
        cmocka_unit_test(what_cannot_be_proven_is_inferred_at_once),
        cmocka_unit_test(a_proof_that_is_under_way_is_waited_for),
        cmocka_unit_test(who_has_found_it_is_not_nudged_again),
        cmocka_unit_test(time_proves_nothing_of_a_sidecar),
        cmocka_unit_test(what_was_seen_before_the_change_says_nothing),
        cmocka_unit_test(a_page_that_cannot_be_read_says_why_for_ever),
        cmocka_unit_test(another_secrets_material_says_nothing),
        cmocka_unit_test(an_old_leaf_past_the_deadline_is_restarted_for),
        cmocka_unit_test(on_timeout_report_restarts_nothing),
        cmocka_unit_test(what_is_refused_is_not_restarted_for),
        cmocka_unit_test(trust_has_arrived_when_it_is_passed_on_and_not_before),
        cmocka_unit_test(trust_that_is_proven_is_verified),
        cmocka_unit_test(a_leaf_that_is_seen_says_nothing_of_cas_that_are_not),
        cmocka_unit_test(cas_of_a_secret_of_their_own_arrive_beside_the_leaf_of_another),
        cmocka_unit_test(a_sidecar_without_the_cas_is_reported),
        cmocka_unit_test(a_handshake_counts_more_than_the_page),
        cmocka_unit_test(a_port_that_shows_nothing_of_cas_leaves_them_to_the_page),
        cmocka_unit_test(without_its_sidecar_it_is_restarted),
        cmocka_unit_test(a_chain_does_not_show_on_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
