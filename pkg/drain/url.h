/* The URLs of the strategy "generic". Private to pkg/drain. */
#ifndef CR_DRAIN_URL_H
#define CR_DRAIN_URL_H

#include "base/cleanup.h"
#include "base/error.h"

struct cr_drain_url {
    char *address; /* owned; wire/address.h */
    char *target;  /* owned; with its query: "/drain?now" */
};

/* "http://127.0.0.1:8080/drain", an IP address or localhost, port 80 where none is given; for a Unix socket
 * "http+unix:///run/app.sock:/drain" or "http+unix://%2Frun%2Fapp.sock/drain". Errors: Invalid: what is allowed; also
 * for https, which a static program without a TLS library cannot use. out holds nothing on failure. Any thread. */
bool cr_drain_url_parse(const char *text, struct cr_drain_url *out, struct cr_error *err) CR_MUST_USE;
void cr_drain_url_dispose(struct cr_drain_url *url);
CR_DEFINE_DISPOSE(cr_drain_url, struct cr_drain_url, cr_drain_url_dispose)

#endif
