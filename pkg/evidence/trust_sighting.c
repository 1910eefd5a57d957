#include "evidence/trust_sighting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { ENDPOINT_NAME = 64, DISTINCTIVE_SERIAL = 16 /* digits of 64 bits */ };

void cr_trust_sighting_dispose(struct cr_trust_sighting *sighting)
{
    for (size_t i = 0; i < sighting->contexts_len; i++) {
        cr_strvec_dispose(&sighting->contexts[i].cas);
        cr_strvec_dispose(&sighting->contexts[i].leaves);
        free(sighting->contexts[i].ca_path);
    }
    free(sighting->contexts);
    free(sighting->endpoints);
    *sighting = (struct cr_trust_sighting){0};
}

/* --- what came and what went --- */

static bool has_ca(const struct cr_material *material, const char *fingerprint)
{
    for (size_t i = 0; i < material->trust_len; i++)
        if (cr_streq(material->trust[i].fingerprint, fingerprint))
            return true;
    return false;
}

/* Owned array of those of the first that the second does not have. */
static const struct cr_ca **missing_in(const struct cr_material *from, const struct cr_material *in, size_t *len)
{
    const struct cr_ca **cas = cr_calloc(from->trust_len, sizeof(struct cr_ca *));
    *len = 0;
    for (size_t i = 0; i < from->trust_len; i++)
        if (!has_ca(in, from->trust[i].fingerprint))
            cas[(*len)++] = &from->trust[i];
    return cas;
}

void cr_trust_change_make(const struct cr_material *before, const struct cr_material *target,
                          struct cr_trust_change *out)
{
    *out =
        (struct cr_trust_change){.target = target, .before_unknown = !before->trust_len && before->trust_summary.count};
    out->added = missing_in(target, before, &out->added_len);
    out->removed = missing_in(before, target, &out->removed_len);
}

void cr_trust_change_dispose(struct cr_trust_change *change)
{
    free(change->added);
    free(change->removed);
    *change = (struct cr_trust_change){0};
}

static bool is_valid(const struct cr_ca *ca, int64_t at_ms)
{
    return ca->not_after_ms >= at_ms;
}

/* --- several verdicts --- */

/* All of them are needed: what is not known of one is not known of all. */
static enum cr_shown worse(enum cr_shown a, enum cr_shown b)
{
    static const int order[] = {[CR_SHOWN_NEW] = 0, [CR_SHOWN_NOTHING] = 1, [CR_SHOWN_UNKNOWN] = 2, [CR_SHOWN_OLD] = 3};
    return order[b] > order[a] ? b : a;
}

/* What one place shows, and in words why it is no better. */
struct finding {
    bool concerned;
    enum cr_shown shown;
    const char *text;
};

static void add(struct finding *to, enum cr_shown shown, const char *text)
{
    if (!to->concerned || worse(to->shown, shown) != to->shown) {
        to->shown = shown;
        to->text = text;
    }
    to->concerned = true;
}

/* --- names --- */

/* What is remembered of a subject are its first digits. */
static bool same_name(const char *a, const char *b)
{
    return a[0] && strncmp(a, b, CR_SUBJECT_REMEMBERED) == 0;
}

static void announced_name(const struct cr_announced *announced, size_t index, char out[CR_SUBJECT_REMEMBERED + 1])
{
    for (size_t i = 0; i < CR_SUBJECT_REMEMBERED / 2; i++)
        snprintf(&out[2 * i], 3, "%02x", announced->names[index][i]);
}

static bool is_announced(const struct cr_announced *announced, const struct cr_ca *ca)
{
    char name[CR_SUBJECT_REMEMBERED + 1];
    for (size_t i = 0; i < announced->len; i++) {
        announced_name(announced, i, name);
        if (same_name(ca->subject, name))
            return true;
    }
    return false;
}

/* No other CA of the target has its name. */
static bool is_named_alone(const struct cr_trust_change *change, const struct cr_ca *ca)
{
    for (size_t i = 0; i < change->target->trust_len; i++) {
        const struct cr_ca *other = &change->target->trust[i];
        if (other != ca && same_name(other->subject, ca->subject))
            return false;
    }
    return true;
}

