/* The plan of a trust domain, rule by rule. CAs are letters, the later the newer; a leaf is a digit and the CAs that it
 * verifies against. */
#include "rotation/domain_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"

enum { CAS = 18, OBJECTS = 4, HOUR = 3600 * 1000 };
static const int64_t now_ms = 1800000000000;
static const int64_t year_ms = 365LL * 24 * HOUR;

/* --- a world of few letters --- */

struct object_row {
    const char *bundle;   /* NULL: the object is not there */
    const char *leaf;     /* NULL: a trust target; "": none is published */
    const char *evidence; /* "*": all has arrived; else the CAs that everybody trusts; "-" behind: not the leaf */
    const char *source;
    const char *previous;
    const char *refused;
};

struct plan_case {
    const char *rule;
    const char *spec; /* words: issue, cross, converged, never, retain0, staging, suspend, token:CA, handled, … */
    const char *cas;  /* letters at hand; current and next one of ISSUE: upper case, the last is the next */
    struct object_row objects[OBJECTS];
    const char *plan; /* "0:ba=I:b", … ; see tell() */
    enum cr_stage stage;
};

struct scene {
    struct cr_domain domain;
    struct cr_domain_leaf leaves[OBJECTS];
    struct cr_domain_target targets[OBJECTS];
    struct cr_domain_status status;
    struct cr_domain_ca cas[CAS];
    struct cr_domain_object objects[OBJECTS];
    struct cr_domain_evidence evidence[OBJECTS];
    bool bundles[OBJECTS][CAS], verifies[OBJECTS * 3][CAS];
    char letters[CAS + 1], names[OBJECTS][4];
    struct cr_domain_world world;
};

static bool says(const struct plan_case *c, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(cr_or_empty(c->spec), word); at; at = strstr(at + 1, word))
        if ((at == c->spec || at[-1] == ' ') && (!at[len] || at[len] == ' '))
            return true;
    return false;
}

static void fingerprint(char letter, char out[CR_SHA256_HEX])
{
    memset(out, letter, CR_SHA256_HEX - 1);
    out[CR_SHA256_HEX - 1] = '\0';
}

static void mark(const struct scene *s, const char *letters, bool *out)
{
    for (size_t i = 0; i < s->world.cas_len; i++)
        out[i] = strchr(cr_or_empty(letters), s->letters[i]);
}

static void set_leaf(const struct scene *s, const char *text, bool *verifies, struct cr_domain_leaf_view *out)
{
    out->verifies = verifies;
    out->found = text && *text;
    if (!out->found)
        return;
    fingerprint(text[0], out->fingerprint);
    out->not_before_ms = now_ms - year_ms / 2;
    out->not_after_ms = now_ms + year_ms / 2;
    mark(s, text + 1, verifies);
    if (strchr(text, '!'))
        out->problem_reason = "KeyMismatch";
    if (strchr(text, '~')) /* due, and nearly over */
        out->not_after_ms = now_ms + year_ms / 20;
    if (strchr(text, 'x')) /* over */
        out->not_after_ms = now_ms - 1;
}

static void set_evidence(struct scene *s, const struct object_row *row, size_t i)
{
    bool all = strchr(cr_or_empty(row->evidence), '*');
    if (!row->bundle || !row->evidence)
        return;
    s->evidence[i] = (struct cr_domain_evidence){
        .trust = all ? CR_ARRIVAL_INFERRED : CR_ARRIVAL_NOT_YET,
        .leaf = strchr(row->evidence, '-') ? CR_ARRIVAL_NOT_YET : CR_ARRIVAL_VERIFIED,
        .failed = strchr(row->evidence, '#'),
        .why = all ? NULL : cr_strdup("not everybody has it"),
    };
    const char *trusted = all ? row->bundle : row->evidence;
    for (size_t ca = 0; ca < s->world.cas_len; ca++)
        if (strchr(trusted, s->letters[ca]))
            cr_strvec_add(&s->evidence[i].trusted, s->cas[ca].fingerprint);
    s->objects[i].evidence = &s->evidence[i];
}

