/* OpenSSL's objects as owned variables, and what it has to say as an error of ours. Private to pkg/pki. */
#ifndef CR_PKI_OPENSSL_INTERNAL_H
#define CR_PKI_OPENSSL_INTERNAL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "base/cleanup.h"
#include "base/error.h"

CR_DEFINE_CLEANUP(cr_x509, X509, X509_free)
CR_DEFINE_CLEANUP(cr_x509_name, X509_NAME, X509_NAME_free)
CR_DEFINE_CLEANUP(cr_pkey, EVP_PKEY, EVP_PKEY_free)
CR_DEFINE_CLEANUP(cr_bio, BIO, BIO_free_all)

/* What OpenSSL puts on this thread's error queue in the scope is removed at its end. */
#define CR_OPENSSL_SCOPE __attribute__((cleanup(cr_openssl_forget), unused)) int openssl_mark_ = ERR_set_mark()

static inline void cr_openssl_forget(int *mark)
{
    (void)mark;
    ERR_pop_to_mark();
}

/* "<what>: <OpenSSL's reason>", Internal. False. */
static inline bool cr_openssl_fail(struct cr_error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return cr_error_set(err, CR_ERR_INTERNAL, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

#endif
