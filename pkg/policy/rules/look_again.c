#include "policy/rules/look_again.h"

int64_t cr_look_again_ms(int64_t first_ms, int64_t waited_ms)
{
    if (waited_ms <= first_ms)
        return first_ms;
    return waited_ms < CR_LOOK_AGAIN_MOST_MS ? waited_ms : CR_LOOK_AGAIN_MOST_MS;
}
