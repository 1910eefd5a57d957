/* The files that are made of a material, in the configuration. */
#include "reloader/config_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

enum { MODE_OTHERS = 0007, MODE_MOST = 0666, PARTS = 3 };

static const char *const types[] = {
    [CR_OUTPUT_PEM] = "PEM", [CR_OUTPUT_KEYSTORE] = "Keystore", [CR_OUTPUT_TRUSTSTORE] = "Truststore"};

/* In the order in which they are written. */
static const struct {
    const char *word;
    unsigned part;
} parts[PARTS] = {{"certificate", CR_PART_CERTIFICATE}, {"privateKey", CR_PART_PRIVATE_KEY}, {"trust", CR_PART_TRUST}};

void cr_config_output_dispose(struct cr_output_spec *output)
{
    free(output->path);
    free(output->password_file);
}

static bool read_parts(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec words = {0};
    if (!cr_node_must_have(node, "parts", err) || !cr_node_strings(node, "parts", PARTS, &words, err))
        return false;
    for (size_t i = 0; i < words.len; i++) {
        size_t p = 0;
        while (p < PARTS && !cr_streq(parts[p].word, words.items[i]))
            p++;
        if (p == PARTS)
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s.parts: '%s' is none of certificate, privateKey, trust (in this order in the file)",
                                node->path, words.items[i]);
        out->parts |= parts[p].part;
    }
    return out->parts || cr_error_set(err, CR_ERR_INVALID, "%s.parts: there is none", node->path);
}

/* What goes into the file. */
static unsigned needed(const struct cr_output_spec *output)
{
    if (output->type == CR_OUTPUT_PEM)
        return output->parts;
    return output->type == CR_OUTPUT_KEYSTORE ? CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY : CR_PART_TRUST;
}

static bool check_parts(const struct cr_node *node, const struct cr_reloader_material *material,
                        const struct cr_output_spec *output, struct cr_error *err)
{
    for (size_t i = 0; i < PARTS; i++)
        if (needed(output) & parts[i].part & ~cr_config_parts(material))
            return cr_error_set(err, CR_ERR_INVALID, "%s: the material has no %s", node->path, parts[i].word);
    return true;
}

static bool read_form(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    if (out->type == CR_OUTPUT_PEM)
        return CR_CONFIG_ONLY(node, err, "type", "path", "parts", "mode", "owner", "group") &&
               read_parts(node, out, err);
    return CR_CONFIG_ONLY(node, err, "type", "path", "passwordFile", "mode", "owner", "group") &&
           cr_node_must_have(node, "passwordFile", err) &&
           cr_config_path(node, "passwordFile", &out->password_file, err);
}

/* In quotes: what a bare 0400 means differs between versions of YAML. */
static bool read_mode(const struct cr_node *node, struct cr_output_spec *out, struct cr_error *err)
{
    bool key = needed(out) & CR_PART_PRIVATE_KEY;
    cr_autofree char *text = NULL;
    if (!cr_node_string(node, "mode", key ? "0400" : "0444", &text, err))
        return false;
    char *end = NULL;
    unsigned long mode = strtoul(text, &end, 8);
    if (strspn(text, "01234567") != strlen(text) || *end || mode & ~(unsigned long)MODE_MOST || !mode)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.mode must be octal digits in quotes, as \"0400\" or \"0440\", without the right to "
                            "execute",
                            node->path);
    if (key && mode & MODE_OTHERS)
        return cr_error_set(err, CR_ERR_INVALID,
                            "%s.mode: %s would let everybody at the key: give it an owner or a group, and a mode as "
                            "\"0440\"",
                            node->path, text);
    out->mode = (mode_t)mode;
    return true;
}

static bool read_id(const struct cr_node *node, const char *key, int64_t *out, struct cr_error *err)
{
    int id = 0;
    if (!cr_node_int(node, key, (struct cr_node_range){0, INT32_MAX, 0}, &id, err))
        return false;
    *out = cr_node_has(node, key) ? id : -1;
    return true;
}

bool cr_config_output(const struct cr_node *node, const struct cr_reloader_material *material,
                      struct cr_output_spec *out, struct cr_error *err)
{
    if (!cr_node_must_have(node, "type", err) || !CR_NODE_ENUM(node, "type", types, CR_OUTPUT_PEM, &out->type, err) ||
        !cr_node_must_have(node, "path", err) || !cr_config_path(node, "path", &out->path, err))
        return false;
    if (cr_ends_with(out->path, "/"))
        return cr_error_set(err, CR_ERR_INVALID, "%s.path must be that of a file", node->path);
    return read_form(node, out, err) && check_parts(node, material, out, err) && read_mode(node, out, err) &&
           read_id(node, "owner", &out->owner, err) && read_id(node, "group", &out->group, err);
}
