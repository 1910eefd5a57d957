#include "pki/material.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/certificate.h"
#include "pki/key.h"
#include "pki/opaque.h"
#include "pki/paths.h"
#include "pki/trust_read.h"

/* More than the API server stores in a Secret or ConfigMap (1 MiB for all of its keys together). */
enum { MAX_ENTRY = 1024 * 1024, MAX_CHAIN = 32, MAX_TRUST = 1000 };

/* The parsing of one input. */
struct work {
    const struct cr_material_input *in;
    int64_t now_ms;
    struct cr_material *out;
    enum cr_material_problem problem;
    struct cr_error *err;
    struct cr_certificates *chain; /* owned; the leaf first */
    struct cr_certificates *trust; /* owned; as in the bundle, duplicates included */
};

static void work_cleanup(struct work *w)
{
    cr_certificates_free(w->chain);
    cr_certificates_free(w->trust);
}

/* --- the value --- */

void cr_material_dispose(struct cr_material *m)
{
    if (!m)
        return;
    cr_strvec_dispose(&m->anchors);
    cr_strvec_dispose(&m->names);
    cr_strvec_dispose(&m->opaque_keys);
    free(m->trust);
    *m = (struct cr_material){0};
}

void cr_material_copy(struct cr_material *to, const struct cr_material *from)
{
    struct cr_material copy = *from;
    copy.anchors = copy.names = copy.opaque_keys = (struct cr_strvec){0};
    cr_strvec_copy(&copy.anchors, &from->anchors);
    cr_strvec_copy(&copy.names, &from->names);
    cr_strvec_copy(&copy.opaque_keys, &from->opaque_keys);
    copy.trust = from->trust_len ? cr_memdup(from->trust, from->trust_len * sizeof *from->trust) : NULL;
    cr_material_dispose(to);
    *to = copy;
}

bool cr_material_has_trust(const struct cr_material *m)
{
    return m->trust_len || m->trust_summary.count;
}

void cr_material_trust_digest(const struct cr_material *m, char out[CR_SHA256_HEX])
{
    if (!m->trust_len) {
        memcpy(out, m->trust_summary.digest, CR_SHA256_HEX);
        return;
    }
    CR_CLEANUP(cr_strvec) struct cr_strvec fingerprints = {0};
    for (size_t i = 0; i < m->trust_len; i++)
        cr_strvec_add(&fingerprints, m->trust[i].fingerprint);
    cr_strvec_sort(&fingerprints);
    CR_CLEANUP(cr_buf) struct cr_buf text = {0};
    for (size_t i = 0; i < fingerprints.len; i++)
        if (i == 0 || strcmp(fingerprints.items[i], fingerprints.items[i - 1]) != 0)
            cr_buf_printf(&text, "%s,", fingerprints.items[i]);
    cr_sha256_hex(text.data, text.len, out);
}

struct cr_trust_summary cr_material_summarize_trust(const struct cr_material *m)
{
    struct cr_trust_summary summary = m->trust_summary;
    if (!m->trust_len)
        return summary;
    summary = (struct cr_trust_summary){.count = m->trust_len};
    cr_material_trust_digest(m, summary.digest);
    for (size_t i = 0; i < m->trust_len; i++)
        if (m->trust[i].not_after_ms > summary.not_after_ms)
            summary.not_after_ms = m->trust[i].not_after_ms;
    return summary;
}

const char *cr_material_problem_name(enum cr_material_problem problem)
{
    static const char *const names[] = {
        [CR_MATERIAL_OK] = "",
        [CR_MATERIAL_EMPTY] = "EmptyMaterial",
        [CR_MATERIAL_UNPARSABLE] = "UnparsableMaterial",
        [CR_MATERIAL_KEY_MISMATCH] = "KeyMismatch",
        [CR_MATERIAL_ENCRYPTED] = "EncryptedKey",
        [CR_MATERIAL_EXPIRED] = "Expired",
        [CR_MATERIAL_NOT_YET] = "NotYetValid",
        [CR_MATERIAL_INCOMPLETE] = "IncompleteMaterial",
        [CR_MATERIAL_TOO_COSTLY] = "TooCostly",
    };
    return (size_t)problem < cr_array_len(names) ? names[problem] : "UnparsableMaterial";
}

/* --- errors --- */

enum part { CERTIFICATE, PRIVATE_KEY, TRUST };

