/* JSON values. The only wrapper around cJSON: no other layer includes it. A Kubernetes object stays such a value;
 * typed views read the few fields they use. Values are not thread-safe to change; unchanged, any number of threads
 * may read one.
 *
 * Integers: cJSON keeps doubles, exact up to CR_JSON_MAX_INT. Kubernetes' resourceVersion is a string for that reason.
 * Every function takes NULL for a value: readers answer as for an absent one, builders do nothing (and free what they
 * were to take). */
#ifndef CR_CODEC_JSON_H
#define CR_CODEC_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct cr_json; /* opaque */

/* 2^53: beyond it a double skips integers (RFC 8259, section 6). */
#define CR_JSON_MAX_INT INT64_C(9007199254740992)

/* How many values (members, elements, and the whole) a text may become. A value takes up to CR_JSON_VALUE_BYTES of
 * memory, beside the bytes of its key and of its string, so two bytes of text ("0,") may take 144: a caller that parses
 * what others have written says how many values the text may have. */
enum {
    CR_JSON_VALUE_BYTES = 144,       /* a cJSON of 64 bytes, a short key and a short string, as malloc rounds them */
    CR_JSON_VALUES_MAX = 100 * 1000, /* of a text where the reader gives no other limit: 14 MB */
};
struct cr_json_budget {
    size_t values; /* how many may be made; those that were made are taken off. Not used up by what is refused */
    bool exceeded; /* set when a text was refused for it alone: JSON it is */
};

/* The whole of data must be one value of RFC 8259 (white space around it apart) at most 100 levels deep, and have at
 * most CR_JSON_VALUES_MAX values, which are counted before there is memory for any; the grammar is checked here, since
 * cJSON alone takes prefixes and truncated numbers. Invalid UTF-8 and lone surrogates are refused: an API server sends
 * none, and what is read may be written back. An escaped NUL becomes U+FFFD, since C strings end there. The first of
 * two values with the same key is read. data need not end in NUL.
 * Errors: Invalid, with the byte, or the most values that there may be, and never the text. The result is owned by the
 * caller. */
struct cr_json *cr_json_parse(const char *data, size_t len, struct cr_error *err) CR_MUST_USE;
/* The same within a budget. */
struct cr_json *cr_json_parse_within(const char *data, size_t len, struct cr_json_budget *budget,
                                     struct cr_error *err) CR_MUST_USE;
/* The same, but the value of the member at path (keys, NULL behind the last, at most 8) stays text, for what is big and
 * read once: see cr_json_text. When there is no such member, or a key on the way to it is written with an escape, all
 * is parsed. */
struct cr_json *cr_json_parse_apart(const char *data, size_t len, const char *const *path,
                                    struct cr_error *err) CR_MUST_USE;
/* All at once; each may be NULL, and neither part may lie within the other. */
struct cr_json_parts {
    const char *const *apart;      /* as above */
    const char *const *without;    /* left out, as if it were not there: no memory for what is not read */
    struct cr_json_budget *budget; /* of the tree: neither part counts more than one. NULL: CR_JSON_VALUES_MAX */
};
struct cr_json *cr_json_parse_parts(const char *data, size_t len, const struct cr_json_parts *parts,
                                    struct cr_error *err) CR_MUST_USE;
void cr_json_free(struct cr_json *j);
CR_DEFINE_CLEANUP(cr_json, struct cr_json, cr_json_free)
/* Wipes every string below j before freeing: for objects that carry keys. */
void cr_json_free_secret(struct cr_json *j);
CR_DEFINE_CLEANUP(cr_json_secret, struct cr_json, cr_json_free_secret)

struct cr_json *cr_json_new_object(void);
struct cr_json *cr_json_new_array(void);
struct cr_json *cr_json_new_string(const char *s); /* valid UTF-8; NULL: "" */
struct cr_json *cr_json_new_int(int64_t n);
struct cr_json *cr_json_new_double(double d); /* printed as null when not finite */
struct cr_json *cr_json_new_bool(bool b);
struct cr_json *cr_json_new_null(void);
struct cr_json *cr_json_copy(const struct cr_json *j);

