/* A manifest that is annotated is the same Pod but for the annotation, differs in one place, and annotated again in
 * none. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "controlplane/agent/manifest_edit.h"
#include "controlplane/agent/static_pod.h"

static const char annotation[] = "a/b";

static size_t alike(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t shorter = a_len < b_len ? a_len : b_len;
    size_t begin = 0;
    size_t end = 0;
    while (begin < shorter && a[begin] == b[begin])
        begin++;
    while (end < shorter - begin && a[a_len - end - 1] == b[b_len - end - 1])
        end++;
    return begin + end;
}

/* Only a value that was there goes: of the annotation, or null for all of them. */
static bool replaces(const struct cr_static_pod *before)
{
    const struct cr_json *annotations = cr_json_at(before->json, "metadata", "annotations");
    return cr_json_is_null(annotations) || cr_json_get(annotations, annotation);
}

static void check(const char *text, size_t len, const struct cr_buf *edited, bool changed)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *before = cr_static_pod_read(text, len, &err);
    CR_CLEANUP(cr_static_pod) struct cr_static_pod *after = cr_static_pod_read(edited->data, edited->len, &err);
    require(before && after && before->len == after->len);
    require(cr_streq(cr_static_pod_annotation(after, annotation), "v-1"));
    require(cr_json_equal(cr_json_get(before->json, "spec"), cr_json_get(after->json, "spec")));
    require(changed != cr_streq(cr_static_pod_annotation(before, annotation), "v-1"));
    require(replaces(before) || alike(text, len, edited->data, edited->len) == len);

    CR_CLEANUP(cr_buf) struct cr_buf again = CR_BUF_INIT(0);
    bool changed_again = true;
    require(cr_manifest_annotate(edited->data, edited->len, annotation, "v-1", &again, &changed_again, &err));
    require(!changed_again && again.len == edited->len && memcmp(again.data, edited->data, again.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cr_error err = {0};
    bool changed = false;
    CR_CLEANUP(cr_buf) struct cr_buf edited = CR_BUF_INIT(0);
    if (cr_manifest_annotate((const char *)data, size, annotation, "v-1", &edited, &changed, &err))
        check((const char *)data, size, &edited, changed);
    else
        require(err.kind == CR_ERR_INVALID && strncmp(err.text, "the manifest", 12) == 0 && !edited.len);
    return 0;
}
