/* JWTs of tests (RFC 7515, section 3.1), signed by nobody. */
#ifndef TEST_SUPPORT_TESTJWT_H
#define TEST_SUPPORT_TESTJWT_H

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "codec/base64.h"

/* RFC 4648, section 5, without padding. Owned. */
static inline char *test_base64url(const char *text)
{
    char *out = cr_base64_encode(text, strlen(text));
    for (char *c = out; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c;
    return out;
}

/* header, claims: JSON, or what is none. Owned. */
static inline char *test_jwt(const char *header, const char *claims)
{
    cr_autofree char *first = test_base64url(header);
    cr_autofree char *second = test_base64url(claims);
    return cr_asprintf("%s.%s.c2lnbmVk", first, second);
}

#endif
