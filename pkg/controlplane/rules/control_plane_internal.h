/* What the parts of the control plane's plan share. */
#ifndef CR_CONTROLPLANE_RULES_CONTROL_PLANE_INTERNAL_H
#define CR_CONTROLPLANE_RULES_CONTROL_PLANE_INTERNAL_H

#include <stdint.h>

#include "base/buffer.h"
#include "controlplane/rules/control_plane_plan.h"

/* --- sets of fingerprints, as bits (control_plane_sets.c) --- */

enum { CP_SET_MAX = 64 };

/* Reports may contain anything: beyond CP_SET_MAX items, over is set, and everything that needs all of them is unknown.
 */
struct cp_set {
    const char *items[CP_SET_MAX]; /* borrowed from the world */
    size_t len;
    bool over;
};
/* 64 hexadecimal digits. */
bool cr_cp_is_print(const char *text);
/* The bit of the fingerprint, which is added when it is new. 0: no fingerprint, or one too many. */
uint64_t cr_cp_bit(struct cp_set *set, const char *print);
uint64_t cr_cp_bits(struct cp_set *set, const struct cr_strvec *prints);
uint64_t cr_cp_bit_in(const struct cp_set *set, const char *print); /* 0: it is not in the set */
/* Those that the set has. */
uint64_t cr_cp_bits_in(const struct cp_set *set, const struct cr_strvec *prints);
bool cr_cp_has_all(const struct cp_set *set, const struct cr_strvec *prints);
/* The bits of a text as cr_cp_text makes it, as far as the set has them. */
uint64_t cr_cp_bits_of_text(const struct cp_set *set, const char *text);
/* Sorted, joined by commas. Owned. */
char *cr_cp_text(const struct cp_set *set, uint64_t bits);
/* The first of them by its text. NULL: none. */
const char *cr_cp_first(const struct cp_set *set, uint64_t bits);

/* --- what the nodes say (control_plane_view.c, control_plane_rows.c) --- */

enum cp_pki { CP_CLUSTER, CP_ETCD, CP_FRONT_PROXY, CP_PKIS, CP_KEYS = CP_PKIS, CP_OTHER };
enum { CP_SETS = CP_KEYS + 1 };

enum cp_use {
    CP_USE_TRUST,
    CP_USE_LEAF,
    CP_USE_SIGNER,
    CP_USE_VERIFIES, /* public keys of service accounts */
    CP_USE_SIGNS,    /* the private one */
    CP_USE_OTHER,    /* it matters to its program only */
};

struct cp_row {
    const struct cr_node_file *file;
    enum cp_pki pki;
    enum cp_use use;
    bool needs;           /* only a restart makes its process have what the file has */
    bool sure;            /* the process has just what the file has */
    bool known;           /* what the process has is known */
    bool broken;          /* a file of the node, and a program that begins now may not take it */
    uint64_t prints, has; /* has: as the process is known to have it, 0 when it is not known */
    uint64_t issuers;     /* Leaf */
};

struct cp_node {
    const char *name;
    const struct cr_node_report *report; /* NULL: none */
    bool silent;                         /* it has one, and that is too old, or of a clock that cannot be */
    bool control;                        /* it has, or had, a component of the control plane */
    bool labelled;                       /* as one of the control plane, which its agent cannot do by itself */
    bool leads;                          /* the leader of controller managers or schedulers is here */
    struct cp_row *rows;
    size_t rows_len;
};
static inline bool cr_cp_reports(const struct cp_node *node)
{
    return node->report && !node->silent;
}

/* What a row is for, by component and parameter. */
void cr_cp_classify(const struct cr_node_file *file, enum cp_pki *pki, enum cp_use *use);
/* A leaf that components of the nodes verify, so that it must be of a CA that they have. */
bool cr_cp_has_peers(const struct cr_node_file *file);
/* "--etcd-cafile (/etc/kubernetes/pki/etcd/ca.crt)". Owned. */
char *cr_cp_file_title(const struct cr_node_file *file);
/* "kube-apiserver of node-1, --etcd-cafile (/etc/kubernetes/pki/etcd/ca.crt)". Owned. */
char *cr_cp_row_title(const struct cp_node *node, const struct cp_row *row);
/* A component that holds all others when it is not well. */
bool cr_cp_is_control(const char *component);
/* A leaf that must be verified, and the CA that verifies it is not known. */
bool cr_cp_is_anyones(const struct cp_row *row);
/* The order of restarts. */
int cr_cp_rank(const char *component);

/* --- what is reported of each PKI --- */

struct cp_authority {
    bool complete; /* every node has reported, and nothing may be missing */
    bool has_trust;
    bool serves;   /* a server's leaf is seen that the PKI's clients verify */
    size_t unsure; /* leaves in use, and signers, that are not known */
    uint64_t trusted, known, issuing, removable;
    bool known_is_all; /* no component has a CA that is not in known */
    /* What all rows of nodes have loaded, by role: [0] verifies servers, [1] verifies clients. */
    uint64_t loaded[2];  /* as far as it is known */
    uint64_t *others[2]; /* [nodes_len]: what all the other nodes are known to have loaded */
    uint64_t *leaves;    /* what distinct leaves verify against */
    size_t leaves_len;
    bool leaves_over;
    uint64_t signers;
};

struct cp_keys {
    bool complete;
    uint64_t verifying, known, signing, tokens, removable;
    bool known_is_all;
    bool tokens_complete;
    const char *one; /* the key that every signer signs with, and every API server verifies by; NULL: none */
};

