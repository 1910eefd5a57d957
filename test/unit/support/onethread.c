/* ThreadSanitizer is run for the tests that have threads (TESTS_WITH_THREADS in CMakeLists.txt). The other ones are
 * linked so that pthread_create is this function: a test that starts a thread and is not in the list aborts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    (void)thread;
    (void)attributes;
    (void)run;
    (void)arg;
    fputs("a thread is started: name this test in TESTS_WITH_THREADS of test/unit/CMakeLists.txt\n", stderr);
    abort();
}