/* Nor had one that went. */
static bool is_a_new_name(const struct cr_trust_change *change, const struct cr_ca *ca)
{
    if (change->before_unknown)
        return false;
    for (size_t i = 0; i < change->removed_len; i++)
        if (!change->removed[i]->subject[0] || same_name(change->removed[i]->subject, ca->subject))
            return false;
    return is_named_alone(change, ca);
}

static void judge_added_names(const struct cr_trust_change *change, const struct cr_announced *announced, int64_t at_ms,
                              struct finding *out)
{
    for (size_t i = 0; i < change->added_len; i++) {
        const struct cr_ca *ca = change->added[i];
        if (!is_valid(ca, at_ms))
            continue;
        if (!announced->len || announced->more || !ca->subject[0])
            add(out, CR_SHOWN_NOTHING, "");
        else if (!is_announced(announced, ca))
            add(out, CR_SHOWN_OLD, "does not announce the new CA to clients");
        else
            add(out, is_a_new_name(change, ca) ? CR_SHOWN_NEW : CR_SHOWN_NOTHING, "");
    }
}

static void judge_removed_names(const struct cr_trust_change *change, const struct cr_announced *announced,
                                struct finding *out)
{
    if (change->before_unknown)
        add(out, CR_SHOWN_NOTHING, "");
    for (size_t i = 0; i < change->removed_len; i++) {
        const struct cr_ca *ca = change->removed[i];
        if (!announced->len || announced->more || !ca->subject[0] || !is_named_alone(change, ca))
            add(out, CR_SHOWN_NOTHING, "");
        else if (is_announced(announced, ca))
            add(out, CR_SHOWN_OLD, "still announces a CA that was removed");
        else
            add(out, CR_SHOWN_NEW, "");
    }
}

/* --- one endpoint --- */

static bool announces_any(const struct cr_trust_change *change, const struct cr_announced *announced)
{
    for (size_t i = 0; i < change->target->trust_len; i++)
        if (is_announced(announced, &change->target->trust[i]))
            return true;
    for (size_t i = 0; i < change->removed_len; i++)
        if (is_announced(announced, change->removed[i]))
            return true;
    return false;
}

/* What is shown of a CA that came. *alone: no other one did. */
static bool canary_counts(const struct cr_trust_change *change, const struct cr_endpoint_trust *endpoint, int64_t at_ms,
                          bool *alone)
{
    size_t valid = 0;
    bool asked = false;
    for (size_t i = 0; i < change->added_len; i++) {
        valid += is_valid(change->added[i], at_ms);
        asked = asked || cr_streq(change->added[i]->fingerprint, endpoint->canary_ca);
    }
    *alone = valid == 1;
    return asked && (endpoint->canary == CR_CANARY_TRUSTED || endpoint->canary == CR_CANARY_UNTRUSTED);
}

static void judge_added(const struct cr_trust_change *change, const struct cr_endpoint_trust *endpoint, bool meant,
                        int64_t at_ms, struct finding *out)
{
    bool alone = false;
    bool counts = canary_counts(change, endpoint, at_ms, &alone);
    if (counts && endpoint->canary == CR_CANARY_UNTRUSTED)
        add(out, meant ? CR_SHOWN_OLD : CR_SHOWN_NOTHING, "refuses a client certificate of the new CA");
    else if (counts && alone)
        add(out, CR_SHOWN_NEW, "");
    else
        judge_added_names(change, &endpoint->announced, at_ms, out);
}

static void judge_endpoint(const struct cr_trust_question *q, size_t index, struct finding *out)
{
    if (q->others && q->others[index])
        return;
    const struct cr_endpoint_trust *endpoint =
        index < q->sighting->endpoints_len ? &q->sighting->endpoints[index] : NULL;
    if (!endpoint || !endpoint->reached) {
        add(out, CR_SHOWN_UNKNOWN, "cannot be reached");
        return;
    }
    const struct cr_announced *announced = &endpoint->announced;
    if (!announced->asked)
        return;
    bool meant = announces_any(q->change, announced);
    if (announced->len && !announced->more && !meant)
        return;
    judge_added(q->change, endpoint, meant, q->sighting->at_ms, out);
    judge_removed_names(q->change, announced, out);
}

