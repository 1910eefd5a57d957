/* What is seen of the CAs that pods trust, and what becomes of it: settled at once, stale, or left to time. */
#include "support/scene.h"

#include "evidence/diff.h"

/* One Deployment with software and verify of a test's choice, with one Secret and two pods. */

static const char gateway[] = /* reloads its clientCA */
    "{name: web, image: 'docker.io/envoyproxy/gateway:v1.9.0', volumeMounts: [{name: certs, mountPath: /certs}]}";
static const char ratelimit[] = /* reads its clientCA once */
    "{name: web, image: 'docker.io/envoyproxy/ratelimit:3fb70258', volumeMounts: [{name: certs, mountPath: /certs}], "
    "env: "
    "[{name: GRPC_SERVER_TLS_CERT, value: /certs/tls.crt}, {name: GRPC_SERVER_TLS_KEY, value: /certs/tls.key}, "
    "{name: GRPC_CLIENT_TLS_CACERT, value: /certs/ca.crt}]}";
static const char envoy[] = /* reloads, in all roles */
    "{name: web, image: 'docker.io/envoyproxy/envoy:v1.40.0', volumeMounts: [{name: certs, mountPath: /certs}], "
    "args: [--config-yaml, '[{path: /sds/xds-certificate.json}, {path: /sds/xds-trusted-ca.json}]']}";
static const char unknown[] =
    "{name: web, image: 'example.org/web:1', volumeMounts: [{name: certs, mountPath: /certs}]}";

static const char port[] = "{port: 8443}";
static const char page[] = "{certsPage: {port: 9902}}";

struct fixture {
    struct scene *s;
    struct cr_trust_sighting trust[SCENE_PODS];
};

static void fixture_close(struct fixture *t)
{
    for (size_t i = 0; i < SCENE_PODS; i++)
        cr_trust_sighting_dispose(&t->trust[i]);
    scene_free(t->s);
}

#define FIXTURE __attribute__((cleanup(fixture_close))) struct fixture

/* --- material: words stand for CAs --- */

static struct cr_ca ca_of(const char *word)
{
    struct cr_ca ca = {.not_after_ms = SCENE_START * 2LL};
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(word, strlen(word), hex);
    memcpy(ca.fingerprint, hex, sizeof hex);
    memcpy(ca.identity, hex, sizeof hex);
    memcpy(ca.subject, hex, sizeof hex);
    snprintf(ca.serial, sizeof ca.serial, "%.32s", hex);
    return ca;
}

static void hold(struct fixture *t, const char *leaf, const char *cas)
{
    static char versions[64][24];
    static unsigned written;
    struct cr_material *m = &t->s->material;
    scene_material(t->s, leaf);
    free(m->trust);
    m->trust = NULL;
    m->trust_len = 0;
    cr_strvec_dispose(&m->anchors);
    snprintf(m->serial, sizeof m->serial, "%.32s", m->leaf);
    cr_autofree char *copy = cr_strdup(cas);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        m->trust = cr_reallocarray(m->trust, m->trust_len + 1, sizeof *m->trust);
        m->trust[m->trust_len++] = ca_of(word);
        cr_strvec_add(&m->anchors, m->trust[m->trust_len - 1].identity);
    }
    snprintf(versions[written % 64], sizeof versions[0], "%u", 1000 + written);
    t->s->secret.resource_version = versions[written++ % 64];
}

/* --- the fixture --- */

static void fit_out(struct scene *s, const char *container)
{
    cr_autofree char *text =
        cr_asprintf("containers: [%s]\nvolumes: [{name: certs, secret: {secretName: web}}]\n", container);
    cr_json_set(cr_json_edit(cr_json_edit(s->workloads[0], "spec"), "template"), "spec", test_yaml(text));
}