/* Some lines are named, the others counted. */
struct cp_lines {
    struct cr_buf text;
    size_t len;
};
void cr_cp_line(struct cp_lines *lines, const char *fmt, ...) CR_PRINTF(2, 3);
/* Borrowed. */
const char *cr_cp_lines_text(struct cp_lines *lines);

/* Objects out of reach that are not known to have what others have. */
struct cp_out_of_reach {
    size_t len;
    char *example; /* owned; NULL: none */
};

/* A component that is to be restarted. */
struct cp_candidate {
    size_t node;
    const struct cr_node_component *component;
    bool for_tokens; /* a kubelet, for rule 7 */
    int rank;
    char token[40];
    char *blocked; /* owned, in words; NULL: nothing but time is in the way */
};

/* Components of the control plane that are not well: components on such a node may be restarted, all others wait. */
struct cp_bad {
    size_t nodes; /* how many nodes have any */
    size_t node;  /* one of them */
    char *why;    /* owned */
};

struct cp_ctx {
    const struct cr_control_plane_world *world;
    struct cr_control_plane_plan *plan;
    struct cp_set sets[CP_SETS];
    struct cp_node *nodes;
    size_t nodes_len;
    struct cp_row *rows; /* of all nodes */
    struct cp_authority authorities[CP_PKIS];
    struct cp_keys keys;
    bool hides;                    /* files of the control plane may be missing from what is reported */
    bool root_known;               /* --root-ca-file is the same everywhere, and loaded */
    bool root_named;               /* some component has that parameter */
    uint64_t root;                 /* what it has */
    uint64_t readers, readers_any; /* readers of the cluster's CA beside the nodes: what all have, what any has */
    bool readers_known;            /* all of them are known */
    bool renewing;                 /* a token Secret is to be renewed, or its token is awaited */
    bool tokens_stay;              /* it is not: no program is known that would make a new one */
    struct cp_out_of_reach roots_out_of_reach;  /* example: a namespace */
    struct cp_out_of_reach tokens_out_of_reach; /* "ns/name" of a token Secret */
    struct cp_candidate *candidates;            /* in the order in which they are restarted */
    size_t candidates_len;
    char *signing_hold; /* owned: why a signing certificate's file cannot be used; NULL: it can */
    char *hold;         /* owned: why no component is restarted now; NULL: nothing holds */
    struct cp_bad bad;
    bool out;          /* an order is out, taken back, or an act is under way */
    bool acts;         /* what is planned is to be done: neither suspended nor mode Plan */
    bool failed;       /* a restart has, and nothing has changed since */
    bool overdue;      /* what is out is not over after its deadline */
    const char *phase; /* of what is under way, in words; NULL */
    struct cp_lines blocked, degraded;
    char *missing; /* owned: one example of a CA that some component does not have; NULL */
    char *soon;    /* owned: one example of a file that is taken up without a restart; NULL */
};

void cr_cp_view(struct cp_ctx *ctx);             /* control_plane_view.c: rows */
void cr_cp_authorities(struct cp_ctx *ctx);      /* control_plane_authorities.c */
void cr_cp_service_accounts(struct cp_ctx *ctx); /* control_plane_keys.c */
void cr_cp_candidates(struct cp_ctx *ctx); /* control_plane_next.c: what must be restarted, and what is in its way */
void cr_cp_orders(struct cp_ctx *ctx);     /* control_plane_orders.c: what is out, what becomes of it, what is next */
void cr_cp_troubles(struct cp_ctx *ctx);   /* control_plane_troubles.c: what is degraded */
void cr_cp_conditions(struct cp_ctx *ctx); /* control_plane_conditions.c */

/* control_plane_safe.c: rule 6. */
char *cr_cp_unsafe(const struct cp_ctx *ctx, const struct cp_candidate *candidate);
/* control_plane_hold.c: what makes all components wait. */
void cr_cp_find_hold(struct cp_ctx *ctx);
/* It has begun by itself only just, and may end as soon. */
bool cr_cp_is_young(struct cp_ctx *ctx, const struct cr_node_component *component);
/* It has a part of the control plane, and more of it may be there than its report lists. */
bool cr_cp_may_hide(const struct cp_node *node);
/* Why it waits, though nothing is wrong with it; borrowed, NULL: it may be restarted now. */
const char *cr_cp_hold(const struct cp_ctx *ctx, const struct cp_candidate *candidate);

enum { CP_TOKEN_PART = 16 };
/* control_plane_next.c: of two parts of CP_TOKEN_PART, the second is of its process: what would be restarted of a
 * component as it is now; changes with its files, its process and spec.restart.retry. */
void cr_cp_state_token(const struct cp_ctx *ctx, const struct cp_node *node, const struct cr_node_component *component,
                       char out[40]);
/* control_plane_restarts.c: they are restarted, or are to be. */
void cr_cp_workloads(struct cp_ctx *ctx);
/* Every workload that reads the root CA has what kube-root-ca.crt has. */
bool cr_cp_workloads_have_root(const struct cp_ctx *ctx);
/* Every workload that reads its token has one of the key that signs now. */
bool cr_cp_workloads_have_token(const struct cp_ctx *ctx);

/* Borrowed; NULL: none. */
struct cp_node *cr_cp_node(const struct cp_ctx *ctx, const char *name);
/* Look again at that time at the latest. */
void cr_cp_again_at(struct cp_ctx *ctx, int64_t at_ms);

#endif
