#include "pki/leaf_names.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/openssl_internal.h"

/* As inet_ntop writes it. False: it is no address. */
static bool address_text(const char *name, char out[INET6_ADDRSTRLEN])
{
    unsigned char bytes[sizeof(struct in6_addr)];
    for (int family = AF_INET; family; family = family == AF_INET ? AF_INET6 : 0)
        if (inet_pton(family, name, bytes) == 1)
            return inet_ntop(family, bytes, out, INET6_ADDRSTRLEN) != NULL;
    return false;
}

/* --- read --- */

static void add_address(const ASN1_OCTET_STRING *address, struct cr_strvec *out)
{
    char text[INET6_ADDRSTRLEN];
    int len = ASN1_STRING_length(address);
    if ((len == 4 || len == 16) &&
        inet_ntop(len == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof text))
        cr_strvec_add(out, text);
}

/* What is shown to people must not be able to forge lines or hide behind a NUL. An address among the DNS names is none:
 * clients look for it among the addresses. */
static void add_dns(const ASN1_IA5STRING *text, struct cr_strvec *out)
{
    char name[CR_LEAF_NAME_MAX + 1];
    char address[INET6_ADDRSTRLEN];
    int len = ASN1_STRING_length(text);
    const unsigned char *data = ASN1_STRING_get0_data(text);
    if (len <= 0 || len > CR_LEAF_NAME_MAX)
        return;
    for (int i = 0; i < len; i++)
        name[i] = (char)(data[i] > 0x20 && data[i] < 0x7F ? data[i] : '?');
    name[len] = '\0';
    if (!address_text(name, address))
        cr_strvec_add(out, name);
}

void cr_leaf_names_read(const struct stack_st_GENERAL_NAME *san, struct cr_strvec *out)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(san) && out->len < CR_LEAF_NAMES_MAX; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(san, i);
        if (name->type == GEN_DNS)
            add_dns(name->d.dNSName, out);
        else if (name->type == GEN_IPADD)
            add_address(name->d.iPAddress, out);
    }
}

/* --- compared --- */

static void names_cleanup(GENERAL_NAMES **names)
{
    GENERAL_NAMES_free(*names);
}

/* A certificate with this one name. NULL: no memory. */
static X509 *for_name(const char *dns)
{
    __attribute__((cleanup(names_cleanup))) GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    X509 *cert = X509_new();
    bool made = names && name && text && cert && ASN1_STRING_set(text, dns, (int)strlen(dns)) == 1;
    if (made) {
        GENERAL_NAME_set0_value(name, GEN_DNS, text);
        text = NULL;
        made = sk_GENERAL_NAME_push(names, name) > 0;
        name = made ? NULL : name;
    }
    ASN1_IA5STRING_free(text);
    GENERAL_NAME_free(name);
    if (made && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1)
        return cert;
    X509_free(cert);
    return NULL;
}

/* OpenSSL has an opinion of certificates, so it is asked about one that has this name alone. */
static bool is_for(const char *dns, const char *name)
{
    static const unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
    CR_OPENSSL_SCOPE;
    CR_CLEANUP(cr_x509) X509 *cert = for_name(dns);
    return cert && X509_check_host(cert, name, strlen(name), flags, NULL) == 1;
}

static bool is_wildcard_above(const char *dns, const char *name)
{
    const char *parent = strchr(name, '.');
    return cr_starts_with(dns, "*.") && parent && strcasecmp(dns + 1, parent) == 0;
}

bool cr_leaf_names_cover(const struct cr_strvec *names, const char *name)
{
    char address[INET6_ADDRSTRLEN];
    if (address_text(name, address))
        return cr_strvec_has(names, address);
    if (!*name || *name == '.') /* which OpenSSL takes for "anything below" */
        return false;
    /* Only the same name and a wildcard above it are worth the question among many names, each once in whatever
     * case. */
    const char *same = NULL;
    const char *wildcard = NULL;
    for (size_t i = 0; i < names->len; i++) {
        same = strcasecmp(names->items[i], name) == 0 ? names->items[i] : same;
        wildcard = is_wildcard_above(names->items[i], name) ? names->items[i] : wildcard;
    }
    return (same && is_for(same, name)) || (wildcard && is_for(wildcard, name));
}
