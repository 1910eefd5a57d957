/* Texts with placeholders that a trigger sends: material goes in where it may, and never into what is logged. */
#include "sidecar/trigger_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"

/* What a placeholder begins with, and what the material has of it. */
struct part {
    const char *name;
    bool holds_key;
    const struct cr_buf *(*text)(const struct cr_reading *reading);
    const char *(*path)(const struct cr_sidecar_material *material);
};

static const struct cr_buf *certificate_text(const struct cr_reading *reading)
{
    return &reading->certificate;
}

static const struct cr_buf *key_text(const struct cr_reading *reading)
{
    return &reading->private_key;
}

static const struct cr_buf *trust_text(const struct cr_reading *reading)
{
    return &reading->trust;
}

static const char *certificate_path(const struct cr_sidecar_material *material)
{
    return material->certificate;
}

static const char *key_path(const struct cr_sidecar_material *material)
{
    return material->private_key;
}

static const char *trust_path(const struct cr_sidecar_material *material)
{
    return material->trust;
}

static const struct part parts[] = {{"certificate", false, certificate_text, certificate_path},
                                    {"privateKey", true, key_text, key_path},
                                    {"trust", false, trust_text, trust_path}};
#define COMBINED "combined" /* certificate and key */

/* --- PEM in a text --- */

static void add_json_char(struct cr_buf *out, char c)
{
    if (c == '\n')
        cr_buf_puts(out, "\\n");
    else if (c == '"' || c == '\\')
        cr_buf_printf(out, "\\%c", c);
    else if ((unsigned char)c < 0x20)
        cr_buf_printf(out, "\\u%04x", (unsigned)c);
    else
        cr_buf_printf(out, "%c", c);
}

static void add_bytes(struct cr_buf *out, const char *data, size_t len, bool json)
{
    if (!json && !cr_buf_append(out, data, len))
        return; /* it has no cap */
    for (size_t i = 0; json && i < len; i++)
        add_json_char(out, data[i]);
}

/* Blocks that are joined without a new line are none. */
static void add_pem(struct cr_buf *out, const struct cr_buf *pem, bool json)
{
    add_bytes(out, cr_buf_text(pem), pem->len, json);
    if (pem->len && pem->data[pem->len - 1] != '\n')
        add_bytes(out, "\n", 1, json);
}

/* --- placeholders --- */

static bool is_named(const char *placeholder, const char *name, const char **suffix)
{
    size_t len = strlen(name);
    *suffix = placeholder + len;
    return strncmp(placeholder, name, len) == 0 && (!**suffix || **suffix == '.');
}

static bool lacks_part(const char *placeholder, const struct cr_trigger_job *job, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "${%s}: the material %s has no such part", placeholder,
                        cr_or_empty(job->material->name));
}

static bool add_part(const struct cr_trigger_job *job, const struct part *part, const char *placeholder,
                     const char *suffix, struct cr_buf *out, struct cr_error *err)
{
    if (cr_streq(suffix, ".path")) {
        const char *path = part->path(job->material);
        if (!path)
            return lacks_part(placeholder, job, err);
        cr_buf_puts(out, path);
        return true;
    }
    const struct cr_buf *pem = part->text(job->reading);
    if (!pem->len)
        return lacks_part(placeholder, job, err);
    add_pem(out, pem, cr_streq(suffix, ".json"));
    return true;
}

static bool add_combined(const struct cr_trigger_job *job, const char *placeholder, bool json, struct cr_buf *out,
                         struct cr_error *err)
{
    if (!job->reading->certificate.len || !job->reading->private_key.len)
        return lacks_part(placeholder, job, err);
    add_pem(out, &job->reading->certificate, json);
    add_pem(out, &job->reading->private_key, json);
    return true;
}

static bool is_seen(const char *placeholder, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID,
                        "${%s} would show the private key to others here: pass its file, ${privateKey.path}",
                        placeholder);
}

static bool add_placeholder(const struct cr_trigger_job *job, const char *placeholder, enum cr_trigger_secrecy secrecy,
                            struct cr_buf *out, struct cr_error *err)
{
    const char *suffix = NULL;
    bool is_text = true;
    for (size_t i = 0; i < cr_array_len(parts); i++) {
        if (!is_named(placeholder, parts[i].name, &suffix))
            continue;
        is_text = !*suffix || cr_streq(suffix, ".json");
        if (!is_text && !cr_streq(suffix, ".path"))
            break;
        if (is_text && parts[i].holds_key && secrecy == CR_TRIGGER_SEEN)
            return is_seen(placeholder, err);
        return add_part(job, &parts[i], placeholder, suffix, out, err);
    }
    if (is_named(placeholder, COMBINED, &suffix) && (!*suffix || cr_streq(suffix, ".json")))
        return secrecy == CR_TRIGGER_SEEN ? is_seen(placeholder, err)
                                          : add_combined(job, placeholder, *suffix != '\0', out, err);
    return cr_error_set(err, CR_ERR_INVALID,
                        "${%s} is no placeholder: there are ${certificate}, ${privateKey}, ${trust} and ${combined}, "
                        "with .json inside of a JSON string, and the first three with .path",
                        placeholder);
}

bool cr_trigger_text(const struct cr_trigger_job *job, const char *text, enum cr_trigger_secrecy secrecy,
                     struct cr_buf *out, struct cr_error *err)
{
    while (*text) {
        char placeholder[32];
        const char *begin = strstr(text, "${");
        add_bytes(out, text, begin ? (size_t)(begin - text) : strlen(text), false);
        if (!begin)
            return true;
        size_t len = strcspn(begin, "}");
        if (!begin[len])
            return cr_error_set(err, CR_ERR_INVALID, "a placeholder is not closed: '%.20s'", begin);
        snprintf(placeholder, sizeof placeholder, "%.*s", (int)len - 2, begin + 2);
        if (!add_placeholder(job, placeholder, secrecy, out, err))
            return false;
        text = begin + len + 1;
    }
    return true;
}

void cr_trigger_add_lines(struct cr_buf *out, const struct cr_buf *pem)
{
    const char *line = cr_buf_text(pem);
    while (*line) {
        size_t len = strcspn(line, "\r\n");
        if (len) {
            add_bytes(out, line, len, false);
            cr_buf_puts(out, "\n");
        }
        line += len + strspn(line + len, "\r\n");
    }
}

/* --- what a program said --- */

enum { UNLIKELY_BY_CHANCE = 10 /* characters of a key that two texts do not have in common by chance */ };

static bool repeats(const char *said, size_t len, const struct cr_buf *key)
{
    for (size_t i = 0; key->len && i + UNLIKELY_BY_CHANCE <= len; i++)
        if (memmem(key->data, key->len, said + i, UNLIKELY_BY_CHANCE))
            return true;
    return false;
}

void cr_trigger_words(const struct cr_trigger_job *job, const char *said, size_t len, char out[CR_TRIGGER_WORDS])
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < CR_TRIGGER_WORDS; i++) {
        unsigned char c = (unsigned char)said[i];
        bool gap = c <= ' ' || c == 0x7f;
        if (gap && (!n || out[n - 1] == ' '))
            continue;
        out[n++] = (char)(gap ? ' ' : c < 0x80 ? c : '?');
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    if (repeats(out, n, &job->reading->private_key))
        snprintf(out, CR_TRIGGER_WORDS, "(it repeats the private key, so it is not shown)");
}
