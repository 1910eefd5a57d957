/* The files that are made of a material: in another form, or all in one. A reader finds the old file or the new one,
 * never a part of it and never one with wider rights: it is written beside, under a hidden name, with its mode and its
 * owner, reaches the disk, and is then renamed; of several all are written before the first is renamed. What a process
 * that was killed has left of that is removed by the next one. */
#ifndef CR_SIDECAR_OUTPUT_H
#define CR_SIDECAR_OUTPUT_H

#include "pki/digest.h"
#include "sidecar/config.h"
#include "sidecar/reading.h"

/* For the PKCS#12 types (keystore.h): salts of theirs are made of it. */
struct cr_output_seed {
    char text[CR_SHA256_HEX];
};
/* Made from the private key, which the same material always has: so its files stay as they are, also those that another
 * process made. Without a key it is random: those files are made again once per process. */
void cr_output_seed(const struct cr_reading *reading, struct cr_output_seed *out);

/* Makes all outputs of the material; one that is as it should be is left alone. *changed is set when one was not, also
 * on failure. Errors, with the path: NotFound (its folder, a password file), Forbidden (rights, a volume that is
 * read-only), Invalid (a password that PKCS#12 cannot have), Transient (the disk is full): what was there stays, of all
 * of them unless the renaming fails. Any thread; blocks for as long as the disk takes. */
bool cr_outputs_write(const struct cr_sidecar_material *material, const struct cr_reading *reading,
                      const struct cr_output_seed *seed, bool *changed, struct cr_error *err) CR_MUST_USE;

#endif
