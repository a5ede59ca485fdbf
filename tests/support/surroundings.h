/* surroundings.h - what a test program needs of the process that it is: it must not matter who started it. */
#ifndef TESTS_SUPPORT_SURROUNDINGS_H
#define TESTS_SUPPORT_SURROUNDINGS_H

/* Signals do what they do by default and none is blocked (nohup and some runners ignore some); stdin, stdout and stderr
 * are open; the usual umask and limits; no locale and no variable that Heapwise or an allocator reads. Called by
 * main before any test. */
void set_surroundings(void);

#endif
