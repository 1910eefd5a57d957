#include "pki/leaf_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/x509v3.h>

#include "base/strings.h"

static void add(GENERAL_NAMES *names, int type, const void *data, size_t len)
{
    ASN1_STRING *value = ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING_set(value, data, (int)len);
    GENERAL_NAME_set0_value(name, type, value);
    sk_GENERAL_NAME_push(names, name);
}

static void what_is_read_is_what_clients_go_by_and_people_may_see(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int type;
        const char *data;
        size_t len;
        const char *read; /* NULL: it is not */
    } cases[] = {
        {"a DNS name", GEN_DNS, "Web.Example", 11, "Web.Example"},
        {"a wildcard", GEN_DNS, "*.example.org", 13, "*.example.org"},
        {"one that would forge a line", GEN_DNS, "a\nb", 3, "a?b"},
        {"one that would hide its end", GEN_DNS, "a\0.example", 10, "a?.example"},
        {"a blank name", GEN_DNS, "", 0, NULL},
        {"an address", GEN_IPADD, "\x0a\0\0\x01", 4, "10.0.0.1"},
        {"an IPv6 address", GEN_IPADD, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16, "fd00::1"},
        {"an address of another size", GEN_IPADD, "\x0a\0\0", 3, NULL},
        {"an address among the DNS names", GEN_DNS, "10.0.0.1", 8, NULL},
        {"a URI", GEN_URI, "spiffe://a/b", 12, NULL},
        {"a mail address", GEN_EMAIL, "a@example", 9, NULL},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec read = {0};
        GENERAL_NAMES *names = GENERAL_NAMES_new();
        add(names, cases[i].type, cases[i].data, cases[i].len);
        cr_leaf_names_read(names, &read);
        if (read.len != (cases[i].read != NULL) || (read.len && !cr_streq(read.items[0], cases[i].read)))
            fail_msg("%s: %zu, %s", cases[i].what, read.len, read.len ? read.items[0] : "");
        GENERAL_NAMES_free(names);
    }
}

static void only_so_many_are_read_and_none_too_long(void **state)
{
    (void)state;
    char longest[CR_LEAF_NAME_MAX + 2];
    CR_CLEANUP(cr_strvec) struct cr_strvec read = {0};
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    memset(longest, 'a', sizeof longest);
    add(names, GEN_DNS, longest, CR_LEAF_NAME_MAX + 1);
    for (int i = 0; i < CR_LEAF_NAMES_MAX + 1; i++)
        add(names, GEN_DNS, longest, CR_LEAF_NAME_MAX);
    cr_leaf_names_read(names, &read);
    cr_leaf_names_read(NULL, &read);
    assert_int_equal(read.len, CR_LEAF_NAMES_MAX);
    assert_int_equal(strlen(read.items[0]), CR_LEAF_NAME_MAX);
    GENERAL_NAMES_free(names);
}

static void a_name_is_covered_as_clients_compare_it(void **state)
{
    (void)state;
    static const struct {
        const char *names[3]; /* of the leaf, up to the first NULL */
        const char *name;
        bool covered;
    } cases[] = {
        {{"web.example"}, "web.example", true},
        {{"web.example"}, "WEB.Example", true},
        {{"web.example"}, "api.example", false},
        {{"web.example"}, "web.example.org", false},
        {{"example"}, "web.example", false},
        {{"api.example", "web.example"}, "web.example", true},
        {{0}, "web.example", false},
        /* One label, and the first alone. */
        {{"*.example.org"}, "web.example.org", true},
        {{"*.EXAMPLE.org"}, "web.example.org", true},
        {{"*.example.org"}, "example.org", false},
        {{"*.example.org"}, "a.web.example.org", false},
        {{"*.example.org"}, ".example.org", false},
        {{"*.example.org"}, "*.example.org", true},
        {{"w*.example.org"}, "web.example.org", false},
        {{"web.*.org"}, "web.example.org", false},
        /* OpenSSL wants two labels behind the star. */
        {{"*.org"}, "web.org", false},
        {{"*.org", "web.org"}, "web.org", true},
        {{"*"}, "web", false},
        /* Service names of one label, and of none. */
        {{"web"}, "web", true},
        {{"web"}, "", false},
        {{"web.example"}, ".example", false},
        /* What is replaced is no name. */
        {{"a?.example"}, "a.example", false},
        /* Addresses are compared with addresses. */
        {{"10.0.0.1"}, "10.0.0.1", true},
        {{"10.0.0.1"}, "10.0.0.2", false},
        {{"fd00::1"}, "fd00:0:0:0::1", true},
        {{"FD00::1"}, "fd00::1", false},
        {{"*.0.0.1"}, "10.0.0.1", false},
    };
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
        for (size_t n = 0; cases[i].names[n]; n++)
            cr_strvec_add(&names, cases[i].names[n]);
        if (cr_leaf_names_cover(&names, cases[i].name) != cases[i].covered)
            fail_msg("%s of %s: %d", cases[i].name, cases[i].names[0] ? cases[i].names[0] : "none", !cases[i].covered);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_clients_go_by_and_people_may_see),
        cmocka_unit_test(only_so_many_are_read_and_none_too_long),
        cmocka_unit_test(a_name_is_covered_as_clients_compare_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
