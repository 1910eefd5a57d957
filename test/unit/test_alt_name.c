#include "pki/alt_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <openssl/x509v3.h>

#include "base/strings.h"

#define LABEL_63 "a23456789-123456789-123456789-123456789-123456789-123456789-123"
#define DOMAIN_253                                                                                                     \
    LABEL_63 "." LABEL_63 "." LABEL_63 "."                                                                             \
             "a23456789-123456789-123456789-123456789-123456789-123456789-1"

typedef bool (*add_name)(struct stack_st_GENERAL_NAME *, const char *, struct cr_error *);

/* As X509V3 prints it: "DNS:a.example". */
static void print(GENERAL_NAMES *names, char out[400])
{
    char *data = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    GENERAL_NAME_print(bio, sk_GENERAL_NAME_value(names, 0));
    long len = BIO_get_mem_data(bio, &data);
    snprintf(out, 400, "%.*s", (int)len, data);
    BIO_free(bio);
}

struct good {
    const char *name;
    const char *written;
};

static void accept_all(add_name add, const struct good *cases, size_t len)
{
    char written[400];
    for (size_t i = 0; i < len; i++) {
        struct cr_error err = {0};
        GENERAL_NAMES *names = GENERAL_NAMES_new();
        if (!add(names, cases[i].name, &err))
            fail_msg("%s: %s", cases[i].name, err.text);
        assert_int_equal(sk_GENERAL_NAME_num(names), 1);
        print(names, written);
        assert_string_equal(written, cases[i].written);
        GENERAL_NAMES_free(names);
    }
}

struct bad {
    const char *name;
    const char *words;
};

static void refuse_all(add_name add, const struct bad *cases, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct cr_error err = {0};
        GENERAL_NAMES *names = GENERAL_NAMES_new();
        if (add(names, cases[i].name, &err))
            fail_msg("'%s' was accepted", cases[i].name);
        assert_int_equal(err.kind, CR_ERR_INVALID);
        if (!strstr(err.text, cases[i].words))
            fail_msg("'%s': want \"%s\", got: %s", cases[i].name, cases[i].words, err.text);
        assert_int_equal(sk_GENERAL_NAME_num(names), 0);
        GENERAL_NAMES_free(names);
    }
}

static void dns_names_are_host_names(void **state)
{
    static const struct good good[] = {
        {"envoy-gateway", "DNS:envoy-gateway"},
        {"Web.Example.COM", "DNS:web.example.com"},
        {"*.envoy-gateway-system", "DNS:*.envoy-gateway-system"},
        {"xn--bcher-kva.example", "DNS:xn--bcher-kva.example"},
        {"3com.example", "DNS:3com.example"},
        {LABEL_63, "DNS:" LABEL_63},
        {DOMAIN_253, "DNS:" DOMAIN_253},
    };
    static const struct bad bad[] = {
        {"", "a label is empty"},
        {"a..b", "a label is empty"},
        {"a.example.", "a label is empty"},
        {"*", "letters, digits and hyphens"},
        {"*.", "a label is empty"},
        {"a.*.example", "letters, digits and hyphens"},
        {"w*.example", "letters, digits and hyphens"},
        {"*.*.example", "letters, digits and hyphens"},
        {"my_service", "letters, digits and hyphens"},
        {"bücher.example", "xn-- form"},
        {"a b", "letters, digits and hyphens"},
        {"a\nDNS:b", "letters, digits and hyphens"},
        {"-a.example", "begins or ends with a hyphen"},
        {"a-.example", "begins or ends with a hyphen"},
        {LABEL_63 "4", "longer than 63"},
        {DOMAIN_253 "2", "longer than 253"},
        {"10.0.0.1", "it is an IP address"},
        {"::1", "letters, digits and hyphens"},
    };
    (void)state;
    accept_all(cr_alt_name_add_dns, good, cr_array_len(good));
    refuse_all(cr_alt_name_add_dns, bad, cr_array_len(bad));
}

static void addresses_are_octets(void **state)
{
    static const struct good good[] = {
        {"10.0.0.1", "IP Address:10.0.0.1"},
        {"::1", "IP Address:0:0:0:0:0:0:0:1"},
        {"fd00::a", "IP Address:FD00:0:0:0:0:0:0:A"},
    };
    static const struct bad bad[] = {
        {"", "neither IPv4 nor IPv6"}, {"10.0.0", "neither IPv4 nor IPv6"},    {"10.0.0.0/8", "without prefix length"},
        {"fe80::1%eth0", "and zone"},  {"010.0.0.1", "neither IPv4 nor IPv6"}, {"a.example", "neither IPv4 nor IPv6"},
    };
    (void)state;
    accept_all(cr_alt_name_add_address, good, cr_array_len(good));
    refuse_all(cr_alt_name_add_address, bad, cr_array_len(bad));
}

static void uris_are_absolute_and_have_a_host(void **state)
{
    static const struct good good[] = {
        {"spiffe://cluster.local/ns/default/sa/web", "URI:spiffe://cluster.local/ns/default/sa/web"},
        {"https://user@host.example:8443/a?b#c", "URI:https://user@host.example:8443/a?b#c"},
        {"https://[fd00::1]:443/", "URI:https://[fd00::1]:443/"},
    };
    static const struct bad bad[] = {
        {"", "it is not absolute"},
        {"/ns/default", "it is not absolute"},
        {"1a://b", "it is not absolute"},
        {"urn:uuid:1", "it has no host"},
        {"https://", "it has no host"},
        {"https:///path", "it has no host"},
        {"https://[fd00::1/", "no IPv6 address"},
        {"https://a b/", "must escape"},
        {"https://b\xc3\xbc.example/", "must escape"},
        {"https://a.example/<", "must escape"},
    };
    (void)state;
    accept_all(cr_alt_name_add_uri, good, cr_array_len(good));
    refuse_all(cr_alt_name_add_uri, bad, cr_array_len(bad));
}

static void emails_are_mailboxes(void **state)
{
    static const struct good good[] = {
        {"ops@example.com", "email:ops@example.com"},
        {"a.b+c@example.com", "email:a.b+c@example.com"},
    };
    static const struct bad bad[] = {
        {"", "local@domain"},
        {"ops", "local@domain"},
        {"@example.com", "local@domain"},
        {"Ops <ops@example.com>", "dot-atom"},
        {"a b@example.com", "dot-atom"},
        {"a@b@example.com", "dot-atom"},
        {".a@example.com", "empty atom"},
        {"a.@example.com", "empty atom"},
        {"a..b@example.com", "empty atom"},
        {"a@", "a label is empty"},
        {"a@-b", "hyphen"},
    };
    (void)state;
    accept_all(cr_alt_name_add_email, good, cr_array_len(good));
    refuse_all(cr_alt_name_add_email, bad, cr_array_len(bad));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dns_names_are_host_names),
        cmocka_unit_test(addresses_are_octets),
        cmocka_unit_test(uris_are_absolute_and_have_a_host),
        cmocka_unit_test(emails_are_mailboxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
