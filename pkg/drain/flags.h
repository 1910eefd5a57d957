/* The shutdown manager's command line. In the library, since the operator reads the same in a pod's hook. */
#ifndef CR_DRAIN_FLAGS_H
#define CR_DRAIN_FLAGS_H

#include "base/cleanup.h"
#include "base/log.h"
#include "drain/rules.h"
#include "drain/strategy.h"

/* What "no time-out of its own" is: longer than any pod's grace period. */
enum { CR_DRAIN_UNBOUNDED_MS = 24 * 3600 * 1000 };

enum cr_drain_command {
    CR_DRAIN_COMMAND_NONE,     /* help, version */
    CR_DRAIN_COMMAND_SERVE,    /* "serve", "envoy shutdown-manager": /healthz, /shutdown, /metrics */
    CR_DRAIN_COMMAND_SHUTDOWN, /* "shutdown", "envoy shutdown": drains and ends */
    CR_DRAIN_COMMAND_INSTALL,  /* "install": copies the program to a shared volume */
};

struct cr_drain_flags {
    enum cr_drain_command command;
    const struct cr_drain_strategy *strategy;
    struct cr_drain_target target; /* texts borrowed from argv; ignored is owned */
    struct cr_drain_rules rules;
    int64_t grace_ms; /* --termination-grace-period; -1: not given */
    int64_t attempt_ms;
    const char *address;      /* where pages are served; NULL: nowhere */
    const char *ready_file;   /* written by shutdown when it is over; waited for by serve's pages; NULL: none */
    int64_t ready_timeout_ms; /* of that wait; -1: none of its own */
    bool waits_for_file;      /* as in Contour and Envoy Gateway: the pages wait for the file, and drain nothing */
    const char *install_to;   /* a folder */
    const char *log_file;     /* also writes its log there; NULL: standard error alone */
    enum cr_log_level log_level;
    bool help;
    bool version;
    struct cr_error ignored; /* of shutdown: what was wrong with its flags and not taken; kind NONE: nothing */
    char *made_address;      /* owned: address, and that of the target, where they were made of a port */
    char *made_admin_address;
};

/* argv as main has it: argv[0] is the program. A word "envoy" before the command makes it that of Contour or of Envoy
 * Gateway (by the name in argv[0]; else by the first flag that only one of them has; else Contour, whose manifests give
 * none), with their flags and defaults. Errors: Invalid. For the command shutdown nothing is an error that would end a
 * container's hook, and with it all its connections, at once: what is wrong is reported in out->ignored and the default
 * is taken; flags that do not say how to reach the proxy give a strategy that never succeeds, so that the time-out is
 * waited for. What stands behind "--" of install is read as the hook will get it, and what would be ignored there is an
 * error here. out is to be disposed of in any case. Pure. */
bool cr_drain_flags_parse(int argc, char **argv, struct cr_drain_flags *out, struct cr_error *err) CR_MUST_USE;
void cr_drain_flags_dispose(struct cr_drain_flags *flags);
CR_DEFINE_DISPOSE(cr_drain_flags, struct cr_drain_flags, cr_drain_flags_dispose)
extern const char cr_drain_flags_help[];

#endif
