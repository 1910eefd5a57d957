#include "drain/flags.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "drain/flags_internal.h"
#include "wire/address.h"

#define PROGRAM "certroll-shutdown-manager"

static void given_dispose(struct cr_drain_given *given)
{
    cr_strvec_dispose(&given->ignored_listeners);
}

CR_DEFINE_DISPOSE(cr_drain_given, struct cr_drain_given, given_dispose)

/* Counts as wrong, and as not given. */
static void given_ignore(struct cr_drain_given *given, const struct cr_error *wrong)
{
    if (!given->wrongs++)
        given->wrong = *wrong;
}

static void on_wrong(void *out, const struct cr_error *wrong)
{
    given_ignore(out, wrong);
}

/* --- the first look: which command, and the flags of which program --- */

static enum cr_drain_command command_of(const char *word, bool envoy)
{
    if (cr_streq(word, "shutdown"))
        return CR_DRAIN_COMMAND_SHUTDOWN;
    if (cr_streq(word, envoy ? "shutdown-manager" : "serve"))
        return CR_DRAIN_COMMAND_SERVE;
    return cr_streq(word, "install") && !envoy ? CR_DRAIN_COMMAND_INSTALL : CR_DRAIN_COMMAND_NONE;
}

static bool on_word(void *out, const char *word, struct cr_error *err)
{
    struct cr_drain_given *given = out;
    if (given->command != CR_DRAIN_COMMAND_NONE)
        return cr_error_set(err, CR_ERR_INVALID, "unexpected argument '%s'; see " PROGRAM " --help", word);
    if (cr_streq(word, "envoy") && !given->envoy) {
        given->envoy = true;
        return true;
    }
    given->command = command_of(word, given->envoy);
    return given->command != CR_DRAIN_COMMAND_NONE ||
           cr_error_set(err, CR_ERR_INVALID, "unknown command '%s': there are %s; see " PROGRAM " --help", word,
                        given->envoy ? "envoy shutdown-manager and envoy shutdown" : "serve, shutdown and install");
}

static bool note_project(void *out, const struct cr_flag *flag, struct cr_error *err)
{
    struct cr_drain_given *given = out;
    (void)err;
    if (!given->project)
        given->project = flag->tag & (CR_DRAIN_CONTOURS | CR_DRAIN_GATEWAYS);
    return true;
}

static enum cr_drain_dialect dialect_of(const char *program, const struct cr_drain_given *given)
{
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;
    if (!given->envoy)
        return CR_DRAIN_DIALECT_OWN;
    if (cr_streq(name, "envoy-gateway"))
        return CR_DRAIN_DIALECT_GATEWAY;
    if (cr_streq(name, "contour"))
        return CR_DRAIN_DIALECT_CONTOUR;
    return given->project & CR_DRAIN_GATEWAYS ? CR_DRAIN_DIALECT_GATEWAY : CR_DRAIN_DIALECT_CONTOUR;
}

static const struct cr_drain_given nothing = {
    .admin_port = CR_DRAIN_NOT_GIVEN,
    .delay_ms = CR_DRAIN_NOT_GIVEN,
    .min_duration_ms = CR_DRAIN_NOT_GIVEN,
    .timeout_ms = CR_DRAIN_NOT_GIVEN,
    .interval_ms = CR_DRAIN_NOT_GIVEN,
    .min_open = CR_DRAIN_NOT_GIVEN,
    .grace_ms = CR_DRAIN_NOT_GIVEN,
    .attempt_ms = CR_DRAIN_NOT_GIVEN,
    .listeners_first_ms = CR_DRAIN_NOT_GIVEN,
    .serve_port = CR_DRAIN_NOT_GIVEN,
    .ready_timeout_ms = CR_DRAIN_NOT_GIVEN,
    .log_level = CR_LOG_INFO,
};

static void look(int argc, char **argv, struct cr_drain_given *out, int *rest)
{
    const struct cr_flags scout = {PROGRAM, cr_drain_flag_table, cr_drain_flag_table_len,
                                   on_word, note_project,        on_wrong};
    *out = nothing;
    (void)!cr_flags_parse(&scout, argc, argv, out, rest, NULL);
    out->dialect = dialect_of(argc > 0 ? argv[0] : NULL, out);
}

/* --- the second: with what is allowed there --- */

static unsigned allowed_of(const struct cr_drain_given *given)
{
    unsigned theirs = given->envoy ? CR_DRAIN_THEIRS : 0;
    switch (given->command) {
    case CR_DRAIN_COMMAND_SERVE:
        return CR_DRAIN_FOR_SERVE | theirs;
    case CR_DRAIN_COMMAND_SHUTDOWN:
        return CR_DRAIN_FOR_SHUTDOWN | theirs;
    case CR_DRAIN_COMMAND_INSTALL:
        return CR_DRAIN_FOR_INSTALL;
    default:
        return ~0U;
    }
}

