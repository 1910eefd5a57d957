/* The memory of restarts: an annotation on the pod template says for which material, class by class, the pods were
 * made. It holds digests of digests, cut to 64 bits: enough to distinguish two states, useless for anything else.
 * Beside each stands at which resourceVersion of the Secret the change was seen: newer than what a policy's status has
 * observed, it is a restart that never came on record (plan_unrecorded.c). And it says for which workload it was
 * written: manifests are copied, annotations and all, to where the Secret holds something else; and when, by which
 * restarts are counted that never came on record (breaker.c). */
#include "evidence/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/strings.h"
#include "pki/digest.h"

enum {
    DIGEST_HEX = 16,
    KEY_ID = CR_OPAQUE_KEY_ID + 1, /* and a dot */
    DIGEST_TEXT = KEY_ID + DIGEST_HEX + 1,
    VERSION_DIGITS = 20, /* of 64 bits */
    TIME_DIGITS = 13,    /* of milliseconds, until 2286 */
};

#define ANNOTATION_PREFIX "certroll.dev/"

static const char workload_word[] = "workload";
static const char time_word[] = "at";

static const struct class_word {
    enum cr_class class;
    const char *word;
    const char *version;
} words[] = {{CR_CLASS_LEAF, "leaf", "leaf.version"},
             {CR_CLASS_TRUST, "trust", "trust.version"},
             {CR_CLASS_OPAQUE, "opaque", "opaque.version"}};

void cr_restart_annotation_name(const char *secret, char out[CR_ANNOTATION_NAME])
{
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(secret, strlen(secret), hex);
    snprintf(out, CR_ANNOTATION_NAME, ANNOTATION_PREFIX "%.*s", DIGEST_HEX, hex);
}

/* "" when there is no such material. */
static void whole_digest(const struct cr_material *m, enum cr_class class, char out[CR_SHA256_HEX])
{
    out[0] = '\0';
    if (class == CR_CLASS_TRUST) {
        cr_material_trust_digest(m, out);
        return;
    }
    CR_CLEANUP(cr_buf) struct cr_buf buf = CR_BUF_INIT(0);
    if (class == CR_CLASS_LEAF && m->has_leaf)
        cr_buf_printf(&buf, "%s,%s", m->leaf, m->chain);
    if (class == CR_CLASS_OPAQUE)
        cr_buf_puts(&buf, m->opaque);
    if (buf.len)
        cr_sha256_hex(buf.data, buf.len, out);
}

static void class_digest(const struct cr_material *m, enum cr_class class, char out[DIGEST_TEXT])
{
    char hex[CR_SHA256_HEX];
    whole_digest(m, class, hex);
    if (!hex[0])
        snprintf(out, DIGEST_TEXT, "none");
    else if (class == CR_CLASS_OPAQUE)
        snprintf(out, DIGEST_TEXT, "%.*s.%.*s", CR_OPAQUE_KEY_ID, m->opaque, DIGEST_HEX, hex);
    else
        snprintf(out, DIGEST_TEXT, "%.*s", DIGEST_HEX, hex);
}

/* The digest that a value has for a class, or its version; false when there is none of the right form. */
static bool value_digest(const char *value, const char *word, char out[DIGEST_TEXT])
{
    size_t word_len = strlen(word);
    for (const char *p = value; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t len = strcspn(p, ",");
        if (len <= word_len + 1 || strncmp(p, word, word_len) != 0 || p[word_len] != '=')
            continue;
        size_t digest_len = len - word_len - 1;
        if (digest_len >= DIGEST_TEXT)
            return false;
        memcpy(out, p + word_len + 1, digest_len);
        out[digest_len] = '\0';
        return true;
    }
    return false;
}

char *cr_restart_annotation_value(const struct cr_material *material, unsigned classes)
{
    return cr_restart_annotation_merge(NULL, material, classes, NULL);
}

bool cr_restart_annotation_covers(const char *value, const struct cr_material *material, unsigned classes)
{
    for (size_t i = 0; i < cr_array_len(words); i++) {
        if (!(classes & words[i].class))
            continue;
        char want[DIGEST_TEXT];
        char have[DIGEST_TEXT];
        class_digest(material, words[i].class, want);
        if (!value_digest(value, words[i].word, have) || strcmp(want, have) != 0)
            return false;
    }
    return true;
}

bool cr_restart_annotation_is_rekeyed(const char *value, const struct cr_material *material)
{
    char want[DIGEST_TEXT];
    char have[DIGEST_TEXT];
    class_digest(material, CR_CLASS_OPAQUE, want);
    return value_digest(value, "opaque", have) && strlen(want) == DIGEST_TEXT - 1 && strlen(have) == DIGEST_TEXT - 1 &&
           strncmp(want, have, KEY_ID) != 0;
}

bool cr_restart_annotation_is_version(const char *text)
{
    return text && cr_decimal_less("0", text) && strlen(text) <= VERSION_DIGITS;
}

/* At which version a class was restarted for; false: not known. */
static bool class_version(const char *value, enum cr_class class, char out[DIGEST_TEXT])
{
    for (size_t i = 0; i < cr_array_len(words); i++)
        if (words[i].class == class)
            return value_digest(value, words[i].version, out) && cr_restart_annotation_is_version(out);
    return false;
}

