#include "sidecar/reading.h"

#include "base/cleanup.h"
#include "base/strings.h"
#include "tlsreload/snapshot.h"

enum { FILES = 3, FILE_MAX = 1024 * 1024 /* bytes, as cr_material_parse has it */ };

void cr_reading_dispose(struct cr_reading *reading)
{
    cr_reading_drop_texts(reading);
    cr_material_dispose(&reading->material);
}

void cr_reading_drop_texts(struct cr_reading *reading)
{
    cr_buf_dispose(&reading->certificate);
    cr_buf_dispose(&reading->private_key);
    cr_buf_dispose(&reading->trust);
}

bool cr_reading_has_texts(const struct cr_reading *reading)
{
    return reading->certificate.len || reading->trust.len;
}

/* What is configured and empty is another thing than what is not part of the material. */
static struct cr_pem_input pem(const char *path, const struct cr_buf *text)
{
    return path ? (struct cr_pem_input){cr_buf_text(text), text->len} : (struct cr_pem_input){0};
}

static bool parse(const struct cr_sidecar_material *material, const struct cr_buf text[FILES], int64_t now_ms,
                  struct cr_material *out, enum cr_material_problem *problem, struct cr_error *err)
{
    const struct cr_material_input input = {
        .certificate = pem(material->certificate, &text[0]),
        .private_key = pem(material->private_key, &text[1]),
        .trust = pem(material->trust, &text[2]),
        .names = {material->certificate, material->private_key, material->trust},
    };
    return cr_material_parse(&input, now_ms, out, problem, err);
}

bool cr_reading_take(const struct cr_sidecar_material *material, int64_t now_ms, struct cr_reading *out,
                     enum cr_material_problem *problem, struct cr_error *err)
{
    const char *const paths[FILES] = {material->certificate, material->private_key, material->trust};
    struct cr_buf text[FILES] = {CR_BUF_INIT(0), {.secret = true}, CR_BUF_INIT(0)};
    *out = (struct cr_reading){0};
    *problem = CR_MATERIAL_OK;
    bool good = cr_snapshot_read(paths, FILES, FILE_MAX, text, err) &&
                parse(material, text, now_ms, &out->material, problem, err);
    out->certificate = text[0];
    out->private_key = text[1];
    out->trust = text[2];
    if (good)
        return true;
    cr_reading_dispose(out);
    *out = (struct cr_reading){0};
    return false;
}
