/* What an agent does next about an order, given what it knows: pure, so that each step can be the last and the next
 * agent of the node finds its way by the report and the node alone.
 *
 * An order is: accepted (phase Waiting, which is written), then waits for the node Lease; Restarting is written with
 * the process that is to go, before anything is done; then it is begun, and followed to Done or Failed, which is
 * written; then the Lease is released. A token that came to its end is not taken up again. What has been begun is
 * brought to its end, whatever the order says by then; what is not known to have been is forgotten when the order is
 * taken back. */
#ifndef CR_CONTROLPLANE_AGENT_ORDER_H
#define CR_CONTROLPLANE_AGENT_ORDER_H

#include <stdbool.h>

#include "api/node_report.h"

enum cr_node_next {
    CR_NODE_NEXT_NOTHING, /* or wait until the report is written */
    CR_NODE_NEXT_ACCEPT,  /* a new order: the act is about it from now on, and Waiting */
    CR_NODE_NEXT_REFUSE,  /* for view.refusal */
    CR_NODE_NEXT_FORGET,  /* it was taken back before it was begun: the act is about nothing */
    CR_NODE_NEXT_ACQUIRE, /* the node Lease */
    CR_NODE_NEXT_RECORD,  /* Restarting, with the process that is to go; written against what the order was read from */
    CR_NODE_NEXT_BEGIN,   /* cr_node_restart_begin */
    CR_NODE_NEXT_FOLLOW,  /* cr_node_restart_follow */
    CR_NODE_NEXT_RELEASE, /* the node Lease */
};

struct cr_node_order_view {
    bool recorded;       /* the API server has the act as it is here */
    bool ours;           /* the node Lease is held now */
    bool claimed;        /* the node Lease is to be released */
    bool begun;          /* known to be: the manifest has the token, or this process has done it */
    bool other_process;  /* another one runs than act->process */
    const char *refusal; /* why it cannot be done at all; NULL: it can */
};

enum cr_node_next cr_node_order_next(const struct cr_node_order *order, const struct cr_node_act *act,
                                     const struct cr_node_order_view *view);

/* Restarting or Proving: it has been begun, or may have been. */
bool cr_node_act_is_under_way(const struct cr_node_act *act);
/* Same token, component, phase and process. */
bool cr_node_act_equal(const struct cr_node_act *a, const struct cr_node_act *b);

#endif