static void set_object(struct scene *s, const struct plan_case *c, size_t i)
{
    const struct object_row *row = &c->objects[i];
    struct cr_domain_object *out = &s->objects[i];
    snprintf(s->names[i], sizeof s->names[i], "o%zu", i);
    *out = (struct cr_domain_object){.kind = row->leaf ? "Secret" : "ConfigMap",
                                     .ns = "ns",
                                     .name = s->names[i],
                                     .is_leaf = row->leaf,
                                     .spec = i,
                                     .found = row->bundle,
                                     .refused_reason = row->refused,
                                     .refused = "it is refused",
                                     .bundle = s->bundles[i],
                                     .issued_for = says(c, "respec") ? "other" : "spec",
                                     .wanted_for = "spec",
                                     .token = says(c, "done") ? "t" : NULL};
    mark(s, row->bundle, s->bundles[i]);
    out->bundle_foreign = strchr(cr_or_empty(row->bundle), '?');
    set_leaf(s, row->leaf, s->verifies[3 * i], &out->published);
    set_leaf(s, row->source, s->verifies[3 * i + 1], &out->source);
    set_leaf(s, row->previous, s->verifies[3 * i + 2], &out->previous);
    s->leaves[i] = (struct cr_domain_leaf){.name = s->names[i],
                                           .mirror = s->names[i],
                                           .source = says(c, "issue") ? CR_LEAF_ISSUE : CR_LEAF_MIRROR,
                                           .life = {.duration_ms = year_ms}};
    set_evidence(s, row, i);
}

static void set_cas(struct scene *s, const struct plan_case *c)
{
    struct cr_domain_authority_view *authority = &s->world.authority;
    size_t len = strlen(c->cas);
    s->world.cas_len = len;
    for (size_t i = 0; i < len; i++) {
        char letter = c->cas[len - 1 - i];
        bool own = letter >= 'A' && letter <= 'Z';
        s->letters[i] = own ? (char)(letter - 'A' + 'a') : letter;
        fingerprint(s->letters[i], s->cas[i].fingerprint);
        s->cas[i].subject = "CA";
        s->cas[i].root = true;
        s->cas[i].not_before_ms = now_ms - year_ms - (int64_t)i;
        s->cas[i].not_after_ms = now_ms + 9 * year_ms;
        if (says(c, "ca-due") && own)
            s->cas[i].not_after_ms = now_ms + year_ms / 10;
        if (says(c, "expired-a") && s->letters[i] == 'a')
            s->cas[i].not_after_ms = now_ms - 1;
        if (!own)
            continue;
        bool second = authority->current == CR_DOMAIN_CA_USABLE;
        /* Newest first: what comes second is the current one, and the first was the next. */
        if (second) {
            authority->next = CR_DOMAIN_CA_USABLE;
            authority->next_ca = authority->current_ca;
        }
        authority->current = CR_DOMAIN_CA_USABLE;
        authority->current_ca = i;
    }
    if (says(c, "ca-broken"))
        authority->current = CR_DOMAIN_CA_BROKEN;
}

/* Sources bring the CAs of their leaves. */
static void mark_sources(struct scene *s)
{
    for (size_t i = 0; i < s->world.objects_len; i++)
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            s->cas[ca].in_source = s->cas[ca].in_source || s->verifies[3 * i + 1][ca];
}

static void set_token(struct scene *s, const struct plan_case *c)
{
    static char token[] = "t";
    bool leaves = says(c, "token:Leaves");
    bool previous = says(c, "token:PreviousLeaves");
    if (!leaves && !previous && !says(c, "token:CA"))
        return;
    s->domain.rotate_token = token;
    s->domain.rotate = leaves ? CR_ROTATE_LEAVES : previous ? CR_ROTATE_PREVIOUS_LEAVES : CR_ROTATE_CA;
    if (says(c, "staged-for-it"))
        s->world.authority.next_token = token;
}

