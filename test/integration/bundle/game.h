/* A PKI by names, and the programs of certroll that publish bundles of it. For bundle_driver, in one thread.
 *
 * A case is text: certificates that are made of what it says of each, Secrets that have them, and what changes in each
 * step. Keys, serial numbers and signatures come from the names and numbers in it, so that a case is the same bytes in
 * each run. What cannot be done ends the program: a test without its certificates can say nothing. */
#ifndef TEST_BUNDLE_GAME_H
#define TEST_BUNDLE_GAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <openssl/x509.h>

#include "base/buffer.h"

enum { GAME_CERTS_MAX = 64, GAME_NAME = 24, GAME_SECRETS_MAX = 8, GAME_TEXT = 1024 };

#define game_must(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            game_fail(__FILE__, __LINE__, #condition);                                                                 \
    } while (0)
void game_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* --- certificates --- */

struct game_cert {
    char name[GAME_NAME];
    X509 *x509;
    char *pem;
    int key; /* number of its key */
};

/* Wall clock of a day of the game. Day 0 is the first of 2030. */
int64_t game_day_ms(int day);
void game_certs_reset(void);
/* SUBJECT KEY ISSUER ISSUERKEY FROM UNTIL ca|leaf SKI AKI: common names, numbers of keys, days, and whether it has the
 * key identifiers. */
const struct game_cert *game_cert_make(const char *name, const char *words);
/* One that was made before, for clients only: without its key. */
void game_cert_load(const char *name, const char *base64);
const struct game_cert *game_cert_find(const char *name);
/* PKCS#8, borrowed. */
const char *game_key_pem(int key);
/* Texts of "A,B,C"; "-" is nothing. Owned. */
char *game_pem_of(const char *names);
/* The names of the certificates of a PEM text, "A,B,C" or "-". */
void game_names_of(const char *pem, char out[GAME_TEXT]);
/* Of the certificate with that SHA-256, in hex. Static. */
const char *game_name_of(const char *fingerprint);

/* --- clients that are OpenSSL's --- */

/* client: "openssl", "openssl-partial" (as curl), "openssl-strict" (as Python 3.13). */
bool game_openssl_verifies(const char *client, int day, const char *roots, const char *chain);

/* What the product takes for the answer of a client: of these, "go" or "gnutls". */
bool game_model_verifies(const char *client, int day, const char *roots, const char *chain);

/* --- what the product publishes --- */

/* A Secret with a leaf and the CAs beside it, as its owner (policies, domains) or certgen wrote it. */
struct game_secret {
    char name[GAME_NAME];
    char chain[GAME_TEXT]; /* "-": the Secret is not there */
    char *trust;           /* PEM, NULL: none */
};

struct game {
    char path[GAME_NAME];
    int retain;
    int64_t now_ms;
    struct game_secret secrets[GAME_SECRETS_MAX];
    size_t secrets_len;
    char *published;           /* a policy's target: PEM, NULL: none */
    char authority[GAME_NAME]; /* certgen: the CA that issues from now on */
    struct game_domain *domain;
};

/* One reconcile, or as many as it takes until nothing is left to be written. Each writes to stdout what it publishes:
 * "bundle PLACE BEFORE AFTER LEAVES WANTED", where LEAVES are the chains that the product knew, "a,b;c", and WANTED the
 * CAs that a domain's plan puts there, "a,b"; "refused WORDS" for what it does not publish; and a domain "served CHAIN"
 * for a leaf that it has put where pods take it from. */
void game_policy_step(struct game *game);
void game_certgen_step(struct game *game);
void game_domain_step(struct game *game);
void game_domain_free(struct game_domain *domain);

/* For those. */
void game_tell(const char *place, const char *before, const char *after, const char *leaves, const char *wanted);
/* The chains of all Secrets that are there. */
void game_leaves(const struct game *game, char out[GAME_TEXT]);

#endif