static bool is_known_here(void *out, const struct cr_flag *flag, struct cr_error *err)
{
    const struct cr_drain_given *given = out;
    unsigned commands = CR_DRAIN_FOR_DRAINS | CR_DRAIN_FOR_INSTALL;
    if ((flag->tag & CR_DRAIN_THEIRS) && !(given->allowed & CR_DRAIN_THEIRS))
        return cr_error_set(err, CR_ERR_INVALID,
                            "--%s is Contour's or Envoy Gateway's: it is understood behind the word envoy", flag->name);
    if (flag->tag & commands & given->allowed)
        return true;
    const char *owner = "install";
    if (flag->tag & CR_DRAIN_FOR_SHUTDOWN)
        owner = "serve and shutdown";
    else if (flag->tag & CR_DRAIN_FOR_SERVE)
        owner = "serve";
    return cr_error_set(err, CR_ERR_INVALID, "--%s is of no use here: it is a flag of %s", flag->name, owner);
}

/* *rest: as cr_flags_parse. For shutdown, what is wrong is kept and no error. */
static bool given_parse(int argc, char **argv, struct cr_drain_given *out, int *rest, struct cr_error *err)
{
    CR_CLEANUP(cr_drain_given) struct cr_drain_given seen;
    look(argc, argv, &seen, rest);
    bool lenient = seen.command == CR_DRAIN_COMMAND_SHUTDOWN;
    const struct cr_flags exact = {PROGRAM, cr_drain_flag_table, cr_drain_flag_table_len,
                                   on_word, is_known_here,       lenient ? on_wrong : NULL};
    *out = nothing;
    out->dialect = seen.dialect;
    out->allowed = allowed_of(&seen);
    if (seen.help || seen.version) {
        out->help = seen.help;
        out->version = seen.version;
        return true;
    }
    if (!cr_flags_parse(&exact, argc, argv, out, rest, err))
        return false;
    return out->command != CR_DRAIN_COMMAND_NONE ||
           cr_error_set(err, CR_ERR_INVALID,
                        "a command is missing: serve, shutdown or install; see " PROGRAM " --help");
}

/* What a project, or we, take where nothing is given. */
struct defaults {
    const char *admin_address; /* of Envoy */
    int64_t min_duration_ms;
    int64_t interval_ms;
    int64_t timeout_ms; /* without a grace period */
    const char *serve_address;
    const char *ready_file;
    int64_t ready_timeout_ms;
};

enum { TIMEOUT_MS = 25000, SPARE_MS = 5000, ATTEMPT_MS = 2000, NONE = -1 };

static const struct defaults all_defaults[] = {
    /* Kubernetes' grace period is 30s where a pod gives none. */
    [CR_DRAIN_DIALECT_OWN] = {"127.0.0.1:9901", 5000, 1000, TIMEOUT_MS, ":8090", NULL, NONE},
    /* It waits for ever: a time-out that the user did not give would cut connections that it lets end. */
    [CR_DRAIN_DIALECT_CONTOUR] = {"/admin/admin.sock", 0, 5000, CR_DRAIN_UNBOUNDED_MS, ":8090", "/admin/ok", NONE},
    [CR_DRAIN_DIALECT_GATEWAY] = {"localhost:19000", 10000, 1000, 60000, ":19002", "/tmp/shutdown-ready", 610000},
};

static const struct defaults *defaults_of(const struct cr_drain_given *given)
{
    return &all_defaults[given->dialect];
}

static int64_t given_or(int64_t given, int64_t otherwise)
{
    return given != CR_DRAIN_NOT_GIVEN ? given : otherwise;
}

