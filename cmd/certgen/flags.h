/* certgen's command line. */
#ifndef CERTROLL_CERTGEN_FLAGS_H
#define CERTROLL_CERTGEN_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strvec.h"

struct flags {
    const char *profile; /* borrowed from argv, as all texts here; NULL: by config */
    const char *config;
    const char *kubeconfig; /* NULL: as kubectl finds it, or in-cluster */
    const char *context;
    const char *ns; /* NULL: to be found */
    const char *cluster_domain;
    const char *name_suffix;
    const char *local;   /* NULL: the cluster */
    int64_t lifetime_ms; /* 0: as the set has it */
    bool overwrite;
    const char *rotation_id; /* NULL: the Job's */
    bool staged;
    int64_t settle_ms; /* 0: not given */
    bool no_webhook;
    bool no_restart;
    struct cr_strvec restarts; /* empty: as the set has it */
    int64_t timeout_ms;
    bool help;
    bool version;
};

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err) CR_MUST_USE;
void flags_dispose(struct flags *flags);
extern const char flags_help[];

#endif