static const char *name_of(const struct work *w, enum part part)
{
    static const char *const defaults[] = {"tls.crt", "tls.key", "ca.crt"};
    return w->in->names[part] ? w->in->names[part] : defaults[part];
}

static bool refuse(struct work *w, enum cr_material_problem problem, const char *fmt, ...) CR_PRINTF(3, 4);

static bool refuse(struct work *w, enum cr_material_problem problem, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    w->problem = problem;
    cr_error_vset(w->err, CR_ERR_INVALID, fmt, args);
    va_end(args);
    return false;
}

/* Names the entry that an error of a reader is about. */
static bool refuse_entry(struct work *w, enum part part, enum cr_material_problem problem)
{
    w->problem = problem;
    return cr_error_wrap(w->err, "%s", name_of(w, part));
}

/* --- presence --- */

static bool is_blank(const struct cr_pem_input *in)
{
    for (size_t i = 0; i < in->len; i++)
        if (!strchr(" \t\r\n", in->data[i]) || !in->data[i])
            return false;
    return true;
}

static bool check_entry(struct work *w, enum part part, const struct cr_pem_input *in)
{
    if (!in->data)
        return true;
    if (is_blank(in))
        return refuse(w, CR_MATERIAL_EMPTY, "%s is empty", name_of(w, part));
    if (in->len > MAX_ENTRY)
        return refuse(w, CR_MATERIAL_UNPARSABLE, "%s has %zu bytes, more than the %d that are read", name_of(w, part),
                      in->len, MAX_ENTRY);
    return true;
}

static bool check_presence(struct work *w)
{
    const struct cr_material_input *in = w->in;
    if (!check_entry(w, CERTIFICATE, &in->certificate) || !check_entry(w, PRIVATE_KEY, &in->private_key) ||
        !check_entry(w, TRUST, &in->trust))
        return false;
    if (!in->certificate.data && !in->private_key.data && !in->trust.data && !in->opaque_len)
        return refuse(w, CR_MATERIAL_EMPTY, "none of the keys %s, %s and %s is there", name_of(w, CERTIFICATE),
                      name_of(w, PRIVATE_KEY), name_of(w, TRUST));
    if (in->certificate.data && !in->private_key.data)
        return refuse(w, CR_MATERIAL_INCOMPLETE, "%s is there, but not %s with its private key",
                      name_of(w, CERTIFICATE), name_of(w, PRIVATE_KEY));
    if (in->private_key.data && !in->certificate.data)
        return refuse(w, CR_MATERIAL_INCOMPLETE, "%s is there, but not %s with its certificate",
                      name_of(w, PRIVATE_KEY), name_of(w, CERTIFICATE));
    return true;
}

/* --- leaf --- */

static struct cr_certificate *leaf_of(const struct work *w)
{
    return w->chain->items[0];
}

static bool has_key(struct cr_certificate *cert, const EVP_PKEY *key)
{
    const EVP_PKEY *own = cr_certificate_key(cert);
    return own && EVP_PKEY_eq(own, key) == 1;
}

/* The usual reason is a chain that begins with its CA. */
static bool refuse_mismatch(struct work *w, const EVP_PKEY *key)
{
    char type[CR_KEY_TYPE];
    for (size_t i = 1; i < w->chain->len; i++)
        if (has_key(w->chain->items[i], key))
            return refuse(w, CR_MATERIAL_KEY_MISMATCH,
                          "%s belongs to certificate %zu of %s, not to the first: the leaf must come first",
                          name_of(w, PRIVATE_KEY), i + 1, name_of(w, CERTIFICATE));
    cr_key_type(key, type);
    return refuse(w, CR_MATERIAL_KEY_MISMATCH,
                  "%s does not belong to the certificate in %s: the key is %s, the certificate is for another %s key; "
                  "write both in one update",
                  name_of(w, PRIVATE_KEY), name_of(w, CERTIFICATE), type, w->out->key_type);
}

