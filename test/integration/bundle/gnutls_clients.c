/* What GnuTLS makes of bundles. Reads lines as bundle_driver does: "reset", "cert NAME BASE64",
 * "verify gnutls DAY ROOTS CHAIN" → 1 or 0, "flush". "gnutls-reads" is a client that verifies what GnuTLS can read. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

enum { CERTS_MAX = 64, LIST_MAX = 64, NAME = 24, TEXT = 1024, DAY_S = 24 * 3600 };
static const time_t first_day_s = 1893456000; /* 2030-01-01T00:00:00Z */

static struct {
    char name[NAME];
    gnutls_x509_crt_t crt; /* NULL: GnuTLS cannot read it */
} certs[CERTS_MAX];
static size_t certs_len;
static time_t now;

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #condition);                                     \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

static time_t tell_time(time_t *out)
{
    if (out)
        *out = now;
    return now;
}

static void reset(void)
{
    for (size_t i = 0; i < certs_len; i++)
        if (certs[i].crt)
            gnutls_x509_crt_deinit(certs[i].crt);
    certs_len = 0;
}

static void add(const char *name, char *base64)
{
    const gnutls_datum_t text = {(unsigned char *)base64, (unsigned)strlen(base64)};
    gnutls_datum_t der;
    must(certs_len < CERTS_MAX && gnutls_base64_decode2(&text, &der) == 0);
    snprintf(certs[certs_len].name, NAME, "%s", name);
    must(gnutls_x509_crt_init(&certs[certs_len].crt) == 0);
    if (gnutls_x509_crt_import(certs[certs_len].crt, &der, GNUTLS_X509_FMT_DER) != 0) {
        gnutls_x509_crt_deinit(certs[certs_len].crt);
        certs[certs_len].crt = NULL;
    }
    certs_len++;
    gnutls_free(der.data);
}

/* Borrowed. */
static unsigned list_of(char *names, gnutls_x509_crt_t out[LIST_MAX])
{
    unsigned len = 0;
    char *rest = NULL;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        size_t i = 0;
        if (strcmp(name, "-") == 0)
            continue;
        while (i < certs_len && strcmp(certs[i].name, name) != 0)
            i++;
        must(i < certs_len && len < LIST_MAX);
        out[len++] = certs[i].crt;
    }
    return len;
}

/* Neither a chain nor a file of trusted certificates with one that it cannot read is taken. */
static bool reads(const gnutls_x509_crt_t *list, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        if (!list[i])
            return false;
    return true;
}

/* A server's, unless the leaf can only be a client's. */
static const char *purpose_of(gnutls_x509_crt_t leaf)
{
    bool server = gnutls_x509_crt_check_key_purpose(leaf, GNUTLS_KP_TLS_WWW_SERVER, 0);
    bool client = gnutls_x509_crt_check_key_purpose(leaf, GNUTLS_KP_TLS_WWW_CLIENT, 0);
    return client && !server ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER;
}

/* As gnutls_certificate_set_x509_trust_file and a session's verification do it. */
static bool verify(const char *client, char *roots, char *chain)
{
    gnutls_x509_crt_t trusted[LIST_MAX];
    gnutls_x509_crt_t sent[LIST_MAX];
    gnutls_x509_trust_list_t list;
    unsigned status = ~0u;
    unsigned trusted_len = list_of(roots, trusted);
    unsigned sent_len = list_of(chain, sent);
    if (!reads(trusted, trusted_len) || !reads(sent, sent_len))
        return false;
    if (strcmp(client, "gnutls-reads") == 0)
        return true;
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)purpose_of(sent[0]), 0};
    must(gnutls_x509_trust_list_init(&list, 0) == 0);
    must(gnutls_x509_trust_list_add_cas(list, trusted, trusted_len, GNUTLS_TL_USE_IN_TLS) == (int)trusted_len);
    int done = gnutls_x509_trust_list_verify_crt2(list, sent, sent_len, &purpose, 1, 0, &status, NULL);
    gnutls_x509_trust_list_deinit(list, 0);
    return done == 0 && status == 0;
}

static void do_line(char *line)
{
    char name[NAME];
    char roots[TEXT];
    char chain[TEXT];
    int day;
    int at = 0;
    if (strcmp(line, "reset") == 0) {
        reset();
    } else if (strcmp(line, "flush") == 0) {
        fflush(stdout);
    } else if (sscanf(line, "cert %23s %n", name, &at) == 1) {
        add(name, line + at);
    } else {
        must(sscanf(line, "verify %23s %d %1023s %1023s", name, &day, roots, chain) == 4);
        now = first_day_s + (time_t)day * DAY_S;
        printf("%d\n", verify(name, roots, chain));
    }
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    must(gnutls_global_init() == 0);
    gnutls_global_set_time_function(tell_time);
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        do_line(line);
    }
    reset();
    free(line);
    gnutls_global_deinit();
    return 0;
}
