/* The printer. cJSON's own takes doubles within a relative epsilon for equal and so prints 9007199254740991 as
 * 9.00719925474099e+15, and it leaves unwiped copies of what it printed behind. */
#include "codec/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cJSON.h>

#include "base/alloc.h"
#include "base/buffer.h"

static void append(struct cr_buf *out, const char *data, size_t len)
{
    bool fits = cr_buf_append(out, data, len); /* no cap */
    (void)fits;
}

static void print_escaped(struct cr_buf *out, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: character, letter of its escape */
    for (const char *p = shorts; *p; p += 2) {
        if ((unsigned char)*p == c) {
            append(out, (const char[]){'\\', p[1]}, 2);
            return;
        }
    }
    char text[8];
    (void)snprintf(text, sizeof text, "\\u%04x", c);
    append(out, text, 6);
}

static void print_string(struct cr_buf *out, const char *s)
{
    append(out, "\"", 1);
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
            plain++;
        append(out, s, plain);
        s += plain;
        if (*s)
            print_escaped(out, (unsigned char)*s++);
    }
    append(out, "\"", 1);
}

/* The shortest of the usual two precisions that reads back as the same double. */
static void print_number(struct cr_buf *out, double d)
{
    char text[40];
    if (!isfinite(d)) {
        append(out, "null", 4); /* JSON has no word for it */
        return;
    }
    if (fabs(d) <= (double)CR_JSON_MAX_INT && d == (double)(int64_t)d) {
        (void)snprintf(text, sizeof text, "%lld", (long long)d);
    } else {
        (void)snprintf(text, sizeof text, "%.15g", d);
        if (strtod(text, NULL) != d)
            (void)snprintf(text, sizeof text, "%.17g", d);
    }
    append(out, text, strlen(text));
}

static void print_value(struct cr_buf *out, const cJSON *n);

static void print_children(struct cr_buf *out, const cJSON *n, bool keys)
{
    append(out, keys ? "{" : "[", 1);
    for (const cJSON *c = n->child; c; c = c->next) {
        if (keys) {
            print_string(out, c->string ? c->string : "");
            append(out, ":", 1);
        }
        print_value(out, c);
        if (c->next)
            append(out, ",", 1);
    }
    append(out, keys ? "}" : "]", 1);
}

static void print_value(struct cr_buf *out, const cJSON *n)
{
    switch (n->type & 0xFF) {
    case cJSON_False:
        append(out, "false", 5);
        break;
    case cJSON_True:
        append(out, "true", 4);
        break;
    case cJSON_Number:
        print_number(out, n->valuedouble);
        break;
    case cJSON_String:
        print_string(out, n->valuestring ? n->valuestring : "");
        break;
    case cJSON_Array:
        print_children(out, n, false);
        break;
    case cJSON_Object:
        print_children(out, n, true);
        break;
    default:
        append(out, "null", 4);
        break;
    }
}

char *cr_json_print(const struct cr_json *j)
{
    if (!j)
        return cr_strdup("null");
    struct cr_buf out = {.secret = true};
    print_value(&out, (const cJSON *)(const void *)j);
    return cr_buf_steal(&out);
}
