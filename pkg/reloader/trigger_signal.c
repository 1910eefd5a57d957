#include "reloader/trigger_internal.h"
#include "sys/proc_find.h"
#include "sys/proc_signal.h"

/* Pid 1 comes from the program's own container, where the program was the first process; here pid 1 holds the pod's
 * namespace. */
static bool is_of_the_pod(const struct cr_proc *process, const char *path, struct cr_error *err)
{
    return process->pid != 1 ||
           cr_error_set(err, CR_ERR_INVALID,
                        "%s says pid 1, which is no program of the pod here: it was written in a process namespace of "
                        "its own. Set shareProcessNamespace: true in the pod's spec",
                        path);
}

static bool find(const struct cr_trigger_spec *spec, struct cr_proc *out, struct cr_error *err)
{
    if (spec->signal.process)
        return cr_proc_find(spec->signal.process, out, err);
    return cr_proc_find_by_file(spec->signal.pid_file, out, err) && is_of_the_pod(out, spec->signal.pid_file, err);
}

bool cr_trigger_signal(const struct cr_trigger_job *job, struct cr_error *err)
{
    struct cr_proc process;
    return find(job->spec, &process, err) && cr_proc_signal(&process, job->spec->signal.number, err);
}
