/* Which CAs may be dropped: all of them together, since a reader of the list will drop them together. */
#include "controlplane/rules/control_plane_internal.h"

#include <string.h>

#include "base/strings.h"

static int64_t end_of(const struct cp_ctx *ctx, const char *print)
{
    for (size_t i = 0; i < ctx->nodes_len; i++) {
        const struct cr_node_report *report = ctx->nodes[i].report;
        for (size_t k = 0; report && k < report->cas_len; k++)
            if (cr_streq(report->cas[k].fingerprint, print))
                return report->cas[k].not_after_ms;
    }
    return 0;
}

/* Each leaf that verifies now does so without these, too, and what will be signed is verified. */
static bool can_go(const struct cp_authority *authority, uint64_t gone)
{
    uint64_t left = authority->trusted & ~gone;
    if (!left || authority->signers & gone)
        return false;
    for (size_t i = 0; i < authority->leaves_len; i++)
        if (authority->leaves[i] & authority->trusted && !(authority->leaves[i] & left))
            return false;
    return true;
}

/* The one that ends first; if several do, the first by its text. */
static uint64_t next_of(const struct cp_ctx *ctx, enum cp_pki pki, uint64_t left)
{
    const struct cp_set *set = &ctx->sets[pki];
    uint64_t best = 0;
    int64_t best_ms = 0;
    while (left) {
        const char *print = cr_cp_first(set, left);
        uint64_t bit = cr_cp_bits_of_text(set, print);
        int64_t end_ms = end_of(ctx, print);
        left &= ~bit;
        if (!best || end_ms < best_ms) {
            best = bit;
            best_ms = end_ms;
        }
    }
    return best;
}

/* Servers that no agent sees have unknown leaves. The front proxy has clients only. */
static bool are_servers_seen(const struct cp_authority *authority, enum cp_pki pki)
{
    return pki == CP_FRONT_PROXY || authority->serves;
}

/* Nothing is known of a PKI with certificates that no component uses: then none of its CAs goes. */
void cr_cp_removable(struct cp_ctx *ctx, enum cp_pki pki)
{
    struct cp_authority *authority = &ctx->authorities[pki];
    uint64_t left = authority->trusted;
    authority->removable = 0;
    if (authority->unsure || authority->leaves_over || !(authority->issuing & authority->trusted) ||
        !are_servers_seen(authority, pki))
        return;
    while (left) {
        uint64_t bit = next_of(ctx, pki, left);
        if (!bit)
            return;
        left &= ~bit;
        if (can_go(authority, authority->removable | bit))
            authority->removable |= bit;
    }
}