static void open_fixture(struct fixture *t, const char *container, const char *verify)
{
    *t = (struct fixture){.s = scene_new("{coalesce: 0s}", 1)};
    cr_autofree char *text =
        cr_asprintf("metadata: {name: demo, namespace: ns, uid: policy-uid, resourceVersion: '1', generation: 3}\n"
                    "spec:\n"
                    "  secrets: [{name: web}]\n"
                    "  restart: {coalesce: 0s}\n"
                    "  consumers: [{name: web, targetRef: {kind: Deployment, name: web}, verify: %s}]\n",
                    verify);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *policy = test_yaml(text);
    cr_policy_free(t->s->policy);
    t->s->policy = cr_policy_decode(policy, &err);
    if (!t->s->policy)
        fail_msg("%s", err.text);
    scene_workload(t->s, 0, 2, "");
    fit_out(t->s, container);
    for (size_t i = 0; i < SCENE_PODS; i++)
        t->s->pods[0][i].trust = &t->trust[i];
    hold(t, "leaf", "old");
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

/* --- what is seen --- */

static unsigned char nibble(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static struct cr_trust_sighting *look(struct fixture *t, size_t pod)
{
    struct cr_trust_sighting *seen = &t->trust[pod];
    cr_trust_sighting_dispose(seen);
    *seen = (struct cr_trust_sighting){.at_ms = t->s->now_ms};
    if (t->s->policy->consumers[0].verify.endpoints_len) {
        seen->endpoints = cr_calloc(1, sizeof *seen->endpoints);
        seen->endpoints_len = 1;
        t->s->sightings[0][pod].at_ms = t->s->now_ms;
    }
    return seen;
}

static void see_names(struct fixture *t, size_t pod, const char *cas)
{
    struct cr_endpoint_trust *endpoint = look(t, pod)->endpoints;
    endpoint->reached = true;
    endpoint->announced.asked = cas[0];
    cr_autofree char *copy = cr_strdup(cas);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) && *word;) {
        struct cr_ca ca = ca_of(word);
        for (size_t b = 0; b < 32; b++)
            endpoint->announced.names[endpoint->announced.len][b] =
                (unsigned char)(nibble(ca.subject[2 * b]) << 4 | nibble(ca.subject[2 * b + 1]));
        endpoint->announced.len++;
    }
}

static void see_page(struct fixture *t, size_t pod, const char *cas, const char *leaf)
{
    struct cr_trust_sighting *seen = look(t, pod);
    seen->page_read = true;
    seen->contexts = cr_calloc(1, sizeof *seen->contexts);
    seen->contexts_len = 1;
    cr_autofree char *copy = cr_strdup(cas);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) && *word;) {
        struct cr_ca ca = ca_of(word);
        cr_strvec_add(&seen->contexts[0].cas, ca.serial);
    }
    char hex[CR_SHA256_HEX];
    char serial[CR_SERIAL_HEX];
    cr_sha256_hex(leaf, strlen(leaf), hex);
    snprintf(serial, sizeof serial, "%.32s", hex);
    cr_strvec_add(&seen->contexts[0].leaves, serial);
}

static const struct cr_plan *after(struct fixture *t, int64_t ms)
{
    scene_record(t->s);
    t->s->now_ms += ms;
    return scene_due(t->s);
}

static const struct cr_secret_status *secret(const struct fixture *t)
{
    return cr_status_secret(&t->s->plan.status, "web");
}

static void assert_pods(const struct fixture *t, int verified, int inferred, int stale, int unknown_yet)
{
    const struct cr_pod_counts *pods = &scene_status(t->s, 0)->pods;
    if (pods->verified != verified || pods->inferred != inferred || pods->stale != stale ||
        pods->unknown != unknown_yet)
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

static const char *converged(const struct fixture *t)
{
    return cr_status_condition_get(&t->s->plan.status, "Converged")->message;
}

static const char *reason(const struct fixture *t)
{
    return cr_status_condition_get(&t->s->plan.status, "Converged")->reason;
}

static void see_leaves(struct fixture *t, const char *leaf)
{
    for (size_t i = 0; i < t->s->consumers[0].pods_len; i++)
        scene_see(t->s, 0, i, leaf);
}

/* --- a server that reloads --- */

static void a_ca_that_is_announced_has_arrived_at_once(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    const struct cr_plan *p = change(&t, "leaf", "new old");
    struct cr_ca new_ca = ca_of("new");
    assert_int_equal(p->nudges_len, 2);
    assert_int_equal(p->probes_len, 2);
    assert_true(p->probes[0].trust);
    assert_string_equal(p->probes[0].canary_ca, new_ca.fingerprint);
    assert_pods(&t, 0, 0, 0, 2);
    assert_null(strstr(converged(&t), "inferred"));
    see_names(&t, 0, "old");
    see_names(&t, 1, "new old");
    after(&t, 300);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "port 8443 does not announce the new CA");
    assert_true(secret(&t)->pending.set);
    see_names(&t, 0, "new old");
    after(&t, 700);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
    assert_int_equal(secret(&t)->settled_ms, t.s->now_ms - t.s->now_ms % SECOND);
    assert_string_equal(reason(&t), "NotVerified"); /* of the leaf nothing is known, which was there at first sight */
    see_leaves(&t, "leaf");
    after(&t, 0);
    assert_string_equal(converged(&t),
                        "Every consumer has the material that its Secrets hold. Leaves: 1 verified. Trust: 1 "
                        "verified. Verified is a leaf that a pod showed with proof of its key. Not checked: names, and "
                        "chains with the CAs of clients.");
    p = after(&t, SECOND);
    assert_int_equal(p->probes_len, 0);
}

