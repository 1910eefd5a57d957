/* One sentence that says why, for the engineer who looks at the status and wonders. */
#include "rotation/decide_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"

/* Names from outside are cut to this, so that what matters has room. */
enum { NAME_MAX_SHOWN = 80 };

struct sentence {
    const struct cr_decide_input *input;
    const struct cr_decision *decision;
    const struct cr_findings *findings;
    const struct cr_finding *deciding;
    struct cr_buf buf;
};

static void say_name(struct cr_buf *buf, const char *name)
{
    bool cut = strlen(name) > NAME_MAX_SHOWN;
    cr_buf_printf(buf, "%.*s%s", NAME_MAX_SHOWN, name, cut ? "..." : "");
}

/* "Rate Limit (envoyproxy/ratelimit)", or "container app (image acme/app:1)". */
static void say_who(struct cr_buf *buf, const struct cr_component *component, const struct cr_usage *usage)
{
    char title[128];
    if (component) {
        cr_component_title(component, title, sizeof title);
        cr_buf_puts(buf, title);
        return;
    }
    cr_buf_puts(buf, "container ");
    say_name(buf, usage->container);
    cr_buf_puts(buf, " (image ");
    say_name(buf, *usage->image ? usage->image : "not set");
    cr_buf_puts(buf, ")");
}

static void say_delay(struct cr_buf *buf, int64_t ms)
{
    char text[CR_TIME_TEXT];
    cr_duration_format(ms, text);
    cr_buf_printf(buf, "within %s", text);
}

static void say_capability(struct cr_buf *buf, const struct cr_finding *finding)
{
    char phrase[256];
    cr_capability_phrase(&finding->capability, finding->role, finding->parameter, phrase, sizeof phrase);
    cr_buf_puts(buf, phrase);
    if (finding->overridden)
        cr_buf_puts(buf, " (so says the policy)");
}

static const char *secret_of(const struct sentence *s, const struct cr_finding *finding)
{
    return s->input->changes[finding->secret].secret->name;
}

/* --- nothing to do --- */

static void say_unused(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    if (s->input->changes_len == 1) {
        cr_buf_puts(buf, "the pod template does not use Secret ");
        say_name(buf, s->input->changes[0].secret->name);
        cr_buf_puts(buf, ", which changed: nothing to do.");
        return;
    }
    cr_buf_puts(buf, "the pod template uses none of the Secrets that changed: nothing to do.");
}

static void say_roles(struct cr_buf *buf, unsigned roles)
{
    const char *separator = "";
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++) {
        if (!(roles & CR_ROLE_BIT(role)))
            continue;
        cr_buf_printf(buf, "%s%s", separator, cr_role_words((enum cr_role)role));
        separator = " and ";
    }
}

static void say_unconcerned(struct sentence *s, size_t index)
{
    struct cr_buf *buf = &s->buf;
    const struct cr_secret_change *change = &s->input->changes[index];
    cr_autofree char *what = cr_diff_sentence(change->changes);
    const struct cr_component *component = cr_catalogue_by_name(s->input->catalogue, s->decision->component);
    char title[128] = "the workload";
    if (component)
        cr_component_title(component, title, sizeof title);
    cr_buf_printf(buf, "%s takes ", title);
    if (s->decision->secrets[index].roles) {
        cr_buf_puts(buf, "only its ");
        say_roles(buf, s->decision->secrets[index].roles);
    } else {
        cr_buf_puts(buf, "nothing that it is known to use");
    }
    cr_buf_puts(buf, " from Secret ");
    say_name(buf, change->secret->name);
    cr_buf_printf(buf, ", in which %s: nothing to do.", what);
}

static void say_none(struct sentence *s)
{
    for (size_t i = 0; i < s->input->changes_len; i++) {
        if (s->decision->secrets[i].used) {
            say_unconcerned(s, i);
            return;
        }
    }
    say_unused(s);
}

/* --- hot reload --- */

