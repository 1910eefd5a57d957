/* Answers to "show info" and "show stat": understood as a whole, or an error; no part of one that is understood up to
 * its last line is taken for the whole. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "drain/haproxy_stats.h"

static bool read_stats(const char *text, struct cr_haproxy_stats *out)
{
    const struct cr_strvec none = {0};
    struct cr_error err = {0};
    bool ok = cr_haproxy_stats_read(text, &none, out, &err);
    require(ok == (err.kind == CR_ERR_NONE));
    return ok;
}

static void check_names(const struct cr_haproxy_stats *stats)
{
    require(stats->open <= (uint64_t)1 << 53);
    for (size_t i = 0; i < stats->frontends.len; i++)
        require(!strpbrk(stats->frontends.items[i], "; \r\n#<")); /* it becomes a part of a command */
    for (size_t i = 0; i < stats->running.len; i++)
        require(cr_strvec_has(&stats->frontends, stats->running.items[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats stats = {0};
    CR_CLEANUP(cr_haproxy_stats) struct cr_haproxy_stats part = {0};
    if (!read_stats(text, &stats))
        return 0;
    check_names(&stats);
    char *end = strstr(strstr(text, "\n\n") + 2, "\n\n"); /* the empty line behind the table */
    require(end);
    end[1] = '\0';
    require(!read_stats(text, &part));
    return 0;
}
