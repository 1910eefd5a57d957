/* NodeCertificateReport (certroll.dev/v1alpha1): what one node has of certificates, and the one thing that is asked of
 * it. Cluster-scoped, named after its node. Its spec is the operator's: an order; its status the agent's of that node.
 * So each side's writes can be the last before a crash, and no part is ever written by two. Decoding is lenient (a
 * broken part reads as absent, which is never the reason to act), encoding deterministic. */
#ifndef CR_API_NODE_REPORT_H
#define CR_API_NODE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/policy.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strvec.h"
#include "codec/json.h"
#include "pki/digest.h"

#define CR_NODE_REPORT_KIND   "NodeCertificateReport"
#define CR_NODE_REPORT_PLURAL "nodecertificatereports"
/* Held by the agent that acts, so that whatever two operators or a stale report ask for, one node at a time does. */
#define CR_NODE_LEASE_NAMESPACE "kube-system"
#define CR_NODE_LEASE_NAME      "certroll-control-plane"

enum {
    CR_NODE_REPORT_COMPONENTS_MAX = 16,
    CR_NODE_REPORT_FILES_MAX = 256,
    CR_NODE_REPORT_CAS_MAX = 64,    /* of the node */
    CR_NODE_REPORT_PRINTS_MAX = 16, /* fingerprints of one file */
    CR_NODE_REPORT_TROUBLES_MAX = 32,
    CR_NODE_REPORT_TOKENS_MAX = 64, /* keys; of more, tokens_known is false in what is written */
};

/* The operator's: restart this component of this node. A token is done once, however often it is read. */
struct cr_node_order {
    char *token;     /* NULL: nothing is asked for */
    char *component; /* "kube-apiserver" */
};

enum cr_node_health {
    CR_NODE_HEALTH_UNKNOWN, /* nothing can be asked, or the agent may not */
    CR_NODE_HEALTH_SERVING, /* answered, and well */
    CR_NODE_HEALTH_FAILING, /* not, or not well; the message says what */
};

/* A program on the node. */
struct cr_node_component {
    char *name;
    char *version; /* NULL: not known */
    char *pod;     /* the mirror pod's name; NULL: the kubelet */
    bool running;
    char *process;         /* cr_node_program.identity: distinguishes one process from another; NULL: does not run */
    int64_t started_ms;    /* of its process, wall clock, for people: it may differ by some ms; 0: not known */
    char *restart;         /* how the agent would: "Manifest", "Signal", "Command"; NULL: it may not, see refusal */
    char *restart_refused; /* in words; NULL with restart */
    enum cr_node_health health;
    char *health_message; /* NULL: none */
    int64_t health_ms;    /* since when it is so, as far as this agent has asked */
};

enum cr_node_file_kind {
    CR_NODE_FILE_UNREAD, /* not read: not a file of the node, missing or broken; problem says what */
    CR_NODE_FILE_LEAF,   /* a certificate, with the key beside it where a parameter says which */
    CR_NODE_FILE_TRUST,  /* a bundle of CAs */
    CR_NODE_FILE_SIGNER, /* the CA that signs, and its key */
    CR_NODE_FILE_KEYS,   /* public or private keys without certificates: of service accounts */
};

enum cr_node_loaded {
    CR_NODE_LOADED_UNKNOWN, /* it cannot be determined; counts as not loaded, but is never the reason for a restart */
    CR_NODE_LOADED_YES,     /* the process has what the file has */
    CR_NODE_LOADED_SOON,    /* it will take it up by itself, at due_ms at the latest */
    CR_NODE_LOADED_NO,      /* only a restart makes it do so */
};
enum cr_node_evidence {
    CR_NODE_EVIDENCE_NONE,
    CR_NODE_EVIDENCE_INFERRED, /* it began after the change, or its longest delay is over */
    CR_NODE_EVIDENCE_VERIFIED, /* seen in a handshake */
};

/* A file of one parameter of one component; a row of what the seed calls "Table 1". Certificate and key of one leaf are
 * rows of their own. */
struct cr_node_file {
    char *component;
    char *parameter; /* as the catalogue names it */
    char *via;       /* what names the file that says so; NULL */
    enum cr_role role;
    char *place;                       /* cr_node_place_name */
    char *path;                        /* on the node; NULL: it is none */
    bool alone, own, signs_and_trusts; /* controlplane/agent/parameters.h */
    bool kept;                         /* it is of an earlier look, since its program cannot be looked at now */
    enum cr_method method;
    int64_t max_delay_ms;
    enum cr_node_file_kind kind;
    char *problem; /* why it is not read, or what is wrong with it (the key does not fit); NULL: nothing */
    /* Fingerprints: of Leaf and Signer the first certificate's, of Trust all CAs', in the order of the file; of Keys
     * SHA-256 of each SubjectPublicKeyInfo (what a service account token's "kid" has, in hexadecimal). */
    struct cr_strvec prints;
    bool more;                /* there were more than CR_NODE_REPORT_PRINTS_MAX */
    struct cr_strvec issuers; /* Leaf: fingerprints of those CAs of the node's bundles that it verifies against */
    int64_t not_after_ms;     /* of Leaf and Signer, the first to end of Trust; 0: Keys, or not read */
    int64_t changed_ms;       /* when what is in it now was first seen, or its ctime at first sight */
    enum cr_node_loaded loaded;
    struct cr_strvec has; /* as prints: what the process has, as far as known. Equal to prints when loaded is Yes */
    bool has_known;       /* false: nothing is known of what it has */
    int64_t due_ms;       /* with Soon */
    enum cr_node_evidence evidence;
    char *why; /* one sentence: "kube-apiserver reads --etcd-cafile once at start and runs since before the change" */
};