static bool all_alike(const struct cr_findings *findings)
{
    for (size_t i = 1; i < findings->len; i++) {
        const struct cr_finding *a = &findings->items[0];
        const struct cr_finding *b = &findings->items[i];
        if (a->component != b->component || a->overridden != b->overridden || !a->capability.says ||
            !cr_streq(a->capability.says, b->capability.says))
            return false;
    }
    return true;
}

static void say_new_material(struct cr_buf *buf, unsigned classes)
{
    const char *separator = "";
    if (classes & CR_CLASS_LEAF) {
        cr_buf_puts(buf, "the renewed leaf");
        separator = " and ";
    }
    if (classes & CR_CLASS_TRUST) {
        cr_buf_printf(buf, "%sthe new set of CAs", separator);
        separator = " and ";
    }
    if (classes & CR_CLASS_OPAQUE)
        cr_buf_printf(buf, "%sthe new opaque material", separator);
}

static unsigned classes_of(const struct cr_findings *findings)
{
    unsigned classes = 0;
    for (size_t i = 0; i < findings->len; i++)
        classes |= findings->items[i].class;
    return classes;
}

/* The longest delay of a role among the findings before `end` and after; first is whether none before has that role. */
static int64_t slowest(const struct cr_findings *findings, enum cr_role role)
{
    int64_t longest = -1;
    for (size_t i = 0; i < findings->len; i++) {
        const struct cr_finding *f = &findings->items[i];
        if (f->role == role && f->ground == CR_GROUND_RELOADS && f->capability.max_delay_ms > longest)
            longest = f->capability.max_delay_ms;
    }
    return longest;
}

/* "its server leaf (within 5s) and its client CA (within 5m)"; false when no role reloads. but: a role to leave out. */
static bool say_reloading_roles(struct cr_buf *buf, const struct cr_findings *findings, int but)
{
    bool any = false;
    for (int role = 0; role < CR_ROLE_COUNT; role++) {
        int64_t delay = slowest(findings, (enum cr_role)role);
        if (delay < 0 || role == but)
            continue;
        cr_buf_printf(buf, "%sits %s (", any ? ", " : "", cr_role_words((enum cr_role)role));
        say_delay(buf, delay);
        cr_buf_puts(buf, ")");
        any = true;
    }
    return any;
}

static void say_hot_reload(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    say_who(buf, s->deciding->component, s->deciding->usage);
    if (all_alike(s->findings)) {
        cr_buf_puts(buf, " ");
        say_capability(buf, s->deciding);
        cr_buf_puts(buf, ": ");
        unsigned classes = classes_of(s->findings);
        say_new_material(buf, classes);
        cr_buf_puts(buf, classes & (classes - 1) ? " are taken up " : " is taken up ");
        say_delay(buf, s->deciding->capability.max_delay_ms);
        cr_buf_puts(buf, ", no restart.");
        return;
    }
    cr_buf_puts(buf, " takes up by itself what changed: ");
    say_reloading_roles(buf, s->findings, -1);
    cr_buf_puts(buf, "; no restart.");
}

/* --- restart --- */

static void say_fixed_usage(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    const struct cr_finding *f = s->deciding;
    const char *key = f->key;
    cr_buf_puts(buf, f->usage->init ? "init container " : "container ");
    say_name(buf, f->usage->container);
    cr_buf_puts(buf, f->usage->kind == CR_USAGE_ENV ? " has " : " mounts ");
    if (*key)
        cr_buf_printf(buf, "%s of ", key);
    cr_buf_puts(buf, "Secret ");
    say_name(buf, secret_of(s, f));
    cr_buf_puts(buf, f->usage->kind == CR_USAGE_ENV ? " in its environment" : " by subPath");
    cr_buf_puts(buf, ", which never refreshes while it runs");
}

static void say_init(struct sentence *s)
{
    cr_buf_puts(&s->buf, "init container ");
    say_name(&s->buf, s->deciding->usage->container);
    cr_buf_puts(&s->buf, " reads Secret ");
    say_name(&s->buf, secret_of(s, s->deciding));
    cr_buf_puts(&s->buf, " once, before the pod starts");
}

