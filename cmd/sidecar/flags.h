/* The sidecar's command line. */
#ifndef CERTROLL_SIDECAR_FLAGS_H
#define CERTROLL_SIDECAR_FLAGS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "net/tls_serving.h"

struct flags {
    const char *config;         /* borrowed from argv, as all texts here */
    const char *address;        /* "0": no page */
    const char *health_address; /* NULL: with the page */
    struct cr_tls_files files;  /* of address */
    const char *state_folder;   /* NULL: none */
    enum cr_log_level log_level;
    bool once;
    bool check;
    bool help;
    bool version;
};

bool flags_parse(int argc, char **argv, struct flags *flags, struct cr_error *err) CR_MUST_USE;
extern const char flags_help[];

#endif
