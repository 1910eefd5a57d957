/* certroll-certgen: flags and wiring only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/strings.h"
#include "certgen/job.h"
#include "certgen/profiles.h"
#include "codec/yaml.h"
#include "flags.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/own_namespace.h"
#include "sys/file.h"
#include "sys/loop.h"
#include "sys/process.h"

#define USER_AGENT "certroll-certgen/" CERTROLL_VERSION " (linux/" CERTROLL_ARCH ")"

enum { EXIT_NOT_DONE = 1, EXIT_USAGE = 2, REQUEST_MS = 30 * 1000 };

static void say(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "certgen: %s\n", line);
}

/* --- which Secrets --- */

/* Where the projects' own jobs look, and where their manifests install them. */
static const struct usual_place {
    const char *profile, *variable, *ns;
} usual_places[] = {{"envoy-gateway", "ENVOY_GATEWAY_NAMESPACE", "envoy-gateway-system"},
                    {"contour", "CONTOUR_NAMESPACE", "projectcontour"}};

static const struct usual_place *usual_place(const char *profile)
{
    for (size_t i = 0; profile && i < cr_array_len(usual_places); i++)
        if (cr_streq(usual_places[i].profile, profile))
            return &usual_places[i];
    return NULL;
}

static bool check_profile(const struct flags *flags, struct cr_error *err)
{
    return !flags->profile || cr_certgen_profile_find(flags->profile) ||
           cr_error_set(err, CR_ERR_INVALID, "--profile '%s' is neither envoy-gateway nor contour", flags->profile);
}

/* *ns: owned. */
static bool find_namespace(const struct flags *flags, char **ns, struct cr_error *err)
{
    const struct usual_place *usual = usual_place(flags->profile);
    const char *named = flags->ns ? flags->ns : usual ? getenv(usual->variable) : NULL;
    *ns = cr_strdup_or_null(named && *named ? named : NULL);
    if (!*ns && !cr_own_namespace(ns, err))
        return false;
    if (!*ns)
        *ns = cr_strdup_or_null(usual ? usual->ns : flags->local ? "default" : NULL);
    return (*ns && cr_is_namespace_name(*ns)) ||
           cr_error_set(err, CR_ERR_INVALID, *ns ? "'%s' is no name of a namespace" : "give --namespace", *ns);
}

static struct cr_certgen_set *read_set(const struct flags *flags, const struct cr_certgen_place *place,
                                       struct cr_error *err)
{
    if (flags->profile) {
        const struct cr_certgen_profile *profile = cr_certgen_profile_find(flags->profile);
        return cr_certgen_set_read(flags->profile, profile->text, *profile->len, place, err);
    }
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    if (!cr_file_read(flags->config, CR_YAML_MAX_BYTES, &text, err))
        return NULL;
    return cr_certgen_set_read(flags->config, cr_buf_text(&text), text.len, place, err);
}

static struct cr_certgen_set *make_set(const struct flags *flags, struct cr_error *err)
{
    cr_autofree char *ns = NULL;
    if (!check_profile(flags, err) || !find_namespace(flags, &ns, err))
        return NULL;
    const char *domain = flags->cluster_domain ? flags->cluster_domain : getenv("KUBERNETES_CLUSTER_DOMAIN");
    const struct cr_certgen_place place = {
        .ns = ns, .cluster_domain = domain && *domain ? domain : "cluster.local", .name_suffix = flags->name_suffix};
    struct cr_certgen_set *set = read_set(flags, &place, err);
    if (!set)
        return NULL;
    if (flags->lifetime_ms)
        set->lifetime_ms = flags->lifetime_ms;
    if (flags->restarts.len || flags->no_restart) {
        cr_strvec_dispose(&set->restarts);
        cr_strvec_copy(&set->restarts, &flags->restarts);
    }
    if (flags->no_webhook) {
        free(set->webhook);
        set->webhook = NULL;
    }
    return set;
}

/* --- running --- */

static struct cr_certgen_job job_of(const struct flags *flags, const struct cr_certgen_set *set)
{
    return (struct cr_certgen_job){.set = set,
                                   .overwrite = flags->overwrite,
                                   .staged = flags->staged,
                                   .settle_ms = flags->settle_ms,
                                   .timeout_ms = flags->timeout_ms,
                                   .say = say};
}

static bool run_files(const struct flags *flags, const struct cr_certgen_set *set, struct cr_error *err)
{
    CR_CLEANUP(cr_certgen_store) struct cr_certgen_store *store = cr_certgen_store_files(flags->local, set);
    struct cr_certgen_job job = job_of(flags, set);
    job.store = store;
    return cr_certgen_job_run(&job, err);
}

/* The pods of one Job are one rotation. In stages the next CA lives in a Secret, so none is needed. */
static const char *rotation_of(const struct flags *flags)
{
    const char *uid = getenv("JOB_UID");
    if (!flags->overwrite || flags->staged)
        return NULL;
    return flags->rotation_id ? flags->rotation_id : uid && *uid ? uid : NULL;
}

/* One request after the other, in this thread: the loop never runs. */
static bool run_kube(const struct flags *flags, const struct cr_certgen_set *set, struct cr_error *err)
{
    CR_CLEANUP(cr_kube_config)
    struct cr_kube_config *config = cr_kube_config_load(flags->kubeconfig, flags->context, err);
    if (!config)
        return false;
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client) struct cr_client *base = cr_client_new(loop, cr_steal(&config), USER_AGENT);
    CR_CLEANUP(cr_client) struct cr_client *client = cr_client_new_dedicated(base, REQUEST_MS);
    CR_CLEANUP(cr_certgen_store) struct cr_certgen_store *store = cr_certgen_store_kube(client, set);
    struct cr_certgen_job job = job_of(flags, set);
    job.store = store;
    job.client = client;
    job.rotation = rotation_of(flags);
    return cr_certgen_job_run(&job, err);
}

/* The exit status; err is set unless it is 0. */
static int run(const struct flags *flags, struct cr_error *err)
{
    CR_CLEANUP(cr_certgen_set) struct cr_certgen_set *set = make_set(flags, err);
    if (!set)
        return EXIT_USAGE;
    bool done = flags->local ? run_files(flags, set, err) : run_kube(flags, set, err);
    return done ? 0 : EXIT_NOT_DONE;
}

int main(int argc, char **argv)
{
    struct cr_error err = {0};
    struct flags flags;
    int status = EXIT_USAGE;
    cr_log_set_level(CR_LOG_ERROR);
    cr_process_forbid_cores();
    if (flags_parse(argc, argv, &flags, &err)) {
        if (flags.help || flags.version) {
            fputs(flags.help ? flags_help : "certroll-certgen " CERTROLL_VERSION "\n", stdout);
            status = 0;
        } else {
            status = run(&flags, &err);
        }
    }
    if (status)
        fprintf(stderr, "certroll-certgen: %s\n", err.text);
    flags_dispose(&flags);
    return status;
}
