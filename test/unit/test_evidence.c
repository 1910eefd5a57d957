#include "evidence/evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

enum {
    SINCE = 1000 * 1000 * 1000,
    DELAY = 5000,
    LATER = SINCE + 10 * 1000,                       /* while the kubelet may not have refreshed yet */
    SETTLED = SINCE + CR_KUBELET_REFRESH_MS + DELAY, /* all that reloads has done so */
    BEFORE = SINCE - 3600 * 1000,
    AFTER = SINCE + 2000,
};

enum decision { RELOADS, RESTARTED };
enum subject { LEAF, TRUST_ONLY };
enum pod { OLD_POD, NEW_POD };

/* clang-format off */
static const struct evidence_case {
    const char *rule;
    enum decision decision;
    enum subject subject;
    enum pod pod;
    int64_t started;
    enum cr_probe_seen seen;
    const char *leaf;
    int64_t now;
    enum cr_evidence evidence;
    const char *why; /* part of the text; "" for none */
} cases[] = {
    /* Hot reload, leaf changed: a probe says all. */
    {"hot reload: the new leaf is proof at once", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, "new", SINCE,
     CR_EVIDENCE_VERIFIED, ""},
    {"hot reload: the old leaf is stale", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, "old", LATER, CR_EVIDENCE_STALE,
     "still serves the old leaf"},
    {"hot reload: an older leaf is stale, too", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, "older", LATER,
     CR_EVIDENCE_STALE, "still serves the old leaf"},
    {"hot reload: time does not outweigh an old leaf that is seen", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, "old",
     SETTLED + 3600 * 1000, CR_EVIDENCE_STALE, "still serves the old leaf"},
    {"hot reload: another leaf proves nothing", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, "other", SETTLED,
     CR_EVIDENCE_UNKNOWN, "neither the new nor the old"},
    {"hot reload: unreachable is unknown, never stale", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_UNREACHABLE, NULL,
     SETTLED, CR_EVIDENCE_UNKNOWN, "cannot be reached"},
    {"hot reload: no TLS is unknown", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_NOT_TLS, NULL, SETTLED,
     CR_EVIDENCE_UNKNOWN, "does not speak TLS"},
    {"hot reload: a handshake without a certificate is unknown", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_LEAF, NULL,
     SETTLED, CR_EVIDENCE_UNKNOWN, "does not speak TLS"},
    {"hot reload: the old leaf of a new pod is stale: it mounted a cached Secret", RELOADS, LEAF, OLD_POD, AFTER,
     CR_SEEN_LEAF, "old", LATER, CR_EVIDENCE_STALE, "still serves the old leaf"},

    /* Hot reload without a probe: the kubelet's refresh and the delay must have passed. */
    {"hot reload without a probe: waits for refresh and delay", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_NOTHING, NULL,
     SETTLED - 1, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"hot reload without a probe: inferred when they have passed", RELOADS, LEAF, OLD_POD, BEFORE, CR_SEEN_NOTHING, NULL,
     SETTLED, CR_EVIDENCE_INFERRED, ""},
    {"hot reload without a probe: a later start is no shortcut (kubernetes#129645)", RELOADS, LEAF, OLD_POD, AFTER,
     CR_SEEN_NOTHING, NULL, LATER, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"hot reload without a probe: a pod that has not started is unknown", RELOADS, LEAF, OLD_POD, 0, CR_SEEN_NOTHING,
     NULL, SETTLED, CR_EVIDENCE_UNKNOWN, "not started"},

    /* Hot reload, trust only: the leaf says nothing. */
    {"trust by hot reload: the leaf on the port proves nothing", RELOADS, TRUST_ONLY, OLD_POD, BEFORE, CR_SEEN_LEAF,
     "old", LATER, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"trust by hot reload: nor does the new leaf", RELOADS, TRUST_ONLY, OLD_POD, BEFORE, CR_SEEN_LEAF, "new", LATER,
     CR_EVIDENCE_UNKNOWN, "waits"},
    {"trust by hot reload: inferred after refresh and delay", RELOADS, TRUST_ONLY, OLD_POD, BEFORE, CR_SEEN_LEAF, "old",
     SETTLED, CR_EVIDENCE_INFERRED, ""},
    {"trust by hot reload: also when the port cannot be reached", RELOADS, TRUST_ONLY, OLD_POD, BEFORE,
     CR_SEEN_UNREACHABLE, NULL, SETTLED, CR_EVIDENCE_INFERRED, ""},
    {"trust by hot reload: not started is unknown", RELOADS, TRUST_ONLY, OLD_POD, 0, CR_SEEN_NOTHING, NULL, SETTLED,
     CR_EVIDENCE_UNKNOWN, "not started"},

    /* Restart, old pods: they hold what they read at their start. */
    {"restart: an old pod is stale", RESTARTED, LEAF, OLD_POD, BEFORE, CR_SEEN_NOTHING, NULL, LATER, CR_EVIDENCE_STALE,
     "before the restart"},
    {"restart: an old pod that serves the new leaf still holds the old CA", RESTARTED, LEAF, OLD_POD, BEFORE,
     CR_SEEN_LEAF, "new", SETTLED, CR_EVIDENCE_STALE, "before the restart"},
    {"restart: an old pod that cannot be reached is stale all the same", RESTARTED, LEAF, OLD_POD, BEFORE,
     CR_SEEN_UNREACHABLE, NULL, LATER, CR_EVIDENCE_STALE, "before the restart"},
    {"restart for trust: an old pod is stale", RESTARTED, TRUST_ONLY, OLD_POD, BEFORE, CR_SEEN_LEAF, "old", SETTLED,
     CR_EVIDENCE_STALE, "before the restart"},
    {"restart: a pod of the old template that started after the change is stale, too", RESTARTED, TRUST_ONLY, OLD_POD,
     AFTER, CR_SEEN_NOTHING, NULL, SETTLED, CR_EVIDENCE_STALE, "before the restart"},
    {"restart: a pod of the old template that has not started is stale", RESTARTED, LEAF, OLD_POD, 0, CR_SEEN_NOTHING,
     NULL, LATER, CR_EVIDENCE_STALE, "before the restart"},

    /* Restart, new pods, leaf changed. */
    {"restart: a new pod with the new leaf is proof", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_LEAF, "new", LATER,
     CR_EVIDENCE_VERIFIED, ""},
    {"restart: a new pod with the old leaf mounted a cached Secret", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_LEAF, "old",
     LATER, CR_EVIDENCE_STALE, "cached Secret"},
    {"restart: a new pod with another leaf is unknown", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_LEAF, "other", SETTLED,
     CR_EVIDENCE_UNKNOWN, "neither the new nor the old"},
    {"restart: a new pod that cannot be reached is unknown", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_UNREACHABLE, NULL,
     SETTLED, CR_EVIDENCE_UNKNOWN, "cannot be reached"},
    {"restart: a new pod that does not speak TLS is unknown", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_NOT_TLS, NULL,
     SETTLED, CR_EVIDENCE_UNKNOWN, "does not speak TLS"},
    {"restart: a new pod without a probe is inferred by its start", RESTARTED, LEAF, NEW_POD, AFTER, CR_SEEN_NOTHING,
     NULL, LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart: a new pod that has not started is unknown", RESTARTED, LEAF, NEW_POD, 0, CR_SEEN_NOTHING, NULL, SETTLED,
     CR_EVIDENCE_UNKNOWN, "not started"},

    /* Restart, new pods, trust only. */
    {"restart for trust: a new pod is inferred, whatever leaf it serves", RESTARTED, TRUST_ONLY, NEW_POD, AFTER,
     CR_SEEN_LEAF, "old", LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart for trust: a new pod without a probe is inferred", RESTARTED, TRUST_ONLY, NEW_POD, AFTER, CR_SEEN_NOTHING,
     NULL, LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart for trust: also when its port cannot be reached", RESTARTED, TRUST_ONLY, NEW_POD, AFTER,
     CR_SEEN_UNREACHABLE, NULL, LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart for trust: not started is unknown", RESTARTED, TRUST_ONLY, NEW_POD, 0, CR_SEEN_NOTHING, NULL, SETTLED,
     CR_EVIDENCE_UNKNOWN, "not started"},

    /* Start times have whole seconds, and clocks differ. */
    {"restart: a start in the same second as the change counts as after it", RESTARTED, TRUST_ONLY, NEW_POD,
     (SINCE + 999) / 1000 * 1000, CR_SEEN_NOTHING, NULL, LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart: an annotated pod that started before the change (A, B, A again) waits for what reloads", RESTARTED,
     TRUST_ONLY, NEW_POD, BEFORE, CR_SEEN_NOTHING, NULL, LATER, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"restart: and is inferred then, so that it never waits for ever", RESTARTED, TRUST_ONLY, NEW_POD, BEFORE,
     CR_SEEN_NOTHING, NULL, SETTLED, CR_EVIDENCE_INFERRED, ""},
};
/* clang-format on */