static void who_shows_old_material_is_asked_again_soon(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf", "new old");
    see_names(&t, 0, "old");
    see_names(&t, 1, "old");
    const struct cr_plan *p = after(&t, 100);
    assert_int_equal(p->probes_len, 0);
    assert_in_range(p->requeue_after_ms, 1, 200);
    p = after(&t, 150);
    assert_int_equal(p->probes_len, 2);
}

static void a_ca_that_went_must_not_be_announced_any_more(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    hold(&t, "leaf", "new old");
    const struct cr_plan *p = change(&t, "leaf", "new");
    assert_string_equal(p->probes[0].canary_ca, "");
    see_names(&t, 0, "new");
    see_names(&t, 1, "new old");
    after(&t, SECOND);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "still announces a CA that was removed");
    see_names(&t, 1, "new");
    after(&t, SECOND);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

/* The text of a CA does not show when it was made: one of the same name looks like the one before. */
static void a_ca_of_the_same_name_is_not_taken_for_the_new_one(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    struct cr_ca old = ca_of("old");
    change(&t, "leaf", "new");
    memcpy(t.s->material.trust[0].subject, old.subject, sizeof old.subject);
    see_names(&t, 0, "old");
    see_names(&t, 1, "old");
    after(&t, SECOND);
    assert_pods(&t, 0, 0, 0, 2);
    assert_true(secret(&t)->pending.set);
}

static void who_asks_its_clients_for_nothing_is_judged_by_time(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf", "new old");
    see_names(&t, 0, "");
    see_names(&t, 1, "");
    const struct cr_plan *p = after(&t, 300);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "waits until");
    assert_int_equal(p->probes_len, 0); /* it will not show more: asked less often */
    p = after(&t, 1800);
    assert_int_equal(p->probes_len, 2);
    after(&t, 100 * SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
    see_leaves(&t, "leaf");
    after(&t, 0);
    assert_non_null(strstr(converged(&t), "Trust: 1 inferred. What no port or page shows is inferred"));
}

static void who_cannot_be_reached_is_judged_by_time(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf", "new old");
    look(&t, 0);
    see_names(&t, 1, "new old");
    after(&t, 300);
    assert_pods(&t, 1, 0, 0, 1);
    assert_example(&t, "port 8443 cannot be reached");
    after(&t, 100 * SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT); /* the weakest counts */
}