/* As the status is after what is there was put on record. */
static void put_on_record(struct scene *s, const struct plan_case *c)
{
    bool suspend = s->domain.suspend;
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->domain.suspend = true; /* nothing but the objects */
    s->status.observed_generation = 1;
    cr_domain_plan_make(&s->world, &plan);
    cr_domain_status_copy(&s->status, &plan.status);
    s->domain.suspend = suspend;
    if (says(c, "handled"))
        cr_strset(&s->status.last_handled_token, "t");
    if (says(c, "was-switching")) {
        s->status.stage = CR_STAGE_SWITCHING;
        s->status.stage_since_ms = now_ms - 2 * HOUR;
        strcpy(s->status.rotation, "r");
        cr_strset(&s->status.what, "CA");
    }
}

static void scene_free(struct scene *s)
{
    for (size_t i = 0; i < OBJECTS; i++)
        cr_domain_evidence_dispose(&s->evidence[i]);
    cr_domain_status_dispose(&s->status);
    free(s);
}
CR_DEFINE_CLEANUP(scene, struct scene, scene_free)

static struct scene *scene_new(const struct plan_case *c)
{
    struct scene *s = cr_new(struct scene);
    static char uid[] = "uid";
    s->domain = (struct cr_domain){.uid = uid,
                                   .authority = says(c, "issue") ? CR_AUTHORITY_ISSUE : CR_AUTHORITY_EXTERNAL,
                                   .ca = {.life = {.duration_ms = 10 * year_ms}, .cross_sign = says(c, "cross")},
                                   .leaves = s->leaves,
                                   .targets = s->targets,
                                   .retain_previous = says(c, "retain0") ? 0 : 1,
                                   .retire = says(c, "converged") ? CR_RETIRE_CONVERGED
                                             : says(c, "never")   ? CR_RETIRE_NEVER
                                                                  : CR_RETIRE_NEXT_ROTATION,
                                   .evidence = {.stage_deadline_ms = HOUR},
                                   .suspend = says(c, "suspend"),
                                   .generation = 1};
    s->world = (struct cr_domain_world){.domain = &s->domain,
                                        .status = &s->status,
                                        .cas = s->cas,
                                        .objects = s->objects,
                                        .staging_found = says(c, "staging"),
                                        .now_ms = now_ms};
    set_cas(s, c);
    while (s->world.objects_len < OBJECTS &&
           (c->objects[s->world.objects_len].bundle || c->objects[s->world.objects_len].leaf ||
            c->objects[s->world.objects_len].evidence)) {
        set_object(s, c, s->world.objects_len);
        s->world.objects_len++;
    }
    s->domain.leaves_len = s->domain.targets_len = s->world.objects_len;
    mark_sources(s);
    set_token(s, c);
    put_on_record(s, c);
    return s;
}

/* "0:ba" object 0 gets the bundle b, a; "=I:b" with a leaf by b, "x" cross-signed; "=M" that of its source; "=P" the
 * previous one; "s" what is there is kept. Then "next", "first", "promote", "delete", "record". */
static char *tell(const struct scene *s, const struct cr_domain_plan *plan)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    for (size_t i = 0; i < plan->writes_len; i++) {
        const struct cr_domain_write *write = &plan->writes[i];
        cr_buf_printf(&text, "%s%zu:", text.len ? " " : "", write->object);
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            if (write->bundle[ca])
                cr_buf_printf(&text, "%c", s->letters[ca]);
        if (write->leaf == CR_LEAF_ACT_ISSUE)
            cr_buf_printf(&text, "=I:%c%s", s->letters[write->issuer], write->cross_signed ? "x" : "");
        if (write->leaf == CR_LEAF_ACT_MIRROR)
            cr_buf_puts(&text, "=M");
        if (write->leaf == CR_LEAF_ACT_PUT_BACK)
            cr_buf_puts(&text, "=P");
        cr_buf_puts(&text, write->save_previous ? "s" : "");
    }
    const char *const words[] = {plan->stage_next_ca ? "next" : NULL, plan->first_ca ? "first" : NULL,
                                 plan->promote_ca ? "promote" : NULL, plan->delete_staging ? "delete" : NULL,
                                 plan->record_first ? "record" : NULL};
    for (size_t i = 0; i < cr_array_len(words); i++)
        if (words[i])
            cr_buf_printf(&text, "%s%s", text.len ? " " : "", words[i]);
    return cr_buf_steal(&text);
}

