#include "pki/bundle_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct work {
    struct cr_cutoff *cutoff;
    const struct cr_order_question *q;
    size_t *order; /* all certificates */
    bool *chosen;  /* by certificate */
    size_t *bundle;
    size_t lost; /* the first that one of CR_CLIENTS_KEPT has lost of the subjects that are looked at, and by whom */
    unsigned losers;
};

/* Subjects that are looked at together, their certificates, and how far the search has come. */
struct search {
    struct work *w;
    bool *names;
    size_t *members; /* of these subjects, not OUT; in the order that is tried */
    size_t *first;   /* the same, in the order from which the others are made */
    size_t *rank;    /* by certificate: its place in that */
    size_t len;
    size_t *leaves; /* that these concern */
    size_t leaves_len;
    size_t *best; /* order and choice with which only clients beyond CR_CLIENTS_KEPT lose */
    bool *best_chosen;
    size_t best_lost; /* leaves; SIZE_MAX: there is none yet */
    bool found;       /* no client loses a leaf; and then that is the order */
};

void cr_ordered_dispose(struct cr_ordered *ordered)
{
    free(ordered->bundle);
    *ordered = (struct cr_ordered){0};
}

/* --- one bundle --- */

static size_t list(struct work *w)
{
    size_t len = 0;
    for (size_t i = 0; i < w->q->len; i++)
        if (w->chosen[w->order[i]])
            w->bundle[len++] = w->order[i];
    return len;
}

/* The first leaf that a client loses; false: there is none, or the cutoff is spent. */
static bool find_loss(struct work *w, size_t *leaf)
{
    size_t len = list(w);
    for (size_t i = 0; i < cr_cutoff_leaves(w->cutoff) && !cr_cutoff_is_spent(w->cutoff); i++) {
        *leaf = i;
        if (cr_cutoff_losers(w->cutoff, i, w->bundle, len))
            return true;
    }
    return false;
}

/* --- all bundles of some subjects --- */

static bool is_member(const struct search *s, size_t cert)
{
    return s->w->q->wishes[cert] != CR_ORDER_OUT && s->names[cr_cutoff_name(s->w->cutoff, cert)];
}

/* In the places that they have among the others. */
static void place(struct search *s)
{
    size_t next = 0;
    for (size_t i = 0; i < s->w->q->len; i++)
        if (is_member(s, s->w->order[i]))
            s->w->order[i] = s->members[next++];
}

/* Who has lost one is asked first the next time. */
static void ask_first(struct search *s, size_t at)
{
    size_t leaf = s->leaves[at];
    memmove(s->leaves + 1, s->leaves, at * sizeof *s->leaves);
    s->leaves[0] = leaf;
}

/* The first that is found, with all that is at hand: what is left out later costs others theirs. */
static void note_loser(struct work *w, size_t leaf, unsigned losers)
{
    if (w->losers)
        return;
    w->lost = leaf;
    w->losers = losers;
}

/* How many leaves are lost, all by clients beyond CR_CLIENTS_KEPT; SIZE_MAX: others are, too, or as many as by the
 * best.
 */
static size_t count_losses(struct search *s)
{
    struct work *w = s->w;
    size_t lost = 0;
    size_t len = list(w);
    for (size_t i = 0; i < s->leaves_len && lost < s->best_lost && !cr_cutoff_is_spent(w->cutoff); i++) {
        unsigned losers = cr_cutoff_losers(w->cutoff, s->leaves[i], w->bundle, len);
        lost += losers != 0;
        if (losers & CR_CUTOFF_KEPT) {
            note_loser(w, s->leaves[i], losers);
            ask_first(s, i);
            return SIZE_MAX;
        }
    }
    return lost < s->best_lost ? lost : SIZE_MAX;
}

