#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/domainscene.h"

#define AUTO_CERT CR_CLEANUP(test_cert) struct test_cert *
#define AUTO_PLAN CR_CLEANUP(cr_domain_plan) struct cr_domain_plan
#define make(...) test_cert_new(&(struct test_cert_spec){__VA_ARGS__})

#define CA  SECRET_PATH("ns", "ca")
#define WEB SECRET_PATH("ns", "web")
#define ISSUE                                                                                                          \
    "authority: {type: Issue, issue: {caSecretName: ca, commonName: mesh}}, leaves: [{name: web, source: {type: "      \
    "Issue, issue: {dnsNames: [web], usages: [server, client]}}}], trustTargets: [{kind: ConfigMap, name: trust}]"

/* --- a domain that lives --- */

/* Everybody has whatever is published at once. */
struct evidence {
    struct cr_domain_object list[4];
    struct cr_domain_evidence of[4];
};

static void give_evidence(struct domain_scene *s, struct evidence *evidence)
{
    *evidence = (struct evidence){0};
    for (size_t i = 0; i < s->world.objects_len; i++) {
        evidence->list[i] = s->world.objects[i];
        if (!cr_domain_objects_material(s->objects, i))
            continue;
        evidence->of[i] = (struct cr_domain_evidence){.trust = CR_ARRIVAL_VERIFIED, .leaf = CR_ARRIVAL_VERIFIED};
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            if (s->world.objects[i].bundle[ca])
                cr_strvec_add(&evidence->of[i].trusted, s->world.cas[ca].fingerprint);
        evidence->list[i].evidence = &evidence->of[i];
    }
    s->world.objects = evidence->list;
}

static void drop_evidence(struct evidence *evidence)
{
    for (size_t i = 0; i < 4; i++)
        cr_domain_evidence_dispose(&evidence->of[i]);
}

static void record(struct domain_scene *s, const struct cr_domain_status *status)
{
    cr_domain_status_dispose(&s->status);
    cr_domain_status_copy(&s->status, status);
}

/* As the controller does it. False: a write failed, and the process that did it is gone. */
static bool act(struct domain_scene *s, const struct cr_domain_plan *plan)
{
    struct cr_error err = {0};
    int64_t now = cr_clock_wall_ms();
    if (plan->first_ca)
        return cr_domain_objects_first_ca(s->objects, now, &err);
    if (plan->stage_next_ca)
        return cr_domain_objects_stage_next_ca(s->objects, s->domain->rotate_token, now, &err);
    for (size_t i = 0; i < plan->writes_len; i++)
        if (!scene_write(s, plan->writes[i], &err))
            return false;
    if (plan->promote_ca)
        return cr_domain_objects_promote_ca(s->objects, &err);
    return !plan->delete_staging || cr_domain_objects_delete_staging(s->objects, &err);
}

/* Checks what there is between two writes, after a process was killed there. */
static void expect_trust(struct domain_scene *s)
{
    const struct cr_domain_object *web = scene_view(s, "Secret", "ns", "web");
    const struct cr_domain_object *trust = scene_view(s, "ConfigMap", "ns", "trust");
    bool by_itself = !web->found;
    bool by_trust = !web->found || !trust->found;
    for (size_t ca = 0; ca < s->world.cas_len; ca++) {
        by_itself = by_itself || (web->published.verifies[ca] && web->bundle[ca]);
        by_trust = by_trust || (web->published.verifies[ca] && trust->bundle[ca]);
    }
    if (!by_itself || !by_trust)
        fail_msg("a leaf is published that %s does not trust", by_itself ? "the ConfigMap" : "its own bundle");
}

/* One reconcile; true: there is nothing to do any more. */
static bool reconcile(struct domain_scene *s)
{
    struct evidence evidence;
    AUTO_PLAN plan = {0};
    scene_look(s);
    expect_trust(s);
    give_evidence(s, &evidence);
    cr_domain_plan_make(&s->world, &plan);
    bool idle = plan.status.stage == CR_STAGE_IDLE && !plan.record_first && !plan.writes_len && !plan.first_ca &&
                !plan.stage_next_ca && !plan.promote_ca && !plan.delete_staging;
    if (plan.record_first || act(s, &plan))
        record(s, &plan.status);
    drop_evidence(&evidence);
    return idle;
}

static void settle(struct domain_scene *s)
{
    enum { MOST = 60 };
    for (int i = 0; i < MOST; i++)
        if (reconcile(s))
            return;
    fail_msg("it does not come to rest");
}

static void rotate(struct domain_scene *s, const char *token)
{
    s->domain->rotate = CR_ROTATE_CA;
    cr_strset(&s->domain->rotate_token, token);
    s->domain->generation++;
}

/* --- what must hold --- */

static size_t count_writes(const struct domain_scene *s, size_t from, const char *what)
{
    size_t count = 0;
    for (size_t i = from; i < s->store.writes.len; i++)
        count += strcmp(s->store.writes.items[i], what) == 0;
    return count;
}

