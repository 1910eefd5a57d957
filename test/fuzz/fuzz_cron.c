/* Whatever the schedule: it is refused with a reason, or there is a day on which it comes. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "codec/cron.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    struct cr_error err = {0};
    struct cr_cron cron;
    if (!cr_cron_parse(text, &cron, &err)) {
        require(err.kind == CR_ERR_INVALID && err.text[0]);
        return 0;
    }
    require(cr_cron_next_minute(&cron, 0) >= 0);
    for (int64_t day = 20000; day < 20000 + 41 * 366; day++)
        if (cr_cron_on_day(&cron, day))
            return 0;
    require(false);
    return 0;
}
