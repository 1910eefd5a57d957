/* A node's report: whatever was decoded, written and read again it is the same, and its order is whole or none. */
#include "written_again.h"

#include "api/node_report.h"

static struct cr_json *once_more(const struct cr_json *status)
{
    static const char head[] = "{\"kind\":\"NodeCertificateReport\",\"metadata\":{\"name\":\"n\"}}";
    struct cr_error err = {0};
    CR_CLEANUP(cr_node_report) struct cr_node_report decoded = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = cr_json_parse(head, sizeof head - 1, &err);
    cr_json_set(object, "spec", cr_json_copy(status));
    cr_json_set(object, "status", cr_json_copy(status));
    require(cr_node_report_decode(object, &decoded, &err));
    require(!decoded.order.token == !decoded.order.component);
    require(decoded.act.phase == CR_NODE_ACT_NONE || (decoded.act.token && decoded.act.component));
    return cr_node_report_encode_status(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    require_the_same_again(data, size, once_more);
    return 0;
}
