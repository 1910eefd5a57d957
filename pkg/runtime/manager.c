#include "runtime/manager.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http_server_tls.h"
#include "runtime/health.h"
#include "runtime/workers.h"

enum {
    DEFAULT_WORKERS = 4,
    DEFAULT_GRACE_MS = 10 * 1000,
    /* A key that always fails must not make an alert of a change of leaders. */
    CAUGHT_UP_MOST_MS = 30 * 1000,
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 60 * 1000,
};

struct controller {
    struct cr_controller_options options;
    struct cr_queue *queue;
    struct cr_workers *workers; /* loop thread */
};

struct cr_manager {
    struct cr_loop *loop;
    struct cr_client *client;
    struct cr_manager_options options;
    char *metrics_address;          /* NULL: none */
    char *health_address;           /* NULL: none of its own */
    struct controller *controllers; /* never empty; they change until run only */
    size_t controllers_len;
    struct cr_metric *reconcile_total;
    struct cr_metric *reconcile_seconds;
    struct cr_metric *caught_up; /* NULL: there is no election */

    /* Loop thread. */
    struct cr_health health; /* and the informers */
    struct cr_http_server *server;
    struct cr_http_server *health_server; /* NULL: server has the pages */
    bool started;                         /* the workers */
    int64_t started_ms;                   /* monotonic */
    size_t working;                       /* controllers with workers that have not ended */
    struct cr_timer *grace;
    bool checked; /* options.start_check has passed */
    bool leads;

    pthread_mutex_t lock; /* guards finished */
    bool finished;        /* the loop takes no posts of this manager any more */
};

/* What is on record of all that was found at the start is of now. What a watch of no manager lists later is not known
 * here. */
static bool is_caught_up(const struct cr_manager *manager)
{
    if (!manager->started || manager->health.stopping || !cr_leader_election_left_ms(manager->options.election))
        return false;
    size_t left = 0;
    for (size_t i = 0; i < manager->controllers_len; i++)
        left += cr_queue_found_left(manager->controllers[i].queue);
    return !left || cr_clock_monotonic_ms() - manager->started_ms >= CAUGHT_UP_MOST_MS;
}

static void collect(void *arg)
{
    const struct cr_manager *manager = arg;
    cr_metric_set(manager->caught_up, CR_LABELS(cr_leader_election_name(manager->options.election)),
                  is_caught_up(manager));
}

static void register_metrics(struct cr_manager *manager, struct cr_metrics *metrics)
{
    static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                    0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
    if (!metrics)
        return;
    manager->reconcile_total =
        cr_metrics_counter(metrics, "certroll_reconciles_total", "Reconciles by their result.", CR_LABELS("result"));
    manager->reconcile_seconds = cr_metrics_histogram(metrics, "certroll_reconcile_duration_seconds",
                                                      "How long a reconcile took.", NULL, bounds, cr_array_len(bounds));
    manager->health.informer_objects = cr_metrics_gauge(metrics, "certroll_informer_objects",
                                                        "Objects in the cache of a resource.", CR_LABELS("resource"));
    manager->health.informer_healthy =
        cr_metrics_gauge(metrics, "certroll_informer_healthy",
                         "Whether all caches of a resource are in sync and heard of lately.", CR_LABELS("resource"));
    if (!manager->options.election)
        return;
    manager->caught_up =
        cr_metrics_gauge(metrics, "certroll_leader_caught_up",
                         "Whether this process leads and has recorded the state of all that it found when it began to.",
                         CR_LABELS("name"));
    cr_metrics_collect(metrics, collect, manager);
}

struct cr_queue *cr_manager_add_controller(struct cr_manager *manager, const struct cr_controller_options *options)
{
    manager->controllers =
        cr_reallocarray(manager->controllers, manager->controllers_len + 1, sizeof *manager->controllers);
    struct controller *added = &manager->controllers[manager->controllers_len++];
    *added = (struct controller){.options = *options, .queue = cr_queue_new(BACKOFF_FIRST_MS, BACKOFF_MAX_MS)};
    if (added->options.workers <= 0)
        added->options.workers = DEFAULT_WORKERS;
    cr_queue_limit_namespaces(added->queue, added->options.workers);
    if (manager->health.metrics)
        cr_queue_count_in(added->queue, manager->health.metrics, options->name);
    return added->queue;
}

