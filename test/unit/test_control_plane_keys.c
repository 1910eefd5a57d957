/* What a plan reports of the keys of service accounts. */
#include <ctype.h>

#include "support/controlplanescene.h"

struct keys_case {
    const char *rule;
    const char *edits;
    const char *tokens;  /* on all nodes; NULL: "x"; "?": an agent does not look */
    const char *secrets; /* keys of token Secrets; "-": none known; "!" and capitals: out of reach. NULL: no Secret */
    const char *words;   /* "silent", "absent" */
    const char *status;  /* verifying/known/signing/tokens/removable */
    char signing_key;    /* that is published; 0: none */
    const char *reason;  /* of Converged; NULL: any */
};

/* clang-format off */
static const struct keys_case cases[] = {
    {"settled", "", .status = "x/x/x/x/", .signing_key = 'x'},

    /* in four steps */
    {"both on one API server", "1 file sa.pub xy xy", .status = "x/xy/x/x/", .signing_key = 'x'},
    {"both in all files, and not loaded by one",
     "* file sa.pub xy xy; 3 file sa.pub xy x", .status = "x/xy/x/x/", .signing_key = 'x'},
    {"both everywhere: the other is not needed, but for who signs",
     "* file sa.pub xy xy", .status = "xy/xy/x/x/y", .signing_key = 'x'},
    {"one signs with the new one already",
     "* file sa.pub xy xy; 1 file sa.key y y", .status = "xy/xy/xy/x/", .signing_key = 0},
    {"its file has it, and its process not yet: both may sign",
     "* file sa.pub xy xy; * file sa.key y y; 2 kube-controller-manager --service-account-private-key-file y x", .status = "xy/xy/xy/x/", .signing_key = 0},
    {"all sign with it, and tokens are of the old one",
     "* file sa.pub xy xy; * file sa.key y y", .status = "xy/xy/y/x/", .signing_key = 'y'},
    {"all tokens are new",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .status = "xy/xy/y/y/x", .signing_key = 'y', .reason = "AllLoaded"},
    {"but one of a Secret",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .secrets = "yx", .status = "xy/xy/y/xy/", .signing_key = 'y'},
    {"of a key that no API server verifies by: taken by none",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "yq", .secrets = "yqr", .status = "xy/xy/y/y/x", .signing_key = 'y'},
    {"but what they verify by must be known",
     "* file sa.pub xy xy; * file sa.key y y; 3 kube-apiserver --service-account-key-file xy ?", .tokens = "yq", .status = "//y/y/", .signing_key = 0},
    {"an immutable Secret with a token of the old one",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .secrets = "yX", .status = "xy/xy/y/xy/", .signing_key = 'y'},
    {"one without a token that is immutable, or too large to be read, gets none",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .secrets = "y!", .status = "xy/xy/y/y/x", .signing_key = 'y'},
    {"dropped by one: known till the last has",
     "* file sa.pub xy xy; * file sa.key y y; 1 file sa.pub y y", .tokens = "y", .status = "y/xy/y/y/", .signing_key = 'y'},

    /* unknown */
    {"a Secret's token is awaited",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .secrets = "y-", .status = "xy/xy/y/y/", .signing_key = 'y'},
    {"an agent does not look at tokens",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "?", .status = "xy/xy/y//", .signing_key = 'y', .reason = "TokensNotCounted"},
    {"nor need it while they can be of one key only", "", .tokens = "?", .status = "x/x/x//", .signing_key = 'x', .reason = "AllLoaded"},
    {"a token that is seen is told of all the same", "* file sa.pub xy xy; * file sa.key y y",
     .tokens = "?", .secrets = "x", .status = "xy/xy/y/x/", .signing_key = 'y', .reason = "TokenSecrets"},
    {"a node is silent",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .words = "silent", .status = "//y/y/", .signing_key = 0},
    {"a node has no report",
     "* file sa.pub xy xy; * file sa.key y y", .tokens = "y", .words = "absent", .status = "//y/y/", .signing_key = 0},
    {"a key file that cannot be read", "3 file sa.pub ! x", .status = "//x/x/", .signing_key = 0},
    {"what an API server verifies by is not known",
     "3 kube-apiserver --service-account-key-file xy ?", .status = "//x/x/", .signing_key = 0},
    {"what one signs with is not known",
     "* file sa.pub xy xy; * file sa.key y y; 3 kube-apiserver --service-account-signing-key-file y ?", .tokens = "y", .status = "xy/xy/y/y/", .signing_key = 0},
    {"a signing key that nobody verifies by is not published",
     "* file sa.key y y", .status = "x/x/y/x/", .signing_key = 0},
};
/* clang-format on */

