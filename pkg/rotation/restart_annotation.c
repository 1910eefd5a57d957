/* The memory of restarts: an annotation on the pod template says for which material, class by class, the pods were
 * made. It holds digests of digests, cut to 64 bits: enough to tell two states apart, useless for anything else. */
#include "rotation/diff.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "pki/digest.h"

enum { DIGEST_HEX = 16 };

static const struct class_word {
    enum cr_class class;
    const char *word;
} words[] = {{CR_CLASS_LEAF, "leaf"}, {CR_CLASS_TRUST, "trust"}, {CR_CLASS_OPAQUE, "opaque"}};

void cr_restart_annotation_name(const char *secret, char out[CR_ANNOTATION_NAME])
{
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(secret, strlen(secret), hex);
    snprintf(out, CR_ANNOTATION_NAME, "certroll.dev/%.*s", DIGEST_HEX, hex);
}

/* As a set: sorted and each once. */
static void trust_text(const struct cr_material *m, struct cr_buf *buf)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec fingerprints = {0};
    for (size_t i = 0; i < m->trust_len; i++)
        cr_strvec_add_unique(&fingerprints, m->trust[i].fingerprint);
    cr_strvec_sort(&fingerprints);
    for (size_t i = 0; i < fingerprints.len; i++)
        cr_buf_printf(buf, "%s,", fingerprints.items[i]);
}

static void class_text(const struct cr_material *m, enum cr_class class, struct cr_buf *buf)
{
    switch (class) {
    case CR_CLASS_LEAF:
        if (m->has_leaf)
            cr_buf_printf(buf, "%s,%s", m->leaf, m->chain);
        break;
    case CR_CLASS_TRUST:
        trust_text(m, buf);
        break;
    case CR_CLASS_OPAQUE:
        cr_buf_puts(buf, m->opaque);
        break;
    }
}

static void class_digest(const struct cr_material *m, enum cr_class class, char out[DIGEST_HEX + 1])
{
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    class_text(m, class, &buf);
    char hex[CR_SHA256_HEX] = "none";
    if (buf.len)
        cr_sha256_hex(buf.data, buf.len, hex);
    snprintf(out, DIGEST_HEX + 1, "%.*s", DIGEST_HEX, hex);
}

/* The digest that a value has for a class; false when there is none of the right form. */
static bool value_digest(const char *value, const char *word, char out[DIGEST_HEX + 1])
{
    size_t word_len = strlen(word);
    for (const char *p = value; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t len = strcspn(p, ",");
        if (len <= word_len + 1 || strncmp(p, word, word_len) != 0 || p[word_len] != '=')
            continue;
        size_t digest_len = len - word_len - 1;
        if (digest_len > DIGEST_HEX)
            return false;
        memcpy(out, p + word_len + 1, digest_len);
        out[digest_len] = '\0';
        return true;
    }
    return false;
}

char *cr_restart_annotation_value(const struct cr_material *material, unsigned classes)
{
    return cr_restart_annotation_merge(NULL, material, classes);
}

bool cr_restart_annotation_covers(const char *value, const struct cr_material *material, unsigned classes)
{
    for (size_t i = 0; i < cr_array_len(words); i++) {
        if (!(classes & words[i].class))
            continue;
        char want[DIGEST_HEX + 1];
        char have[DIGEST_HEX + 1];
        class_digest(material, words[i].class, want);
        if (!value_digest(value, words[i].word, have) || strcmp(want, have) != 0)
            return false;
    }
    return true;
}

char *cr_restart_annotation_merge(const char *before, const struct cr_material *material, unsigned classes)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_array_len(words); i++) {
        char digest[DIGEST_HEX + 1];
        if (classes & words[i].class)
            class_digest(material, words[i].class, digest);
        else if (!value_digest(before, words[i].word, digest))
            continue;
        cr_buf_printf(&buf, "%s%s=%s", buf.len ? "," : "", words[i].word, digest);
    }
    return cr_buf_steal(&buf);
}
