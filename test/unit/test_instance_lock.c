#include "controlplane/agent/instance_lock.h"

#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/strings.h"

extern int flock(int fd, int operation);

enum { NOBODY = 65534, OTHERS_MAY_LOOK = 0755, ROOT_ONLY = 0700 };

#define SHARED      "/etc/kubernetes"
#define KUBELET     "/var/lib/kubelet"
#define CHECKPOINTS KUBELET "/checkpoints"

/* --- a node's folders --- */

static const char *const folders[] = {"/etc", SHARED, "/var", "/var/lib", KUBELET, CHECKPOINTS};

struct node {
    char root[64];
    pid_t holder; /* 0: none */
};

/* checkpoints: mode; 0: not there. */
static void make(struct node *node, bool shared, mode_t checkpoints)
{
    *node = (struct node){.root = "/tmp/certroll-instance-lock-XXXXXX"};
    assert_non_null(mkdtemp(node->root));
    assert_int_equal(chmod(node->root, OTHERS_MAY_LOOK), 0);
    for (size_t i = 0; i < cr_array_len(folders); i++) {
        cr_autofree char *path = cr_asprintf("%s%s", node->root, folders[i]);
        bool last = i + 1 == cr_array_len(folders);
        if ((cr_streq(folders[i], SHARED) && !shared) || (last && !checkpoints))
            continue;
        assert_int_equal(mkdir(path, OTHERS_MAY_LOOK), 0);
        assert_int_equal(chmod(path, last ? checkpoints : OTHERS_MAY_LOOK), 0);
    }
}

static void stop_holder(struct node *node)
{
    if (!node->holder)
        return;
    assert_int_equal(kill(node->holder, SIGKILL), 0);
    assert_int_equal(waitpid(node->holder, NULL, 0), node->holder);
    node->holder = 0;
}

static void take_away(struct node *node)
{
    stop_holder(node);
    for (size_t i = cr_array_len(folders); i-- > 0;) {
        cr_autofree char *path = cr_asprintf("%s%s", node->root, folders[i]);
        rmdir(path);
    }
    assert_int_equal(rmdir(node->root), 0);
}

/* --- who holds what --- */

static bool is_agent(const char *root)
{
    static struct cr_node_instance_lock lock;
    struct cr_error err = {0};
    return cr_node_instance_lock_take(root, "/proc", &lock, &err);
}

/* What an older agent does, and what anybody can. */
static bool has_shared(const char *root)
{
    cr_autofree char *path = cr_asprintf("%s" SHARED, root);
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    return fd >= 0 && flock(fd, 2 /* LOCK_EX */ | 4 /* LOCK_NB */) == 0;
}

static bool is_nobody_and_has_shared(const char *root)
{
    return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && has_shared(root);
}

