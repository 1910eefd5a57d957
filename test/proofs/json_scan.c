/* Any text is found to be JSON or not, without a step beyond it. */
#include "codec/json_scan.h"

#include "proof.h"

double nondet_double(void);

/* Reads all of the number. */
double strtod(const char *text, char **end)
{
    require(!end);
    while (*text)
        text++;
    return nondet_double();
}

/* CBMC has no model of it. */
int __builtin_isfinite(double value)
{
    return __CPROVER_isfinited(value);
}

static void scan(const char *data, size_t len)
{
    struct cr_json_scan result;
    bool ok = cr_json_scan(data, len, &result);
    require(ok == !result.problem);
    require(result.offset <= len);
    require(!ok || result.values);
}

int main(void)
{
#ifdef BEGINNING
    scan(any_bytes_behind(), WHOLE_LEN);
#else
    size_t len = any_size(MAX);
    scan(any_bytes(len), len);
#endif
    return 0;
}
