#include "policy/rules/expiry.h"

#include "base/strings.h"
#include "pki/expiry_notice.h"

#define DAY_MS (24LL * 3600 * 1000)
/* RFC 5280, section 4.1.2.5: a certificate is valid up to its notAfter, that second included. */
enum { PAST_MS = 1000 };

/* For the leaf that is there: a leaf that is not valid for long is renewed by one of its kind. */
static int64_t not_before_ms(const struct cr_world_secret *now, int64_t leaf_ms)
{
    int64_t end = now->material ? now->material->not_after_ms : now->refused_not_after_ms;
    int64_t begin = now->material ? now->material->not_before_ms : now->refused_not_before_ms;
    return end ? leaf_ms - (end - begin) : 0;
}

static const struct cr_material *trust_of(const struct cr_world_secret *now, const struct cr_secret_status *known)
{
    if (now->material)
        return now->material;
    return known->pending.set ? &known->pending.target : &known->settled;
}

static void add_ca(struct cr_expiry *out, const struct cr_ca *ca, int64_t now_ms)
{
    out->cas++;
    if (ca->not_after_ms < now_ms) {
        out->expired++;
        return;
    }
    if (!out->ca_ms || ca->not_after_ms < out->ca_ms)
        out->ca_ms = ca->not_after_ms;
    int64_t at_ms = cr_expiry_notice_ms(ca->not_before_ms, ca->not_after_ms, 30 * DAY_MS);
    if (out->noticed_ca_ms && out->ca_notice_ms <= at_ms)
        return;
    out->ca_notice_ms = at_ms;
    out->noticed_ca_ms = ca->not_after_ms;
}

struct cr_expiry cr_expiry_of(const struct cr_world_secret *now, const struct cr_policy_status *status,
                              const struct cr_secret_status *known, int64_t now_ms)
{
    struct cr_expiry out = {.leaf_ms = cr_policy_status_leaf_end_ms(status, known),
                            .held_ms = now->material ? now->material->not_after_ms : now->refused_not_after_ms};
    if (out.leaf_ms)
        out.leaf_notice_ms = cr_expiry_notice_ms(not_before_ms(now, out.leaf_ms), out.leaf_ms, 7 * DAY_MS);
    const struct cr_material *trust = trust_of(now, known);
    for (size_t i = 0; i < trust->trust_len; i++)
        add_ca(&out, &trust->trust[i], now_ms);
    return out;
}

bool cr_expiry_leaf_has_ended(const struct cr_expiry *expiry, int64_t now_ms)
{
    return expiry->leaf_ms && expiry->leaf_ms < now_ms;
}

bool cr_expiry_leaf_ends_soon(const struct cr_expiry *expiry, int64_t now_ms)
{
    return expiry->leaf_ms && expiry->leaf_notice_ms <= now_ms;
}

bool cr_expiry_ca_ends_soon(const struct cr_expiry *expiry, int64_t now_ms)
{
    return expiry->ca_ms && expiry->ca_notice_ms <= now_ms;
}

int64_t cr_expiry_changes_in_ms(const struct cr_expiry *expiry, int64_t now_ms)
{
    const int64_t at_ms[] = {expiry->leaf_notice_ms, expiry->leaf_ms, expiry->held_ms, expiry->ca_notice_ms,
                             expiry->ca_ms};
    int64_t next_ms = 0;
    for (size_t i = 0; i < cr_array_len(at_ms); i++)
        if (at_ms[i] >= now_ms && (!next_ms || at_ms[i] < next_ms))
            next_ms = at_ms[i];
    return next_ms ? next_ms - now_ms + PAST_MS : 0;
}
