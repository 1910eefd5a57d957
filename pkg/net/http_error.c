/* What became of an exchange, as an error: its kind decides the retry, its text says what a person should look at. */
#include "net/http_internal.h"

#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"

/* What no retry with the same input can heal. All else is the network, or the other side, which may change. */
static enum cr_error_kind kind_of(CURLcode code)
{
    switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_SSL_CERTPROBLEM:    /* our certificate or key */
    case CURLE_SSL_CACERT_BADFILE: /* our CA bundle */
    case CURLE_SSL_CIPHER:
        return CR_ERR_INVALID;
    case CURLE_FAILED_INIT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_UNKNOWN_OPTION:
    case CURLE_NOT_BUILT_IN:
        return CR_ERR_INTERNAL;
    default:
        return CR_ERR_TRANSIENT;
    }
}

/* What a person should look at, where curl's own words do not say it. */
static const char *hint_for(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return "the server's certificate is not trusted: ";
    case CURLE_SSL_CERTPROBLEM:
        return "the client certificate or its key cannot be used: ";
    case CURLE_SSL_CACERT_BADFILE:
        return "the CA bundle cannot be used: ";
    case CURLE_UNSUPPORTED_PROTOCOL: /* of the answer: the URL's was looked at before */
        return "the answer is not HTTP: ";
    case CURLE_BAD_CONTENT_ENCODING: /* or Transfer-Encoding, which libcurl 7.88 unpacks, asked or not */
        return "the answer is compressed in a way that nobody asked for: ";
    case CURLE_OUT_OF_MEMORY: /* then the program ends; what is left is libcurl 7.88's cap for a line */
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:
#endif
        return "a line of its headers is too long: ";
    case CURLE_GOT_NOTHING:
        return "no answer came: ";
    case CURLE_PARTIAL_FILE:
        return "the response was cut off: ";
    default:
        return "";
    }
}

static bool fail(const struct cr_http_exchange *x, CURLcode code, struct cr_error *err)
{
    const char *problem = x->problem[0] ? x->problem : curl_easy_strerror(code);
    return cr_error_set(err, kind_of(code), "%s: %s%s", cr_or_empty(x->head.origin), hint_for(code), problem);
}

/* libcurl sets CURLINFO_CONNECT_TIME_T (7.88) and CURLINFO_LOCAL_PORT (8.14) when the TLS handshake is done, too. */
static bool is_connected(const struct cr_http_exchange *x)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    return x->fd >= 0 && getpeername(x->fd, (struct sockaddr *)&peer, &len) == 0;
}

const char *cr_http_exchange_phase(const struct cr_http_exchange *x)
{
    curl_off_t secured = 0;
    curl_off_t first_byte = 0;
    curl_off_t sent = 0;
    curl_easy_getinfo(x->easy, CURLINFO_APPCONNECT_TIME_T, &secured);
    curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
    curl_easy_getinfo(x->easy, CURLINFO_STARTTRANSFER_TIME_T, &first_byte);
    if (first_byte)
        return "reading the response";
    if (sent)
        return "waiting for the response";
    if (secured)
        return "sending the request";
    return is_connected(x) ? "in the TLS handshake" : "connecting";
}

bool cr_http_exchange_over_cap(const struct cr_http_exchange *x, size_t cap, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "%s: the response is longer than the %zu bytes that are allowed",
                        x->head.origin, cap);
}

bool cr_http_answer_packed(const char *origin, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: the answer is compressed, which nobody asked for", origin);
}

bool cr_http_exchange_timed_out(const struct cr_http_exchange *x, int timeout_ms, struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_TRANSIENT, "%s: no answer within %d ms (%s)", x->head.origin, timeout_ms,
                        cr_http_exchange_phase(x));
}

/* A server that refuses a request without having read its body may end the HTTP/2 stream at once (RFC 9113, section
 * 8.1), and libcurl 7.88 then drops what was under way of the answer; one that resets the connection does
 * the same to HTTP/1.1 (CURLE_RECV_ERROR). The status has come, and says enough: a 401 to a write must not look like
 * trouble of the network. */
static bool is_cut_refusal(CURLcode result, int status)
{
    return status >= CR_HTTP_REFUSED &&
           (result == CURLE_PARTIAL_FILE || result == CURLE_HTTP2_STREAM || result == CURLE_RECV_ERROR);
}

bool cr_http_exchange_ended(const struct cr_http_exchange *x, CURLcode result, int status, struct cr_error *err)
{
    if (result == CURLE_ABORTED_BY_CALLBACK)
        return cr_error_set(err, CR_ERR_TRANSIENT, "not sent: the time to begin it is over");
    if (result != CURLE_OK && !is_cut_refusal(result, status))
        return fail(x, result, err);
    return status || /* curl takes headers that were cut off for a response */
           cr_error_set(err, CR_ERR_TRANSIENT, "%s: the response was cut off in its headers", x->head.origin);
}
