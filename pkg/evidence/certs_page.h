/* Envoy's page of the certificates that it uses: GET /certs of its admin interface
 * (https://www.envoyproxy.io/docs/envoy/latest/operations/admin, "GET /certs"; envoy.admin.v3.Certificates). Pure. */
#ifndef CR_EVIDENCE_CERTS_PAGE_H
#define CR_EVIDENCE_CERTS_PAGE_H

#include "base/error.h"
#include "evidence/trust_sighting.h"

/* What is kept of one pod's page, so that a thousand pods cost little: TLS contexts that differ, serial numbers in all
 * of them, bytes of a path. And of what is read for it: JSON values, of which Envoy has some 10 for each certificate.
 */
enum {
    CR_CERTS_CONTEXTS_MAX = 64,
    CR_CERTS_SERIALS_MAX = 1024,
    CR_CERTS_PATH_MAX = 512,
    CR_CERTS_VALUES_MAX = 40 * 1000,
};

/* Sets page_read and contexts; alike ones are there once. False, with nothing set: it is no such page, or it has more
 * than can be kept: a part of it could be taken as proof of what it does not show. Errors: Invalid, never with its
 * content. */
bool cr_certs_page_read(const char *text, size_t len, struct cr_trust_sighting *sighting,
                        struct cr_error *err) CR_MUST_USE;

#endif
