#include "pki/alt_name.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/text.h"
#include "pki/openssl_internal.h"

enum { LABEL_MAX = 63, DOMAIN_MAX = 253, LOCAL_PART_MAX = 64, URI_MAX = 2048, SHOWN = 100 };

#define ALPHA "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool refuse(struct cr_error *err, const char *kind, const char *name, const char *why)
{
    cr_autofree char *shown = cr_text_clip(name, SHOWN);
    return cr_error_set(err, CR_ERR_INVALID, "\"%s\" is no %s for a certificate: %s", shown, kind, why);
}

/* --- what is right --- */

/* NULL: a label; else what is wrong with it. */
static const char *label_problem(const char *label, size_t len)
{
    if (len == 0)
        return "a label is empty";
    if (len > LABEL_MAX)
        return "a label is longer than 63 characters";
    if (label[0] == '-' || label[len - 1] == '-')
        return "a label begins or ends with a hyphen";
    return strspn(label, ALPHA DIGIT "-") < len
               ? "a label is of letters, digits and hyphens (and IDNs in their xn-- form)"
               : NULL;
}

static const char *domain_problem(const char *domain)
{
    if (strlen(domain) > DOMAIN_MAX)
        return "it is longer than 253 characters";
    for (const char *label = domain;; label++) {
        size_t len = strcspn(label, ".");
        const char *problem = label_problem(label, len);
        if (problem)
            return problem;
        label += len;
        if (!*label)
            return NULL;
    }
}

static const char *dns_problem(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, address) == 1)
        return "it is an IP address, which has a list of its own";
    return domain_problem(cr_starts_with(name, "*.") ? name + 2 : name);
}

/* The host of an authority without user and port. */
static const char *host_problem(const char *authority, size_t len)
{
    cr_autofree char *host = cr_strndup(authority, len);
    char *user = strrchr(host, '@');
    char *from = user ? user + 1 : host;
    unsigned char address[sizeof(struct in6_addr)];
    if (*from == '[') {
        char *end = strchr(from, ']');
        if (end)
            *end = '\0';
        return end && inet_pton(AF_INET6, from + 1, address) == 1 ? NULL : "its host is no IPv6 address";
    }
    from[strcspn(from, ":")] = '\0';
    return domain_problem(from) ? "it has no host" : NULL;
}

static const char *uri_problem(const char *name)
{
    if (strlen(name) > URI_MAX)
        return "it is longer than 2048 characters";
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7F || strchr("\"<>\\^`{|}", *c))
            return "it has a character that a URI must escape";
    size_t scheme = strspn(name, ALPHA DIGIT "+-.");
    if (!isalpha((unsigned char)name[0]) || name[scheme] != ':')
        return "it is not absolute: a scheme is missing";
    if (!cr_starts_with(name + scheme, "://"))
        return "it has no host";
    const char *authority = name + scheme + 3;
    return host_problem(authority, strcspn(authority, "/?#"));
}

static const char *email_problem(const char *name)
{
    const char *at = strrchr(name, '@');
    size_t local = at ? (size_t)(at - name) : 0;
    if (!local || local > LOCAL_PART_MAX)
        return "it is not of the form local@domain";
    if (strspn(name, ALPHA DIGIT "!#$%&'*+-/=?^_`{|}~.") < local)
        return "its local part has other characters than a dot-atom";
    const char *dots = strstr(name, "..");
    if (name[0] == '.' || at[-1] == '.' || (dots && dots < at))
        return "its local part has an empty atom";
    return domain_problem(at + 1);
}

/* --- added --- */

static bool no_memory(struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INTERNAL, "no memory for names");
}

static bool push(GENERAL_NAMES *names, int type, ASN1_STRING *value, struct cr_error *err)
{
    GENERAL_NAME *name = value ? GENERAL_NAME_new() : NULL;
    if (!name) {
        ASN1_STRING_free(value);
        return no_memory(err);
    }
    GENERAL_NAME_set0_value(name, type, value);
    if (sk_GENERAL_NAME_push(names, name) > 0)
        return true;
    GENERAL_NAME_free(name);
    return no_memory(err);
}

static bool push_bytes(GENERAL_NAMES *names, int type, const void *data, size_t len, struct cr_error *err)
{
    ASN1_STRING *value = ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    if (value && ASN1_STRING_set(value, data, (int)len))
        return push(names, type, value, err);
    ASN1_STRING_free(value);
    return no_memory(err);
}

bool cr_alt_name_add_dns(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err)
{
    const char *problem = dns_problem(name);
    if (problem)
        return refuse(err, "DNS name", name, problem);
    cr_autofree char *lower = cr_strdup(name);
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return push_bytes(names, GEN_DNS, lower, strlen(lower), err);
}

bool cr_alt_name_add_address(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, address) == 1)
        return push_bytes(names, GEN_IPADD, address, sizeof(struct in_addr), err);
    if (inet_pton(AF_INET6, name, address) == 1)
        return push_bytes(names, GEN_IPADD, address, sizeof(struct in6_addr), err);
    return refuse(err, "IP address", name, "it is neither IPv4 nor IPv6, without prefix length and zone");
}

bool cr_alt_name_add_uri(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err)
{
    const char *problem = uri_problem(name);
    return problem ? refuse(err, "URI", name, problem) : push_bytes(names, GEN_URI, name, strlen(name), err);
}

bool cr_alt_name_add_email(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err)
{
    const char *problem = email_problem(name);
    return problem ? refuse(err, "e-mail address", name, problem)
                   : push_bytes(names, GEN_EMAIL, name, strlen(name), err);
}
