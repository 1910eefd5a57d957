/* A command line over pkg/kube and pkg/runtime for tests: one JSON line for each result on stdout. Errors are
 * {"error":{"kind":…,"text":…,"retryAfterMs":…}} and exit status 1. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/consumer_kind.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/client.h"
#include "kube/event.h"
#include "kube/object.h"
#include "kube/watch.h"
#include "runtime/manager.h"

static const char usage[] =
    "usage: kube_driver [--kubeconfig FILE] COMMAND …   (RESOURCE: a plural that certroll knows, or\n"
    "group/version/plural; NAMESPACE '-': none)\n"
    "  version\n"
    "  raw METHOD PATH\n"
    "  get RESOURCE NAMESPACE NAME\n"
    "  list RESOURCE NAMESPACE [LABEL-SELECTOR]\n"
    "  create RESOURCE NAMESPACE < object or List\n"
    "  patch RESOURCE NAMESPACE NAME [SUBRESOURCE] < merge patch\n"
    "  apply RESOURCE NAMESPACE NAME [force] < object\n"
    "  delete RESOURCE NAMESPACE NAME [UID [RESOURCE-VERSION [PROPAGATION]]]\n"
    "  evict NAMESPACE POD UID\n"
    "  event NAMESPACE KIND NAME UID REASON MESSAGE [TIMES]\n"
    "  watch RESOURCE NAMESPACE SECONDS [LABEL-SELECTOR…]   a watch for each, a line for each callback\n"
    "  manage RESOURCE NAMESPACE ADDRESS                    an informer, workers, health pages; until SIGTERM\n";

struct driver {
    struct cr_loop *loop;
    struct cr_client *client;
    int argc; /* of the command itself */
    char **argv;
    struct cr_resource resource; /* argv[1], for the commands that have one */
};

static void print_line(struct cr_json *line)
{
    cr_autofree char *text = cr_json_print(line);
    puts(text);
    fflush(stdout);
}

static int print_error(const struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    struct cr_json *error = cr_json_object_in(line, "error");
    cr_json_set_string(error, "kind", cr_error_kind_name(err->kind));
    cr_json_set_string(error, "text", err->text);
    cr_json_set_int(error, "retryAfterMs", err->retry_after_ms);
    print_line(line);
    return 1;
}

static int print_result(struct cr_json *result, const struct cr_error *err)
{
    CR_CLEANUP(cr_json) struct cr_json *owned = result;
    if (!owned)
        return print_error(err);
    print_line(owned);
    return 0;
}

/* A plural that pkg/kube or pkg/api knows, or group/version/plural (which is cut up in place). */
static struct cr_resource parse_resource(char *text)
{
    static const struct cr_resource *const known[] = {&cr_res_secrets, &cr_res_pods, &cr_res_events, &cr_res_policies};
    for (size_t i = 0; i < cr_array_len(known); i++)
        if (strcmp(known[i]->plural, text) == 0)
            return *known[i];
    for (size_t i = 0; i < cr_consumer_kinds_len; i++)
        if (strcmp(cr_consumer_kinds[i].resource.plural, text) == 0)
            return cr_consumer_kinds[i].resource;
    char *version = strchr(text, '/');
    char *plural = version ? strchr(version + 1, '/') : NULL;
    if (!plural) {
        fprintf(stderr, "unknown resource %s\n", text);
        exit(2);
    }
    *version = *plural = '\0';
    return (struct cr_resource){.group = text, .version = version + 1, .plural = plural + 1, .kind = "Unknown"};
}

static const char *argument(const struct driver *d, int index)
{
    const char *text = index < d->argc ? d->argv[index] : NULL;
    return cr_streq(text, "-") ? NULL : text;
}

static struct cr_json *read_stdin(void)
{
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(16 * 1024 * 1024);
    char piece[65536];
    for (size_t n; (n = fread(piece, 1, sizeof piece, stdin)) > 0;)
        if (!cr_buf_append(&text, piece, n))
            exit(2);
    struct cr_error err = {0};
    struct cr_json *object = cr_json_parse(cr_buf_text(&text), text.len, &err);
    if (!object) {
        fprintf(stderr, "stdin: %s\n", err.text);
        exit(2);
    }
    return object;
}

/* --- requests: in this thread, while another one runs the loop --- */

static int version(struct driver *d)
{
    struct cr_error err = {0};
    cr_autofree char *text = cr_client_server_version(d->client, &err);
    return print_result(text ? cr_json_new_string(text) : NULL, &err);
}

static int raw(struct driver *d)
{
    struct cr_error err = {0};
    return print_result(cr_client_raw(d->client, d->argv[1], d->argv[2], NULL, NULL, &err), &err);
}

static int get(struct driver *d)
{
    struct cr_error err = {0};
    return print_result(cr_client_get(d->client, &d->resource, argument(d, 2), d->argv[3], &err), &err);
}

static int list(struct driver *d)
{
    struct cr_error err = {0};
    return print_result(cr_client_list(d->client, &d->resource, argument(d, 2), argument(d, 3), NULL, &err), &err);
}

