/* A page of metrics and which one is wanted, divided by a NUL byte: summed within bounds, or refused. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "drain/metric_text.h"

static void check_sum(const char *page, size_t len, const char *metric)
{
    uint64_t sum = 7;
    struct cr_error err = {0};
    bool ok = cr_metric_sum(page, len, metric, &sum, &err);
    require(ok == (err.kind == CR_ERR_NONE));
    require(ok ? sum <= (uint64_t)1 << 53 && cr_metric_check(metric, NULL) : sum == 7);
    if (ok && page[len - 2] != '\n')
        require(!cr_metric_sum(page, len - 1, metric, &sum, NULL)); /* its last line is not ended */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    if (!end)
        return 0;
    size_t len = (size_t)(end - data);
    size_t rest = size - len - 1;
    cr_autofree char *metric = cr_strndup((const char *)data, len);
    cr_autofree char *page = cr_malloc(rest ? rest : 1); /* just that: reading on is seen */
    memcpy(page, end + 1, rest);
    check_sum(page, rest, metric);
    return 0;
}