/* Owned; NULL: none. */
static char *address_of(const char *address)
{
    return address && *address && !cr_streq(address, "0") ? cr_strdup(address) : NULL;
}

struct cr_manager *cr_manager_new(struct cr_loop *loop, struct cr_client *client, struct cr_metrics *metrics,
                                  const struct cr_manager_options *options)
{
    struct cr_manager *manager = cr_new(struct cr_manager);
    manager->loop = loop;
    manager->client = client;
    manager->options = *options;
    if (manager->options.grace_ms <= 0)
        manager->options.grace_ms = DEFAULT_GRACE_MS;
    manager->metrics_address = address_of(options->metrics_address);
    manager->health_address = address_of(options->health_address);
    manager->checked = !options->start_check;
    manager->leads = !options->election;
    manager->health.election = options->election;
    manager->health.start_check = options->start_check;
    manager->health.guard = options->metrics_guard;
    manager->health.metrics = metrics;
    register_metrics(manager, metrics);
    cr_manager_add_controller(manager,
                              &(struct cr_controller_options){.name = options->name ? options->name : "manager",
                                                              .workers = options->workers});
    pthread_mutex_init(&manager->lock, NULL);
    return manager;
}

static void shut_queues(struct cr_manager *manager)
{
    for (size_t i = 0; i < manager->controllers_len; i++)
        cr_queue_shutdown(manager->controllers[i].queue);
}

static void free_workers(struct cr_manager *manager)
{
    for (size_t i = 0; i < manager->controllers_len; i++)
        cr_workers_free(cr_steal(&manager->controllers[i].workers));
}

void cr_manager_free(struct cr_manager *manager)
{
    if (!manager)
        return;
    shut_queues(manager);  /* in case run ended otherwise than by finish */
    free_workers(manager); /* they read the informers' stores */
    for (size_t i = 0; i < manager->health.informers_len; i++)
        cr_informer_free(manager->health.informers[i]);
    free(manager->health.informers);
    cr_http_server_free(manager->server);
    cr_http_server_free(manager->health_server);
    cr_timer_free(manager->grace);
    for (size_t i = 0; i < manager->controllers_len; i++)
        cr_queue_free(manager->controllers[i].queue);
    free(manager->controllers);
    pthread_mutex_destroy(&manager->lock);
    free(manager->metrics_address);
    free(manager->health_address);
    free(manager);
}

struct cr_queue *cr_manager_queue(struct cr_manager *manager)
{
    return manager->controllers[0].queue;
}

void cr_manager_set_reconciler(struct cr_manager *manager, cr_reconcile_fn reconcile, void *arg)
{
    manager->controllers[0].options.reconcile = reconcile;
    manager->controllers[0].options.arg = arg;
}

int cr_manager_port(const struct cr_manager *manager)
{
    return manager->server ? cr_http_server_port(manager->server) : 0;
}

int cr_manager_health_port(const struct cr_manager *manager)
{
    return manager->health_server ? cr_http_server_port(manager->health_server) : 0;
}

/* --- shutdown: keys, workers, watches, loop, server --- */

static void finish(void *arg)
{
    struct cr_manager *manager = arg;
    free_workers(manager);
    cr_timer_disarm(manager->grace);
    for (size_t i = 0; i < manager->health.informers_len; i++)
        cr_informer_stop(manager->health.informers[i]);
    /* Posts made before this are run before the loop ends; later ones are not made. */
    pthread_mutex_lock(&manager->lock);
    manager->finished = true;
    pthread_mutex_unlock(&manager->lock);
    cr_log(CR_LOG_INFO, "stopped");
    cr_loop_stop(manager->loop);
}

static void on_workers_ended(void *arg)
{
    struct cr_manager *manager = arg;
    if (--manager->working == 0)
        finish(manager);
}

static void grace_over(void *arg)
{
    struct cr_manager *manager = arg;
    cr_log(CR_LOG_WARN, "work is still under way at the end of the grace time, its requests are cancelled");
    cr_client_cancel(manager->client);
}

