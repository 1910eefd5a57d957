#include "evidence/sighting.h"

#include <stdio.h>

#include "base/strings.h"
#include "pki/leaf_names.h"

enum { ENDPOINT_NAME = 64 };

/* A name may be four times as long as a line of status allows: its end is cut. */
void cr_endpoint_name(const struct cr_verify_endpoint *endpoint, char *out, size_t size)
{
    if (endpoint->server_name)
        snprintf(out, size, "port %d (%.40s)", endpoint->port, endpoint->server_name);
    else
        snprintf(out, size, "port %d", endpoint->port);
}

static bool has(const struct cr_strvec *leaves, const char *leaf)
{
    return leaves && cr_strvec_has(leaves, leaf);
}

/* A client that asks for this name would refuse the leaf. */
static bool is_refused_for_name(const struct cr_sightings_input *in, const struct cr_verify_endpoint *endpoint)
{
    static const struct cr_strvec none = {0};
    return endpoint->server_name && in->on_missing_name == CR_ON_MISSING_NAME_HOLD &&
           !cr_leaf_names_cover(in->names ? in->names : &none, endpoint->server_name);
}

static enum cr_shown judge_new_leaf(const struct cr_sightings_input *in, const struct cr_verify_endpoint *endpoint,
                                    const struct cr_sighting *sighting, const char **text)
{
    if (sighting->client == CR_CLIENT_REFUSED)
        *text = "refuses the client certificate";
    else if (is_refused_for_name(in, endpoint))
        *text = "serves the new leaf, which is not for that name";
    else
        *text = "";
    return **text ? CR_SHOWN_UNKNOWN : CR_SHOWN_NEW;
}

/* What one endpoint shows; *text says it for a person. */
static enum cr_shown judge_leaf(const struct cr_sightings_input *in, const struct cr_verify_endpoint *endpoint,
                                const struct cr_sighting *sighting, const char **text)
{
    const char *leaf = sighting->leaf;
    bool demanded = endpoint->secret_name != NULL;
    if (!demanded && has(in->others, leaf))
        return CR_SHOWN_NOTHING;
    if (cr_streq(leaf, in->leaf))
        return judge_new_leaf(in, endpoint, sighting, text);
    if (has(in->old, leaf)) {
        *text = "still serves the old leaf";
        return CR_SHOWN_OLD;
    }
    if (has(in->others, leaf))
        *text = "serves the leaf of another Secret";
    else
        *text = in->old ? "serves a leaf that is neither the new nor the old one" : "serves another certificate";
    return CR_SHOWN_UNKNOWN;
}

/* The look was good, and what it saw is not what it should be. */
static bool is_other(const struct cr_sightings_input *in, size_t index, enum cr_shown shown)
{
    const struct cr_sighting *sighting = &in->sightings[index];
    return shown == CR_SHOWN_UNKNOWN && sighting->seen == CR_SEEN_LEAF && sighting->leaf[0] &&
           sighting->at_ms >= in->since_ms && !cr_streq(sighting->leaf, in->leaf);
}

static enum cr_shown judge_endpoint(const struct cr_sightings_input *in, size_t index, const char **text)
{
    const struct cr_verify_endpoint *endpoint = &in->verify->endpoints[index];
    const struct cr_sighting *sighting = &in->sightings[index];
    if (endpoint->secret_name && !cr_streq(endpoint->secret_name, in->secret))
        return CR_SHOWN_NOTHING;
    *text = "has not been asked yet";
    if (sighting->seen == CR_SEEN_NOTHING || !sighting->at_ms || sighting->at_ms < in->since_ms)
        return CR_SHOWN_UNKNOWN;
    *text = "cannot be reached";
    if (sighting->seen == CR_SEEN_UNREACHABLE)
        return CR_SHOWN_UNKNOWN;
    *text = "has not proved a leaf";
    if (sighting->seen == CR_SEEN_UNPROVED)
        return CR_SHOWN_UNKNOWN;
    *text = "is over a limit of probes";
    if (sighting->seen == CR_SEEN_TOO_COSTLY)
        return CR_SHOWN_UNKNOWN;
    *text = "does not speak TLS";
    if (sighting->seen == CR_SEEN_NOT_TLS || !sighting->leaf[0])
        return CR_SHOWN_UNKNOWN;
    return judge_leaf(in, endpoint, sighting, text);
}

static void explain(const struct cr_sightings_input *in, size_t index, const char *text, struct cr_shown_leaf *out)
{
    char name[ENDPOINT_NAME];
    const struct cr_sighting *sighting = &in->sightings[index];
    /* Words from before the change would explain something else. */
    bool words = out->shown == CR_SHOWN_UNKNOWN && sighting->words[0] && sighting->at_ms >= in->since_ms;
    cr_endpoint_name(&in->verify->endpoints[index], name, sizeof name);
    snprintf(out->why, sizeof out->why, "%s %s%s%s", name, text, words ? ": " : "", words ? sighting->words : "");
}

/* Worst last: one old leaf counts more than all that is unknown, which counts more than what is new. */
static int weight(enum cr_shown shown)
{
    static const int order[] = {[CR_SHOWN_NOTHING] = 0, [CR_SHOWN_NEW] = 1, [CR_SHOWN_UNKNOWN] = 2, [CR_SHOWN_OLD] = 3};
    return order[shown];
}

void cr_sightings_judge(const struct cr_sightings_input *in, struct cr_shown_leaf *out)
{
    *out = (struct cr_shown_leaf){.shown = CR_SHOWN_NOTHING};
    for (size_t i = 0; i < in->verify->endpoints_len; i++) {
        const char *text = "";
        enum cr_shown shown = judge_endpoint(in, i, &text);
        if (shown == CR_SHOWN_OLD && in->sightings[i].at_ms > out->old_ms)
            out->old_ms = in->sightings[i].at_ms;
        bool other = is_other(in, i, shown);
        if (weight(shown) < weight(out->shown) || (weight(shown) == weight(out->shown) && other <= out->other))
            continue;
        out->shown = shown;
        out->other = other;
        if (shown != CR_SHOWN_NEW)
            explain(in, i, text, out);
    }
}
