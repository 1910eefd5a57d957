#include "support/certlists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

STACK_OF(X509) * list_of(const struct test_cert *const *certs)
{
    STACK_OF(X509) *list = sk_X509_new_null();
    for (; *certs; certs++) {
        assert_true(sk_X509_push(list, (*certs)->x509) > 0);
        X509_up_ref((*certs)->x509);
    }
    return list;
}
