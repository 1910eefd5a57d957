#include "drain/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/proc.h"

enum { TCP_LISTEN = 0x0a, UNIX_LISTENS = 0x10000, UNIX_CONNECTED = 3, LINE = 512 };

static const char *const tables[] = {"tcp", "tcp6", "unix"};

/* --- rows --- */

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20013 1 …" */
static bool read_tcp(const char *line, struct cr_socket_row *out, bool *understood)
{
    unsigned state = 0;
    *understood = strstr(line, "local_address") != NULL;
    if (*understood)
        return false;
    *understood = sscanf(line, " %*u: %45[0-9A-F:] %*45[0-9A-F:] %2x %*s %*s %*s %*u %*u %" SCNu64, out->where, &state,
                         &out->inode) == 3 &&
                  strchr(out->where, ':');
    out->listens = state == TCP_LISTEN;
    return *understood;
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 20345 /run/web.sock"; some have no path. */
static bool read_unix(const char *line, struct cr_socket_row *out, bool *understood)
{
    unsigned flags = 0;
    unsigned state = 0;
    *understood = strstr(line, "RefCount") != NULL;
    if (*understood)
        return false;
    int n =
        sscanf(line, "%*[0-9a-fA-F]: %*x %*x %x %*x %x %" SCNu64 " %159[^\n]", &flags, &state, &out->inode, out->where);
    *understood = n >= 3;
    out->listens = flags & UNIX_LISTENS;
    return n == 4 && (out->listens || state == UNIX_CONNECTED);
}

bool cr_socket_row_read(const char *name, const char *line, struct cr_socket_row *out, bool *understood)
{
    *out = (struct cr_socket_row){0};
    return cr_streq(name, "unix") ? read_unix(line, out, understood) : read_tcp(line, out, understood);
}

static bool is_any_address(const char *where, size_t len)
{
    return strspn(where, "0") == len;
}

bool cr_socket_is_of(const char *name, const struct cr_socket_row *row, const char *listener)
{
    size_t len = strlen(name);
    if (strncmp(listener, name, len) != 0 || listener[len] != ' ')
        return false;
    const char *where = listener + len + 1;
    if (cr_streq(where, row->where))
        return true;
    const char *port = strchr(where, ':');
    return !cr_streq(name, "unix") && port && is_any_address(where, (size_t)(port - where)) &&
           cr_streq(port, strchr(row->where, ':'));
}

/* --- tables --- */

typedef void (*on_row)(const char *table, const struct cr_socket_row *row, void *arg);

static bool read_table(FILE *file, const char *table, on_row each, void *arg, struct cr_error *err)
{
    char line[LINE];
    while (fgets(line, sizeof line, file)) {
        struct cr_socket_row row;
        bool understood = false;
        if (cr_socket_row_read(table, line, &row, &understood))
            each(table, &row, arg);
        else if (!understood)
            return cr_error_set(err, CR_ERR_INVALID, "/proc/net/%s has a line that is not understood: %.80s", table,
                                line);
    }
    return !ferror(file) || cr_error_set(err, CR_ERR_TRANSIENT, "/proc/net/%s cannot be read to its end", table);
}

/* Without IPv6 there is no tcp6. */
static bool read_tables(pid_t pid, on_row each, void *arg, struct cr_error *err)
{
    for (size_t i = 0; i < cr_array_len(tables); i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, tables[i]);
        FILE *file = fopen(path, "re");
        if (!file && errno == ENOENT && cr_streq(tables[i], "tcp6"))
            continue;
        if (!file)
            return cr_error_set(err, CR_ERR_TRANSIENT, "%s: %s", path, strerror(errno));
        bool ok = read_table(file, tables[i], each, arg, err);
        fclose(file);
        if (!ok)
            return false;
    }
    return true;
}

/* --- where it listens --- */

struct listeners {
    uint64_t *inodes; /* of all its sockets; owned */
    size_t len;
    struct cr_strvec *out;
};

static void listeners_dispose(struct listeners *l)
{
    free(l->inodes);
}
CR_DEFINE_DISPOSE(listeners, struct listeners, listeners_dispose)

static bool not_seen(const char *path, int error, struct cr_error *err)
{
    if (error != EACCES && error != EPERM)
        return cr_error_set(err, CR_ERR_TRANSIENT, "%s: %s", path, strerror(error));
    return cr_error_set(err, CR_ERR_FORBIDDEN,
                        "%s: %s: whoever looks into it must be the same user, and have no capability less "
                        "(securityContext), or the capability SYS_PTRACE",
                        path, strerror(error));
}

static bool add_socket(const char *folder, const char *entry, struct listeners *to, struct cr_error *err)
{
    char link[64] = "";
    uint64_t inode = 0;
    cr_autofree char *path = cr_asprintf("%s/%s", folder, entry);
    ssize_t len = readlink(path, link, sizeof link - 1);
    if (len < 0)
        return errno == ENOENT || not_seen(path, errno, err); /* it has just been closed */
    if (sscanf(link, "socket:[%" SCNu64 "]", &inode) != 1)
        return true;
    to->inodes = cr_reallocarray(to->inodes, to->len + 1, sizeof *to->inodes);
    to->inodes[to->len++] = inode;
    return true;
}

static bool find_sockets(pid_t pid, struct listeners *to, struct cr_error *err)
{
    char path[64];
    bool ok = true;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return not_seen(path, errno, err);
    for (const struct dirent *entry = NULL; ok && (entry = readdir(folder));)
        ok = entry->d_name[0] == '.' || add_socket(path, entry->d_name, to, err);
    closedir(folder);
    return ok;
}

static void add_listener(const char *table, const struct cr_socket_row *row, void *arg)
{
    struct listeners *to = arg;
    for (size_t i = 0; row->listens && i < to->len; i++) {
        if (to->inodes[i] != row->inode)
            continue;
        cr_autofree char *text = cr_asprintf("%s %s", table, row->where);
        cr_strvec_add_unique(to->out, text);
    }
}

bool cr_sockets_listeners(pid_t pid, struct cr_strvec *out, struct cr_error *err)
{
    CR_CLEANUP(cr_strvec) struct cr_strvec found = {0};
    CR_CLEANUP(listeners) struct listeners listeners = {.out = &found};
    if (!find_sockets(pid, &listeners, err) || !read_tables(pid, add_listener, &listeners, err))
        return false;
    for (size_t i = 0; i < found.len; i++)
        cr_strvec_add(out, found.items[i]);
    return found.len || cr_error_set(err, CR_ERR_NOT_FOUND, "process %d listens nowhere", (int)pid);
}

/* --- who is connected --- */

struct counting {
    const struct cr_strvec *listeners;
    uint64_t open;
};

static void count_row(const char *table, const struct cr_socket_row *row, void *arg)
{
    struct counting *counting = arg;
    for (size_t i = 0; !row->listens && row->inode && i < counting->listeners->len; i++)
        if (cr_socket_is_of(table, row, counting->listeners->items[i])) {
            counting->open++;
            return;
        }
}

bool cr_sockets_count(pid_t pid, const struct cr_strvec *listeners, uint64_t *open, struct cr_error *err)
{
    struct counting counting = {.listeners = listeners};
    if (!read_tables(pid, count_row, &counting, err))
        return false;
    *open = counting.open;
    return true;
}