/* A process that holds it until it is stopped. */
static void hold(struct node *node, bool (*take)(const char *root))
{
    int ready[2];
    char byte = 'n';
    assert_int_equal(pipe(ready), 0);
    node->holder = fork();
    if (node->holder == 0) {
        bool taken = take(node->root);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user forgets that */
        (void)!write(ready[1], taken ? "y" : "n", 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
}

static void expect_alone(const struct node *node)
{
    CR_CLEANUP(cr_node_instance_lock) struct cr_node_instance_lock lock;
    struct cr_error err = {0};
    if (!cr_node_instance_lock_take(node->root, "/proc", &lock, &err))
        fail_msg("%s", err.text);
}

/* want: of the words; %d is the holder's number. */
static void expect_refused(const struct node *node, const char *want)
{
    CR_CLEANUP(cr_node_instance_lock) struct cr_node_instance_lock lock;
    struct cr_error err = {0};
    char words[256];
    char number[16];
    snprintf(number, sizeof number, "%d", (int)node->holder);
    const char *at = strstr(want, "%d");
    snprintf(words, sizeof words, "%.*s%s%s", at ? (int)(at - want) : (int)strlen(want), want, at ? number : "",
             at ? at + 2 : "");
    assert_false(cr_node_instance_lock_take(node->root, "/proc", &lock, &err));
    assert_int_equal(err.kind, CR_ERR_CONFLICT);
    if (!strstr(err.text, words))
        fail_msg("want '%s', is '%s'", words, err.text);
}

/* --- tests --- */

static void one_process_has_it_and_the_kernel_takes_it_back(void **state)
{
    (void)state;
    static const struct {
        bool shared;
        mode_t checkpoints;
        const char *locked;
    } nodes[] = {{true, 0, SHARED},
                 {true, ROOT_ONLY, CHECKPOINTS},
                 {true, OTHERS_MAY_LOOK, SHARED},
                 {false, 0, KUBELET},
                 {false, ROOT_ONLY, CHECKPOINTS}};
    for (size_t i = 0; i < cr_array_len(nodes); i++) {
        struct node node;
        make(&node, nodes[i].shared, nodes[i].checkpoints);
        hold(&node, is_agent);
        cr_autofree char *words =
            cr_asprintf("another agent runs on this node: process %%d (test_instance_l) of user %u "
                        "holds the lock of %s%s",
                        (unsigned)geteuid(), node.root, nodes[i].locked);
        expect_refused(&node, words);
        stop_holder(&node);
        expect_alone(&node);
        take_away(&node);
    }
}

static void an_older_agent_is_one(void **state)
{
    (void)state;
    struct node node;
    make(&node, true, ROOT_ONLY);
    hold(&node, has_shared);
    expect_refused(&node, "another agent runs on this node: process %d");
    stop_holder(&node);
    hold(&node, is_agent);
    assert_false(has_shared(node.root));
    take_away(&node);
}

static void what_is_not_root_s_is_none(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    struct node node;
    make(&node, true, ROOT_ONLY);
    hold(&node, is_nobody_and_has_shared);
    expect_alone(&node);
    /* And keeps two agents no more from each other than it keeps one from starting. */
    CR_CLEANUP(cr_node_instance_lock) struct cr_node_instance_lock lock;
    struct cr_error err = {0};
    assert_true(cr_node_instance_lock_take(node.root, "/proc", &lock, &err));
    struct node ours = node;
    ours.holder = getpid();
    expect_refused(&ours, "another agent runs on this node: process %d");
    take_away(&node);
}

static void without_a_folder_of_root_s_it_is_named(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    static const mode_t modes[] = {0, OTHERS_MAY_LOOK};
    for (size_t i = 0; i < cr_array_len(modes); i++) {
        struct node node;
        make(&node, true, modes[i]);
        hold(&node, is_nobody_and_has_shared);
        expect_refused(&node, "process %d (test_instance_l) of user 65534 holds the lock of ");
        stop_holder(&node);
        expect_alone(&node);
        take_away(&node);
    }
}

/* Then nothing tells that it is no agent. */
static void a_holder_that_is_not_seen_may_be_one(void **state)
{
    (void)state;
    struct node node;
    struct cr_error err = {0};
    CR_CLEANUP(cr_node_instance_lock) struct cr_node_instance_lock lock;
    make(&node, true, ROOT_ONLY);
    hold(&node, has_shared);
    assert_false(cr_node_instance_lock_take(node.root, node.root, &lock, &err));
    cr_autofree char *want = cr_asprintf("another agent runs on this node: it holds the lock of %s" SHARED, node.root);
    assert_string_equal(err.text, want);
    take_away(&node);
}

static void folders_that_are_not_there_are_reported(void **state)
{
    (void)state;
    struct cr_error err = {0};
    CR_CLEANUP(cr_node_instance_lock) struct cr_node_instance_lock lock;
    assert_false(cr_node_instance_lock_take("/tmp/certroll-not-there", "/proc", &lock, &err));
    assert_int_equal(err.kind, CR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/tmp/certroll-not-there has neither /etc/kubernetes nor /var/lib/kubelet"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_has_it_and_the_kernel_takes_it_back),
        cmocka_unit_test(an_older_agent_is_one),
        cmocka_unit_test(what_is_not_root_s_is_none),
        cmocka_unit_test(without_a_folder_of_root_s_it_is_named),
        cmocka_unit_test(a_holder_that_is_not_seen_may_be_one),
        cmocka_unit_test(folders_that_are_not_there_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
