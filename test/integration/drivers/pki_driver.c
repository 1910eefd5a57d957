/* Two generations of a CA and what is issued by them, as files, for programs that are not ours to judge. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"
#include "pki/bundle.h"
#include "pki/cross_sign.h"
#include "pki/keystore.h"

static const char usage[] =
    "usage: pki_driver FOLDER OLD-TYPE NEW-TYPE\n"
    "  Types of keys: RSA-2048, RSA-3072, RSA-4096, ECDSA-256, ECDSA-384, Ed25519-256.\n"
    "  Writes old.crt and new.crt (the CAs), cross.crt (the new by the old), bundle.crt ([new, old]), leaf-old.crt "
    "and\n"
    "  leaf-new.crt with their .key, and of the latter keystore.p12 and truststore.p12, password changeit.\n";

static const int64_t DAY_MS = INT64_C(24) * 3600 * 1000;

static char *dns_names[] = {(char[]){"web.shop.svc"}, (char[]){"*.shop"}};
static char *addresses[] = {(char[]){"10.0.0.1"}, (char[]){"fd00::1"}};
static char *uris[] = {(char[]){"spiffe://cluster.local/ns/shop/sa/web"}};
static char *emails[] = {(char[]){"ops@example.com"}};

struct generation {
    struct cr_private_key *ca_key;
    struct cr_authority *ca;
    struct cr_private_key *key;
    struct cr_issued leaf;
};

static void generation_cleanup(struct generation *g)
{
    cr_private_key_free(g->ca_key);
    cr_authority_free(g->ca);
    cr_private_key_free(g->key);
    cr_issued_dispose(&g->leaf);
}

static struct cr_pem_input entry(const char *text)
{
    return (struct cr_pem_input){text, strlen(text)};
}

static bool write_file(const char *folder, const char *name, const void *data, size_t len, struct cr_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    bool written = file && fwrite(data, 1, len, file) == len;
    if (file && fclose(file) != 0)
        written = false;
    return written ? true : cr_error_set(err, CR_ERR_INTERNAL, "%s cannot be written", path);
}

static bool write_text(const char *folder, const char *name, const char *text, struct cr_error *err)
{
    return write_file(folder, name, text, strlen(text), err);
}

static bool parse_type(const char *text, struct cr_key_spec *spec, struct cr_error *err)
{
    static const char *const names[] = {
        [CR_KEY_ECDSA] = "ECDSA-", [CR_KEY_RSA] = "RSA-", [CR_KEY_ED25519] = "Ed25519-"};
    for (size_t i = 0; i < cr_array_len(names); i++) {
        if (!cr_starts_with(text, names[i]))
            continue;
        *spec = (struct cr_key_spec){(enum cr_key_algorithm)i, atoi(text + strlen(names[i]))};
        return true;
    }
    return cr_error_set(err, CR_ERR_INVALID, "%s is no type of key", text);
}

static bool make_generation(const struct cr_key_spec *type, int64_t now_ms, struct generation *g, struct cr_error *err)
{
    const struct cr_authority_spec ca = {"shop CA", 10 * DAY_MS, 1};
    const struct cr_strvec dns = {dns_names, 2, 2};
    const struct cr_strvec address = {addresses, 2, 2};
    const struct cr_strvec uri = {uris, 1, 1};
    const struct cr_strvec email = {emails, 1, 1};
    const struct cr_leaf_spec leaf = {.dns_names = &dns,
                                      .addresses = &address,
                                      .uris = &uri,
                                      .emails = &email,
                                      .usages = CR_LEAF_SERVER | CR_LEAF_CLIENT,
                                      .duration_ms = 2 * DAY_MS};
    return (g->ca_key = cr_private_key_new(type, err)) && (g->ca = cr_authority_new(&ca, g->ca_key, now_ms, err)) &&
           (g->key = cr_private_key_new(type, err)) && cr_issue_leaf(g->ca, &leaf, g->key, now_ms, &g->leaf, err);
}

static bool write_generation(const char *folder, const char *name, const struct generation *g, struct cr_error *err)
{
    char file[64];
    CR_CLEANUP(cr_buf) struct cr_buf key = {.secret = true};
    snprintf(file, sizeof file, "%s.crt", name);
    if (!write_text(folder, file, cr_authority_certificate(g->ca), err))
        return false;
    snprintf(file, sizeof file, "leaf-%s.crt", name);
    if (!write_text(folder, file, g->leaf.pem, err))
        return false;
    snprintf(file, sizeof file, "leaf-%s.key", name);
    return cr_private_key_write(g->key, &key, err) && write_file(folder, file, key.data, key.len, err);
}

static bool write_bundle(const char *folder, const struct generation *old, const struct generation *fresh,
                         int64_t now_ms, struct cr_bundle *bundle, struct cr_error *err)
{
    const struct cr_pem_input previous = entry(cr_authority_certificate(old->ca));
    const struct cr_bundle_leaf leaves[] = {{.name = "old", .chain = entry(old->leaf.pem)}};
    const struct cr_bundle_input in = {entry(cr_authority_certificate(fresh->ca)), &previous, 1, 0, leaves, 1};
    return cr_bundle_make(&in, now_ms, bundle, err) && write_text(folder, "bundle.crt", bundle->pem, err);
}

static bool write_stores(const char *folder, const struct generation *fresh, const char *bundle, struct cr_error *err)
{
    static const char seed[] = "any sixteen bytes";
    const struct cr_keystore_secrets secrets = {"changeit", seed, sizeof seed};
    CR_CLEANUP(cr_buf) struct cr_buf key = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf store = {.secret = true};
    CR_CLEANUP(cr_buf) struct cr_buf trusted = {0};
    const struct cr_pem_input leaf = entry(fresh->leaf.pem);
    const struct cr_pem_input trust = entry(bundle);
    return cr_private_key_write(fresh->key, &key, err) &&
           cr_keystore_write(&leaf, &(struct cr_pem_input){key.data, key.len}, &trust, &secrets, &store, err) &&
           write_file(folder, "keystore.p12", store.data, store.len, err) &&
           cr_truststore_write(&trust, &secrets, &trusted, err) &&
           write_file(folder, "truststore.p12", trusted.data, trusted.len, err);
}

static bool write_all(char **args, struct cr_error *err)
{
    struct cr_key_spec old_type;
    struct cr_key_spec new_type;
    int64_t now_ms = cr_clock_wall_ms();
    __attribute__((cleanup(generation_cleanup))) struct generation old = {0};
    __attribute__((cleanup(generation_cleanup))) struct generation fresh = {0};
    CR_CLEANUP(cr_issued) struct cr_issued cross = {0};
    CR_CLEANUP(cr_bundle) struct cr_bundle bundle = {0};
    if (!parse_type(args[1], &old_type, err) || !parse_type(args[2], &new_type, err) ||
        !make_generation(&old_type, now_ms, &old, err) || !make_generation(&new_type, now_ms, &fresh, err))
        return false;
    const struct cr_pem_input fresh_ca = entry(cr_authority_certificate(fresh.ca));
    return write_generation(args[0], "old", &old, err) && write_generation(args[0], "new", &fresh, err) &&
           cr_cross_sign(old.ca, &fresh_ca, now_ms, &cross, err) && write_text(args[0], "cross.crt", cross.pem, err) &&
           write_bundle(args[0], &old, &fresh, now_ms, &bundle, err) && write_stores(args[0], &fresh, bundle.pem, err);
}

int main(int argc, char **argv)
{
    struct cr_error err = {0};
    if (argc != 4) {
        fputs(usage, stderr);
        return 2;
    }
    if (write_all(argv + 1, &err))
        return 0;
    fprintf(stderr, "pki_driver: %s\n", err.text);
    return 1;
}
