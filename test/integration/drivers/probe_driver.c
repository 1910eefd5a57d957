/* A command line over the TLS probe for tests: one JSON line for each address on stdout, and one more about what it
 * cost. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"
#include "codec/json.h"
#include "net/canary.h"
#include "sys/file.h"

static const char usage[] =
    "usage: probe_driver [--client FILE] [--canary FILE] [--name SERVER-NAME] [--timeout MS] [--repeat N] "
    "TLS|PostgreSQL|MySQL PORT ADDRESS…\n"
    "  FILE: certificate and key, PEM. Of N rounds the last is told. The canary is asked about in the same time "
    "again.\n";

struct options {
    const char *client;
    const char *canary;
    const char *name;
    int timeout_ms;
    int repeat;
};

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"client", required_argument, NULL, 'c'}, {"canary", required_argument, NULL, 'a'},
        {"name", required_argument, NULL, 'n'},   {"timeout", required_argument, NULL, 't'},
        {"repeat", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0}};
    *options = (struct options){.timeout_ms = 5000, .repeat = 1};
    for (int option = 0; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'c')
            options->client = optarg;
        else if (option == 'a')
            options->canary = optarg;
        else if (option == 'n')
            options->name = optarg;
        else if (option == 't')
            options->timeout_ms = atoi(optarg);
        else if (option == 'r')
            options->repeat = atoi(optarg);
        else
            return false;
    }
    return argc - optind >= 3;
}

static enum cr_probe_protocol protocol_of(const char *word)
{
    unsigned protocol = CR_PROBE_PROTOCOLS - 1;
    while (protocol != CR_PROBE_TLS && strcmp(word, cr_probe_protocol_names[protocol]) != 0)
        protocol--;
    return (enum cr_probe_protocol)protocol;
}

static void print(struct cr_json *line)
{
    cr_autofree char *text = cr_json_print(line);
    puts(text);
    cr_json_free(line);
}

static void set_names(struct cr_json *line, const struct cr_probe_announced *announced)
{
    cr_json_set_bool(line, "asked", announced->asked);
    cr_json_set_bool(line, "more", announced->more);
    struct cr_json *names = cr_json_array_in(line, "names");
    for (size_t i = 0; i < announced->len; i++) {
        char hex[2 * sizeof announced->names[i] + 1];
        for (size_t at = 0; at < sizeof announced->names[i]; at++)
            snprintf(hex + 2 * at, 3, "%02x", announced->names[i][at]);
        cr_json_add_string(names, hex);
    }
}

/* trust: NULL: there was no canary. */
static void print_result(const struct cr_probe_target *target, const struct cr_probe_result *result,
                         const enum cr_probe_trust *trust)
{
    static const char *const trusts[] = {[CR_PROBE_TRUST_UNASKED] = "not asked",
                                         [CR_PROBE_TRUSTED] = "trusted",
                                         [CR_PROBE_UNTRUSTED] = "untrusted",
                                         [CR_PROBE_TRUST_UNKNOWN] = "unknown"};
    static const char *const outcomes[] = {[CR_PROBE_SERVED] = "served",
                                           [CR_PROBE_UNREACHABLE] = "unreachable",
                                           [CR_PROBE_NOT_TLS] = "not TLS",
                                           [CR_PROBE_UNPROVED] = "unproved",
                                           [CR_PROBE_TOO_COSTLY] = "too costly"};
    static const char *const consents[] = {[CR_PROBE_NO_CLIENT] = "none",
                                           [CR_PROBE_ACCEPTED] = "accepted",
                                           [CR_PROBE_SILENT] = "silent",
                                           [CR_PROBE_DENIED] = "denied"};
    struct cr_json *line = cr_json_new_object();
    cr_json_set_string(line, "address", target->address);
    cr_json_set_string(line, "outcome", outcomes[result->outcome]);
    cr_json_set_string(line, "leaf", result->leaf);
    cr_json_set_string(line, "client", consents[result->consent]);
    cr_json_set_string(line, "detail", result->detail);
    set_names(line, &result->announced);
    cr_json_set_string(line, "canary", trust ? trusts[*trust] : NULL);
    print(line);
}

static void print_cost(int64_t took_ms)
{
    struct rusage usage_of_us;
    getrusage(RUSAGE_SELF, &usage_of_us);
    struct cr_json *line = cr_json_new_object();
    cr_json_set_int(line, "tookMs", took_ms);
    cr_json_set_int(line, "cpuMs",
                    usage_of_us.ru_utime.tv_sec * 1000 + usage_of_us.ru_utime.tv_usec / 1000 +
                        usage_of_us.ru_stime.tv_sec * 1000 + usage_of_us.ru_stime.tv_usec / 1000);
    cr_json_set_int(line, "peakKiB", usage_of_us.ru_maxrss);
    print(line);
}

static struct cr_probe_client *read_client(const char *path)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_buf) struct cr_buf pem = {.secret = true};
    struct cr_probe_client *client = NULL;
    if (cr_file_read(path, 1 << 20, &pem, &err))
        client = cr_probe_client_new(cr_buf_text(&pem), pem.len, cr_buf_text(&pem), pem.len, &err);
    if (!client) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(2);
    }
    return client;
}

int main(int argc, char **argv)
{
    struct options options;
    if (!parse(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *client = options.client ? read_client(options.client) : NULL;
    CR_CLEANUP(cr_probe_client) struct cr_probe_client *canary = options.canary ? read_client(options.canary) : NULL;
    size_t count = (size_t)(argc - optind - 2);
    cr_autofree struct cr_probe_target *targets = cr_calloc(count, sizeof *targets);
    cr_autofree struct cr_probe_result *results = cr_calloc(count, sizeof *results);
    cr_autofree enum cr_probe_trust *trusts = cr_calloc(count, sizeof *trusts);
    for (size_t i = 0; i < count; i++)
        targets[i] = (struct cr_probe_target){.address = argv[optind + 2 + (int)i],
                                              .port = atoi(argv[optind + 1]),
                                              .server_name = options.name,
                                              .protocol = protocol_of(argv[optind]),
                                              .client = client};
    int64_t from_ms = cr_clock_monotonic_ms();
    for (int round = 0; round < options.repeat; round++)
        cr_tls_probe(targets, count, options.timeout_ms, results);
    for (size_t i = 0; i < count && canary; i++)
        targets[i].client = canary;
    if (canary)
        cr_canary_probe(targets, count, options.timeout_ms, trusts);
    int64_t took_ms = cr_clock_monotonic_ms() - from_ms;
    for (size_t i = 0; i < count; i++)
        print_result(&targets[i], &results[i], canary ? &trusts[i] : NULL);
    print_cost(took_ms);
    return 0;
}
