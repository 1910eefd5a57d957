/* Which entry of the catalogue a container image belongs to. */
#include "catalogue/catalogue_internal.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"

size_t cr_catalogue_len(const struct cr_catalogue *catalogue)
{
    return catalogue ? catalogue->len : 0;
}

const char *cr_component_name(const struct cr_component *component)
{
    return component ? component->name : NULL;
}

const struct cr_component *cr_catalogue_by_name(const struct cr_catalogue *catalogue, const char *name)
{
    size_t len = name ? strcspn(name, "@") : 0;
    for (size_t i = 0; len && i < cr_catalogue_len(catalogue); i++) {
        const struct cr_component *component = &catalogue->items[i];
        if (strlen(component->name) == len && strncmp(component->name, name, len) == 0)
            return component;
    }
    return NULL;
}

const char *cr_component_version(const char *name)
{
    const char *at = name ? strchr(name, '@') : NULL;
    return at && at[1] ? at + 1 : NULL;
}

/* --- image references: [registry/]path[:tag][@digest]
 *     (https://github.com/distribution/reference, reference.go) --- */

/* Length of "registry/path": what is before the tag and the digest. A port of the registry is no tag. */
static size_t name_length(const char *image)
{
    size_t len = strcspn(image, "@");
    for (size_t i = len; i > 0 && image[i - 1] != '/'; i--)
        if (image[i - 1] == ':')
            return i - 1;
    return len;
}

char *cr_image_tag(const char *image)
{
    size_t end = strcspn(image, "@");
    size_t name = name_length(image);
    return name + 1 < end ? cr_strndup(image + name + 1, end - name - 1) : NULL;
}

/* The part in front of the first slash is a registry when it looks like a host. */
static bool has_registry(const char *name)
{
    size_t host = strcspn(name, "/");
    if (name[host] == '\0')
        return false;
    return memchr(name, '.', host) || memchr(name, ':', host) || (host == 9 && strncmp(name, "localhost", 9) == 0);
}

static const char *without_registry(const char *name)
{
    return has_registry(name) ? name + strcspn(name, "/") + 1 : name;
}

/* Docker Hub's official images have three spellings: nginx, library/nginx, docker.io/library/nginx. */
static const char *familiar(const char *name)
{
    static const char *const implied[] = {"docker.io/", "index.docker.io/", "registry-1.docker.io/"};
    for (size_t i = 0; i < cr_array_len(implied); i++)
        if (cr_starts_with(name, implied[i]))
            name += strlen(implied[i]);
    return cr_starts_with(name, "library/") ? name + strlen("library/") : name;
}

/* Nearly all patterns are plain names, and an image is held against all of them. */
static bool fits(const char *pattern, const char *name, int flags)
{
    return pattern[strcspn(pattern, "*?[\\")] ? fnmatch(pattern, name, flags) == 0 : strcmp(pattern, name) == 0;
}

/* The same at any depth below a mirror: "mirror:5000/hub/envoyproxy/envoy" ends in "envoyproxy/envoy". */
static bool matches_below(const char *pattern, const char *name)
{
    for (const char *p = name; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (fits(pattern, p, 0))
            return true;
    return false;
}

/* An official image is named by one word, which many others also end in ("acme/nginx" is anything): it matches by that
 * word alone, or below "library/" of any mirror. */
static bool matches_official(const char *pattern, const char *name)
{
    if (fits(pattern, familiar(without_registry(name)), FNM_PATHNAME))
        return true;
    const char *library = strstr(name, "/library/");
    return library && fits(pattern, library + strlen("/library/"), FNM_PATHNAME);
}

static bool matches(const char *pattern, const char *name)
{
    const char *wanted = familiar(pattern);
    return strchr(wanted, '/') ? matches_below(wanted, name) : matches_official(wanted, name);
}

/* The more characters a pattern pins, the more it says. */
static size_t weight(const char *pattern)
{
    size_t pinned = 0;
    for (; *pattern; pattern++)
        pinned += *pattern != '*' && *pattern != '?';
    return pinned;
}

/* Whether it can fit a name that ends so: nearly none can, and an image is held against all of them. */
static bool may_fit(const char *pattern, char name_end)
{
    size_t len = strlen(pattern);
    return !len || pattern[len - 1] == name_end || strchr("*?]", pattern[len - 1]);
}

/* A pattern that is laid over the others comes before all of them. */
struct match {
    const struct cr_component *component;
    size_t weight;
};

static void consider(struct match *best, const struct cr_component *component, const char *name, char name_end)
{
    for (size_t k = 0; k < component->images.len; k++) {
        const char *pattern = component->images.items[k];
        if (!may_fit(pattern, name_end))
            continue;
        bool above = best->component && component->layer > best->component->layer;
        bool below = best->component && component->layer < best->component->layer;
        if (!below && (above || weight(pattern) > best->weight) && matches(pattern, name))
            *best = (struct match){.component = component, .weight = weight(pattern)};
    }
}

const struct cr_component *cr_catalogue_by_image(const struct cr_catalogue *catalogue, const char *image)
{
    if (!image || !*image)
        return NULL;
    size_t len = name_length(image);
    cr_autofree char *name = cr_strndup(image, len);
    struct match best = {0};
    for (size_t i = 0; i < cr_catalogue_len(catalogue); i++)
        consider(&best, &catalogue->items[i], name, (char)(len ? name[len - 1] : '\0'));
    return best.component;
}
