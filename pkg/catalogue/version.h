/* Versions as image tags show them, and ranges of versions. Pure. */
#ifndef CR_CATALOGUE_VERSION_H
#define CR_CATALOGUE_VERSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A question about a version that is not fully known has three answers. */
enum cr_tri { CR_NO, CR_MAYBE, CR_YES };

struct cr_version {
    int part[3];
    int stage; /* alpha 0, beta 1, rc 2, release 3: semver.org, section 11, as far as tags need it */
};

/* What a tag leaves open: "1.27" is any 1.27.x, "v1.36.3" is one version. */
struct cr_version_span {
    struct cr_version low;
    struct cr_version high;
};

/* Tags like "v1.36.3", "1.27.4-alpine", "1.27", "v1.31.0-rc.1", "distroless-v1.31.0". False for what has no order or
 * does not say at least major and minor: "latest", "stable-alpine", "28b1629a", "20240506", "1". */
bool cr_version_from_tag(const char *tag, struct cr_version_span *out);

enum { CR_VERSION_COMPARATORS = 4 };
enum cr_version_operator { CR_VERSION_GE, CR_VERSION_GT, CR_VERSION_LE, CR_VERSION_LT };

/* ">=1.17,<1.23": all must hold. */
struct cr_version_range {
    struct {
        enum cr_version_operator op;
        struct cr_version version;
    } items[CR_VERSION_COMPARATORS];
    size_t len;
};

bool cr_version_range_parse(const char *text, struct cr_version_range *out, struct cr_error *err) CR_MUST_USE;
/* Whether the versions of the span are all, in part or not at all in the range. */
enum cr_tri cr_version_in_range(const struct cr_version_range *range, const struct cr_version_span *span);

#endif
