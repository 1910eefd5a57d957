/* The lines of a head, one by one (RFC 9112, sections 4, 5 and 7.1). Pure. */
#ifndef CR_WIRE_HTTP_FIELD_H
#define CR_WIRE_HTTP_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Lines are without their end, NUL-terminated, of len bytes: a NUL within them is refused. Errors: Invalid. */

/* "HTTP/1.1 200 OK". */
bool cr_http_status_line(const char *line, size_t len, int *status, bool *is_1_0, struct cr_error *err) CR_MUST_USE;
/* Whether what has come so far can become one: so that no time is spent waiting for a peer with another protocol. */
bool cr_http_may_be_status_line(const char *line, size_t len);
/* "Name: value"; *name_len bytes of the line are the name, *value what is behind the colon, white space around it
 * cut off in place. */
bool cr_http_field(char *line, size_t len, size_t *name_len, const char **value, struct cr_error *err) CR_MUST_USE;
/* The value of Content-Length; a list of the same number is that number (RFC 9112, section 6.3, item 5). */
bool cr_http_length(const char *value, uint64_t *out, struct cr_error *err) CR_MUST_USE;
/* The line before a chunk: a hexadecimal number, and extensions that mean nothing here. */
bool cr_http_chunk_size(const char *line, size_t len, uint64_t *out, struct cr_error *err) CR_MUST_USE;
/* Whether a list of options, as Connection has it (RFC 9110, section 7.6.1), has that one, in any case. */
bool cr_http_has_option(const char *list, const char *option);
/* A token (RFC 9110, section 5.6.2), as methods and the names of fields are. */
bool cr_http_is_token(const char *text, size_t len);

#endif
