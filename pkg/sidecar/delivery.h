/* How one material gets to its program: what comes next, after what has come of the step before. Pure: its input is the
 * time, and what happened.
 *
 *     read ─► outputs ─► look ─► triggers ─► look … ─► delivered
 *
 * It begins again with a reading whenever the files may have changed, so that no trigger is ever pulled for files that
 * are not those that were checked. What fails is tried again after 1 s to 60 s; a material that is new is not made to
 * wait for that. Material that cannot be used stops everything and leaves what was delivered as it is.
 *
 * Level-based: a process that has just begun does not know what the program has read. A proof shows it; else its record
 * counts (what the process before delivered); else the program is taken to have read what is there, since it starts
 * with this process, unless an output had to be written. */
#ifndef CR_SIDECAR_DELIVERY_H
#define CR_SIDECAR_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pki/material.h"
#include "sidecar/config.h"
#include "sidecar/proof.h"

enum {
    CR_DELIVERY_RETRY_MS = 1000, /* doubled with each failure, a fifth more or less by chance */
    CR_DELIVERY_RETRY_MOST_MS = 60 * 1000,
    CR_DELIVERY_LOOK_MS = 50, /* between two looks at the program, doubled up to 1 s */
    CR_DELIVERY_LOOK_MOST_MS = 1000,
    CR_DELIVERY_NOT_STARTED_MOST_MS = 5000, /* for a program that has not begun */
    /* Writers that replace two files one by one are between them for a moment: so many readings, so far apart, before
     * the program is notified. */
    CR_DELIVERY_SETTLE_READS = 3,
    CR_DELIVERY_SETTLE_MS = 250,
    CR_DELIVERY_WORDS = 256,
};

/* The words of the page. */
enum cr_delivery_state {
    CR_DELIVERY_PENDING,   /* on its way, nothing has failed */
    CR_DELIVERY_DELIVERED, /* what is in the files is what the program has */
    CR_DELIVERY_REFUSED,   /* what is in the files cannot be used */
    CR_DELIVERY_FAILING,   /* an output, a trigger or the proof has failed, and is tried again */
    CR_DELIVERY_STATES,
};
const char *cr_delivery_state_name(enum cr_delivery_state state);

enum cr_delivery_act {
    CR_ACT_WAIT,    /* for a change of the files, and at most wait_ms */
    CR_ACT_READ,    /* cr_reading_take, then cr_delivery_read or cr_delivery_refuse */
    CR_ACT_OUTPUT,  /* cr_outputs_write, then cr_delivery_output */
    CR_ACT_LOOK,    /* cr_proof_look, then cr_delivery_look */
    CR_ACT_TRIGGER, /* cr_trigger_pull, then cr_delivery_trigger */
};
struct cr_delivery_step {
    enum cr_delivery_act act;
    size_t trigger;  /* with CR_ACT_TRIGGER */
    int64_t wait_ms; /* with CR_ACT_WAIT; -1: no end */
};

/* Which material: what distinguishes two of them. */
struct cr_delivery_digests {
    char leaf[CR_SHA256_HEX], chain[CR_SHA256_HEX], trust[CR_SHA256_HEX]; /* "": no such part */
};
void cr_delivery_digests(const struct cr_material *material, struct cr_delivery_digests *out);
bool cr_delivery_same(const struct cr_delivery_digests *a, const struct cr_delivery_digests *b);

/* What it has to go by. */
struct cr_delivery_rules {
    size_t triggers;
    bool proof;
    bool proof_is_conclusive; /* the triggers are one step: a leaf that is served shows that it was taken */
    int64_t proof_timeout_ms;
    bool recorded; /* record holds what the process before has delivered; no digests: what it notified is not known */
    struct cr_delivery_digests record;
};

/* As the material's configuration has them; no record. */
struct cr_delivery_rules cr_delivery_rules_of(const struct cr_sidecar_material *material);

/* All code may read it; only the functions below change it. Times are of the wall clock; 0: never. */
struct cr_delivery {
    enum cr_delivery_state state;
    struct cr_delivery_digests found, delivered;
    int64_t found_ms, delivered_ms, served_ms;
    int64_t found_at;               /* the same moment by the monotonic clock */
    int64_t took_ms;                /* from found to delivered; -1: the program did not have to be notified */
    bool is_delivered;              /* delivered is set */
    bool leaf_proven, trust_proven; /* of what is delivered: seen in a handshake since */
    char served[CR_SHA256_HEX];     /* the leaf seen last; "" */
    unsigned attempts;              /* at what was found; 0: none was needed */
    char words[CR_DELIVERY_WORDS];
    bool has_outputs; /* they were made at least once */

    struct cr_delivery_rules rules;
    enum cr_delivery_phase {
        CR_PHASE_READ,
        CR_PHASE_OUTPUT,
        CR_PHASE_LOOK,
        CR_PHASE_TRIGGER,
        CR_PHASE_PROVE,
        CR_PHASE_IDLE
    } phase;
    size_t trigger;
    unsigned refusals, failures; /* in a row */
    bool notified;               /* the triggers were pulled for what was found */
    bool owed;                   /* they have to be: an output of the same material changed */
    bool unsure;                 /* triggers were begun since the last delivery: the program may have something else */
    bool had_leaf;               /* they may have brought it this leaf with another chain */
    int64_t not_before;          /* monotonic: of the next step; 0 */
    int64_t prove_until;         /* monotonic */
    int64_t look_ms;
    uint64_t chance;
};

/* One moment by both clocks. */
struct cr_delivery_now {
    int64_t monotonic_ms, wall_ms;
};

/* chance: any number, for the jitter. */
void cr_delivery_init(struct cr_delivery *delivery, const struct cr_delivery_rules *rules, uint64_t chance);
struct cr_delivery_step cr_delivery_next(const struct cr_delivery *delivery, int64_t monotonic_ms);

/* The files may have changed. */
void cr_delivery_changed(struct cr_delivery *delivery);
void cr_delivery_read(struct cr_delivery *delivery, const struct cr_delivery_digests *found,
                      struct cr_delivery_now now);
void cr_delivery_refuse(struct cr_delivery *delivery, const char *words, struct cr_delivery_now now);
/* failure NULL: they are there. changed: of cr_outputs_write. */
void cr_delivery_output(struct cr_delivery *delivery, bool changed, const char *failure, struct cr_delivery_now now);
/* failure NULL: it succeeded. */
void cr_delivery_trigger(struct cr_delivery *delivery, const char *failure, struct cr_delivery_now now);
void cr_delivery_look(struct cr_delivery *delivery, const struct cr_proof *proof, struct cr_delivery_now now);

#endif
