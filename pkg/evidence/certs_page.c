#include "evidence/certs_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/json.h"

static void dispose_context(struct cr_certs_context *context)
{
    cr_strvec_dispose(&context->cas);
    cr_strvec_dispose(&context->leaves);
    free(context->ca_path);
    *context = (struct cr_certs_context){0};
}

/* As in struct cr_ca: BoringSSL writes whole octets, OpenSSL in upper case. False: it is no serial number. */
static bool normal_serial(const char *text, char out[CR_SERIAL_HEX])
{
    size_t len = 0;
    if (!text || !*text)
        return false;
    while (*text == '0')
        text++;
    for (; *text; text++) {
        if (!isxdigit((unsigned char)*text) || len == CR_SERIAL_HEX - 1)
            return false;
        out[len++] = (char)tolower((unsigned char)*text);
    }
    if (!len)
        out[len++] = '0';
    out[len] = '\0';
    return true;
}

static bool bad_page(struct cr_error *err)
{
    return cr_error_set(err, CR_ERR_INVALID, "it is not a page of certificates as Envoy has it");
}

/* certificates: ca_cert or cert_chain of a context. */
static bool read_serials(const struct cr_json *certificates, struct cr_strvec *serials, struct cr_error *err)
{
    if (certificates && !cr_json_is_array(certificates))
        return bad_page(err);
    for (const struct cr_json *each = cr_json_first(certificates); each; each = cr_json_next(each)) {
        char serial[CR_SERIAL_HEX];
        if (!normal_serial(cr_json_string_at(each, "serial_number"), serial))
            return bad_page(err);
        if (serials->len == CR_CERTS_SERIALS_MAX)
            return cr_error_set(err, CR_ERR_INVALID, "it has more certificates than are looked at");
        cr_strvec_add(serials, serial);
    }
    return true;
}

/* What was given inline has a word in angle brackets instead of a path. */
static bool read_path(const struct cr_json *cas, char **out, struct cr_error *err)
{
    const char *path = cr_json_string_at(cr_json_first(cas), "path");
    if (path && strlen(path) > CR_CERTS_PATH_MAX)
        return cr_error_set(err, CR_ERR_INVALID, "it has a path that is too long");
    *out = path && path[0] == '/' ? cr_strdup(path) : NULL;
    return true;
}

static bool read_context(const struct cr_json *json, struct cr_certs_context *context, struct cr_error *err)
{
    const struct cr_json *cas = cr_json_get(json, "ca_cert");
    if (!cr_json_is_object(json))
        return bad_page(err);
    return read_serials(cas, &context->cas, err) &&
           read_serials(cr_json_get(json, "cert_chain"), &context->leaves, err) &&
           read_path(cas, &context->ca_path, err);
}

static bool is_known(const struct cr_trust_sighting *sighting, const struct cr_certs_context *context)
{
    for (size_t i = 0; i < sighting->contexts_len; i++) {
        const struct cr_certs_context *known = &sighting->contexts[i];
        if (cr_streq(known->ca_path, context->ca_path) && cr_strvec_equal(&known->cas, &context->cas) &&
            cr_strvec_equal(&known->leaves, &context->leaves))
            return true;
    }
    return false;
}

/* Takes the context. */
static bool keep_context(struct cr_trust_sighting *sighting, struct cr_certs_context *context, size_t *serials,
                         struct cr_error *err)
{
    if (is_known(sighting, context)) {
        dispose_context(context);
        return true;
    }
    *serials += context->cas.len + context->leaves.len;
    if (sighting->contexts_len == CR_CERTS_CONTEXTS_MAX || *serials > CR_CERTS_SERIALS_MAX) {
        dispose_context(context);
        return cr_error_set(err, CR_ERR_INVALID, "it has more certificates than are looked at");
    }
    sighting->contexts = cr_reallocarray(sighting->contexts, sighting->contexts_len + 1, sizeof *sighting->contexts);
    sighting->contexts[sighting->contexts_len++] = *context;
    *context = (struct cr_certs_context){0};
    return true;
}

static bool read_contexts(const struct cr_json *page, struct cr_trust_sighting *sighting, struct cr_error *err)
{
    const struct cr_json *contexts = cr_json_get(page, "certificates");
    size_t serials = 0;
    /* Without any there is an empty object. */
    if (!cr_json_is_object(page) || (contexts && !cr_json_is_array(contexts)))
        return bad_page(err);
    for (const struct cr_json *each = cr_json_first(contexts); each; each = cr_json_next(each)) {
        struct cr_certs_context context = {0};
        if (!read_context(each, &context, err)) {
            dispose_context(&context);
            return false;
        }
        if (!keep_context(sighting, &context, &serials, err))
            return false;
    }
    return true;
}

bool cr_certs_page_read(const char *text, size_t len, struct cr_trust_sighting *sighting, struct cr_error *err)
{
    struct cr_error ignored = {0};
    struct cr_trust_sighting read = {0};
    struct cr_json_budget budget = {.values = CR_CERTS_VALUES_MAX};
    CR_CLEANUP(cr_json) struct cr_json *page = cr_json_parse_within(text, len, &budget, &ignored);
    if (budget.exceeded)
        return cr_error_set(err, CR_ERR_INVALID, "it has more than %d JSON values", CR_CERTS_VALUES_MAX);
    if (!page)
        return cr_error_set(err, CR_ERR_INVALID, "it is not JSON");
    if (!read_contexts(page, &read, err)) {
        cr_trust_sighting_dispose(&read);
        return false;
    }
    sighting->page_read = true;
    sighting->contexts = read.contexts;
    sighting->contexts_len = read.contexts_len;
    return true;
}