/* Owned compact text, free() it; the only copy of what it holds, so for secrets wiping it is enough. Keys keep their
 * order; integers are exact up to CR_JSON_MAX_INT. "null" for NULL. */
char *cr_json_print(const struct cr_json *j);
/* The value of a text that cr_json_print has made, which need not be checked again. Owned. */
struct cr_json *cr_json_parse_printed(const char *text, size_t len) CR_MUST_USE;

/* --- reading; every reader takes NULL and answers as for an absent value --- */

/* Borrowed member, case-sensitive; NULL when j is no object or has none. */
const struct cr_json *cr_json_get(const struct cr_json *j, const char *key);
/* Borrowed, by keys: cr_json_at(pod, "metadata", "labels"). At most 8 keys. */
#define cr_json_at(j, ...) cr_json_at_keys((j), (const char *const[]){__VA_ARGS__, NULL})
const struct cr_json *cr_json_at_keys(const struct cr_json *j, const char *const *keys);

/* Borrowed text, NULL when absent or no string. */
const char *cr_json_string(const struct cr_json *j);
#define cr_json_string_at(j, ...) cr_json_string(cr_json_at((j), __VA_ARGS__))
/* The fallback when absent, no number, not an integer or beyond CR_JSON_MAX_INT. */
int64_t cr_json_int(const struct cr_json *j, int64_t fallback);
#define cr_json_int_at(j, fallback, ...) cr_json_int(cr_json_at((j), __VA_ARGS__), (fallback))
bool cr_json_bool(const struct cr_json *j, bool fallback);
#define cr_json_bool_at(j, fallback, ...) cr_json_bool(cr_json_at((j), __VA_ARGS__), (fallback))

/* The text of a value that was left as such, which is JSON; NULL for all others, and it is none of the kinds below. It
 * is borrowed from what was parsed and goes with it. Printed, such a value is a null; it must be neither copied nor
 * compared. */
const char *cr_json_text(const struct cr_json *j, size_t *len);

bool cr_json_is_object(const struct cr_json *j);
bool cr_json_is_array(const struct cr_json *j);
bool cr_json_is_string(const struct cr_json *j);
bool cr_json_is_number(const struct cr_json *j);
bool cr_json_is_bool(const struct cr_json *j);
bool cr_json_is_null(const struct cr_json *j); /* a JSON null that is there */

/* Children of an array or object. for (const struct cr_json *c = cr_json_first(j); c; c = cr_json_next(c)) */
const struct cr_json *cr_json_first(const struct cr_json *j);
const struct cr_json *cr_json_next(const struct cr_json *child);
/* The member's key; NULL for array elements. */
const char *cr_json_key(const struct cr_json *child);
size_t cr_json_len(const struct cr_json *j);

/* Same value: objects regardless of the order of keys. */
bool cr_json_equal(const struct cr_json *a, const struct cr_json *b);

/* --- building; each takes the value, replaces a member of that key, and returns it borrowed --- */

struct cr_json *cr_json_set(struct cr_json *object, const char *key, struct cr_json *value);
void cr_json_set_string(struct cr_json *object, const char *key, const char *value); /* NULL value: nothing */
void cr_json_set_int(struct cr_json *object, const char *key, int64_t value);
void cr_json_set_bool(struct cr_json *object, const char *key, bool value);
/* The member object of that key, created when missing. Borrowed. */
struct cr_json *cr_json_object_in(struct cr_json *object, const char *key);
struct cr_json *cr_json_array_in(struct cr_json *object, const char *key);
struct cr_json *cr_json_add(struct cr_json *array, struct cr_json *value);
void cr_json_add_string(struct cr_json *array, const char *value);
void cr_json_remove(struct cr_json *object, const char *key);
/* Removes the member, or the first child of an array or object, and hands it on: owned; NULL when there is none. For
 * those who keep a part of a big value without copying it. */
struct cr_json *cr_json_take(struct cr_json *object, const char *key);
struct cr_json *cr_json_take_first(struct cr_json *j);
/* Borrowed and changeable; for projections that own the whole value. */
struct cr_json *cr_json_edit(struct cr_json *object, const char *key);

#endif
