/* Values one behind the other in as few bytes as they need, for what a cache keeps by the thousand and reads once in a
 * while. It is read by the same process that wrote it, value by value in the same order; it is no format for
 * others. Pure: any thread, each with values of its own. */
#ifndef CR_BASE_PACKING_H
#define CR_BASE_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/strvec.h"

/* Each appends to out; one with a cap that is reached ends the program. */
void cr_pack_int(struct cr_buf *out, int64_t value);
void cr_pack_bytes(struct cr_buf *out, const void *data, size_t len);
void cr_pack_text(struct cr_buf *out, const char *text); /* NULL stays NULL */
/* Any text; half as long where it is lower-case hexadecimal, as digests are. */
void cr_pack_hex(struct cr_buf *out, const char *text);
void cr_pack_texts(struct cr_buf *out, const struct cr_strvec *texts);
void cr_pack_hexes(struct cr_buf *out, const struct cr_strvec *texts);

/* What was packed, in one block of just the size. */
struct cr_pack {
    size_t len;
    char bytes[];
};
/* A copy; owned, for free(). */
struct cr_pack *cr_pack_keep(const struct cr_buf *packed);

/* What is left to be read. To read what was not written ends the program: memory is broken. */
struct cr_unpacking {
    const char *at;
    const char *end;
};
struct cr_unpacking cr_unpacking_of(const void *data, size_t len);
struct cr_unpacking cr_pack_open(const struct cr_pack *pack); /* NULL: nothing */
bool cr_unpacking_at_end(const struct cr_unpacking *from);
/* For who has read all that was written: to leave something ends the program, too. */
void cr_unpacking_end(const struct cr_unpacking *from);
/* Whether what is left is these bytes. */
bool cr_unpacking_is(const struct cr_unpacking *from, const void *data, size_t len);

int64_t cr_unpack_int(struct cr_unpacking *from);
struct cr_unpacking cr_unpack_bytes(struct cr_unpacking *from); /* borrowed: what cr_pack_bytes took */
char *cr_unpack_text(struct cr_unpacking *from);                /* owned */
/* Into an array that has room for it, as it had before. */
void cr_unpack_hex(struct cr_unpacking *from, char *out, size_t size);
void cr_unpack_short(struct cr_unpacking *from, char *out, size_t size); /* of cr_pack_text, not NULL */
/* Adds to out. */
void cr_unpack_texts(struct cr_unpacking *from, struct cr_strvec *out);
void cr_unpack_hexes(struct cr_unpacking *from, struct cr_strvec *out);

#endif
