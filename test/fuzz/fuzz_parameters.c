/* A static pod's manifest, and behind "\n---\n" what each file that it names holds: parameters in bounds, each with a
 * place on the host or with words why there is none. */
#include "fuzz.h"

#include <string.h>

#include "base/strings.h"
#include "controlplane/agent/parameters.h"

/* Of the input, what stands behind the first "\n---\n" is each file that is followed. */
struct rest {
    const char *text;
    size_t len;
};

static bool read_rest(void *ctx, const char *host, struct cr_buf *out, struct cr_error *err)
{
    const struct rest *rest = ctx;
    require(host[0] == '/');
    return cr_buf_append(out, rest->text, rest->len) || cr_error_set(err, CR_ERR_INVALID, "%s is too big", host);
}

static void check(const struct cr_node_parameter *row)
{
    bool on_host = row->place == CR_NODE_PLACE_HOST || row->place == CR_NODE_PLACE_EMBEDDED;
    require(on_host == (row->host != NULL));
    require(on_host != (row->why != NULL));
    require(row->component && *row->component && row->parameter && row->pod && row->container);
    require(!row->host || row->host[0] == '/');
    require(!cr_node_parameter_reloads(row) || (row->place == CR_NODE_PLACE_HOST && !row->alone));
    require(!row->signs_and_trusts || row->place == CR_NODE_PLACE_HOST);
    require(row->capability.source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cr_catalogue *catalogue;
    struct cr_error err = {0};
    if (!catalogue)
        catalogue = cr_catalogue_builtin(&err);
    require(catalogue);
    const char *text = (const char *)data;
    const char *cut = memmem(text, size, "\n---\n", 5);
    struct rest rest = {.text = cut ? cut + 5 : ""};
    rest.len = cut ? size - (size_t)(rest.text - text) : 0;
    CR_CLEANUP(cr_static_pod)
    struct cr_static_pod *pod = cr_static_pod_read(text, cut ? (size_t)(cut - text) : size, &err);
    if (!pod)
        return 0;
    CR_CLEANUP(cr_node_parameters) struct cr_node_parameters all = {0};
    cr_node_parameters_add_pod(&all, catalogue, pod, &(struct cr_node_source){.read = read_rest, .ctx = &rest});
    require(all.len <= CR_NODE_PARAMETERS_MAX);
    for (size_t i = 0; i < all.len; i++)
        check(&all.items[i]);
    return 0;
}