/* One endpoint, which shows what the row says. */
static void judge(const struct evidence_case *c, int64_t since_ms)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec old = {0};
    cr_strvec_add(&old, "old");
    cr_strvec_add(&old, "older");
    struct cr_verify_endpoint endpoint = {.port = 8443};
    const struct cr_policy_verify verify = {.endpoints = &endpoint, .endpoints_len = 1};
    struct cr_sighting sighting = {.seen = c->seen, .at_ms = c->now};
    snprintf(sighting.leaf, sizeof sighting.leaf, "%s", cr_or_empty(c->leaf));
    const struct cr_sightings_input look = {
        .secret = "web", .leaf = "new", .old = &old, .verify = &verify, .sightings = &sighting, .since_ms = since_ms};
    struct cr_shown_leaf shown;
    cr_sightings_judge(&look, &shown);
    struct cr_evidence_input input = {
        .shown = c->subject == LEAF && c->seen != CR_SEEN_NOTHING ? &shown : NULL,
        .restarted = c->decision == RESTARTED,
        .pod_is_new = c->pod == NEW_POD,
        .pod_started_ms = c->started,
        .since_ms = since_ms,
        .now_ms = c->now,
        .max_delay_ms = DELAY,
    };
    char why[CR_SHOWN_WHY] = "left over";
    enum cr_evidence evidence = cr_evidence_judge(&input, why);
    if (evidence != c->evidence)
        fail_msg("%s: wanted %s, have %s (%s)", c->rule, cr_evidence_name(c->evidence), cr_evidence_name(evidence),
                 why);
    if (*c->why ? strstr(why, c->why) == NULL : why[0] != '\0')
        fail_msg("%s: \"%s\" should say \"%s\"", c->rule, why, c->why);
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        judge(&cases[i], SINCE);
}

