/* The names that a leaf is for, and whether a client that asks for one of them takes it. Names are text: a DNS name as
 * it stands in the subjectAltName, or an IP address as inet_ntop writes it. */
#ifndef CR_PKI_LEAF_NAMES_H
#define CR_PKI_LEAF_NAMES_H

#include <stdbool.h>

#include "base/strvec.h"

struct stack_st_GENERAL_NAME; /* OpenSSL's GENERAL_NAMES */

/* Names that are read of one leaf: each is compared with each name in use. As docs/limits.md says. No host has a longer
 * name than a name can be (RFC 1035, section 2.3.4). */
enum { CR_LEAF_NAMES_MAX = 1000, CR_LEAF_NAME_MAX = 253 };

/* Adds the DNS names and IP addresses of a subjectAltName (NULL: none). What is not printable ASCII is
 * replaced by '?', since names are shown to people; no client asks for such a name. */
void cr_leaf_names_read(const struct stack_st_GENERAL_NAME *san, struct cr_strvec *out);

/* As a TLS client compares them: by the subjectAltName alone, never by the subject (RFC 9525, section 6.3); an address
 * with addresses, all else with DNS names in any case, of which "*" may be the whole first label. What "*" may stand
 * for is OpenSSL's answer (X509_check_host). name: a DNS name or an IP address. Thread-safe. */
bool cr_leaf_names_cover(const struct cr_strvec *names, const char *name);

#endif
