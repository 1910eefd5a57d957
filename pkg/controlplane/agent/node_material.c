#include "controlplane/agent/node_material.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/inventory.h"

void cr_node_material_dispose(struct cr_node_material *material)
{
    free(material->problem);
    cr_strvec_dispose(&material->prints);
    cr_strvec_dispose(&material->names);
    cr_strvec_dispose(&material->keys);
    *material = (struct cr_node_material){0};
}

/* --- what the file is for --- */

/* Which blocks count, as the programs read them; all others are skipped, whatever is in them. */
enum use {
    USE_TRUST,
    USE_CERTIFICATE, /* crypto/tls X509KeyPair: the certificates of the one file, the first key of the other */
    USE_KEY,
    USE_EITHER, /* --tls-sni-cert-key names both in one flag */
    USE_BOTH,   /* certificate/certificate_store.go: one file has both */
    USE_SIGNER, /* pkg/controller/certificates/authority: the one certificate that the file may have */
    USE_SIGNER_KEY,
    USE_VERIFIERS, /* keyutil.PublicKeysFromFile: every key, private ones and certificates too */
    USE_SIGNING,   /* keyutil.PrivateKeyFromFile: the first private key */
};

/* "--etcd-keyfile", "--tls-private-key-file", "tlsPrivateKeyFile", "ETCD_KEY_FILE", "kubeconfig client-key". */
static bool names_key(const char *parameter)
{
    static const char *const ends[] = {"key", "keyfile", "key-file", "key_file"};
    size_t len = strlen(parameter);
    for (size_t i = 0; i < cr_array_len(ends); i++) {
        size_t n = strlen(ends[i]);
        if (len >= n && strcasecmp(parameter + len - n, ends[i]) == 0)
            return true;
    }
    return false;
}

static enum use use_of(enum cr_role role, const char *parameter)
{
    bool key = names_key(parameter);
    if (role == CR_ROLE_CLIENT_CA || role == CR_ROLE_SERVER_CA)
        return USE_TRUST;
    if (cr_starts_with(parameter, "--cluster-signing"))
        return key ? USE_SIGNER_KEY : USE_SIGNER;
    if (role == CR_ROLE_OPAQUE)
        return strstr(parameter, "signing-key") || strstr(parameter, "private-key") ? USE_SIGNING : USE_VERIFIERS;
    if (cr_streq(parameter, "--tls-sni-cert-key"))
        return USE_EITHER;
    if (cr_streq(parameter, "serverTLSBootstrap") || cr_streq(parameter, "rotateCertificates"))
        return USE_BOTH;
    return key ? USE_KEY : USE_CERTIFICATE;
}

/* --- what is in it --- */

static bool refuse(struct cr_node_material *out, const char *problem)
{
    cr_node_material_dispose(out);
    out->problem = cr_strdup(problem);
    return false;
}

static bool read_blocks(const struct cr_pem_input *in, unsigned kinds, struct cr_inventory *found,
                        struct cr_node_material *out)
{
    struct cr_error err = {0};
    return cr_inventory_read(in, kinds, found, &err) || refuse(out, err.text);
}

static size_t count_certificates(const struct cr_inventory *found)
{
    size_t n = 0;
    for (size_t i = 0; i < found->len; i++)
        n += found->items[i].kind == CR_INVENTORY_CERTIFICATE;
    return n;
}

/* The certificate of a leaf or a signer: the first of its file. */
static bool read_certificate(const struct cr_pem_input *in, enum cr_node_file_kind kind, struct cr_node_material *out)
{
    CR_CLEANUP(cr_inventory) struct cr_inventory found;
    if (!read_blocks(in, CR_INVENTORY_CERTIFICATE, &found, out))
        return false;
    if (!found.len)
        return refuse(out, "has no certificate");
    out->kind = kind;
    out->certificates = found.len;
    out->not_after_ms = found.items[0].not_after_ms;
    cr_strvec_add(&out->prints, found.items[0].fingerprint);
    cr_strvec_add(&out->keys, found.items[0].key);
    return true;
}

static bool read_private_key(const struct cr_pem_input *in, enum cr_node_file_kind kind, struct cr_node_material *out)
{
    CR_CLEANUP(cr_inventory) struct cr_inventory found;
    if (!read_blocks(in, CR_INVENTORY_PRIVATE_KEY, &found, out))
        return false;
    if (!found.len)
        return refuse(out, "has no private key");
    out->kind = kind;
    cr_strvec_add(&out->keys, found.items[0].key);
    return true;
}

