#include "controlplane/agent/host_way.h"

#include "support/nodetree.h"

static const struct {
    const char *rule, *path;
    const char *want; /* below the root; NULL: words of the error */
    const char *words;
    int links;
} rows[] = {
    {"a file", "/etc/a", "/etc/a", NULL, 0},
    {"slashes may be doubled", "//etc//a", "/etc/a", NULL, 0},
    {"dots", "/etc/./b/../a", "/etc/a", NULL, 0},
    {"a link beside it", "/etc/beside", "/etc/a", NULL, 1},
    {"an absolute link is below the root", "/etc/absolute", "/srv/c", NULL, 1},
    {"a link to a folder on the way", "/folder/a", "/etc/a", NULL, 1},
    {"two of them", "/etc/chain", "/srv/c", NULL, 2},
    {"never above the root", "/etc/above", "/srv/c", NULL, 1},
    {"also by the path itself", "/../../../srv/c", "/srv/c", NULL, 0},
    {"as a kubelet's volume", "/volume/token", "/volume/..1/token", NULL, 2},
    {"the root", "/", "/", NULL, 0},
    {"nothing there", "/etc/none", NULL, "/etc/none: No such file or directory", 0},
    {"a link to nothing", "/etc/dangling", NULL, "/etc/dangling: No such file or directory", 1},
    {"links in a circle", "/etc/round", NULL, "/etc/round: Too many levels of symbolic links", 41},
    {"a file is no folder", "/etc/a/b", NULL, "/etc/a/b: Not a directory", 0},
};

static void make(struct node_tree *tree)
{
    tree_init(tree);
    tree_write(tree, "/etc/a", "a");
    tree_write(tree, "/etc/b/x", "x");
    tree_write(tree, "/srv/c", "c");
    tree_write(tree, "/volume/..1/token", "t");
    tree_link(tree, "/volume/..data", "..1");
    tree_link(tree, "/volume/token", "..data/token");
    tree_link(tree, "/etc/beside", "a");
    tree_link(tree, "/etc/absolute", "/srv/c");
    tree_link(tree, "/folder", "/etc/");
    tree_link(tree, "/etc/chain", "absolute");
    tree_link(tree, "/etc/above", "../../../../../../../../srv/c");
    tree_link(tree, "/etc/dangling", "nowhere");
    tree_link(tree, "/etc/round", "/etc/round");
}

static void links_are_followed_below_the_root(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    make(&tree);
    for (size_t i = 0; i < cr_array_len(rows); i++) {
        struct cr_error err = {0};
        CR_CLEANUP(cr_host_way) struct cr_host_way way;
        cr_autofree char *want = cr_asprintf("%s%s", tree.root, cr_or_empty(rows[i].want));
        bool found = cr_host_way_go(tree.root, rows[i].path, &way, &err);
        if (found != !rows[i].words || (found && !cr_streq(way.path, want)) ||
            !cr_streq(err.text, cr_or_empty(rows[i].words)) || (int)way.links.len != rows[i].links)
            fail_msg("%s: %s '%s', %zu links", rows[i].rule, way.path, err.text, way.links.len);
        if (found && !rows[i].links) /* the kernel's own opinion */
            assert_int_equal(access(way.path, F_OK), 0);
    }
}

static void where_nothing_is_can_be_watched(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    make(&tree);
    CR_CLEANUP(cr_host_way) struct cr_host_way way;
    cr_autofree char *want = cr_asprintf("%s/etc/nowhere", tree.root);
    cr_autofree char *link = cr_asprintf("%s/etc/dangling", tree.root);
    assert_false(cr_host_way_go(tree.root, "/etc/dangling", &way, NULL));
    assert_string_equal(way.path, want);
    assert_string_equal(way.links.items[0], link);
    assert_int_equal(way.ctime_ms, 0);
}

/* A change of a link is a change of what is there, though the file that it leads to now is an old one. */
static void the_latest_change_on_the_way_counts(void **state)
{
    (void)state;
    CR_CLEANUP(tree) struct node_tree tree;
    make(&tree);
    CR_CLEANUP(cr_host_way) struct cr_host_way before;
    CR_CLEANUP(cr_host_way) struct cr_host_way file;
    assert_true(cr_host_way_go(tree.root, "/etc/beside", &before, NULL));
    assert_true(cr_host_way_go(tree.root, "/etc/a", &file, NULL));
    assert_true(before.ctime_ms >= file.ctime_ms);
    assert_true(cr_host_way_same(&before, &before));
    for (bool later = false; !later;) { /* the clock of files goes by ticks */
        CR_CLEANUP(cr_host_way) struct cr_host_way now;
        tree_link(&tree, "/etc/beside", "a");
        assert_true(cr_host_way_go(tree.root, "/etc/beside", &now, NULL));
        assert_int_equal(now.end.st_ino, before.end.st_ino);
        later = now.ctime_ms > before.ctime_ms;
        assert_int_equal(cr_host_way_same(&now, &before), !later);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_followed_below_the_root),
        cmocka_unit_test(where_nothing_is_can_be_watched),
        cmocka_unit_test(the_latest_change_on_the_way_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