/* An object, or a List whose items are created one after the other. */
static int create(struct driver *d)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = read_stdin();
    const struct cr_json *items = cr_json_get(object, "items");
    if (!items)
        return print_result(cr_client_create(d->client, &d->resource, argument(d, 2), object, &err), &err);
    for (const struct cr_json *item = cr_json_first(items); item; item = cr_json_next(item)) {
        CR_CLEANUP(cr_json)
        struct cr_json *made = cr_client_create(d->client, &d->resource, argument(d, 2), item, &err);
        if (!made)
            return print_error(&err);
    }
    return print_result(cr_json_new_int((int64_t)cr_json_len(items)), &err);
}

static int patch(struct driver *d)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = read_stdin();
    return print_result(
        cr_client_merge_patch(d->client, &d->resource, argument(d, 2), d->argv[3], argument(d, 4), object, &err), &err);
}

static int apply(struct driver *d)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_json) struct cr_json *object = read_stdin();
    bool force = cr_streq(argument(d, 4), "force");
    return print_result(cr_client_apply(d->client, &d->resource, argument(d, 2), d->argv[3], NULL, object, force, &err),
                        &err);
}

static int delete (struct driver *d)
{
    struct cr_error err = {0};
    const struct cr_delete_options options = {
        .uid = argument(d, 4), .resource_version = argument(d, 5), .propagation = argument(d, 6)};
    bool ok = cr_client_delete(d->client, &d->resource, argument(d, 2), d->argv[3], &options, &err);
    return print_result(ok ? cr_json_new_bool(true) : NULL, &err);
}

static int evict(struct driver *d)
{
    struct cr_error err = {0};
    bool ok = cr_client_evict(d->client, d->argv[1], d->argv[2], d->argv[3], &err);
    return print_result(ok ? cr_json_new_bool(true) : NULL, &err);
}

static int event(struct driver *d)
{
    CR_CLEANUP(cr_recorder) struct cr_recorder *recorder = cr_recorder_new(d->client, "kube-driver");
    const struct cr_event about = {.api_version = "v1",
                                   .kind = d->argv[2],
                                   .ns = d->argv[1],
                                   .name = d->argv[3],
                                   .uid = d->argv[4],
                                   .reason = d->argv[5],
                                   .message = d->argv[6]};
    int times = argument(d, 7) ? atoi(d->argv[7]) : 1;
    for (int i = 0; i < times; i++)
        cr_recorder_emit(recorder, &about);
    return 0;
}

/* --- watch: all in the loop's thread --- */

static void print_callback(const char *type, const struct cr_json *object)
{
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    cr_json_set_string(line, "callback", type);
    if (object) {
        cr_autofree char *key = cr_obj_key(object);
        cr_json_set_string(line, "key", key);
        cr_json_set_string(line, "kind", cr_json_string_at(object, "kind"));
        cr_json_set_string(line, "resourceVersion", cr_obj_resource_version(object));
    }
    print_line(line);
}

static void on_object(void *arg, struct cr_json *object)
{
    (void)arg;
    print_callback("object", object);
    cr_json_free_secret(object);
}

static void on_delete(void *arg, const struct cr_json *object)
{
    (void)arg;
    print_callback("delete", object);
}

static void on_replace(void *arg)
{
    (void)arg;
    print_callback("replace", NULL);
}

static void on_synced(void *arg)
{
    (void)arg;
    print_callback("synced", NULL);
}

static void on_connected(void *arg)
{
    (void)arg;
    print_callback("connected", NULL);
}

static void on_bookmark(void *arg, const char *resource_version)
{
    (void)arg;
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    cr_json_set_string(line, "callback", "bookmark");
    cr_json_set_string(line, "resourceVersion", resource_version);
    print_line(line);
}

static void on_trouble(void *arg, const struct cr_error *err, int64_t retry_ms)
{
    (void)arg;
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    cr_json_set_string(line, "callback", "trouble");
    cr_json_set_string(line, "kind", cr_error_kind_name(err->kind));
    cr_json_set_string(line, "text", err->text);
    cr_json_set_int(line, "retryMs", retry_ms);
    print_line(line);
}

static void stop_loop(void *arg)
{
    cr_loop_stop(arg);
}

static struct cr_watch *start_watch(struct driver *d, const char *label_selector)
{
    const struct cr_resource *resource = &d->resource;
    const struct cr_watch_options options = {.resource = resource,
                                             .ns = argument(d, 2),
                                             .label_selector = label_selector,
                                             .secret = strcmp(resource->plural, "secrets") == 0};
    const struct cr_watch_handler handler = {.on_object = on_object,
                                             .on_delete = on_delete,
                                             .on_replace = on_replace,
                                             .on_synced = on_synced,
                                             .on_trouble = on_trouble,
                                             .on_connected = on_connected,
                                             .on_bookmark = on_bookmark};
    return cr_watch_start(d->client, d->loop, &options, &handler);
}

enum { WATCHES_MAX = 8 };