static void say_unknown_component(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    const char *given = s->input->consumer->component;
    if (given && !cr_catalogue_by_name(s->input->catalogue, given)) {
        cr_buf_puts(buf, "component ");
        say_name(buf, given);
        cr_buf_puts(buf, " of the policy is not in the catalogue");
        return;
    }
    cr_buf_puts(buf, "it is not known how ");
    say_who(buf, NULL, s->deciding->usage);
    cr_buf_printf(buf, " takes up a new %s", cr_role_words(s->deciding->role));
}

static void say_ground(struct sentence *s)
{
    const struct cr_finding *f = s->deciding;
    switch (f->ground) {
    case CR_GROUND_FIXED:
        say_fixed_usage(s);
        return;
    case CR_GROUND_INIT:
        say_init(s);
        return;
    case CR_GROUND_UNKNOWN:
        if (!f->component && !f->overridden) {
            say_unknown_component(s);
            return;
        }
        break;
    case CR_GROUND_TRIGGER:
    case CR_GROUND_CAPABILITY:
    case CR_GROUND_RELOADS:
        break;
    }
    say_who(&s->buf, f->component, f->usage);
    cr_buf_puts(&s->buf, " ");
    say_capability(&s->buf, f);
}

static void say_change(struct sentence *s)
{
    const struct cr_finding *f = s->deciding;
    unsigned changes = s->input->changes[f->secret].changes;
    for (unsigned bit = 0; bit < CR_CHANGE_BITS; bit++)
        if (!(cr_diff_classes(1u << bit) & f->class))
            changes &= ~(1u << bit);
    cr_autofree char *what = cr_diff_sentence(changes);
    cr_buf_printf(&s->buf, ", and %s", what);
    if (s->input->changes_len > 1 && f->ground != CR_GROUND_FIXED && f->ground != CR_GROUND_INIT) {
        cr_buf_puts(&s->buf, " in Secret ");
        say_name(&s->buf, secret_of(s, f));
    }
}

static void say_restart(struct sentence *s)
{
    say_ground(s);
    say_change(s);
    cr_buf_puts(&s->buf, ": restart");
    size_t before = s->buf.len;
    cr_buf_puts(&s->buf, "; ");
    if (say_reloading_roles(&s->buf, s->findings, s->deciding->role))
        cr_buf_puts(&s->buf, " would have been reloaded");
    else if (s->deciding->ground == CR_GROUND_UNKNOWN && !s->deciding->overridden)
        cr_buf_printf(&s->buf, "spec.consumers[].reload.%s can say better", cr_role_name(s->deciding->role));
    else
        s->buf.len = before;
    cr_buf_puts(&s->buf, ".");
}

/* Cut in front of a character, not in the middle of its UTF-8. */
static void cut(char *text, size_t max)
{
    if (strlen(text) <= max)
        return;
    size_t at = max - 3;
    while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    memcpy(text + at, "...", 4);
}

char *cr_decide_reason(const struct cr_decide_input *input, const struct cr_decision *decision,
                       const struct cr_findings *findings, const struct cr_finding *deciding)
{
    struct sentence s = {.input = input, .decision = decision, .findings = findings, .deciding = deciding};
    if (!deciding)
        say_none(&s);
    else if (deciding->ground == CR_GROUND_RELOADS)
        say_hot_reload(&s);
    else
        say_restart(&s);
    char *text = cr_buf_steal(&s.buf);
    /* Programs keep the case of their names ("etcd"); a sentence of ours begins with a capital. */
    bool ours = !deciding || deciding->ground != CR_GROUND_RELOADS;
    if (ours && (cr_starts_with(text, "the ") || cr_starts_with(text, "container ") ||
                 cr_starts_with(text, "init container ") || cr_starts_with(text, "it ") ||
                 cr_starts_with(text, "component ")))
        *text = (char)toupper((unsigned char)*text);
    cut(text, CR_REASON_MAX);
    return text;
}
