/* What was given on the command line, before defaults. Private to pkg/drain/flags*.c. */
#ifndef CR_DRAIN_FLAGS_INTERNAL_H
#define CR_DRAIN_FLAGS_INTERNAL_H

#include "base/flags.h"
#include "drain/flags.h"

enum cr_drain_dialect { CR_DRAIN_DIALECT_OWN, CR_DRAIN_DIALECT_CONTOUR, CR_DRAIN_DIALECT_GATEWAY };

/* Who knows a flag (its tag). */
enum {
    CR_DRAIN_FOR_SERVE = 1,
    CR_DRAIN_FOR_SHUTDOWN = 2,
    CR_DRAIN_FOR_INSTALL = 4,
    CR_DRAIN_FOR_DRAINS = CR_DRAIN_FOR_SERVE | CR_DRAIN_FOR_SHUTDOWN,
    CR_DRAIN_THEIRS = 8,    /* of no use but behind the word envoy */
    CR_DRAIN_CONTOURS = 16, /* only Contour has it, not Envoy Gateway */
    CR_DRAIN_GATEWAYS = 32,
};

enum { CR_DRAIN_NOT_GIVEN = -1 };

/* Times in milliseconds, and numbers: CR_DRAIN_NOT_GIVEN; texts: NULL. */
struct cr_drain_given {
    enum cr_drain_command command;
    enum cr_drain_dialect dialect;
    bool envoy; /* the word */
    const char *proxy;
    const char *admin_address;
    int admin_port;
    bool listeners;
    struct cr_strvec ignored_listeners;
    const char *pid_file;
    const char *process;
    const char *begin_url;
    const char *begin_method;
    const char *count_url;
    const char *count_metric;
    int64_t delay_ms;
    int64_t min_duration_ms;
    int64_t timeout_ms;
    int64_t interval_ms;
    int min_open;
    int64_t grace_ms;
    int64_t attempt_ms;
    int64_t listeners_first_ms; /* Envoy Gateway's --health-check-failure-delay */
    const char *address;
    int serve_port;
    const char *ready_file;
    int64_t ready_timeout_ms;
    const char *log_file;
    enum cr_log_level log_level;
    const char *install_to;
    bool help;
    bool version;
    unsigned project; /* the project of the first flag that only one of the two has */
    unsigned allowed; /* tags of the command that it is */
    int wrongs;
    struct cr_error wrong; /* the first */
};

/* For flags that do not say how to reach the proxy: its order and its counts fail, so that the time-out is waited for.
 */
extern const struct cr_drain_strategy cr_drain_unreachable;

extern const struct cr_flag cr_drain_flag_table[];
extern const size_t cr_drain_flag_table_len;

#endif
