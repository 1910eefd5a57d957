#include "start.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

/* It stands in every pod of the proxy: one arena for all threads, and what is free goes back at once. */
static void save_memory(void)
{
    enum { GIVE_BACK = 64 * 1024 };
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, GIVE_BACK);
    (void)mallopt(M_TRIM_THRESHOLD, GIVE_BACK);
}

/* The next file that is opened gets the lowest number that is free. Were that 2, the log would go into it: into an
 * eventfd, which older kernels take for an order to give up, or to a client of the pages. A folder takes no lines,
 * where not even /dev/null is there. */
static void hold_standard_files(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = open("/dev/null", O_RDWR);
        if (fd < 0)
            fd = open("/", O_RDONLY | O_DIRECTORY);
    }
    if (fd >= 0)
        close(fd);
}

void start_process(void)
{
    save_memory();
    hold_standard_files();
    /* The reader of the log may be gone: if a log line ended the hook, all connections would be cut. */
    (void)signal(SIGPIPE, SIG_IGN);
}
