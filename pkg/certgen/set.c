#include "certgen/set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/node.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "codec/yaml.h"
#include "pki/issue.h"

enum { NAMES_MAX = 32, LABELS_MAX = 16, NAME_MAX_LEN = 253, OPAQUE_DEFAULT = 32, OPAQUE_MAX = 4096 };

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

struct reading {
    const struct cr_certgen_place *place;
    struct cr_certgen_set *set;
    struct cr_error *err;
};

void cr_certgen_set_free(struct cr_certgen_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->secrets_len; i++) {
        struct cr_certgen_secret *secret = &set->secrets[i];
        free(secret->name);
        free(secret->opaque_key);
        free(secret->common_name);
        cr_strvec_dispose(&secret->dns_names);
        cr_strvec_dispose(&secret->addresses);
        cr_strvec_dispose(&secret->uris);
    }
    for (size_t i = 0; i < set->labels_len; i++) {
        free(set->labels[i].name);
        free(set->labels[i].value);
    }
    cr_strvec_dispose(&set->restarts);
    free(set->secrets);
    free(set->labels);
    free(set->name);
    free(set->ns);
    free(set->common_name);
    free(set->webhook);
    free(set);
}

bool cr_certgen_set_has_leaves(const struct cr_certgen_set *set)
{
    for (size_t i = 0; i < set->secrets_len; i++)
        if (!set->secrets[i].opaque_key)
            return true;
    return false;
}

/* --- texts --- */

/* Owned: the text with the variables for the place replaced. Errors: an unknown variable. */
static char *fill(const struct reading *r, const char *text)
{
    const struct {
        const char *name, *value;
    } variables[] = {{"${namespace}", r->place->ns}, {"${clusterDomain}", r->place->cluster_domain}};
    CR_CLEANUP(cr_buf) struct cr_buf out = CR_BUF_INIT(0);
    while (*text) {
        size_t i = 0;
        while (i < cr_array_len(variables) && !cr_starts_with(text, variables[i].name))
            i++;
        if (i < cr_array_len(variables)) {
            cr_buf_puts(&out, variables[i].value);
            text += strlen(variables[i].name);
        } else if (cr_starts_with(text, "${")) {
            cr_error_set(r->err, CR_ERR_INVALID, "'%s': only ${namespace} and ${clusterDomain} are replaced", text);
            return NULL;
        } else {
            cr_buf_printf(&out, "%c", *text++);
        }
    }
    return cr_buf_steal(&out);
}

static bool fill_slot(const struct reading *r, char **slot)
{
    if (!*slot)
        return true;
    char *filled = fill(r, *slot);
    if (!filled)
        return false;
    free(*slot);
    *slot = filled;
    return true;
}

static bool fill_list(const struct reading *r, struct cr_strvec *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (!fill_slot(r, &list->items[i]))
            return false;
    return true;
}

/* As Kubernetes demands of the names of Secrets: an RFC 1123 subdomain. */
static bool check_name(const struct reading *r, const char *path, const char *name)
{
    size_t len = strlen(name);
    bool plain = len > 0 && len <= NAME_MAX_LEN && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len &&
                 !strchr("-.", name[0]) && !strchr("-.", name[len - 1]);
    return plain || cr_error_set(r->err, CR_ERR_INVALID, "%s: '%s' is no name of an object", path, name);
}

/* A misspelt field would be silently without effect. */
static bool only(const struct reading *r, const struct cr_node *node, const char *const *known, size_t len)
{
    for (const struct cr_json *c = cr_json_first(node->json); c; c = cr_json_next(c)) {
        size_t i = 0;
        while (i < len && !cr_streq(cr_json_key(c), known[i]))
            i++;
        if (i == len)
            return cr_error_set(r->err, CR_ERR_INVALID, "%s%s%s: there is no such field", node->path,
                                *node->path ? "." : "", cr_json_key(c));
    }
    return true;
}
#define ONLY(r, node, ...)                                                                                             \
    only((r), (node), (const char *const[]){__VA_ARGS__}, cr_array_len(((const char *const[]){__VA_ARGS__})))

/* --- parts --- */

static bool read_key(const struct reading *r, const struct cr_node *root)
{
    static const char *const algorithms[] = {"ECDSA", "RSA", "Ed25519"};
    struct cr_node node;
    if (!cr_node_object(root, "privateKey", &node, r->err) || !ONLY(r, &node, "algorithm", "size"))
        return false;
    struct cr_key_spec *key = &r->set->key;
    return CR_NODE_ENUM(&node, "algorithm", algorithms, CR_KEY_ECDSA, &key->algorithm, r->err) &&
           cr_node_int(&node, "size", (struct cr_node_range){0, 4096, 0}, &key->size, r->err);
}