static void put_secrets(const char *keys, struct scene_object secrets[SCENE_OBJECTS])
{
    for (size_t i = 0; i < strlen(cr_or_empty(keys)) && i < SCENE_OBJECTS; i++)
        secrets[i] = (struct scene_object){.ns = "one",
                                           .name = {'t', (char)('0' + i)},
                                           .prints = "a",
                                           .key = isalpha((unsigned char)keys[i]) ? (char)tolower(keys[i]) : '\0',
                                           .out_of_reach = keys[i] == '!' || isupper((unsigned char)keys[i])};
}

static void describe_keys(const struct cr_control_plane_keys *keys, char *out, size_t size)
{
    const char *const lists[] = {keys->verifying, keys->known, keys->signing, keys->tokens, keys->removable};
    size_t len = 0;
    for (size_t i = 0; i < cr_array_len(lists); i++) {
        char letters[16];
        scene_letters(lists[i], letters, sizeof letters);
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? "/" : "", letters);
    }
}

static const char *reason_of(const struct cr_control_plane_status *status, const char *type)
{
    for (size_t i = 0; i < CR_CONTROL_PLANE_CONDITIONS; i++)
        if (cr_streq(cr_control_plane_condition_types[i], type))
            return cr_or_empty(status->conditions[i].reason);
    return "";
}

static bool check(const struct keys_case *c)
{
    static struct scene_cluster cluster;
    static struct scene_world w;
    static const struct scene_object roots[SCENE_OBJECTS] = {{.ns = "one", .prints = "a"}};
    struct scene_object secrets[SCENE_OBJECTS] = {0};
    const struct cr_control_plane_policy policy = scene_policy();
    const struct cr_control_plane_status status = {0};
    char got[80];
    char published[8];
    scene_cluster_init(&cluster);
    scene_edits(&cluster, c->edits);
    for (size_t n = 0; n < SCENE_NODES && c->tokens; n++)
        snprintf(cluster.nodes[n].tokens, SCENE_TEXT, "%s", c->tokens);
    cluster.nodes[1].absent = cr_streq(c->words, "absent");
    cluster.nodes[1].seen_ms -= cr_streq(c->words, "silent") ? CR_NODE_STALE_MS : 0;
    put_secrets(c->secrets, secrets);
    scene_world_make(&cluster, roots, secrets, &policy, &status, NULL, &w);
    CR_CLEANUP(cr_control_plane_plan) struct cr_control_plane_plan plan;
    cr_control_plane_plan(&w.world, &plan);
    describe_keys(&plan.status.service_accounts, got, sizeof got);
    scene_letters(plan.signing_key, published, sizeof published);
    const char *reason = reason_of(&plan.status, "Converged");
    bool good = cr_streq(got, c->status) && published[0] == c->signing_key;
    good = good && (!c->reason || cr_streq(reason, c->reason));
    if (!good)
        print_error("%s: %s with '%s', %s, and not %s, %s\n", c->rule, got, published, reason, c->status,
                    cr_or_empty(c->reason));
    scene_world_cleanup(&w);
    return good;
}

static void each_rule(void **state)
{
    (void)state;
    scene_check_each(cases, check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
