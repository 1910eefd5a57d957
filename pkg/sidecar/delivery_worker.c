#include "sidecar/delivery_worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/strings.h"
#include "sidecar/output.h"
#include "sidecar/reading.h"
#include "sidecar/record.h"
#include "sidecar/trigger.h"
#include "sys/proc.h"
#include "tlsreload/event.h"
#include "tlsreload/folder_watch.h"

/* Reports the steps of a delivery worker: to the log and to metrics. */

#define PRODUCT "certroll-sidecar"

static const char *path_of(const struct cr_sidecar_material *material)
{
    return material->certificate ? material->certificate : material->trust;
}

static void write_event(const struct cr_sidecar_material *material, const struct cr_delivery *before,
                        const struct cr_delivery *now, struct cr_buf *out)
{
    bool delivered = now->state == CR_DELIVERY_DELIVERED;
    const struct cr_tlsreload_event event = {
        .reloaded = delivered,
        .at_ms = cr_clock_wall_ms(),
        .certificate = path_of(material),
        .leaf = now->delivered.leaf,
        .before = before->delivered.leaf,
        .trust_changed = before->is_delivered && !cr_streq(before->delivered.trust, now->delivered.trust),
        .problem = delivered ? "" : now->words,
    };
    cr_tlsreload_event_json(&event, PRODUCT, CERTROLL_VERSION, out);
}

static void report_delivered(const struct cr_sidecar_material *material, const struct cr_delivery *now,
                             const char *event)
{
    char took[CR_TIME_TEXT];
    cr_duration_format(now->took_ms < 0 ? 0 : now->took_ms, took);
    cr_log(CR_LOG_INFO, "delivered", {"material", material->name}, {"leaf", now->delivered.leaf},
           {"trust", now->delivered.trust}, {"proven", now->leaf_proven || now->trust_proven ? "true" : "false"},
           {"took", now->took_ms < 0 ? NULL : took}, {"ocsf", event, .json = true});
}

static void report_failure(const struct cr_sidecar_material *material, const struct cr_delivery *now, const char *event)
{
    char attempts[16];
    snprintf(attempts, sizeof attempts, "%u", now->attempts);
    cr_log(CR_LOG_WARN, now->state == CR_DELIVERY_REFUSED ? "refused" : "failing", {"material", material->name},
           {"error", now->words}, {"attempts", attempts}, {"delivered", now->delivered.leaf},
           {"ocsf", event, .json = true});
}

static bool is_reported(const struct cr_delivery *before, const struct cr_delivery *now)
{
    if (now->state == CR_DELIVERY_DELIVERED)
        return before->state != now->state || !before->is_delivered;
    return now->state != CR_DELIVERY_PENDING && (before->state != now->state || !cr_streq(before->words, now->words));
}

/* Before, now: the delivery before and after a step. A failure that stays the same is reported once. */
static void delivery_report(const struct cr_delivery_worker_options *options, const struct cr_delivery *before,
                            const struct cr_delivery *now)
{
    if (!is_reported(before, now))
        return;
    CR_CLEANUP(cr_buf) struct cr_buf event = CR_BUF_INIT(0);
    write_event(options->material, before, now, &event);
    bool reloaded = now->attempts > 0; /* else it was there already, which is no event */
    if (now->state == CR_DELIVERY_DELIVERED) {
        cr_sidecar_metrics_delivered(options->metrics, now);
        report_delivered(options->material, now, reloaded ? cr_buf_text(&event) : NULL);
    } else {
        report_failure(options->material, now, cr_buf_text(&event));
    }
}

enum {
    STACK = 256 * 1024, /* libcurl and OpenSSL need some; what is not touched costs nothing */
    LOOK_MS = 1000,
    NO_WATCH_MS = 10 * 1000, /* without inotify the files are read so often, and it is asked for again */
};

struct cr_delivery_worker {
    struct cr_delivery_worker_options options;
    pthread_t thread;
    int stop_fd;
    int64_t booted_ms; /* by the clock as it was when the worker started */

    /* Used by the thread only. */
    struct cr_delivery delivery;
    struct cr_folder_watch *watch; /* NULL: none is available */
    int64_t read_again_ms;         /* monotonic; without a watch */
    enum cr_error_kind unwatched;  /* why there is none, as it was logged last */
    struct cr_reading reading;     /* while it is on its way; then empty, so that no key stays in memory */
    struct cr_material delivered;  /* what the program had last */