static bool read_labels(const struct reading *r, const struct cr_node *root)
{
    struct cr_node node;
    if (!cr_node_object(root, "labels", &node, r->err))
        return false;
    size_t len = cr_json_len(node.json);
    if (len > LABELS_MAX)
        return cr_error_set(r->err, CR_ERR_INVALID, "labels: there may be %d", LABELS_MAX);
    r->set->labels = cr_calloc(len ? len : 1, sizeof *r->set->labels);
    for (const struct cr_json *c = cr_json_first(node.json); c; c = cr_json_next(c)) {
        if (!cr_json_is_string(c))
            return cr_error_set(r->err, CR_ERR_INVALID, "labels.%s must be a string", cr_json_key(c));
        struct cr_certgen_label *label = &r->set->labels[r->set->labels_len++];
        *label = (struct cr_certgen_label){cr_strdup(cr_json_key(c)), cr_strdup(cr_json_string(c))};
    }
    return true;
}

/* As Kubernetes demands of the keys of a Secret's data; they are names of files, too. */
static bool check_entry(const struct reading *r, const struct cr_node *opaque, const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strlen(key);
    bool plain = len > 0 && len <= NAME_MAX_LEN && strspn(key, allowed) == len && !cr_streq(key, ".") &&
                 !cr_starts_with(key, "..");
    return plain ||
           cr_error_set(r->err, CR_ERR_INVALID, "%s.key: '%s' is no name of a Secret's entry", opaque->path, key);
}

static bool read_opaque(const struct reading *r, const struct cr_node *node, struct cr_certgen_secret *secret)
{
    struct cr_node opaque;
    return ONLY(r, node, "name", "opaque") && cr_node_object(node, "opaque", &opaque, r->err) &&
           ONLY(r, &opaque, "key", "bytes") && cr_node_required(&opaque, "key", &secret->opaque_key, r->err) &&
           check_entry(r, &opaque, secret->opaque_key) &&
           cr_node_int(&opaque, "bytes", (struct cr_node_range){16, OPAQUE_MAX, OPAQUE_DEFAULT}, &secret->opaque_bytes,
                       r->err);
}

static bool read_usages(const struct reading *r, const struct cr_node *node, struct cr_certgen_secret *secret)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    if (!cr_node_strings(node, "usages", 2, &words, r->err))
        return false;
    for (size_t i = 0; i < words.len; i++) {
        bool server = cr_streq(words.items[i], "server");
        if (!server && !cr_streq(words.items[i], "client"))
            return cr_error_set(r->err, CR_ERR_INVALID, "%s.usages: '%s' is neither server nor client", node->path,
                                words.items[i]);
        secret->usages |= server ? CR_LEAF_SERVER : CR_LEAF_CLIENT;
    }
    if (!words.len)
        secret->usages = CR_LEAF_SERVER | CR_LEAF_CLIENT;
    return true;
}

static bool read_leaf(const struct reading *r, const struct cr_node *node, struct cr_certgen_secret *secret)
{
    return ONLY(r, node, "name", "commonName", "dnsNames", "ipAddresses", "uris", "usages") &&
           cr_node_string(node, "commonName", NULL, &secret->common_name, r->err) &&
           cr_node_strings(node, "dnsNames", NAMES_MAX, &secret->dns_names, r->err) &&
           cr_node_strings(node, "ipAddresses", NAMES_MAX, &secret->addresses, r->err) &&
           cr_node_strings(node, "uris", NAMES_MAX, &secret->uris, r->err) && read_usages(r, node, secret) &&
           fill_slot(r, &secret->common_name) && fill_list(r, &secret->dns_names) && fill_list(r, &secret->uris);
}

static bool read_secret(const struct reading *r, const struct cr_node *node)
{
    struct cr_certgen_secret *secret = &r->set->secrets[r->set->secrets_len++];
    cr_autofree char *name = NULL;
    if (!cr_node_required(node, "name", &name, r->err) || !fill_slot(r, &name))
        return false;
    secret->name = cr_asprintf("%s%s", name, cr_or_empty(r->place->name_suffix));
    if (!check_name(r, node->path, secret->name))
        return false;
    for (size_t i = 0; i + 1 < r->set->secrets_len; i++)
        if (cr_streq(r->set->secrets[i].name, secret->name))
            return cr_error_set(r->err, CR_ERR_INVALID, "%s: '%s' stands twice", node->path, secret->name);
    return cr_node_has(node, "opaque") ? read_opaque(r, node, secret) : read_leaf(r, node, secret);
}

