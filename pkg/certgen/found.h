/* What is there of one Secret of a set, in the cluster or as a folder of files. */
#ifndef CR_CERTGEN_FOUND_H
#define CR_CERTGEN_FOUND_H

#include "base/buffer.h"
#include "pki/material.h"

struct cr_certgen_found {
    bool found;
    char *version;   /* resourceVersion; NULL: files have none */
    char *rotation;  /* that issued its leaf (cr_certgen_job.rotation); NULL: not known */
    char *owner;     /* who else writes it, in words, so that it is not ours to write; NULL: no other program */
    bool has_opaque; /* the entry of the set's opaque_key is there and not empty */
    struct cr_buf
        data[3]; /* PEM; the key's is secret. In the order of CR_CERTGEN_CERTIFICATE, …; NULL data: not there */
};

enum { CR_CERTGEN_DATA_CERTIFICATE, CR_CERTGEN_DATA_PRIVATE_KEY, CR_CERTGEN_DATA_TRUST };

static inline struct cr_pem_input cr_certgen_entry(const struct cr_certgen_found *found, int entry)
{
    return (struct cr_pem_input){found->data[entry].data, found->data[entry].len};
}

/* Wipes the key; *found is as new then. */
void cr_certgen_found_dispose(struct cr_certgen_found *found);
CR_DEFINE_DISPOSE(cr_certgen_found, struct cr_certgen_found, cr_certgen_found_dispose)

#endif
