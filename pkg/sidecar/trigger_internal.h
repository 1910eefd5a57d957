/* What the kinds of triggers share. Private to pkg/sidecar. */
#ifndef CR_SIDECAR_TRIGGER_INTERNAL_H
#define CR_SIDECAR_TRIGGER_INTERNAL_H

#include "sidecar/trigger.h"

/* One pull; everything is borrowed. */
struct cr_trigger_job {
    const struct cr_trigger_spec *spec;
    const struct cr_sidecar_material *material;
    const struct cr_reading *reading;
    int64_t booted_ms;
    int cancel_fd;
    int64_t deadline_ms; /* monotonic */
};
/* At least 1. */
int cr_trigger_left_ms(const struct cr_trigger_job *job);

bool cr_trigger_haproxy(const struct cr_trigger_job *job, struct cr_error *err) CR_MUST_USE;
bool cr_trigger_redis(const struct cr_trigger_job *job, struct cr_error *err) CR_MUST_USE;

/* --- trigger_text.c --- */

/* Whether a private key may become part of a text. */
enum cr_trigger_secrecy {
    CR_TRIGGER_SECRET, /* it goes to the program and nowhere else */
    CR_TRIGGER_SEEN,   /* others see it: the arguments of a command (proc(5)) */
};

/* Appends the text with what its placeholders stand for: ${certificate}, ${privateKey}, ${trust}, ${combined} are PEM,
 * with ".json" inside of a JSON string, with ".path" the files. out: secret, without a cap. Errors: Invalid: a
 * placeholder that there is not, of a part that the material does not have, or of a key where it would be seen. */
bool cr_trigger_text(const struct cr_trigger_job *job, const char *text, enum cr_trigger_secrecy secrecy,
                     struct cr_buf *out, struct cr_error *err) CR_MUST_USE;

/* PEM as HAProxy's command line takes it, which an empty line ends: without empty lines and carriage returns, and with
 * a new line at its end. */
void cr_trigger_add_lines(struct cr_buf *out, const struct cr_buf *pem);

enum { CR_TRIGGER_WORDS = 160 };
/* What a program said, as part of an error: one line of printable characters, cut; in place of all of it a remark when
 * it repeats any of the private key: some repeat what they do not understand. */
void cr_trigger_words(const struct cr_trigger_job *job, const char *said, size_t len, char out[CR_TRIGGER_WORDS]);

#endif
