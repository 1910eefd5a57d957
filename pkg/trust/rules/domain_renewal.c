/* When a certificate is renewed. */
#include "trust/rules/domain_plan_internal.h"

#include <stdlib.h>
#include <string.h>

/* A tenth of its life: by so much at most it is renewed earlier than others, so much it lasts at least, and so much
 * longer a new one must last. */
static int64_t tenth_of(int64_t not_before_ms, int64_t not_after_ms)
{
    return (not_after_ms - not_before_ms) / 10;
}

/* 0 to 1023 of 1024, the same for the same certificate of the same name. */
static int64_t draw(const char *key)
{
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(key, strlen(key), hex);
    hex[8] = '\0';
    return (int64_t)(strtoul(hex, NULL, 16) % 1024);
}

int64_t cr_domain_renewal_ms(const struct cr_domain_life *life, int64_t not_before_ms, int64_t not_after_ms,
                             const char *key)
{
    int64_t tenth = tenth_of(not_before_ms, not_after_ms);
    int64_t two_thirds = not_before_ms + (not_after_ms - not_before_ms) / 3 * 2;
    int64_t at = life->renew_before_ms ? not_after_ms - life->renew_before_ms : two_thirds;
    /* renewBefore is longer than a life that its CA has cut short. */
    if (at < not_before_ms + 2 * tenth)
        at = two_thirds;
    return at - tenth * draw(key) / 1024;
}

bool cr_domain_is_due(const struct cr_domain_life *life, int64_t not_before_ms, int64_t not_after_ms, const char *key,
                      int64_t limit_ms, int64_t now_ms)
{
    if (now_ms < cr_domain_renewal_ms(life, not_before_ms, not_after_ms, key))
        return false;
    int64_t until = now_ms + life->duration_ms;
    until = until < limit_ms ? until : limit_ms;
    return until - not_after_ms > tenth_of(not_before_ms, not_after_ms);
}
