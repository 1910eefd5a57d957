#include "kube/watch_head.h"

#include <stdbool.h>
#include <string.h>

#include "base/strings.h"

struct cursor {
    const char *at;
    const char *end;
    enum cr_watch_head_found stop; /* why a step was not done */
};

/* A string without escapes, in the frame's text. */
struct slice {
    const char *text;
    size_t len;
};

static bool stop(struct cursor *c, enum cr_watch_head_found why)
{
    c->stop = why;
    return false;
}

/* Whether there is another byte to look at. */
static bool has_byte(struct cursor *c)
{
    return c->at < c->end || stop(c, CR_WATCH_HEAD_MORE);
}

static bool expect(struct cursor *c, const char *text)
{
    for (; *text; text++, c->at++) {
        if (!has_byte(c))
            return false;
        if (*c->at != *text)
            return stop(c, CR_WATCH_HEAD_OTHER);
    }
    return true;
}

static bool read_plain_string(struct cursor *c, struct slice *string)
{
    if (!expect(c, "\""))
        return false;
    string->text = c->at;
    for (; has_byte(c); c->at++) {
        if (*c->at == '"') {
            string->len = (size_t)(c->at++ - string->text);
            return true;
        }
        if (*c->at == '\\' || (unsigned char)*c->at < 0x20)
            return stop(c, CR_WATCH_HEAD_OTHER);
    }
    return false;
}

/* Whatever it holds; no rule of UTF-8 or of escapes but that one that escapes a quote hides it. */
static bool skip_string(struct cursor *c)
{
    for (c->at++; has_byte(c); c->at++) {
        if (*c->at == '"') {
            c->at++;
            return true;
        }
        if (*c->at == '\\') {
            c->at++;
            if (!has_byte(c))
                return false;
        }
    }
    return false;
}

/* In JSON, brackets outside of strings come in pairs: counting them finds the end. A value ends before the comma or the
 * bracket that follows. */
static bool skip_value(struct cursor *c)
{
    size_t depth = 0;
    while (has_byte(c)) {
        char byte = *c->at;
        if (depth == 0 && (byte == ',' || byte == '}' || byte == ']'))
            return true;
        if (byte == '"') {
            if (!skip_string(c))
                return false;
            continue;
        }
        if (byte == '{' || byte == '[')
            depth++;
        if (byte == '}' || byte == ']')
            depth--;
        c->at++;
    }
    return false;
}

static bool is(const struct slice *string, const char *text)
{
    return string->len == strlen(text) && memcmp(string->text, text, string->len) == 0;
}

/* What the object is called. The first of two members with the same key counts, as for the parser. */
struct found {
    bool deleted;
    struct slice ns;
    struct slice name;
    struct slice resource_version;
};

static bool has_all(const struct found *found)
{
    return found->ns.text && found->name.text && found->resource_version.text;
}

static struct slice *wanted_member(struct found *found, const struct slice *key)
{
    struct slice *slot = is(key, "name")              ? &found->name
                         : is(key, "namespace")       ? &found->ns
                         : is(key, "resourceVersion") ? &found->resource_version
                                                      : NULL;
    return slot && !slot->text ? slot : NULL;
}

static bool read_key(struct cursor *c, struct slice *key)
{
    return read_plain_string(c, key) && expect(c, ":");
}

/* True before a comma, which is passed; false also at the end of the object; then *ended is true. */
static bool another_member(struct cursor *c, bool *ended)
{
    if (!has_byte(c))
        return false;
    if (*c->at == ',') {
        c->at++;
        return true;
    }
    if (*c->at != '}')
        return stop(c, CR_WATCH_HEAD_OTHER);
    c->at++;
    *ended = true;
    return false;
}

/* After its bracket. True once all is found, or at the end of it. */
static bool read_metadata(struct cursor *c, struct found *found)
{
    bool ended = false;
    do {
        struct slice key;
        if (!read_key(c, &key))
            return false;
        struct slice *member = wanted_member(found, &key);
        if (!(member ? read_plain_string(c, member) : skip_value(c)))
            return false;
        if (has_all(found))
            return true;
    } while (another_member(c, &ended));
    return ended;
}

/* After its bracket: what comes before metadata is passed over. */
static bool read_object(struct cursor *c, struct found *found)
{
    bool ended = false;
    do {
        struct slice key;
        if (!read_key(c, &key))
            return false;
        if (is(&key, "metadata"))
            return expect(c, "{") && read_metadata(c, found);
        if (!skip_value(c))
            return false;
    } while (another_member(c, &ended));
    return ended ? stop(c, CR_WATCH_HEAD_OTHER) : false;
}

static bool is_of_an_object(const struct slice *type)
{
    return is(type, "ADDED") || is(type, "MODIFIED") || is(type, "DELETED");
}

static bool read_envelope(struct cursor *c, struct found *found)
{
    struct slice type;
    if (!expect(c, "{\"type\":") || !read_plain_string(c, &type))
        return false;
    if (!is_of_an_object(&type))
        return stop(c, CR_WATCH_HEAD_OTHER);
    found->deleted = is(&type, "DELETED");
    return expect(c, ",\"object\":{") && read_object(c, found);
}

static bool copy(const struct slice *from, char *to, size_t size)
{
    if (from->len >= size)
        return false;
    if (from->len)
        memcpy(to, from->text, from->len);
    to[from->len] = '\0';
    return true;
}

static bool fill_head(const struct found *found, struct cr_watch_head *head)
{
    head->deleted = found->deleted;
    return found->name.len && found->resource_version.len && copy(&found->ns, head->ns, sizeof head->ns) &&
           copy(&found->name, head->name, sizeof head->name) &&
           copy(&found->resource_version, head->resource_version, sizeof head->resource_version);
}

enum cr_watch_head_found cr_watch_head_read(const char *text, size_t len, struct cr_watch_head *head)
{
    struct cursor c = {.at = text, .end = text + len};
    struct found found = {0};
    if (!read_envelope(&c, &found))
        return c.stop;
    return fill_head(&found, head) ? CR_WATCH_HEAD_OBJECT : CR_WATCH_HEAD_OTHER;
}
