/* PEM framing (RFC 7468), strict where OpenSSL's readers are not: those take a corrupt block for the end, skip what
 * they do not know and see nothing when a new line is missing between two blocks. Private to pkg/pki. */
#ifndef CR_PKI_PEM_H
#define CR_PKI_PEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

struct cr_pem_reader {
    const char *at;
    const char *end;
    size_t line;   /* the last one read, from 1 */
    size_t blocks; /* that began so far */
};

/* Everything is borrowed from the text. */
struct cr_pem_block {
    const char *label; /* not terminated */
    size_t label_len;
    const char *body; /* base64 and white space */
    size_t body_len;
    size_t number;  /* from 1, blocks of all labels */
    size_t line;    /* of BEGIN */
    bool headers;   /* has RFC 1421 headers (before the body) */
    bool encrypted; /* Proc-Type: 4,ENCRYPTED */
};

enum cr_pem_step { CR_PEM_BLOCK, CR_PEM_END, CR_PEM_ERROR };

void cr_pem_begin(struct cr_pem_reader *reader, const char *data, size_t len);
/* The next block. Text before, between and behind blocks is skipped, as are a byte order mark and the CR of CRLF.
 * Errors (Invalid) name the block and the line, never the content. */
enum cr_pem_step cr_pem_next(struct cr_pem_reader *reader, struct cr_pem_block *block, struct cr_error *err);

bool cr_pem_is(const struct cr_pem_block *block, const char *label);
bool cr_pem_label_ends_with(const struct cr_pem_block *block, const char *suffix);

/* Decodes the body into der, which is made secret. Errors: Invalid. */
bool cr_pem_decode(const struct cr_pem_block *block, struct cr_buf *der, struct cr_error *err) CR_MUST_USE;

#endif
