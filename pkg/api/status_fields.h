/* Single fields of a status, as JSON and back: what the kinds have in common. Private to pkg/api. */
#ifndef CR_API_STATUS_FIELDS_H
#define CR_API_STATUS_FIELDS_H

#include "api/status.h"

/* As in the schemas (maxLength). */
enum { CR_STATUS_WORD_MAX = 256, CR_STATUS_SENTENCE_MAX = 1024, CR_STATUS_MESSAGE_MAX = 4096 };

/* --- written; each is left out when there is nothing to write (NULL, "", 0) --- */

void cr_status_set_text(struct cr_json *object, const char *key, const char *text, size_t max);
void cr_status_set_digest(struct cr_json *object, const char *key, const char *digest);
/* With seconds, and with microseconds. */
void cr_status_set_time(struct cr_json *object, const char *key, int64_t wall_ms);
void cr_status_set_time_micro(struct cr_json *object, const char *key, int64_t wall_ms);
void cr_status_add_time_micro(struct cr_json *array, int64_t wall_ms);

/* --- read, leniently --- */

bool cr_status_is_digest(const char *text);
/* Absent is fine and leaves "". False: it is broken. */
bool cr_status_read_digest(const struct cr_json *object, const char *key, char out[CR_SHA256_HEX]) CR_MUST_USE;
/* Absent is fine and leaves 0. */
bool cr_status_read_time(const struct cr_json *object, const char *key, int64_t *wall_ms) CR_MUST_USE;
/* A rotation id, hex. False: absent or broken. */
bool cr_status_read_id(const struct cr_json *object, char *out, size_t size) CR_MUST_USE;
int64_t cr_status_time_or_0(const struct cr_json *object, const char *key);
char *cr_status_text_or_null(const struct cr_json *object, const char *key);

/* --- conditions (metav1.Condition): an array of count, in the order of types --- */

/* count: none of them is of that type. */
size_t cr_conditions_index(const char *const *types, size_t count, const char *type);
/* Borrowed. NULL: it is not set. */
const struct cr_condition *cr_conditions_get(const struct cr_condition *conditions, const char *const *types,
                                             size_t count, const char *type);
/* What a status says in one word is wrong: the reason of the first that is trouble (cr_condition_is_trouble), in the
 * order of the table in status_fields.c; NULL: none is. Borrowed. */
const char *cr_conditions_problem(const struct cr_condition *conditions, const char *const *types, size_t count);
void cr_conditions_set(struct cr_condition *conditions, const char *const *types, size_t count,
                       const struct cr_condition *value);
/* The same in borrowed words. */
struct cr_condition_text {
    const char *type;
    bool status;
    const char *reason;
    const char *message;
    bool unknown;
};
void cr_conditions_update(struct cr_condition *conditions, const char *const *types, size_t count,
                          const struct cr_condition_text *text, int64_t generation, int64_t now_ms);
void cr_conditions_dispose(struct cr_condition *conditions, size_t count);
/* to has been copied byte by byte: its texts become its own. */
void cr_conditions_own(struct cr_condition *to, size_t count);
struct cr_json *cr_conditions_encode(const struct cr_condition *conditions, size_t count);
void cr_conditions_decode(const struct cr_json *array, struct cr_condition *conditions, const char *const *types,
                          size_t count);

#endif