static const char *text_or(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

/* --- the proxy --- */

/* For shutdown what is wrong is kept, and true. */
static bool settle_for(struct cr_drain_given *given, const struct cr_error *wrong, struct cr_error *err)
{
    if (given->command != CR_DRAIN_COMMAND_SHUTDOWN)
        return cr_error_set(err, wrong->kind, "%s", wrong->text);
    given_ignore(given, wrong);
    return true;
}

static bool find_strategy(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    struct cr_error wrong = {0};
    const char *name = text_or(given->proxy, "envoy");
    out->strategy = cr_drain_strategy_find(name, &wrong);
    if (out->strategy)
        return true;
    cr_error_wrap(&wrong, "--proxy");
    out->strategy = &cr_drain_unreachable;
    return settle_for(given, &wrong, err);
}

/* Another one is not tried in the place of a wrong one: on the node's network it may be another pod's proxy. */
static bool check_admin(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    struct cr_error wrong = {0};
    struct cr_address ignored;
    if (!out->target.address || cr_address_parse(out->target.address, &ignored, &wrong))
        return true;
    cr_error_wrap(&wrong, "--admin-address");
    out->strategy = &cr_drain_unreachable;
    return settle_for(given, &wrong, err);
}

/* "127.0.0.1:PORT", where a port is all that was given. */
static bool choose_admin(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    struct cr_error wrong = {0};
    bool own = given->dialect == CR_DRAIN_DIALECT_OWN;
    out->target.address = given->admin_address;
    if (given->admin_port != CR_DRAIN_NOT_GIVEN && own && given->admin_address) {
        cr_error_set(&wrong, CR_ERR_INVALID, "give either --admin-address or --admin-port");
        return settle_for(given, &wrong, err);
    }
    /* Contour has not read its own --admin-port since 1.12; its address is a socket. */
    if (given->admin_port != CR_DRAIN_NOT_GIVEN && own) {
        out->made_admin_address = cr_asprintf("127.0.0.1:%d", given->admin_port);
        out->target.address = out->made_admin_address;
    }
    if (!out->target.address && out->strategy == cr_drain_strategy_find("envoy", NULL))
        out->target.address = defaults_of(given)->admin_address;
    return check_admin(given, out, err);
}

static bool aim(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    struct cr_drain_target *target = &out->target;
    struct cr_error wrong = {0};
    *target = (struct cr_drain_target){
        /* Envoy Gateway fails the health check later; a drain that begins with the listeners needs it no more. */
        .listeners = given->listeners || given->listeners_first_ms > 0,
        .pid_file = given->pid_file,
        .process = given->process,
        .begin_url = given->begin_url,
        .begin_method = text_or(given->begin_method, "POST"),
        .count_url = given->count_url,
        .count_metric = given->count_metric,
    };
    cr_strvec_copy(&target->ignored, &given->ignored_listeners);
    if (!find_strategy(given, out, err) || !choose_admin(given, out, err))
        return false;
    if (out->strategy->prepare(target, &wrong))
        return true;
    out->strategy = &cr_drain_unreachable;
    return settle_for(given, &wrong, err);
}

/* --- times --- */

/* The part of the grace period for the drain, so that the kubelet still has some when the drain is over. */
static int64_t within(int64_t grace_ms)
{
    return grace_ms > 2 * SPARE_MS ? grace_ms - SPARE_MS : grace_ms / 2;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void fill_rules(const struct cr_drain_given *given, struct cr_drain_rules *rules)
{
    const struct defaults *defaults = defaults_of(given);
    bool has_grace = given->grace_ms != CR_DRAIN_NOT_GIVEN;
    *rules = (struct cr_drain_rules){
        .delay_ms = given_or(given->delay_ms, 0),
        .timeout_ms = given_or(given->timeout_ms, has_grace ? within(given->grace_ms) : defaults->timeout_ms),
        .interval_ms = given_or(given->interval_ms, defaults->interval_ms),
        .min_open = given->min_open == CR_DRAIN_NOT_GIVEN ? 0 : (uint64_t)given->min_open,
    };
    /* A default gives way to what was given. */
    int64_t usual_ms = least_of(defaults->min_duration_ms, (rules->timeout_ms - rules->delay_ms) / 2);
    rules->min_duration_ms = given_or(given->min_duration_ms, usual_ms > 0 ? usual_ms : 0);
}

/* Into what there is: the end first, since the kubelet keeps to it; then there is time left for connections. */
static void clamp(struct cr_drain_rules *rules, int64_t grace_ms)
{
    if (rules->timeout_ms >= grace_ms)
        rules->timeout_ms = within(grace_ms);
    if (rules->delay_ms + rules->min_duration_ms < rules->timeout_ms)
        return;
    rules->delay_ms = least_of(rules->delay_ms, rules->timeout_ms / 4);
    rules->min_duration_ms = least_of(rules->min_duration_ms, rules->timeout_ms / 2);
}

static bool set_times(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    struct cr_error wrong = {0};
    out->grace_ms = given->grace_ms;
    out->attempt_ms = given_or(given->attempt_ms, ATTEMPT_MS);
    fill_rules(given, &out->rules);
    int64_t grace_ms = given_or(given->grace_ms, INT64_MAX);
    if (cr_drain_rules_check(&out->rules, grace_ms, &wrong))
        return true;
    clamp(&out->rules, grace_ms);
    return settle_for(given, &wrong, err);
}

/* --- pages and files --- */

static void choose_address(const struct cr_drain_given *given, struct cr_drain_flags *out)
{
    bool serves = given->command == CR_DRAIN_COMMAND_SERVE;
    out->address = text_or(given->address, serves ? defaults_of(given)->serve_address : NULL);
    if (serves && !given->address && given->serve_port != CR_DRAIN_NOT_GIVEN) {
        out->made_address = cr_asprintf(":%d", given->serve_port);
        out->address = out->made_address;
    }
    if (cr_streq(out->address, "0"))
        out->address = NULL;
}

static bool set_pages(const struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    const struct defaults *defaults = defaults_of(given);
    bool serves = given->command == CR_DRAIN_COMMAND_SERVE;
    choose_address(given, out);
    out->ready_file = text_or(given->ready_file, defaults->ready_file);
    out->ready_timeout_ms = given_or(given->ready_timeout_ms, defaults->ready_timeout_ms);
    out->waits_for_file = serves && given->dialect != CR_DRAIN_DIALECT_OWN;
    out->log_file = text_or(given->log_file, serves ? NULL : "/proc/1/fd/2");
    if (cr_streq(out->log_file, "none"))
        out->log_file = NULL;
    return !serves || out->address || cr_error_set(err, CR_ERR_INVALID, "serve needs an --address to serve at");
}

/* --- install --- */

/* The hook has the program's name, "shutdown" where that was left out, and what stands behind "--". */
static bool check_hook(int argc, char **argv, struct cr_error *err)
{
    static char program[] = "certroll-shutdown-manager";
    static char word[] = "shutdown";
    cr_autofree char **hook = cr_calloc((size_t)argc + 3, sizeof *hook);
    CR_CLEANUP(cr_drain_flags) struct cr_drain_flags flags;
    int len = 0;
    hook[len++] = program;
    if (!argc || (!cr_streq(argv[0], word) && !cr_streq(argv[0], "envoy")))
        hook[len++] = word;
    for (int i = 0; i < argc; i++)
        hook[len++] = argv[i];
    if (!cr_drain_flags_parse(len, hook, &flags, err))
        return cr_error_wrap(err, "the flags of the hook, behind --");
    if (flags.command == CR_DRAIN_COMMAND_SHUTDOWN && flags.ignored.kind == CR_ERR_NONE)
        return true;
    return cr_error_set(err, CR_ERR_INVALID, "the flags of the hook, behind --: %s",
                        flags.ignored.kind == CR_ERR_NONE ? "they are not those of shutdown" : flags.ignored.text);
}

static bool set_install(const struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    out->install_to = given->install_to;
    return cr_starts_with(given->install_to, "/") ||
           cr_error_set(err, CR_ERR_INVALID, "install needs --to and the absolute path of a folder");
}

/* --- all --- */

static void report_ignored(const struct cr_drain_given *given, struct cr_drain_flags *out)
{
    if (given->wrongs > 1)
        cr_error_set(&out->ignored, CR_ERR_INVALID, "%s; and %d more", given->wrong.text, given->wrongs - 1);
    else
        out->ignored = given->wrong;
}

/* What stands behind "--" is for install alone. */
static bool check_rest(struct cr_drain_given *given, int len, char **rest, struct cr_error *err)
{
    struct cr_error wrong = {0};
    if (!len)
        return true;
    if (given->command == CR_DRAIN_COMMAND_INSTALL)
        return check_hook(len, rest, err);
    cr_error_set(&wrong, CR_ERR_INVALID, "unexpected argument '%s' behind --", rest[0]);
    return settle_for(given, &wrong, err);
}

static bool resolve(struct cr_drain_given *given, struct cr_drain_flags *out, struct cr_error *err)
{
    out->command = given->command;
    out->log_level = given->log_level;
    if (given->command == CR_DRAIN_COMMAND_INSTALL)
        return set_install(given, out, err);
    if (!aim(given, out, err) || !set_times(given, out, err) || !set_pages(given, out, err))
        return false;
    report_ignored(given, out);
    return true;
}

bool cr_drain_flags_parse(int argc, char **argv, struct cr_drain_flags *out, struct cr_error *err)
{
    CR_CLEANUP(cr_drain_given) struct cr_drain_given given;
    int rest = argc;
    *out = (struct cr_drain_flags){.grace_ms = NONE, .ready_timeout_ms = NONE, .log_level = CR_LOG_INFO};
    if (!given_parse(argc, argv, &given, &rest, err))
        return false;
    out->help = given.help;
    out->version = given.version;
    if (given.help || given.version)
        return true;
    return check_rest(&given, argc - rest, argv + rest, err) && resolve(&given, out, err);
}

void cr_drain_flags_dispose(struct cr_drain_flags *flags)
{
    cr_strvec_dispose(&flags->target.ignored);
    free(flags->made_address);
    free(flags->made_admin_address);
}
