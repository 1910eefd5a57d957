/* Time zones, from the files of the IANA database: TZif (RFC 9636, versions 1 to 4). Not by the C library: its TZ and
 * localtime() have one zone per process. A zone is immutable; all functions are pure and thread-safe. Times are seconds
 * since 1970-01-01T00:00:00Z without leap seconds, within ±2^55; local times are the same number for what clocks on the
 * wall show. */
#ifndef CR_CODEC_TZIF_H
#define CR_CODEC_TZIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

/* The biggest file of the database has 4 KB. */
enum { CR_TZIF_MAX = 64 * 1024, CR_TZIF_NAME_MAX = 64 };

struct cr_tzif;

/* Owned. Errors: Invalid, with what is wrong with the file. Refused are files that count leap seconds ("right/"), and
 * offsets beyond those that RFC 9636 recommends. */
struct cr_tzif *cr_tzif_parse(const void *data, size_t len, struct cr_error *err) CR_MUST_USE;
/* UTC, for which no file is needed. Owned. */
struct cr_tzif *cr_tzif_new_utc(void);
void cr_tzif_free(struct cr_tzif *zone);
CR_DEFINE_CLEANUP(cr_tzif, struct cr_tzif, cr_tzif_free)

/* Seconds east of UTC. */
int32_t cr_tzif_offset(const struct cr_tzif *zone, int64_t at_s);
/* When the clocks first show this local time or a later one: for a time that comes twice the first of the two, for a
 * time that is left out the change itself. */
int64_t cr_tzif_from_local(const struct cr_tzif *zone, int64_t local_s);

/* Whether it can be the name of a zone, and stays within the folder of them ("Europe/Paris"): the schema's letters,
 * no empty part. Errors: Invalid, with what is allowed. */
bool cr_tzif_name_check(const char *name, struct cr_error *err) CR_MUST_USE;

#endif
