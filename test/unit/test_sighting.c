#include "evidence/sighting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"

enum { SINCE = 1000 * 1000, AT = SINCE + 500, BEFORE = SINCE - 1, ENDPOINTS = 3 };

/* What an endpoint showed. */
static const char NONE[] = "(not TLS)";
static const char GONE[] = "(unreachable)";
static const char UNPROVED[] = "(a certificate, but no proof)";
static const char COSTLY[] = "(over a limit)";
static const char NEVER[] = "(never asked)";
static const char EARLY[] = "(the new leaf, before the change)";
static const char SENT_AWAY[] = "(the new leaf, but the client was refused)";
static const char OLD_SENT_AWAY[] = "(the old leaf, and the client was refused)";

struct shown_case {
    const char *rule;
    const char *seen[ENDPOINTS];    /* up to NULL */
    const char *demands[ENDPOINTS]; /* secretName of the endpoint */
    enum cr_shown shown;
    const char *why;  /* part of the text; "" for none */
    const char *asks; /* NULL: for names that the new leaf is for */
};

/* The Secret is "web": its leaf is "new", was "old" and "older". "other" and "other-old" are leaves of the Secret
 * "admin", of the same policy; "both" is new here and settled
 * there. */
/* clang-format off */
static const struct shown_case cases[] = {
    /* One endpoint. */
    {"the new leaf", {"new"}, {0}, CR_SHOWN_NEW, ""},
    {"an old leaf", {"old"}, {0}, CR_SHOWN_OLD, "port 8440 still serves the old leaf"},
    {"a leaf of long ago", {"older"}, {0}, CR_SHOWN_OLD, "still serves the old leaf"},
    {"a leaf of nobody", {"foreign"}, {0}, CR_SHOWN_UNKNOWN, "neither the new nor the old"},
    {"a leaf of another Secret says nothing about this one", {"other"}, {0}, CR_SHOWN_NOTHING, ""},
    {"nor does its old one", {"other-old"}, {0}, CR_SHOWN_NOTHING, ""},
    {"unreachable could be anybody's", {GONE}, {0}, CR_SHOWN_UNKNOWN, "port 8440 cannot be reached: nobody there"},
    {"so could what is not TLS", {NONE}, {0}, CR_SHOWN_UNKNOWN, "does not speak TLS"},
    {"never asked", {NEVER}, {0}, CR_SHOWN_UNKNOWN, "port 8440 has not been asked yet"},
    {"asked before the change only", {EARLY}, {0}, CR_SHOWN_UNKNOWN, "has not been asked yet"},
    {"no endpoint at all", {NULL}, {0}, CR_SHOWN_NOTHING, ""},

    /* Several. */
    {"all show the new leaf", {"new", "new", "new"}, {0}, CR_SHOWN_NEW, ""},
    {"one of another Secret does not count", {"new", "other"}, {0}, CR_SHOWN_NEW, ""},
    {"wherever it stands", {"other", "other-old", "new"}, {0}, CR_SHOWN_NEW, ""},
    {"all of another Secret: judged by time", {"other", "other-old"}, {0}, CR_SHOWN_NOTHING, ""},
    {"one old leaf among new ones is stale", {"new", "old", "new"}, {0}, CR_SHOWN_OLD, "port 8441 (name1.example) still"},
    {"one old leaf outweighs what is unknown", {GONE, NONE, "old"}, {0}, CR_SHOWN_OLD, "port 8442 (name2.example) still"},
    {"in any order", {"old", GONE}, {0}, CR_SHOWN_OLD, "port 8440 still"},
    {"one that is unreachable could be this Secret's", {"new", GONE}, {0}, CR_SHOWN_UNKNOWN,
     "port 8441 (name1.example) cannot be reached"},
    {"one that is not TLS, too", {NONE, "new"}, {0}, CR_SHOWN_UNKNOWN, "port 8440 does not speak TLS"},
    {"one that was not asked, too", {"new", "new", NEVER}, {0}, CR_SHOWN_UNKNOWN, "port 8442 (name2.example) has not"},
    {"a foreign leaf, too", {"new", "foreign"}, {0}, CR_SHOWN_UNKNOWN, "port 8441 (name1.example) serves a leaf"},
    {"the first that is unknown is told", {NONE, GONE}, {0}, CR_SHOWN_UNKNOWN, "port 8440"},
    {"another Secret's leaf and an unreachable one", {"other", GONE}, {0}, CR_SHOWN_UNKNOWN, "cannot be reached"},

    /* secretName. */
    {"an endpoint of this Secret shows it", {"new"}, {"web"}, CR_SHOWN_NEW, ""},
    {"or the old one", {"old"}, {"web"}, CR_SHOWN_OLD, "still serves"},
    {"or must, and shows another Secret's", {"other"}, {"web"}, CR_SHOWN_UNKNOWN, "serves the leaf of another Secret"},
    {"an endpoint of another Secret does not count", {GONE}, {"admin"}, CR_SHOWN_NOTHING, ""},
    {"even when it shows the old leaf of this one", {"new", "old"}, {"web", "admin"}, CR_SHOWN_NEW, ""},
    {"the unreachable one is the other's", {"new", GONE}, {"web", "admin"}, CR_SHOWN_NEW, ""},
    {"one with a name, one without", {GONE, "new"}, {"web", NULL}, CR_SHOWN_UNKNOWN, "port 8440 cannot be reached"},

    /* The name that is asked for at all endpoints but the first. */
    {"the new leaf is not for the name", {"new", "new"}, {0}, CR_SHOWN_UNKNOWN,
     "port 8441 (nowhere.example) serves the new leaf, which is not for that name", "nowhere.example"},
    {"nor where the Secret is certain", {"new", "new"}, {NULL, "web"}, CR_SHOWN_UNKNOWN, "not for that name", "nowhere.example"},
    {"one that shows another Secret's leaf is not of this one", {"new", "other"}, {0}, CR_SHOWN_NEW, "", "nowhere.example"},
    {"an old leaf is old, whatever it is for", {"new", "old"}, {0}, CR_SHOWN_OLD, "still serves", "nowhere.example"},
    {"a client certificate that is refused is told first", {"new", SENT_AWAY}, {0}, CR_SHOWN_UNKNOWN, "refuses the client",
     "nowhere.example"},
    {"a wildcard is for it", {"new", "new"}, {0}, CR_SHOWN_NEW, "", "a.web.example"},

    /* One leaf of two Secrets. */
    {"a leaf of two Secrets speaks for neither", {"both"}, {0}, CR_SHOWN_NOTHING, ""},
    {"unless the endpoint names one", {"both"}, {"web"}, CR_SHOWN_NEW, ""},

    /* The client certificate. */
    {"a certificate without proof of its key is neither new nor old", {UNPROVED}, {0}, CR_SHOWN_UNKNOWN,
     "port 8440 has not proved a leaf: nobody there"},
    {"nor is what is over a limit", {"new", COSTLY}, {0}, CR_SHOWN_UNKNOWN,
     "port 8441 (name1.example) is over a limit of probes: nobody there"},
    {"who refuses our client is not verified", {SENT_AWAY}, {0}, CR_SHOWN_UNKNOWN,
     "port 8440 refuses the client certificate: alert unknown CA"},
    {"also one of several", {"new", SENT_AWAY}, {0}, CR_SHOWN_UNKNOWN, "refuses the client certificate"},
    {"an old leaf is old whatever becomes of the client", {OLD_SENT_AWAY}, {0}, CR_SHOWN_OLD, "still serves the old leaf"},
};
/* clang-format on */