static bool read_secrets(const struct reading *r, const struct cr_node *root)
{
    struct cr_node list;
    if (!cr_node_must_have(root, "secrets", r->err) ||
        !cr_node_array(root, "secrets", CR_CERTGEN_SECRETS_MAX, &list, r->err))
        return false;
    if (!cr_json_len(list.json))
        return cr_error_set(r->err, CR_ERR_INVALID, "secrets: there is none");
    r->set->secrets = cr_calloc(cr_json_len(list.json), sizeof *r->set->secrets);
    size_t index = 0;
    for (const struct cr_json *c = cr_json_first(list.json); c; c = cr_json_next(c)) {
        struct cr_node item;
        if (!cr_node_item(&list, c, index++, &item, r->err) || !read_secret(r, &item))
            return false;
    }
    return true;
}

static bool read_webhook(const struct reading *r, const struct cr_node *root)
{
    struct cr_certgen_set *set = r->set;
    struct cr_node node;
    if (!cr_node_has(root, "webhook"))
        return true;
    cr_autofree char *secret = NULL;
    if (!cr_node_object(root, "webhook", &node, r->err) || !ONLY(r, &node, "name", "secretName") ||
        !cr_node_required(&node, "name", &set->webhook, r->err) || !fill_slot(r, &set->webhook) ||
        !cr_node_required(&node, "secretName", &secret, r->err))
        return false;
    cr_autofree char *full = cr_asprintf("%s%s", secret, cr_or_empty(r->place->name_suffix));
    for (size_t i = 0; i < set->secrets_len; i++) {
        set->webhook_secret = i;
        if (cr_streq(set->secrets[i].name, full) && !set->secrets[i].opaque_key)
            return check_name(r, "webhook.name", set->webhook);
    }
    return cr_error_set(r->err, CR_ERR_INVALID, "webhook.secretName: '%s' is none of the secrets with a leaf", secret);
}

static bool read_restarts(const struct reading *r, const struct cr_node *root)
{
    if (!cr_node_strings(root, "restart", CR_CERTGEN_RESTARTS_MAX, &r->set->restarts, r->err) ||
        !fill_list(r, &r->set->restarts))
        return false;
    for (size_t i = 0; i < r->set->restarts.len; i++)
        if (!check_name(r, "restart", r->set->restarts.items[i]))
            return false;
    return true;
}

static bool read_set(const struct reading *r, const struct cr_node *root)
{
    const struct cr_node_range lifetime = {CR_CERTGEN_LIFETIME_MIN_MS, CR_CERTGEN_LIFETIME_MAX_MS, YEAR_MS};
    return ONLY(r, root, "commonName", "lifetime", "privateKey", "labels", "secrets", "restart", "webhook") &&
           cr_node_string(root, "commonName", r->set->name, &r->set->common_name, r->err) &&
           fill_slot(r, &r->set->common_name) &&
           cr_node_duration(root, "lifetime", lifetime, &r->set->lifetime_ms, r->err) && read_key(r, root) &&
           read_labels(r, root) && read_secrets(r, root) && read_restarts(r, root) && read_webhook(r, root);
}

struct cr_certgen_set *cr_certgen_set_read(const char *title, const char *yaml, size_t len,
                                           const struct cr_certgen_place *place, struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *json = cr_yaml_parse(yaml, len, err);
    if (!json) {
        (void)cr_error_wrap(err, "%s", title);
        return NULL;
    }
    CR_CLEANUP(cr_certgen_set) struct cr_certgen_set *set = cr_new(struct cr_certgen_set);
    set->name = cr_strdup(title);
    set->ns = cr_strdup(place->ns);
    const struct reading r = {place, set, err};
    const struct cr_node root = {.json = json};
    if (!cr_json_is_object(json)) {
        cr_error_set(err, CR_ERR_INVALID, "%s: it must be a mapping with the field 'secrets'", title);
        return NULL;
    }
    if (!read_set(&r, &root)) {
        (void)cr_error_wrap(err, "%s", title);
        return NULL;
    }
    return cr_steal(&set);
}
