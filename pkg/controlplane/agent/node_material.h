/* What is in a file of certificates or keys: fingerprints, keys, who issued it. Pure; keys are read and wiped, and
 * nothing here can rebuild one. */
#ifndef CR_CONTROLPLANE_AGENT_NODE_MATERIAL_H
#define CR_CONTROLPLANE_AGENT_NODE_MATERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/node_report.h"
#include "base/cleanup.h"
#include "base/strvec.h"
#include "pki/digest.h"

struct cr_node_material {
    enum cr_node_file_kind kind;
    char *problem; /* NULL: none; else, in words, why it is Unread, or what is wrong with what was read: the key of the
                    * other file does not belong to it, a signer's file has several certificates */
    struct cr_strvec prints; /* as in cr_node_file, not capped */
    struct cr_strvec names;  /* Trust: SHA-256 of each subject's DER, as a server announces it (cr_probe_announced) */
    struct cr_strvec
        keys; /* SHA-256 of each SubjectPublicKeyInfo, in the order of prints; of a private key: its public one */
    int64_t not_after_ms; /* 0: none */
    size_t certificates;  /* how many the text has */
};
void cr_node_material_dispose(struct cr_node_material *material);
CR_DEFINE_DISPOSE(cr_node_material, struct cr_node_material, cr_node_material_dispose)

/* What a file holds is judged by what it is for: role and parameter (a Signer and a bundle may be one file). text: the
 * bytes, borrowed. Never fails: what cannot be read is Unread with a problem. A private key alone, as the "-key" of a
 * leaf, is of kind Leaf with no prints but its key; that of a signer likewise. As the programs do, only what the
 * parameter is for is read: in the file of a certificate a key beside it is skipped, corrupt or not. Thread-safe. */
void cr_node_material_read(const char *text, size_t len, enum cr_role role, const char *parameter,
                           struct cr_node_material *out);
/* Whether the key belongs to the certificate. True also when one of them has none: that is said elsewhere. */
bool cr_node_material_fits(const struct cr_node_material *certificate, const struct cr_node_material *key);

#endif
