/* Threads that take no signals: those are for the thread of the main loop, or for the threads of a library's user. */
#ifndef CR_BASE_THREAD_H
#define CR_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create without attributes: it returns the error of pthread_create (0: started). All signals are blocked in
 * the thread. The caller's mask is what it was. Any thread. */
int cr_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
