/* A node of tests as a folder: files of the host below "host", processes below "proc". Ends the test on failure. */
#ifndef TEST_SUPPORT_NODETREE_H
#define TEST_SUPPORT_NODETREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "codec/base64.h"

struct node_tree {
    char folder[64];
    char *root; /* of the host */
    char *proc;
};

static inline void tree_init(struct node_tree *tree)
{
    snprintf(tree->folder, sizeof tree->folder, "/tmp/certroll-node-XXXXXX");
    assert_non_null(mkdtemp(tree->folder));
    tree->root = cr_asprintf("%s/host", tree->folder);
    tree->proc = cr_asprintf("%s/proc", tree->folder);
    assert_int_equal(mkdir(tree->root, 0755), 0);
    assert_int_equal(mkdir(tree->proc, 0755), 0);
}

static inline void tree_dispose(struct node_tree *tree)
{
    cr_autofree char *command = cr_asprintf("rm -rf '%s'", tree->folder);
    if (tree->root)
        (void)!system(command);
    free(tree->root);
    free(tree->proc);
}
CR_DEFINE_DISPOSE(tree, struct node_tree, tree_dispose)

/* The file's real path, with the folders that lead to it made. Owned. */
static inline char *tree_make_way(const char *base, const char *path)
{
    char *real = cr_asprintf("%s%s", base, path);
    for (char *p = strchr(real + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(real, 0755);
        *p = '/';
    }
    return real;
}

static inline void tree_write_bytes(const char *base, const char *path, const char *data, size_t len)
{
    cr_autofree char *real = tree_make_way(base, path);
    FILE *file = fopen(real, "we");
    if (!file)
        fail_msg("%s", real);
    assert_int_equal(fwrite(data, 1, len, file), len);
    fclose(file);
}

static inline void tree_write(const struct node_tree *tree, const char *host, const char *text)
{
    tree_write_bytes(tree->root, host, text, strlen(text));
}

static inline void tree_link(const struct node_tree *tree, const char *host, const char *target)
{
    cr_autofree char *real = tree_make_way(tree->root, host);
    (void)unlink(real);
    assert_int_equal(symlink(target, real), 0);
}

static inline void tree_remove(const struct node_tree *tree, const char *host)
{
    cr_autofree char *real = cr_asprintf("%s%s", tree->root, host);
    assert_int_equal(unlink(real), 0);
}

/* A process with these words, by spaces; started in ticks. net: what its link says, NULL: as ours. */
static inline void tree_process(const struct node_tree *tree, int pid, const char *words, int started, const char *net)
{
    char own[256] = "";
    cr_autofree char *folder = cr_asprintf("/%d", pid);
    cr_autofree char *stat = cr_asprintf("%s/stat", folder);
    cr_autofree char *cmdline = cr_asprintf("%s/cmdline", folder);
    cr_autofree char *link = cr_asprintf("%s/ns/net", folder);
    cr_autofree char *cwd = cr_asprintf("%s%s/cwd", tree->proc, folder);
    cr_autofree char *line = cr_strdup(words);
    size_t len = strlen(line) + 1;
    for (char *p = line; *p; p++)
        *p = (char)(*p == ' ' ? '\0' : *p);
    const char *slash = strrchr(line, '/');
    cr_autofree char *text = cr_asprintf("%d (%.15s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", pid,
                                         slash ? slash + 1 : line, started);
    tree_write_bytes(tree->proc, stat, text, strlen(text));
    tree_write_bytes(tree->proc, cmdline, line, len);
    cr_autofree char *real = tree_make_way(tree->proc, link);
    assert_true(readlink("/proc/self/ns/net", own, sizeof own - 1) > 0);
    (void)unlink(real);
    (void)unlink(cwd);
    assert_int_equal(symlink(net ? net : own, real), 0);
    assert_int_equal(symlink("/", cwd), 0);
}

static inline char *tree_base64(const char *text)
{
    return cr_base64_encode(text, strlen(text));
}

/* A kubeconfig whose cluster and user have these fields. Owned. */
static inline char *tree_kubeconfig(const char *cluster, const char *user)
{
    return cr_asprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                       "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                       "clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443', %s}}]\n"
                       "users: [{name: u, user: {%s}}]\n",
                       cluster, user);
}

#endif
