#include "pki/pem.h"

#include <limits.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/alloc.h"

struct line {
    const char *text; /* not terminated, without trailing white space */
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool read_line(struct cr_pem_reader *r, struct line *line)
{
    if (r->at == r->end)
        return false;
    const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *stop = newline ? newline : r->end;
    line->text = r->at;
    r->at = newline ? newline + 1 : r->end;
    while (stop > line->text && is_blank(stop[-1]))
        stop--;
    line->len = (size_t)(stop - line->text);
    r->line++;
    return true;
}

static bool starts_with(const struct line *line, const char *prefix)
{
    size_t n = strlen(prefix);
    return line->len >= n && memcmp(line->text, prefix, n) == 0;
}

static bool contains(const struct line *line, const char *part)
{
    return memmem(line->text, line->len, part, strlen(part)) != NULL;
}

/* RFC 7468: printable, hyphens only inside and one at a time. It is shown in errors, so it must not forge lines. */
static bool is_label(const char *label, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (label[i] < 0x20 || label[i] > 0x7E)
            return false;
    return len && label[0] != '-' && label[len - 1] != '-' && !memmem(label, len, "--", 2);
}

/* The label of "-----BEGIN label-----" or the like, of one line and nothing else. */
static bool read_boundary(const struct line *line, const char *prefix, const char **label, size_t *label_len)
{
    size_t n = strlen(prefix);
    if (line->len < n + 5 || !starts_with(line, prefix) || memcmp(line->text + line->len - 5, "-----", 5) != 0)
        return false;
    *label = line->text + n;
    *label_len = line->len - n - 5;
    return is_label(*label, *label_len);
}

/* Outside of blocks almost anything may stand, but no remains of a boundary. */
static bool refuse_outside(const struct cr_pem_reader *r, const struct line *line, struct cr_error *err)
{
    if (contains(line, "-----END"))
        return cr_error_set(err, CR_ERR_INVALID, "line %zu has an END without a BEGIN before it", r->line);
    return cr_error_set(err, CR_ERR_INVALID, "line %zu has a BEGIN that is not a whole line from its first column",
                        r->line);
}

static bool refuse_inside(const struct cr_pem_reader *r, const struct cr_pem_block *b, const struct line *line,
                          struct cr_error *err)
{
    int len = (int)(b->label_len < 40 ? b->label_len : 40);
    if (starts_with(line, "-----END ") && contains(line, "-----BEGIN"))
        return cr_error_set(err, CR_ERR_INVALID,
                            "a new line is missing between block %zu (%.*s) and the next, line %zu", b->number, len,
                            b->label, r->line);
    if (contains(line, "-----BEGIN"))
        return cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is cut off: another begins in line %zu",
                            b->number, len, b->label, b->line, r->line);
    return cr_error_set(err, CR_ERR_INVALID,
                        "block %zu (%.*s, line %zu) has no matching END, but something else in "
                        "line %zu",
                        b->number, len, b->label, b->line, r->line);
}

static bool find_begin(struct cr_pem_reader *r, struct cr_pem_block *b, struct cr_error *err, bool *found)
{
    struct line line;
    *found = false;
    while (!*found && read_line(r, &line)) {
        if (read_boundary(&line, "-----BEGIN ", &b->label, &b->label_len))
            *found = true;
        else if (contains(&line, "-----BEGIN") || contains(&line, "-----END"))
            return refuse_outside(r, &line, err);
    }
    b->number = *found ? ++r->blocks : r->blocks;
    b->line = r->line;
    return true;
}

/* OpenSSL takes an empty line for the end of headers, and what stood before it for headers (PEM_read_bio_ex): a server
 * loads only a block with one empty line, which is the first or ends its headers. */
static bool refuse_empty_line(const struct cr_pem_reader *r, const struct cr_pem_block *b, struct cr_error *err)
{
    return cr_error_set(
        err, CR_ERR_INVALID,
        "block %zu (%.*s, line %zu) has an empty line within its base64, line %zu: servers cannot load it", b->number,
        (int)(b->label_len < 40 ? b->label_len : 40), b->label, b->line, r->line);
}