/* --- the rules --- */

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
     {{"ba", "1a", "*"}, {"a", NULL, "*", .refused = "Forbidden"}}, "", TRUSTING},
    {"one that is not there does not", "issue staging", "AB",
     {{"ba", "1a", "*"}, {.evidence = "", .refused = "NoConsent"}}, "0:ba=I:bs", SWITCHING},
    {"one that was never ours does not", "issue staging", "AB",
     {{"ba", "1a", "*"}, {"", NULL, NULL, .refused = "NotOurs"}}, "0:ba=I:bs", SWITCHING},
    {"a refused key keeps its leaf, its bundle grows", "issue staging", "AB",
     {{"a", "1a", "*", .refused = "KeyNotAccepted"}, {"a", NULL, "*"}}, "0:ba 1:ba", TRUSTING},

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
    {"the same token is on it", "issue token:Leaves done", "A", {{"a", "1a", "*"}}, "record", IDLE},
    {"a token that was handled", "issue token:Leaves handled", "A", {{"a", "1a", "*"}}, "", IDLE},

    /* why there is another CA */
    {"a token", "issue token:CA", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"its life", "issue ca-due", "A", {{"a", "1a", "*"}}, "next", IDLE},
    {"it is broken", "issue ca-broken", "A", {{"a", "1a", "*"}}, "next", IDLE},
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
    {"NextRotation: retainPrevious 0, and still what a leaf needs", "issue staging retain0", "aBC",
     {{"ba", "1b", "*"}, {"ba", "2a", "*"}}, "0:cba 1:cba", TRUSTING},
    {"Converged: at the end of this one", "issue converged", "aB", {{"ba", "1b", "*"}, {"ba", NULL, "*"}}, "0:b 1:b",
     RETIRING},
    {"Converged: not before staging has gone", "issue converged staging was-switching", "aB", {{"ba", "1b", "*"}},
     "delete", SWITCHING},
    {"Converged: not while a leaf needs it", "converged", "ab",
     {{"ba", "1b", "*", "1b"}, {"ba", "2a", "*", "2a"}}, "", IDLE},
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
    {"also where a consumer failed for what is published", "token:PreviousLeaves staging", "ab",
     {{"ba", "2b", "*-#", "2b", "1a"}}, "0:ba=P record", HELD},
    {"and past the deadline", "token:PreviousLeaves staging was-switching", "ab", {{"ba", "2b", "*-", "2b", "1a"}},
     "0:ba=P record", SWITCHING},
    {"nothing is kept: that is told", "token:PreviousLeaves", "b", {{"b", "2b", "*", "2b"}}, "record", IDLE},

    /* nothing is done */
    {"suspended", "issue staging suspend", "AB", {{"a", "1a", "*"}}, "", IDLE},
};
/* clang-format on */

static void check(const struct plan_case *c)
{
    CR_CLEANUP(scene) struct scene *s = scene_new(c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_domain_plan_make(&s->world, &plan);
    cr_autofree char *told = tell(s, &plan);
    if (!cr_streq(told, c->plan) || plan.status.stage != c->stage)
        fail_msg("%s: '%s' in %s, and not '%s' in %s", c->rule, told, cr_stage_name(plan.status.stage), c->plan,
                 cr_stage_name(c->stage));
}

static void what_is_done(void **state)
{
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++)
        check(&cases[i]);
}

/* --- what is remembered and said --- */

static const struct cr_condition *condition(const struct cr_domain_status *status, const char *type)
{
    for (size_t i = 0; i < CR_DOMAIN_CONDITIONS; i++)
        if (cr_streq(cr_domain_condition_types[i], type))
            return &status->conditions[i];
    return NULL;
}

static bool has_event(const struct cr_domain_plan *plan, const char *reason)
{
    for (size_t i = 0; i < plan->events_len; i++)
        if (cr_streq(plan->events[i].reason, reason))
            return true;
    return false;
}

/* Plans, and remembers what the status says. */
static void go_on(struct scene *s, int64_t after_ms, struct cr_domain_plan *plan)
{
    cr_domain_plan_dispose(plan);
    s->world.now_ms += after_ms;
    cr_domain_plan_make(&s->world, plan);
    cr_domain_status_copy(&s->status, &plan->status);
}

