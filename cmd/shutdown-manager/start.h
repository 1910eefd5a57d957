/* What a process needs that is started in containers of others, before it does anything. */
#ifndef CERTROLL_SHUTDOWN_MANAGER_START_H
#define CERTROLL_SHUTDOWN_MANAGER_START_H

/* Little memory; no end by SIGPIPE; standard files that are there. Before anything is logged or opened. */
void start_process(void);

#endif