static void key_cleanup(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static bool check_times(struct work *w)
{
    char when[CR_TIME_TEXT];
    if (w->out->not_after_ms < w->now_ms) {
        cr_time_format(w->out->not_after_ms, when);
        return refuse(w, CR_MATERIAL_EXPIRED, "the certificate in %s expired at %s", name_of(w, CERTIFICATE), when);
    }
    if (w->out->not_before_ms > w->now_ms + CR_CLOCK_SKEW_MS) {
        cr_time_format(w->out->not_before_ms, when);
        return refuse(w, CR_MATERIAL_NOT_YET, "the certificate in %s is not valid before %s", name_of(w, CERTIFICATE),
                      when);
    }
    return true;
}

static void describe_leaf(struct work *w)
{
    struct cr_certificate *leaf = leaf_of(w);
    struct cr_material *out = w->out;
    out->has_leaf = true;
    cr_certificate_fingerprint(leaf, out->leaf);
    cr_certificates_digest(w->chain, out->chain);
    cr_certificate_key_digest(leaf, out->key);
    cr_certificate_serial(leaf, out->serial);
    cr_key_type(cr_certificate_key(leaf), out->key_type);
    out->not_before_ms = cr_certificate_not_before_ms(leaf);
    out->not_after_ms = cr_certificate_not_after_ms(leaf);
    cr_certificate_names(leaf, &out->names);
}

static bool refuse_unknown_key(struct work *w)
{
    char algorithm[CR_KEY_ALGORITHM_TEXT];
    cr_certificate_key_algorithm(leaf_of(w), algorithm, sizeof algorithm);
    return refuse(w, CR_MATERIAL_UNPARSABLE,
                  "%s: the certificate has a public key for %s that OpenSSL %s cannot read or does not have",
                  name_of(w, CERTIFICATE), algorithm, OPENSSL_VERSION_STR);
}

/* The public halves are the same; a server needs the private one. */
static bool check_use(struct work *w, EVP_PKEY *key)
{
    return cr_key_signs_for(key, cr_certificate_key(leaf_of(w))) ||
           refuse(
               w, CR_MATERIAL_KEY_MISMATCH,
               "what %s signs does not verify with the certificate in %s: it has the public half of its key, and the "
               "private half of another",
               name_of(w, PRIVATE_KEY), name_of(w, CERTIFICATE));
}

static bool read_leaf(struct work *w)
{
    if (!w->in->certificate.data)
        return true;
    w->chain = cr_certificates_read(&w->in->certificate, MAX_CHAIN, w->err);
    if (!w->chain)
        return refuse_entry(w, CERTIFICATE, CR_MATERIAL_UNPARSABLE);
    if (cr_certificate_size(leaf_of(w)) > CR_PATHS_CERTIFICATE_BYTES_MAX)
        return refuse(w, CR_MATERIAL_TOO_COSTLY, "the certificate in %s has %zu bytes, more than the %d that are read",
                      name_of(w, CERTIFICATE), cr_certificate_size(leaf_of(w)), CR_PATHS_CERTIFICATE_BYTES_MAX);
    enum cr_material_problem problem;
    struct cr_error unread = {0}; /* reported after what is wrong with the certificate */
    __attribute__((cleanup(key_cleanup))) EVP_PKEY *key = cr_key_read(&w->in->private_key, &problem, &unread);
    if (key)
        cr_certificate_offer_key(leaf_of(w), key);
    /* Only of the leaf: a CA with a key that we cannot read is none of our business. */
    if (!cr_certificate_key(leaf_of(w)))
        return refuse_unknown_key(w);
    describe_leaf(w);
    if (!key) {
        cr_error_set(w->err, unread.kind, "%s", unread.text);
        return refuse_entry(w, PRIVATE_KEY, problem);
    }
    return (has_key(leaf_of(w), key) || refuse_mismatch(w, key)) && check_use(w, key) && check_times(w);
}

/* --- trust --- */

static bool has_fingerprint(const struct cr_material *m, const char *fingerprint)
{
    for (size_t i = 0; i < m->trust_len; i++)
        if (strcmp(m->trust[i].fingerprint, fingerprint) == 0)
            return true;
    return false;
}

static void add_ca(struct cr_material *m, const struct cr_certificate *cert)
{
    struct cr_ca ca;
    cr_certificate_fingerprint(cert, ca.fingerprint);
    if (has_fingerprint(m, ca.fingerprint))
        return;
    cr_certificate_identity(cert, ca.identity);
    cr_certificate_subject_digest(cert, ca.subject);
    cr_certificate_serial(cert, ca.serial);
    ca.not_before_ms = cr_certificate_not_before_ms(cert);
    ca.not_after_ms = cr_certificate_not_after_ms(cert);
    m->trust[m->trust_len++] = ca;
}

static bool read_trust(struct work *w)
{
    if (!w->in->trust.data)
        return true;
    w->trust = cr_trust_read(&w->in->trust, MAX_TRUST, w->err);
    if (!w->trust)
        return refuse_entry(w, TRUST, CR_MATERIAL_UNPARSABLE);
    w->out->trust = cr_calloc(w->trust->len, sizeof *w->out->trust);
    for (size_t i = 0; i < w->trust->len; i++)
        add_ca(w->out, w->trust->items[i]);
    return true;
}

/* --- who signed the leaf, and what trusts it --- */

/* Above the leaf: the chain that a server sends first, then the bundle. */
static size_t sent_above(const struct work *w)
{
    return w->chain->len - 1;
}

static struct cr_certificate *above_leaf(const struct work *w, size_t i)
{
    return i < sent_above(w) ? w->chain->items[i + 1] : w->trust->items[i - sent_above(w)];
}

static struct cr_paths *paths_of(struct work *w)
{
    size_t len = sent_above(w) + (w->trust ? w->trust->len : 0);
    cr_autofree struct cr_paths_above *above = cr_calloc(len + 1, sizeof *above);
    for (size_t i = 0; i < len; i++)
        above[i] = (struct cr_paths_above){.cert = above_leaf(w, i), .between = true};
    return cr_paths_new(cr_certificate_x509(leaf_of(w)), above, len, w->err);
}

/* What verifies shows the issuer already. */
static bool describe_anchors(struct work *w, struct cr_paths *paths)
{
    char identity[CR_SHA256_HEX];
    for (size_t i = 0; w->trust && i < w->trust->len; i++) {
        bool verifies = false;
        size_t issuer = CR_PATHS_NONE;
        if (!cr_paths_verify(paths, sent_above(w) + i, CR_PATHS_NOW, w->now_ms, &verifies, &issuer, w->err))
            return false;
        if (!verifies)
            continue;
        cr_certificate_identity(w->trust->items[i], identity);
        cr_strvec_add_unique(&w->out->anchors, identity);
        if (issuer != CR_PATHS_NONE)
            cr_certificate_identity(above_leaf(w, issuer), w->out->issuer);
    }
    return true;
}

static bool describe_issuer(struct work *w, struct cr_paths *paths)
{
    size_t signer;
    if (w->out->issuer[0])
        return true;
    if (!cr_paths_find_signer(paths, &signer, w->err))
        return false;
    if (signer == CR_PATHS_NONE)
        cr_certificate_issuer_digest(leaf_of(w), w->out->issuer);
    else
        cr_certificate_identity(signer == CR_PATHS_ITSELF ? leaf_of(w) : above_leaf(w, signer), w->out->issuer);
    return true;
}

static bool describe_paths(struct work *w)
{
    if (!cr_certificate_x509(leaf_of(w)))
        return refuse(w, CR_MATERIAL_UNPARSABLE,
                      "%s: OpenSSL cannot read the leaf, or its key is on a curve without a name",
                      name_of(w, CERTIFICATE));
    CR_CLEANUP(cr_paths) struct cr_paths *paths = paths_of(w);
    if (paths && describe_anchors(w, paths) && describe_issuer(w, paths))
        return true;
    return refuse_entry(w, CERTIFICATE, CR_MATERIAL_TOO_COSTLY);
}

static bool read_material(struct work *w)
{
    if (!check_presence(w) || !read_leaf(w) || !read_trust(w))
        return false;
    if (w->chain && !describe_paths(w))
        return false;
    cr_opaque_digest(w->in, w->out);
    return true;
}

bool cr_material_parse(const struct cr_material_input *in, int64_t now_ms, struct cr_material *out,
                       enum cr_material_problem *problem, struct cr_error *err)
{
    struct cr_error own = {0};
    struct cr_material made = {0};
    __attribute__((cleanup(work_cleanup))) struct work w = {.in = in, .now_ms = now_ms, .out = &made, .err = &own};
    ERR_set_mark();
    bool ok = read_material(&w);
    ERR_pop_to_mark(); /* what OpenSSL said on the way is of no use */
    if (!ok) {
        const struct cr_material times = {.not_before_ms = made.not_before_ms, .not_after_ms = made.not_after_ms};
        cr_material_dispose(&made);
        made = times;
    }
    if (!ok && err)
        *err = own;
    *problem = w.problem;
    *out = made;
    return ok;
}
