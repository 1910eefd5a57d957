#include "drain/url.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "wire/address.h"

static const char http[] = "http://";
static const char http_unix[] = "http+unix://";

static bool refuse(const char *text, const char *why, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID,
                        "'%s' %s; allowed are http://IP:PORT/PATH and http+unix:///SOCKET:/PATH, as "
                        "http://127.0.0.1:8080/drain and http+unix:///run/app.sock:/drain",
                        text, why);
}

/* What goes on the wire as it is: RFC 9112, section 3.2, knows no fragment, and a blank would end the target. */
static bool is_sendable(const char *text)
{
    for (; *text; text++) {
        if (!isgraph((unsigned char)*text) || *text == '#')
            return false;
    }
    return true;
}

/* --- parts --- */

static int hex_value(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* In place; false: a '%' without two digits, or a NUL. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        int value = (unsigned char)*from;
        if (*from == '%') {
            int high = hex_value(from[1]);
            int low = high < 0 ? -1 : hex_value(from[2]);
            if (low < 0 || (high == 0 && low == 0))
                return false;
            value = high * 16 + low;
            from += 2;
        }
        *to++ = (char)value;
    }
    *to = '\0';
    return true;
}

/* Behind "http+unix://": a path that ends at ":/", or one that is encoded and ends at "/". */
static bool split_unix(const char *rest, struct cr_drain_url *out)
{
    const char *end = *rest == '/' ? strstr(rest, ":/") : strchr(rest, '/');
    size_t len = end ? (size_t)(end - rest) : strlen(rest);
    out->address = cr_strndup(rest, len);
    out->target = cr_strdup(!end ? "/" : *rest == '/' ? end + 1 : end);
    return (*rest == '/' || decode(out->address)) && out->address[0] == '/';
}

/* Behind "http://". */
static bool split_http(const char *rest, struct cr_drain_url *out)
{
    size_t len = strcspn(rest, "/?");
    const char *colon = memrchr(rest, ':', len);
    const char *bracket = memrchr(rest, ']', len);
    bool has_port = colon && (!bracket || colon > bracket);
    out->address = cr_asprintf("%.*s%s", (int)len, rest, has_port ? "" : ":80");
    out->target = cr_asprintf("%s%s", rest[len] == '/' ? "" : "/", rest + len);
    return len && colon != rest;
}

bool cr_drain_url_parse(const char *text, struct cr_drain_url *out, struct cr_error *err)
{
    CR_CLEANUP(cr_drain_url) struct cr_drain_url url = {0};
    struct cr_address where;
    *out = (struct cr_drain_url){0};
    if (cr_starts_with(text, "https://"))
        return refuse(text,
                      "needs TLS, which this program has not, so that it runs in any container: let the page be "
                      "served on loopback or a Unix socket, too",
                      err);
    if (!is_sendable(text))
        return refuse(text, "has blanks, a fragment or characters that no URL has", err);
    if (cr_starts_with(text, http_unix)) {
        if (!split_unix(text + strlen(http_unix), &url))
            return refuse(text, "has no absolute path of a socket", err);
    } else if (cr_starts_with(text, http)) {
        if (!split_http(text + strlen(http), &url))
            return refuse(text, "has no address", err);
    } else {
        return refuse(text, "is no URL of a kind that is known", err);
    }
    if (!cr_address_parse(url.address, &where, err))
        return cr_error_wrap(err, "%s", text);
    *out = url;
    url = (struct cr_drain_url){0};
    return true;
}

void cr_drain_url_dispose(struct cr_drain_url *url)
{
    free(url->address);
    free(url->target);
    *url = (struct cr_drain_url){0};
}