static void explain_endpoint(const struct cr_trust_question *q, size_t index, const char *text,
                             struct cr_shown_leaf *out)
{
    char name[ENDPOINT_NAME];
    cr_endpoint_name(&q->verify->endpoints[index], name, sizeof name);
    snprintf(out->why, sizeof out->why, "%s %s", name, text);
}

static void judge_endpoints(const struct cr_trust_question *q, struct cr_shown_leaf *out)
{
    struct finding all = {0};
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    for (size_t i = 0; i < q->verify->endpoints_len; i++) {
        struct finding one = {0};
        judge_endpoint(q, i, &one);
        if (!one.concerned)
            continue;
        if (!all.concerned || worse(all.shown, one.shown) != all.shown)
            explain_endpoint(q, i, one.text, out);
        add(&all, one.shown, one.text);
    }
    if (all.concerned)
        out->shown = all.shown;
}

/* --- the page --- */

static bool is_within(const char *path, const char *mount)
{
    size_t len = strlen(mount);
    return cr_starts_with(path, mount) && (!path[len] || path[len] == '/' || (len && mount[len - 1] == '/'));
}

static bool is_mounted(const struct cr_strvec *mounts, const char *path)
{
    for (size_t i = 0; i < mounts->len; i++)
        if (is_within(path, mounts->items[i]))
            return true;
    return false;
}

static bool lists(const struct cr_strvec *serials, const char *serial)
{
    return serial[0] && cr_strvec_has(serials, serial);
}

static bool is_distinctive(const char *serial)
{
    return strlen(serial) >= DISTINCTIVE_SERIAL;
}

static bool shares_a_ca(const struct cr_trust_change *change, const struct cr_certs_context *context)
{
    for (size_t i = 0; i < change->target->trust_len; i++) {
        const char *serial = change->target->trust[i].serial;
        if (is_distinctive(serial) && lists(&context->cas, serial))
            return true;
    }
    return false;
}

/* The name of a file shows which Secret it is of; what came by other ways has none. */
static bool is_of_secret(const struct cr_trust_question *q, const struct cr_certs_context *context)
{
    if (context->ca_path && q->mounts && q->mounts->len)
        return is_mounted(q->mounts, context->ca_path);
    return shares_a_ca(q->change, context);
}

static bool lists_others(const struct cr_trust_change *change, const struct cr_certs_context *context)
{
    size_t known = 0;
    for (size_t i = 0; i < change->target->trust_len; i++)
        known += lists(&context->cas, change->target->trust[i].serial);
    return known < context->cas.len;
}

static void judge_context(const struct cr_trust_question *q, const struct cr_certs_context *context,
                          struct finding *out)
{
    const struct cr_trust_change *change = q->change;
    for (size_t i = 0; i < change->added_len; i++) {
        const struct cr_ca *ca = change->added[i];
        if (!is_valid(ca, q->sighting->at_ms))
            continue;
        if (!is_distinctive(ca->serial))
            add(out, CR_SHOWN_NOTHING, "");
        else if (lists(&context->cas, ca->serial))
            add(out, CR_SHOWN_NEW, "");
        else
            add(out, CR_SHOWN_OLD, "does not list the new CA");
    }
    /* What went is not known by its serial number: that it went shows only in that nothing is there beyond the target.
     */
    if (change->removed_len || change->before_unknown)
        add(out, lists_others(change, context) ? CR_SHOWN_NOTHING : CR_SHOWN_NEW, "");
}

static void explain_page(const struct cr_policy_verify *verify, const char *text, const char *words,
                         struct cr_shown_leaf *out)
{
    snprintf(out->why, sizeof out->why, "port %d%s %s%s%s", verify->certs_port, cr_or_empty(verify->certs_path), text,
             words[0] ? ": " : "", words);
}

