/* A material as a trigger gets it, and one pull. */
#ifndef TEST_SUPPORT_TRIGGERSCENE_H
#define TEST_SUPPORT_TRIGGERSCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "sidecar/trigger_internal.h"
#include "support/testcerts.h"
#include "sys/proc.h"

enum { PATIENCE_MS = 20 * 1000 };

struct trigger_scene {
    struct cr_sidecar_material material;
    struct cr_reading reading;
    struct cr_trigger_spec spec;
    struct cr_error err; /* of the last pull */
};

static char scene_name[] = "web", scene_certificate[] = "/certs/tls.crt", scene_key[] = "/certs/tls.key",
            scene_trust[] = "/certs/ca.crt";

static inline void scene_text(struct cr_buf *to, const char *text)
{
    cr_buf_reset(to);
    cr_buf_puts(to, text);
}

/* With small texts in place of PEM. */
static inline struct trigger_scene scene_of(enum cr_trigger_type type)
{
    struct trigger_scene s = {.material = {.name = scene_name,
                                           .certificate = scene_certificate,
                                           .private_key = scene_key,
                                           .trust = scene_trust},
                              .spec = {.type = type, .timeout_ms = PATIENCE_MS}};
    s.reading.private_key.secret = true;
    scene_text(&s.reading.certificate, "CERT 1\nCERT 2\n");
    scene_text(&s.reading.private_key, "THE PRIVATE KEY\n");
    scene_text(&s.reading.trust, "TRUST\n");
    return s;
}

static inline void scene_dispose(struct trigger_scene *s)
{
    cr_buf_dispose(&s->reading.certificate);
    cr_buf_dispose(&s->reading.private_key);
    cr_buf_dispose(&s->reading.trust);
}
CR_DEFINE_DISPOSE(scene, struct trigger_scene, scene_dispose)

static inline bool scene_pull(struct trigger_scene *s)
{
    s->err = (struct cr_error){0};
    return cr_trigger_pull(&s->spec, &s->material, &s->reading, cr_proc_booted_wall_ms(), -1, &s->err);
}

static inline void scene_must_pull(struct trigger_scene *s)
{
    if (!scene_pull(s))
        fail_msg("%s: %s", cr_error_kind_name(s->err.kind), s->err.text);
}

static inline void scene_must_fail(struct trigger_scene *s, enum cr_error_kind kind, const char *words)
{
    if (scene_pull(s))
        fail_msg("it succeeded; expected: %s", words);
    if (s->err.kind != kind || !strstr(s->err.text, words))
        fail_msg("expected %s with '%s', got %s: %s", cr_error_kind_name(kind), words, cr_error_kind_name(s->err.kind),
                 s->err.text);
}

#endif
