/* Times and durations that parse print to a text that parses to the same. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"

static void check_time(const char *text)
{
    struct cr_error err = {0};
    int64_t ms = 0;
    int64_t again = 0;
    char out[CR_TIME_TEXT];
    if (!cr_time_parse(text, &ms, &err)) {
        require(err.kind == CR_ERR_INVALID);
        return;
    }
    cr_time_format_micro(ms, out);
    require(cr_time_parse(out, &again, &err) && again == ms);
}

static void check_duration(const char *text)
{
    struct cr_error err = {0};
    int64_t ms = 0;
    int64_t again = 0;
    char out[CR_TIME_TEXT];
    if (!cr_duration_parse(text, &ms, &err)) {
        require(err.kind == CR_ERR_INVALID);
        return;
    }
    cr_duration_format(ms, out);
    require(cr_duration_parse(out, &again, &err) && again == ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    check_time(text);
    check_duration(text);
    return 0;
}