static struct cr_sighting sighting_of(const char *seen)
{
    struct cr_sighting sighting = {.seen = CR_SEEN_LEAF, .at_ms = AT};
    const char *leaf = seen;
    if (seen == NEVER)
        return (struct cr_sighting){0};
    if (seen == NONE || seen == GONE || seen == UNPROVED || seen == COSTLY) {
        sighting.seen = seen == NONE       ? CR_SEEN_NOT_TLS
                        : seen == GONE     ? CR_SEEN_UNREACHABLE
                        : seen == UNPROVED ? CR_SEEN_UNPROVED
                                           : CR_SEEN_TOO_COSTLY;
        snprintf(sighting.words, sizeof sighting.words, "nobody there");
        return sighting;
    }
    if (seen == EARLY)
        sighting.at_ms = BEFORE;
    if (seen == SENT_AWAY || seen == OLD_SENT_AWAY) {
        sighting.client = CR_CLIENT_REFUSED;
        snprintf(sighting.words, sizeof sighting.words, "alert unknown CA");
    }
    if (seen == EARLY || seen == SENT_AWAY)
        leaf = "new";
    if (seen == OLD_SENT_AWAY)
        leaf = "old";
    snprintf(sighting.leaf, sizeof sighting.leaf, "%s", leaf);
    return sighting;
}

static void fill(struct cr_strvec *leaves, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_strvec_add(leaves, names[i]);
}

