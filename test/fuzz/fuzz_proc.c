/* /proc/<pid>/stat with any name in it, of another /proc: a process with a name of at most 15 characters, or none. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/proc.h"

enum { PID = 7 };

static char folder[64], file[80], own[72];

static void remove_folder(void)
{
    (void)unlink(file);
    (void)rmdir(own);
    (void)rmdir(folder);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/certroll-fuzz-proc-XXXXXX");
    require(mkdtemp(folder));
    snprintf(own, sizeof own, "%s/%d", folder, PID);
    snprintf(file, sizeof file, "%s/stat", own);
    require(mkdir(own, 0700) == 0);
    atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!folder[0])
        make_folder();
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
    struct cr_proc process;
    if (!cr_proc_read_in(folder, PID, &process))
        return 0;
    require(process.pid == PID && memchr(process.name, '\0', sizeof process.name));
    (void)cr_proc_started_wall_ms(&process);
    return 0;
}