bool cr_restart_annotation_is_between(const char *value, enum cr_class class, const char *after, const char *until)
{
    char version[DIGEST_TEXT];
    return class_version(value, class, version) && cr_decimal_less(after, version) &&
           cr_restart_annotation_is_version(until) && !cr_decimal_less(until, version);
}

bool cr_restart_annotation_is_at(const char *value, enum cr_class class, const char *at)
{
    char version[DIGEST_TEXT];
    return class_version(value, class, version) && cr_streq(version, at);
}

char *cr_restart_annotation_newest(const char *value)
{
    char newest[DIGEST_TEXT] = "";
    for (size_t i = 0; i < cr_array_len(words); i++) {
        char version[DIGEST_TEXT];
        if (class_version(value, words[i].class, version) && (!newest[0] || cr_decimal_less(newest, version)))
            memcpy(newest, version, sizeof newest);
    }
    return newest[0] ? cr_strdup(newest) : NULL;
}

static void append(struct cr_buf *buf, const char *word, const char *text)
{
    cr_buf_printf(buf, "%s%s=%s", buf->len ? "," : "", word, text);
}

char *cr_restart_annotation_merge(const char *before, const struct cr_material *material, unsigned classes,
                                  const char *version)
{
    struct cr_buf buf = CR_BUF_INIT(0);
    for (size_t i = 0; i < cr_array_len(words); i++) {
        char digest[DIGEST_TEXT];
        char kept[DIGEST_TEXT] = "";
        bool is_new = classes & words[i].class;
        if (is_new)
            class_digest(material, words[i].class, digest);
        else if (!value_digest(before, words[i].word, digest))
            continue;
        append(&buf, words[i].word, digest);
        if (!is_new)
            (void)value_digest(before, words[i].version, kept);
        const char *at = is_new ? version : kept;
        if (cr_restart_annotation_is_version(at))
            append(&buf, words[i].version, at);
    }
    return cr_buf_steal(&buf);
}

/* --- the workload that it belongs to --- */

static void workload_digest(const char *uid, char out[DIGEST_TEXT])
{
    char hex[CR_SHA256_HEX];
    cr_sha256_hex(uid, strlen(uid), hex);
    snprintf(out, DIGEST_TEXT, "%.*s", DIGEST_HEX, hex);
}

char *cr_restart_annotation_for(const char *value, const char *uid, int64_t at_ms)
{
    char digest[DIGEST_TEXT];
    workload_digest(cr_or_empty(uid), digest);
    return cr_asprintf("%s,%s=%s,%s=%lld", value, workload_word, digest, time_word, (long long)at_ms);
}

const char *cr_restart_annotation_read(const struct cr_json *annotations, const char *name, const char *uid)
{
    const char *value = cr_json_string_at(annotations, name);
    char wanted[DIGEST_TEXT];
    char written[DIGEST_TEXT];
    if (!value_digest(value, workload_word, written))
        return value;
    workload_digest(cr_or_empty(uid), wanted);
    return cr_streq(written, wanted) ? value : NULL;
}

/* --- when --- */

/* 0: it is not there, or not in this form. */
static int64_t value_at_ms(const char *value)
{
    char text[DIGEST_TEXT];
    if (!value_digest(value, time_word, text) || strspn(text, "0123456789") != strlen(text) ||
        strlen(text) > TIME_DIGITS)
        return 0;
    return strtoll(text, NULL, 10);
}

/* --- where it stands --- */

/* An Argo Rollout would take a change of its template for a new version. */
static bool is_beside_template(const struct cr_json *workload)
{
    return cr_consumer_kind_of(cr_json_string_at(workload, "kind"))->restart_at;
}

static const struct cr_json *annotations_of(const struct cr_json *workload)
{
    return is_beside_template(workload) ? cr_json_at(workload, "metadata", "annotations")
                                        : cr_json_at(workload, "spec", "template", "metadata", "annotations");
}

/* What restarts the pods then stands elsewhere, and that may have been put back. */
static bool is_effective(const struct cr_json *workload, const char *value)
{
    int64_t at_ms = 0;
    const char *at = cr_json_string_at(workload, "spec", "restartAt");
    return !is_beside_template(workload) || (at && cr_time_parse(at, &at_ms, NULL) && at_ms >= value_at_ms(value));
}

const char *cr_restart_annotation_of(const struct cr_json *workload, const char *name)
{
    const char *value =
        cr_restart_annotation_read(annotations_of(workload), name, cr_json_string_at(workload, "metadata", "uid"));
    return value && is_effective(workload, value) ? value : NULL;
}

int64_t cr_restart_annotation_at_ms(const struct cr_json *workload)
{
    const struct cr_json *annotations = annotations_of(workload);
    const char *uid = cr_json_string_at(workload, "metadata", "uid");
    int64_t newest_ms = 0;
    for (const struct cr_json *a = cr_json_first(annotations); a; a = cr_json_next(a)) {
        if (!cr_starts_with(cr_json_key(a), ANNOTATION_PREFIX))
            continue;
        int64_t at_ms = value_at_ms(cr_restart_annotation_read(annotations, cr_json_key(a), uid));
        newest_ms = at_ms > newest_ms ? at_ms : newest_ms;
    }
    return newest_ms;
}
