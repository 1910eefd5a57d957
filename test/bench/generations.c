#include "generations.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "pki/issue.h"

enum { PATH = 4096 };

static const int64_t DAY_MS = INT64_C(24) * 3600 * 1000;
static const char *const names[] = {"tls.crt", "tls.key", "ca.crt"};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void need(bool ok, const char *what)
{
    if (!ok)
        die(what, strerror(errno));
}

static struct cr_private_key *new_key(void)
{
    struct cr_error err = {0};
    struct cr_private_key *key = cr_private_key_new(&(struct cr_key_spec){.algorithm = CR_KEY_ECDSA}, &err);
    if (!key)
        die("a key", err.text);
    return key;
}

static struct generation new_generation(void)
{
    struct cr_error err = {0};
    int64_t now = cr_clock_wall_ms();
    CR_CLEANUP(cr_private_key) struct cr_private_key *ca_key = new_key();
    CR_CLEANUP(cr_private_key) struct cr_private_key *key = new_key();
    const struct cr_authority_spec spec = {"storm", DAY_MS, CR_PATH_LENGTH_NONE};
    CR_CLEANUP(cr_authority) struct cr_authority *ca = cr_authority_new(&spec, ca_key, now, &err);
    char *dns[] = {(char[]){"localhost"}};
    const struct cr_strvec dns_names = {.items = dns, .len = 1};
    const struct cr_leaf_spec leaf = {.dns_names = &dns_names, .usages = CR_LEAF_SERVER, .duration_ms = DAY_MS};
    CR_CLEANUP(cr_issued) struct cr_issued issued = {0};
    CR_CLEANUP(cr_buf) struct cr_buf key_pem = {.secret = true};
    if (!ca || !cr_issue_leaf(ca, &leaf, key, now, &issued, &err) || !cr_private_key_write(key, &key_pem, &err))
        die("a generation", err.text);
    const char *root = cr_authority_certificate(ca);
    return (struct generation){cr_asprintf("%s%s", issued.pem, root), cr_buf_steal(&key_pem), cr_strdup(root)};
}

struct generation *generations_new(size_t count)
{
    struct generation *generations = cr_calloc(count, sizeof *generations);
    for (size_t i = 0; i < count; i++)
        generations[i] = new_generation();
    return generations;
}

void generations_free(struct generation *generations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(generations[i].chain);
        free(generations[i].key);
        free(generations[i].ca);
    }
    free(generations);
}

static void write_file(const char *path, const char *text)
{
    cr_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
}

static void fill(const struct volume *volume, const char *name, const struct generation *generation)
{
    const char *const texts[] = {generation->chain, generation->key, generation->ca};
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/%s", volume->folder, name);
    need(mkdir(path, 0755) == 0, path);
    for (size_t i = 0; i < 3; i++) {
        char target[PATH];
        (void)snprintf(path, sizeof path, "%s/%s/%s", volume->folder, name, names[i]);
        write_file(path, texts[i]);
        (void)snprintf(path, sizeof path, "%s/%s", volume->folder, names[i]);
        (void)snprintf(target, sizeof target, "..data/%s", names[i]);
        need(symlink(target, path) == 0 || errno == EEXIST, path);
    }
}

static void point_at(const struct volume *volume, const char *name)
{
    char fresh[PATH];
    char link[PATH];
    (void)snprintf(fresh, sizeof fresh, "%s/..data_tmp", volume->folder);
    (void)snprintf(link, sizeof link, "%s/..data", volume->folder);
    need(symlink(name, fresh) == 0 && rename(fresh, link) == 0, link);
}

static void drop(const struct volume *volume, const char *name)
{
    char path[PATH];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/%s", volume->folder, name, names[i]);
        need(unlink(path) == 0, path);
    }
    (void)snprintf(path, sizeof path, "%s/%s", volume->folder, name);
    need(rmdir(path) == 0, path);
}

void volume_swap(struct volume *volume, const struct generation *generation, bool keep)
{
    char name[64];
    char now[64] = "";
    char link[PATH];
    (void)snprintf(link, sizeof link, "%s/..data", volume->folder);
    if (readlink(link, now, sizeof now - 1) < 0)
        now[0] = '\0';
    (void)snprintf(name, sizeof name, "..2026_11_22_%09d", volume->number++);
    fill(volume, name, generation);
    point_at(volume, name);
    if (*volume->before)
        drop(volume, volume->before);
    volume->before[0] = '\0';
    if (*now && keep)
        memcpy(volume->before, now, sizeof now);
    else if (*now)
        drop(volume, now);
}