static void test_the_second_of_the_change_counts(void **state)
{
    (void)state;
    /* Noted at …000.9 s, started at …000 s as the API writes it: not before. */
    const struct evidence_case c = {"same second", RESTARTED,    TRUST_ONLY,           NEW_POD, SINCE, CR_SEEN_NOTHING,
                                    NULL,          SINCE + 2000, CR_EVIDENCE_INFERRED, ""};
    judge(&c, SINCE + 900);
}

static void test_what_no_endpoint_shows_is_judged_by_time(void **state)
{
    (void)state;
    const struct cr_shown_leaf nothing = {.shown = CR_SHOWN_NOTHING};
    struct cr_evidence_input input = {.shown = &nothing, .pod_started_ms = BEFORE, .since_ms = SINCE, .now_ms = LATER};
    char why[CR_SHOWN_WHY];
    assert_int_equal(cr_evidence_judge(&input, why), CR_EVIDENCE_UNKNOWN);
    assert_non_null(strstr(why, "waits until"));
    input.now_ms = SETTLED;
    assert_int_equal(cr_evidence_judge(&input, why), CR_EVIDENCE_INFERRED);
}

/* What is seen of the CAs, beside what is seen of the leaf. */
/* clang-format off */
static const struct {
    const char *rule;
    enum decision decision;
    enum cr_shown leaf, trust;
    bool alone; /* the CAs are all that changed */
    int64_t now;
    enum cr_evidence evidence;
    const char *why;
} trust_cases[] = {
    {"CAs alone: seen is proof at once", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_NEW, true, LATER, CR_EVIDENCE_VERIFIED, ""},
    {"CAs alone: without the new one it is stale, however late", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_OLD, true, SETTLED, CR_EVIDENCE_STALE, "no CA"},
    {"CAs alone: not asked yet", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_UNKNOWN, true, LATER, CR_EVIDENCE_UNKNOWN, "not asked"},
    {"CAs alone: time tells in the end", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_UNKNOWN, true, SETTLED, CR_EVIDENCE_INFERRED, ""},
    {"CAs alone: what says nothing is judged by time", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_NOTHING, true, LATER, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"both: both were seen", RELOADS, CR_SHOWN_NEW, CR_SHOWN_NEW, false, LATER, CR_EVIDENCE_VERIFIED, ""},
    {"both: an old CA outweighs a new leaf", RELOADS, CR_SHOWN_NEW, CR_SHOWN_OLD, false, LATER, CR_EVIDENCE_STALE, "no CA"},
    {"both: an old leaf outweighs a new CA", RELOADS, CR_SHOWN_OLD, CR_SHOWN_NEW, false, LATER, CR_EVIDENCE_STALE, "old leaf"},
    {"both: a new CA says nothing of a leaf that cannot be seen", RELOADS, CR_SHOWN_NOTHING, CR_SHOWN_NEW, false, LATER, CR_EVIDENCE_UNKNOWN, "waits until"},
    {"both: a new leaf waits for the look at the CA", RELOADS, CR_SHOWN_NEW, CR_SHOWN_UNKNOWN, false, LATER, CR_EVIDENCE_UNKNOWN, "not asked"},
    {"both: but not for ever", RELOADS, CR_SHOWN_NEW, CR_SHOWN_UNKNOWN, false, SETTLED, CR_EVIDENCE_VERIFIED, ""},
    {"both: a leaf that nobody understands is not helped by time", RELOADS, CR_SHOWN_UNKNOWN, CR_SHOWN_UNKNOWN, false, SETTLED, CR_EVIDENCE_UNKNOWN, "old leaf"},
    {"both: nothing to be seen of the CAs", RELOADS, CR_SHOWN_NEW, CR_SHOWN_NOTHING, false, LATER, CR_EVIDENCE_VERIFIED, ""},
    {"restart: seen is better than a start", RESTARTED, CR_SHOWN_NOTHING, CR_SHOWN_NEW, true, LATER, CR_EVIDENCE_VERIFIED, ""},
    {"restart: looked at first, however late", RESTARTED, CR_SHOWN_NOTHING, CR_SHOWN_UNKNOWN, true, SETTLED, CR_EVIDENCE_UNKNOWN, "not asked"},
    {"restart: a start where nothing is seen", RESTARTED, CR_SHOWN_NOTHING, CR_SHOWN_NOTHING, true, LATER, CR_EVIDENCE_INFERRED, ""},
    {"restart: with the old CA it mounted a cached Secret", RESTARTED, CR_SHOWN_NOTHING, CR_SHOWN_OLD, true, LATER, CR_EVIDENCE_STALE, "restarted, but no CA: it mounted"},
    {"restart: leaf and start", RESTARTED, CR_SHOWN_NEW, CR_SHOWN_NOTHING, false, LATER, CR_EVIDENCE_VERIFIED, ""},
};
/* clang-format on */

