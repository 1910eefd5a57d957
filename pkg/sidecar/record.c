#include "sidecar/record.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "sidecar/output_file.h"
#include "sys/file.h"

enum { RECORD_MAX = 512, RECORD_MODE = 0600 };

/* Owned. */
static char *path_of(const char *folder, const char *material)
{
    return cr_asprintf("%s/%s.delivered", folder, material);
}

/* A digest, or "-" for none. */
static bool take(const char **at, char out[CR_SHA256_HEX])
{
    size_t len = strcspn(*at, " \n");
    bool none = len == 1 && **at == '-';
    if (!none && (len != CR_SHA256_HEX - 1 || strspn(*at, "0123456789abcdef") != len))
        return false;
    memcpy(out, *at, none ? 0 : len);
    *at += len;
    *at += **at == ' ';
    return true;
}

bool cr_record_read(const char *folder, const char *material, struct cr_delivery_digests *out)
{
    cr_autofree char *path = path_of(folder, material);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    *out = (struct cr_delivery_digests){0};
    if (!cr_file_read(path, RECORD_MAX, &text, NULL))
        return false;
    const char *at = cr_buf_text(&text);
    if (take(&at, out->leaf) && take(&at, out->chain) && take(&at, out->trust) && cr_streq(at, "\n"))
        return true;
    *out = (struct cr_delivery_digests){0};
    return false;
}

static const char *digest(const char *text)
{
    return *text ? text : "-";
}

bool cr_record_write(const char *folder, const char *material, const struct cr_delivery_digests *delivered,
                     struct cr_error *err)
{
    bool ignored = false;
    cr_autofree char *path = path_of(folder, material);
    CR_CLEANUP(cr_buf) struct cr_buf text = CR_BUF_INIT(0);
    cr_buf_printf(&text, "%s %s %s\n", digest(delivered->leaf), digest(delivered->chain), digest(delivered->trust));
    const struct cr_output_spec spec = {.path = path, .mode = RECORD_MODE, .owner = -1, .group = -1};
    CR_CLEANUP(cr_output_staged) struct cr_output_staged staged = CR_OUTPUT_STAGED_INIT;
    return (cr_output_file_stage(&spec, &text, &staged, err) && cr_output_file_put(&staged, &ignored, err)) ||
           cr_error_wrap(err, "record %s", path);
}
