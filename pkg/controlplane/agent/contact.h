/* Whether the API server is to be reached, and when to ask it again: pure, given the time. */
#ifndef CR_CONTROLPLANE_AGENT_CONTACT_H
#define CR_CONTROLPLANE_AGENT_CONTACT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kube/backoff.h"

enum {
    CR_CONTACT_MOST_MS = 30 * 1000,     /* between two tries */
    CR_CONTACT_HURRY_MS = 5 * 1000,     /* the same while something is under way: it is we who made it go */
    CR_CONTACT_LOST_MS = 5 * 60 * 1000, /* after that it is called lost; it is asked all the same */
};

/* All times monotonic. Zeroed: in contact. */
struct cr_contact {
    struct cr_backoff backoff;
    int64_t since_ms; /* of the first failure in a row; 0: in contact */
    int64_t again_ms; /* not before */
    bool logged_lost;
};

bool cr_contact_may_ask(const struct cr_contact *contact, int64_t now_ms);
/* hurry: something is under way. True: this is the first failure in a row, or it is lost from now on: to be logged. */
bool cr_contact_failed(struct cr_contact *contact, bool hurry, int64_t now_ms);
/* How long it was not to be reached; 0: it was. */
int64_t cr_contact_made(struct cr_contact *contact, int64_t now_ms);
bool cr_contact_is_lost(const struct cr_contact *contact, int64_t now_ms);
/* Until it may be asked again; 0: now. */
int64_t cr_contact_wait_ms(const struct cr_contact *contact, int64_t now_ms);

#endif