    pthread_mutex_t lock; /* guards view */
    struct cr_delivery view;
};

static struct cr_delivery_now now_of(void)
{
    return (struct cr_delivery_now){.monotonic_ms = cr_clock_monotonic_ms(), .wall_ms = cr_clock_wall_ms()};
}

/* --- steps --- */

static void forget_reading(struct cr_delivery_worker *c)
{
    cr_reading_dispose(&c->reading);
    c->reading = (struct cr_reading){0};
}

static bool take_reading(struct cr_delivery_worker *c, struct cr_delivery_digests *found, struct cr_error *err)
{
    enum cr_material_problem problem;
    forget_reading(c);
    bool good = cr_reading_take(c->options.material, cr_clock_wall_ms(), &c->reading, &problem, err);
    cr_sidecar_metrics_count(c->options.metrics->readings, c->options.material->name, good);
    if (good)
        cr_delivery_digests(&c->reading.material, found);
    return good;
}

static void read_files(struct cr_delivery_worker *c)
{
    struct cr_error err = {0};
    struct cr_delivery_digests found;
    if (take_reading(c, &found, &err))
        cr_delivery_read(&c->delivery, &found, now_of());
    else
        cr_delivery_refuse(&c->delivery, err.text, now_of());
}

/* After a look they are read again. False: the files are others by now. */
static bool has_texts(struct cr_delivery_worker *c)
{
    struct cr_delivery_digests found;
    if (cr_reading_has_texts(&c->reading))
        return true;
    return take_reading(c, &found, NULL) && cr_delivery_same(&found, &c->delivery.found);
}

static void make_outputs(struct cr_delivery_worker *c)
{
    struct cr_error err = {0};
    struct cr_output_seed seed;
    bool changed = false;
    cr_output_seed(&c->reading, &seed);
    bool good = cr_outputs_write(c->options.material, &c->reading, &seed, &changed, &err);
    if (c->options.material->outputs_len)
        cr_sidecar_metrics_count(c->options.metrics->outputs, c->options.material->name, good);
    cr_delivery_output(&c->delivery, changed, good ? NULL : err.text, now_of());
}

static void look(struct cr_delivery_worker *c)
{
    struct cr_proof proof;
    bool known = c->delivered.has_leaf || cr_material_has_trust(&c->delivered);
    cr_proof_look(c->options.material, &c->reading.material, known ? &c->delivered : NULL, LOOK_MS, &proof);
    cr_delivery_look(&c->delivery, &proof, now_of());
}

/* digests: empty while a trigger runs: the program may have the new material or the previous one. */
static void keep_record(const struct cr_delivery_worker *c, const struct cr_delivery_digests *digests)
{
    struct cr_error err = {0};
    if (c->options.state_folder && !cr_record_write(c->options.state_folder, c->options.material->name, digests, &err))
        cr_log(CR_LOG_WARN, "no record", {"material", c->options.material->name}, {"error", err.text});
}

static void pull_trigger(struct cr_delivery_worker *c, size_t index)
{
    struct cr_error err = {0};
    char name[128];
    const struct cr_trigger_spec *spec = &c->options.material->triggers[index];
    if (!has_texts(c)) {
        cr_delivery_changed(&c->delivery);
        return;
    }
    if (index == 0)
        keep_record(c, &(struct cr_delivery_digests){0});
    bool good = cr_trigger_pull(spec, c->options.material, &c->reading, c->booted_ms, c->stop_fd, &err);
    if (!good && err.kind == CR_ERR_CANCELLED)
        return; /* we are stopping */
    cr_trigger_name(spec, name, sizeof name);
    cr_sidecar_metrics_trigger(c->options.metrics, c->options.material->name, spec->type, good);
    cr_log(CR_LOG_DEBUG, "trigger", {"material", c->options.material->name}, {"trigger", name},
           {"error", good ? NULL : err.text});
    if (!good)
        cr_error_wrap(&err, "%s", name);
    cr_delivery_trigger(&c->delivery, good ? NULL : err.text, now_of());
}

/* --- their results --- */

