#include "pki/signers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/testcerts.h"

#define AUTO_CERT CR_CLEANUP(test_cert) struct test_cert *

static void each_pair_is_checked_once(void **state)
{
    (void)state;
    AUTO_CERT ca = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    AUTO_CERT other = test_cert_new(&(struct test_cert_spec){.cn = "ca", .ca = true});
    AUTO_CERT leaf = test_cert_new(&(struct test_cert_spec){.cn = "web", .issuer = ca});
    CR_CLEANUP(cr_signers) struct cr_signers *signers = cr_signers_new();
    for (int i = 0; i < 3; i++) {
        assert_true(cr_signers_has_signed(signers, ca->x509, leaf->x509));
        assert_false(cr_signers_has_signed(signers, other->x509, leaf->x509));
        assert_false(cr_signers_has_signed(signers, leaf->x509, ca->x509));
        assert_true(cr_signers_has_signed(signers, ca->x509, ca->x509));
        assert_int_equal(cr_signers_checked(signers), 4);
    }
    cr_signers_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_pair_is_checked_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
