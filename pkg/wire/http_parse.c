#include "wire/http_parse.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/strings.h"
#include "base/text.h"
#include "wire/http_field.h"

enum { SHOWN = 60, OK = 200, SWITCHING_PROTOCOLS = 101, NO_CONTENT = 204, NOT_MODIFIED = 304 };

void cr_http_parse_init(struct cr_http_parse *parse, const char *method, size_t max_body)
{
    *parse = (struct cr_http_parse){
        .to_head = cr_streq(method, "HEAD"), .max_body = max_body, .line = CR_BUF_INIT(CR_HTTP_HEAD_MAX)};
}

void cr_http_parse_dispose(struct cr_http_parse *parse)
{
    cr_buf_dispose(&parse->line);
}

bool cr_http_parse_is_done(const struct cr_http_parse *parse)
{
    return parse->part == CR_HTTP_DONE;
}

static bool refuse_length(const struct cr_http_parse *parse, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "its body is longer than %zu bytes", parse->max_body);
}

/* --- the head --- */

/* How long the body is: RFC 9112, section 6.3. What two readers may take for two lengths is refused. */
static bool begin_body(struct cr_http_parse *parse, struct cr_error *err)
{
    bool none = parse->to_head || parse->code == NO_CONTENT || parse->code == NOT_MODIFIED;
    if (parse->chunked && (parse->has_length || parse->is_1_0))
        return cr_error_set(err, CR_ERR_INVALID, "its body comes in chunks, and %s",
                            parse->has_length ? "it says a Content-Length as well" : "it speaks HTTP/1.0");
    if (!none && parse->has_length && parse->length > parse->max_body)
        return refuse_length(parse, err);
    parse->status = parse->code;
    parse->left = none || !parse->has_length ? 0 : (size_t)parse->length;
    if (none || (parse->has_length && !parse->left))
        parse->part = CR_HTTP_DONE;
    else if (parse->chunked)
        parse->part = CR_HTTP_CHUNK_SIZE;
    else
        parse->part = parse->has_length ? CR_HTTP_BODY_OF_LENGTH : CR_HTTP_BODY_UNTIL_END;
    return true;
}

static bool end_head(struct cr_http_parse *parse, struct cr_error *err)
{
    if (parse->code == SWITCHING_PROTOCOLS)
        return cr_error_set(err, CR_ERR_INVALID, "it wants to speak another protocol, which nobody asked for");
    if (parse->code >= OK)
        return begin_body(parse, err);
    parse->part = CR_HTTP_STATUS_LINE; /* an interim answer */
    return true;
}

static bool take_status_line(struct cr_http_parse *parse, struct cr_error *err)
{
    parse->part = CR_HTTP_FIELD;
    parse->has_fields = parse->last_is_framing = parse->chunked = parse->has_length = false;
    return cr_http_status_line(cr_buf_text(&parse->line), parse->line.len, &parse->code, &parse->is_1_0, err);
}

static bool take_length(struct cr_http_parse *parse, const char *value, struct cr_error *err)
{
    uint64_t length = 0;
    if (!cr_http_length(value, &length, err))
        return false;
    if (parse->has_length && parse->length != length)
        return cr_error_set(err, CR_ERR_INVALID, "it says two different Content-Lengths");
    parse->has_length = true;
    parse->length = length;
    return true;
}

static bool take_coding(struct cr_http_parse *parse, const char *value, struct cr_error *err)
{
    if (parse->chunked || strcasecmp(value, "chunked") != 0) {
        cr_autofree char *shown = cr_text_clip(value, SHOWN);
        return cr_error_set(err, CR_ERR_INVALID, "its Transfer-Encoding is not chunked alone: '%s'", shown);
    }
    parse->chunked = true;
    return true;
}

static bool is_named(const struct cr_buf *line, size_t name_len, const char *name)
{
    return name_len == strlen(name) && strncasecmp(line->data, name, name_len) == 0;
}

/* A line that begins with white space goes on with the field before it (RFC 9112, section 5.2). */
static bool take_folded(struct cr_http_parse *parse, struct cr_error *err)
{
    if (parse->has_fields && !parse->last_is_framing)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "a line of its head begins with white space");
}

static bool take_field(struct cr_http_parse *parse, struct cr_error *err)
{
    size_t name_len = 0;
    const char *value = NULL;
    struct cr_buf *line = &parse->line;
    if (line->data[0] == ' ' || line->data[0] == '\t')
        return take_folded(parse, err);
    if (!cr_http_field(line->data, line->len, &name_len, &value, err))
        return false;
    bool is_length = is_named(line, name_len, "Content-Length");
    bool is_coding = is_named(line, name_len, "Transfer-Encoding");
    parse->has_fields = true;
    parse->last_is_framing = is_length || is_coding;
    if (parse->part == CR_HTTP_TRAILER) /* how long it was is settled */
        return true;
    if (is_length)
        return take_length(parse, value, err);
    return !is_coding || take_coding(parse, value, err);
}

/* --- chunks --- */

static bool take_chunk_size(struct cr_http_parse *parse, struct cr_error *err)
{
    uint64_t size = 0;
    const struct cr_buf *line = &parse->line;
    if (!cr_http_chunk_size(cr_buf_text(line), line->len, &size, err))
        return false;
    if (size > parse->max_body - parse->body_len)
        return refuse_length(parse, err);
    parse->left = (size_t)size;
    parse->has_fields = false;
    parse->part = parse->left ? CR_HTTP_CHUNK : CR_HTTP_TRAILER;
    return true;
}