static void test_what_is_seen_of_trust(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(trust_cases); i++) {
        struct cr_shown_leaf leaf = {.shown = trust_cases[i].leaf, .why = "old leaf"};
        struct cr_shown_leaf trust = {.shown = trust_cases[i].trust};
        snprintf(trust.why, sizeof trust.why, "%s", trust.shown == CR_SHOWN_OLD ? "no CA" : "not asked");
        struct cr_evidence_input input = {.shown = &leaf,
                                          .trust = &trust,
                                          .trust_alone = trust_cases[i].alone,
                                          .restarted = trust_cases[i].decision == RESTARTED,
                                          .pod_is_new = true,
                                          .pod_started_ms = trust_cases[i].decision == RESTARTED ? AFTER : BEFORE,
                                          .since_ms = SINCE,
                                          .now_ms = trust_cases[i].now,
                                          .max_delay_ms = DELAY};
        char why[CR_SHOWN_WHY];
        enum cr_evidence evidence = cr_evidence_judge(&input, why);
        if (evidence != trust_cases[i].evidence || !strstr(why, trust_cases[i].why) || (!*trust_cases[i].why && *why))
            fail_msg("%s: have %s (%s)", trust_cases[i].rule, cr_evidence_name(evidence), why);
    }
}

/* clang-format off */
static const struct notified_case {
    const char *rule;
    enum cr_shown leaf, trust;
    bool alone;
    int64_t now;
    enum cr_evidence evidence;
} notified_cases[] = {
    {"a leaf that was passed on", CR_SHOWN_DELIVERED, CR_SHOWN_NOTHING, false, LATER, CR_EVIDENCE_INFERRED},
    {"CAs that were passed on", CR_SHOWN_NOTHING, CR_SHOWN_DELIVERED, true, LATER, CR_EVIDENCE_INFERRED},
    {"CAs that were not, however late", CR_SHOWN_NOTHING, CR_SHOWN_UNKNOWN, true, SETTLED, CR_EVIDENCE_UNKNOWN},
    {"both: a leaf that is seen does not stand for CAs that were only passed on", CR_SHOWN_NEW, CR_SHOWN_DELIVERED, false, LATER, CR_EVIDENCE_INFERRED},
    {"both: nor for CAs that were not", CR_SHOWN_NEW, CR_SHOWN_UNKNOWN, false, SETTLED, CR_EVIDENCE_UNKNOWN},
    {"both: CAs that were passed on do not stand for a leaf that is not seen", CR_SHOWN_UNKNOWN, CR_SHOWN_DELIVERED, false, SETTLED, CR_EVIDENCE_UNKNOWN},
    {"both: an old leaf", CR_SHOWN_OLD, CR_SHOWN_DELIVERED, false, SETTLED, CR_EVIDENCE_STALE},
    {"both seen", CR_SHOWN_NEW, CR_SHOWN_NEW, false, LATER, CR_EVIDENCE_VERIFIED},
};
/* clang-format on */

