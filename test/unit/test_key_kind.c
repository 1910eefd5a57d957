#include "pki/key_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/objects.h>

#include "base/strings.h"
#include "support/testcerts.h"

static void keys_that_certificates_are_signed_with_are_known_by_their_algorithm(void **state)
{
    static const struct {
        const char *number;
        const char *ml_dsa; /* NULL: another */
        bool signs;
    } cases[] = {
        {"1.2.840.10045.2.1", NULL, true},              /* id-ecPublicKey */
        {"1.2.840.113549.1.1.1", NULL, true},           /* rsaEncryption */
        {"1.2.840.113549.1.1.10", NULL, true},          /* id-RSASSA-PSS */
        {"1.3.101.112", NULL, true},                    /* Ed25519 */
        {"1.3.101.113", NULL, true},                    /* Ed448 */
        {"1.3.101.110", NULL, false},                   /* X25519 */
        {"1.2.840.10040.4.1", NULL, false},             /* DSA */
        {"1.2.840.113549.1.3.1", NULL, false},          /* DH */
        {"2.16.840.1.101.3.4.3.20", NULL, false},       /* SLH-DSA-SHA2-128s */
        {"2.16.840.1.101.3.4.4.2", NULL, false},        /* ML-KEM-768 */
        {"2.16.840.1.101.3.4.127.127", NULL, false},    /* unassigned */
        {"2.16.840.1.101.3.4.3.16", NULL, false},       /* id-rsassa-pkcs1-v1_5-with-sha3-512 */
        {"2.16.840.1.101.3.4.3.17", "ML-DSA-44", true}, /* with OpenSSL 3.5 */
        {"2.16.840.1.101.3.4.3.18", "ML-DSA-65", true},
        {"2.16.840.1.101.3.4.3.19", "ML-DSA-87", true},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        ASN1_OBJECT *algorithm = OBJ_txt2obj(cases[i].number, 1);
        bool can = !cases[i].ml_dsa || test_has_ml_dsa();
        if (cr_key_kind_signs(algorithm) != (cases[i].signs && can))
            fail_msg("%s", cases[i].number);
        assert_string_equal(cr_or_empty(cr_key_kind_ml_dsa(algorithm)), cr_or_empty(cases[i].ml_dsa));
        ASN1_OBJECT_free(algorithm);
    }
}

static void keys_are_known_by_their_kind(void **state)
{
    static const struct {
        const char *type;
        bool ml_dsa;
        bool slh_dsa;
    } cases[] = {
        {"P-256", false, false},
        {"RSA", false, false},
        {"ED25519", false, false},
        {"ML-DSA-44", true, false},
        {"ML-DSA-65", true, false},
        {"ML-DSA-87", true, false},
        {"SLH-DSA-SHA2-128f", false, true},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        if ((cases[i].ml_dsa || cases[i].slh_dsa) && !test_has_ml_dsa())
            continue;
        CR_CLEANUP(test_cert)
        struct test_cert *cert = test_cert_new(&(struct test_cert_spec){.key_type = cases[i].type});
        if (cr_key_is_ml_dsa(cert->key) != cases[i].ml_dsa || cr_key_is_slh_dsa(cert->key) != cases[i].slh_dsa)
            fail_msg("%s", cases[i].type);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_certificates_are_signed_with_are_known_by_their_algorithm),
        cmocka_unit_test(keys_are_known_by_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
