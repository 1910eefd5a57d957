#include "evidence/trust_sighting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { SINCE = 1000 * 1000, AT = SINCE + 500, ENDPOINTS = 2, CONTEXTS = 3 };
enum {
    CLIENT = CR_ROLE_BIT(CR_ROLE_CLIENT_CA),
    SERVER = CR_ROLE_BIT(CR_ROLE_SERVER_CA),
    BOTH = CLIENT | SERVER,
};

/* What an endpoint showed beside the names of CAs that it announces. */
static const char SILENT[] = "(does not ask clients for a certificate)";
static const char NAMELESS[] = "(asks, and names no CA)";
static const char GONE[] = "(unreachable)";
static const char MORE[] = "(more names than are read)";

/* CAs are words: "new", "old". "old2/old" has the subject of "old", "!new" has expired, "old?" is remembered without
 * its subject, "#7" has a serial number that shows nothing. */
struct trust_case {
    const char *rule;
    unsigned roles;
    const char *before, *target;
    const char *names[ENDPOINTS];  /* announced by each; up to NULL */
    const char *canary[ENDPOINTS]; /* "new": accepted; "-new": refused; "?new": neither */
    const char *others[ENDPOINTS]; /* not NULL: the endpoint is another Secret's */
    const char *page[CONTEXTS];    /* "file:cas": of a TLS context; a file "" has none */
    const char *trouble;           /* why the page was not read */
    enum cr_shown shown;
    const char *why; /* part of the text; "" for none */
};

