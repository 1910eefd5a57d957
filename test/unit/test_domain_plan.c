/* The plan of a trust domain, rule by rule. */
#include "trust/rules/domain_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/domainletters.h"

#define TRUSTING  CR_STAGE_TRUSTING
#define SWITCHING CR_STAGE_SWITCHING
#define RETIRING  CR_STAGE_RETIRING
#define IDLE      CR_STAGE_IDLE
#define HELD      CR_STAGE_HELD

/* clang-format off */
static const struct plan_case cases[] = {
    /* a domain begins */
    {"there is no CA at all: it is made", "issue", "", {{.leaf = ""}}, "first", IDLE},
    {"a new domain is published at once, what has no leaf last", "issue", "A", {{.leaf = ""}, {.evidence = ""}},
     "0:a=I:a 1:a", TRUSTING},
    {"killed in the middle of that, the other leaf has what the first has", "issue", "A",
     {{"a", "1a", "a-"}, {.leaf = ""}, {.evidence = ""}}, "1:a=I:a 2:a", TRUSTING},
    {"a source is taken over with its CA", "", "a", {{.leaf = "", .source = "1a"}}, "0:a=M", TRUSTING},
    {"a source whose CA nobody knows is refused", "", "a", {{.leaf = "", .source = "1"}, {"a", NULL, "*"}}, "", IDLE},
    {"all as wanted: nothing", "issue", "A", {{"a", "1a", "*"}, {"a", NULL, "*"}}, "", IDLE},

    /* trust first */
    {"the next CA goes into every bundle, and no leaf with it", "issue staging", "AB",
     {{"a", "1a", "*"}, {"a", NULL, "*"}}, "0:ba 1:ba", TRUSTING},
    {"a leaf waits for the last one who does not trust it", "issue staging", "AB",
     {{"ba", "1a", "*"}, {"ba", NULL, "a"}}, "", TRUSTING},
    {"a bundle that has not arrived as a whole may have arrived for that CA", "issue staging", "AB",
     {{"ba", "1a", "ab"}, {"ba", NULL, "ba"}}, "0:ba=I:bs", SWITCHING},
    {"all trust it: all leaves, and what was there is kept", "issue staging", "AB",
     {{"ba", "1a", "*"}, {"ba", "2a", "*"}, {"ba", NULL, "*"}}, "0:ba=I:bs 1:ba=I:bs", SWITCHING},
    {"a source's leaf of another CA: its CA first", "", "ab", {{"a", "1a", "*", "2b"}, {"a", NULL, "*"}},
     "0:ba 1:ba", TRUSTING},
    {"then the leaf", "", "ab", {{"ba", "1a", "*", "2b"}, {"ba", NULL, "*"}}, "0:ba=Ms", SWITCHING},
    {"a leaf of the same CA waits for nobody", "", "a", {{"a", "1a", "*", "2a"}, {"a", NULL, ""}}, "0:a=Ms", TRUSTING},
    {"a leaf that has ended cannot be lost", "", "ab", {{"ba", "1x", "", "2b"}, {"ba", NULL, "a"}}, "0:ba=M", TRUSTING},
    {"cross-signed it has nothing to wait for", "issue cross staging", "AB", {{"a", "1a", "*"}, {"a", NULL, ""}},
     "1:ba 0:ba=I:bxs", TRUSTING},
    {"without need it is not cross-signed", "issue cross staging", "AB", {{"ba", "1a", "*"}, {"ba", NULL, "*"}},
     "0:ba=I:bs", SWITCHING},
    {"what cannot be read may have readers", "issue staging", "AB", {{"ba", "1a", "*"}, {"?", NULL, NULL}}, "1:ba",
     TRUSTING},
    {"an object that may not be written blocks what it does not trust", "issue staging", "AB",
     {{"ba", "1a", "*"}, {"a", NULL, "*", .refused = CR_TRUST_FORBIDDEN}}, "", TRUSTING},
    {"one that is not there does not", "issue staging", "AB",
     {{"ba", "1a", "*"}, {.evidence = "", .refused = CR_TRUST_NO_CONSENT}}, "0:ba=I:bs", SWITCHING},
    {"one that was never ours does not", "issue staging", "AB",
     {{"ba", "1a", "*"}, {"", NULL, NULL, .refused = CR_TRUST_NOT_OURS}}, "0:ba=I:bs", SWITCHING},
    {"a refused key keeps its leaf, its bundle grows", "issue staging", "AB",
     {{"a", "1a", "*", .refused = CR_TRUST_KEY_NOT_ACCEPTED}, {"a", NULL, "*"}}, "0:ba 1:ba", TRUSTING},
    {"what another program overwrites gets back the CA of a leaf in use, and keeps that program's leaf", "issue staging",
     "AB", {{"a", "1a", "*", .refused = CR_TRUST_OTHER_WRITER}, {"ba", "2b", "*"}}, "0:ba", TRUSTING},
    {"but none that no leaf needs yet, so no leaf follows", "issue staging", "AB",
     {{"a", "1a", "*", .refused = CR_TRUST_OTHER_WRITER}, {"ba", "2a", "*"}}, "", TRUSTING},
    {"nor is one taken from it", "issue converged", "B",
     {{"ba", "1b", "*", .refused = CR_TRUST_OTHER_WRITER}, {"b", "2b", "*"}}, "", IDLE},

    /* a leaf that is too costly to verify */
    {"it may be of the CA that would issue another", "issue", "A", {{"a", "1$", "*"}, {"a", "2a", "*"}}, "", IDLE},
    {"one that all trust takes its place", "", "ab", {{"ba", "1$", "*", "2b"}, {"ba", "3a", "*", "3a"}}, "0:ba=M",
     SWITCHING},
    {"and no other", "", "ab", {{"ba", "1$", "*", "2b"}, {"ba", "3a", "a", "3a"}}, "", TRUSTING},
    {"so it holds the distrust of no CA", "issue staging distrust-a overdue", "AB", {{"ba", "1$", "*"}, {"ba", "2b", "*"}},
     "0:ba=I:b", SWITCHING},
    {"by another spec it is issued, as others are", "issue respec", "A", {{"a", "1$", "*"}, {"a", "2a", "*"}}, "0:a=I:a 1:a=I:as", SWITCHING},
    {"once it has ended, it is", "", "ab", {{"ba", "1$x", "*", "2b"}, {"ba", "3a", "*", "3a"}}, "0:ba=M", SWITCHING},
    {"it may need any CA, so none goes", "converged", "ab", {{"ba", "1b", "*", "1b"}, {"ba", "2$", "*", "2$"}}, "", IDLE},
    {"new ones come", "converged", "ab", {{"a", "1a", "*", "2b"}, {"a", "2$", "*", "2$"}}, "0:ba 1:ba", TRUSTING},

    /* why a leaf is issued */
    {"its life", "issue", "A", {{"a", "1a~", "*"}}, "0:a=I:as", SWITCHING},
    {"its life, while the next CA has not arrived: by the current one", "issue staging", "AB", {{"ba", "1a~", "a"}},
     "0:ba=I:as", TRUSTING},
    {"another spec", "issue respec", "A", {{"a", "1a", "*"}}, "0:a=I:as", SWITCHING},
    {"it is broken, and not kept", "issue", "A", {{"a", "1a!", "*"}}, "0:a=I:a", SWITCHING},
    {"it is broken: another as those of others, whoever is known to trust it", "issue", "A",
     {{"a", "1a!", ""}, {"a", "2a", ""}}, "0:a=I:a", TRUSTING},
    {"it is broken: one of the next CA waits", "issue staging", "AB", {{"ba", "1a!", "a"}, {"ba", "2a", "a"}},
     "0:ba=I:a", TRUSTING},
    {"a token", "issue token:Leaves", "A", {{"a", "1a", "*"}}, "0:a=I:as", SWITCHING},
    {"a token is not handled while a leaf that it is for may not be written", "issue token:Leaves", "A",
     {{"a", "1a", "*", .refused = CR_TRUST_FORBIDDEN}}, "", IDLE},
    {"the same token is on it", "issue token:Leaves done", "A", {{"a", "1a", "*"}}, "record", IDLE},
    {"a token that was handled", "issue token:Leaves handled", "A", {{"a", "1a", "*"}}, "", IDLE},

    /* why there is another CA */
    {"a token", "issue token:CA", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"its life", "issue ca-due", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"it is broken", "issue ca-broken", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"the next one has ended before it could be promoted", "issue ca-broken staging next-broken expired-a expired-b",
     "AB", {{"ba", "1b", "*"}}, "next", IDLE},
    {"it is broken otherwise: a person is asked", "issue ca-broken staging next-broken", "AB", {{"ba", "1b", "*"}}, "",
     IDLE},
    {"never while one is staged", "issue ca-due staging", "AB", {{"ba", "1a", "a"}}, "", TRUSTING},
    {"its token is handled before staging can go", "issue token:CA staged-for-it staging", "AB", {{"ba", "1a", "a"}},
     "record", TRUSTING},

    /* the end of a rotation */
    {"all leaves are the next one's and have arrived: it is the current one", "issue staging was-switching", "AB",
     {{"ba", "1b", "*", .previous = "2a"}, {"ba", NULL, "*"}}, "promote", SWITCHING},
    {"not before they have", "issue staging was-switching", "AB", {{"ba", "1b", "*-"}}, "", HELD},
    {"then staging goes", "issue staging was-switching", "aB", {{"ba", "1b", "*", .previous = "2a"}}, "delete", SWITCHING},
    {"not while something has not arrived", "issue staging was-switching", "aB", {{"ba", "1b", "*-"}}, "", HELD},

    /* what goes */
    {"NextRotation: nothing now", "issue", "aB", {{"ba", "1b", "*"}}, "", IDLE},
    {"NextRotation: in the write that begins the next", "issue staging", "aBC", {{"ba", "1b", "*"}, {"ba", NULL, "*"}},
     "0:cb 1:cb", TRUSTING},
    {"NextRotation: not while something has not arrived", "issue staging", "aBC",
     {{"ba", "1b", "*"}, {"ba", NULL, "b"}}, "0:cba 1:cba", TRUSTING},
    {"NextRotation: who was not written when it was begun keeps what it has", "issue staging", "aBC",
     {{"cb", "1b", "b"}, {"ba", NULL, "*"}}, "1:cba", TRUSTING},
    {"NextRotation: not while a reader trusts a leaf by no other CA", "issue staging cross", "aBC",
     {{"ba", "1ab", "*"}, {"a", NULL, "*"}}, "0:cba 1:cba", TRUSTING},
    {"NextRotation: retainPrevious 0, and still what a leaf needs", "issue staging retain0", "aBC",
     {{"ba", "1b", "*"}, {"ba", "2a", "*"}}, "0:cba 1:cba", TRUSTING},
    {"Converged: at the end of this one", "issue converged", "aB", {{"ba", "1b", "*"}, {"ba", NULL, "*"}}, "0:b 1:b",
     RETIRING},
    {"Converged: not before staging has gone", "issue converged staging was-switching", "aB", {{"ba", "1b", "*"}},
     "delete", SWITCHING},
    {"Converged: not while a leaf needs it", "converged", "ab",
     {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}}, "", IDLE},
    {"Converged: not while a reader trusts a leaf by no other CA", "issue converged cross", "aB",
     {{"ba", "1ab", "*"}, {"a", NULL, "*"}}, "1:ba", TRUSTING},
    {"Converged: not while something has not arrived", "issue converged", "aB", {{"ba", "1b", "*"}, {"ba", NULL, "b"}},
     "", RETIRING},
    {"Never: only what has expired", "issue never expired-a", "aB", {{"ba", "1b", "*"}}, "0:b", RETIRING},
    {"of three CAs in use none goes", "", "abc",
     {{"ba", "1a", "*", "4c"}, {"ba", "2b", "*", "2b"}, {"ba", NULL, "*"}}, "0:cba 1:cba 2:cba", TRUSTING},
    {"a previous leaf that can be put back needs its CA", "issue staging converged was-switching", "aBC",
     {{"cba", "1c", "*", .previous = "2a"}}, "promote", SWITCHING},
    {"a new target gets all that is published", "issue", "aB", {{"ba", "1b", "*"}, {.evidence = ""}}, "1:ba", TRUSTING},

    /* put back */
    {"first it is rejected", "token:PreviousLeaves staging", "ab", {{"ba", "2b", "*-", "2b", "1a"}}, "0:ba=P record",
     SWITCHING},
    {"one that may not be written is tried again", "token:PreviousLeaves staging", "ab",
     {{"ba", "2b", "*-", "2b", "1a", .refused = CR_TRUST_FORBIDDEN}}, "", SWITCHING},
    {"also where a consumer failed for what is published", "token:PreviousLeaves staging", "ab",
     {{"ba", "2b", "*-#", "2b", "1a"}}, "0:ba=P record", HELD},
    {"and past the deadline", "token:PreviousLeaves staging was-switching", "ab", {{"ba", "2b", "*-", "2b", "1a"}},
     "0:ba=P record", SWITCHING},
    {"nothing is kept: that is told", "token:PreviousLeaves", "b", {{"b", "2b", "*", "2b"}}, "record", IDLE},

    /* distrusted */
    {"it is put on record first", "issue distrust-a new", "A", {{"a", "1a", "*"}}, "next record", IDLE},
    {"the CA in use is replaced", "issue distrust-a", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"trust first", "issue staging distrust-a", "AB", {{"a", "1a", "*"}, {"a", NULL, "*"}}, "0:ba 1:ba", TRUSTING},
    {"a leaf waits for the last one who does not trust it", "issue staging distrust-a", "AB",
     {{"ba", "1a", "*"}, {"ba", NULL, "a"}}, "", TRUSTING},
    {"then leaves, also where a consumer has failed", "issue staging distrust-a", "AB",
     {{"ba", "1a", "*#"}, {"ba", NULL, "*"}}, "0:ba=I:bs", HELD},
    {"it goes when all has arrived, with NextRotation", "issue distrust-a", "aB",
     {{"ba", "1b", "*"}, {"ba", NULL, "*"}}, "0:b 1:b", RETIRING},
    {"with Never", "issue never distrust-a", "aB", {{"ba", "1b", "*"}, {"ba", NULL, "*"}}, "0:b 1:b", RETIRING},
    {"and others stay", "issue distrust-a", "abC", {{"cba", "1c", "*"}}, "0:cb", RETIRING},
    {"not while something has not arrived", "issue distrust-a", "aB", {{"ba", "1b", "*"}, {"ba", NULL, "b"}}, "",
     RETIRING},
    {"not while a reader trusts a leaf by no other CA", "issue cross distrust-a", "aB",
     {{"ba", "1ab", "*"}, {"a", NULL, "*"}}, "1:ba", TRUSTING},
    {"one that may not be written keeps its own, and no other", "issue cross distrust-a", "aB",
     {{"ba", "1ab", "*"}, {"a", NULL, "*", .refused = CR_TRUST_FORBIDDEN}}, "0:b", RETIRING},
    {"not while a leaf has not", "issue distrust-a was-switching", "aB", {{"ba", "1b", "*-"}}, "", HELD},
    {"not before another CA is the current one", "issue staging was-switching distrust-a", "AB",
     {{"ba", "1b", "*", .previous = "2a"}}, "promote", SWITCHING},
    {"a leaf that could be put back does not keep it", "issue staging was-switching distrust-a", "aB",
     {{"ba", "1b", "*", .previous = "2a"}}, "0:b", RETIRING},
    {"nor is it put back", "token:PreviousLeaves staging distrust-a", "ab", {{"ba", "2b", "*", "2b", "1a"}},
     "0:b record", RETIRING},
    {"what has it no more does not get it", "issue distrust-a", "aB", {{"ba", "1b", "b"}, {"b", NULL, "*"}}, "",
     RETIRING},
    {"a source without another leaf holds it", "distrust-a", "ab", {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}},
     "", IDLE},
    {"until the deadline", "distrust-a overdue", "ab", {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}}, "0:b 1:b",
     RETIRING},
    {"and it does not come back with it", "distrust-a overdue", "ab", {{"b", "1b", "*", "1b"}, {"b", "2a", "*", "2a"}},
     "", IDLE},
    {"a leaf of it is not published", "distrust-a", "ab", {{"b", "1b", "*", "2a"}}, "", IDLE},
    {"one that may not be written holds it", "issue staging distrust-a", "AB",
     {{"ba", "1a", "*"}, {"a", NULL, "*", .refused = CR_TRUST_FORBIDDEN}}, "", TRUSTING},
    {"until the deadline, too", "issue staging distrust-a overdue", "AB",
     {{"ba", "1a", "*"}, {"a", NULL, "*", .refused = CR_TRUST_FORBIDDEN}}, "0:ba=I:bs", SWITCHING},
    {"which is no time for other leaves", "distrust-a overdue", "abc",
     {{"ba", "1b", "*", "2c"}, {"ba", NULL, "*", .refused = CR_TRUST_FORBIDDEN}}, "0:cb", TRUSTING},
    {"nor for consumers: who has not got the new one is waited for", "issue staging distrust-a overdue", "AB",
     {{"ba", "1a", "*"}, {"ba", NULL, "a"}}, "", TRUSTING},
    {"without another CA it stays, or nobody would trust anybody", "distrust-a overdue", "a",
     {{"a", "1a", "*", "1a"}}, "", IDLE},
    {"the next CA: it goes", "issue staging distrust-b", "AB", {{"ba", "1a", "*"}}, "0:a", RETIRING},
    {"the next CA: another is made", "issue staging token:CA distrust-b", "AB", {{"ba", "1a", "*"}}, "next", IDLE},
    {"what somebody else has put there goes at once, and reaches nobody who is new", "issue distrust-a stray", "aB",
     {{"ba", "1b", ""}, {"b", "2b", ""}, {.evidence = ""}}, "0:b 2:b", TRUSTING},
    {"unless a leaf would be lost", "issue distrust-a stray", "aB", {{"ba", "1b", ""}, {"ba", "2a", ""}}, "", TRUSTING},
    {"suspended, nothing is distrusted", "issue suspend distrust-a", "aB", {{"ba", "1b", "*"}}, "", IDLE},

    /* nothing is done */
    {"suspended", "issue staging suspend", "AB", {{"a", "1a", "*"}}, "", IDLE},
};
/* clang-format on */

static void check(const struct plan_case *c)
{
    CR_CLEANUP(scene) struct scene *s = scene_new(c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&s->world, &plan);
    cr_autofree char *got = describe(s, &plan);
    if (!cr_streq(got, c->plan) || plan.status.stage != c->stage)
        fail_msg("%s: '%s' in %s, and not '%s' in %s", c->rule, got, cr_stage_name(plan.status.stage), c->plan,
                 cr_stage_name(c->stage));
}

static void what_is_done(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
