#include "controlplane/agent/order.h"

#include "base/strings.h"

bool cr_node_act_is_under_way(const struct cr_node_act *act)
{
    return act->phase == CR_NODE_ACT_RESTARTING || act->phase == CR_NODE_ACT_PROVING;
}

bool cr_node_act_equal(const struct cr_node_act *a, const struct cr_node_act *b)
{
    return a->phase == b->phase && cr_streq(a->token, b->token) && cr_streq(a->component, b->component) &&
           cr_streq(a->process, b->process);
}

static enum cr_node_next under_way(const struct cr_node_order *order, const struct cr_node_act *act,
                                   const struct cr_node_order_view *view)
{
    bool begun = act->phase == CR_NODE_ACT_PROVING || view->begun || view->other_process;
    if (begun)
        return CR_NODE_NEXT_FOLLOW;
    /* An agent that died in between may come back long after, to a cluster that is not as it was then. */
    if (!cr_streq(order->token, act->token))
        return CR_NODE_NEXT_FORGET;
    if (!view->recorded)
        return CR_NODE_NEXT_NOTHING;
    return view->ours ? CR_NODE_NEXT_BEGIN : CR_NODE_NEXT_ACQUIRE;
}

static enum cr_node_next waiting(const struct cr_node_order_view *view)
{
    if (view->refusal)
        return CR_NODE_NEXT_REFUSE;
    if (!view->recorded)
        return CR_NODE_NEXT_NOTHING;
    return view->ours ? CR_NODE_NEXT_RECORD : CR_NODE_NEXT_ACQUIRE;
}

enum cr_node_next cr_node_order_next(const struct cr_node_order *order, const struct cr_node_act *act,
                                     const struct cr_node_order_view *view)
{
    if (cr_node_act_is_under_way(act))
        return under_way(order, act, view);
    if (order->token && !cr_streq(order->token, act->token))
        return CR_NODE_NEXT_ACCEPT;
    if (act->phase == CR_NODE_ACT_WAITING)
        return order->token ? waiting(view) : CR_NODE_NEXT_FORGET;
    /* The next holder must see how it ended before it acquires the Lease. */
    return view->claimed && view->recorded ? CR_NODE_NEXT_RELEASE : CR_NODE_NEXT_NOTHING;
}
