#include "wire/http_room.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

void cr_http_room_init(struct cr_http_room *room, size_t max)
{
    *room = (struct cr_http_room){.max = max, .peers = cr_calloc(max + 1, sizeof *room->peers)};
}

void cr_http_room_dispose(struct cr_http_room *room)
{
    free(room->peers);
}

/* --- peers --- */

/* IPv4 has the same key in both families: a socket of both shows it as ::ffff:192.0.2.1 (RFC 4291, section 2.5.5.2). */
static void make_key(const struct sockaddr *from, unsigned char key[CR_HTTP_PEER_KEY])
{
    enum { IP4_PREFIX = 12, IP6_NETWORK = 8 };
    memset(key, 0, CR_HTTP_PEER_KEY);
    if (from->sa_family == AF_INET) {
        key[10] = key[11] = 0xff;
        memcpy(key + IP4_PREFIX, &((const struct sockaddr_in *)from)->sin_addr, sizeof(struct in_addr));
    } else if (from->sa_family == AF_INET6) {
        const struct in6_addr *address = &((const struct sockaddr_in6 *)from)->sin6_addr;
        memcpy(key, address, IN6_IS_ADDR_V4MAPPED(address) ? CR_HTTP_PEER_KEY : IP6_NETWORK);
    }
}

/* The one of that key, else a free one: there are more than connections. */
static struct cr_http_peer *peer_of(struct cr_http_room *room, const struct sockaddr *from)
{
    unsigned char key[CR_HTTP_PEER_KEY];
    struct cr_http_peer *unused = &room->peers[room->max];
    make_key(from, key);
    for (size_t i = 0; i <= room->max; i++) {
        struct cr_http_peer *peer = &room->peers[i];
        if (peer->connections && memcmp(peer->key, key, sizeof key) == 0)
            return peer;
        if (!peer->connections)
            unused = peer;
    }
    memcpy(unused->key, key, sizeof key);
    return unused;
}

/* --- places --- */

static void count(struct cr_http_room *room, struct cr_http_place *place, enum cr_http_stage stage)
{
    place->stage = stage;
    place->since = ++room->moves;
    place->peer->in[stage]++;
    room->in[stage]++;
}

static void uncount(struct cr_http_room *room, struct cr_http_place *place)
{
    place->peer->in[place->stage]--;
    room->in[place->stage]--;
}

void cr_http_room_enter(struct cr_http_room *room, struct cr_http_place *place, const struct sockaddr *from)
{
    place->peer = peer_of(room, from);
    place->peer->connections++;
    room->taken++;
    count(room, place, CR_HTTP_READING);
    place->came = place->since;
}

void cr_http_room_move(struct cr_http_room *room, struct cr_http_place *place, enum cr_http_stage stage)
{
    uncount(room, place);
    count(room, place, stage);
}

void cr_http_room_leave(struct cr_http_room *room, struct cr_http_place *place)
{
    uncount(room, place);
    place->peer->connections--;
    room->taken--;
}

bool cr_http_room_is_full(const struct cr_http_room *room)
{
    return room->taken >= room->max;
}

bool cr_http_room_is_crowded(const struct cr_http_room *room)
{
    return room->taken > room->max / 2;
}

bool cr_http_room_is_too_busy(const struct cr_http_room *room)
{
    return room->in[CR_HTTP_ANSWERING] + room->in[CR_HTTP_QUEUED] > CR_HTTP_ROOM_BUSY(room->max);
}

bool cr_http_room_waits_too_much(const struct cr_http_room *room)
{
    return room->in[CR_HTTP_ASKED] > CR_HTTP_ROOM_ASKED(room->max);
}

/* --- who gives way --- */

bool cr_http_place_gives_way(const struct cr_http_place *a, const struct cr_http_place *b)
{
    if (a->stage != b->stage)
        return a->stage < b->stage;
    size_t of_a = a->peer->in[a->stage];
    size_t of_b = b->peer->in[b->stage];
    if (of_a != of_b)
        return of_a > of_b;
    return a->stage == CR_HTTP_ASKED ? a->since > b->since : a->came < b->came;
}

bool cr_http_place_may_replace(const struct cr_http_place *newcomer, const struct cr_http_place *other)
{
    return newcomer->peer->in[other->stage] + 1 < other->peer->in[other->stage];
}

bool cr_http_place_goes_first(const struct cr_http_place *a, const struct cr_http_place *b)
{
    size_t of_a = a->peer->in[CR_HTTP_ANSWERING];
    size_t of_b = b->peer->in[CR_HTTP_ANSWERING];
    return of_a != of_b ? of_a < of_b : a->since < b->since;
}
