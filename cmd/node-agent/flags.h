/* The node agent's command line. */
#ifndef CERTROLL_NODE_AGENT_FLAGS_H
#define CERTROLL_NODE_AGENT_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strvec.h"

struct flags {
    bool inspect; /* the command: print once what would be reported */
    bool json;
    const char *kubeconfig; /* borrowed from argv, as all texts; NULL: as kubectl finds it, or in-cluster */
    const char *context;
    const char *node_name; /* NULL: $NODE_NAME */
    const char *root;      /* "": the host's paths are ours */
    const char *proc;
    const char *manifests;       /* NULL: the kubelet's */
    const char *kubelet_version; /* NULL: the Node says it */
    struct cr_strvec allow_restart;
    struct cr_strvec kubelet_command;
    int64_t command_timeout_ms;
    int64_t step_deadline_ms;
    bool count_tokens;
    bool any_network;
    const char *metrics_address;
    const char *health_address; /* NULL: with the metrics */
    enum cr_log_level log_level;
    bool help;
    bool version;
};

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err) CR_MUST_USE;
void flags_dispose(struct flags *flags);
extern const char flags_help[];

#endif