static int watch(struct driver *d)
{
    struct cr_watch *watches[WATCHES_MAX] = {start_watch(d, argument(d, 4))};
    for (int i = 1; i < WATCHES_MAX && argument(d, 4 + i); i++)
        watches[i] = start_watch(d, argument(d, 4 + i));
    struct cr_timer *timer = cr_timer_new(d->loop, stop_loop, d->loop);
    cr_timer_arm(timer, atoll(d->argv[3]) * 1000);
    cr_loop_on_terminate(d->loop, stop_loop, d->loop);
    cr_loop_run(d->loop);
    cr_timer_free(timer);
    for (int i = 0; i < WATCHES_MAX && watches[i]; i++)
        cr_watch_free(watches[i]);
    return 0;
}

/* --- manage --- */

static void on_change(void *arg, const struct cr_change *change)
{
    struct cr_queue *queue = *(struct cr_queue **)arg;
    cr_autofree char *key = cr_asprintf("%s/%s", change->ns, change->name);
    cr_queue_add(queue, key);
}

/* One request for each key, again and again, so that a shutdown meets requests under way. */
static bool reconcile(void *arg, const char *key, struct cr_reconcile_result *result, struct cr_error *err)
{
    struct driver *d = arg;
    const char *slash = strchr(key, '/');
    cr_autofree char *ns = cr_strndup(key, slash ? (size_t)(slash - key) : 0);
    CR_CLEANUP(cr_json)
    struct cr_json *object = cr_client_get(d->client, &d->resource, *ns ? ns : NULL, slash ? slash + 1 : key, err);
    if (!object && err->kind != CR_ERR_NOT_FOUND)
        return false;
    CR_CLEANUP(cr_json) struct cr_json *line = cr_json_new_object();
    cr_json_set_string(line, "reconciled", key);
    cr_json_set_bool(line, "exists", object != NULL);
    print_line(line);
    result->requeue_after_ms = object ? 500 : 0;
    return true;
}

static int manage(struct driver *d)
{
    CR_CLEANUP(cr_metrics) struct cr_metrics *metrics = cr_metrics_new();
    const struct cr_resource *resource = &d->resource;
    const struct cr_manager_options options = {.metrics_address = d->argv[3]};
    CR_CLEANUP(cr_manager) struct cr_manager *manager = cr_manager_new(d->loop, d->client, metrics, &options);
    struct cr_queue *queue = cr_manager_queue(manager);
    const struct cr_informer_options informer = {
        .watch = {.resource = resource, .ns = argument(d, 2), .secret = strcmp(resource->plural, "secrets") == 0},
        .on_change = on_change,
        .arg = &queue};
    cr_manager_add_informer(manager, cr_informer_new(d->client, d->loop, &informer));
    cr_manager_set_reconciler(manager, reconcile, d);
    struct cr_error err = {0};
    return cr_manager_run(manager, &err) ? 0 : print_error(&err);
}

static const struct command {
    const char *name;
    int arguments;
    int (*run)(struct driver *d);
    bool resource;
} commands[] = {
    {"version", 0, version, false}, {"raw", 2, raw, false},      {"get", 3, get, true},
    {"list", 2, list, true},        {"create", 2, create, true}, {"patch", 3, patch, true},
    {"evict", 3, evict, false},     {"event", 6, event, false},  {"apply", 3, apply, true},
    {"delete", 3, delete, true},    {"watch", 3, watch, true},   {"manage", 3, manage, true},
};

static void *run_loop(void *arg)
{
    cr_loop_run(arg);
    return NULL;
}

static int run_request(struct driver *d, const struct command *command)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_loop, d->loop) != 0)
        return 2;
    int status = command->run(d);
    cr_loop_stop(d->loop);
    pthread_join(thread, NULL);
    return status;
}

static int run(struct driver *d)
{
    for (size_t i = 0; i < cr_array_len(commands); i++) {
        if (d->argc <= commands[i].arguments || strcmp(d->argv[0], commands[i].name) != 0)
            continue;
        if (commands[i].resource)
            d->resource = parse_resource(d->argv[1]);
        /* watch and manage run the loop themselves. */
        return commands[i].run == watch || commands[i].run == manage ? commands[i].run(d)
                                                                     : run_request(d, &commands[i]);
    }
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const char *kubeconfig = NULL;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--kubeconfig") == 0) {
        kubeconfig = argv[2];
        first = 3;
    }
    if (argc <= first) {
        fputs(usage, stderr);
        return 2;
    }
    struct cr_error err = {0};
    struct cr_kube_config *config = cr_kube_config_load(kubeconfig, NULL, &err);
    if (!config)
        return print_error(&err);
    CR_CLEANUP(cr_loop) struct cr_loop *loop = cr_loop_new();
    CR_CLEANUP(cr_client)
    struct cr_client *client = cr_client_new(loop, config, "certroll-driver/" CERTROLL_VERSION " (linux/amd64)");
    struct driver driver = {.loop = loop, .client = client, .argc = argc - first, .argv = argv + first};
    return run(&driver);
}
