/* Certificates in a line, and chains and bundles of them, for the models of clients (pki/bundle_*.h). */
#ifndef TEST_CERTLISTS_H
#define TEST_CERTLISTS_H

#include "pki/openssl_internal.h"
#include "support/testcerts.h"

enum { DAY_S = 24 * 3600 };

#define AUTO_CERT    CR_CLEANUP(test_cert) struct test_cert *
#define make(...)    test_cert_new(&(struct test_cert_spec){__VA_ARGS__})
#define make_ca(...) make(.ca = true, __VA_ARGS__)
#define LIST(...)    list_of((const struct test_cert *[]){__VA_ARGS__, NULL})

/* Up to a NULL. Owned: cr_x509_list_free. */
STACK_OF(X509) * list_of(const struct test_cert *const *certs);

#endif
