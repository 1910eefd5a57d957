#include "drain/drain_memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"

static bool read_process(const char *text, struct cr_proc *out)
{
    int pid = 0;
    *out = (struct cr_proc){0};
    bool ok = sscanf(text, "process %9d %19" SCNu64, &pid, &out->started) == 2;
    out->pid = pid;
    return ok;
}

void cr_drain_memory_add_process(struct cr_strvec *memory, const struct cr_proc *process)
{
    if (!memory)
        return;
    cr_autofree char *text = cr_asprintf("process %d %" PRIu64, (int)process->pid, process->started);
    cr_strvec_add_unique(memory, text);
}

bool cr_drain_memory_find_alive(const struct cr_strvec *memory, struct cr_proc *out)
{
    for (size_t i = 0; memory && i < memory->len; i++)
        if (read_process(memory->items[i], out) && cr_proc_is_there(out))
            return true;
    return false;
}

bool cr_drain_memory_has_ended(const struct cr_strvec *memory)
{
    struct cr_proc process;
    bool any = false;
    for (size_t i = 0; memory && i < memory->len; i++)
        any |= read_process(memory->items[i], &process);
    return any && !cr_drain_memory_find_alive(memory, &process);
}