static void try_it(struct search *s)
{
    place(s);
    size_t lost = count_losses(s);
    if (lost == SIZE_MAX || cr_cutoff_is_spent(s->w->cutoff))
        return;
    s->found = lost == 0;
    s->best_lost = lost;
    memcpy(s->best, s->members, s->len * sizeof *s->best);
    memcpy(s->best_chosen, s->w->chosen, s->w->q->len * sizeof *s->best_chosen);
}

static bool is_over(const struct search *s)
{
    return s->found || cr_cutoff_is_spent(s->w->cutoff);
}

static void permute(struct search *s, size_t at);

static bool is_of_name(const struct search *s, size_t at, size_t name)
{
    return s->w->chosen[s->members[at]] && cr_cutoff_name(s->w->cutoff, s->members[at]) == name;
}

/* The one before it is a later one of the first order, and no client can distinguish the two where they stand: then the
 * order with both in each other's place is tried as well, and that is enough. */
static bool is_tried_otherwise(const struct search *s, size_t at, size_t one)
{
    const struct cr_cutoff *cutoff = s->w->cutoff;
    size_t name = cr_cutoff_name(cutoff, one);
    size_t last = at;
    while (last > 0 && !is_of_name(s, last - 1, name))
        last--;
    if (!last-- || s->rank[s->members[last]] < s->rank[one])
        return false;
    size_t other = s->members[last];
    bool before = false;
    bool behind = false;
    bool first = cr_cutoff_is_same_ca(cutoff, one, other); /* maybe the first of their CA */
    for (size_t i = 0; i < s->len; i++) {
        if (i == last || s->members[i] == one || !is_of_name(s, i, name))
            continue;
        bool covers = cr_cutoff_covers(cutoff, s->members[i], one, other);
        before |= i < last && covers;
        behind |= i > last && covers;
        first &= i > last || !cr_cutoff_is_same_ca(cutoff, s->members[i], one);
    }
    return before && behind && !first;
}

/* Each of the same subject that is chosen, in this place. */
static void permute_from(struct search *s, size_t at)
{
    size_t name = cr_cutoff_name(s->w->cutoff, s->members[at]);
    for (size_t i = at; i < s->len && !is_over(s); i++) {
        size_t one = s->members[i];
        if (!is_of_name(s, i, name) || is_tried_otherwise(s, at, one))
            continue;
        memmove(s->members + at + 1, s->members + at, (i - at) * sizeof *s->members);
        s->members[at] = one;
        permute(s, at + 1);
        memmove(s->members + at, s->members + at + 1, (i - at) * sizeof *s->members);
        s->members[i] = one;
    }
}

static void permute(struct search *s, size_t at)
{
    while (at < s->len && !s->w->chosen[s->members[at]])
        at++;
    if (at == s->len)
        try_it(s);
    else
        permute_from(s, at);
}

static bool may_go(const struct search *s, size_t at)
{
    return s->w->q->wishes[s->first[at]] != CR_ORDER_MUST;
}

/* Without so many more, from that one on. */
static void leave_out(struct search *s, size_t more, size_t from)
{
    if (!more) {
        memcpy(s->members, s->first, s->len * sizeof *s->members);
        permute(s, 0);
        return;
    }
    for (size_t i = s->len; i-- > from && !is_over(s);) {
        if (!may_go(s, i))
            continue;
        s->w->chosen[s->first[i]] = false;
        leave_out(s, more - 1, i + 1);
        s->w->chosen[s->first[i]] = true;
    }
}

static void choose_all(struct search *s)
{
    for (size_t i = 0; i < s->len; i++)
        s->w->chosen[s->first[i]] = true;
}

static void list_preferred(struct search *s)
{
    size_t len = 0;
    for (size_t i = 0; i < s->w->q->len; i++)
        if (is_member(s, s->w->q->preferred[i]))
            s->members[len++] = s->w->q->preferred[i];
}

static void try_all(struct search *s)
{
    size_t most = 0;
    for (size_t i = 0; i < s->len; i++)
        most += may_go(s, i);
    choose_all(s);
    list_preferred(s);
    try_it(s);
    for (size_t less = 0; less <= most && !is_over(s); less++) {
        choose_all(s);
        leave_out(s, less, 0);
    }
}

