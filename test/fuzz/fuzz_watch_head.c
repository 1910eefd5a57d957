/* What the head of a frame tells is what the parser finds in the whole, and more of a frame never tells otherwise. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "kube/object.h"
#include "kube/watch_head.h"

static void require_same(const struct cr_watch_head *head, const struct cr_json *envelope)
{
    const char *type = cr_or_empty(cr_json_string_at(envelope, "type"));
    const struct cr_json *object = cr_json_get(envelope, "object");
    require(cr_streq(type, "ADDED") || cr_streq(type, "MODIFIED") || cr_streq(type, "DELETED"));
    require(cr_streq(head->name, cr_obj_name(object)));
    require(cr_streq(head->resource_version, cr_obj_resource_version(object)));
    require(cr_streq(head->ns, cr_or_empty(cr_obj_namespace(object))));
}

/* Shorter texts say the same, or nothing yet. */
static void require_steady(const char *text, size_t size, enum cr_watch_head_found whole)
{
    struct cr_watch_head head;
    for (size_t len = 0; len < size; len++) {
        enum cr_watch_head_found found = cr_watch_head_read(text, len, &head);
        require(found == CR_WATCH_HEAD_MORE || found == whole);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct cr_watch_head head;
    enum cr_watch_head_found found = cr_watch_head_read(text, size, &head);
    if (size < 512)
        require_steady(text, size, found);
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *envelope = cr_json_parse(text, size, &err);
    if (envelope && found == CR_WATCH_HEAD_OBJECT)
        require_same(&head, envelope);
    return 0;
}