static void where_no_probe_looks_time_decides(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    t.s->pods[0][0].trust = t.s->pods[0][1].trust = NULL;
    const struct cr_plan *p = change(&t, "leaf", "new old");
    assert_int_equal(p->probes_len, 0);
    after(&t, 100 * SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
}

/* --- past the deadline --- */

static void see_old_until_late(struct fixture *t)
{
    change(t, "leaf", "new old");
    for (int i = 0; i < 11; i++) {
        see_names(t, 0, "old");
        see_names(t, 1, "new old");
        after(t, 10 * SECOND);
    }
    see_names(t, 0, "old");
    see_names(t, 1, "new old");
    after(t, 100);
}

static void who_still_has_the_old_cas_past_the_deadline_is_restarted(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf", "new old");
    for (int i = 0; i < 9; i++) {
        see_names(&t, 0, "old");
        see_names(&t, 1, "new old");
        const struct cr_plan *p = after(&t, 10 * SECOND);
        assert_int_equal(p->restarts_len, 0);
        assert_pods(&t, 1, 0, 1, 0);
    }
    see_names(&t, 0, "old");
    after(&t, 10 * SECOND);
    see_names(&t, 0, "old");
    const struct cr_plan *p = after(&t, 100);
    assert_int_equal(p->restarts_len, 1);
    assert_non_null(strstr(p->restarts[0].why, "1 of 2 pods still go by the old CAs past the deadline"));
    char name[CR_ANNOTATION_NAME];
    cr_restart_annotation_name("web", name);
    const char *value = cr_json_string(cr_json_get(p->restarts[0].annotations, name));
    assert_true(cr_restart_annotation_covers(value, &t.s->material, CR_CLASS_TRUST));
    assert_false(cr_restart_annotation_covers(value, &t.s->material, CR_CLASS_LEAF));
}

static void unless_the_policy_only_wants_a_report(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, "{port: 8443, onTimeout: Report}");
    see_old_until_late(&t);
    assert_int_equal(t.s->plan.restarts_len, 0);
    assert_true(secret(&t)->pending.set);
    assert_int_equal(scene_status(t.s, 0)->state, CR_CONSUMER_VERIFYING);
    see_names(&t, 0, "new old"); /* when its cause is removed it goes on by itself */
    after(&t, SECOND);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

/* --- a server that is restarted --- */

static void restart(struct fixture *t)
{
    const struct cr_plan *p = change(t, "leaf", "new old");
    assert_int_equal(p->restarts_len, 1);
    struct cr_json *workload = t->s->workloads[0];
    struct cr_json *metadata = cr_json_edit(cr_json_edit(cr_json_edit(workload, "spec"), "template"), "metadata");
    for (const struct cr_json *a = cr_json_first(p->restarts[0].annotations); a; a = cr_json_next(a))
        cr_json_set_string(cr_json_object_in(metadata, "annotations"), cr_json_key(a), cr_json_string(a));
    cr_json_set_int(cr_json_edit(workload, "metadata"), "generation", 2);
    cr_json_set_int(cr_json_edit(workload, "status"), "observedGeneration", 2);
    scene_record(t->s);
    t->s->now_ms += 5 * SECOND;
    for (size_t i = 0; i < 2; i++) {
        scene_pod(t->s, 0, i);
        t->s->pods[0][i].trust = &t->trust[i];
    }
    scene_due(t->s);
}

static void seen_is_better_than_a_start(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, ratelimit, port);
    restart(&t);
    assert_pods(&t, 0, 0, 0, 2);
    assert_example(&t, "has not been asked yet which CAs it trusts");
    assert_int_equal(t.s->plan.probes_len, 2);
    assert_true(t.s->plan.probes[0].trust);
    see_names(&t, 0, "new old");
    see_names(&t, 1, "new old");
    after(&t, 200);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

static void a_start_is_what_there_is_to_go_by_where_nothing_is_seen(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, ratelimit, port);
    restart(&t);
    see_names(&t, 0, "");
    see_names(&t, 1, "");
    after(&t, 200);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
}

static void and_waits_for_who_cannot_be_reached_unless_that_may_be_inferred(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, ratelimit, port);
    restart(&t);
    look(&t, 0);
    look(&t, 1);
    after(&t, 10 * SECOND);
    assert_pods(&t, 0, 0, 0, 2);
    after(&t, 100 * SECOND);
    assert_pods(&t, 0, 0, 0, 2);
    assert_true(secret(&t)->pending.set);
    t.s->policy->consumers[0].verify.on_unreachable = CR_ON_UNREACHABLE_INFER;
    after(&t, SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
}

static void a_new_pod_with_the_old_cas_goes(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, ratelimit, port);
    restart(&t);
    see_names(&t, 0, "old");
    see_names(&t, 1, "new old");
    const struct cr_plan *p = after(&t, 200);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t,
                   "restarted, but port 8443 does not announce the new CA to clients: it mounted the kubelet's cached "
                   "Secret");
    assert_int_equal(p->evictions_len, 1);
    assert_true(p->evictions[0].repair);
    assert_int_equal(p->evictions[0].pod, 0);
}

/* --- software of which it is not known what it does with a CA --- */

static void of_unknown_software_nothing_is_old(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, unknown, port);
    restart(&t);
    see_names(&t, 0, "old");
    see_names(&t, 1, "old");
    const struct cr_plan *p = after(&t, 200);
    assert_int_equal(p->evictions_len, 0);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
}

/* --- the page --- */

static void a_client_is_seen_by_its_page_alone(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, envoy, page);
    const struct cr_plan *p = change(&t, "leaf", "new old");
    assert_int_equal(p->probes_len, 2);
    assert_true(p->probes[0].trust);
    see_page(&t, 0, "old", "leaf");
    see_page(&t, 1, "new old", "leaf");
    p = after(&t, 100);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "port 9902/certs does not list the new CA");
    assert_int_equal(p->probes_len, 0); /* not again at once */
    p = after(&t, 150);
    assert_int_equal(p->probes_len, 1);
    assert_int_equal(p->probes[0].pod, 0);
    see_page(&t, 0, "new old", "leaf");
    after(&t, 100);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