static void publish(struct cr_delivery_worker *c)
{
    pthread_mutex_lock(&c->lock);
    c->view = c->delivery;
    pthread_mutex_unlock(&c->lock);
    cr_sidecar_metrics_state(c->options.metrics, c->options.material->name, c->delivery.state);
}

static void finish_step(struct cr_delivery_worker *c, const struct cr_delivery *before)
{
    bool idle = c->delivery.phase == CR_PHASE_IDLE;
    if (idle) {
        cr_material_copy(&c->delivered, &c->reading.material);
        if (c->delivered.has_leaf)
            cr_metric_set(c->options.metrics->not_after, CR_LABELS(c->options.material->name),
                          (double)c->delivered.not_after_ms / 1000);
        keep_record(c, &c->delivery.delivered);
    }
    if (idle || c->delivery.phase == CR_PHASE_READ) /* it failed: the key is not kept until the next attempt */
        forget_reading(c);
    else if (c->delivery.phase == CR_PHASE_LOOK || c->delivery.phase == CR_PHASE_PROVE) /* for as long as it takes */
        cr_reading_drop_texts(&c->reading);
    delivery_report(&c->options, before, &c->delivery);
    publish(c);
}

static void do_step(struct cr_delivery_worker *c, const struct cr_delivery_step *step)
{
    const struct cr_delivery before = c->delivery;
    switch (step->act) {
    case CR_ACT_READ:
        read_files(c);
        break;
    case CR_ACT_OUTPUT:
        make_outputs(c);
        break;
    case CR_ACT_LOOK:
        look(c);
        break;
    case CR_ACT_TRIGGER:
        pull_trigger(c, step->trigger);
        break;
    case CR_ACT_WAIT:
        return;
    }
    if (step->act != CR_ACT_LOOK) /* however long a trigger took, what follows it has its time */
        c->read_again_ms = cr_clock_monotonic_ms() + NO_WATCH_MS;
    finish_step(c, &before);
}

/* --- the files --- */

static void add_paths(const struct cr_sidecar_material *material, struct cr_strvec *paths)
{
    const char *const own[] = {material->certificate, material->private_key, material->trust};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i])
            cr_strvec_add_unique(paths, own[i]);
    for (size_t i = 0; i < material->outputs_len; i++)
        if (material->outputs[i].password_file)
            cr_strvec_add_unique(paths, material->outputs[i].password_file);
}

/* Once: it is asked for at each pass. */
static void report_unwatched(struct cr_delivery_worker *c, const struct cr_error *why)
{
    if (c->unwatched == why->kind)
        return;
    c->unwatched = why->kind;
    cr_log(CR_LOG_WARN, "files are read every 10 s since they cannot be watched",
           {"material", c->options.material->name}, {"error", why->text});
}

static bool has_watch(struct cr_delivery_worker *c)
{
    struct cr_error err = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec paths = {0};
    if (c->watch)
        return true;
    add_paths(c->options.material, &paths);
    c->watch = cr_folder_watch_new((const char *const *)paths.items, paths.len, &err);
    if (!c->watch)
        report_unwatched(c, &err);
    else
        cr_delivery_changed(&c->delivery); /* until now nothing watched the files */
    return c->watch;
}

/* Milliseconds until the files are to be read; -1: no change is known. */
static int64_t take_changes(struct cr_delivery_worker *c)
{
    int64_t now_ms = cr_clock_monotonic_ms();
    int64_t left_ms = now_ms < c->read_again_ms ? c->read_again_ms - now_ms : 0;
    int64_t due = has_watch(c) ? cr_folder_watch_due(c->watch, now_ms) : left_ms;
    if (due == 0)
        cr_delivery_changed(&c->delivery);
    return due == 0 ? -1 : due;
}

/* What was checked may be gone. */
static bool is_being_written(const struct cr_delivery_worker *c)
{
    return c->watch && cr_folder_watch_is_pending(c->watch);
}

static int64_t sooner(int64_t a, int64_t b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}

/* Waits until the files may have changed, or for ms (-1: without end). False: the worker is to end. */
static bool wait_for(struct cr_delivery_worker *c, int64_t ms)
{
    struct pollfd fds[] = {{.fd = c->stop_fd, .events = POLLIN},
                           {.fd = c->watch ? cr_folder_watch_fd(c->watch) : -1, .events = POLLIN}};
    (void)poll(fds, 2, (int)ms);
    return !(fds[0].revents & POLLIN);
}

