#include "kube/managed_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "support/yamltext.h"

#define CERTROLL "{manager: certroll, time: '2026-11-22T10:00:05Z', fieldsV1: {f:data: {f:tls.crt: {}, f:ca.crt: {}}}}"

static void the_last_writer_of_a_field_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *entries;
        const char *writer;
    } rows[] = {
        {"nobody", "", NULL},
        {"we", CERTROLL, NULL},
        {"somebody later",
         CERTROLL ", {manager: gitops, time: '2026-11-22T10:00:06Z', fieldsV1: {f:data: {f:tls.crt: {}}}}", "gitops"},
        {"somebody in the same second",
         CERTROLL ", {manager: gitops, time: '2026-11-22T10:00:05Z', fieldsV1: {f:data: {f:tls.crt: {}}}}", "gitops"},
        {"somebody before us",
         CERTROLL ", {manager: kubectl-create, time: '2026-11-22T09:00:00Z', fieldsV1: {f:data: {f:tls.key: {}}}}",
         NULL},
        {"of two the later",
         "{manager: a, time: '2026-11-22T10:00:07Z', fieldsV1: {f:data: {f:ca.crt: {}}}}, "
         "{manager: b, time: '2026-11-22T10:00:06Z', fieldsV1: {f:data: {f:ca.crt: {}}}}",
         "a"},
        {"of another field",
         CERTROLL ", {manager: x, time: '2026-11-22T11:00:00Z', fieldsV1: {f:data: {f:password: {}}}}", NULL},
        {"of a label of that name",
         CERTROLL ", {manager: x, time: '2026-11-22T11:00:00Z', fieldsV1: {f:metadata: {f:labels: {f:ca.crt: {}}}}}",
         NULL},
        {"deep in a list",
         "{manager: x, time: '2026-11-22T11:00:00Z', fieldsV1: {f:webhooks: {'k:{\"name\":\"a\"}': {f:clientConfig: "
         "{f:caBundle: {}}}}}}",
         "x"},
        {"without a time", CERTROLL ", {manager: x, fieldsV1: {f:data: {f:tls.crt: {}}}}", NULL},
        {"without fields", "{manager: x, time: '2026-11-22T11:00:00Z'}", NULL},
        {"nonsense", "7, [], {manager: {}, fieldsV1: []}", NULL},
    };
    static const char *const fields[] = {"f:tls.crt", "f:tls.key", "f:ca.crt", "f:caBundle", NULL};
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        cr_autofree char *text = cr_asprintf("metadata: {managedFields: [%s]}", rows[i].entries);
        CR_CLEANUP(cr_json) struct cr_json *object = test_yaml(text);
        const char *writer = cr_managed_fields_other(object, fields);
        if (!cr_streq(writer, rows[i].writer))
            fail_msg("%s: %s, not %s", rows[i].rule, writer, rows[i].writer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_writer_of_a_field_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
