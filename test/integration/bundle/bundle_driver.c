/* What certroll publishes of PKIs that test/integration/bundle_game.py thinks of, step by step, and what clients of
 * OpenSSL make of it. Reads lines, and answers some of them.
 *
 *   reset                               forgets all certificates
 *   cert NAME SUBJECT KEY ISSUER ISSUERKEY FROM UNTIL ca|leaf SKI AKI
 *                                       makes it → cert NAME BASE64
 *   cert NAME BASE64                    one that was made before
 *   verify CLIENT DAY ROOTS CHAIN       → 1 or 0; "model-CLIENT": as the product models it
 *   begin PATH RETAIN                   policy, certgen, domain or domain-converged; nothing is published yet
 *   published ROOTS                     policy: what the target has
 *   secret NAME CHAIN TRUST             "-": none of it; certgen: "=" is what the job left there
 *   step DAY AUTHORITY                  → bundle PLACE BEFORE AFTER LEAVES…, refused WORDS…, served CHAIN…, and "."
 *   flush                               writes the answers
 *
 * ROOTS, CHAIN and TRUST are names, "A,B,C" or "-"; LEAVES chains, "l1,A;l2". */
#include "game.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "codec/base64.h"

#define MODEL "model-"
#define ENVOY "envoy" /* the model of it, always: a real one takes seconds (test_bundle_envoy.py) */

static const struct {
    const char *name;
    void (*step)(struct game *game);
} paths[] = {
    {"policy", game_policy_step},
    {"certgen", game_certgen_step},
    {"domain", game_domain_step},
    {"domain-converged", game_domain_step},
};

void game_tell(const char *place, const char *before, const char *after, const char *leaves, const char *wanted)
{
    char old[GAME_TEXT];
    char fresh[GAME_TEXT];
    game_names_of(before, old);
    game_names_of(after, fresh);
    printf("bundle %s %s %s %s %s\n", place, old, fresh, leaves, wanted);
}

void game_leaves(const struct game *game, char out[GAME_TEXT])
{
    size_t used = 0;
    snprintf(out, GAME_TEXT, "-");
    for (size_t i = 0; i < game->secrets_len; i++) {
        if (cr_streq(game->secrets[i].chain, "-"))
            continue;
        used += (size_t)snprintf(out + used, GAME_TEXT - used, "%s%s", used ? ";" : "", game->secrets[i].chain);
        game_must(used < GAME_TEXT);
    }
}

static void clear(struct game *game)
{
    for (size_t i = 0; i < game->secrets_len; i++)
        free(game->secrets[i].trust);
    free(game->published);
    game_domain_free(game->domain);
    *game = (struct game){0};
}

static struct game_secret *secret_of(struct game *game, const char *name)
{
    for (size_t i = 0; i < game->secrets_len; i++)
        if (cr_streq(game->secrets[i].name, name))
            return &game->secrets[i];
    game_must(game->secrets_len < GAME_SECRETS_MAX);
    struct game_secret *added = &game->secrets[game->secrets_len++];
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

/* --- lines --- */

static void do_cert(const char *line)
{
    char name[GAME_NAME];
    int used = 0;
    unsigned char *der = NULL;
    game_must(sscanf(line, "cert %23s %n", name, &used) == 1);
    if (!strchr(line + used, ' ')) {
        game_cert_load(name, line + used);
        return;
    }
    const struct game_cert *cert = game_cert_make(name, line + used);
    int len = i2d_X509(cert->x509, &der);
    game_must(len > 0);
    cr_autofree char *text = cr_base64_encode(der, (size_t)len);
    printf("cert %s %s\n", name, text);
    OPENSSL_free(der);
}

/* A private key, for a server. */
static void do_key(const char *line)
{
    int key;
    game_must(sscanf(line, "key %d", &key) == 1);
    const char *pem = game_key_pem(key);
    cr_autofree char *text = cr_base64_encode((const unsigned char *)pem, strlen(pem));
    puts(text);
}

static void do_verify(const char *line)
{
    char client[GAME_NAME];
    char roots[GAME_TEXT];
    char chain[GAME_TEXT];
    int day;
    game_must(sscanf(line, "verify %23s %d %1023s %1023s", client, &day, roots, chain) == 4);
    const char *modelled = cr_starts_with(client, MODEL) ? client + strlen(MODEL)
                           : cr_streq(client, ENVOY)     ? client
                                                         : NULL;
    printf("%d\n", modelled ? game_model_verifies(modelled, day, roots, chain)
                            : game_openssl_verifies(client, day, roots, chain));
}

static void do_secret(struct game *game, const char *line)
{
    char name[GAME_NAME];
    char chain[GAME_TEXT];
    char trust[GAME_TEXT];
    game_must(sscanf(line, "secret %23s %1023s %1023s", name, chain, trust) == 3);
    struct game_secret *secret = secret_of(game, name);
    memcpy(secret->chain, chain, sizeof chain);
    if (cr_streq(trust, "="))
        return;
    free(secret->trust);
    secret->trust = cr_streq(trust, "-") ? NULL : game_pem_of(trust);
}

static void do_step(struct game *game, const char *line)
{
    int day;
    size_t path = 0;
    game_must(sscanf(line, "step %d %23s", &day, game->authority) == 2);
    while (path < cr_array_len(paths) && !cr_streq(paths[path].name, game->path))
        path++;
    game_must(path < cr_array_len(paths));
    game->now_ms = game_day_ms(day);
    paths[path].step(game);
    puts(".");
}

static void do_line(struct game *game, const char *line)
{
    char names[GAME_TEXT];
    if (cr_starts_with(line, "cert "))
        do_cert(line);
    else if (cr_starts_with(line, "key "))
        do_key(line);
    else if (cr_starts_with(line, "verify "))
        do_verify(line);
    else if (cr_starts_with(line, "secret "))
        do_secret(game, line);
    else if (cr_starts_with(line, "step "))
        do_step(game, line);
    else if (cr_streq(line, "reset"))
        game_certs_reset();
    else if (cr_streq(line, "flush"))
        fflush(stdout);
    else if (sscanf(line, "published %1023s", names) == 1)
        game->published = game_pem_of(names);
    else if (cr_starts_with(line, "begin ")) {
        clear(game);
        game_must(sscanf(line, "begin %23s %d", game->path, &game->retain) == 2);
    } else {
        fprintf(stderr, "bundle_driver: what is \"%s\"?\n", line);
        exit(2);
    }
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    struct game *game = cr_new(struct game);
    while (getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        do_line(game, line);
    }
    clear(game);
    free(game);
    free(line);
    game_certs_reset();
    return 0;
}
