/* insidemalloc.h - sizes at which insidemalloc.c does something that is known. */
#ifndef TESTS_PROGRAMS_INSIDEMALLOC_H
#define TESTS_PROGRAMS_INSIDEMALLOC_H

enum {
    SIZE_CALLS = 70001,     /* one mmap, two madvise, one mprotect, one mremap, one munmap; one munmap that fails */
    SIZE_MUTEX = 70002,     /* known_mutex, with known_spin inside and known_rwlock read twice */
    SIZE_RECURSIVE = 70003, /* known_recursive three times, nested */
    SIZE_KEEP = 70004,      /* known_mutex until somebody waits for it */
    SIZE_WAIT = 70005,      /* known_mutex, once it is kept by SIZE_KEEP; then trylock of one's own known_mutex */
    SIZE_WAKE = 70006,      /* one futex wake by libc's syscall, one futex wait by an instruction: it ends at once */
    SIZE_SIGNAL = 70007,    /* SIGUSR1, then one madvise */
    SIZE_THREAD = 70008,    /* a thread is made and joined (clone), which calls the allocator; then one madvise */
    SIZE_MASK = 70009,      /* all signals are blocked, one madvise, and they are as before */
    SIZE_CHECKED = 70010,   /* known_checked twice: the second is refused as a deadlock */
    SIZE_FORK = 70011,      /* a child, which only ends; then one madvise */
    SIZE_FAULTS = 70012,    /* eight pages are touched for the first time */
    SIZE_HOLD = 70014,      /* likewise, and for a millisecond more */
    SIZE_HELD = 70015,      /* known_mutex for a thousand turns of a loop; at the end it prints how long these took */
    SIZE_TIMED = 70013,     /* pthread_mutex_timedlock of known_mutex, which it has already: times out */
};

#endif
