#include "api/domain_issue.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "pki/issue.h"

enum { MINUTE = 60 * 1000 };
#define HOUR INT64_C(3600000)

/* notBefore lies 5 minutes back: of a shorter life two thirds would be over soon after it began. */
static const struct cr_node_range leaf_range = {10 * MINUTE, 87600 * HOUR, 2160 * HOUR};
static const struct cr_node_range ca_range = {HOUR, 87600 * HOUR, 8760 * HOUR};
static const struct cr_node_range renew_range = {MINUTE, 87600 * HOUR, 0};

static const char *const types[] = {[CR_AUTHORITY_EXTERNAL] = "External", [CR_AUTHORITY_ISSUE] = "Issue"};
static const char *const algorithms[] = {[CR_KEY_ECDSA] = "ECDSA", [CR_KEY_RSA] = "RSA", [CR_KEY_ED25519] = "Ed25519"};

/* Per algorithm: the sizes that there are, the default first; what is said when it is none of them. */
static const struct {
    int sizes[4];
    const char *words;
} key_sizes[] = {
    [CR_KEY_ECDSA] = {{256, 384}, "256 or 384 with ECDSA"},
    [CR_KEY_RSA] = {{2048, 3072, 4096}, "2048, 3072 or 4096 with RSA"},
    [CR_KEY_ED25519] = {{256}, "left out with Ed25519"},
};

static bool check_key(const struct cr_node *node, const struct cr_key_spec *key, struct cr_error *err)
{
    for (size_t i = 0; i < cr_array_len(key_sizes[0].sizes) && key_sizes[key->algorithm].sizes[i]; i++)
        if (key_sizes[key->algorithm].sizes[i] == key->size)
            return true;
    return cr_error_set(err, CR_ERR_INVALID, "%s.size must be %s", node->path, key_sizes[key->algorithm].words);
}

static bool decode_key(const struct cr_node *issue, struct cr_key_spec *out, struct cr_error *err)
{
    struct cr_node node;
    if (!cr_node_object(issue, "privateKey", &node, err) ||
        !CR_NODE_ENUM(&node, "algorithm", algorithms, CR_KEY_ECDSA, &out->algorithm, err))
        return false;
    struct cr_node_range range = {256, 4096, key_sizes[out->algorithm].sizes[0]};
    return cr_node_int(&node, "size", range, &out->size, err) && check_key(&node, out, err);
}

/* What is renewed sooner than a tenth of its life after it was issued would be issued all the time. */
static bool decode_life(const struct cr_node *issue, struct cr_node_range range, struct cr_domain_life *out,
                        struct cr_error *err)
{
    if (!cr_node_duration(issue, "duration", range, &out->duration_ms, err) ||
        !cr_node_duration(issue, "renewBefore", renew_range, &out->renew_before_ms, err))
        return false;
    int64_t most = out->duration_ms / 10 * 9;
    if (out->renew_before_ms <= most)
        return true;
    char text[CR_TIME_TEXT];
    cr_duration_format(most, text);
    return cr_error_set(err, CR_ERR_INVALID, "%s.renewBefore must be at most nine tenths of the duration: %s",
                        issue->path, text);
}

static bool check_common_name(const struct cr_node *issue, const char *name, struct cr_error *err)
{
    return !name || strlen(name) <= CR_COMMON_NAME_MAX ||
           cr_error_set(err, CR_ERR_INVALID, "%s.commonName must have at most %d characters; '%s' has more",
                        issue->path, CR_COMMON_NAME_MAX, name);
}

void cr_domain_issue_ca_dispose(struct cr_domain_issue_ca *ca)
{
    free(ca->ca_secret);
    free(ca->common_name);
    *ca = (struct cr_domain_issue_ca){0};
}

static bool decode_ca(const struct cr_node *issue, const char *fallback_name, struct cr_domain_issue_ca *out,
                      struct cr_error *err)
{
    return cr_node_required(issue, "caSecretName", &out->ca_secret, err) &&
           cr_node_string(issue, "commonName", fallback_name, &out->common_name, err) &&
           check_common_name(issue, out->common_name, err) && decode_key(issue, &out->key, err) &&
           decode_life(issue, ca_range, &out->life, err) &&
           cr_node_bool(issue, "crossSign", false, &out->cross_sign, err);
}

bool cr_domain_authority_decode(const struct cr_node *spec, const char *fallback_name, struct cr_domain *out,
                                struct cr_error *err)
{
    struct cr_node authority;
    struct cr_node issue;
    if (!cr_node_object(spec, "authority", &authority, err) ||
        !CR_NODE_ENUM(&authority, "type", types, CR_AUTHORITY_EXTERNAL, &out->authority, err) ||
        !cr_node_object(&authority, "issue", &issue, err))
        return false;
    if (out->authority == CR_AUTHORITY_ISSUE)
        return cr_node_must_have(&authority, "issue", err) && decode_ca(&issue, fallback_name, &out->ca, err);
    return !issue.json ||
           cr_error_set(err, CR_ERR_INVALID, "%s belongs to type Issue: set that, or remove it", issue.path);
}

static bool decode_usages(const struct cr_node *issue, unsigned *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    if (!cr_node_strings(issue, "usages", 2, &words, err))
        return false;
    *out =
        (cr_strvec_has(&words, "server") ? CR_LEAF_SERVER : 0) | (cr_strvec_has(&words, "client") ? CR_LEAF_CLIENT : 0);
    if (!words.len)
        *out = CR_LEAF_SERVER;
    size_t known = cr_strvec_has(&words, "server") + (size_t)cr_strvec_has(&words, "client");
    return words.len == known ||
           cr_error_set(err, CR_ERR_INVALID, "%s.usages must be of server and client", issue->path);
}

static bool check_names(const struct cr_node *issue, const struct cr_domain_leaf *leaf, struct cr_error *err)
{
    size_t hosts = leaf->dns_names.len + leaf->addresses.len + leaf->uris.len;
    if (hosts + leaf->emails.len > CR_ALT_NAMES_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "%s has %zu alternative names; at most %d are allowed", issue->path,
                            hosts + leaf->emails.len, CR_ALT_NAMES_MAX);
    if (leaf->usages & CR_LEAF_SERVER && !hosts)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s: a server's certificate needs a name in dnsNames, ipAddresses or uris", issue->path);
    return hosts + leaf->emails.len || leaf->common_name ||
           cr_error_set(err, CR_ERR_INVALID, "%s: a certificate needs a name: give commonName or an alternative name",
                        issue->path);
}

bool cr_domain_issue_leaf_decode(const struct cr_node *issue, struct cr_domain_leaf *out, struct cr_error *err)
{
    return cr_node_string(issue, "commonName", NULL, &out->common_name, err) &&
           check_common_name(issue, out->common_name, err) &&
           cr_node_strings(issue, "dnsNames", CR_DOMAIN_NAMES_MAX, &out->dns_names, err) &&
           cr_node_strings(issue, "ipAddresses", CR_DOMAIN_NAMES_MAX, &out->addresses, err) &&
           cr_node_strings(issue, "uris", CR_DOMAIN_NAMES_MAX, &out->uris, err) &&
           cr_node_strings(issue, "emailAddresses", CR_DOMAIN_NAMES_MAX, &out->emails, err) &&
           cr_node_strings(issue, "organizations", CR_DOMAIN_NAMES_MAX, &out->organizations, err) &&
           decode_usages(issue, &out->usages, err) && check_names(issue, out, err) &&
           decode_key(issue, &out->key, err) && decode_life(issue, leaf_range, &out->life, err);
}