static bool take_chunk_end(struct cr_http_parse *parse, struct cr_error *err)
{
    parse->part = CR_HTTP_CHUNK_SIZE;
    return !parse->line.len || cr_error_set(err, CR_ERR_INVALID, "a chunk of its body is longer than it says");
}

/* --- lines --- */

static bool take_line(struct cr_http_parse *parse, struct cr_error *err)
{
    switch (parse->part) {
    case CR_HTTP_STATUS_LINE:
        return take_status_line(parse, err);
    case CR_HTTP_FIELD:
        return parse->line.len ? take_field(parse, err) : end_head(parse, err);
    case CR_HTTP_CHUNK_SIZE:
        return take_chunk_size(parse, err);
    case CR_HTTP_CHUNK_END:
        return take_chunk_end(parse, err);
    default:
        if (parse->line.len)
            return take_field(parse, err);
        parse->part = CR_HTTP_DONE;
        return true;
    }
}

/* What cannot become right any more is refused at once: a peer with another protocol may now wait for us. */
static bool check_begun_line(const struct cr_http_parse *parse, struct cr_error *err)
{
    const struct cr_buf *line = &parse->line;
    if (parse->part == CR_HTTP_STATUS_LINE && !cr_http_may_be_status_line(cr_buf_text(line), line->len)) {
        cr_autofree char *shown = cr_text_clip(cr_buf_text(line), SHOWN);
        return cr_error_set(err, CR_ERR_INVALID, "it answers with something that is not HTTP/1: '%s'", shown);
    }
    if (parse->part == CR_HTTP_CHUNK_END && line->len && line->data[0] != '\r')
        return cr_error_set(err, CR_ERR_INVALID, "a chunk of its body is longer than it says");
    return true;
}

static bool is_of_chunks(const struct cr_http_parse *parse)
{
    return parse->part == CR_HTTP_CHUNK_SIZE || parse->part == CR_HTTP_CHUNK_END;
}

/* A line feed alone ends a line of the head (RFC 9112, section 2.2), but none between chunks (section 7.1). */
static bool end_line(struct cr_http_parse *parse, struct cr_error *err)
{
    struct cr_buf *line = &parse->line;
    bool has_cr = line->len && line->data[line->len - 1] == '\r';
    if (has_cr)
        line->data[--line->len] = '\0';
    else if (is_of_chunks(parse))
        return cr_error_set(err, CR_ERR_INVALID, "a line between the chunks of its body does not end as it must");
    bool ok = take_line(parse, err);
    cr_buf_reset(line);
    return ok;
}

/* *taken: bytes that are used up. */
static bool read_line(struct cr_http_parse *parse, const char *data, size_t len, size_t *taken, struct cr_error *err)
{
    const char *feed = memchr(data, '\n', len);
    size_t part = feed ? (size_t)(feed - data) : len;
    *taken = feed ? part + 1 : len;
    parse->head_len += is_of_chunks(parse) ? 0 : *taken;
    if (parse->head_len > CR_HTTP_HEAD_MAX || !cr_buf_append(&parse->line, data, part))
        return cr_error_set(err, CR_ERR_INVALID, "its head is longer than %d bytes", CR_HTTP_HEAD_MAX);
    return check_begun_line(parse, err) && (!feed || end_line(parse, err));
}

/* --- the body --- */

static bool read_body(struct cr_http_parse *parse, const char *data, size_t len, size_t *taken, struct cr_buf *body,
                      struct cr_error *err)
{
    bool is_open = parse->part == CR_HTTP_BODY_UNTIL_END;
    *taken = is_open || len < parse->left ? len : parse->left;
    if (*taken > parse->max_body - parse->body_len || !cr_buf_append(body, data, *taken))
        return refuse_length(parse, err);
    parse->body_len += *taken;
    if (is_open)
        return true;
    parse->left -= *taken;
    if (!parse->left)
        parse->part = parse->part == CR_HTTP_CHUNK ? CR_HTTP_CHUNK_END : CR_HTTP_DONE;
    return true;
}

/* --- the whole --- */

static bool is_body(const struct cr_http_parse *parse)
{
    return parse->part == CR_HTTP_BODY_OF_LENGTH || parse->part == CR_HTTP_BODY_UNTIL_END ||
           parse->part == CR_HTTP_CHUNK;
}

bool cr_http_parse_feed(struct cr_http_parse *parse, const char *data, size_t len, struct cr_buf *body,
                        struct cr_error *err)
{
    while (len && parse->part != CR_HTTP_DONE) {
        size_t taken = 0;
        bool ok =
            is_body(parse) ? read_body(parse, data, len, &taken, body, err) : read_line(parse, data, len, &taken, err);
        if (!ok)
            return false;
        data += taken;
        len -= taken;
    }
    return true;
}

bool cr_http_parse_end(struct cr_http_parse *parse, bool broken, struct cr_error *err)
{
    if (parse->part == CR_HTTP_BODY_UNTIL_END && !broken)
        parse->part = CR_HTTP_DONE;
    if (parse->part == CR_HTTP_DONE)
        return true;
    return cr_error_set(err, CR_ERR_TRANSIENT,
                        parse->head_len ? "its answer breaks off" : "it hung up without an answer");
}
