/* What is read from YAML is a value of JSON: it prints and reads back, as JSON and, flow style being YAML, as YAML. */
#include "fuzz.h"

#include <string.h>

#include "codec/yaml.h"

static void read_back_as_yaml(const struct cr_json *j, const char *text)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *yaml = cr_yaml_parse(text, strlen(text), &err);
    if (!yaml)
        return; /* larger than the caps, or a character that YAML does not allow unescaped */
    require(cr_json_is_null(j) || cr_json_equal(j, yaml));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *j = cr_yaml_parse((const char *)data, size, &err);
    require(j || (err.kind == CR_ERR_INVALID && err.text[0]));
    if (!j)
        return 0;
    cr_autofree char *text = cr_json_print(j);
    CR_CLEANUP(cr_json) struct cr_json *again = cr_json_parse(text, strlen(text), &err);
    require(again && cr_json_equal(j, again));
    read_back_as_yaml(j, text);
    return 0;
}
