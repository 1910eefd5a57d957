/* One sentence that explains a decision to the engineer who reads the status. */
#include "policy/rules/decide_internal.h"

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
    size_t len = cr_utf8_fit(name, NAME_MAX_SHOWN);
    cr_buf_printf(buf, "%.*s%s", (int)len, name, name[len] ? "..." : "");
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

static enum cr_notifier notifier_of(const struct sentence *s, const struct cr_finding *finding)
{
    if (finding->ground == CR_GROUND_NOTIFIED)
        return CR_NOTIFIER_SIDECAR;
    /* say_not_notified explains a sidecar that is there. */
    return s->findings->sidecar.container ? CR_NOTIFIER_UNNAMED : CR_NOTIFIER_NONE;
}

static void say_capability(struct sentence *s, const struct cr_finding *finding)
{
    char phrase[256];
    struct cr_buf *buf = &s->buf;
    cr_capability_phrase(&finding->capability, finding->role, finding->parameter, notifier_of(s, finding), phrase,
                         sizeof phrase);
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

/* --- without a restart --- */

/* Said the same way: one sentence fits both. */
static bool alike(const struct cr_finding *a, const struct cr_finding *b)
{
    if (a->component != b->component || a->overridden != b->overridden || a->ground != b->ground ||
        !cr_streq(a->capability.says, b->capability.says))
        return false;
    return a->capability.says || (a->role == b->role && a->capability.method == b->capability.method);
}

static bool all_alike(const struct cr_findings *findings)
{
    for (size_t i = 1; i < findings->len; i++)
        if (!alike(&findings->items[0], &findings->items[i]))
            return false;
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

/* The longest delay with which a container reloads a role; -1: it does not. NULL: any container. */
static int64_t slowest(const struct cr_findings *findings, const char *container, enum cr_role role)
{
    int64_t longest = -1;
    for (size_t i = 0; i < findings->len; i++) {
        const struct cr_finding *f = &findings->items[i];
        if (f->role == role && cr_finding_reloads(f) && f->capability.max_delay_ms > longest &&
            (!container || strcmp(container, f->usage->container) == 0))
            longest = f->capability.max_delay_ms;
    }
    return longest;
}

static bool one_container(const struct sentence *s)
{
    for (size_t i = 0; i < s->findings->len; i++)
        if (strcmp(s->findings->items[i].usage->container, s->deciding->usage->container) != 0)
            return false;
    return true;
}

static void say_alike(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    unsigned classes = classes_of(s->findings);
    say_who(buf, s->deciding->component, s->deciding->usage);
    cr_buf_puts(buf, " ");
    say_capability(s, s->deciding);
    cr_buf_puts(buf, ": ");
    say_new_material(buf, classes);
    cr_buf_puts(buf, classes & (classes - 1) ? " are taken up " : " is taken up ");
    say_delay(buf, s->deciding->capability.max_delay_ms);
    cr_buf_puts(buf, ", no restart.");
}

static bool is_notified_alike(const struct cr_finding *a, const struct cr_finding *b)
{
    return a->ground == CR_GROUND_NOTIFIED && b->ground == CR_GROUND_NOTIFIED &&
           a->capability.method == b->capability.method && a->capability.signal &&
           cr_streq(a->capability.signal, b->capability.signal);
}

/* " takes up by itself what changed", or at which word of its certroll-sidecar. */
static void say_takes_up(struct sentence *s)
{
    bool alike = true, by_itself = false;
    const struct cr_capability *capability = &s->deciding->capability;
    for (size_t i = 0; i < s->findings->len; i++) {
        alike = alike && is_notified_alike(s->deciding, &s->findings->items[i]);
        by_itself = by_itself || s->findings->items[i].ground == CR_GROUND_RELOADS;
    }
    cr_buf_puts(&s->buf, " takes up ");
    if (alike && capability->method == CR_METHOD_SIGNAL)
        cr_buf_printf(&s->buf, "on %s, which its certroll-sidecar sends, ", capability->signal);
    else if (s->deciding->ground == CR_GROUND_NOTIFIED)
        cr_buf_printf(&s->buf, "%swhen its certroll-sidecar tells it ", by_itself ? "by itself or " : "");
    else
        cr_buf_puts(&s->buf, "by itself ");
    cr_buf_puts(&s->buf, "what changed");
}

static void say_roles_with_delays(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    say_who(buf, s->deciding->component, s->deciding->usage);
    say_takes_up(s);
    const char *separator = ": its ";
    for (unsigned role = 0; role < CR_ROLE_COUNT; role++) {
        int64_t delay = slowest(s->findings, NULL, (enum cr_role)role);
        if (delay < 0)
            continue;
        cr_buf_printf(buf, "%s%s ", separator, cr_role_words((enum cr_role)role));
        say_delay(buf, delay);
        separator = ", its ";
    }
    cr_buf_puts(buf, "; no restart.");
}

static void say_several_containers(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    bool notified = s->deciding->ground == CR_GROUND_NOTIFIED;
    cr_buf_puts(buf, notified ? "the containers take up what changed, "
                              : "the containers take up by themselves what changed, the slowest is ");
    say_who(buf, s->deciding->component, s->deciding->usage);
    cr_buf_puts(buf, notified ? " when its certroll-sidecar tells it, " : " ");
    say_delay(buf, s->deciding->capability.max_delay_ms);
    cr_buf_puts(buf, "; no restart.");
}

static void say_reload(struct sentence *s)
{
    if (all_alike(s->findings))
        say_alike(s);
    else if (one_container(s))
        say_roles_with_delays(s);
    else
        say_several_containers(s);
}

/* --- restart --- */

static void say_fixed_usage(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    const struct cr_finding *f = s->deciding;
    const char *key = !f->key[0] && f->usage->keys.len == 1 ? f->usage->keys.items[0] : f->key;
    cr_buf_puts(buf, f->usage->init ? "init container " : "container ");
    say_name(buf, f->usage->container);
    cr_buf_puts(buf, f->usage->kind == CR_USAGE_ENV ? " has " : " mounts ");
    if (*key) {
        say_name(buf, key);
        cr_buf_puts(buf, " of ");
    }
    cr_buf_puts(buf, "Secret ");
    say_name(buf, secret_of(s, f));
    if (cr_usage_refreshes(f->usage->kind)) {
        cr_buf_puts(buf,
                    ", which was immutable and was replaced under its name, so that its kubelet does not refresh it");
        return;
    }
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
    cr_buf_printf(buf, " takes up %s %s", s->deciding->role == CR_ROLE_OPAQUE ? "new" : "a new",
                  cr_role_words(s->deciding->role));
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
    case CR_GROUND_NOT_NOTIFIED:
    case CR_GROUND_CAPABILITY:
    case CR_GROUND_NOTIFIED:
    case CR_GROUND_RELOADS:
        break;
    }
    say_who(&s->buf, f->component, f->usage);
    cr_buf_puts(&s->buf, " ");
    say_capability(s, f);
}

/* Why the sidecar that is there does not notify it. */
static void say_not_notified(struct sentence *s)
{
    struct cr_buf *buf = &s->buf;
    const struct cr_finding *f = s->deciding;
    if (f->ground != CR_GROUND_NOT_NOTIFIED || !s->findings->sidecar.container)
        return;
    if (f->class == CR_CLASS_OPAQUE) {
        cr_buf_puts(buf, "; its certroll-sidecar passes no opaque material on");
        return;
    }
    cr_buf_printf(buf, "; its certroll-sidecar does not mount the %s of Secret ",
                  f->class == CR_CLASS_LEAF ? "leaf" : "CAs");
    say_name(buf, secret_of(s, f));
}

static void say_change(struct sentence *s)
{
    const struct cr_finding *f = s->deciding;
    unsigned changes = s->input->changes[f->secret].changes;
    for (unsigned bit = 0; bit < CR_CHANGE_BITS; bit++)
        if (!(cr_diff_classes(1u << bit) & f->class))
            changes &= ~(1u << bit);
    cr_buf_puts(&s->buf, ", and ");
    if (s->input->changes_len > 1 && f->ground != CR_GROUND_FIXED && f->ground != CR_GROUND_INIT) {
        cr_buf_puts(&s->buf, "in Secret ");
        say_name(&s->buf, secret_of(s, f));
        cr_buf_puts(&s->buf, " ");
    }
    cr_autofree char *what = cr_diff_sentence(changes);
    cr_buf_puts(&s->buf, what);
}

/* What the same container would have taken up without a restart: it shows that the rest was looked at. */
static void say_spared(struct sentence *s)
{
    const char *separator = "; its ";
    int64_t longest = -1;
    for (int role = 0; role < CR_ROLE_COUNT; role++) {
        int64_t delay = slowest(s->findings, s->deciding->usage->container, (enum cr_role)role);
        if (delay < 0 || role == (int)s->deciding->role)
            continue;
        cr_buf_printf(&s->buf, "%s%s", separator, cr_role_words((enum cr_role)role));
        separator = " and its ";
        longest = delay > longest ? delay : longest;
    }
    if (longest < 0)
        return;
    cr_buf_puts(&s->buf, " would have been reloaded ");
    say_delay(&s->buf, longest);
}

static void say_restart(struct sentence *s)
{
    say_ground(s);
    say_change(s);
    cr_buf_puts(&s->buf, ": restart");
    if (s->deciding->ground == CR_GROUND_UNKNOWN && !s->deciding->overridden)
        cr_buf_printf(&s->buf, "; spec.consumers[].reload.%s can tell", cr_role_name(s->deciding->role));
    say_not_notified(s);
    say_spared(s);
    cr_buf_puts(&s->buf, ".");
}

static void cut(char *text)
{
    static const char dots[] = "...";
    if (strlen(text) > CR_REASON_MAX)
        memcpy(text + cr_utf8_fit(text, CR_REASON_MAX - strlen(dots)), dots, sizeof dots);
}

/* A sentence of ours begins with a capital; programs keep the case of their names ("etcd"). */
static void capitalize(char *text)
{
    static const char *const ours[] = {"the ", "container ", "init container ", "it ", "component "};
    for (size_t i = 0; i < cr_array_len(ours); i++) {
        if (cr_starts_with(text, ours[i])) {
            *text = (char)(*text - 'a' + 'A');
            return;
        }
    }
}

char *cr_decide_reason(const struct cr_decide_input *input, const struct cr_decision *decision,
                       const struct cr_findings *findings, const struct cr_finding *deciding)
{
    struct sentence s = {.input = input, .decision = decision, .findings = findings, .deciding = deciding};
    if (!deciding)
        say_none(&s);
    else if (cr_finding_reloads(deciding))
        say_reload(&s);
    else
        say_restart(&s);
    char *text = cr_buf_steal(&s.buf);
    capitalize(text);
    cut(text);
    return text;
}