static void read_either(const struct cr_pem_input *in, struct cr_node_material *out)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_inventory) struct cr_inventory found;
    bool has = cr_inventory_read(in, CR_INVENTORY_CERTIFICATE, &found, &err) && found.len;
    if (has || err.kind)
        (void)read_certificate(in, CR_NODE_FILE_LEAF, out);
    else
        (void)read_private_key(in, CR_NODE_FILE_LEAF, out);
}

static void read_both(const struct cr_pem_input *in, struct cr_node_material *out)
{
    CR_CLEANUP(cr_node_material) struct cr_node_material key = {0};
    if (!read_certificate(in, CR_NODE_FILE_LEAF, out))
        return;
    if (!read_private_key(in, CR_NODE_FILE_LEAF, &key))
        (void)refuse(out, key.problem);
    else if (!cr_streq(key.keys.items[0], out->keys.items[0]))
        out->problem = cr_strdup("the key does not belong to the certificate");
}

/* pkg/controller/certificates/signer/ca_provider.go: "expected 1 certificate, found 2", and nothing is signed. */
static void read_signer(const struct cr_pem_input *in, struct cr_node_material *out)
{
    if (read_certificate(in, CR_NODE_FILE_SIGNER, out) && out->certificates > 1)
        out->problem =
            cr_asprintf("has %zu certificates: only a file with exactly one can be signed with", out->certificates);
}

static void read_trust(const struct cr_pem_input *in, struct cr_node_material *out)
{
    CR_CLEANUP(cr_inventory) struct cr_inventory found;
    if (!read_blocks(in, CR_INVENTORY_CERTIFICATE, &found, out))
        return;
    if (!found.len) {
        (void)refuse(out, "has no certificate");
        return;
    }
    out->kind = CR_NODE_FILE_TRUST;
    out->certificates = found.len;
    out->not_after_ms = found.items[0].not_after_ms;
    for (size_t i = 0; i < found.len; i++) {
        const struct cr_inventory_item *ca = &found.items[i];
        if (!cr_strvec_add_unique(&out->prints, ca->fingerprint))
            continue;
        cr_strvec_add(&out->names, ca->subject);
        cr_strvec_add(&out->keys, ca->key);
        if (ca->not_after_ms < out->not_after_ms)
            out->not_after_ms = ca->not_after_ms;
    }
}

static void read_verifiers(const struct cr_pem_input *in, struct cr_node_material *out)
{
    CR_CLEANUP(cr_inventory) struct cr_inventory found;
    if (!read_blocks(in, CR_INVENTORY_CERTIFICATE | CR_INVENTORY_PRIVATE_KEY | CR_INVENTORY_PUBLIC_KEY, &found, out))
        return;
    if (!found.len) {
        (void)refuse(out, "has no key");
        return;
    }
    out->kind = CR_NODE_FILE_KEYS;
    out->certificates = count_certificates(&found);
    for (size_t i = 0; i < found.len; i++)
        if (cr_strvec_add_unique(&out->prints, found.items[i].key))
            cr_strvec_add(&out->keys, found.items[i].key);
}

static void read_signing(const struct cr_pem_input *in, struct cr_node_material *out)
{
    if (read_private_key(in, CR_NODE_FILE_KEYS, out))
        cr_strvec_add(&out->prints, out->keys.items[0]);
}

void cr_node_material_read(const char *text, size_t len, enum cr_role role, const char *parameter,
                           struct cr_node_material *out)
{
    *out = (struct cr_node_material){0};
    const struct cr_pem_input in = {.data = text, .len = len};
    switch (use_of(role, parameter)) {
    case USE_TRUST:
        read_trust(&in, out);
        break;
    case USE_CERTIFICATE:
        (void)read_certificate(&in, CR_NODE_FILE_LEAF, out);
        break;
    case USE_KEY:
        (void)read_private_key(&in, CR_NODE_FILE_LEAF, out);
        break;
    case USE_EITHER:
        read_either(&in, out);
        break;
    case USE_BOTH:
        read_both(&in, out);
        break;
    case USE_SIGNER:
        read_signer(&in, out);
        break;
    case USE_SIGNER_KEY:
        (void)read_private_key(&in, CR_NODE_FILE_SIGNER, out);
        break;
    case USE_VERIFIERS:
        read_verifiers(&in, out);
        break;
    case USE_SIGNING:
        read_signing(&in, out);
        break;
    }
}

bool cr_node_material_fits(const struct cr_node_material *certificate, const struct cr_node_material *key)
{
    return !certificate->keys.len || !key->keys.len || cr_streq(certificate->keys.items[0], key->keys.items[0]);
}