static void begin_stop(void *arg)
{
    struct cr_manager *manager = arg;
    if (manager->health.stopping)
        return;
    manager->health.stopping = true;
    cr_log(CR_LOG_INFO, "stopping: work under way is finished first");
    shut_queues(manager);
    if (manager->started)
        cr_timer_arm(manager->grace, manager->options.grace_ms);
    else
        finish(manager);
}

static void on_signal(void *arg)
{
    struct cr_manager *manager = arg;
    if (manager->health.stopping) {
        cr_log(CR_LOG_WARN, "a second signal: ending at once");
        _exit(EXIT_FAILURE);
    }
    begin_stop(manager);
}

/* Any thread. */
static void post(struct cr_manager *manager, void (*fn)(void *))
{
    pthread_mutex_lock(&manager->lock);
    if (!manager->finished)
        cr_loop_post(manager->loop, fn, manager);
    pthread_mutex_unlock(&manager->lock);
}

void cr_manager_stop(struct cr_manager *manager)
{
    post(manager, begin_stop);
}

/* --- leading --- */

/* No grace: the new leader may act on the same objects. */
static void lost_leadership(void *arg)
{
    struct cr_manager *manager = arg;
    cr_client_cancel(manager->client);
    begin_stop(manager);
}

static void on_lost(void *arg, const char *why)
{
    struct cr_manager *manager = arg;
    (void)why; /* logged already */
    post(manager, lost_leadership);
}

/* --- start --- */

static bool all_of(const struct cr_manager *manager, bool (*holds)(struct cr_informer *))
{
    for (size_t i = 0; i < manager->health.informers_len; i++)
        if (!holds(manager->health.informers[i]))
            return false;
    return true;
}

static void start_workers(struct cr_manager *manager, struct controller *controller)
{
    const struct cr_workers_options options = {
        .count = controller->options.workers,
        .queue = controller->queue,
        .reconcile = controller->options.reconcile,
        .arg = controller->options.arg,
        .total = manager->reconcile_total,
        .seconds = manager->reconcile_seconds,
        .on_ended = on_workers_ended,
        .on_ended_arg = manager,
    };
    cr_queue_mark_found(controller->queue);
    controller->workers = cr_workers_start(manager->loop, &options);
    manager->working++;
    manager->started = true;
    manager->started_ms = cr_clock_monotonic_ms();
}

/* Decisions need the whole state: no worker before. But one namespace that is closed to us must not close the others.
 */
static void start_workers_when_synced(void *arg)
{
    struct cr_manager *manager = arg;
    bool may = manager->checked && manager->leads && !manager->health.stopping;
    bool filled = all_of(manager, cr_informer_answered);
    manager->health.filled = manager->health.filled || filled;
    if (manager->started || !may || !filled)
        return;
    for (size_t i = 0; i < manager->controllers_len; i++)
        if (manager->controllers[i].options.reconcile)
            start_workers(manager, &manager->controllers[i]);
    if (manager->started)
        cr_log(CR_LOG_INFO, all_of(manager, cr_informer_synced) ? "all caches are in sync, workers started"
                                                                : "workers started, without what may not be seen");
}

static void started_leading(void *arg)
{
    struct cr_manager *manager = arg;
    manager->leads = true;
    start_workers_when_synced(manager);
}

static void on_started_leading(void *arg)
{
    post(arg, started_leading);
}

void cr_manager_add_informer(struct cr_manager *manager, struct cr_informer *informer)
{
    struct cr_health *health = &manager->health;
    health->informers = cr_reallocarray(health->informers, health->informers_len + 1, sizeof(*health->informers));
    health->informers[health->informers_len++] = informer;
    cr_informer_on_synced(informer, start_workers_when_synced, manager);
}

void cr_manager_remove_informer(struct cr_manager *manager, struct cr_informer *informer)
{
    struct cr_health *health = &manager->health;
    size_t at = 0;
    while (at < health->informers_len && health->informers[at] != informer)
        at++;
    if (at == health->informers_len)
        return;
    health->informers_len--;
    memmove(&health->informers[at], &health->informers[at + 1],
            (health->informers_len - at) * sizeof(*health->informers));
    cr_health_forget(health, cr_informer_resource(informer));
    cr_informer_free(informer);
    post(manager, start_workers_when_synced); /* they may have waited for just this one */
}

