/* The decision for what has no pods: the controller of an Ingress or a Gateway watches the Secrets that it names. */
#include "policy/rules/decide.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/strvec.h"
#include "catalogue/words.h"
#include "evidence/diff.h"
#include "catalogue/usage.h"

static int64_t delay_of(const struct cr_policy_consumer *consumer)
{
    const struct cr_reload_override *override = &consumer->reload[CR_ROLE_SERVER_LEAF];
    return override->set && override->max_delay_ms ? override->max_delay_ms
                                                   : cr_method_default_delay_ms(CR_METHOD_API_WATCH);
}

/* Both name the certificate that they show, and no CA: a trust that changed beside it does not concern them. */
static void judge(const struct cr_decide_input *input, const struct cr_strvec *used, size_t index,
                  struct cr_decision_secret *out)
{
    const struct cr_secret_change *change = &input->changes[index];
    out->used = cr_strvec_has(used, change->secret->name);
    if (!out->used)
        return;
    out->roles = CR_ROLE_BIT(CR_ROLE_SERVER_LEAF);
    out->reload_classes = cr_diff_classes(change->changes) & CR_CLASS_LEAF;
    if (!out->reload_classes)
        return;
    out->reloads = true;
    out->kind = CR_DECISION_HOT_RELOAD;
    out->max_delay_ms = delay_of(input->consumer);
}

static char *reason_of(const struct cr_decide_input *input, const struct cr_decision *decision)
{
    const struct cr_policy_consumer *consumer = input->consumer;
    if (decision->kind == CR_DECISION_NONE)
        return cr_asprintf("no leaf that %s %s names has changed: nothing to do.", consumer->kind, consumer->target);
    char delay[CR_TIME_TEXT];
    cr_duration_format(delay_of(consumer), delay);
    return cr_asprintf("the controller of %s %s watches the Secrets that it names (ApiWatch) and has taken up the new "
                       "leaf within %s, which is inferred, not seen: no restart.",
                       consumer->kind, consumer->target, delay);
}

void cr_decide_by_api(const struct cr_decide_input *input, const struct cr_json *object, struct cr_decision *out)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec used = {0};
    cr_usage_of_object(input->consumer->kind, object, &used);
    *out = (struct cr_decision){.secrets_len = input->changes_len};
    out->secrets = cr_calloc(input->changes_len, sizeof *out->secrets);
    for (size_t i = 0; i < input->changes_len; i++) {
        judge(input, &used, i, &out->secrets[i]);
        if (out->secrets[i].kind > out->kind)
            out->kind = out->secrets[i].kind;
    }
    out->reason = reason_of(input, out);
}
