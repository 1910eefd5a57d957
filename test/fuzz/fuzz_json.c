/* What is parsed prints, and what was printed reads back as the same value and the same text. */
#include "fuzz.h"

#include <string.h>

#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *j = cr_json_parse((const char *)data, size, &err);
    require(j || (err.kind == CR_ERR_INVALID && err.text[0]));
    if (!j)
        return 0;
    cr_autofree char *text = cr_json_print(j);
    CR_CLEANUP(cr_json) struct cr_json *again = cr_json_parse(text, strlen(text), &err);
    require(again && cr_json_equal(j, again));
    cr_autofree char *same = cr_json_print(again);
    require(strcmp(text, same) == 0);
    CR_CLEANUP(cr_json) struct cr_json *copy = cr_json_copy(j);
    require(cr_json_equal(copy, j));
    cr_json_free_secret(cr_steal(&copy));
    return 0;
}
