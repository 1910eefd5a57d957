#include "wire/http_room.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/strings.h"

enum { MAX = 16 };

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in *ip4 = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *ip6 = (struct sockaddr_in6 *)&out;
    out.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    void *at = out.ss_family == AF_INET6 ? (void *)&ip6->sin6_addr : (void *)&ip4->sin_addr;
    assert_int_equal(inet_pton(out.ss_family, text, at), 1);
    return out;
}

static void enter(struct cr_http_room *room, struct cr_http_place *place, const char *from)
{
    struct sockaddr_storage at = address(from);
    cr_http_room_enter(room, place, (const struct sockaddr *)&at);
}

static void who_is_one_peer(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
        {"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
        {"2001:db8::1", "2001:db8:0:1::1", false},
        {"::1", "0.0.0.1", false},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_http_room) struct cr_http_room room;
        struct cr_http_place a;
        struct cr_http_place b;
        cr_http_room_init(&room, MAX);
        enter(&room, &a, cases[i].a);
        enter(&room, &b, cases[i].b);
        if ((a.peer == b.peer) != cases[i].same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
}

/* A connection of a case: its peer, its stage. The first is the oldest. */
struct connection {
    const char *from;
    enum cr_http_stage stage;
};

static size_t victim(const struct cr_http_place *places, size_t len)
{
    size_t found = 0;
    for (size_t i = 1; i < len; i++)
        if (cr_http_place_gives_way(&places[i], &places[found]))
            found = i;
    return found;
}

#define A "10.0.0.1"
#define B "10.0.0.2"
#define C "10.0.0.3"

static void who_gives_way(void **state)
{
    static const struct {
        const char *what;
        size_t victim;
        struct connection connections[5];
    } cases[] = {
        {"who has his answer goes before who has not asked", 1, {{A, CR_HTTP_READING}, {B, CR_HTTP_IDLE}}},
        {"who has not asked goes before who does not read", 1, {{A, CR_HTTP_ANSWERING}, {B, CR_HTTP_READING}}},
        {"who does not read goes before who has no answer", 1, {{A, CR_HTTP_QUEUED}, {B, CR_HTTP_ANSWERING}}},
        {"who waits for us goes last", 1, {{A, CR_HTTP_ASKED}, {B, CR_HTTP_QUEUED}}},
        {"of equals the oldest", 0, {{A, CR_HTTP_READING}, {B, CR_HTTP_READING}, {C, CR_HTTP_READING}}},
        {"of the peer with the most its oldest",
         1,
         {{A, CR_HTTP_READING}, {B, CR_HTTP_READING}, {B, CR_HTTP_READING}, {C, CR_HTTP_READING}}},
        {"the most in that stage: whoever waits for us is not held to account for it",
         0,
         {{A, CR_HTTP_READING}, {B, CR_HTTP_READING}, {B, CR_HTTP_ASKED}, {B, CR_HTTP_ASKED}}},
        {"of the kubelet's own address, too, its oldest",
         0,
         {{A, CR_HTTP_READING}, {A, CR_HTTP_READING}, {B, CR_HTTP_READING}}},
        {"of those that wait for us the youngest, since the first may be a kubelet",
         2,
         {{A, CR_HTTP_ASKED}, {B, CR_HTTP_ASKED}, {C, CR_HTTP_ASKED}}},
        {"but of the peer that has more", 1, {{B, CR_HTTP_ASKED}, {B, CR_HTTP_ASKED}, {C, CR_HTTP_ASKED}}},
    };
    (void)state;
    for (size_t i = 0; i < cr_array_len(cases); i++) {
        CR_CLEANUP(cr_http_room) struct cr_http_room room;
        struct cr_http_place places[5];
        size_t len = 0;
        cr_http_room_init(&room, MAX);
        for (; len < 5 && cases[i].connections[len].from; len++) {
            enter(&room, &places[len], cases[i].connections[len].from);
            cr_http_room_move(&room, &places[len], cases[i].connections[len].stage);
        }
        if (victim(places, len) != cases[i].victim)
            fail_msg("%s: number %zu", cases[i].what, victim(places, len));
    }
}

static void answers_are_shared_by_peers(void **state)
{
    (void)state;
    CR_CLEANUP(cr_http_room) struct cr_http_room room;
    struct cr_http_place slow;
    struct cr_http_place next;
    struct cr_http_place other;
    cr_http_room_init(&room, MAX);
    enter(&room, &slow, A);
    enter(&room, &next, A);
    enter(&room, &other, B);
    assert_true(cr_http_place_goes_first(&next, &other));
    cr_http_room_move(&room, &slow, CR_HTTP_ANSWERING);
    assert_true(cr_http_place_goes_first(&other, &next));
}

/* As many peers as connections, again and again: each place and each peer is free again afterwards. */
static void places_are_counted(void **state)
{
    enum { ROUNDS = 3 };
    (void)state;
    CR_CLEANUP(cr_http_room) struct cr_http_room room;
    struct cr_http_place places[MAX];
    cr_http_room_init(&room, MAX);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < MAX; i++) {
            char from[32];
            snprintf(from, sizeof from, "10.0.%d.%zu", round, i);
            assert_false(cr_http_room_is_full(&room));
            enter(&room, &places[i], from);
            assert_int_equal(places[i].peer->connections, 1);
            cr_http_room_move(&room, &places[i], i % CR_HTTP_STAGES);
        }
        assert_true(cr_http_room_is_full(&room));
        for (size_t i = 0; i < MAX; i++)
            cr_http_room_leave(&room, &places[i]);
        for (size_t i = 0; i < CR_HTTP_STAGES; i++)
            assert_int_equal(room.in[i], 0);
    }
}

static void some_places_are_left_for_newcomers(void **state)
{
    (void)state;
    CR_CLEANUP(cr_http_room) struct cr_http_room room;
    struct cr_http_place places[MAX];
    size_t len = 0;
    cr_http_room_init(&room, MAX);
    for (; !cr_http_room_is_too_busy(&room); len++) {
        enter(&room, &places[len], A);
        cr_http_room_move(&room, &places[len], len % 2 ? CR_HTTP_ANSWERING : CR_HTTP_QUEUED);
    }
    assert_int_equal(len, CR_HTTP_ROOM_BUSY(MAX) + 1);
    size_t before = len;
    for (; !cr_http_room_waits_too_much(&room); len++) {
        enter(&room, &places[len], A);
        cr_http_room_move(&room, &places[len], CR_HTTP_ASKED);
    }
    assert_int_equal(len - before, CR_HTTP_ROOM_ASKED(MAX) + 1);
    assert_int_equal(CR_HTTP_ROOM_BUSY(MAX) + CR_HTTP_ROOM_ASKED(MAX) + CR_HTTP_ROOM_FREE(MAX), MAX);
    assert_true(CR_HTTP_ROOM_FREE(MAX) >= MAX / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_one_peer),
        cmocka_unit_test(who_gives_way),
        cmocka_unit_test(answers_are_shared_by_peers),
        cmocka_unit_test(places_are_counted),
        cmocka_unit_test(some_places_are_left_for_newcomers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
