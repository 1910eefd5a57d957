/* Who is connected to a program's listening sockets, as the kernel's tables of a network namespace show it:
 * proc_net(5), /proc/<pid>/net/tcp, tcp6, unix. Accepted connections are recognised by the address that they were
 * accepted at. So those that the program has opened itself, to its upstreams, are none of them, and no right is needed
 * to look into its workers, which have changed their user. */
#ifndef CR_DRAIN_SOCKETS_H
#define CR_DRAIN_SOCKETS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strvec.h"

/* A table's row. */
struct cr_socket_row {
    char where[160]; /* "0100007F:1F90" as the kernel writes it, a path; as keys only */
    bool listens;
    uint64_t inode; /* 0: not accepted yet, or closed by the program */
};

/* name: "tcp", "tcp6", "unix". False: a line without what matters here (the title, a Unix socket that is not connected
 * or has no path); *understood: false when it is no line of such a table at all. Pure. */
bool cr_socket_row_read(const char *name, const char *line, struct cr_socket_row *out, bool *understood);
/* Whether what was accepted at `row` came in by a listener as listed: same table, same address or all addresses, same
 * port. Pure. */
bool cr_socket_is_of(const char *name, const struct cr_socket_row *row, const char *listener);

/* Appends the addresses at which a process listens, one text each ("tcp 0100007F:1F90", "unix /run/web.sock"). Errors:
 * Forbidden, with what is missing; NotFound: it listens nowhere; Transient. */
bool cr_sockets_listeners(pid_t pid, struct cr_strvec *out, struct cr_error *err) CR_MUST_USE;
/* How many connections that were accepted by these listeners are open, in the network of the process. Those that are
 * half closed are open. Errors: Transient; Invalid: a table that is not understood. */
bool cr_sockets_count(pid_t pid, const struct cr_strvec *listeners, uint64_t *open, struct cr_error *err) CR_MUST_USE;

#endif
