/* Plans of a trust domain in few letters: CAs are letters, the later the newer; a leaf is a digit and the CAs that it
 * verifies against. */
#ifndef TEST_SUPPORT_DOMAINLETTERS_H
#define TEST_SUPPORT_DOMAINLETTERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "trust/rules/domain_plan.h"

enum { CAS = 18, OBJECTS = 9, HOUR = 3600 * 1000 };
static const int64_t now_ms = 1800000000000;
static const int64_t year_ms = 365LL * 24 * HOUR;

struct object_row {
    const char *bundle;   /* NULL: the object is not there */
    const char *leaf;     /* NULL: a trust target; "": none is published */
    const char *evidence; /* "*": all has arrived; else the CAs that everybody trusts; "-" behind: not the leaf */
    const char *source;
    const char *previous;
    enum cr_trust_reason refused;
};

struct plan_case {
    const char *rule;
    const char *spec; /* words: issue, cross, converged, never, retain0, staging, suspend, token:CA, handled, … */
    const char *cas;  /* letters at hand; current and next one of ISSUE: upper case, the last is the next */
    struct object_row objects[OBJECTS];
    const char *plan; /* "0:ba=I:b", … ; see describe() */
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

static inline bool says(const struct plan_case *c, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(cr_or_empty(c->spec), word); at; at = strstr(at + 1, word))
        if ((at == c->spec || at[-1] == ' ') && (!at[len] || at[len] == ' '))
            return true;
    return false;
}

static inline void fingerprint(char letter, char out[CR_SHA256_HEX])
{
    memset(out, letter, CR_SHA256_HEX - 1);
    out[CR_SHA256_HEX - 1] = '\0';
}

static inline void mark(const struct scene *s, const char *letters, bool *out)
{
    for (size_t i = 0; i < s->world.cas_len; i++)
        out[i] = strchr(cr_or_empty(letters), s->letters[i]);
}

static inline void set_leaf(const struct scene *s, const char *text, bool *verifies, struct cr_domain_leaf_view *out)
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
        out->problem = CR_TRUST_KEY_MISMATCH;
    if (strchr(text, '$')) {
        out->costly = true;
        out->problem = CR_TRUST_MATERIAL_TOO_COSTLY;
        out->problem_text = "it is too costly";
    }
    if (strchr(text, '~')) /* due, and nearly over */
        out->not_after_ms = now_ms + year_ms / 20;
    if (strchr(text, 'x')) /* over */
        out->not_after_ms = now_ms - 1;
}

static inline void set_evidence(struct scene *s, const struct object_row *row, size_t i)
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

static inline void set_object(struct scene *s, const struct plan_case *c, size_t i)
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
                                     .refused = row->refused,
                                     .refused_text = "it is refused",
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

static inline void set_cas(struct scene *s, const struct plan_case *c)
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
        char expired[] = {'e', 'x', 'p', 'i', 'r', 'e', 'd', '-', s->letters[i], '\0'};
        if (says(c, expired))
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
    if (says(c, "next-broken"))
        authority->next = CR_DOMAIN_CA_BROKEN;
}

/* Sources bring the CAs of their leaves. */
static inline void mark_sources(struct scene *s)
{
    for (size_t i = 0; i < s->world.objects_len; i++)
        for (size_t ca = 0; ca < s->world.cas_len; ca++)
            s->cas[ca].in_source = s->cas[ca].in_source || s->verifies[3 * i + 1][ca];
}

static inline void set_token(struct scene *s, const struct plan_case *c)
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

/* "distrust-a": the CA a is listed, and that is on record, unless it is "new"; "overdue": for longer than a stage may
 * take; "stray": somebody else has put it there. */
static inline void set_distrust(struct scene *s, const struct plan_case *c)
{
    for (size_t i = 0; i < s->world.cas_len; i++) {
        char word[] = {'d', 'i', 's', 't', 'r', 'u', 's', 't', '-', s->letters[i], '\0'};
        if (!says(c, word))
            continue;
        cr_strvec_add(&s->domain.distrust, s->cas[i].fingerprint);
        if (says(c, "new"))
            continue;
        struct cr_domain_distrusted *record = &s->status.distrusted[s->status.distrusted_len++];
        *record = (struct cr_domain_distrusted){.since_ms = now_ms - (says(c, "overdue") ? 2 * HOUR : HOUR / 60),
                                                .stray_ms = says(c, "stray") ? now_ms - 1 : 0};
        memcpy(record->fingerprint, s->cas[i].fingerprint, sizeof record->fingerprint);
    }
}

/* As the status is after what is there was put on record. */
static inline void put_on_record(struct scene *s, const struct plan_case *c)
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

static inline void scene_free(struct scene *s)
{
    for (size_t i = 0; i < OBJECTS; i++)
        cr_domain_evidence_dispose(&s->evidence[i]);
    cr_domain_status_dispose(&s->status);
    cr_strvec_dispose(&s->domain.distrust);
    free(s);
}
CR_DEFINE_CLEANUP(scene, struct scene, scene_free)

static inline struct scene *scene_new(const struct plan_case *c)
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
    set_distrust(s, c);
    put_on_record(s, c);
    return s;
}

/* "0:ba" object 0 gets the bundle b, a; "=I:b" with a leaf by b, "x" cross-signed; "=M" that of its source; "=P" the
 * previous one; "s" what is there is kept. Then "next", "first", "promote", "delete", "record". */
static inline char *describe(const struct scene *s, const struct cr_domain_plan *plan)
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

/* Plans, and remembers what the status says. */
static inline void go_on(struct scene *s, int64_t after_ms, struct cr_domain_plan *plan)
{
    cr_domain_plan_dispose(plan);
    s->world.now_ms += after_ms;
    cr_domain_plan_make(&s->world, plan);
    cr_domain_status_copy(&s->status, &plan->status);
}

#endif
