#include "cluster/catalogue_source.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/object.h"
#include "runtime/informer.h"

struct cr_catalogue_source {
    struct cr_catalogue_source_options options; /* ns and name borrowed from below */
    char *ns;
    char *name;
    struct cr_catalogue *builtin;
    struct cr_metric *valid;
    pthread_mutex_t lock;
    struct cr_snapshot *good; /* the last content that could be used; NULL: the built-in catalogue is effective */
    bool refused;             /* the ConfigMap's present content is not the effective one */
    /* The Event to emit about it; uid NULL: none. */
    char *uid;
    char *message;
};

/* --- from the ConfigMap to a catalogue; once per version, in the loop's thread --- */

struct loaded {
    struct cr_catalogue *catalogue; /* NULL: problem says why */
    struct cr_error problem;
    size_t documents;
};

static void loaded_free(void *value)
{
    struct loaded *loaded = value;
    if (!loaded)
        return;
    cr_catalogue_free(loaded->catalogue);
    free(loaded);
}

static bool ends_in_yaml(const char *name)
{
    return cr_ends_with(name, ".yaml") && !cr_streq(name, ".yaml");
}

/* Keys come from the API server in the order of their names. */
static bool load_data(const struct cr_json *data, struct loaded *loaded, struct cr_error *err)
{
    size_t count = cr_json_len(data);
    cr_autofree struct cr_catalogue_text *texts = cr_calloc(count ? count : 1, sizeof *texts);
    for (const struct cr_json *entry = cr_json_first(data); entry; entry = cr_json_next(entry)) {
        const char *key = cr_json_key(entry);
        const char *text = cr_or_empty(cr_json_string(entry));
        if (!ends_in_yaml(key))
            return cr_error_set(err, CR_ERR_INVALID,
                                "%s: keys must end in .yaml, each with a document of the catalogue", key);
        texts[loaded->documents++] = (struct cr_catalogue_text){.name = key, .yaml = text, .len = strlen(text)};
    }
    loaded->catalogue = cr_catalogue_override(texts, loaded->documents, err);
    return loaded->catalogue != NULL;
}

static bool project(void *arg, struct cr_json *json, struct cr_snapshot *snapshot)
{
    (void)arg;
    struct loaded *loaded = cr_new(struct loaded);
    if (cr_json_len(cr_json_get(json, "binaryData")))
        cr_error_set(&loaded->problem, CR_ERR_INVALID, "binaryData is not read: the documents belong in data");
    else if (!load_data(cr_json_get(json, "data"), loaded, &loaded->problem))
        loaded->catalogue = NULL;
    cr_json_remove(json, "data");
    cr_json_remove(json, "binaryData");
    cr_json_remove(cr_json_edit(json, "metadata"), "managedFields");
    cr_json_remove(cr_json_edit(json, "metadata"), "annotations");
    snapshot->extra = loaded;
    snapshot->free_extra = loaded_free;
    return true;
}

/* --- the effective catalogue --- */

static void make_effective(struct cr_catalogue_source *source, struct cr_snapshot *snapshot)
{
    pthread_mutex_lock(&source->lock);
    struct cr_snapshot *before = source->good;
    source->good = snapshot ? cr_snapshot_ref(snapshot) : NULL;
    pthread_mutex_unlock(&source->lock);
    cr_snapshot_unref(before);
    source->options.on_change(source->options.arg);
}

/* message NULL: it is in use, which is news only after a refusal. */
static void note_news(struct cr_catalogue_source *source, const struct cr_snapshot *snapshot, const char *message)
{
    pthread_mutex_lock(&source->lock);
    bool news = message || source->refused;
    source->refused = message != NULL;
    cr_strset(&source->uid, news && snapshot ? cr_obj_uid(snapshot->json) : NULL);
    cr_strset(&source->message, message);
    bool has_event = source->uid != NULL;
    pthread_mutex_unlock(&source->lock);
    cr_metric_set(source->valid, NULL, message ? 0 : 1);
    if (has_event)
        source->options.on_news(source->options.arg);
}

static void refuse(struct cr_catalogue_source *source, const struct cr_snapshot *snapshot, const struct loaded *loaded)
{
    cr_log(CR_LOG_WARN, "overrides of the catalogue are refused, what was in force stays",
           {"namespace", source->options.ns}, {"configmap", source->options.name}, {"error", loaded->problem.text});
    note_news(source, snapshot, loaded->problem.text);
}

