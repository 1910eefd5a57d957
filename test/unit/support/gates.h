/* What holds of every plan about what holds its consumers. */
#ifndef CR_TEST_GATES_H
#define CR_TEST_GATES_H

#include "base/strings.h"
#include "policy/rules/plan.h"

/* A reason and a text come together, and who is Blocked waits for a person, who is Pending does not. */
static inline void gates_check(const struct cr_plan *plan)
{
    for (size_t i = 0; i < plan->status.consumers_len; i++) {
        const struct cr_consumer_status *consumer = &plan->status.consumers[i];
        enum cr_hold hold = consumer->gate.hold;
        bool agrees = (consumer->state != CR_CONSUMER_BLOCKED || cr_hold_needs_a_person(hold)) &&
                      (consumer->state != CR_CONSUMER_PENDING || !cr_hold_needs_a_person(hold));
        if (!agrees || (hold == CR_HOLD_NONE) != (consumer->gate.text == NULL))
            fail_msg("%s is %s by %s: %s", consumer->name, cr_consumer_state_name(consumer->state), cr_hold_name(hold),
                     cr_or_empty(consumer->gate.text));
    }
}

#endif