/* The writes of a rotation that is not disturbed. */
static size_t undisturbed(void)
{
    struct domain_scene s;
    scene_begin(&s, "TrustDomain", ISSUE);
    settle(&s);
    size_t before = s.store.writes.len;
    rotate(&s, "one");
    settle(&s);
    size_t writes = s.store.writes.len - before;
    assert_int_equal(count_writes(&s, before, "PATCH " CA), 1);
    assert_null(fake_store_get(&s.store, SECRET_PATH("ns", STAGING)));
    assert_string_equal(s.status.last_handled_token, "one");
    cr_domain_status_dispose(&s.status);
    scene_end(&s);
    return writes;
}

/* What failed before it was done is done once more; what was done is not done again. */
static void rotate_with_fault(size_t writes, size_t at, enum fake_fault fault)
{
    struct domain_scene s;
    scene_begin(&s, "TrustDomain", ISSUE);
    settle(&s);
    cr_autofree char *first = scene_text(&s, CA, "tls.crt");
    size_t before = s.store.writes.len;
    s.store.fail_at = before + at;
    s.store.fault = fault;
    rotate(&s, "one");
    settle(&s);
    cr_autofree char *second = scene_text(&s, CA, "tls.crt");
    cr_autofree char *trust = scene_text(&s, WEB, "ca.crt");
    assert_string_not_equal(first, second);
    assert_true(cr_starts_with(trust, second) && strstr(trust, first));
    assert_null(fake_store_get(&s.store, SECRET_PATH("ns", STAGING)));
    if (s.store.writes.len - before != writes + (fault == FAKE_FAULT_BEFORE))
        fail_msg("killed %s write %zu of %zu, it made %zu", fault == FAKE_FAULT_BEFORE ? "before" : "after", at, writes,
                 s.store.writes.len - before);
    cr_domain_status_dispose(&s.status);
    scene_end(&s);
}

static void killed_at_each_write_a_rotation_of_the_ca_goes_on(void **state)
{
    (void)state;
    size_t writes = undisturbed();
    assert_true(writes >= 6 && writes <= 8); /* staging, two bundles, a leaf, the CA Secret, staging again */
    for (size_t at = 1; at <= writes; at++)
        rotate_with_fault(writes, at, FAKE_FAULT_AFTER);
    rotate_with_fault(writes, 1, FAKE_FAULT_BEFORE);
    rotate_with_fault(writes, writes, FAKE_FAULT_BEFORE);
}

static void a_rotation_within_a_rotation_drops_no_ca_in_use(void **state)
{
    (void)state;
    enum { STEPS = 8 };
    for (int step = 1; step < STEPS; step += 2) {
        struct domain_scene s;
        scene_begin(&s, "TrustDomain", ISSUE);
        settle(&s);
        cr_autofree char *first = scene_text(&s, CA, "tls.crt");
        rotate(&s, "one");
        for (int i = 0; i < step; i++)
            (void)reconcile(&s);
        rotate(&s, "two");
        settle(&s); /* each step is looked at there */
        cr_autofree char *last = scene_text(&s, CA, "tls.crt");
        assert_string_not_equal(first, last);
        assert_string_equal(s.status.last_handled_token, "two");
        cr_domain_status_dispose(&s.status);
        scene_end(&s);
    }
}

static void a_ca_that_may_not_be_replaced_is_reported_when_another_is_needed(void **state)
{
    (void)state;
    struct domain_scene s;
    AUTO_CERT ca = make(.cn = "ca", .ca = true, .until_s = 365 * 24 * 3600);
    scene_begin(&s, "TrustDomain", ISSUE);
    fake_store_put(&s.store, CA, scene_secret(NULL, ca->cert_pem, ca->key_pem, ca->cert_pem));
    settle(&s);
    const struct cr_condition *degraded = &s.status.conditions[4];
    assert_string_equal(degraded->type, "Degraded");
    assert_string_equal(degraded->reason, "AsExpected");
    rotate(&s, "one");
    (void)reconcile(&s);
    (void)reconcile(&s);
    degraded = &s.status.conditions[4];
    assert_string_equal(degraded->reason, "CANotOurs");
    assert_non_null(strstr(degraded->message, "certroll.dev/trust-domain: ns/mesh"));
    assert_null(fake_store_get(&s.store, SECRET_PATH("ns", STAGING)));
    /* Its owner lets it be replaced. */
    fake_store_put(&s.store, CA, scene_secret("ns/mesh", ca->cert_pem, ca->key_pem, ca->cert_pem));
    settle(&s);
    cr_autofree char *now = scene_text(&s, CA, "tls.crt");
    assert_string_not_equal(now, ca->cert_pem);
    assert_string_equal(s.status.conditions[4].reason, "AsExpected");
    cr_domain_status_dispose(&s.status);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_write_a_rotation_of_the_ca_goes_on),
        cmocka_unit_test(a_rotation_within_a_rotation_drops_no_ca_in_use),
        cmocka_unit_test(a_ca_that_may_not_be_replaced_is_reported_when_another_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
