/* Private to pkg/kube: what lists, writes and watches need of a client. */
#ifndef CR_KUBE_CLIENT_INTERNAL_H
#define CR_KUBE_CLIENT_INTERNAL_H

#include "base/buffer.h"
#include "kube/auth.h"
#include "kube/client.h"
#include "kube/client_metrics.h"

/* One request. Everything is borrowed. */
struct cr_call {
    const char *method;
    const char *path;                   /* with the query */
    const struct cr_resource *resource; /* of a write; NULL: none that has a name here */
    const char *content_type;
    const char *body;
    bool secret; /* wipe both bodies */
    /* A member of the object that stays text, and where the answer goes that it lies in; NULL: none. */
    const char *apart;
    struct cr_buf *answer;
    struct cr_json_budget *budget; /* of the answer; NULL: that of one object */
    bool managed_fields;           /* the object keeps them */
};
/* The object that was answered, owned; with a second try after a 401. */
struct cr_json *cr_client_request(struct cr_client *client, const struct cr_call *call,
                                  struct cr_error *err) CR_MUST_USE;
/* ns, name: NULL when there is none to check. */
bool cr_client_check_target(const char *ns, const char *name, struct cr_error *err) CR_MUST_USE;

/* The pool of the watches' connections. */
struct cr_http_client *cr_client_streams(struct cr_client *client);
struct cr_auth *cr_client_auth(struct cr_client *client);
struct cr_loop *cr_client_loop(struct cr_client *client);
/* May be NULL. */
const struct cr_client_metrics *cr_client_metrics(const struct cr_client *client);

/* Appends "?key=value" or "&key=value", encoded. Nothing when value is NULL. */
void cr_query_add(struct cr_buf *path, const char *key, const char *value);

/* Secret data must not linger in freed memory. */
bool cr_resource_is_secret(const struct cr_resource *resource);

#endif
