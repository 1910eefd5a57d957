/* Plays of a delivery: what it must want, and what happens to it, step by step. */
#ifndef TEST_SUPPORT_DELIVERYPLAY_H
#define TEST_SUPPORT_DELIVERYPLAY_H

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/strings.h"
#include "sidecar/delivery.h"

/* A play: each beat says what the delivery must want to do next, and what comes of it. Clocks stand still but for
 * passes. */
struct beat {
    const char *act;   /* "read", "output", "look", "trigger 1", "wait", "rest"; NULL: it is not asked */
    const char *then;  /* "A", "B": that material was read, "a": the leaf of "A" with another chain; "bad": refused;
                        * "ok",  "changed", "fails"; "new", "old", "none", "away" of a look; "event": the files may have
                        * changed; "pass 5s" */
    const char *state; /* after it; NULL: is not looked at */
};

struct play {
    const char *name;
    struct cr_delivery_rules rules;
    struct beat beats[24];
};

struct stage {
    struct cr_delivery d;
    int64_t now_ms;
};

static inline struct cr_delivery_digests play_material(char letter)
{
    struct cr_delivery_digests out = {0};
    memset(out.leaf, toupper(letter), sizeof out.leaf - 1);
    memset(out.chain, letter, sizeof out.chain - 1);
    return out;
}

static inline struct cr_delivery_now play_now(const struct stage *s)
{
    return (struct cr_delivery_now){.monotonic_ms = s->now_ms, .wall_ms = s->now_ms + 1000000};
}

static inline void play_expect(const struct stage *s, const char *act, const char *where)
{
    char is[32];
    static const char *const names[] = {[CR_ACT_WAIT] = "wait",
                                        [CR_ACT_READ] = "read",
                                        [CR_ACT_OUTPUT] = "output",
                                        [CR_ACT_LOOK] = "look",
                                        [CR_ACT_TRIGGER] = "trigger"};
    struct cr_delivery_step step = cr_delivery_next(&s->d, s->now_ms);
    snprintf(is, sizeof is, "%s", step.act == CR_ACT_WAIT && step.wait_ms < 0 ? "rest" : names[step.act]);
    if (step.act == CR_ACT_TRIGGER)
        snprintf(is, sizeof is, "trigger %zu", step.trigger);
    if (strcmp(is, act) != 0)
        fail_msg("%s: want %s, is %s", where, act, is);
}

static inline void play_look(struct stage *s, const char *what)
{
    struct cr_proof proof = {.words = "it serves another"};
    static const char *const verdicts[] = {
        [CR_PROOF_NONE] = "none", [CR_PROOF_NEW] = "new", [CR_PROOF_OLD] = "old", [CR_PROOF_UNKNOWN] = "away"};
    for (unsigned i = 0; i < cr_array_len(verdicts); i++)
        if (cr_streq(what, verdicts[i]))
            proof.verdict = (enum cr_proof_verdict)i;
    if (proof.verdict == CR_PROOF_NEW)
        memcpy(proof.served, s->d.found.leaf, sizeof proof.served);
    if (proof.verdict == CR_PROOF_OLD)
        memset(proof.served, 'o', sizeof proof.served - 1);
    cr_delivery_look(&s->d, &proof, play_now(s));
}

static inline void play_happen(struct stage *s, const char *act, const char *then)
{
    const char *failure = cr_streq(then, "fails") ? "it failed" : NULL;
    if (cr_starts_with(then, "pass "))
        s->now_ms += strtol(then + 5, NULL, 10) * 1000;
    else if (cr_streq(then, "event"))
        cr_delivery_changed(&s->d);
    else if (cr_streq(then, "bad"))
        cr_delivery_refuse(&s->d, "KeyMismatch", play_now(s));
    else if (cr_streq(act, "read"))
        cr_delivery_read(&s->d, &(struct cr_delivery_digests){0}, play_now(s));
    else if (cr_streq(act, "output"))
        cr_delivery_output(&s->d, cr_streq(then, "changed"), failure, play_now(s));
    else if (cr_streq(act, "look"))
        play_look(s, then);
    else
        cr_delivery_trigger(&s->d, failure, play_now(s));
}

static inline void play_beat(struct stage *s, const struct beat *beat, const char *where)
{
    if (beat->act)
        play_expect(s, beat->act, where);
    if (cr_streq(beat->act, "read") && strlen(beat->then) == 1) {
        struct cr_delivery_digests found = play_material(beat->then[0]);
        cr_delivery_read(&s->d, &found, play_now(s));
    } else if (beat->then) {
        play_happen(s, beat->act, beat->then);
    }
    if (beat->state && !cr_streq(beat->state, cr_delivery_state_name(s->d.state)))
        fail_msg("%s: want state %s, is %s", where, beat->state, cr_delivery_state_name(s->d.state));
}

static inline void play_run(const struct play *play, struct stage *s)
{
    char where[128];
    *s = (struct stage){.now_ms = 1000};
    cr_delivery_init(&s->d, &play->rules, 7);
    for (size_t i = 0; i < cr_array_len(play->beats) && (play->beats[i].act || play->beats[i].then); i++) {
        snprintf(where, sizeof where, "%s, turn %zu", play->name, i);
        play_beat(s, &play->beats[i], where);
    }
}

static inline void play_all(const struct play *plays, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct stage s;
        play_run(&plays[i], &s);
    }
}

static const struct cr_delivery_rules blind = {.triggers = 2};
static const struct cr_delivery_rules seeing = {
    .triggers = 1, .proof = true, .proof_is_conclusive = true, .proof_timeout_ms = 10000};

#define DELIVERED_A                                                                                                    \
    {"read", "A", NULL},                                                                                               \
    {                                                                                                                  \
        "output", "ok", "Delivered"                                                                                    \
    }
#define PROVEN_A                                                                                                       \
    {"read", "A", NULL}, {"output", "ok", NULL},                                                                       \
    {                                                                                                                  \
        "look", "new", "Delivered"                                                                                     \
    }

#endif
