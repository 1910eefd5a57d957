#include "support/tlsscene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <openssl/ssl.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/strings.h"

static void on_event(void *arg, const struct cr_tlsreload_event *event)
{
    struct tls_scene *scene = arg;
    pthread_mutex_lock(&scene->lock);
    (void)snprintf(scene->problem, sizeof scene->problem, "%s", event->problem);
    (void)snprintf(scene->leaf_before, sizeof scene->leaf_before, "%s", event->before);
    scene->trust_changed = event->trust_changed;
    pthread_mutex_unlock(&scene->lock);
    atomic_fetch_add(event->reloaded ? &scene->done : &scene->refused, 1);
}

static void configure(void *arg, SSL_CTX *context)
{
    struct tls_scene *scene = arg;
    atomic_fetch_add(&scene->configured, 1);
    SSL_CTX_set_num_tickets(context, 1);
}

int tls_scene_set_up(void **state)
{
    struct tls_scene *scene = cr_new(struct tls_scene);
    void *volume = NULL;
    secret_volume_set_up(&volume);
    scene->volume = volume;
    pthread_mutex_init(&scene->lock, NULL);
    scene->ca = test_cert_new(&(struct test_cert_spec){.cn = "clients 1", .ca = true});
    scene->other_ca = test_cert_new(&(struct test_cert_spec){.cn = "clients 2", .ca = true});
    scene->client = test_cert_new(&(struct test_cert_spec){.cn = "client 1", .issuer = scene->ca});
    scene->other_client = test_cert_new(&(struct test_cert_spec){.cn = "client 2", .issuer = scene->other_ca});
    scene->leaf = test_cert_new(&(struct test_cert_spec){.cn = "server 1"});
    scene->next = test_cert_new(&(struct test_cert_spec){.cn = "server 2"});
    scene->options = (struct cr_tlsreload_options){
        .certificate = secret_volume_path(volume, "tls.crt"),
        .private_key = secret_volume_path(volume, "tls.key"),
        .configure = configure,
        .on_event = on_event,
        .arg = scene,
    };
    *state = scene;
    return 0;
}

int tls_scene_tear_down(void **state)
{
    struct tls_scene *scene = *state;
    void *volume = scene->volume;
    struct test_cert *const certs[] = {scene->ca,           scene->other_ca, scene->client,
                                       scene->other_client, scene->leaf,     scene->next};
    for (size_t i = 0; i < cr_array_len(certs); i++)
        test_cert_free(certs[i]);
    secret_volume_tear_down(&volume);
    pthread_mutex_destroy(&scene->lock);
    free(scene);
    return 0;
}

void tls_scene_ask(struct tls_scene *scene, enum cr_tlsreload_clients clients)
{
    scene->options.clients = clients;
    scene->options.client_ca = secret_volume_path(scene->volume, "ca.crt");
}

void tls_scene_publish(struct tls_scene *scene, const struct test_cert *leaf, const char *trust)
{
    secret_volume_write(scene->volume, "tls.crt", leaf->cert_pem);
    secret_volume_write(scene->volume, "tls.key", leaf->key_pem);
    if (trust)
        secret_volume_write(scene->volume, "ca.crt", trust);
    secret_volume_swap(scene->volume, false);
}

struct cr_tlsreload *tls_scene_serve(struct tls_scene *scene)
{
    struct cr_error err = {0};
    struct cr_tlsreload *tls = cr_tlsreload_new(&scene->options, &err);
    if (!tls)
        fail_msg("not served: %s", err.text);
    assert_true(cr_tlsreload_start(tls, &err));
    return tls;
}

struct tls_outcome tls_scene_call(struct cr_tlsreload *tls, struct tls_caller *caller)
{
    struct tls_caller anonymous = {0};
    struct tls_outcome outcome = tls_call(cr_tlsreload_accept(tls), caller ? caller : &anonymous);
    tls_caller_dispose(&anonymous);
    return outcome;
}

void tls_scene_assert_serves(struct cr_tlsreload *tls, const struct test_cert *leaf)
{
    char expected[65];
    struct cr_tlsreload_state state;
    test_cert_digest(leaf, expected);
    struct tls_outcome outcome = tls_scene_call(tls, NULL);
    if (!outcome.ok)
        fail_msg("no handshake: %s", outcome.problem);
    assert_string_equal(outcome.leaf, expected);
    cr_tlsreload_state(tls, &state);
    assert_string_equal(state.leaf, expected);
}

void tls_scene_wait(const atomic_int *counter, int least)
{
    for (int64_t end = cr_clock_monotonic_ms() + TLS_SCENE_PATIENCE_MS; atomic_load(counter) < least; usleep(2000))
        assert_true(cr_clock_monotonic_ms() < end);
}

void tls_scene_put(struct tls_scene *scene, const struct test_cert *leaf)
{
    secret_volume_put(scene->volume, "tls.crt", leaf->cert_pem, strlen(leaf->cert_pem));
    secret_volume_put(scene->volume, "tls.key", leaf->key_pem, strlen(leaf->key_pem));
}
