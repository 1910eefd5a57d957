/*
 * Holds namespaces open: the first process of a pod's sandbox, and of each machine of the local cluster.
 *
 * As process 1 of a PID namespace it inherits every orphan there, so it reaps; it ends on SIGTERM and SIGINT, which
 * process 1 would otherwise not even see. Its arguments are only there to be read in `ps`.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    sigset_t signals;
    int received;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
        return 1;
    do {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (sigwait(&signals, &received) != 0)
            return 1;
    } while (received == SIGCHLD);
    return 0;
}