/* Subjects that concern a leaf, and those that concern a leaf that these concern. */
static void find_names(struct search *s, size_t leaf)
{
    struct cr_cutoff *cutoff = s->w->cutoff;
    cr_autofree bool *seen = cr_calloc(cr_cutoff_leaves(cutoff) + 1, sizeof *seen);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < cr_cutoff_leaves(cutoff); i++) {
            bool touched = i == leaf;
            for (size_t c = 0; c < s->w->q->len && !seen[i] && !touched; c++)
                touched = cr_cutoff_concerns(cutoff, i, c) && s->names[cr_cutoff_name(cutoff, c)];
            if (seen[i] || !touched)
                continue;
            seen[i] = more = true;
            s->leaves[s->leaves_len++] = i;
            for (size_t c = 0; c < s->w->q->len; c++)
                if (cr_cutoff_concerns(cutoff, i, c))
                    s->names[cr_cutoff_name(cutoff, c)] = true;
        }
    }
}

static void add_member(struct search *s, size_t cert, bool *done)
{
    if (!is_member(s, cert) || done[cert])
        return;
    done[cert] = true;
    s->rank[cert] = s->len;
    s->first[s->len++] = cert;
}

/* As they are published, which has served all clients, and what is new behind them. */
static void find_members(struct search *s)
{
    cr_autofree bool *done = cr_calloc(s->w->q->len + 1, sizeof *done);
    for (size_t i = 0; i < s->w->q->published_len; i++)
        add_member(s, s->w->q->published[i], done);
    for (size_t i = 0; i < s->w->q->len; i++)
        add_member(s, s->w->q->preferred[i], done);
}

static void name_loser(struct cr_ordered *out, size_t leaf, unsigned losers)
{
    out->leaf = leaf;
    out->client = 0;
    while (!(losers & 1u << out->client))
        out->client++;
}

/* Who cannot be helped is no reason any more to refuse another bundle. Counts the leaves that they lose of the subjects
 * that were looked at: others are not settled yet. */
static void give_up_lost(struct search *s, struct cr_ordered *out)
{
    size_t len = list(s->w);
    for (size_t i = 0; i < s->leaves_len; i++) {
        unsigned losers = cr_cutoff_losers(s->w->cutoff, s->leaves[i], s->w->bundle, len);
        cr_cutoff_give_up(s->w->cutoff, s->leaves[i], losers & ~(unsigned)CR_CUTOFF_KEPT);
        if (losers && !out->given_up++)
            name_loser(out, s->leaves[i], losers);
    }
}

/* False: there is no bundle that keeps those of CR_CLIENTS_KEPT, or the cutoff is spent. */
static bool search(struct work *w, size_t leaf, struct cr_ordered *out)
{
    size_t len = w->q->len;
    cr_autofree bool *names = cr_calloc(2 * len + 1, sizeof *names);
    cr_autofree size_t *members = cr_calloc(len + 1, sizeof *members);
    cr_autofree size_t *first = cr_calloc(len + 1, sizeof *first);
    cr_autofree size_t *rank = cr_calloc(len + 1, sizeof *rank);
    cr_autofree size_t *best = cr_calloc(len + 1, sizeof *best);
    cr_autofree bool *best_chosen = cr_calloc(len + 1, sizeof *best_chosen);
    cr_autofree size_t *leaves = cr_calloc(cr_cutoff_leaves(w->cutoff) + 1, sizeof *leaves);
    struct search s = {.w = w,
                       .names = names,
                       .members = members,
                       .first = first,
                       .rank = rank,
                       .leaves = leaves,
                       .best = best,
                       .best_chosen = best_chosen,
                       .best_lost = SIZE_MAX};
    w->losers = 0;
    find_names(&s, leaf);
    find_members(&s);
    try_all(&s);
    if (s.best_lost == SIZE_MAX || cr_cutoff_is_spent(w->cutoff))
        return false;
    memcpy(members, best, s.len * sizeof *members);
    memcpy(w->chosen, best_chosen, len * sizeof *w->chosen);
    place(&s);
    give_up_lost(&s, out);
    return true;
}

