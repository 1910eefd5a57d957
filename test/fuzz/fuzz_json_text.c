/* A member that stays text is what the parser makes of it, and the rest is as if it had been parsed. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/json_text.h"

static const char *const path[] = {"object", "data", NULL};

/* Each member as the parser has it: of a key that comes twice, the first. */
static void require_same_members(const char *text, size_t len, const struct cr_json *parsed)
{
    struct cr_json_members members = cr_json_members_of(text, len);
    struct cr_json_slice key;
    struct cr_json_slice value;
    const struct cr_json *member = cr_json_first(parsed);
    if (!cr_json_is_object(parsed))
        member = NULL;
    for (; cr_json_members_next(&members, &key, &value); member = cr_json_next(member)) {
        CR_CLEANUP(cr_json) struct cr_json *own = cr_json_parse(value.text, value.len, NULL);
        require(own && cr_json_equal(own, member));
        cr_autofree char *name = cr_strndup(key.text, key.len);
        require(!cr_json_slice_is_plain(&key) || cr_streq(name, cr_json_key(member)));
    }
    require(!member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *apart = cr_json_parse_apart(text, size, path, &err);
    CR_CLEANUP(cr_json) struct cr_json *whole = cr_json_parse(text, size, &err);
    require(!apart == !whole);
    size_t len = 0;
    const char *member = cr_json_text(cr_json_at(apart, "object", "data"), &len);
    if (!member) {
        require(cr_json_equal(apart, whole));
        return 0;
    }
    CR_CLEANUP(cr_json) struct cr_json *parsed = cr_json_parse(member, len, &err);
    require(parsed && cr_json_equal(parsed, cr_json_at(whole, "object", "data")));
    require_same_members(member, len, parsed);
    cr_json_set(cr_json_edit(whole, "object"), "data", cr_json_new_null());
    cr_json_set(cr_json_edit(apart, "object"), "data", cr_json_new_null());
    require(cr_json_equal(apart, whole));
    return 0;
}
