/* Walks over JSON that stays text, without a tree of it: only texts that cr_json_parse_apart has checked. */
#ifndef CR_CODEC_JSON_TEXT_H
#define CR_CODEC_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/json.h"

/* A part of the text; borrowed, no C string. */
struct cr_json_slice {
    const char *text;
    size_t len;
};

/* The members of an object. for (…; cr_json_members_next(&members, &key, &value);) */
struct cr_json_members {
    const char *at;
    const char *end;
};
/* None if the text is no object. */
struct cr_json_members cr_json_members_of(const char *text, size_t len);
/* The key without its quotes, the value with them, both as they are written: an escape stands there. */
bool cr_json_members_next(struct cr_json_members *members, struct cr_json_slice *key, struct cr_json_slice *value);
/* The value of the first member of that key. False: there is none, or a key in front of it is written with an escape.
 */
bool cr_json_members_find(const struct cr_json_slice *object, const char *name, struct cr_json_slice *value);
/* The elements of an array, of which members is the walk; of what is no array: none. */
struct cr_json_members cr_json_elements_of(const char *text, size_t len);
bool cr_json_elements_next(struct cr_json_members *elements, struct cr_json_slice *value);
/* Whether it is the key, or the string without its quotes, as it stands. */
bool cr_json_slice_is_plain(const struct cr_json_slice *slice);

/* A value that stays text; see cr_json_text. Owned; what it says is borrowed. */
struct cr_json *cr_json_new_text(const char *text, size_t len);

#endif
