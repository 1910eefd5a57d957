/* Lines of the kernel's tables of sockets, as any kernel may write them: a row or none, never a text without an end;
 * who listens on a port has what was accepted there. */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strings.h"
#include "drain/sockets.h"

static void check_line(const char *table, const char *line)
{
    struct cr_socket_row row;
    bool understood = false;
    bool read = cr_socket_row_read(table, line, &row, &understood);
    require(!read || understood);
    require(memchr(row.where, '\0', sizeof row.where));
    if (!read)
        return;
    require(row.where[0] && (cr_streq(table, "unix") || strchr(row.where, ':')));
    cr_autofree char *listener = cr_asprintf("%s %s", table, row.where);
    require(cr_socket_is_of(table, &row, listener));
    require(!cr_socket_is_of("udp", &row, listener));
    char *port = strrchr(row.where, ':');
    if (cr_streq(table, "unix") || port != strchr(row.where, ':'))
        return;
    cr_autofree char *everywhere = cr_asprintf("%s 00000000%s", table, port);
    require(cr_socket_is_of(table, &row, everywhere));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cr_autofree char *text = cr_strndup((const char *)data, size);
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        check_line("tcp", line);
        check_line("tcp6", line);
        check_line("unix", line);
    }
    return 0;
}