/* A CA of any file of the node, for people and for joining nodes' views. */
struct cr_node_ca {
    char fingerprint[CR_SHA256_HEX];
    char *subject;
    int64_t not_after_ms;
};

/* Projected service account tokens of the node's pods, by the key that signed them. */
struct cr_node_token_count {
    char *key; /* the token's "kid" as hexadecimal SHA-256; NULL: one that is no such digest */
    int64_t tokens;
};

enum cr_node_act_phase {
    CR_NODE_ACT_NONE,
    CR_NODE_ACT_WAITING,    /* for the node Lease */
    CR_NODE_ACT_RESTARTING, /* begun: from here on it is ended by this agent or the next on this node */
    CR_NODE_ACT_PROVING,    /* a new process is there; it has to answer and serve what its files have */
    CR_NODE_ACT_DONE,
    CR_NODE_ACT_FAILED,
    CR_NODE_ACT_REFUSED, /* by the agent's own allow-list, or since there is nothing like it here */
};
struct cr_node_act {
    char *token; /* that it is about; NULL: never any */
    char *component;
    enum cr_node_act_phase phase;
    char *message;
    int64_t started_ms, finished_ms; /* 0: not yet */
    char *process; /* that was there before, as cr_node_component.process: any other is the new one; NULL: none was */
};

struct cr_node_report {
    char *node;
    char *uid, *resource_version;
    int64_t generation;
    struct cr_node_order order;
    /* --- status --- */
    int64_t seen_ms; /* when the agent last looked; renewed at least each cr_node_report_renew_ms */
    char *agent;     /* its version */
    struct cr_node_component *components;
    size_t components_len;
    struct cr_node_file *files;
    size_t files_len;
    struct cr_node_ca *cas;
    size_t cas_len;
    struct cr_node_token_count *tokens;
    size_t tokens_len;
    bool tokens_known; /* false: the agent does not look */
    struct cr_node_act act;
    /* Each beginning with the program: with any of them files may be missing from the list. */
    struct cr_strvec troubles;
};
/* How often a report is renewed at the latest, and how old it may be before it says nothing of now. The interval is
 * longer for a node that has no static pods and does nothing that the operator waits for: there may be 5,000 such
 * nodes, and each renewal is a write of some kilobytes (a kubelet renews its Node each 5 min). Changes are written at
 * once, there as well. */
enum {
    CR_NODE_RENEW_MS = 20 * 1000,
    CR_NODE_STALE_MS = 75 * 1000,
    CR_NODE_QUIET_RENEW_MS = 4 * 60 * 1000,
    CR_NODE_QUIET_STALE_MS = 10 * 60 * 1000,
};
int64_t cr_node_report_renew_ms(const struct cr_node_report *report);
int64_t cr_node_report_stale_ms(const struct cr_node_report *report);

void cr_node_report_dispose(struct cr_node_report *report);
CR_DEFINE_DISPOSE(cr_node_report, struct cr_node_report, cr_node_report_dispose)

/* From the whole object. out need not be initialised; false when it is no NodeCertificateReport with a name. */
bool cr_node_report_decode(const struct cr_json *object, struct cr_node_report *out, struct cr_error *err) CR_MUST_USE;
/* The status member, owned; every member is always there, so that it can be a merge patch. Texts are cut to the
 * schema's lengths. */
struct cr_json *cr_node_report_encode_status(const struct cr_node_report *report);

/* "Unread", "Leaf", …; "Unknown", "Loaded", "Soon", "RestartNeeded"; "None", "Inferred", "Verified"; "None", "Waiting",
 * …; "Unknown", "Serving", "Failing"; "" for a value that is none. The parsers leave the value alone when they fail. */
const char *cr_node_file_kind_name(enum cr_node_file_kind kind);
const char *cr_node_loaded_name(enum cr_node_loaded loaded);
const char *cr_node_evidence_name(enum cr_node_evidence evidence);
const char *cr_node_act_phase_name(enum cr_node_act_phase phase);
const char *cr_node_health_name(enum cr_node_health health);
bool cr_node_file_kind_parse(const char *text, enum cr_node_file_kind *kind);
bool cr_node_loaded_parse(const char *text, enum cr_node_loaded *loaded);
bool cr_node_evidence_parse(const char *text, enum cr_node_evidence *evidence);
bool cr_node_act_phase_parse(const char *text, enum cr_node_act_phase *phase);
bool cr_node_health_parse(const char *text, enum cr_node_health *health);

/* Borrowed; NULL: the node has none such. */
const struct cr_node_component *cr_node_report_component(const struct cr_node_report *report, const char *name);

#endif
