/* The grammar of JSON (RFC 8259), checked before cJSON sees a text: cJSON 1.7.15 takes truncated numbers ("1e"),
 * leading zeros, control characters and invalid UTF-8 in strings, and nests by recursion. Private to pkg/codec. */
#ifndef CR_CODEC_JSON_SCAN_H
#define CR_CODEC_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/json.h"

/* Deeper than any Kubernetes object that this project reads (managedFields of a pod: 15 levels). */
enum { CR_JSON_MAX_DEPTH = 100 };

struct cr_json_scan {
    const char *problem; /* static text; NULL when the text is one JSON value */
    size_t offset;       /* of the problem */
    size_t nul_escapes;  /* how many \u0000 the strings have */
    size_t values;       /* how many it has, members and elements of all depths included */
};

/* True when the whole of data is exactly one JSON value, white space around it apart. */
bool cr_json_scan(const char *data, size_t len, struct cr_json_scan *result);
/* In json.c: the tree of a text that was scanned, or of one with nulls where it has other values. Owned. */
struct cr_json *cr_json_parse_scanned(const char *data, size_t len, const struct cr_json_scan *scan,
                                      struct cr_error *err);

#endif
