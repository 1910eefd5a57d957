/* The tag of an image, and behind a NUL byte a range of a catalogue: a tag's versions go from low to high, and a range
 * holds all, some or none of them. */
#include "split.h"

#include "fuzz.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "catalogue/version.h"

static int compare(const struct cr_version *a, const struct cr_version *b)
{
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    return (a->stage > b->stage) - (a->stage < b->stage);
}

/* A range asked of one version has no "maybe". */
static enum cr_tri ask(const struct cr_version_range *range, const struct cr_version *version)
{
    const struct cr_version_span one = {*version, *version};
    enum cr_tri answer = cr_version_in_range(range, &one);
    require(answer != CR_MAYBE);
    return answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct split split = split_of(data, size);
    const struct cr_pem_input first = split_next(&split);
    const struct cr_pem_input second = split_next(&split);
    cr_autofree char *tag = cr_strndup(first.data ? first.data : "", first.len);
    cr_autofree char *text = cr_strndup(second.data ? second.data : "", second.len);
    struct cr_version_span span;
    struct cr_version_range range;
    struct cr_error err = {0};
    bool parsed = cr_version_range_parse(text, &range, &err);
    require(parsed ? range.len <= CR_VERSION_COMPARATORS : err.kind == CR_ERR_INVALID && err.text[0]);
    if (!cr_version_from_tag(tag, &span))
        return 0;
    require(compare(&span.low, &span.high) <= 0);
    if (!parsed)
        return 0;
    enum cr_tri answer = cr_version_in_range(&range, &span);
    enum cr_tri low = ask(&range, &span.low);
    enum cr_tri high = ask(&range, &span.high);
    require(answer == CR_MAYBE || (low == answer && high == answer));
    return 0;
}
