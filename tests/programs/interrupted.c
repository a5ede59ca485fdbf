/* interrupted.c - a signal handler that uses the 64 bytes that the code uses which it interrupts. It prints what is to
 * be counted: "expect shared_words READS WRITES". Built by heapwise cc in test_counting.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

struct words {
    volatile long outside, other[2], inside;
};

static struct words *words;
static volatile long handled;

static void handle(int signal)
{
    words->inside = words->inside + 1;
    handled = handled + 1;
}

__attribute__((noinline)) static struct words *shared_words(void)
{
    return malloc(sizeof(struct words));
}

int main(void)
{
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    long rounds = 0;
    words = shared_words();
    words->inside = words->outside = 0;
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    for (; handled < 400 && rounds < 2000000000; rounds++)
        words->outside = words->outside + 1;
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    printf("expect shared_words %ld %ld\n", rounds + handled, rounds + handled + 2);
    free(words);
    return 0;
}