/* Headers are lines with a colon, and what continues them, up to an empty line (RFC 1421, section 4.4). */
static void note_header(struct cr_pem_block *b, const struct line *line)
{
    b->headers = true;
    if (starts_with(line, "Proc-Type:") && contains(line, "ENCRYPTED"))
        b->encrypted = true;
}

/* Up to the END. The body begins behind the headers. */
static bool find_end(struct cr_pem_reader *r, struct cr_pem_block *b, struct cr_error *err)
{
    struct line line;
    bool in_headers = false;
    b->body = r->at;
    while (read_line(r, &line)) {
        const char *label;
        size_t len;
        if (read_boundary(&line, "-----END ", &label, &len) && len == b->label_len &&
            memcmp(label, b->label, len) == 0) {
            b->body_len = (size_t)(line.text - b->body);
            return true;
        }
        if (contains(&line, "-----"))
            return refuse_inside(r, b, &line, err);
        bool first = line.text == b->body;
        if (memchr(line.text, ':', line.len) && (first || in_headers))
            in_headers = true;
        if (!in_headers && !line.len && !first)
            return refuse_empty_line(r, b, err);
        if (!in_headers)
            continue;
        note_header(b, &line);
        b->body = r->at;
        in_headers = line.len != 0;
    }
    return cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is cut off: the text ends before its END",
                        b->number, (int)(b->label_len < 40 ? b->label_len : 40), b->label, b->line);
}

void cr_pem_begin(struct cr_pem_reader *reader, const char *data, size_t len)
{
    static const char bom[] = "\xEF\xBB\xBF";
    const char *text = len ? data : ""; /* an entry that is absent has no address, and nothing is counted from it */
    size_t skip = len >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;
    *reader = (struct cr_pem_reader){.at = text + skip, .end = text + len};
}

enum cr_pem_step cr_pem_next(struct cr_pem_reader *reader, struct cr_pem_block *block, struct cr_error *err)
{
    bool found;
    *block = (struct cr_pem_block){0};
    if (!find_begin(reader, block, err, &found))
        return CR_PEM_ERROR;
    if (!found)
        return CR_PEM_END;
    return find_end(reader, block, err) ? CR_PEM_BLOCK : CR_PEM_ERROR;
}

bool cr_pem_is(const struct cr_pem_block *block, const char *label)
{
    return strlen(label) == block->label_len && memcmp(label, block->label, block->label_len) == 0;
}

bool cr_pem_label_ends_with(const struct cr_pem_block *block, const char *suffix)
{
    size_t n = strlen(suffix);
    return block->label_len >= n && memcmp(block->label + block->label_len - n, suffix, n) == 0;
}

/* EVP_DecodeUpdate takes '-' for the end of the text. */
static bool decode(EVP_ENCODE_CTX *ctx, const struct cr_pem_block *block, unsigned char *to, size_t *len)
{
    int body = 0;
    int tail = 0;
    EVP_DecodeInit(ctx);
    if (block->body_len > INT_MAX || memchr(block->body, '-', block->body_len))
        return false;
    if (EVP_DecodeUpdate(ctx, to, &body, (const unsigned char *)block->body, (int)block->body_len) < 0 ||
        EVP_DecodeFinal(ctx, to + body, &tail) < 0)
        return false;
    *len = (size_t)body + (size_t)tail;
    return *len > 0;
}

bool cr_pem_decode(const struct cr_pem_block *block, struct cr_buf *der, struct cr_error *err)
{
    size_t room = block->body_len + 4;
    size_t len = 0;
    der->secret = true;
    cr_autofree unsigned char *bytes = cr_malloc(room);
    EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
    bool ok = ctx && decode(ctx, block, bytes, &len) && cr_buf_append(der, bytes, len);
    EVP_ENCODE_CTX_free(ctx);
    explicit_bzero(bytes, room);
    if (ok)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "block %zu (%.*s, line %zu) is corrupt: its body is not base64",
                        block->number, (int)(block->label_len < 40 ? block->label_len : 40), block->label, block->line);
}
