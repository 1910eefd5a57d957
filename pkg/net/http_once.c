#include "net/http_once.h"

#include "base/clock.h"
#include "net/http_transfer.h"

bool cr_http_once(const struct cr_http_tls *tls, const struct cr_http_request *request, int cancel_fd,
                  struct cr_http_response *response, struct cr_error *err)
{
    struct cr_http_identity *identity = cr_http_identity_new(tls);
    struct cr_http_transfer transfer = {.multi = cr_http_transfer_multi(),
                                        .identity = identity,
                                        .user_agent = "certroll",
                                        .request = request,
                                        .cancel_fd = cancel_fd,
                                        .deadline_ms = cr_clock_monotonic_ms() + request->timeout_ms};
    bool ok = cr_http_transfer_run(&transfer, response, err);
    curl_multi_cleanup(transfer.multi);
    cr_http_identity_unref(identity);
    return ok;
}