/* False: it was not read, which out says. */
static bool page_is_read(const struct cr_trust_sighting *sighting, const struct cr_policy_verify *verify,
                         struct cr_shown_leaf *out)
{
    if (sighting->page_read)
        return true;
    out->shown = CR_SHOWN_UNKNOWN;
    explain_page(verify, "cannot be read", sighting->words, out);
    return false;
}

static void judge_page(const struct cr_trust_question *q, struct cr_shown_leaf *out)
{
    struct finding all = {0};
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (!q->verify->certs_port || !page_is_read(q->sighting, q->verify, out))
        return;
    for (size_t i = 0; i < q->sighting->contexts_len; i++)
        if (is_of_secret(q, &q->sighting->contexts[i]))
            judge_context(q, &q->sighting->contexts[i], &all);
    if (!all.concerned)
        return;
    out->shown = all.shown;
    if (all.shown != CR_SHOWN_NEW)
        explain_page(q->verify, all.text, "", out);
}

/* --- all of it --- */

bool cr_trust_can_be_seen(unsigned roles, const struct cr_policy_verify *verify)
{
    bool verifies_clients = roles & CR_ROLE_BIT(CR_ROLE_CLIENT_CA);
    bool verifies_servers = roles & CR_ROLE_BIT(CR_ROLE_SERVER_CA);
    return (verifies_clients && verify->endpoints_len) ||
           ((verifies_clients || verifies_servers) && verify->certs_port);
}

/* False: not since the change, which out says. */
static bool is_recent(const struct cr_trust_sighting *sighting, int64_t since_ms, struct cr_shown_leaf *out)
{
    if (sighting->at_ms && sighting->at_ms >= since_ms)
        return true;
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_UNKNOWN};
    snprintf(out->why, sizeof out->why, "has not been asked yet which CAs it trusts");
    return false;
}

static void take_worse(struct cr_shown_leaf *out, const struct cr_shown_leaf *other)
{
    if (worse(out->shown, other->shown) != out->shown)
        *out = *other;
}

void cr_trust_judge(const struct cr_trust_question *q, struct cr_shown_leaf *out)
{
    struct cr_shown_leaf endpoints;
    struct cr_shown_leaf page;
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (!q->sighting || !cr_trust_can_be_seen(q->roles, q->verify) || !is_recent(q->sighting, q->since_ms, out))
        return;
    judge_endpoints(q, &endpoints);
    judge_page(q, &page);
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NEW};
    if (q->roles & CR_ROLE_BIT(CR_ROLE_CLIENT_CA))
        take_worse(out, endpoints.shown == CR_SHOWN_NOTHING ? &page : &endpoints);
    if (q->roles & CR_ROLE_BIT(CR_ROLE_SERVER_CA))
        take_worse(out, &page);
    if (page.shown == CR_SHOWN_OLD)
        take_worse(out, &page);
    if (out->shown == CR_SHOWN_OLD)
        out->old_ms = q->sighting->at_ms;
    if (out->shown == CR_SHOWN_NEW || out->shown == CR_SHOWN_NOTHING)
        out->why[0] = '\0';
}

void cr_page_leaf_judge(const struct cr_trust_sighting *sighting, const struct cr_policy_verify *verify,
                        int64_t since_ms, const char *serial, const char *old_serial, struct cr_shown_leaf *out)
{
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    if (!sighting || !verify->certs_port || !is_recent(sighting, since_ms, out) || !page_is_read(sighting, verify, out))
        return;
    bool distinguishes_old = is_distinctive(old_serial) && !cr_streq(old_serial, serial);
    for (size_t i = 0; i < sighting->contexts_len; i++) {
        const struct cr_strvec *leaves = &sighting->contexts[i].leaves;
        if (distinguishes_old && lists(leaves, old_serial)) {
            *out = (struct cr_shown_leaf){.shown = CR_SHOWN_OLD, .old_ms = sighting->at_ms};
            explain_page(verify, "still lists the old leaf", "", out);
            return;
        }
        if (is_distinctive(serial) && lists(leaves, serial))
            out->shown = CR_SHOWN_NEW;
    }
}
