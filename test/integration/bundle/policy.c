/* A policy's spec.trust: what its Secrets have now, and the target that holds the bundle of before. */
#include "game.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "policy/controller/trust_sources.h"

static struct cr_entry entry_of(const char *text)
{
    struct cr_entry entry = {.found = *cr_or_empty(text) != '\0'};
    if (entry.found)
        cr_buf_puts(&entry.bytes, text);
    return entry;
}

static void add(struct cr_trust_sources *sources, const struct game_secret *secret)
{
    if (cr_streq(secret->chain, "-") && !secret->trust)
        return;
    cr_autofree char *pem = game_pem_of(secret->chain);
    struct cr_entry chain = entry_of(pem);
    struct cr_entry trust = entry_of(secret->trust);
    cr_trust_sources_add(sources, secret->name, &trust, &chain);
    cr_entry_dispose(&chain);
    cr_entry_dispose(&trust);
}

void game_policy_step(struct game *game)
{
    struct cr_error err = {0};
    char leaves[GAME_TEXT];
    CR_CLEANUP(cr_trust_sources) struct cr_trust_sources sources = {0};
    CR_CLEANUP(cr_bundle) struct cr_bundle made = {0};
    const char *before = cr_or_empty(game->published);
    for (size_t i = 0; i < game->secrets_len; i++)
        add(&sources, &game->secrets[i]);
    const struct cr_pem_input previous = {before, strlen(before)};
    if (!cr_trust_sources_make(&sources, &previous, (size_t)game->retain, game->now_ms, &made, &err)) {
        printf("refused %s\n", err.text);
        return;
    }
    game_leaves(game, leaves);
    game_tell("target", before, made.pem, leaves, "-");
    cr_strset(&game->published, made.pem);
}
