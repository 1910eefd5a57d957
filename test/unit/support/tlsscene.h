/* A server on tlsreload, its material in a Secret's volume, clients of two CAs, and what was notified. */
#ifndef TEST_SUPPORT_TLSSCENE_H
#define TEST_SUPPORT_TLSSCENE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/secretvolume.h"
#include "support/tlsends.h"
#include "tlsreload/tlsreload.h"

enum { TLS_SCENE_PATIENCE_MS = 60 * 1000 };

struct tls_scene {
    struct secret_volume *volume;
    struct test_cert *ca, *other_ca; /* of clients */
    struct test_cert *client, *other_client;
    struct test_cert *leaf, *next;       /* of the server */
    struct cr_tlsreload_options options; /* no client is asked for a certificate, until tls_scene_ask */
    atomic_int done, refused, configured;
    pthread_mutex_t lock;
    char problem[512]; /* of the last event */
    bool trust_changed;
    char leaf_before[64 + 1];
};

/* For cmocka. */
int tls_scene_set_up(void **state);
int tls_scene_tear_down(void **state);

void tls_scene_ask(struct tls_scene *scene, enum cr_tlsreload_clients clients);
/* By a swap of ..data; trust may be NULL. */
void tls_scene_publish(struct tls_scene *scene, const struct test_cert *leaf, const char *trust);
/* In place, one file after the other. */
void tls_scene_put(struct tls_scene *scene, const struct test_cert *leaf);

/* Started. Owned. */
struct cr_tlsreload *tls_scene_serve(struct tls_scene *scene);
/* A whole handshake; caller NULL: any client. */
struct tls_outcome tls_scene_call(struct cr_tlsreload *tls, struct tls_caller *caller);
void tls_scene_assert_serves(struct cr_tlsreload *tls, const struct test_cert *leaf);
/* Until so many were counted. */
void tls_scene_wait(const atomic_int *counter, int least);

#endif
