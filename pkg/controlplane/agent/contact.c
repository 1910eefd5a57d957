#include "controlplane/agent/contact.h"

enum { FIRST_MS = 1000 };

bool cr_contact_may_ask(const struct cr_contact *contact, int64_t now_ms)
{
    return now_ms >= contact->again_ms;
}

bool cr_contact_is_lost(const struct cr_contact *contact, int64_t now_ms)
{
    return contact->since_ms && now_ms - contact->since_ms >= CR_CONTACT_LOST_MS;
}

bool cr_contact_failed(struct cr_contact *contact, bool hurry, int64_t now_ms)
{
    bool first = !contact->since_ms;
    if (first)
        contact->since_ms = now_ms > 0 ? now_ms : 1;
    contact->backoff.first_ms = FIRST_MS;
    contact->backoff.max_ms = hurry ? CR_CONTACT_HURRY_MS : CR_CONTACT_MOST_MS;
    contact->again_ms = now_ms + cr_backoff_next(&contact->backoff);
    bool lost = cr_contact_is_lost(contact, now_ms) && !contact->logged_lost;
    contact->logged_lost |= lost;
    return first || lost;
}

int64_t cr_contact_made(struct cr_contact *contact, int64_t now_ms)
{
    int64_t away_ms = contact->since_ms ? now_ms - contact->since_ms : 0;
    *contact = (struct cr_contact){0};
    return away_ms;
}

int64_t cr_contact_wait_ms(const struct cr_contact *contact, int64_t now_ms)
{
    return contact->again_ms > now_ms ? contact->again_ms - now_ms : 0;
}
