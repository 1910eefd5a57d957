/* A label selector and labels from anybody (members selector and labels): refused with words, or it means the same in a
 * list's request as here, and never everything. */
#include "fuzz.h"

#include <string.h>

#include "api/node.h"
#include "api/selector.h"
#include "base/strings.h"
#include "codec/yaml.h"

static void check(const struct cr_selector *selector, const struct cr_json *labels)
{
    cr_autofree char *text = cr_selector_text(selector);
    require(!selector->len == !*text && !strpbrk(text, "\r\n&#?"));
    require(selector->len || !cr_selector_matches(selector, labels));
    for (size_t i = 0; i < selector->len; i++) {
        const struct cr_selector_requirement *item = &selector->items[i];
        bool takes_values = item->operator== CR_SELECTOR_IN || item->operator== CR_SELECTOR_NOT_IN;
        require(item->key && *item->key && takes_values == (item->values.len > 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_yaml_parse((const char *)data, size, &err);
    if (!object)
        return 0;
    const struct cr_node node = {.json = object};
    CR_CLEANUP(cr_selector) struct cr_selector selector = {0};
    if (cr_selector_decode(&node, "selector", &selector, &err))
        check(&selector, cr_json_get(object, "labels"));
    else
        require(err.kind == CR_ERR_INVALID && err.text[0]);
    return 0;
}
