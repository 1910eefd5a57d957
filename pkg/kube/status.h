/* The API's Status (metav1.Status) and bare HTTP answers as errors. Private to pkg/kube.
 * Reasons: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#StatusReason */
#ifndef CR_KUBE_STATUS_H
#define CR_KUBE_STATUS_H

#include <stddef.h>

#include "base/error.h"
#include "codec/json.h"

/* An answer that is not 2xx. what: "GET /api/v1/pods". Always false. */
bool cr_status_from_response(const char *what, int http_status, int retry_after_ms, const char *body, size_t len,
                             struct cr_error *err);

/* The object of a watch's ERROR frame: its code takes the place of the HTTP status. Always false. */
bool cr_status_from_object(const char *what, const struct cr_json *status, struct cr_error *err);

#endif
