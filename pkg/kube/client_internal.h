/* Private to pkg/kube: what watches need of a client. */
#ifndef CR_KUBE_CLIENT_INTERNAL_H
#define CR_KUBE_CLIENT_INTERNAL_H

#include "base/buffer.h"
#include "kube/auth.h"
#include "kube/client.h"

/* The pool of the watches' connections. */
struct cr_http_client *cr_client_streams(struct cr_client *client);
struct cr_auth *cr_client_auth(struct cr_client *client);

/* Appends "?key=value" or "&key=value", encoded. Nothing when value is NULL. */
void cr_query_add(struct cr_buf *path, const char *key, const char *value);

/* Secret data must not linger in freed memory. */
bool cr_resource_is_secret(const struct cr_resource *resource);

#endif
