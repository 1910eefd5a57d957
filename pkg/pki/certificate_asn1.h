/* A certificate as RFC 5280, section 4.1, has it. This is what OpenSSL's X509 reads too, field by field, so that both
 * take and refuse the same; but an X509 decodes its public key at once, which is two thirds of what reading a
 * certificate costs with OpenSSL 3.0, and most are never asked for it. Private to pkg/pki. */
#ifndef CR_PKI_CERTIFICATE_ASN1_H
#define CR_PKI_CERTIFICATE_ASN1_H

#include <openssl/asn1t.h>
#include <openssl/x509.h>

/* Names without "struct", as OpenSSL's macros need them. All is OpenSSL's memory. */
typedef struct cr_asn1_spki {
    X509_ALGOR *algorithm;
    ASN1_BIT_STRING *key;
} CR_ASN1_SPKI;

typedef struct cr_asn1_tbs {
    ASN1_ENCODING enc; /* the bytes that were signed */
    ASN1_INTEGER *version;
    ASN1_INTEGER *serial;
    X509_ALGOR *signature;
    X509_NAME *issuer;
    X509_VAL *validity;
    X509_NAME *subject;
    CR_ASN1_SPKI *spki;
    ASN1_BIT_STRING *issuer_uid;
    ASN1_BIT_STRING *subject_uid;
    STACK_OF(X509_EXTENSION) * extensions;
} CR_ASN1_TBS;

typedef struct cr_asn1_certificate {
    CR_ASN1_TBS *tbs;
    X509_ALGOR *algorithm;
    ASN1_BIT_STRING *signature;
} CR_ASN1_CERTIFICATE;

DECLARE_ASN1_FUNCTIONS(CR_ASN1_SPKI)
DECLARE_ASN1_FUNCTIONS(CR_ASN1_CERTIFICATE)

#endif
