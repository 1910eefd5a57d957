/* Material as small as it gets (base/packing.h), for a cache of thousands: a leaf takes 0.25 KB, as a struct with its
 * lists three times as much. Pure. */
#ifndef CR_PKI_MATERIAL_PACKING_H
#define CR_PKI_MATERIAL_PACKING_H

#include "base/packing.h"
#include "pki/material.h"

/* Appends to out. */
void cr_material_pack(struct cr_buf *out, const struct cr_material *m);
/* Owned lists, for cr_material_dispose; m need not be initialised. */
void cr_material_unpack(struct cr_unpacking *from, struct cr_material *m);

#endif
