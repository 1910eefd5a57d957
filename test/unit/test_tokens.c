#include "controlplane/agent/node_reading.h"

#include "support/nodetree.h"
#include "support/testjwt.h"

#include "base/clock.h"
#include "controlplane/agent/survey.h"

#define PODS   "/var/lib/kubelet/pods/"
#define VOLUME "/volumes/kubernetes.io~projected/"

/* A digest as it is in a token, and as it is reported. */
#define KID_A "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define HEX_A "0000000000000000000000000000000000000000000000000000000000000000"
#define KID_B "-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_8"
#define HEX_B "fbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbffbff"

static char *token_of(const char *header, const char *uid)
{
    cr_autofree char *claims =
        cr_asprintf("{\"iss\":\"https://kubernetes.default.svc\",\"kubernetes.io\":{\"namespace\":"
                    "\"n\",\"pod\":{\"name\":\"p\",\"uid\":\"%s\"}}}",
                    uid);
    return test_jwt(header, claims);
}

/* As a kubelet writes it (pkg/volume/util/atomic_writer.go). file: of the volume, "token". */
static void write_volume(const struct node_tree *tree, const char *uid, const char *volume, const char *file,
                         const char *text)
{
    cr_autofree char *real = cr_asprintf(PODS "%s" VOLUME "%s/..2026_11_22/%s", uid, volume, file);
    cr_autofree char *data = cr_asprintf(PODS "%s" VOLUME "%s/..data", uid, volume);
    cr_autofree char *first = cr_strndup(file, strcspn(file, "/"));
    cr_autofree char *name = cr_asprintf(PODS "%s" VOLUME "%s/%s", uid, volume, first);
    cr_autofree char *target = cr_asprintf("..data/%s", first);
    tree_write(tree, real, text);
    tree_link(tree, data, "..2026_11_22");
    tree_link(tree, name, target);
}

static void write_token(const struct node_tree *tree, const char *uid, const char *file, const char *kid)
{
    cr_autofree char *header = cr_asprintf("{\"alg\":\"RS256\",\"kid\":\"%s\"}", kid);
    cr_autofree char *token = token_of(header, uid);
    write_volume(tree, uid, "kube-api-access-x", file, token);
}

/* "<key>=<tokens> …", "-" for one that is not known. Owned; NULL: the error's text is in err. */
static char *count(const struct node_tree *tree, struct cr_error *err)
{
    const struct cr_node_layout layout = {.root = tree->root, .proc = tree->proc};
    struct cr_node_token_count *items = NULL;
    size_t len = 0;
    struct cr_buf out = CR_BUF_INIT(0);
    if (!cr_node_tokens_count(&layout, "/var/lib/kubelet", &items, &len, err))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        cr_buf_printf(&out, "%s%s=%d", i ? " " : "", items[i].key ? items[i].key : "-", (int)items[i].tokens);
        free(items[i].key);
    }
    free(items);
    return cr_buf_steal(&out);
}

static void expect(const struct node_tree *tree, const char *want)
{
    struct cr_error err = {0};
    cr_autofree char *is = count(tree, &err);
    if (!cr_streq(is, want))
        fail_msg("want '%s', is '%s' %s", want, cr_or_empty(is), err.text);
}

static void tokens_are_counted_by_their_key(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    write_token(&tree, "uid-1", "token", KID_B);
    write_token(&tree, "uid-2", "token", KID_A);
    write_token(&tree, "uid-2", "sub/folder/vault", KID_B);
    write_token(&tree, "uid-3", "token", "some-name");
    write_token(&tree, "uid-4", "token", "");
    expect(&tree, HEX_A "=1 " HEX_B "=2 -=2");
}

