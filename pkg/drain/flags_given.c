#include <stdint.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "drain/flags_internal.h"

#define PROGRAM "certroll-shutdown-manager"

void cr_drain_given_dispose(struct cr_drain_given *given)
{
    cr_strvec_dispose(&given->ignored_listeners);
}

void cr_drain_given_ignore(struct cr_drain_given *given, const struct cr_error *wrong)
{
    if (!given->wrongs++)
        given->wrong = *wrong;
}

static void on_wrong(void *out, const struct cr_error *wrong)
{
    cr_drain_given_ignore(out, wrong);
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

bool cr_drain_given_parse(int argc, char **argv, struct cr_drain_given *out, int *rest, struct cr_error *err)
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