/* clang-format off */
static const struct trust_case cases[] = {
    /* A CA comes. */
    {"both are announced", CLIENT, "old", "new old", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"in any order", CLIENT, "old", "new old", {"old new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"the new one is missing", CLIENT, "old", "new old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "port 8440 does not announce the new CA"},
    {"one of two is missing", CLIENT, "old", "new newer old", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "does not announce"},
    {"what else is announced does not matter", CLIENT, "old", "new old", {"new old else"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"only names of others: another bundle", CLIENT, "old", "new old", {"else"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"an old one that is left out does not matter", CLIENT, "old", "new old", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"an expired one need not be announced", CLIENT, "old", "new !late old", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"none but an expired one came", CLIENT, "old", "!late old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"the first trust ever", CLIENT, "", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"who asks nobody says nothing", CLIENT, "old", "new old", {SILENT}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"who names nobody says nothing", CLIENT, "old", "new old", {NAMELESS}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"nor who names too many", CLIENT, "old", "new old", {MORE}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"unreachable", CLIENT, "old", "new old", {GONE}, {0}, {0}, {0}, NULL, CR_SHOWN_UNKNOWN, "port 8440 cannot be reached"},

    /* One name of two CAs. */
    {"two CAs of the target have one name", CLIENT, "old", "new/old old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"but without it neither is there", CLIENT, "old", "new/s newer/s old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "does not announce"},
    {"one renewed under its name", CLIENT, "old", "new/old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"a canary tells them apart", CLIENT, "old", "new/old old", {"old"}, {"new/old"}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"so it does when it is refused", CLIENT, "old", "new/old old", {"old"}, {"-new/old"}, {0}, {0}, NULL, CR_SHOWN_OLD, "refuses a client certificate of the new CA"},

    /* A CA goes. */
    {"exactly the target is left", CLIENT, "new old", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"the one that went is still announced", CLIENT, "new old", "new", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "still announces a CA that was removed"},
    {"a name of nobody is none that went", CLIENT, "new old", "new", {"new else"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"what went had the name of what stays", CLIENT, "new old/new", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"nobody remembers the name of what went", CLIENT, "new old?", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"a canary does not tell what went", CLIENT, "old", "new", {NAMELESS}, {"new"}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},

    /* One for another. */
    {"the new alone", CLIENT, "old", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"the old alone", CLIENT, "old", "new", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "does not announce the new CA"},
    {"both, as in between", CLIENT, "old", "new", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "still announces"},
    {"the name of the old is not known: the new could have had it", CLIENT, "old?", "new", {"new"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},

    /* Canaries. */
    {"accepted, where nobody is named", CLIENT, "old", "new old", {NAMELESS}, {"new"}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"accepted, whatever is named", CLIENT, "old", "new old", {"old"}, {"new"}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"refused, where nobody is named: of which bundle?", CLIENT, "old", "new old", {NAMELESS}, {"-new"}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"refused, where the bundle is meant", CLIENT, "old", "new old", {"new old"}, {"-new"}, {0}, {0}, NULL, CR_SHOWN_OLD, "refuses a client certificate"},
    {"neither", CLIENT, "old", "new old", {"old"}, {"?new"}, {0}, {0}, NULL, CR_SHOWN_OLD, "does not announce"},
    {"of another CA", CLIENT, "old", "new old", {NAMELESS}, {"old"}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"of one of two", CLIENT, "old", "new newer old", {NAMELESS}, {"new"}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},

    /* Several endpoints. */
    {"all have it", CLIENT, "old", "new old", {"new old", "new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"one does not", CLIENT, "old", "new old", {"new old", "old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "port 8441 does not announce"},
    {"one that asks nobody does not count", CLIENT, "old", "new old", {SILENT, "new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"nor one of another bundle", CLIENT, "old", "new old", {"else", "new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"nor one of another Secret", CLIENT, "old", "new old", {"old", "new old"}, {0}, {"x"}, {0}, NULL, CR_SHOWN_NEW, ""},
    {"all of another Secret", CLIENT, "old", "new old", {"new old", "new old"}, {0}, {"x", "x"}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"one that cannot be understood could be this one's", CLIENT, "old", "new old", {"new old", NAMELESS}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"so could one that is unreachable", CLIENT, "old", "new old", {"new old", GONE}, {0}, {0}, {0}, NULL, CR_SHOWN_UNKNOWN, "port 8441 cannot be reached"},
    {"one without it outweighs that", CLIENT, "old", "new old", {GONE, "old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "port 8441"},

    /* The page. */
    {"a client has both", SERVER, "old", "new old", {NULL}, {0}, {0}, {"/certs/ca.crt:new old"}, NULL, CR_SHOWN_NEW, ""},
    {"a client has the old", SERVER, "old", "new old", {NULL}, {0}, {0}, {"/certs/ca.crt:old"}, NULL, CR_SHOWN_OLD, "port 9902/certs does not list the new CA"},
    {"one of two contexts has", SERVER, "old", "new old", {NULL}, {0}, {0}, {"/certs/ca.crt:new old", "/certs/ca.crt:old"}, NULL, CR_SHOWN_OLD, "does not list"},
    {"a file of another mount does not count", SERVER, "old", "new old", {NULL}, {0}, {0}, {"/certs/ca.crt:new old", "/other/ca.crt:old"}, NULL, CR_SHOWN_NEW, ""},
    {"nor one whose name only begins like it", SERVER, "old", "new old", {NULL}, {0}, {0}, {"/certs2/ca.crt:old"}, NULL, CR_SHOWN_NOTHING, ""},
    {"a file of the mount counts, whatever it has", SERVER, "old", "new", {NULL}, {0}, {0}, {"/certs/ca.crt:old"}, NULL, CR_SHOWN_OLD, "does not list"},
    {"inline: by a CA in common", SERVER, "old", "new old", {NULL}, {0}, {0}, {":new old", ":else"}, NULL, CR_SHOWN_NEW, ""},
    {"inline: the old one", SERVER, "old", "new old", {NULL}, {0}, {0}, {":old"}, NULL, CR_SHOWN_OLD, "does not list"},
    {"inline, with nothing in common", SERVER, "old", "new", {NULL}, {0}, {0}, {":old"}, NULL, CR_SHOWN_NOTHING, ""},
    {"no context at all", SERVER, "old", "new old", {NULL}, {0}, {0}, {":"}, NULL, CR_SHOWN_NOTHING, ""},
    {"after a removal exactly the target", SERVER, "new old", "new", {NULL}, {0}, {0}, {":new"}, NULL, CR_SHOWN_NEW, ""},
    {"more than that could be what went", SERVER, "new old", "new", {NULL}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_NOTHING, ""},
    {"a serial number that tells nothing", SERVER, "old", "#7 old", {NULL}, {0}, {0}, {":#7 old"}, NULL, CR_SHOWN_NOTHING, ""},
    {"which is no CA in common either", SERVER, "#7", "new #7", {NULL}, {0}, {0}, {":#7"}, NULL, CR_SHOWN_NOTHING, ""},
    {"an expired one need not be listed", SERVER, "old", "new !late old", {NULL}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_NEW, ""},
    {"it cannot be read", SERVER, "old", "new old", {NULL}, {0}, {0}, {":old"}, "HTTP 404", CR_SHOWN_UNKNOWN, "port 9902/certs cannot be read: HTTP 404"},

    /* Roles. */
    {"a pure client without a page", SERVER, "old", "new old", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"both roles, the endpoint alone", BOTH, "old", "new old", {"new old"}, {0}, {0}, {0}, NULL, CR_SHOWN_NOTHING, ""},
    {"both roles, and it is old", BOTH, "old", "new old", {"old"}, {0}, {0}, {0}, NULL, CR_SHOWN_OLD, "does not announce"},
    {"both roles, endpoint and page", BOTH, "old", "new old", {"new old"}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_NEW, ""},
    {"both roles, the page is old", BOTH, "old", "new old", {"new old"}, {0}, {0}, {":old"}, NULL, CR_SHOWN_OLD, "port 9902/certs"},
    {"both roles, the endpoint is old", BOTH, "old", "new old", {"old"}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_OLD, "port 8440"},
    {"both roles, the page cannot be read", BOTH, "old", "new old", {"new old"}, {0}, {0}, {":x"}, "HTTP 404", CR_SHOWN_UNKNOWN, "cannot be read"},
    {"the page stands for an endpoint that says nothing", BOTH, "old", "new old", {SILENT}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_NEW, ""},
    {"also for one that there is not", CLIENT, "old", "new old", {NULL}, {0}, {0}, {":new old"}, NULL, CR_SHOWN_NEW, ""},
    {"a server's page may be old, too", CLIENT, "old", "new old", {"new old"}, {0}, {0}, {":old"}, NULL, CR_SHOWN_OLD, "port 9902/certs"},
    {"no role, no verdict", 0, "old", "new old", {"old"}, {0}, {0}, {":old"}, NULL, CR_SHOWN_NOTHING, ""},
};
/* clang-format on */

/* --- words to values --- */

static void digest(char out[CR_SHA256_HEX], const char *word)
{
    cr_sha256_hex(word, strlen(word), out);
}

static void set_serial(char out[CR_SERIAL_HEX], const char *word)
{
    char hex[CR_SHA256_HEX];
    digest(hex, word);
    snprintf(out, CR_SERIAL_HEX, "%.32s", hex);
    if (word[0] == '#')
        snprintf(out, CR_SERIAL_HEX, "%s", word + 1);
}

/* word is changed. */
static struct cr_ca ca_of(char *word, bool remembered)
{
    struct cr_ca ca = {.not_after_ms = AT + 1000};
    bool unnamed = strlen(word) && word[strlen(word) - 1] == '?';
    if (unnamed)
        word[strlen(word) - 1] = '\0';
    if (word[0] == '!')
        ca.not_after_ms = AT - 1;
    digest(ca.fingerprint, word);
    set_serial(ca.serial, word);
    const char *name = strchr(word, '/');
    digest(ca.subject, name ? name + 1 : word);
    if (remembered)
        ca.subject[unnamed ? 0 : CR_SUBJECT_REMEMBERED] = ca.serial[0] = '\0';
    return ca;
}

static void fill(struct cr_material *m, const char *words, bool remembered)
{
    cr_autofree char *copy = cr_strdup(words);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        m->trust = cr_reallocarray(m->trust, m->trust_len + 1, sizeof *m->trust);
        m->trust[m->trust_len++] = ca_of(word, remembered);
    }
}

static unsigned char nibble(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void announce(struct cr_announced *announced, const char *words)
{
    CR_CLEANUP(cr_material) struct cr_material names = {0};
    fill(&names, words, false);
    announced->asked = true;
    for (size_t i = 0; i < names.trust_len; i++)
        for (size_t b = 0; b < 32; b++)
            announced->names[i][b] =
                (unsigned char)(nibble(names.trust[i].subject[2 * b]) << 4 | nibble(names.trust[i].subject[2 * b + 1]));
    announced->len = names.trust_len;
}

static void see_endpoint(struct cr_endpoint_trust *seen, const char *names, const char *canary)
{
    *seen = (struct cr_endpoint_trust){.reached = names != GONE};
    if (names == GONE || names == SILENT)
        return;
    announce(&seen->announced, names == NAMELESS || names == MORE ? "" : names);
    seen->announced.more = names == MORE;
    if (!canary)
        return;
    seen->canary = canary[0] == '-' ? CR_CANARY_UNTRUSTED : canary[0] == '?' ? CR_CANARY_UNKNOWN : CR_CANARY_TRUSTED;
    digest(seen->canary_ca, canary + strspn(canary, "-?"));
}

static void add_serials(struct cr_strvec *serials, const char *words)
{
    cr_autofree char *copy = cr_strdup(words);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        char serial[CR_SERIAL_HEX];
        set_serial(serial, word);
        if (*word)
            cr_strvec_add(serials, serial);
    }
}

static void see_context(struct cr_trust_sighting *sighting, const char *text)
{
    sighting->contexts = cr_reallocarray(sighting->contexts, sighting->contexts_len + 1, sizeof *sighting->contexts);
    struct cr_certs_context *context = &sighting->contexts[sighting->contexts_len++];
    *context = (struct cr_certs_context){0};
    const char *cas = strchr(text, ':');
    context->ca_path = cas == text ? NULL : cr_strndup(text, (size_t)(cas - text));
    add_serials(&context->cas, cas + 1);
}

static void see(const struct trust_case *c, struct cr_trust_sighting *sighting)
{
    *sighting = (struct cr_trust_sighting){.at_ms = AT, .page_read = c->page[0] && !c->trouble};
    sighting->endpoints = cr_calloc(ENDPOINTS, sizeof *sighting->endpoints);
    for (; sighting->endpoints_len < ENDPOINTS && c->names[sighting->endpoints_len]; sighting->endpoints_len++)
        see_endpoint(&sighting->endpoints[sighting->endpoints_len], c->names[sighting->endpoints_len],
                     c->canary[sighting->endpoints_len]);
    for (size_t i = 0; i < CONTEXTS && c->page[i]; i++)
        see_context(sighting, c->page[i]);
    snprintf(sighting->words, sizeof sighting->words, "%s", cr_or_empty(c->trouble));
}

/* --- the rules --- */

static char page_path[] = "/certs";

static void judge(const struct trust_case *c, int64_t since_ms, struct cr_shown_leaf *out)
{
    CR_CLEANUP(cr_material) struct cr_material before = {0};
    CR_CLEANUP(cr_material) struct cr_material target = {0};
    CR_CLEANUP(cr_trust_sighting) struct cr_trust_sighting sighting = {0};
    CR_CLEANUP(cr_trust_change) struct cr_trust_change change = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec mounts = {0};
    struct cr_verify_endpoint endpoints[ENDPOINTS] = {{.port = 8440}, {.port = 8441}};
    bool others[ENDPOINTS];
    for (size_t i = 0; i < ENDPOINTS; i++)
        others[i] = c->others[i] != NULL;
    fill(&before, c->before, true);
    fill(&target, c->target, false);
    see(c, &sighting);
    cr_trust_change_make(&before, &target, &change);
    cr_strvec_add(&mounts, "/certs");
    struct cr_policy_verify verify = {.endpoints = endpoints,
                                      .endpoints_len = sighting.endpoints_len,
                                      .certs_port = c->page[0] ? 9902 : 0,
                                      .certs_path = page_path};
    struct cr_trust_question question = {.roles = c->roles,
                                         .change = &change,
                                         .verify = &verify,
                                         .others = others,
                                         .mounts = &mounts,
                                         .since_ms = since_ms,
                                         .sighting = &sighting};
    cr_trust_judge(&question, out);
}

static void what_is_seen_of_trust(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_shown_leaf shown;
        judge(&cases[i], SINCE, &shown);
        if (shown.shown != cases[i].shown || !strstr(shown.why, cases[i].why) || (!*cases[i].why && shown.why[0]) ||
            shown.old_ms != (shown.shown == CR_SHOWN_OLD ? AT : 0))
            fail_msg("%s: got %d, \"%s\", old at %lld", cases[i].rule, shown.shown, shown.why, (long long)shown.old_ms);
    }
}

static void what_was_seen_before_the_change_says_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_shown_leaf shown;
        bool looks =
            cr_trust_can_be_seen(cases[i].roles, &(struct cr_policy_verify){.endpoints_len = cases[i].names[0] != NULL,
                                                                            .certs_port = cases[i].page[0] ? 9902 : 0});
        judge(&cases[i], AT + 1, &shown);
        if (shown.shown != (looks ? CR_SHOWN_UNKNOWN : CR_SHOWN_NOTHING))
            fail_msg("%s: got %d, \"%s\"", cases[i].rule, shown.shown, shown.why);
    }
}

static void a_bundle_too_long_to_be_remembered_can_only_be_seen_missing(void **state)
{
    static const struct {
        const char *names;
        enum cr_shown shown;
    } rows[] = {{"new old", CR_SHOWN_NOTHING}, {"old", CR_SHOWN_OLD}};
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(cr_material) struct cr_material before = {.trust_summary = {.count = 500}};
        CR_CLEANUP(cr_material) struct cr_material target = {0};
        CR_CLEANUP(cr_trust_change) struct cr_trust_change change = {0};
        struct cr_endpoint_trust seen;
        struct cr_verify_endpoint endpoint = {.port = 8440};
        struct cr_shown_leaf shown;
        fill(&target, "new old", false);
        see_endpoint(&seen, rows[i].names, NULL);
        cr_trust_change_make(&before, &target, &change);
        struct cr_trust_sighting sighting = {.at_ms = AT, .endpoints = &seen, .endpoints_len = 1};
        struct cr_policy_verify verify = {.endpoints = &endpoint, .endpoints_len = 1};
        struct cr_trust_question question = {
            .roles = CLIENT, .change = &change, .verify = &verify, .since_ms = SINCE, .sighting = &sighting};
        cr_trust_judge(&question, &shown);
        assert_int_equal(shown.shown, rows[i].shown);
    }
}

static void without_a_probe_nothing_is_seen(void **state)
{
    (void)state;
    CR_CLEANUP(cr_material) struct cr_material target = {0};
    CR_CLEANUP(cr_trust_change) struct cr_trust_change change = {0};
    struct cr_verify_endpoint endpoint = {.port = 8440};
    struct cr_policy_verify verify = {.endpoints = &endpoint, .endpoints_len = 1};
    struct cr_shown_leaf shown;
    fill(&target, "new", false);
    cr_trust_change_make(&(struct cr_material){0}, &target, &change);
    cr_trust_judge(&(struct cr_trust_question){.roles = CLIENT, .change = &change, .verify = &verify}, &shown);
    assert_int_equal(shown.shown, CR_SHOWN_NOTHING);
}

/* --- a client's leaf --- */

static void the_page_shows_a_leaf_that_is_presented(void **state)
{
    static const struct {
        const char *rule;
        const char *contexts[CONTEXTS]; /* leaves */
        const char *old, *trouble;
        int64_t since_ms;
        enum cr_shown shown;
        const char *why;
    } rows[] = {
        {"the new one", {"new"}, "old", NULL, SINCE, CR_SHOWN_NEW, ""},
        {"the old one", {"old"}, "old", NULL, SINCE, CR_SHOWN_OLD, "port 9902/certs still lists the old leaf"},
        {"both", {"new", "old"}, "old", NULL, SINCE, CR_SHOWN_OLD, "still lists"},
        {"neither", {"else", ""}, "old", NULL, SINCE, CR_SHOWN_NOTHING, ""},
        {"the old one is not known", {"new", "old"}, "", NULL, SINCE, CR_SHOWN_NEW, ""},
        {"serial numbers that tell nothing", {"#7"}, "#7", NULL, SINCE, CR_SHOWN_NOTHING, ""},
        {"not read since", {"new"}, "old", NULL, AT + 1, CR_SHOWN_UNKNOWN, "has not been asked yet"},
        {"not read", {NULL}, "old", "refused", SINCE, CR_SHOWN_UNKNOWN, "cannot be read: refused"},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        CR_CLEANUP(cr_trust_sighting)
        struct cr_trust_sighting sighting = {.at_ms = AT, .page_read = !rows[i].trouble};
        struct cr_policy_verify verify = {.certs_port = 9902, .certs_path = page_path};
        char serial[CR_SERIAL_HEX];
        char old[CR_SERIAL_HEX] = "";
        struct cr_shown_leaf shown;
        set_serial(serial, "new");
        if (*rows[i].old)
            set_serial(old, rows[i].old);
        for (size_t k = 0; k < CONTEXTS && rows[i].contexts[k]; k++) {
            see_context(&sighting, ":");
            add_serials(&sighting.contexts[k].leaves, rows[i].contexts[k]);
        }
        snprintf(sighting.words, sizeof sighting.words, "%s", cr_or_empty(rows[i].trouble));
        cr_page_leaf_judge(&sighting, &verify, rows[i].since_ms, serial, old, &shown);
        if (shown.shown != rows[i].shown || !strstr(shown.why, rows[i].why))
            fail_msg("%s: got %d, \"%s\"", rows[i].rule, shown.shown, shown.why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_seen_of_trust),
        cmocka_unit_test(what_was_seen_before_the_change_says_nothing),
        cmocka_unit_test(a_bundle_too_long_to_be_remembered_can_only_be_seen_missing),
        cmocka_unit_test(without_a_probe_nothing_is_seen),
        cmocka_unit_test(the_page_shows_a_leaf_that_is_presented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
