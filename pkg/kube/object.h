/* Typed views of Kubernetes objects: borrowed reads of the few fields that are used. NULL-safe. */
#ifndef CR_KUBE_OBJECT_H
#define CR_KUBE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/json.h"

/* Says which program made an object. Kubernetes, "Recommended Labels". */
#define CR_MANAGED_BY_LABEL "app.kubernetes.io/managed-by"

/* JSON values of one object that are read, without metadata.managedFields: of what API servers store (etcd takes
 * 1.5 MiB) every second byte may be a value ("0,"), and nothing that people write has a tenth of these. */
enum { CR_OBJECT_VALUES_MAX = 100 * 1000 };

const char *cr_obj_name(const struct cr_json *object);
const char *cr_obj_namespace(const struct cr_json *object);
const char *cr_obj_uid(const struct cr_json *object);
const char *cr_obj_resource_version(const struct cr_json *object);
int64_t cr_obj_generation(const struct cr_json *object);
int64_t cr_obj_created_ms(const struct cr_json *object); /* wall, the API server's clock; 0: not known */
bool cr_obj_deleting(const struct cr_json *object);
const char *cr_obj_annotation(const struct cr_json *object, const char *name);
/* The controlling owner (controller: true), or NULL. */
const struct cr_json *cr_obj_controller(const struct cr_json *object);
/* "ns/name", owned. */
char *cr_obj_key(const struct cr_json *object);

/* Pods. */
const char *cr_pod_ip(const struct cr_json *pod);
const char *cr_pod_phase(const struct cr_json *pod);
bool cr_pod_ready(const struct cr_json *pod);
/* Running or pending and not being deleted. */
bool cr_pod_active(const struct cr_json *pod);
/* The latest start among the containers that run now (a restarted container read its files again), else
 * status.startTime; wall ms, 0 when nothing started. Kubernetes gives whole seconds; the milliseconds are the number of
 * restarts of these containers, so that two starts within one second differ. */
int64_t cr_pod_started_ms(const struct cr_json *pod);

#endif
