/* Ownership that the eye can see: a variable marked CR_CLEANUP(x) owns what it points to and gives it back when
 * it leaves its scope; cr_steal() is the one way to hand it on. Every owning type declares its cleanup function
 * beside its destructor with CR_DEFINE_CLEANUP. */
#ifndef CR_BASE_CLEANUP_H
#define CR_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

/* CR_CLEANUP(cr_json) struct cr_json *j = …;  calls cr_json_cleanup(&j) at the end of the scope. */
#define CR_CLEANUP(name) __attribute__((cleanup(name##_cleanup)))

/* Declares name##_cleanup(T **) that calls destroy(T *); destroy takes NULL. */
#define CR_DEFINE_CLEANUP(name, T, destroy)                                                                            \
    static inline void name##_cleanup(T **p)                                                                           \
    {                                                                                                                  \
        destroy(*p);                                                                                                   \
    }

/* For values embedded in a struct or on the stack: name##_cleanup(T *) calls dispose(T *). */
#define CR_DEFINE_DISPOSE(name, T, dispose)                                                                            \
    static inline void name##_cleanup(T *p)                                                                            \
    {                                                                                                                  \
        dispose(p);                                                                                                    \
    }

/* Takes the value out of an owning variable and leaves NULL behind. */
#define cr_steal(pp)                                                                                                   \
    ({                                                                                                                 \
        __typeof__(*(pp)) cr_stolen_ = *(pp);                                                                          \
        *(pp) = NULL;                                                                                                  \
        cr_stolen_;                                                                                                    \
    })

static inline void cr_free_cleanup(void *p)
{
    free(*(void **)p);
}

static inline void cr_fd_cleanup(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* cr_autofree char *s = …;  for plain heap memory without secrets. */
#define cr_autofree __attribute__((cleanup(cr_free_cleanup)))
#define cr_autofd   __attribute__((cleanup(cr_fd_cleanup)))

#endif
