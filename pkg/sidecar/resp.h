/* Redis's wire format (RESP2): as much of it as CONFIG needs. Pure. */
#ifndef CR_SIDECAR_RESP_H
#define CR_SIDECAR_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Appends a command: an array of bulk strings. */
void cr_resp_command(const char *const *words, size_t len, struct cr_buf *out);

enum cr_resp_type { CR_RESP_OK, CR_RESP_ERROR, CR_RESP_NUMBER, CR_RESP_BULK, CR_RESP_NULL, CR_RESP_ARRAY };
enum cr_resp_step {
    CR_RESP_READ, /* one value */
    CR_RESP_MORE, /* it is not there yet as a whole */
    CR_RESP_BAD,  /* it is not this format */
};

/* One value. For an array, its head; its elements follow. */
struct cr_resp_value {
    enum cr_resp_type type;
    const char *text; /* borrowed; of OK (a simple string), ERROR and BULK; not terminated */
    size_t len;
    long number; /* of NUMBER; of ARRAY: how many elements */
};

/* Reads the value at data + *at, and moves *at behind it. */
enum cr_resp_step cr_resp_read(const char *data, size_t len, size_t *at, struct cr_resp_value *out);

#endif
