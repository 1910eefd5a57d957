/* The flags of all commands: ours, and those of the two programs that it replaces, so that their manifests go on
 * working. */
#include "drain/flags_internal.h"

#include "base/strings.h"

enum { OPEN_MAX = 1000000000, PORT_MAX = 65535, SOONEST_MS = 100 };

enum {
    SERVE = CR_DRAIN_FOR_SERVE,
    SHUTDOWN = CR_DRAIN_FOR_SHUTDOWN,
    INSTALL = CR_DRAIN_FOR_INSTALL,
    DRAINS = CR_DRAIN_FOR_DRAINS,
    ALL = SERVE | SHUTDOWN | INSTALL,
    CONTOUR = CR_DRAIN_CONTOURS,
    GATEWAY = CR_DRAIN_GATEWAYS,
    THEIRS = CR_DRAIN_THEIRS,
};

#define ROW(KIND, NAME, FIELD, TAG, ...)                                                                               \
    CR_FLAG(KIND, NAME, struct cr_drain_given, FIELD, .tag = (TAG)__VA_OPT__(, ) __VA_ARGS__)

/* Contour: cmd/contour/shutdownmanager.go; Envoy Gateway: internal/cmd/envoy.go. */
const struct cr_flag cr_drain_flag_table[] = {
    ROW(TEXT, "proxy", proxy, DRAINS),
    ROW(TEXT, "admin-address", admin_address, DRAINS | CONTOUR),
    ROW(NUMBER, "admin-port", admin_port, DRAINS | CONTOUR, .least = 1, .most = PORT_MAX),
    ROW(BOOL, "drain-listeners", listeners, DRAINS),
    ROW(TEXTS, "ignore-listener", ignored_listeners, DRAINS),
    ROW(TEXT, "pid-file", pid_file, DRAINS),
    ROW(TEXT, "process", process, DRAINS),
    ROW(TEXT, "begin-url", begin_url, DRAINS),
    ROW(TEXT, "begin-method", begin_method, DRAINS),
    ROW(TEXT, "count-url", count_url, DRAINS),
    ROW(TEXT, "count-metric", count_metric, DRAINS),
    ROW(SECONDS, "drain-delay", delay_ms, DRAINS | CONTOUR),
    ROW(SECONDS, "min-drain-duration", min_duration_ms, DRAINS | GATEWAY),
    ROW(SECONDS, "check-delay", min_duration_ms, DRAINS | CONTOUR | THEIRS),
    ROW(SECONDS, "drain-timeout", timeout_ms, DRAINS | GATEWAY, .least = SOONEST_MS),
    ROW(SECONDS, "check-interval", interval_ms, DRAINS | CONTOUR, .least = SOONEST_MS),
    ROW(NUMBER, "min-open-connections", min_open, DRAINS | CONTOUR, .most = OPEN_MAX),
    ROW(NUMBER, "exit-at-connections", min_open, DRAINS | GATEWAY | THEIRS, .most = OPEN_MAX),
    ROW(SECONDS, "health-check-failure-delay", listeners_first_ms, DRAINS | GATEWAY | THEIRS),
    ROW(SECONDS, "termination-grace-period", grace_ms, DRAINS, .least = 1000),
    ROW(SECONDS, "attempt-timeout", attempt_ms, DRAINS, .least = SOONEST_MS),
    ROW(TEXT, "address", address, DRAINS),
    ROW(NUMBER, "serve-port", serve_port, SERVE | CONTOUR | THEIRS, .least = 1, .most = PORT_MAX),
    ROW(TEXT, "ready-file", ready_file, DRAINS | CONTOUR),
    ROW(SECONDS, "ready-timeout", ready_timeout_ms, SERVE | GATEWAY),
    ROW(TEXT, "log-file", log_file, DRAINS),
    ROW(LOG_LEVEL, "log-level", log_level, ALL),
    ROW(TEXT, "to", install_to, INSTALL),
    ROW(SWITCH, "version", version, ALL),
    ROW(SWITCH, "help", help, ALL, .letter = 'h'),
    {.name = "log-format", .kind = CR_FLAG_IGNORED, .tag = DRAINS | THEIRS}, /* Contour's; JSON it is */
};

const size_t cr_drain_flag_table_len = cr_array_len(cr_drain_flag_table);
