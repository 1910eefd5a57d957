#include "evidence/evidence.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/strings.h"

enum { WHY = CR_SHOWN_WHY };

const char *cr_evidence_name(enum cr_evidence evidence)
{
    static const char *const names[] = {
        [CR_EVIDENCE_VERIFIED] = "Verified",
        [CR_EVIDENCE_INFERRED] = "Inferred",
        [CR_EVIDENCE_STALE] = "Stale",
        [CR_EVIDENCE_UNKNOWN] = "Unknown",
    };
    return (size_t)evidence < cr_array_len(names) ? names[evidence] : "";
}

static enum cr_evidence say(enum cr_evidence evidence, char *why, const char *text)
{
    snprintf(why, WHY, "%s", text);
    return evidence;
}

/* By now every volume has been refreshed, and every program that reloads by itself has done so. */
static int64_t settled_by(const struct cr_evidence_input *in)
{
    return in->since_ms + CR_KUBELET_REFRESH_MS + in->max_delay_ms;
}

/* A pod's start time has whole seconds. */
static bool started_after_change(const struct cr_evidence_input *in)
{
    return in->pod_started_ms / 1000 >= in->since_ms / 1000;
}

static enum cr_evidence judge_by_time(const struct cr_evidence_input *in, char *why)
{
    if (in->now_ms >= settled_by(in))
        return CR_EVIDENCE_INFERRED;
    /* The time, not what is left of it: a countdown would be news each second. */
    char until[CR_TIME_TEXT];
    cr_time_format(settled_by(in), until);
    snprintf(why, WHY, "waits until %s for the kubelet's refresh of the volume and the reload", until);
    return CR_EVIDENCE_UNKNOWN;
}

static bool is_shown(const struct cr_evidence_input *in)
{
    return in->shown && in->shown->shown != CR_SHOWN_NOTHING;
}

static enum cr_evidence say_stale(const struct cr_evidence_input *in, const struct cr_shown_leaf *shown, char *why)
{
    if (in->restarted)
        snprintf(why, WHY, "restarted, but %s: it mounted the kubelet's cached Secret", shown->why);
    else
        say(CR_EVIDENCE_STALE, why, shown->why);
    return CR_EVIDENCE_STALE;
}

/* What a probe, or the pod's certroll-sidecar, says about a change of the leaf. */
static enum cr_evidence judge_shown(const struct cr_evidence_input *in, char *why)
{
    if (in->shown->shown == CR_SHOWN_NEW)
        return CR_EVIDENCE_VERIFIED;
    if (in->shown->shown == CR_SHOWN_DELIVERED)
        return CR_EVIDENCE_INFERRED;
    if (in->shown->shown == CR_SHOWN_UNKNOWN)
        return say(CR_EVIDENCE_UNKNOWN, why, in->shown->why);
    return say_stale(in, in->shown, why);
}

static bool has_it(enum cr_evidence evidence)
{
    return evidence == CR_EVIDENCE_VERIFIED || evidence == CR_EVIDENCE_INFERRED;
}

/* Not looked at since, or in vain: pods that restarted are looked at first, since a start only infers; for pods that
 * reload, time decides in the end, as for all that cannot be seen. */
static enum cr_evidence await_trust(const struct cr_evidence_input *in, enum cr_evidence evidence, char *why)
{
    bool over = !in->restarted && !in->trust_notified && in->now_ms >= settled_by(in);
    if (over || (!has_it(evidence) && !in->trust_alone))
        return evidence;
    return say(CR_EVIDENCE_UNKNOWN, why, in->trust->why);
}

/* evidence: what is known of all but the CAs. */
static enum cr_evidence with_trust(const struct cr_evidence_input *in, enum cr_evidence evidence, char *why)
{
    enum cr_shown shown = in->trust ? in->trust->shown : CR_SHOWN_NOTHING;
    switch (shown) {
    case CR_SHOWN_OLD:
        return say_stale(in, in->trust, why);
    case CR_SHOWN_UNKNOWN:
        return await_trust(in, evidence, why);
    case CR_SHOWN_NEW:
        return in->trust_alone ? say(CR_EVIDENCE_VERIFIED, why, "") : evidence;
    case CR_SHOWN_DELIVERED:
        return in->trust_alone || evidence == CR_EVIDENCE_VERIFIED ? say(CR_EVIDENCE_INFERRED, why, "") : evidence;
    default:
        return evidence;
    }
}

static enum cr_evidence judge_restarted(const struct cr_evidence_input *in, char *why)
{
    /* It holds in memory what it read at its start, whatever leaf it has reloaded since. */
    if (!in->pod_is_new)
        return say(CR_EVIDENCE_STALE, why, "started before the restart");
    if (in->pod_started_ms <= 0)
        return say(CR_EVIDENCE_UNKNOWN, why, "has not started yet");
    /* An earlier start with the same annotation: the material was this one before, or clocks differ. What reloads by
     * itself needs its time then. */
    enum cr_evidence evidence = is_shown(in)               ? judge_shown(in, why)
                                : started_after_change(in) ? CR_EVIDENCE_INFERRED
                                                           : judge_by_time(in, why);
    return with_trust(in, evidence, why);
}

/* A later start proves nothing here: a new pod may mount the old Secret from the kubelet's cache (kubernetes#129645),
 * and has it refreshed like any other. */
static enum cr_evidence judge_reloading(const struct cr_evidence_input *in, char *why)
{
    if (in->pod_started_ms <= 0)
        return say(CR_EVIDENCE_UNKNOWN, why, "has not started yet");
    return with_trust(in, is_shown(in) ? judge_shown(in, why) : judge_by_time(in, why), why);
}

enum cr_evidence cr_evidence_judge(const struct cr_evidence_input *input, char why[WHY])
{
    why[0] = '\0';
    return input->restarted ? judge_restarted(input, why) : judge_reloading(input, why);
}
