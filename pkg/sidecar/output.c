#include "sidecar/output.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "pki/keystore.h"
#include "sidecar/output_file.h"
#include "sys/file.h"

enum { PASSWORD_FILE_MAX = 1024 /* more than a password may have, for new lines behind it */ };

/* The random seed of this process, for material without a key. */
static pthread_once_t random_once = PTHREAD_ONCE_INIT;
static unsigned char random_seed[32];

static void make_random_seed(void)
{
    if (getrandom(random_seed, sizeof random_seed, 0) != sizeof random_seed)
        abort(); /* cannot be: so few bytes are never cut (getrandom(2)) */
}

void cr_output_seed(const struct cr_reading *reading, struct cr_output_seed *out)
{
    static const char purpose[] = "certroll-sidecar: PKCS#12 salts";
    const struct cr_buf *key = &reading->private_key;
    pthread_once(&random_once, make_random_seed);
    cr_hmac_sha256_hex(key->len ? key->data : (const char *)random_seed, key->len ? key->len : sizeof random_seed,
                       purpose, strlen(purpose), out->text);
}

/* --- content --- */

static void append_part(unsigned parts, enum cr_output_part part, const struct cr_buf *pem, struct cr_buf *out)
{
    if (!(parts & part))
        return;
    cr_buf_puts(out, cr_buf_text(pem));
    if (!cr_ends_with(cr_buf_text(out), "\n"))
        cr_buf_puts(out, "\n"); /* the next block must begin a line */
}

static bool make_pem(const struct cr_output_spec *spec, const struct cr_reading *reading, struct cr_buf *out)
{
    append_part(spec->parts, CR_PART_CERTIFICATE, &reading->certificate, out);
    append_part(spec->parts, CR_PART_PRIVATE_KEY, &reading->private_key, out);
    append_part(spec->parts, CR_PART_TRUST, &reading->trust, out);
    return true;
}

/* One line, as editors and kubectl leave them. */
static bool read_password(const char *path, struct cr_buf *out, struct cr_error *err)
{
    if (!cr_file_read_regular(path, PASSWORD_FILE_MAX, out, err))
        return false;
    while (out->len && strchr("\r\n", out->data[out->len - 1]))
        out->data[--out->len] = '\0';
    return (out->len && strlen(out->data) == out->len) ||
           cr_error_set(err, CR_ERR_INVALID, "%s: there must be a password in it, on one line", path);
}

static bool make_store(const struct cr_output_spec *spec, const struct cr_reading *reading,
                       const struct cr_output_seed *seed, struct cr_buf *out, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf password = {.secret = true};
    if (!read_password(spec->password_file, &password, err))
        return false;
    const struct cr_keystore_secrets secrets = {
        .password = cr_buf_text(&password), .seed = seed->text, .seed_len = strlen(seed->text)};
    const struct cr_pem_input certificate = {reading->certificate.data, reading->certificate.len};
    const struct cr_pem_input key = {reading->private_key.data, reading->private_key.len};
    const struct cr_pem_input trust = {reading->trust.data, reading->trust.len};
    return spec->type == CR_OUTPUT_KEYSTORE ? cr_keystore_write(&certificate, &key, &trust, &secrets, out, err)
                                            : cr_truststore_write(&trust, &secrets, out, err);
}

/* --- all of them --- */

static bool stage(const struct cr_output_spec *spec, const struct cr_reading *reading,
                  const struct cr_output_seed *seed, struct cr_output_staged *out, struct cr_error *err)
{
    CR_CLEANUP(cr_buf) struct cr_buf content = {.secret = true};
    bool made = spec->type == CR_OUTPUT_PEM ? make_pem(spec, reading, &content)
                                            : make_store(spec, reading, seed, &content, err);
    return made && cr_output_file_stage(spec, &content, out, err);
}

bool cr_outputs_write(const struct cr_sidecar_material *material, const struct cr_reading *reading,
                      const struct cr_output_seed *seed, bool *changed, struct cr_error *err)
{
    struct cr_output_staged staged[CR_SIDECAR_OUTPUTS_MAX];
    const struct cr_output_spec *outputs = material->outputs;
    size_t len = 0;
    size_t done = 0;
    for (size_t i = 0; i < cr_array_len(staged); i++)
        staged[i] = CR_OUTPUT_STAGED_INIT;
    while (len < material->outputs_len && stage(&outputs[len], reading, seed, &staged[len], err))
        len++;
    bool all = len == material->outputs_len;
    while (all && done < len && cr_output_file_put(&staged[done], changed, err))
        done++;
    for (size_t i = 0; i < cr_array_len(staged); i++)
        cr_output_staged_dispose(&staged[i]);
    return done == material->outputs_len || cr_error_wrap(err, "output %s", outputs[all ? done : len].path);
}
