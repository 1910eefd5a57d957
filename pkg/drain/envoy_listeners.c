#include "drain/envoy_listeners.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

static const char separator[] = "::";
static const char internal[] = "envoy://";

/* --- lines --- */

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits && !text[digits];
}

/* "10.0.0.1:80", "[::1]:80", "/run/a.sock", "@abstract", "envoy://name/": so that names and addresses may have colons
 * of their own. */
static bool is_address(const char *text)
{
    size_t ip = strspn(text, "0123456789.");
    if (ip)
        return text[ip] == ':' && is_port(text + ip + 1);
    if (*text == '[') {
        ip = strcspn(text, "]");
        return cr_starts_with(text + ip, "]:") && is_port(text + ip + 2);
    }
    return *text == '/' || *text == '@' || cr_starts_with(text, internal);
}

/* Cuts the line behind the name; NULL: it is no such line. */
static const char *cut_address(char *line)
{
    for (char *at = strstr(line, separator); at; at = strstr(at + 1, separator)) {
        if (!is_address(at + strlen(separator)))
            continue;
        *at = '\0';
        return at + strlen(separator);
    }
    return NULL;
}

/* --- names in the statistics --- */

/* Owned. A listener without a stat_prefix is named after its address, and Envoy has no ':' in a statistic's name. */
static char *stat_name(const char *address)
{
    size_t len = strlen(address);
    char *name = NULL;
    if (cr_starts_with(address, internal)) {
        size_t slash = cr_ends_with(address, "/") ? 1 : 0;
        name = cr_asprintf("envoy_internal_%.*s", (int)(len - strlen(internal) - slash), address + strlen(internal));
    } else {
        name = cr_strdup(address);
    }
    for (char *c = strchr(name, ':'); c; c = strchr(c, ':'))
        *c = '_';
    return name;
}

static void add_stat(const char *address, struct cr_strvec *out)
{
    cr_autofree char *name = stat_name(address);
    cr_strvec_add_unique(out, name);
}

/* --- who serves no clients --- */

static bool is_for_upkeep(const char *name)
{
    static const char *const names[] = {"stats", "health", "stats-health", "envoy-admin"};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        if (cr_streq(names[i], name))
            return true;
    }
    return cr_starts_with(name, "envoy-gateway-proxy-ready-") || cr_starts_with(name, "envoy-gateway-proxy-stats-");
}

static void look_at(char *line, const struct cr_strvec *ignored, struct cr_strvec *out)
{
    const char *address = cut_address(line);
    if (!address)
        return;
    if (is_for_upkeep(line) || cr_starts_with(address, internal) || cr_strvec_has(ignored, line))
        add_stat(address, out);
}

void cr_envoy_listeners_left_out(const char *page, const struct cr_strvec *ignored, struct cr_strvec *out)
{
    cr_autofree char *copy = cr_strdup(page);
    char *save = NULL;
    for (size_t i = 0; i < ignored->len; i++)
        add_stat(ignored->items[i], out);
    for (char *line = strtok_r(copy, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save))
        look_at(line, ignored, out);
}
