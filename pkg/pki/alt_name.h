/* The names that a certificate is for: subjectAltName (RFC 5280, section 4.2.1.6). Private to pkg/pki. */
#ifndef CR_PKI_ALT_NAME_H
#define CR_PKI_ALT_NAME_H

#include "base/error.h"
#include "base/strvec.h"

struct stack_st_GENERAL_NAME; /* OpenSSL's GENERAL_NAMES */

/* Each adds one name to the list. Errors: Invalid, with the name and what is wrong with it. */

/* Letters, digits and hyphens in labels of at most 63, together at most 253 (RFC 1123, section 2.1; RFC 1035, section
 * 2.3.4), in the form of IDNA's A-labels; "*" only as the whole first label (RFC 9525, section 6.3), behind
 * which OpenSSL's verifier, but not Go's, wants two labels or more. Written in lower case. */
bool cr_alt_name_add_dns(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err) CR_MUST_USE;
/* IPv4 or IPv6 as inet_pton reads it: 4 or 16 octets. */
bool cr_alt_name_add_address(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err) CR_MUST_USE;
/* Absolute, with a scheme (RFC 3986, section 3.1) and a host behind "//", as verifiers look at nothing else; ASCII
 * without blanks. "spiffe://cluster.local/ns/default/sa/web". */
bool cr_alt_name_add_uri(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err) CR_MUST_USE;
/* local@domain, the local part a dot-atom (RFC 5321, section 4.1.2: quoted ones have no use), ASCII. */
bool cr_alt_name_add_email(struct stack_st_GENERAL_NAME *names, const char *name, struct cr_error *err) CR_MUST_USE;

#endif
