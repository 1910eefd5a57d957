/* The places that an HTTP server has for connections, and which connection gives way when they are taken. Pure.
 *
 * A hostile client can open any number of connections, from any number of addresses, so no limit of a peer alone keeps
 * a place free. What does: a newcomer always gets a place, and one that has done less for it gives way; and connections
 * with a whole request have half of the places at most, so that a newcomer, be it the youngest of its peer, has the
 * time in which CR_HTTP_ROOM_FREE(max) others come to send its request. */
#ifndef CR_WIRE_HTTP_ROOM_H
#define CR_WIRE_HTTP_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct sockaddr;

/* In the order in which they give way. */
enum cr_http_stage {
    CR_HTTP_IDLE,      /* it has its answer, and nothing of another request has come */
    CR_HTTP_READING,   /* its handshake or the head of its request is not whole */
    CR_HTTP_ANSWERING, /* it has not taken all of its answer */
    CR_HTTP_QUEUED,    /* its page is yet to be made */
    CR_HTTP_ASKED,     /* it waits for us: its guard, or a page that takes its time */
    CR_HTTP_STAGES,
};

enum { CR_HTTP_PEER_KEY = 16 };

/* Connections of one IPv4 address, or of one /64 of IPv6, which is what one machine can have for nothing. */
struct cr_http_peer {
    unsigned char key[CR_HTTP_PEER_KEY];
    size_t connections;
    size_t in[CR_HTTP_STAGES];
};

struct cr_http_place {
    struct cr_http_peer *peer;
    enum cr_http_stage stage;
    uint64_t came;  /* the lower, the older the connection */
    uint64_t since; /* the lower, the longer it is in its stage */
};

struct cr_http_room {
    size_t max;
    size_t taken;
    size_t in[CR_HTTP_STAGES];
    uint64_t moves;
    struct cr_http_peer *peers; /* owned; max + 1 */
};

/* How many of the places may be taken by requests that are being answered, by those that wait for us, and how many are
 * left for those that are not whole. */
#define CR_HTTP_ROOM_BUSY(max)  ((max) / 2)
#define CR_HTTP_ROOM_ASKED(max) ((max) / 4)
#define CR_HTTP_ROOM_FREE(max)  ((max)-CR_HTTP_ROOM_BUSY(max) - CR_HTTP_ROOM_ASKED(max))

/* max: at least 8. */
void cr_http_room_init(struct cr_http_room *room, size_t max);
void cr_http_room_dispose(struct cr_http_room *room);
CR_DEFINE_DISPOSE(cr_http_room, struct cr_http_room, cr_http_room_dispose)

/* A connection from there, which begins to read; the room must not be full. */
void cr_http_room_enter(struct cr_http_room *room, struct cr_http_place *place, const struct sockaddr *from);
void cr_http_room_move(struct cr_http_room *room, struct cr_http_place *place, enum cr_http_stage stage);
void cr_http_room_leave(struct cr_http_room *room, struct cr_http_place *place);

bool cr_http_room_is_full(const struct cr_http_room *room);
/* More than half of the places are taken: no client keeps its place for another request, since newcomers come before
 * those. */
bool cr_http_room_is_crowded(const struct cr_http_room *room);
/* More are being answered, or wait for their page, than may be. */
bool cr_http_room_is_too_busy(const struct cr_http_room *room);
/* More wait for us than may. */
bool cr_http_room_waits_too_much(const struct cr_http_room *room);

/* Whether a gives way rather than b: by stage; then the one of the peer that has more in that stage; among equals the
 * older connection (one request more makes it no younger), but among those that wait for us the one that began to wait
 * last: they are legitimate, and the one that came first stays. */
bool cr_http_place_gives_way(const struct cr_http_place *a, const struct cr_http_place *b);
/* Whether the newcomer may have the place of another in that one's stage: when its peer then has no more in there. */
bool cr_http_place_may_replace(const struct cr_http_place *newcomer, const struct cr_http_place *other);
/* Whether the page for a is made before the page for b: first that of the peer with fewer answers under way, else the
 * older. */
bool cr_http_place_goes_first(const struct cr_http_place *a, const struct cr_http_place *b);

#endif
