/* A certgen job with a new CA over the Secrets of its set. The leaves that it then issues are the next steps' Secrets.
 */
#include "game.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strings.h"
#include "certgen/plan.h"

static void put(struct cr_buf *entry, const char *text)
{
    if (*cr_or_empty(text))
        cr_buf_puts(entry, text);
}

static void find(const struct game_secret *secret, struct cr_certgen_found *found)
{
    char leaf[GAME_TEXT];
    *found = (struct cr_certgen_found){.found = !cr_streq(secret->chain, "-")};
    if (!found->found)
        return;
    cr_autofree char *pem = game_pem_of(secret->chain);
    snprintf(leaf, sizeof leaf, "%s", secret->chain);
    leaf[strcspn(leaf, ",")] = '\0';
    put(&found->data[CR_CERTGEN_DATA_CERTIFICATE], pem);
    put(&found->data[CR_CERTGEN_DATA_PRIVATE_KEY], game_key_pem(game_cert_find(leaf)->key));
    put(&found->data[CR_CERTGEN_DATA_TRUST], secret->trust);
}

/* Rule 3: bundles before leaves. */
static void publish(struct game *game, const struct cr_certgen_plan *plan)
{
    char leaves[GAME_TEXT];
    game_leaves(game, leaves);
    for (size_t i = 0; i < game->secrets_len; i++) {
        struct game_secret *secret = &game->secrets[i];
        if (!plan->tasks[i].trust)
            continue;
        game_tell(secret->name, secret->trust, plan->bundle, leaves, "-");
        cr_strset(&secret->trust, plan->bundle);
    }
}

void game_certgen_step(struct game *game)
{
    struct cr_error err = {0};
    struct cr_certgen_secret named[GAME_SECRETS_MAX] = {0};
    struct cr_certgen_found found[GAME_SECRETS_MAX] = {0};
    const struct cr_certgen_set set = {.secrets = named, .secrets_len = game->secrets_len};
    CR_CLEANUP(cr_certgen_plan) struct cr_certgen_plan plan = {0};
    for (size_t i = 0; i < game->secrets_len; i++) {
        named[i].name = game->secrets[i].name;
        find(&game->secrets[i], &found[i]);
    }
    const struct cr_certgen_question question = {.set = &set,
                                                 .found = found,
                                                 .overwrite = true,
                                                 .authority = game_cert_find(game->authority)->pem,
                                                 .now_ms = game->now_ms};
    if (cr_certgen_plan_make(&question, &plan, &err))
        publish(game, &plan);
    else
        printf("refused %s\n", err.text);
    for (size_t i = 0; i < game->secrets_len; i++)
        cr_certgen_found_dispose(&found[i]);
}
