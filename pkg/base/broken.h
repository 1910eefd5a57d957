/* When memory is not what it was written as. Any thread. */
#ifndef CR_BASE_BROKEN_H
#define CR_BASE_BROKEN_H

/* Logs what cannot be read, and ends the program: nothing that is in memory alone is lost by a restart. */
_Noreturn void cr_broken_memory(const char *what);

#endif
