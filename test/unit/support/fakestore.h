/* An API server that keeps objects, for tests that follow one write to the next: GET, POST, merge patches and DELETE
 * with their preconditions, by path alone, without schemas or rights. What it cannot do a real API server must show
 * (test/integration). A write can be made to fail, before or after it is done, as when somebody is killed there. */
#ifndef TEST_SUPPORT_FAKESTORE_H
#define TEST_SUPPORT_FAKESTORE_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "base/strmap.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "kube/client.h"
#include "support/fakeapi.h"
#include "support/testserver.h"
#include "support/yamltext.h"

enum fake_fault { FAKE_FAULT_NONE, FAKE_FAULT_BEFORE, FAKE_FAULT_AFTER };

struct fake_store {
    struct test_server *server;
    struct cr_loop *loop;
    pthread_t thread;
    struct cr_client *client;
    pthread_mutex_t lock;
    struct cr_strmap *objects; /* path → object */
    struct cr_strvec writes;   /* "PATCH /api/v1/…", each that was asked for */
    char *last_body;           /* of the last write */
    long version;
    size_t fail_at; /* the write of that number (from 1) fails; 0: none */
    enum fake_fault fault;
    const char *forbidden; /* a part of paths that may not be read or written; NULL: none */
};

static void fake_store_free_value(void *value)
{
    cr_json_free_secret(value);
}

/* --- objects --- */

static void fake_store_stamp(struct fake_store *store, struct cr_json *object)
{
    char text[32];
    struct cr_json *metadata = cr_json_object_in(object, "metadata");
    snprintf(text, sizeof text, "%ld", ++store->version);
    if (!cr_json_get(metadata, "uid"))
        cr_json_set_string(metadata, "uid", text);
    cr_json_set_string(metadata, "resourceVersion", text);
}

/* RFC 7386. */
static void fake_store_merge(struct cr_json *target, const struct cr_json *patch)
{
    for (const struct cr_json *member = cr_json_first(patch); member; member = cr_json_next(member)) {
        const char *key = cr_json_key(member);
        if (cr_json_is_null(member))
            cr_json_remove(target, key);
        else if (cr_json_is_object(member))
            fake_store_merge(cr_json_object_in(target, key), member);
        else
            cr_json_set(target, key, cr_json_copy(member));
    }
}

static bool fake_store_differs(const char *wanted, const char *is)
{
    return wanted && !cr_streq(wanted, is);
}

/* wanted: what has uid and resourceVersion as members. */
static bool fake_store_conflicts(const struct cr_json *object, const struct cr_json *wanted)
{
    static const char *const names[] = {"uid", "resourceVersion"};
    for (size_t i = 0; i < 2; i++)
        if (fake_store_differs(cr_json_string_at(wanted, names[i]), cr_json_string_at(object, "metadata", names[i])))
            return true;
    return false;
}

/* --- requests --- */

static void fake_store_fail(struct test_conn *conn, int status, const char *reason)
{
    cr_autofree char *body = cr_asprintf(
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d,\"reason\":\"%s\",\"message\":\"the store says %s\"}",
        status, reason, reason);
    test_conn_answer(conn, status, "Content-Type: application/json\r\n", body);
}

static void fake_store_answer(struct test_conn *conn, const struct cr_json *object)
{
    cr_autofree char *body = cr_json_print(object);
    test_conn_answer(conn, 200, "Content-Type: application/json\r\n", body);
}

/* The write itself; 0 or the HTTP status that it fails with. */
static int fake_store_apply(struct fake_store *store, const char *method, const char *path, struct cr_json *body,
                            const struct cr_json **result)
{
    struct cr_json *known = cr_strmap_get(store->objects, path);
    if (strcmp(method, "POST") == 0) {
        cr_autofree char *place = cr_asprintf("%s/%s", path, cr_json_string_at(body, "metadata", "name"));
        if (cr_strmap_get(store->objects, place))
            return 409;
        struct cr_json *made = cr_json_copy(body);
        fake_store_stamp(store, made);
        cr_strmap_set(store->objects, place, made);
        *result = made;
        return 0;
    }
    if (!known)
        return 404;
    if (strcmp(method, "DELETE") == 0) {
        if (fake_store_conflicts(known, cr_json_get(body, "preconditions")))
            return 409;
        cr_strmap_remove(store->objects, path);
        return 0;
    }
    if (fake_store_conflicts(known, cr_json_get(body, "metadata")))
        return 409;
    fake_store_merge(known, body);
    fake_store_stamp(store, known);
    *result = known;
    return 0;
}