static void write_just_done_is_not_judged_by_the_time_of_the_one_before(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_strset(&s->status.objects[0].written_version, "7");
    memset(s->status.objects[0].trust, 'f', CR_SHA256_HEX - 1); /* killed before what is there was on record */
    go_on(s, 5000, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.writes_len, 0);
    assert_int_equal(plan.status.objects[0].written_ms, now_ms + 5000);
    assert_string_equal(plan.status.objects[0].written_version, "7");
    go_on(s, 0, &plan);
    assert_false(plan.record_first);
    assert_int_equal(plan.writes_len, 1);
}

static void past_its_deadline_it_is_held_and_goes_on_by_itself(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_TRUSTING);
    assert_true(has_event(&plan, "RotationBegun"));
    assert_true(plan.requeue_after_ms > 0 && plan.requeue_after_ms <= HOUR + 1);
    go_on(s, HOUR + 1, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_HELD);
    assert_int_equal(plan.status.held_stage, CR_STAGE_TRUSTING);
    assert_string_equal(condition(&plan.status, "Held")->reason, "DeadlinePassed");
    assert_non_null(strstr(condition(&plan.status, "Held")->message, "ConfigMap ns/o1"));
    assert_true(has_event(&plan, "Held"));
    go_on(s, 1000, &plan);
    assert_false(has_event(&plan, "Held"));

    cr_strvec_add(&s->evidence[1].trusted, s->cas[0].fingerprint);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    assert_true(has_event(&plan, "WentOn"));
    assert_int_equal(plan.writes_len, 1);
    assert_int_equal(plan.status.trusting_ms, HOUR + 2001);
}

