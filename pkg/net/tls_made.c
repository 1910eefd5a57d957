#include "net/tls_made.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/strvec.h"
#include "pki/authority.h"
#include "pki/issue.h"
#include "tlsreload/tlsreload.h"

static const int64_t ten_years_ms = (int64_t)10 * 365 * 24 * 60 * 60 * 1000;

static struct cr_authority *new_authority(const char *name, int64_t now_ms, struct cr_error *err)
{
    const struct cr_authority_spec spec = {.common_name = name, .duration_ms = ten_years_ms, .path_length = 0};
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&(struct cr_key_spec){0}, err);
    return key ? cr_authority_new(&spec, key, now_ms, err) : NULL;
}

static bool issue(const char *name, const struct cr_private_key *key, struct cr_issued *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    cr_strvec_add(&names, name);
    const struct cr_leaf_spec spec = {
        .common_name = name, .dns_names = &names, .usages = CR_LEAF_SERVER, .duration_ms = ten_years_ms};
    int64_t now_ms = cr_clock_wall_ms();
    CR_CLEANUP(cr_authority) struct cr_authority *authority = new_authority(name, now_ms, err);
    return authority && cr_issue_leaf(authority, &spec, key, now_ms, out, err);
}

struct cr_tlsreload *cr_tls_made_new(const char *dns_name, struct cr_error *err)
{
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = cr_private_key_new(&(struct cr_key_spec){0}, err);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    if (!key || !issue(dns_name, key, &issued, err) || !cr_private_key_write(key, &text, err))
        return NULL;
    return cr_tlsreload_new_fixed("a certificate made in memory", issued.pem, cr_buf_text(&text), err);
}