static void what_is_no_token_of_the_pod_is_none(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    cr_autofree char *of_another = token_of("{\"alg\":\"RS256\",\"kid\":\"" KID_A "\"}", "uid-2");
    cr_autofree char *no_alg = token_of("{\"kid\":\"" KID_A "\"}", "uid-1");
    cr_autofree char *legacy =
        test_jwt("{\"alg\":\"RS256\",\"kid\":\"" KID_A "\"}", "{\"iss\":\"kubernetes/serviceaccount\"}");
    cr_autofree char *cut = cr_strndup(legacy, (size_t)(strrchr(legacy, '.') - legacy));
    cr_autofree char *huge = cr_malloc(100 * 1024 + 1);
    memset(huge, 'a', 100 * 1024);
    huge[100 * 1024] = '\0';
    const char *const texts[] = {of_another, no_alg,  legacy, cut, huge,       "",
                                 "..",       "a.b.c", "=.=.", ".", "e30.e30.", "-----BEGIN CERTIFICATE-----\n",
                                 "default"};
    for (size_t i = 0; i < cr_array_len(texts); i++) {
        cr_autofree char *volume = cr_asprintf("v%zu", i);
        write_volume(&tree, "uid-1", volume, "token", texts[i]);
    }
    expect(&tree, "");
}

static void write_keys(struct node_tree *tree, const char *uid, const char *volume, int len)
{
    for (int i = 0; i < len; i++) {
        cr_autofree char *name = cr_asprintf(PODS "%s" VOLUME "%s/key-%d", uid, volume, i);
        tree_write(tree, name, "x");
    }
}

static void volumes_with_many_keys_hide_no_token(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    write_keys(&tree, "uid-1", "v", 9 * 1024);
    write_keys(&tree, "uid-2", "v", 9 * 1024);
    write_token(&tree, "uid-2", "token", KID_A);
    expect(&tree, HEX_A "=1");
}

static void what_cannot_be_looked_through_is_a_token_of_an_unknown_key(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    write_token(&tree, "uid-1", "token", KID_A);
    write_token(&tree, "uid-2", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/token", KID_B);
    write_token(&tree, "uid-3", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/token", KID_B);
    write_keys(&tree, "uid-4", "v", 9 * 1024);
    write_keys(&tree, "uid-4", "w", 9 * 1024);
    expect(&tree, HEX_A "=1 " HEX_B "=1 -=2");
}

/* The folder of a pod that has ended stays a while, without volumes or with ones that have gone. */
static void pods_without_volumes_have_none(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    tree_write(&tree, PODS "uid-1/etc-hosts", "");
    tree_write(&tree, PODS "uid-2" VOLUME "v/other", "");
    tree_link(&tree, PODS "uid-2" VOLUME "v/token", "..data/token");
    tree_link(&tree, PODS "uid-2" VOLUME "v/..data", "..gone");
    write_token(&tree, "uid-3", "token", KID_A);
    expect(&tree, HEX_A "=1");
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    struct cr_error err = {0};
    assert_null(count(&tree, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_string_equal(err.text, "/var/lib/kubelet/pods: No such file or directory");
    tree_write(&tree, "/var/lib/kubelet/pods", "");
    assert_null(count(&tree, &err));
    assert_int_equal(err.kind, CR_ERR_INVALID);
}

/* Where an agent does not count, it must not report that there are none: its pods' volumes may be covered. */
static void who_does_not_count_does_not_know(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    struct cr_error err = {0};
    tree_init(&tree);
    write_token(&tree, "uid-1", "token", KID_A);
    CR_CLEANUP(cr_catalogue) struct cr_catalogue *catalogue = cr_catalogue_builtin(&err);
    assert_non_null(catalogue);
    struct cr_node_survey_options options = {
        .layout = {.root = tree.root, .proc = tree.proc}, .catalogue = catalogue, .count_tokens = true};
    CR_CLEANUP(cr_node_survey) struct cr_node_survey counted;
    CR_CLEANUP(cr_node_survey) struct cr_node_survey not_counted;
    cr_node_survey(&options, NULL, cr_clock_wall_ms(), &counted);
    assert_true(counted.report.tokens_known);
    assert_int_equal(counted.report.tokens_len, 1);
    options.count_tokens = false;
    cr_node_survey(&options, &counted.report, cr_clock_wall_ms(), &not_counted);
    assert_false(not_counted.report.tokens_known);
    assert_int_equal(not_counted.report.tokens_len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_counted_by_their_key),
        cmocka_unit_test(what_is_no_token_of_the_pod_is_none),
        cmocka_unit_test(volumes_with_many_keys_hide_no_token),
        cmocka_unit_test(what_cannot_be_looked_through_is_a_token_of_an_unknown_key),
        cmocka_unit_test(pods_without_volumes_have_none),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
        cmocka_unit_test(who_does_not_count_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
