/* Answers of what may be Redis: a part of one says that there is more or the same, no text lies outside of the answer,
 * and a command is read as the words that it has. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sidecar/resp.h"

static bool is_inside(const struct cr_resp_value *value, const char *data, size_t at)
{
    return !value->text || (value->text >= data && value->len <= at && value->text + value->len <= data + at);
}

static bool is_same(const struct cr_resp_value *a, const struct cr_resp_value *b)
{
    return a->type == b->type && a->number == b->number && a->len == b->len &&
           (!a->len || memcmp(a->text, b->text, a->len) == 0);
}

/* Of the value at `at`, in just the memory that a shorter answer has. */
static void check_parts(const char *data, size_t len, size_t at, size_t end, const struct cr_resp_value *whole)
{
    for (size_t part = at; part <= len; part += part < end + 1 ? 1 : 16) {
        cr_autofree char *text = cr_malloc(part ? part : 1);
        memcpy(text, data, part);
        size_t here = at;
        struct cr_resp_value value;
        enum cr_resp_step step = cr_resp_read(text, part, &here, &value);
        require(step == (part < end ? CR_RESP_MORE : CR_RESP_READ));
        require(step != CR_RESP_READ || (here == end && is_same(&value, whole)));
    }
}

static void check_command(const char *data, size_t len)
{
    cr_autofree char *text = cr_strndup(data, len);
    const char *const words[] = {"CONFIG", text, ""};
    CR_CLEANUP(cr_buf) struct cr_buf out = {0};
    cr_resp_command(words, 3, &out);
    size_t at = 0;
    struct cr_resp_value value;
    require(cr_resp_read(out.data, out.len, &at, &value) == CR_RESP_READ && value.type == CR_RESP_ARRAY);
    require(value.number == 3);
    for (size_t i = 0; i < 3; i++) {
        require(cr_resp_read(out.data, out.len, &at, &value) == CR_RESP_READ && value.type == CR_RESP_BULK);
        require(value.len == strlen(words[i]) && memcmp(value.text, words[i], value.len) == 0);
    }
    require(at == out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    const char *text = (const char *)data;
    check_command(text, size);
    struct cr_resp_value value;
    for (size_t at = 0, before = 0; cr_resp_read(text, size, &at, &value) == CR_RESP_READ; before = at) {
        require(at > before && at <= size && is_inside(&value, text, at));
        if (size < 128)
            check_parts(text, size, before, at, &value);
    }
    return 0;
}