static void and_so_is_the_leaf_that_it_presents(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, envoy, page);
    hold(&t, "leaf", "new old");
    change(&t, "leaf-2", "new old");
    see_page(&t, 0, "new old", "leaf-2");
    see_page(&t, 1, "new old", "leaf");
    after(&t, 100);
    assert_pods(&t, 1, 0, 1, 0);
    assert_example(&t, "port 9902/certs still lists the old leaf");
    see_page(&t, 1, "new old", "leaf-2");
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_FIRST_SIGHT, CR_SETTLED_VERIFIED);
}

static void a_page_that_cannot_be_read_leaves_it_to_time(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, envoy, page);
    change(&t, "leaf-2", "new old");
    look(&t, 0);
    look(&t, 1);
    after(&t, 300);
    assert_pods(&t, 0, 0, 0, 2);
    after(&t, 100 * SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_INFERRED);
}

/* --- leaf and CA at once --- */

static void see_leaf(struct fixture *t, const char *leaf)
{
    for (size_t i = 0; i < 2; i++)
        scene_see(t->s, 0, i, leaf);
}

static void a_new_leaf_says_nothing_of_the_ca_that_came_with_it(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf-2", "new old");
    see_names(&t, 0, "old");
    see_names(&t, 1, "new old");
    see_leaf(&t, "leaf-2");
    after(&t, 100);
    assert_pods(&t, 1, 0, 1, 0);
    see_names(&t, 0, "new old");
    see_leaf(&t, "leaf-2");
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_VERIFIED);
}

static void nor_a_new_ca_of_the_leaf(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf-2", "new old");
    see_names(&t, 0, "new old");
    see_names(&t, 1, "new old");
    see_leaf(&t, "leaf");
    after(&t, 100);
    assert_pods(&t, 0, 0, 2, 0);
    assert_example(&t, "still serves the old leaf");
}

static void where_only_the_leaf_is_seen_trust_is_inferred(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf-2", "new old");
    see_names(&t, 0, "");
    see_names(&t, 1, "");
    see_leaf(&t, "leaf-2");
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_VERIFIED);
}

/* --- two Secrets of one server --- */

/* Beside "web" the Secret "admin", idle, with a CA in common. One endpoint shows admin's leaf, or names a Secret. */
static enum cr_evidence judge_beside_admin(const char *admin_leaf, const char *admin_ca, const char *demands)
{
    FIXTURE t;
    open_fixture(&t, gateway, port);
    CR_CLEANUP(cr_material) struct cr_material admin = {.has_leaf = true, .not_after_ms = SCENE_START * 2LL};
    cr_sha256_hex(admin_leaf, strlen(admin_leaf), admin.leaf);
    if (admin_ca) {
        admin.trust = cr_calloc(1, sizeof *admin.trust);
        admin.trust[admin.trust_len++] = ca_of(admin_ca);
    }
    char name[] = "admin";
    struct cr_policy *policy = t.s->policy;
    struct cr_policy_secret both[] = {policy->secrets[0], policy->secrets[0]};
    struct cr_policy_secret *one = policy->secrets;
    both[1].name = name;
    change(&t, "leaf", "new old");
    scene_record(t.s);
    struct cr_secret_status *status = cr_status_secret_add(&t.s->status, "admin");
    status->has_settled = true;
    cr_material_copy(&status->settled, &admin);
    cr_strset(&policy->consumers[0].verify.endpoints[0].secret_name, demands);
    for (size_t i = 0; i < 2; i++) {
        see_names(&t, i, "new old");
        scene_see(t.s, 0, i, demands ? "leaf" : admin_leaf);
    }
    policy->secrets = both;
    policy->secrets_len = 2;
    struct cr_world_secret secrets[] = {t.s->secret, {.found = true, .resource_version = "1", .material = &admin}};
    struct cr_world world = {.policy = policy,
                             .status = &t.s->status,
                             .secrets = secrets,
                             .consumers = t.s->consumers,
                             .catalogue = t.s->catalogue,
                             .now_ms = t.s->now_ms};
    CR_CLEANUP(cr_plan) struct cr_plan plan;
    cr_plan_make(&world, &plan);
    policy->secrets = one;
    policy->secrets_len = 1;
    const struct cr_secret_status *web = cr_status_secret(&plan.status, "web");
    return !web->pending.set && web->trust_by == CR_SETTLED_VERIFIED ? CR_EVIDENCE_VERIFIED : CR_EVIDENCE_UNKNOWN;
}