/* One pass of the loop. False: the worker is to end. */
static bool do_pass(struct cr_delivery_worker *c)
{
    int64_t due_ms = take_changes(c);
    struct cr_delivery_step step = cr_delivery_next(&c->delivery, cr_clock_monotonic_ms());
    bool unsure = step.act == CR_ACT_TRIGGER && is_being_written(c);
    if (step.act == CR_ACT_WAIT || unsure)
        return wait_for(c, sooner(unsure ? -1 : step.wait_ms, due_ms));
    do_step(c, &step);
    return wait_for(c, 0);
}

static void *run(void *arg)
{
    struct cr_delivery_worker *c = arg;
    while (do_pass(c))
        continue;
    return NULL;
}

/* --- called from other threads --- */

static void begin(struct cr_delivery_worker *c)
{
    const struct cr_sidecar_material *material = c->options.material;
    struct cr_delivery_rules rules = cr_delivery_rules_of(material);
    if (c->options.state_folder)
        rules.recorded = cr_record_read(c->options.state_folder, material->name, &rules.record);
    cr_delivery_init(&c->delivery, &rules, (uint64_t)cr_clock_monotonic_ns() ^ (uintptr_t)c);
    publish(c);
}

static bool start_thread(struct cr_delivery_worker *c, struct cr_error *err)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    int error = pthread_create(&c->thread, &attributes, run, c);
    pthread_attr_destroy(&attributes);
    return error == 0 || cr_error_set(err, CR_ERR_TRANSIENT, "cannot start a thread: %s", strerror(error));
}

static void destroy(struct cr_delivery_worker *c)
{
    cr_folder_watch_free(c->watch);
    cr_reading_dispose(&c->reading);
    cr_material_dispose(&c->delivered);
    pthread_mutex_destroy(&c->lock);
    if (c->stop_fd >= 0)
        close(c->stop_fd);
    free(c);
}

struct cr_delivery_worker *cr_delivery_worker_start(const struct cr_delivery_worker_options *options,
                                                    struct cr_error *err)
{
    struct cr_delivery_worker *c = cr_new(struct cr_delivery_worker);
    c->options = *options;
    c->booted_ms = cr_proc_booted_wall_ms();
    pthread_mutex_init(&c->lock, NULL);
    c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    begin(c);
    if (c->stop_fd >= 0 && start_thread(c, err))
        return c;
    if (c->stop_fd < 0)
        cr_error_set(err, CR_ERR_TRANSIENT, "cannot make an eventfd: %s", strerror(errno));
    destroy(c);
    return NULL;
}

void cr_delivery_worker_stop(struct cr_delivery_worker *c)
{
    const uint64_t one = 1;
    ssize_t ignored = write(c->stop_fd, &one, sizeof one);
    (void)ignored;
}

void cr_delivery_worker_free(struct cr_delivery_worker *c)
{
    if (!c)
        return;
    cr_delivery_worker_stop(c);
    pthread_join(c->thread, NULL);
    destroy(c);
}

void cr_delivery_worker_view(struct cr_delivery_worker *c, struct cr_delivery *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->view;
    pthread_mutex_unlock(&c->lock);
}

static bool take_settled(const struct cr_sidecar_material *material, struct cr_reading *out, struct cr_error *err)
{
    const struct timespec pause = {.tv_nsec = CR_DELIVERY_SETTLE_MS * 1000 * 1000};
    for (int tries = 1;; tries++) {
        enum cr_material_problem problem;
        if (cr_reading_take(material, cr_clock_wall_ms(), out, &problem, err))
            return true;
        if (tries == CR_DELIVERY_SETTLE_READS)
            return false;
        nanosleep(&pause, NULL);
    }
}

bool cr_delivery_worker_once(const struct cr_sidecar_material *material, struct cr_error *err)
{
    struct cr_output_seed seed;
    bool ignored = false;
    CR_CLEANUP(cr_reading) struct cr_reading reading = {0};
    if (!take_settled(material, &reading, err))
        return false;
    cr_output_seed(&reading, &seed);
    return cr_outputs_write(material, &reading, &seed, &ignored, err);
}