static void accept(struct cr_catalogue_source *source, struct cr_snapshot *snapshot, const struct loaded *loaded)
{
    char documents[24];
    char entries[24];
    snprintf(documents, sizeof documents, "%zu", loaded->documents);
    snprintf(entries, sizeof entries, "%zu", cr_catalogue_len(loaded->catalogue));
    cr_log(CR_LOG_INFO, "overrides of the catalogue are in force", {"namespace", source->options.ns},
           {"configmap", source->options.name}, {"documents", documents}, {"entries", entries});
    make_effective(source, snapshot);
    note_news(source, snapshot, NULL);
}

static void on_change(void *arg, const struct cr_change *change)
{
    struct cr_catalogue_source *source = arg;
    struct cr_snapshot *after = change->after;
    if (!after) {
        cr_log(CR_LOG_INFO, "overrides of the catalogue are gone", {"namespace", source->options.ns},
               {"configmap", source->options.name});
        make_effective(source, NULL);
        note_news(source, NULL, NULL);
        return;
    }
    const struct loaded *loaded = after->extra;
    if (loaded->catalogue)
        accept(source, after, loaded);
    else
        refuse(source, after, loaded);
}

struct cr_catalogue_hold cr_catalogue_source_hold(struct cr_catalogue_source *source)
{
    struct cr_catalogue_hold hold = {.catalogue = source->builtin};
    pthread_mutex_lock(&source->lock);
    if (source->good) {
        hold.snapshot = cr_snapshot_ref(source->good);
        hold.catalogue = ((const struct loaded *)source->good->extra)->catalogue;
    }
    pthread_mutex_unlock(&source->lock);
    return hold;
}

void cr_catalogue_hold_dispose(struct cr_catalogue_hold *hold)
{
    cr_snapshot_unref(hold->snapshot);
    *hold = (struct cr_catalogue_hold){0};
}

/* --- Events --- */

void cr_catalogue_source_emit_event(struct cr_catalogue_source *source, struct cr_recorder *recorder)
{
    pthread_mutex_lock(&source->lock);
    cr_autofree char *uid = cr_steal(&source->uid);
    cr_autofree char *problem = cr_steal(&source->message);
    pthread_mutex_unlock(&source->lock);
    if (!uid)
        return;
    cr_autofree char *message =
        problem ? cr_asprintf("%s; what was in force before stays", problem) : cr_strdup("The overrides are in force.");
    struct cr_event event = {.api_version = "v1",
                             .kind = "ConfigMap",
                             .ns = source->options.ns,
                             .name = source->options.name,
                             .uid = uid,
                             .warning = problem != NULL,
                             .reason = problem ? "CatalogueRefused" : "CatalogueInForce",
                             .message = message};
    cr_recorder_emit(recorder, &event);
}

/* --- set-up --- */

static void watch(struct cr_catalogue_source *source)
{
    cr_autofree char *selector = cr_asprintf("metadata.name=%s", source->options.name);
    struct cr_informer_options options = {
        .watch = {.resource = &cr_res_configmaps, .ns = source->options.ns, .field_selector = selector},
        .project = project,
        .on_change = on_change,
        .arg = source,
    };
    cr_manager_add_informer(source->options.manager,
                            cr_informer_new(source->options.client, source->options.loop, &options));
}

struct cr_catalogue_source *cr_catalogue_source_new(const struct cr_catalogue_source_options *options,
                                                    struct cr_error *err)
{
    CR_CLEANUP(cr_catalogue_source) struct cr_catalogue_source *source = cr_new(struct cr_catalogue_source);
    pthread_mutex_init(&source->lock, NULL);
    source->options = *options;
    source->options.ns = source->ns = cr_strdup_or_null(options->ns);
    source->options.name = source->name = cr_strdup(options->name ? options->name : CR_CATALOGUE_CONFIGMAP);
    source->builtin = cr_catalogue_builtin(err);
    if (!source->builtin)
        return NULL;
    source->valid = cr_metrics_gauge(options->metrics, "certroll_catalogue_override_valid",
                                     "Whether the overrides of the catalogue, if there are any, are in force.", NULL);
    cr_metric_set(source->valid, NULL, 1);
    if (options->ns && *source->options.name)
        watch(source);
    return cr_steal(&source);
}

void cr_catalogue_source_free(struct cr_catalogue_source *source)
{
    if (!source)
        return;
    cr_snapshot_unref(source->good);
    cr_catalogue_free(source->builtin);
    pthread_mutex_destroy(&source->lock);
    free(source->uid);
    free(source->message);
    free(source->ns);
    free(source->name);
    free(source);
}
