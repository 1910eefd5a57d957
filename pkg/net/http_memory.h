/* libcurl's memory holds tokens, keys and Secrets, but it frees it as it is: here it is wiped. */
#ifndef CR_NET_HTTP_MEMORY_H
#define CR_NET_HTTP_MEMORY_H

/* Initialises libcurl, once however often it is called. Any thread. */
void cr_http_global_init(void);

#endif