/* What is served at one address. */
struct pages {
    const char *address;
    struct cr_tlsreload *tls; /* NULL: plain HTTP */
    void (*serve)(struct cr_http_server *server, struct cr_health *health);
    const char *names;
    size_t connections; /* 0: as many as other pages have */
};

/* Connections to the server of the probes, which has no other pages: enough that in a flood a kubelet has the time to
 * ask. */
enum { PROBE_CONNECTIONS = 512 };

static struct cr_http_server *listen_on(struct cr_manager *manager, const struct pages *pages, struct cr_error *err)
{
    CR_CLEANUP(cr_http_server) struct cr_http_server *server = cr_http_server_new(manager->loop);
    cr_http_server_limit(server, &(struct cr_http_limits){.connections = pages->connections});
    if (pages->tls)
        cr_http_server_use_tls(server, pages->tls);
    pages->serve(server, &manager->health);
    if (!cr_http_server_listen(server, pages->address, err)) {
        cr_error_wrap(err, "%s", pages->names);
        return NULL;
    }
    char port[16];
    snprintf(port, sizeof port, "%d", cr_http_server_port(server));
    cr_log(CR_LOG_INFO, "serving", {"pages", pages->names}, {"address", pages->address}, {"port", port},
           {"scheme", pages->tls ? "https" : "http"});
    return cr_steal(&server);
}

static bool serve(struct cr_manager *manager, struct cr_error *err)
{
    const char *health = manager->options.health_address;
    bool together = !health || !*health;
    const struct pages metrics = {
        .address = manager->metrics_address,
        .tls = manager->options.metrics_tls,
        .serve = together ? cr_health_serve_all : cr_health_serve_metrics,
        .names = together ? "/metrics, /healthz and /readyz" : "/metrics",
    };
    const struct pages probes = {.address = manager->health_address,
                                 .serve = cr_health_serve_probes,
                                 .names = "/healthz and /readyz",
                                 .connections = PROBE_CONNECTIONS};
    if (metrics.address && !(manager->server = listen_on(manager, &metrics, err)))
        return false;
    if (!probes.address)
        return true;
    manager->health_server = listen_on(manager, &probes, err);
    return manager->health_server != NULL;
}

static void start_election(struct cr_manager *manager)
{
    const struct cr_leader_election_handler handler = {on_started_leading, on_lost, manager};
    if (manager->options.election && !manager->health.stopping)
        cr_leader_election_start(manager->options.election, &handler);
}

static void check_passed(void *arg)
{
    struct cr_manager *manager = arg;
    manager->checked = true;
    start_election(manager);
    start_workers_when_synced(manager);
}

static void on_check_passed(void *arg)
{
    post(arg, check_passed);
}

static void start(struct cr_manager *manager)
{
    for (size_t i = 0; i < manager->health.informers_len; i++)
        cr_informer_start(manager->health.informers[i]);
    cr_loop_post(manager->loop, start_workers_when_synced, manager); /* there may be no informers */
    if (manager->options.start_check)
        cr_start_check_start(manager->options.start_check, on_check_passed, manager);
    else
        start_election(manager);
}

/* The workers have ended. */
static bool end_election(struct cr_leader_election *election, struct cr_error *err)
{
    if (!election)
        return true;
    cr_leader_election_stop(election);
    return !cr_leader_election_lost(election) ||
           cr_error_set(err, CR_ERR_CONFLICT, "this process does not lead any more");
}

bool cr_manager_run(struct cr_manager *manager, struct cr_error *err)
{
    manager->grace = cr_timer_new(manager->loop, grace_over, manager);
    cr_loop_on_terminate(manager->loop, on_signal, manager);
    if (!serve(manager, err))
        return false;
    start(manager);
    cr_loop_run(manager->loop);
    cr_http_server_free(cr_steal(&manager->server)); /* answered to the end why it was not ready */
    cr_http_server_free(cr_steal(&manager->health_server));
    if (manager->options.start_check)
        cr_start_check_stop(manager->options.start_check);
    return end_election(manager->options.election, err);
}
