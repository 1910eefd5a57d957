/* Whatever the file: it is refused with a reason, or its clocks go on: each local time is first shown when it says. */
#include "fuzz.h"

#include "codec/tzif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times[] = {-62135596800, -1, 0, 1774746000, 2145916800, 4102444800, 253402300799};
    struct cr_error err = {0};
    CR_CLEANUP(cr_tzif) struct cr_tzif *zone = cr_tzif_parse(data, size, &err);
    if (!zone) {
        require(err.kind == CR_ERR_INVALID && err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t at = cr_tzif_from_local(zone, times[i]);
        require(at + cr_tzif_offset(zone, at) >= times[i]);
        require(at - 1 + cr_tzif_offset(zone, at - 1) < times[i]);
    }
    return 0;
}
