#include "kube/watch_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"

/* Memory of its own size: a read past the end is caught. */
static enum cr_watch_head_found read_exactly(const char *text, size_t len, struct cr_watch_head *head)
{
    char *exact = cr_malloc(len);
    memcpy(exact, text, len);
    enum cr_watch_head_found found = cr_watch_head_read(exact, len, head);
    free(exact);
    return found;
}

static void a_head_names_the_object(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *frame;
        const char *expected; /* "ns/name@version" */
    } cases[] = {
        {"as an API server writes a Secret",
         "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-tls\","
         "\"namespace\":\"shop\",\"uid\":\"u\",\"resourceVersion\":\"7\"",
         "shop/web-tls@7"},
        {"a custom resource: members by name, with long ones before",
         "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\"metadata\":{\"annotations\":{"
         "\"name\":\"no\",\"x\":\"\\\"name\\\":\\\"no\\\"}}\"},\"managedFields\":[{\"fieldsV1\":{\"f:name\":{}},"
         "\"name\":\"no\"}],\"name\":\"a\",\"namespace\":\"b\",\"ownerReferences\":[{\"name\":\"no\"}],"
         "\"resourceVersion\":\"8\"",
         "b/a@8"},
        {"deleted",
         "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"resourceVersion\":\"9\"",
         "b/a@9"},
        {"of no namespace: known at the end of metadata",
         "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}", "/a@1"},
        {"what comes twice counts once, as the parser has it",
         "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"name\":\"no\",\"namespace\":\"b\","
         "\"namespace\":\"no\",\"resourceVersion\":\"1\"",
         "b/a@1"},
        {"an escaped back slash does not hide the quote",
         "{\"type\":\"ADDED\",\"object\":{\"x\":\"\\\\\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\","
         "\"resourceVersion\":\"1\"",
         "b/a@1"},
        {"a quote that is escaped ends no string",
         "{\"type\":\"ADDED\",\"object\":{\"x\":\"\\\"}\",\"metadata\":{\"name\":\"a\",\"namespace\":\"b\","
         "\"resourceVersion\":\"1\"",
         "b/a@1"},
        {"data in front of metadata",
         "{\"type\":\"ADDED\",\"object\":{\"data\":{\"metadata\":\"eA==\",\"n\":[1,{\"metadata\":{\"name\":\"no\"}}]},"
         "\"immutable\":true,\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"resourceVersion\":\"1\"",
         "b/a@1"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_watch_head head;
        size_t len = strlen(cases[i].frame);
        for (size_t cut = 0; cut < len; cut++)
            if (read_exactly(cases[i].frame, cut, &head) != CR_WATCH_HEAD_MORE)
                fail_msg("%s: told after %zu bytes", cases[i].rule, cut);
        if (read_exactly(cases[i].frame, len, &head) != CR_WATCH_HEAD_OBJECT)
            fail_msg("%s: not told", cases[i].rule);
        cr_autofree char *expected = cr_asprintf("%s/%s@%s", head.ns, head.name, head.resource_version);
        assert_string_equal(expected, cases[i].expected);
    }
}

#define OBJECT(metadata) "{\"type\":\"ADDED\",\"object\":{\"metadata\":{" metadata
#define LONG_64          "0123456789012345678901234567890123456789012345678901234567890123"

static void what_is_not_as_expected_is_for_the_parser(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        const char *frame;
    } cases[] = {
        {"a bookmark", "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}"},
        {"an error", "{\"type\":\"ERROR\",\"object\":{\"metadata\":{},\"code\":410}}"},
        {"a type of a later server", "{\"type\":\"RENAMED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}"},
        {"white space", "{ \"type\":\"ADDED\"}"},
        {"the object first", "{\"object\":{},\"type\":\"ADDED\"}"},
        {"a member between", "{\"type\":\"ADDED\",\"x\":1,\"object\":{}}"},
        {"an object that is none", "{\"type\":\"ADDED\",\"object\":null}"},
        {"no metadata", "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\"}}"},
        {"metadata that is none", "{\"type\":\"ADDED\",\"object\":{\"metadata\":\"name\"}}"},
        {"empty metadata", OBJECT("}}}")},
        {"no name", OBJECT("\"namespace\":\"b\",\"resourceVersion\":\"1\"}}}")},
        {"an empty name", OBJECT("\"name\":\"\",\"namespace\":\"b\",\"resourceVersion\":\"1\"}}}")},
        {"no version", OBJECT("\"name\":\"a\",\"namespace\":\"b\"}}}")},
        {"an empty version", OBJECT("\"name\":\"a\",\"namespace\":\"b\",\"resourceVersion\":\"\"}}}")},
        {"a name that is no string", OBJECT("\"name\":1,\"namespace\":\"b\",\"resourceVersion\":\"1\"}}}")},
        {"an escape in a key", OBJECT("\"n\\u0061me\":\"a\",\"name\":\"b\",\"resourceVersion\":\"1\"}}}")},
        {"an escape in a name", OBJECT("\"name\":\"\\u0061\",\"namespace\":\"b\",\"resourceVersion\":\"1\"}}}")},
        {"a namespace that is too long",
         OBJECT("\"name\":\"a\",\"namespace\":\"" LONG_64 "\",\"resourceVersion\":\"1\"}}}")},
        {"a comma that is none", OBJECT("\"uid\":\"u\";\"name\":\"a\"}}}")},
        {"no frame", "hello"},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        struct cr_watch_head head;
        if (read_exactly(cases[i].frame, strlen(cases[i].frame), &head) != CR_WATCH_HEAD_OTHER)
            fail_msg("%s", cases[i].rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_names_the_object),
        cmocka_unit_test(what_is_not_as_expected_is_for_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