static void judge(const struct shown_case *c)
{
    static const char *const old_leaves[] = {"old", "older"};
    static const char *const other_leaves[] = {"other", "other-old", "both"};
    static char names[ENDPOINTS][16] = {"", "name1.example", "name2.example"};
    CR_CLEANUP(cr_strvec) struct cr_strvec old = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec others = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec leaf_names = {0};
    for (size_t i = 1; i < ENDPOINTS; i++)
        cr_strvec_add(&leaf_names, names[i]);
    cr_strvec_add(&leaf_names, "*.web.example");
    fill(&old, old_leaves, cr_array_len(old_leaves));
    fill(&others, other_leaves, cr_array_len(other_leaves));
    struct cr_verify_endpoint endpoints[ENDPOINTS] = {0};
    struct cr_sighting sightings[ENDPOINTS];
    char demanded[ENDPOINTS][8] = {0};
    char asked[32];
    snprintf(asked, sizeof asked, "%s", cr_or_empty(c->asks));
    size_t len = 0;
    for (; len < ENDPOINTS && c->seen[len]; len++) {
        snprintf(demanded[len], sizeof demanded[len], "%s", cr_or_empty(c->demands[len]));
        endpoints[len] = (struct cr_verify_endpoint){.port = 8440 + (int)len,
                                                     .server_name = len ? (c->asks ? asked : names[len]) : NULL,
                                                     .secret_name = c->demands[len] ? demanded[len] : NULL};
        sightings[len] = sighting_of(c->seen[len]);
    }
    const struct cr_policy_verify verify = {.endpoints = endpoints, .endpoints_len = len};
    const struct cr_sightings_input input = {.secret = "web",
                                             .leaf = strcmp(cr_or_empty(c->seen[0]), "both") == 0 ? "both" : "new",
                                             .names = &leaf_names,
                                             .old = &old,
                                             .others = &others,
                                             .verify = &verify,
                                             .sightings = sightings,
                                             .since_ms = SINCE};
    struct cr_shown_leaf shown;
    memset(&shown, 0xaa, sizeof shown);
    cr_sightings_judge(&input, &shown);
    if (shown.shown != c->shown)
        fail_msg("%s: %d (%s)", c->rule, (int)shown.shown, shown.why);
    if (*c->why ? !strstr(shown.why, c->why) : shown.why[0] != '\0')
        fail_msg("%s: \"%s\" should say \"%s\"", c->rule, shown.why, c->why);
    if ((shown.old_ms == AT) != (c->shown == CR_SHOWN_OLD))
        fail_msg("%s: old at %lld", c->rule, (long long)shown.old_ms);
}

static void endpoints_count_for_the_secret_of_the_leaf_they_show(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        judge(&cases[i]);
}

/* The latest sight of an old leaf counts for the deadline. */
static void the_last_sight_of_an_old_leaf_is_reported(void **state)
{
    (void)state;
    CR_CLEANUP(cr_strvec) struct cr_strvec old = {0};
    cr_strvec_add(&old, "old");
    struct cr_verify_endpoint endpoints[2] = {{.port = 1}, {.port = 2}};
    const struct cr_policy_verify verify = {.endpoints = endpoints, .endpoints_len = 2};
    static const int64_t seen_ms[][2] = {{SINCE + 1, SINCE + 9}, {SINCE + 9, SINCE + 1}};
    for (size_t i = 0; i < cr_array_len(seen_ms); i++) {
        const struct cr_sighting sightings[2] = {{.seen = CR_SEEN_LEAF, .at_ms = seen_ms[i][0], .leaf = "old"},
                                                 {.seen = CR_SEEN_LEAF, .at_ms = seen_ms[i][1], .leaf = "old"}};
        const struct cr_sightings_input input = {
            .secret = "web", .leaf = "new", .old = &old, .verify = &verify, .sightings = sightings, .since_ms = SINCE};
        struct cr_shown_leaf shown;
        cr_sightings_judge(&input, &shown);
        assert_int_equal(shown.old_ms, SINCE + 9);
    }
}

/* Names and words may be long; the text fits, and ends with a zero. */
static void long_names_and_words_are_cut(void **state)
{
    (void)state;
    char name[254];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct cr_verify_endpoint endpoint = {.port = 65535, .server_name = name};
    const struct cr_policy_verify verify = {.endpoints = &endpoint, .endpoints_len = 1};
    struct cr_sighting sighting = {.seen = CR_SEEN_UNREACHABLE, .at_ms = AT};
    memset(sighting.words, 'w', sizeof sighting.words - 1);
    const struct cr_sightings_input input = {
        .secret = "web", .leaf = "new", .verify = &verify, .sightings = &sighting, .since_ms = SINCE};
    struct cr_shown_leaf shown;
    cr_sightings_judge(&input, &shown);
    assert_int_equal(strnlen(shown.why, sizeof shown.why), sizeof shown.why - 1);
    assert_non_null(strstr(shown.why, "cannot be reached: www"));
}

/* As the policy has it: then the status says that the name was not found. */
static void a_name_that_is_only_reported_does_not_count(void **state)
{
    (void)state;
    char name[] = "nowhere.example";
    struct cr_verify_endpoint endpoint = {.port = 1, .server_name = name};
    const struct cr_policy_verify verify = {.endpoints = &endpoint, .endpoints_len = 1};
    struct cr_sighting sighting = {.seen = CR_SEEN_LEAF, .at_ms = AT, .leaf = "new"};
    struct cr_sightings_input input = {
        .secret = "web", .leaf = "new", .verify = &verify, .sightings = &sighting, .since_ms = SINCE};
    struct cr_shown_leaf shown;
    input.on_missing_name = CR_ON_MISSING_NAME_REPORT;
    cr_sightings_judge(&input, &shown);
    assert_int_equal(shown.shown, CR_SHOWN_NEW);
    input.on_missing_name = CR_ON_MISSING_NAME_HOLD;
    cr_sightings_judge(&input, &shown);
    assert_int_equal(shown.shown, CR_SHOWN_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_is_only_reported_does_not_count),
        cmocka_unit_test(endpoints_count_for_the_secret_of_the_leaf_they_show),
        cmocka_unit_test(the_last_sight_of_an_old_leaf_is_reported),
        cmocka_unit_test(long_names_and_words_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