/* --- what need not stay --- */

/* One that goes can let another go, so until none does. Those at the end, the oldest, go first. */
static void drop_spare(struct work *w)
{
    size_t leaf;
    for (bool any = true; any && !cr_cutoff_is_spent(w->cutoff);) {
        any = false;
        for (size_t i = w->q->len; i-- > 0 && !cr_cutoff_is_spent(w->cutoff);) {
            size_t cert = w->q->preferred[i];
            if (w->q->wishes[cert] != CR_ORDER_SPARE || !w->chosen[cert])
                continue;
            w->chosen[cert] = false;
            bool goes = !find_loss(w, &leaf) && !cr_cutoff_is_spent(w->cutoff);
            w->chosen[cert] = !goes;
            any |= goes;
        }
    }
}

/* --- all together --- */

static void hand_over(struct work *w, struct cr_ordered *out)
{
    out->len = list(w);
    out->bundle = cr_steal(&w->bundle);
}

static void keep_all(struct work *w, struct cr_ordered *out)
{
    size_t len = 0;
    cr_autofree bool *done = cr_calloc(w->q->len + 1, sizeof *done);
    for (size_t i = 0; i < w->q->len; i++)
        w->chosen[i] = w->q->wishes[i] != CR_ORDER_OUT;
    for (size_t i = 0; i < w->q->published_len; i++)
        if (!done[w->q->published[i]])
            done[w->order[len++] = w->q->published[i]] = true;
    for (size_t i = 0; i < w->q->len; i++)
        if (!done[w->q->preferred[i]])
            w->order[len++] = w->q->preferred[i];
    out->proof = CR_BUNDLE_TOO_COSTLY;
    hand_over(w, out);
}

static void refuse(const struct work *w, struct cr_ordered *out)
{
    out->proof = CR_BUNDLE_WOULD_CUT_OFF;
    name_loser(out, w->lost, w->losers);
}

/* Subject by subject: what is settled for one has nothing to do with the next. */
static void arrange(struct work *w, struct cr_ordered *out)
{
    size_t leaf;
    bool searched = false;
    while (find_loss(w, &leaf)) {
        searched = true;
        if (w->q->as_it_is)
            note_loser(w, leaf, cr_cutoff_losers(w->cutoff, leaf, w->bundle, list(w)));
        if (!w->q->as_it_is && search(w, leaf, out))
            continue;
        if (cr_cutoff_is_spent(w->cutoff))
            break;
        refuse(w, out);
        return;
    }
    if (cr_cutoff_is_spent(w->cutoff)) {
        keep_all(w, out);
        return;
    }
    if (searched)
        drop_spare(w);
    hand_over(w, out);
}

void cr_bundle_arrange(struct cr_cutoff *cutoff, const struct cr_order_question *question, struct cr_ordered *out)
{
    size_t len = question->len;
    cr_autofree size_t *order = cr_calloc(len + 1, sizeof *order);
    cr_autofree bool *chosen = cr_calloc(len + 1, sizeof *chosen);
    struct work w = {.cutoff = cutoff,
                     .q = question,
                     .order = order,
                     .chosen = chosen,
                     .bundle = cr_calloc(len + 1, sizeof *w.bundle)};
    *out = (struct cr_ordered){.proof = CR_BUNDLE_PROVED};
    memcpy(order, question->preferred, len * sizeof *order);
    for (size_t i = 0; i < len; i++)
        chosen[i] = question->wishes[i] >= CR_ORDER_WANTED;
    if (cr_cutoff_is_spent(cutoff))
        keep_all(&w, out);
    else
        arrange(&w, out);
    free(w.bundle); /* NULL where it was handed over */
}
