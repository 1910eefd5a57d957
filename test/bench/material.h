/* Certificates by the thousand: few keys, one CA, ECDSA P-256, and a signature for each leaf (some 30 µs). */
#ifndef CR_BENCH_MATERIAL_H
#define CR_BENCH_MATERIAL_H

#include <stddef.h>

struct bench_material;

struct bench_material *bench_material_new(void);
void bench_material_free(struct bench_material *material);

/* {"tls.crt":"…","tls.key":"…"} in base64, for a new leaf with another key than the last one: the `data` of a Secret.
 * Owned by the caller. */
char *bench_material_data(struct bench_material *material, size_t index);

#endif
