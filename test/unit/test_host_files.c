#include "controlplane/agent/host_files.h"

#include "support/nodetree.h"

#include <signal.h>
#include <sys/wait.h>

static const struct cr_host_file *read_one(struct cr_host_files *files, const char *host)
{
    const struct cr_host_file *file = cr_host_files_read(files, host);
    assert_string_equal(file->host, host);
    return file;
}

static void each_is_read_once(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    tree_write(&tree, "/etc/a", "one");
    CR_CLEANUP(cr_host_files) struct cr_host_files files = {.root = tree.root};
    const struct cr_host_file *a = read_one(&files, "/etc/a");
    tree_write(&tree, "/etc/a", "another");
    assert_ptr_equal(read_one(&files, "/etc/a"), a);
    assert_string_equal(cr_buf_text(&a->text), "one");
    assert_true(a->text.secret && a->exists);
    assert_int_equal(a->err.kind, CR_ERR_NONE);
}

static void what_cannot_be_read_says_so_and_keeps_no_other_file(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    cr_autofree char *big = cr_malloc(CR_HOST_FILE_MAX + 2);
    memset(big, 'a', CR_HOST_FILE_MAX + 1);
    big[CR_HOST_FILE_MAX + 1] = '\0';
    tree_write(&tree, "/etc/a", "one");
    tree_write(&tree, "/etc/big", big);
    tree_write(&tree, "/etc/folder/x", "");
    tree_link(&tree, "/etc/linked", "big");
    CR_CLEANUP(cr_host_files) struct cr_host_files files = {.root = tree.root};
    const char *const hosts[] = {"/etc/folder", "/etc/a", "/etc/none", "/etc/linked"};
    const struct cr_host_file *found[4];
    cr_host_files_read_together(&files, hosts, 4, found);
    assert_string_equal(found[0]->err.text, "/etc/folder: is a folder, a file is expected");
    assert_true(found[0]->exists);
    assert_string_equal(cr_buf_text(&found[1]->text), "one");
    assert_int_equal(found[1]->err.kind, CR_ERR_NONE);
    assert_string_equal(found[2]->err.text, "/etc/none: No such file or directory");
    assert_false(found[2]->exists);
    assert_string_equal(found[3]->err.text, "/etc/linked: longer than the 1048576 bytes that are allowed");
    assert_int_equal(found[3]->text.len, 0);
    CR_CLEANUP(cr_strvec) struct cr_strvec paths = {0};
    cr_host_files_paths(&files, &paths);
    cr_autofree char *link = cr_asprintf("%s/etc/linked", tree.root);
    cr_autofree char *led_to = cr_asprintf("%s/etc/big", tree.root);
    cr_autofree char *none = cr_asprintf("%s/etc/none", tree.root);
    assert_true(cr_strvec_has(&paths, link) && cr_strvec_has(&paths, led_to) && cr_strvec_has(&paths, none));
}

/* As a kubelet or certroll's own sidecar does, without end. */
static void swap_forever(const struct node_tree *tree)
{
    cr_autofree char *data = cr_asprintf("%s/pki/..data", tree->root);
    cr_autofree char *next = cr_asprintf("%s/pki/..data_tmp", tree->root);
    for (int i = 0;; i++)
        if (symlink(i % 2 ? "..a" : "..b", next) != 0 || rename(next, data) != 0)
            _exit(1);
}

/* Certificate and key are of one generation, or it is said that they change: never one of each. */
static void a_pair_is_of_one_moment(void **state)
{
    enum { LOOKS = 300 };
    int read = 0;
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    static const char *const generations[] = {"a", "b"};
    for (size_t i = 0; i < 2; i++) {
        cr_autofree char *crt = cr_asprintf("/pki/..%s/crt", generations[i]);
        cr_autofree char *key = cr_asprintf("/pki/..%s/key", generations[i]);
        tree_write(&tree, crt, generations[i]);
        tree_write(&tree, key, generations[i]);
    }
    tree_link(&tree, "/pki/..data", "..a");
    tree_link(&tree, "/pki/crt", "..data/crt");
    tree_link(&tree, "/pki/key", "..data/key");
    pid_t writer = fork();
    if (writer == 0)
        swap_forever(&tree);
    for (int i = 0; i < LOOKS; i++) {
        CR_CLEANUP(cr_host_files) struct cr_host_files files = {.root = tree.root};
        const struct cr_host_file *found[2];
        cr_host_files_read_together(&files, (const char *const[]){"/pki/crt", "/pki/key"}, 2, found);
        if (found[0]->err.kind || found[1]->err.kind)
            continue;
        assert_string_equal(cr_buf_text(&found[0]->text), cr_buf_text(&found[1]->text));
        read++;
    }
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    assert_true(WIFSIGNALED(status));
    if (!read)
        print_message("the writer was never at rest\n");
}

static void a_folder_is_listed_sorted(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    tree_init(&tree);
    tree_write(&tree, "/srv/b", "");
    tree_write(&tree, "/srv/.a", "");
    tree_write(&tree, "/srv/c/d", "");
    tree_link(&tree, "/etc", "/srv");
    CR_CLEANUP(cr_strvec) struct cr_strvec names = {0};
    CR_CLEANUP(cr_strvec) struct cr_strvec none = {0};
    struct cr_error err = {0};
    assert_true(cr_host_folder_list(tree.root, "/etc", 3, &names, &err));
    cr_autofree char *all = cr_strvec_join(&names, " ");
    assert_string_equal(all, ".a b c");
    assert_false(cr_host_folder_list(tree.root, "/etc", 2, &none, &err));
    assert_string_equal(err.text, "/etc: has more than 2 entries");
    assert_false(cr_host_folder_list(tree.root, "/etc/b", 3, &none, &err));
    assert_string_equal(err.text, "/etc/b: is no folder");
    assert_false(cr_host_folder_list(tree.root, "/none", 3, &none, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_read_once),
        cmocka_unit_test(what_cannot_be_read_says_so_and_keeps_no_other_file),
        cmocka_unit_test(a_pair_is_of_one_moment),
        cmocka_unit_test(a_folder_is_listed_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
