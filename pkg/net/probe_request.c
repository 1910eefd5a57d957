#include "net/probe_request.h"

#include <ctype.h>
#include <string.h>

#include "base/strings.h"

static const char http1[] = "OPTIONS / HTTP/1.0\r\nUser-Agent: certroll\r\n\r\n";
/* Connection preface and an empty SETTINGS frame. */
static const char http2[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                            "\0\0\0\4\0\0\0\0\0";

const char *cr_probe_request_bytes(enum cr_probe_request request, size_t *len)
{
    *len = request == CR_PROBE_HTTP2 ? sizeof http2 - 1 : sizeof http1 - 1;
    return request == CR_PROBE_HTTP2 ? http2 : http1;
}

const unsigned char *cr_probe_request_alpn(enum cr_probe_request request, unsigned *len)
{
    static const unsigned char h2[] = {2, 'h', '2'};
    *len = request == CR_PROBE_HTTP2 ? sizeof h2 : 0;
    return request == CR_PROBE_HTTP2 ? h2 : NULL;
}

/* 0: this is no status line; -1: it may become one. */
static int status_of(const char *data, size_t len)
{
    static const char beginning[] = "HTTP/1.";
    enum { AT = sizeof beginning - 1 + 2, WHOLE = AT + 3 };
    size_t known = len < sizeof beginning - 1 ? len : sizeof beginning - 1;
    if (memcmp(data, beginning, known) != 0)
        return 0;
    if (len < WHOLE)
        return -1;
    int status = 0;
    for (size_t i = AT; i < WHOLE; i++) {
        if (!isdigit((unsigned char)data[i]))
            return 0;
        status = status * 10 + (data[i] - '0');
    }
    return status;
}

bool cr_probe_answer_read(const char *data, size_t len, struct cr_probe_answer *answer)
{
    enum { BAD_REQUEST = 400 };
    static const char refused[] = "The SSL certificate error"; /* ngx_http_special_response.c, 495 */
    int status = len ? status_of(data, len) : -1;
    answer->data = len > 0;
    answer->status = status > 0 ? status : 0;
    answer->of_certificate = status == BAD_REQUEST && memmem(data, len, refused, sizeof refused - 1);
    return status >= 0 && (status != BAD_REQUEST || answer->of_certificate);
}
