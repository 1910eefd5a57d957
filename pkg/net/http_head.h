/* The head of a request: what libcurl is to send, and where. Private to pkg/net. */
#ifndef CR_NET_HTTP_HEAD_H
#define CR_NET_HTTP_HEAD_H

#include <curl/curl.h>

#include "net/http.h"

struct cr_http_identity;

struct cr_http_head {
    CURLU *url;
    struct curl_slist *lines;      /* "Name: value"; "Name:" is not to be sent, whatever libcurl would say */
    struct curl_slist *connect_to; /* CURLOPT_CONNECT_TO; NULL: where the URL points to */
    char *origin;                  /* "GET https://host:port", for error texts: paths and queries may be long */
    bool https;
};

/* All that does not depend on the credentials. Invalid: a request that can never be sent. Any thread. */
bool cr_http_head_init(struct cr_http_head *head, const struct cr_http_request *request,
                       struct cr_error *err) CR_MUST_USE;
/* With the name that the identity says its server has. Once. */
bool cr_http_head_use(struct cr_http_head *head, const struct cr_http_identity *identity,
                      struct cr_error *err) CR_MUST_USE;
void cr_http_head_dispose(struct cr_http_head *head);

#endif