static void a_failed_consumer_holds_at_once_but_not_what_would_end(void **state)
{
    (void)state;
    static const struct {
        const char *leaf;
        size_t writes;
    } leaves[] = {{"2a", 0}, {"2a~", 1}};
    for (size_t i = 0; i < cr_array_len(leaves); i++) {
        const struct plan_case c = {
            .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1b", "*-#"}, {"ba", leaves[i].leaf, "*"}}};
        CR_CLEANUP(scene) struct scene *s = scene_new(&c);
        CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
        go_on(s, 0, &plan);
        assert_int_equal(plan.writes_len, leaves[i].writes);
        assert_int_equal(plan.status.stage, CR_STAGE_HELD);
        assert_int_equal(plan.status.held_stage, CR_STAGE_SWITCHING);
        assert_string_equal(condition(&plan.status, "Held")->reason, "ConsumerFailed");
    }
}

static void history_has_how_long_each_stage_took(void **state)
{
    (void)state;
    static const struct plan_case c = {.cas = "a", .objects = {{"a", "1a", "*", "2a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    assert_string_equal(plan.status.what, "Leaves");
    fingerprint('2', s->objects[0].published.fingerprint);
    s->evidence[0].leaf = CR_ARRIVAL_NOT_YET;
    go_on(s, 1000, &plan); /* what was written goes on record */
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_SWITCHING);
    s->evidence[0].leaf = CR_ARRIVAL_VERIFIED;
    s->evidence[0].restarted = true;
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.stage, CR_STAGE_IDLE);
    assert_string_equal(plan.status.rotation, "");
    assert_int_equal(plan.status.history_len, 1);
    assert_string_equal(plan.status.history[0].outcome, "Converged");
    assert_int_equal(plan.status.history[0].switching_ms, 3000);
    assert_true(plan.status.history[0].restarted);
    assert_true(has_event(&plan, "RotationConverged"));
    assert_string_equal(condition(&plan.status, "Converged")->reason, "Inferred");
}

static void what_is_put_back_stays_until_its_source_or_a_person_changes(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "token:PreviousLeaves staging", .cas = "ab", .objects = {{"ba", "2b", "*-", "2b", "1a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.status.rejected_len, 1);
    go_on(s, 0, &plan);
    assert_false(plan.record_first);
    assert_int_equal(plan.writes_len, 1);
    assert_int_equal(plan.writes[0].leaf, CR_LEAF_ACT_PUT_BACK);
    set_leaf(s, "1a", s->verifies[0], &s->objects[0].published);
    s->verifies[0][0] = false; /* b */
    s->evidence[0].leaf = CR_ARRIVAL_VERIFIED;
    go_on(s, 0, &plan);
    assert_string_equal(plan.status.last_handled_token, "t");
    for (int i = 0; i < 2; i++) {
        go_on(s, 1000, &plan);
        assert_int_equal(plan.writes_len, 0);
        assert_false(plan.delete_staging);
        assert_int_equal(plan.status.stage, CR_STAGE_HELD);
        assert_string_equal(condition(&plan.status, "Held")->reason, "PutBack");
    }
    fingerprint('3', s->objects[0].source.fingerprint);
    go_on(s, 1000, &plan);
    assert_int_equal(plan.status.rejected_len, 0);
    assert_int_equal(plan.writes[0].leaf, CR_LEAF_ACT_MIRROR);
}

static void what_is_refused_is_told_once_and_names_the_object(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue", .cas = "A", .objects = {{"a", "1a", "*"}, {.evidence = "", .refused = "NoConsent"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    cr_strset(&s->status.objects[1].problem_reason, NULL);
    go_on(s, 0, &plan);
    assert_true(has_event(&plan, "NoConsent"));
    assert_string_equal(condition(&plan.status, "Degraded")->reason, "NoConsent");
    assert_non_null(strstr(condition(&plan.status, "Degraded")->message, "ConfigMap ns/o1"));
    go_on(s, 1000, &plan);
    assert_false(has_event(&plan, "NoConsent"));
}

static void what_was_taken_from_us_has_readers(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].refused_reason = "NotOurs";
    s->objects[1].evidence = NULL;
    memset(s->bundles[1], 0, sizeof s->bundles[1]);
    for (int i = 0; i < 2; i++) {
        go_on(s, 1000, &plan);
        assert_int_equal(plan.writes_len, 0);
        assert_non_null(strstr(plan.status.objects[0].waits_for, "ConfigMap ns/o1"));
    }
}

static void what_was_deleted_has_readers_and_is_made_anew_first(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].found = false;
    s->objects[1].evidence = NULL;
    memset(s->bundles[1], 0, sizeof s->bundles[1]);
    go_on(s, 1000, &plan);
    assert_true(plan.record_first);
    go_on(s, 1000, &plan);
    cr_autofree char *told = tell(s, &plan);
    assert_string_equal(told, "1:ba");
    assert_non_null(strstr(plan.status.objects[0].waits_for, "ConfigMap ns/o1, which has been deleted"));
    /* Killed before that was on record: that it is the same as before does not make it as old. */
    s->objects[1].found = true;
    s->objects[1].evidence = &s->evidence[1];
    mark(s, "ab", s->bundles[1]);
    s->evidence[1].trust = CR_ARRIVAL_INFERRED;
    cr_strvec_add(&s->evidence[1].trusted, s->cas[0].fingerprint);
    go_on(s, 1000, &plan);
    assert_true(plan.record_first);
    assert_int_equal(plan.writes_len, 0);
    assert_int_equal(plan.status.objects[1].written_ms, s->world.now_ms);
}

static void nobody_waits_for_what_was_deleted_without_consent(void **state)
{
    (void)state;
    static const struct plan_case c = {
        .spec = "issue staging", .cas = "AB", .objects = {{"ba", "1a", "*"}, {"ba", NULL, "a"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->objects[1].found = false;
    s->objects[1].evidence = NULL;
    s->objects[1].refused_reason = "NoConsent";
    memset(s->bundles[1], 0, sizeof s->bundles[1]);
    go_on(s, 1000, &plan);
    cr_autofree char *told = tell(s, &plan);
    assert_string_equal(told, "0:ba=I:bs");
}

static void what_cannot_be_read_stops_all(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue staging", .cas = "AB", .objects = {{"a", "1a", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->world.problem = "cannot read Secret ns/o0";
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_string_equal(condition(&plan.status, "Ready")->reason, "CannotRead");
    assert_true(plan.requeue_after_ms > 0);
    s->world.problem = NULL;
    s->domain.deleting = true;
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    CR_CLEANUP(cr_domain_status) struct cr_domain_status invalid = {0};
    cr_domain_plan_invalid(&s->status, 2, "spec.leaves: too many", now_ms, &invalid);
    assert_string_equal(condition(&invalid, "Ready")->reason, "Invalid");
    assert_int_equal(invalid.objects_len, s->status.objects_len);
}

/* --- renewal --- */

static void when_a_certificate_is_renewed(void **state)
{
    (void)state;
    enum { LIFE = 3000 };
    static const struct {
        const char *rule;
        int64_t renew_before, earliest, latest;
    } rows[] = {
        {"at two thirds, up to a tenth earlier", 0, 1700, 2000},
        {"so long before its end", 500, 2200, 2500},
        {"not at once when a CA has cut it short", 2900, 1700, 2000},
    };
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        const struct cr_domain_life life = {.duration_ms = LIFE, .renew_before_ms = rows[i].renew_before};
        int64_t first = cr_domain_renewal_ms(&life, 0, LIFE, "leaf-0");
        bool spread = false;
        for (int k = 0; k < 100; k++) {
            cr_autofree char *key = cr_asprintf("leaf-%d", k);
            int64_t at = cr_domain_renewal_ms(&life, 0, LIFE, key);
            if (at < rows[i].earliest || at > rows[i].latest)
                fail_msg("%s: at %lld", rows[i].rule, (long long)at);
            assert_int_equal(at, cr_domain_renewal_ms(&life, 0, LIFE, key));
            spread = spread || at != first;
        }
        assert_true(spread);
    }
}

static void a_leaf_that_ends_with_its_ca_is_not_issued_again_and_again(void **state)
{
    (void)state;
    static const struct plan_case c = {.spec = "issue", .cas = "A", .objects = {{"a", "1a~", "*"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    s->cas[0].not_after_ms = s->objects[0].published.not_after_ms;
    s->world.authority.cannot_renew = "it is somebody else's";
    go_on(s, 0, &plan);
    assert_int_equal(plan.writes_len, 0);
    assert_true(plan.requeue_after_ms == 0 || plan.requeue_after_ms > HOUR);
}

/* What is not on record may be somebody else's, and nothing of it is written on. */
static void the_cas_that_leaves_need_are_on_record_however_many_others_there_are(void **state)
{
    (void)state;
    static const struct plan_case c = {.cas = "abcdefghijklmnopqr",
                                       .objects = {{"abcdefghijklmnopqr", "1a", "*", "2r"}}};
    CR_CLEANUP(scene) struct scene *s = scene_new(&c);
    CR_CLEANUP(cr_domain_plan) struct cr_domain_plan plan = {0};
    go_on(s, 0, &plan);
    char needed[CR_SHA256_HEX];
    fingerprint('a', needed);
    bool found = false;
    for (size_t i = 0; i < plan.status.cas_len; i++)
        found = found || cr_streq(plan.status.cas[i].fingerprint, needed);
    assert_int_equal(plan.status.cas_len, CR_DOMAIN_CAS_MAX);
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done),
        cmocka_unit_test(write_just_done_is_not_judged_by_the_time_of_the_one_before),
        cmocka_unit_test(past_its_deadline_it_is_held_and_goes_on_by_itself),
        cmocka_unit_test(a_failed_consumer_holds_at_once_but_not_what_would_end),
        cmocka_unit_test(history_has_how_long_each_stage_took),
        cmocka_unit_test(what_is_put_back_stays_until_its_source_or_a_person_changes),
        cmocka_unit_test(what_is_refused_is_told_once_and_names_the_object),
        cmocka_unit_test(what_was_taken_from_us_has_readers),
        cmocka_unit_test(what_was_deleted_has_readers_and_is_made_anew_first),
        cmocka_unit_test(nobody_waits_for_what_was_deleted_without_consent),
        cmocka_unit_test(what_cannot_be_read_stops_all),
        cmocka_unit_test(when_a_certificate_is_renewed),
        cmocka_unit_test(a_leaf_that_ends_with_its_ca_is_not_issued_again_and_again),
        cmocka_unit_test(the_cas_that_leaves_need_are_on_record_however_many_others_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