static void test_what_a_sidecar_passes_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(notified_cases); i++) {
        const struct notified_case *c = &notified_cases[i];
        struct cr_shown_leaf leaf = {.shown = c->leaf, .why = "leaf"}, trust = {.shown = c->trust, .why = "trust"};
        struct cr_evidence_input input = {.shown = &leaf,
                                          .trust = &trust,
                                          .trust_alone = c->alone,
                                          .trust_notified = true,
                                          .pod_started_ms = BEFORE,
                                          .since_ms = SINCE,
                                          .now_ms = c->now,
                                          .max_delay_ms = DELAY};
        char why[CR_SHOWN_WHY];
        enum cr_evidence evidence = cr_evidence_judge(&input, why);
        bool says = evidence == CR_EVIDENCE_STALE || evidence == CR_EVIDENCE_UNKNOWN;
        if (evidence != c->evidence || says != (why[0] != '\0'))
            fail_msg("%s: have %s (%s)", c->rule, cr_evidence_name(evidence), why);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(cr_evidence_name(CR_EVIDENCE_VERIFIED), "Verified");
    assert_string_equal(cr_evidence_name(CR_EVIDENCE_INFERRED), "Inferred");
    assert_string_equal(cr_evidence_name(CR_EVIDENCE_STALE), "Stale");
    assert_string_equal(cr_evidence_name(CR_EVIDENCE_UNKNOWN), "Unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_the_second_of_the_change_counts),
        cmocka_unit_test(test_what_no_endpoint_shows_is_judged_by_time),
        cmocka_unit_test(test_what_is_seen_of_trust),
        cmocka_unit_test(test_what_a_sidecar_passes_on),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
