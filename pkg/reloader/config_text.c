#include "reloader/config_text.h"

#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "reloader/address.h"
#include "reloader/config_read.h"

static const struct variable {
    const char *text;
    unsigned parts;
    bool is_path;
} variables[] = {
    {"${certificate}", CR_PART_CERTIFICATE, false},
    {"${privateKey}", CR_PART_PRIVATE_KEY, false},
    {"${trust}", CR_PART_TRUST, false},
    {"${combined}", CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY, false},
    {"${certificate.json}", CR_PART_CERTIFICATE, false},
    {"${privateKey.json}", CR_PART_PRIVATE_KEY, false},
    {"${trust.json}", CR_PART_TRUST, false},
    {"${combined.json}", CR_PART_CERTIFICATE | CR_PART_PRIVATE_KEY, false},
    {"${certificate.path}", CR_PART_CERTIFICATE, true},
    {"${privateKey.path}", CR_PART_PRIVATE_KEY, true},
    {"${trust.path}", CR_PART_TRUST, true},
};

static const struct variable *variable_at(const char *text)
{
    for (size_t i = 0; i < cr_array_len(variables); i++)
        if (cr_starts_with(text, variables[i].text))
            return &variables[i];
    return NULL;
}

static bool check(const struct cr_node *node, const char *key, const char *text, unsigned parts, bool paths_only,
                  struct cr_error *err)
{
    for (const char *at = strstr(text, "${"); at; at = strstr(at + 2, "${")) {
        const struct variable *variable = variable_at(at);
        if (!variable || (paths_only && !variable->is_path))
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s: of ${…} there are %s here", node->path, key,
                                paths_only ? "${certificate.path}, ${privateKey.path}, ${trust.path}"
                                           : "${certificate}, ${privateKey}, ${trust}, ${combined}, the same "
                                             "with .json (inside of a JSON string), and "
                                             "${certificate.path}, ${privateKey.path}, ${trust.path}");
        if (variable->parts & ~parts)
            return cr_error_set(err, CR_ERR_INVALID, "%s.%s: %s is no part of the material", node->path, key,
                                variable->text);
    }
    return true;
}

bool cr_config_check_text(const struct cr_node *node, const char *key, const char *text,
                          const struct cr_reloader_material *material, struct cr_error *err)
{
    return check(node, key, text, cr_config_parts(material), false, err);
}

bool cr_config_check_paths(const struct cr_node *node, const char *key, const char *text,
                           const struct cr_reloader_material *material, struct cr_error *err)
{
    return check(node, key, text, cr_config_parts(material), true, err);
}

bool cr_config_text_has_key(const char *text)
{
    for (const char *at = strstr(text, "${"); at; at = strstr(at + 2, "${")) {
        const struct variable *variable = variable_at(at);
        if (variable && !variable->is_path && variable->parts & CR_PART_PRIVATE_KEY)
            return true;
    }
    return false;
}

bool cr_config_is_header(const char *text)
{
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    size_t name = strspn(text, token);
    if (!name || text[name] != ':')
        return false;
    for (const char *c = text + name; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            return false;
    return true;
}

/* The host, with its brackets, and how long it is. */
static const char *host_of(const char *url, size_t *len)
{
    const char *host = strstr(url, "://") + 3;
    *len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
    return host;
}

bool cr_config_is_url(const char *text)
{
    if (!cr_starts_with(text, "http://") && !cr_starts_with(text, "https://"))
        return false;
    for (const char *c = text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || strchr("#\"<>\\^`{|}", *c))
            return false;
    size_t len = 0;
    const char *host = host_of(text, &len);
    return *host && len > 0 && len <= strlen(host) && !memchr(host, '@', strcspn(host, "/?"));
}

bool cr_config_url_is_private(const char *url)
{
    char ip[64];
    size_t len = 0;
    if (cr_starts_with(url, "https://"))
        return true;
    const char *host = host_of(url, &len);
    bool brackets = *host == '[';
    snprintf(ip, sizeof ip, "%.*s", (int)(brackets ? len - 2 : len), host + brackets);
    return cr_streq(ip, "localhost") || cr_reloader_is_loopback(ip);
}

bool cr_config_is_word(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f || strchr(";\\<\"'", *c))
            return false;
    return *text;
}
