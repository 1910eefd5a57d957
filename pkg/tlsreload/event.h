/* What became of a change of TLS material, as a security event: Open Cybersecurity Schema Framework 1.8.0
 * (schema.ocsf.io/1.8.0/classes/device_config_state_change), class Device Config State Change (5019) of category
 * Discovery (5), activity Log (1), one line of JSON. Severity Informational and status Success when it was reloaded,
 * Medium and Failure when it was refused. Digests, paths and words only, never content. What the class has no attribute
 * for is in "unmapped": certificate (path), leaf, leaf_before, trust_changed. */
#ifndef CR_TLSRELOAD_EVENT_H
#define CR_TLSRELOAD_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Borrowed for the call that has it. */
struct cr_tlsreload_event {
    bool reloaded;           /* false: refused, what was served before stays */
    int64_t at_ms;           /* wall clock */
    const char *certificate; /* path */
    const char *leaf;        /* fingerprint of what is served now; SHA-256 of the DER, lower-case hex */
    const char *before;      /* of what was served before the change; the same when refused */
    bool trust_changed;      /* another set of client CAs; false when refused */
    const char *problem;     /* when refused: why; else "" */
};

/* Appends the event's line, without the new line. product: the program, "certroll-operator"; the device is named as the
 * host is (in a pod: as the pod). out has no cap. Any thread. */
void cr_tlsreload_event_json(const struct cr_tlsreload_event *event, const char *product, const char *version,
                             struct cr_buf *out);

#endif
