/* visited.c - a program that notices if anybody disturbs it: one thread in each system call that waits, threads that
 * allocate all the time, one in a signal handler. visited UNTIL [BUSY]: it says "ready"; when there is a file UNTIL it
 * prints what it has noticed, and exits with 1 if that was anything. */
#include "program.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int pipes[2], sockets[2], waiting;
static volatile int end;
static char noticed[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;

static void notice(const char *what, long result)
{
    pthread_mutex_lock(&lock);
    if (!end)
        snprintf(noticed + strlen(noticed), sizeof noticed - strlen(noticed), "%s returned %ld, errno %d\n", what,
                 result, result < 0 ? errno : 0);
    pthread_mutex_unlock(&lock);
}

#define WAITS(name, call)                                                                                              \
    static void *name(void *unused)                                                                                    \
    {                                                                                                                  \
        __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);                                                             \
        notice(#name, (long)(call));                                                                                   \
        return NULL;                                                                                                   \
    }
static const struct timespec hour = {.tv_sec = 3600};
static int event_queue(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    const int queue = epoll_create1(EPOLL_CLOEXEC);
    MUST(queue >= 0 && epoll_ctl(queue, EPOLL_CTL_ADD, pipes[0], &event) == 0);
    return queue;
}
static char byte;
static struct epoll_event event;
static uint32_t word;
static sem_t semaphore;
WAITS(in_nanosleep, nanosleep(&hour, NULL))
WAITS(in_clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL))
WAITS(in_read, read(pipes[0], &byte, 1))
WAITS(in_recv, recv(sockets[0], &byte, 1, 0))
WAITS(in_futex, syscall(SYS_futex, &word, 128, 0, NULL, NULL, 0))
WAITS(in_futex_with_timeout, syscall(SYS_futex, &word, 128, 0, &hour, NULL, 0))
WAITS(in_semaphore, sem_wait(&semaphore))
WAITS(in_mutex, pthread_mutex_lock(&held))
WAITS(in_epoll, epoll_wait(event_queue(), &event, 1, -1))
WAITS(in_epoll_with_timeout, epoll_wait(event_queue(), &event, 1, 3600000))
WAITS(in_epoll_pwait, epoll_pwait(event_queue(), &event, 1, -1, &(sigset_t){0}))
WAITS(in_poll, poll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, 3600000))
WAITS(in_ppoll, ppoll(&(struct pollfd){.fd = pipes[0], .events = POLLIN}, 1, &hour, &(sigset_t){0}))
WAITS(in_select, select(0, NULL, NULL, NULL, &(struct timeval){.tv_sec = 3600}))
WAITS(in_pause, pause())
WAITS(in_sigtimedwait, sigtimedwait(&(sigset_t){{1ul << (SIGUSR2 - 1)}}, NULL, &hour))
WAITS(in_wait, waitpid(-1, NULL, 0)) /* for a child that stays */
WAITS(in_semop, semop(semget(IPC_PRIVATE, 1, 0600), &(struct sembuf){.sem_op = -1}, 1))

static int with_timeout(int type)
{
    const int file = socket(AF_INET, type, 0);
    MUST(file >= 0 && setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 3600}, 16) == 0);
    if (type == SOCK_STREAM)
        MUST(listen(file, 1) == 0);
    return file;
}
WAITS(in_recv_with_timeout, recv(with_timeout(SOCK_DGRAM), &byte, 1, 0))
WAITS(in_read_with_timeout, read(with_timeout(SOCK_DGRAM), &byte, 1))
WAITS(in_accept_with_timeout, accept(with_timeout(SOCK_STREAM), NULL, NULL))
WAITS(in_wait_for_all, waitpid(-1, NULL, __WALL))

static void *in_vfork(void *unused)
{
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    if (vfork() == 0) {
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            syscall(SYS_pause);
    }
    return NULL;
}

static void on_signal(int number)
{
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    while (!end)
        nanosleep(&hour, NULL);
}

static void *in_handler(void *unused)
{
    raise(SIGUSR1);
    return NULL;
}

static volatile uint64_t rounds[4];

/* Values in all kinds of registers must survive. */
static void *allocating(void *at)
{
    volatile uint64_t *count = at;
    double sum = 0;
    uint64_t steps = 0;
    for (; !end; steps++) {
        void *block = malloc(16 + steps % 512);
        KEEP(block);
        sum += 0.5;
        free(block);
        *count = steps;
        if (steps % 1024 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (sum != (double)steps * 0.5)
        snprintf(noticed, sizeof noticed, "sum is %f after %lu steps\n", sum, (unsigned long)steps);
    return NULL;
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

int main(int argc, char **argv)
{
    static void *(*const kinds[])(void *) = {in_nanosleep,
                                             in_clock_nanosleep,
                                             in_read,
                                             in_recv,
                                             in_futex,
                                             in_futex_with_timeout,
                                             in_semaphore,
                                             in_mutex,
                                             in_epoll,
                                             in_epoll_with_timeout,
                                             in_epoll_pwait,
                                             in_poll,
                                             in_ppoll,
                                             in_select,
                                             in_pause,
                                             in_sigtimedwait,
                                             in_wait,
                                             in_semop,
                                             in_handler,
                                             in_recv_with_timeout,
                                             in_wait_for_all,
                                             in_read_with_timeout,
                                             in_accept_with_timeout,
                                             in_vfork};
    const size_t count = sizeof kinds / sizeof *kinds, busy = argc > 2 ? (size_t)atoi(argv[2]) : 2;
    pthread_t thread;
    sigset_t set = {{1ul << (SIGUSR2 - 1)}};
    MUST(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR1, on_signal);
    alarm(300); /* a test that fails does not end it */
    const pid_t child = fork();
    if (!child) {
        alarm(300);
        pause();
        _exit(0);
    }
    pthread_mutex_lock(&held);
    for (size_t i = 0; i < count; i++)
        MUST(pthread_create(&thread, NULL, kinds[i], NULL) == 0);
    for (size_t i = 0; i < busy; i++)
        MUST(pthread_create(&thread, NULL, allocating, (void *)&rounds[i % 4]) == 0);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < (int)count)
        usleep(1000);
    const int descriptors = entries("/proc/self/fd"), tasks = entries("/proc/self/task");
    say("ready\n");
    while (access(argv[1], F_OK) != 0)
        usleep(10000);
    usleep(20000);
    if (entries("/proc/self/fd") != descriptors || entries("/proc/self/task") != tasks)
        snprintf(noticed + strlen(noticed), sizeof noticed - strlen(noticed), "descriptors or threads are more\n");
    pthread_mutex_lock(&lock);
    end = 1;
    kill(child, SIGKILL);
    printf("%s", noticed);
    fflush(stdout);
    _exit(*noticed != 0);
}