static void fake_store_write(struct fake_store *store, struct test_conn *conn, const char *method, const char *path)
{
    cr_autofree char *line = cr_asprintf("%s %s", method, path);
    cr_strvec_add(&store->writes, line);
    cr_strset(&store->last_body, conn->body);
    enum fake_fault fault = store->writes.len == store->fail_at ? store->fault : FAKE_FAULT_NONE;
    struct cr_json *body = cr_json_parse(conn->body, conn->body_len, NULL);
    const struct cr_json *result = body;
    int failed = fault == FAKE_FAULT_BEFORE ? 500 : fake_store_apply(store, method, path, body, &result);
    if (!failed && fault == FAKE_FAULT_AFTER)
        failed = 500;
    if (failed)
        fake_store_fail(conn, failed,
                        failed == 404   ? "NotFound"
                        : failed == 500 ? "InternalError"
                                        : (strcmp(method, "POST") == 0 ? "AlreadyExists" : "Conflict"));
    else
        fake_store_answer(conn, result);
    cr_json_free_secret(body);
}

static void fake_store_serve(struct test_conn *conn, void *arg)
{
    struct fake_store *store = arg;
    while (test_conn_request(conn)) {
        char method[16];
        char path[1024];
        if (sscanf(conn->head, "%15s %1023s", method, path) != 2)
            return;
        path[strcspn(path, "?")] = '\0';
        pthread_mutex_lock(&store->lock);
        const struct cr_json *known = cr_strmap_get(store->objects, path);
        if (store->forbidden && strstr(path, store->forbidden))
            fake_store_fail(conn, 403, "Forbidden");
        else if (strcmp(method, "GET") != 0)
            fake_store_write(store, conn, method, path);
        else if (known)
            fake_store_answer(conn, known);
        else
            fake_store_fail(conn, 404, "NotFound");
        pthread_mutex_unlock(&store->lock);
    }
}

/* --- for tests --- */

static void *fake_store_loop(void *loop)
{
    cr_loop_run(loop);
    return NULL;
}

static inline void fake_store_start(struct fake_store *store)
{
    *store = (struct fake_store){.objects = cr_strmap_new(fake_store_free_value)};
    pthread_mutex_init(&store->lock, NULL);
    store->server = test_server_new(&(struct test_server_options){.serve = fake_store_serve, .arg = store});
    store->loop = cr_loop_new();
    store->client = fake_client(store->loop, test_server_port(store->server));
    if (pthread_create(&store->thread, NULL, fake_store_loop, store->loop) != 0)
        abort();
}

static inline void fake_store_stop(struct fake_store *store)
{
    cr_loop_stop(store->loop);
    pthread_join(store->thread, NULL);
    cr_client_free(store->client);
    cr_loop_free(store->loop);
    test_server_free(store->server);
    cr_strmap_free(store->objects);
    cr_strvec_dispose(&store->writes);
    free(store->last_body);
    pthread_mutex_destroy(&store->lock);
}

/* Takes the object; replaces what is there. The path is that of the object itself. */
static inline void fake_store_put(struct fake_store *store, const char *path, struct cr_json *object)
{
    pthread_mutex_lock(&store->lock);
    fake_store_stamp(store, object);
    cr_strmap_set(store->objects, path, object);
    pthread_mutex_unlock(&store->lock);
}

/* Borrowed, while nothing writes. NULL: not there. */
static inline const struct cr_json *fake_store_get(struct fake_store *store, const char *path)
{
    pthread_mutex_lock(&store->lock);
    const struct cr_json *found = cr_strmap_get(store->objects, path);
    pthread_mutex_unlock(&store->lock);
    return found;
}

#endif