static void an_endpoint_counts_for_the_secret_of_the_leaf_it_serves(void **state)
{
    static const struct {
        const char *rule;
        const char *admin_leaf, *admin_ca, *demands;
        enum cr_evidence evidence;
    } rows[] = {
        {"its own leaf", "leaf", NULL, NULL, CR_EVIDENCE_VERIFIED},
        {"of another Secret with CAs", "admin-leaf", "old", NULL, CR_EVIDENCE_UNKNOWN},
        {"of another Secret without CAs: these must be from here", "admin-leaf", NULL, NULL, CR_EVIDENCE_VERIFIED},
        {"it must show this Secret", "admin-leaf", "old", "web", CR_EVIDENCE_VERIFIED},
        {"it must show the other", "admin-leaf", "old", "admin", CR_EVIDENCE_UNKNOWN},
        {"it must show the other, which has no CAs", "admin-leaf", NULL, "admin", CR_EVIDENCE_VERIFIED},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++)
        if (judge_beside_admin(rows[i].admin_leaf, rows[i].admin_ca, rows[i].demands) != rows[i].evidence)
            fail_msg("%s", rows[i].rule);
}

/* --- no reader, and others --- */

static void what_no_consumer_reads_is_verified(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, "{name: web, image: 'example.org/web:1'}", port);
    change(&t, "leaf-2", "new old");
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_VERIFIED);
}

static void no_pods_no_doubt(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    cr_json_set_int(cr_json_edit(t.s->workloads[0], "spec"), "replicas", 0);
    t.s->consumers[0].pods_len = 0;
    change(&t, "leaf", "new old");
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

static void the_level_is_that_of_the_last_change(void **state)
{
    (void)state;
    FIXTURE t;
    open_fixture(&t, gateway, port);
    change(&t, "leaf", "new old");
    after(&t, 100 * SECOND);
    assert_settled(&t, CR_SETTLED_INFERRED, CR_SETTLED_FIRST_SIGHT);
    change(&t, "leaf", "newer new old");
    see_names(&t, 0, "newer new old");
    see_names(&t, 1, "newer new old");
    after(&t, 300);
    assert_settled(&t, CR_SETTLED_VERIFIED, CR_SETTLED_FIRST_SIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ca_that_is_announced_has_arrived_at_once),
        cmocka_unit_test(who_shows_old_material_is_asked_again_soon),
        cmocka_unit_test(a_ca_that_went_must_not_be_announced_any_more),
        cmocka_unit_test(a_ca_of_the_same_name_is_not_taken_for_the_new_one),
        cmocka_unit_test(who_asks_its_clients_for_nothing_is_judged_by_time),
        cmocka_unit_test(who_cannot_be_reached_is_judged_by_time),
        cmocka_unit_test(where_no_probe_looks_time_decides),
        cmocka_unit_test(who_still_has_the_old_cas_past_the_deadline_is_restarted),
        cmocka_unit_test(unless_the_policy_only_wants_a_report),
        cmocka_unit_test(seen_is_better_than_a_start),
        cmocka_unit_test(a_start_is_what_there_is_to_go_by_where_nothing_is_seen),
        cmocka_unit_test(and_waits_for_who_cannot_be_reached_unless_that_may_be_inferred),
        cmocka_unit_test(a_new_pod_with_the_old_cas_goes),
        cmocka_unit_test(of_unknown_software_nothing_is_old),
        cmocka_unit_test(a_client_is_seen_by_its_page_alone),
        cmocka_unit_test(and_so_is_the_leaf_that_it_presents),
        cmocka_unit_test(a_page_that_cannot_be_read_leaves_it_to_time),
        cmocka_unit_test(a_new_leaf_says_nothing_of_the_ca_that_came_with_it),
        cmocka_unit_test(nor_a_new_ca_of_the_leaf),
        cmocka_unit_test(where_only_the_leaf_is_seen_trust_is_inferred),
        cmocka_unit_test(an_endpoint_counts_for_the_secret_of_the_leaf_it_serves),
        cmocka_unit_test(what_no_consumer_reads_is_verified),
        cmocka_unit_test(no_pods_no_doubt),
        cmocka_unit_test(the_level_is_that_of_the_last_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
