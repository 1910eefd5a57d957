/* What is kept in memory of the objects of the control plane, which are many: the decoded content of a report, and a
 * name and digests of everything else. Keys and tokens are wiped. Projections of informers (runtime/informer.h): loop
 * thread. */
#ifndef CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_PROJECT_H
#define CR_CONTROLPLANE_CONTROLLER_CONTROL_PLANE_PROJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/node_report.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "pki/digest.h"
#include "runtime/store.h"

/* extra of a NodeCertificateReport. */
struct cr_kept_report {
    struct cr_node_report report;
    char content[CR_SHA256_HEX]; /* digest of all but the time of the last look: agents renew that all the time */
};

/* extra of a kube-root-ca.crt, and of a token Secret. */
struct cr_kept_trust {
    bool readable;           /* it has a ca.crt, and that is a bundle */
    struct cr_strvec prints; /* with readable: its CAs' fingerprints, sorted, each once */
    bool immutable;
    bool unreadable; /* too large: nothing else is known of it */
    /* Of a token Secret: */
    char *key; /* the one that signed its token; NULL: no token, or not known */
    bool has_token;
    bool deleting;
};

/* As cr_informer_options.project. One that is no report is not kept. */
bool cr_control_plane_project_report(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
bool cr_control_plane_project_root_ca(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
bool cr_control_plane_project_token_secret(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
/* Of a kube-root-ca.crt or a token Secret, as cr_informer_options.project_unreadable. */
void cr_control_plane_project_unreadable(void *arg, struct cr_snapshot *snapshot);
/* Keep the identity. A Node that is labelled as one of the control plane, and a Namespace that is being deleted, have
 * an extra. */
bool cr_control_plane_project_node(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);
bool cr_control_plane_project_namespace(void *arg, struct cr_json *json, struct cr_snapshot *snapshot);

#endif
