/* processes.c - programs that do to processes and threads what programs do; test_processes.c says what must come of it.
 * The first argument is the case. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;
static const char *self;
static char **arguments;

static void wait_for(pid_t pid)
{
    int status;
    MUST(pid > 0);
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* COUNT blocks of 100 bytes, every other one freed. */
static inline __attribute__((always_inline)) void allocate_some(int count)
{
    for (int i = 0; i < count; i++) {
        void *block = malloc(100);
        KEEP(block);
        if (i % 2)
            free(block);
    }
    HERE();
}

/* ---- threads ---- */

NOINLINE static void thread_work(void)
{
    allocate_some(10);
}

static pthread_barrier_t barrier;

static void *thread_and_wait(void *argument)
{
    thread_work();
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *thread_only(void *argument)
{
    thread_work();
    return NULL;
}

static pthread_attr_t *small_stack(void)
{
    static pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    return &attributes;
}

static void case_threads(void)
{
    enum { THREADS = 2000 };
    static pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], small_stack(), thread_and_wait, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void case_sequence(void)
{
    for (int i = 0; i < 10000; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, small_stack(), thread_only, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

static atomic_int finished;

static void *thread_detached(void *argument)
{
    thread_work();
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void case_detached(void)
{
    enum { THREADS = 200 };
    pthread_attr_t *attributes = small_stack();
    pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, attributes, thread_detached, NULL) == 0);
    }
    while (atomic_load(&finished) < THREADS)
        usleep(1000);
}

static void *thread_cancelled(void *argument)
{
    void *block = malloc(100);
    pthread_cleanup_push(free, block);
    thread_work();
    for (;;)
        pause();
    pthread_cleanup_pop(1);
    return NULL;
}

static void case_cancel(void)
{
    enum { THREADS = 200 };
    static pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], small_stack(), thread_cancelled, NULL) == 0);
    usleep(20000);
    for (int i = 0; i < THREADS; i++)
        pthread_cancel(threads[i]);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        MUST(result == PTHREAD_CANCELED);
    }
}

static pthread_key_t key;

NOINLINE static void key_destructor(void *value)
{
    free(value);
    allocate_some(10);
}

static void *thread_with_key(void *argument)
{
    pthread_setspecific(key, malloc(100));
    thread_work();
    return NULL;
}

/* Destructors of thread-specific data allocate and free while the thread goes. */
static void case_keys(void)
{
    pthread_key_create(&key, key_destructor);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, small_stack(), thread_with_key, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

static int clone_stack_size = 1 << 20;

NOINLINE static int clone_work(void *argument)
{
    allocate_some(100);
    return 0;
}

/* A process that shares memory, and even the thread-local storage; it runs while its parent waits. */
static void case_clone_vm(void)
{
    char *stack = mmap(NULL, (size_t)clone_stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    thread_work();
    wait_for(clone(clone_work, stack + clone_stack_size, CLONE_VM | SIGCHLD, NULL));
    thread_work();
}

/* A fork that no handler of pthread_atfork hears of. */
static void case_clone_fork(void)
{
    thread_work();
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        clone_work(NULL);
        _exit(0);
    }
    wait_for(pid);
    thread_work();
}

/* ---- fork ---- */

static void *inherited[10];

NOINLINE static void before_fork(void)
{
    for (int i = 0; i < 10; i++) {
        inherited[i] = malloc(1000);
        KEEP(inherited[i]);
    }
    HERE();
}

NOINLINE static void child_work(void)
{
    allocate_some(20);
}

NOINLINE static void grandchild_work(void)
{
    allocate_some(30);
}

NOINLINE static void after_fork(void)
{
    allocate_some(40);
}

static void case_fork(void)
{
    before_fork();
    pid_t child = fork();
    if (child == 0) {
        child_work();
        for (int i = 0; i < 5; i++)
            free(inherited[i]);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            grandchild_work();
            exit(0);
        }
        wait_for(grandchild);
        exit(0);
    }
    wait_for(child);
    after_fork();
}

static atomic_int stop;

static void *allocate_until_stopped(void *argument)
{
    while (!atomic_load(&stop)) {
        void *block = malloc(64);
        KEEP(block);
        free(block);
    }
    return NULL;
}

static void case_fork_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, allocate_until_stopped, NULL) == 0);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child_work();
            _exit(0);
        }
        wait_for(pid);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    after_fork();
}

static void case_vfork(void)
{
    static volatile int rounds;
    for (; rounds < 5; rounds = rounds + 1) {
        thread_work();
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        wait_for(pid);
        pid = vfork();
        if (pid == 0)
            _exit(0);
        wait_for(pid);
    }
    after_fork();
}

static void case_spawn(void)
{
    thread_work();
    char *const argv[] = {(char *)self, "child", NULL};
    pid_t pid;
    MUST(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
    wait_for(pid);
    MUST(posix_spawn(&pid, "/nowhere/at/all", NULL, NULL, argv, environ) != 0);
    after_fork();
}

static void case_child(void)
{
    child_work();
}

static void case_system(void)
{
    thread_work();
    int status = system("exit 3");
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    FILE *pipe = popen("echo output", "r");
    char line[100] = "";
    MUST(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "output\n") == 0);
    MUST(pclose(pipe) == 0);
    after_fork();
}

NOINLINE static void exec_work(void)
{
    allocate_some(10);
}

/* Replaces itself as often as the second argument says, then ends with 5. */
static void case_exec(void)
{
    exec_work();
    int left = atoi(arguments[2]);
    if (left == 0)
        exit(5);
    char number[20];
    snprintf(number, sizeof number, "%d", left - 1);
    char *const argv[] = {(char *)self, "exec", number, NULL};
    execv(self, argv);
    _exit(97);
}

/* An exec that fails leaves everything as it was. */
static void case_exec_fails(void)
{
    exec_work();
    char *const argv[] = {"nothing", NULL};
    MUST(execv("/nowhere/at/all", argv) == -1);
    MUST(execvp("no-such-command-at-all", argv) == -1);
    exec_work();
}

/* An exec with an empty environment. */
static void case_exec_bare(void)
{
    exec_work();
    char *const argv[] = {(char *)self, "child", NULL}, *const environment[] = {NULL};
    execve(self, argv, environment);
    _exit(97);
}

/* ---- descriptors, directories, users ---- */

/* 400 new contexts: the profile has to grow. */
NOINLINE static void new_contexts(int depth)
{
    void *block = malloc(100);
    KEEP(block);
    free(block);
    if (depth > 1)
        new_contexts(depth - 1);
    HERE();
}

static void many_new_contexts(void)
{
    new_contexts(250);
    for (int i = 0; i < 100; i++)
        thread_work();
}

static void case_daemon(void)
{
    thread_work();
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        MUST(chdir("/") == 0);
        closefrom(0);
        many_new_contexts();
        exit(0);
    }
    wait_for(pid);
}

/* All descriptors are closed and their numbers used again: what the program writes must stay its own. */
static void case_close_all(void)
{
    thread_work();
    const char *directory = arguments[2];
    MUST(close_range(3, ~0u, 0) == 0);
    char path[4096];
    for (int i = 3; i < 64; i++) {
        snprintf(path, sizeof path, "%s/own.%d", directory, i);
        int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        MUST(file == i);
        MUST(write(file, "mine", 4) == 4);
    }
    many_new_contexts();
    for (int i = 3; i < 64; i++) {
        struct stat status;
        char text[10] = "";
        MUST(fstat(i, &status) == 0 && status.st_size == 4);
        MUST(pread(i, text, 9, 0) == 4 && strcmp(text, "mine") == 0);
    }
}

/* An empty message to record, as anybody can send one: its name is in /proc/net/unix. */
static void disturb_record(void)
{
    const char *options = getenv("HEAPWISE_OPTIONS"), *number = options ? strstr(options, "launcher=") : NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!number)
        return;
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "heapwise-%.16s",
                          number + sizeof "launcher=" - 1);
    int file = socket(AF_UNIX, SOCK_DGRAM, 0);
    MUST(sendto(file, "", 0, 0, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0);
    MUST(close(file) == 0);
}

static void case_chroot(void)
{
    thread_work();
    disturb_record();
    MUST(chroot(arguments[2]) == 0 && chdir("/") == 0);
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    many_new_contexts();
    pid_t pid = fork();
    if (pid == 0) {
        child_work();
        _exit(0);
    }
    wait_for(pid);
}

/* Namespaces of its own for processes and the network, then an empty root: two generations. */
static void case_namespaces(void)
{
    thread_work();
    if (unshare(CLONE_NEWPID | CLONE_NEWNET) != 0)
        _exit(77);
    pid_t pid = fork();
    if (pid == 0) {
        MUST(getpid() == 1);
        child_work();
        MUST(chroot(arguments[2]) == 0 && chdir("/") == 0);
        MUST(close_range(3, ~0u, 0) == 0);
        pid_t inner = fork();
        if (inner == 0) {
            MUST(getpid() == 2);
            many_new_contexts();
            grandchild_work();
            _exit(0);
        }
        wait_for(inner);
        _exit(0);
    }
    wait_for(pid);
}

/* A filter that permits everything: the runtime does not know that. */
static void give_up_calls(void)
{
    struct sock_filter permit = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    struct sock_fprog program = {.len = 1, .filter = &permit};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void leave_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        _exit(77);
}

/* All descriptors from 3 on are closed by a system call, and their numbers are files of the program from then on. */
static void case_raw_close(void)
{
    thread_work();
    leave_network();
    MUST(syscall(SYS_close_range, 3, ~0u, 0) == 0);
    int null = open("/dev/null", O_RDWR), last = null;
    MUST(null == 3);
    for (int fd; (fd = fcntl(null, F_DUPFD, last + 1)) >= 0 && fd < 2000; last = fd)
        if (fd % 64 == 0)
            grandchild_work(); /* the profile needs its descriptor now and then, too */
    for (int fd = 4; fd <= last; fd++)
        if (fcntl(fd, F_GETFD) == 0) /* what the runtime has opened meanwhile says that it is not open, too */
            MUST(close(fd) == 0);
    child_work();
}

static int count_sockets(void)
{
    struct stat status;
    int count = 0;
    for (int fd = 3; fd < 2000; fd++)
        count += fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
    return count;
}

/* No way out of the sandbox is left open. */
static void case_sockets(void)
{
    int before = count_sockets();
    thread_work();
    leave_network();
    give_up_calls();
    MUST(count_sockets() == before);
    child_work();
}

/* Wrong addresses: the kernel says so. */
static void case_wrong_addresses(void)
{
    void *volatile wrong[] = {(void *)8, (void *)9, (void *)~15ul};
    thread_work();
    for (int i = 0; i < 3; i++) {
        MUST(syscall(SYS_clone3, wrong[i], 88) == -1 && errno == EFAULT);
        MUST(setrlimit(RLIMIT_AS, wrong[i]) == -1 && errno == EFAULT);
        MUST(prlimit(0, RLIMIT_AS, wrong[i], NULL) == -1 && errno == EFAULT);
        MUST(getrlimit(RLIMIT_AS, wrong[i]) == -1 && errno == EFAULT);
        MUST(syscall(SYS_setrlimit, RLIMIT_AS, wrong[i]) == -1 && errno == EFAULT);
        MUST(syscall(SYS_prlimit64, 0, RLIMIT_AS, wrong[i], NULL) == -1 && errno == EFAULT);
        MUST(execve(wrong[i], arguments, environ) == -1 && errno == EFAULT);
        MUST(execve("/bin/true", arguments, wrong[i]) == -1 && errno == EFAULT);
    }
    child_work();
}

static void case_seccomp(void)
{
    thread_work();
    give_up_calls();
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child_work();
            _exit(0);
        }
        wait_for(pid);
    }
}

/* The folder in which the profiles are is gone. */
static void case_no_folder(void)
{
    thread_work();
    MUST(rename(arguments[2], arguments[3]) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        child_work();
        _exit(0);
    }
    wait_for(pid);
    MUST(rename(arguments[3], arguments[2]) == 0);
}

/* The program in a file that has no name. */
static void case_memory_file(void)
{
    int from = open(self, O_RDONLY), to = memfd_create("me", MFD_CLOEXEC);
    struct stat status;
    off_t offset = 0;
    MUST(from >= 0 && to >= 0 && fstat(from, &status) == 0);
    MUST(sendfile(to, from, &offset, (size_t)status.st_size) == status.st_size);
    char *const argv[] = {(char *)self, "child", NULL};
    fexecve(to, argv, environ);
    _exit(97);
}

static void case_environment(void)
{
    thread_work();
    clearenv();
    MUST(chdir("/") == 0);
    many_new_contexts();
}

/* ---- ends ---- */

static void case_end(void)
{
    thread_work();
    const char *how = arguments[2];
    if (strcmp(how, "return") == 0)
        return;
    if (strcmp(how, "exit") == 0)
        exit(9);
    if (strcmp(how, "_exit") == 0)
        _exit(7);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(8);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "pthread_exit") == 0)
        pthread_exit(NULL);
    if (strcmp(how, "null") == 0)
        *(volatile char *)NULL = 1;
    if (strcmp(how, "stack") == 0) {
        volatile char *top = __builtin_frame_address(0);
        for (;; top -= 4096)
            *top = 1;
    }
    signal(atoi(how), SIG_DFL);
    prctl(PR_SET_DUMPABLE, 0);
    kill(getpid(), atoi(how));
    pause();
}

/* Own handlers of fatal signals stay in force. */
static void on_segv(int signal)
{
    allocate_some(10);
    _exit(42);
}

static void case_own_handler(void)
{
    signal(SIGSEGV, on_segv);
    thread_work();
    *(volatile char *)NULL = 1;
}

static void case_exit_while_allocating(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, allocate_until_stopped, NULL) == 0);
    }
    thread_work();
    usleep(1000);
    exit(0);
}

/* ---- signals; with libsafemalloc.so preloaded, whose functions may be interrupted anywhere ---- */

static volatile sig_atomic_t handler_rounds;
enum { STORM_ROUNDS = 3000, JUMP_ROUNDS = 500 };

NOINLINE static void storm_handler_work(void)
{
    allocate_some(4);
}

static timer_t timer;

/* One signal, so that what the timer interrupts gets on however long the handler takes: the handler asks for the next
 * one. */
static void arm_timer(long after_us)
{
    struct itimerspec once = {{0, 0}, {0, after_us * 1000}};
    MUST(timer_settime(timer, 0, &once, NULL) == 0);
}

static void start_timer(void (*handler)(int), long after_us)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    arm_timer(after_us);
}

static void on_storm(int signal)
{
    storm_handler_work();
    handler_rounds = handler_rounds + 1;
    if (handler_rounds < STORM_ROUNDS)
        arm_timer(20 + handler_rounds % 60);
}

NOINLINE static long storm_main_work(long rounds)
{
    long done = 0;
    for (long i = 0; i < rounds; i++) {
        void *block = malloc((size_t)(1 + i % 1000));
        KEEP(block);
        block = realloc(block, (size_t)(1 + i % 1000) * 2);
        KEEP(block);
        free(block);
        done++;
    }
    HERE();
    return done;
}

/* Prints what main and the handler did. */
static void case_storm(void)
{
    start_timer(on_storm, 50);
    long done = 0;
    while (handler_rounds < STORM_ROUNDS)
        done += storm_main_work(1000);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say("main %ld handler %ld\n", done, (long)handler_rounds);
}

static sigjmp_buf out_of_handler;

NOINLINE static void jump_handler_work(void)
{
    allocate_some(10);
}

static void on_jump(int signal)
{
    jump_handler_work();
    siglongjmp(out_of_handler, 1);
}

NOINLINE static void after_jump_work(void)
{
    allocate_some(1000);
}

static void case_jump(void)
{
    static volatile int rounds;
    struct sigaction action = {.sa_handler = on_jump};
    sigaction(SIGUSR1, &action, NULL);
    if (sigsetjmp(out_of_handler, 1) == 0 || rounds < 100) {
        rounds = rounds + 1;
        raise(SIGUSR1);
    }
    after_jump_work();
}

static void on_timed_jump(int signal)
{
    handler_rounds = handler_rounds + 1;
    if (handler_rounds < JUMP_ROUNDS)
        arm_timer(100);
    siglongjmp(out_of_handler, 1);
}

/* The handler leaves allocator functions in the middle. What comes afterwards must be counted all the same. */
static void case_timed_jump(void)
{
    if (sigsetjmp(out_of_handler, 1) == 0)
        start_timer(on_timed_jump, 200);
    while (handler_rounds < JUMP_ROUNDS)
        storm_main_work(100);
    signal(SIGALRM, SIG_IGN);
    after_jump_work();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"threads", case_threads},
    {"sequence", case_sequence},
    {"detached", case_detached},
    {"cancel", case_cancel},
    {"keys", case_keys},
    {"clone_vm", case_clone_vm},
    {"clone_fork", case_clone_fork},
    {"fork", case_fork},
    {"fork_threads", case_fork_threads},
    {"vfork", case_vfork},
    {"spawn", case_spawn},
    {"child", case_child},
    {"system", case_system},
    {"exec", case_exec},
    {"exec_fails", case_exec_fails},
    {"exec_bare", case_exec_bare},
    {"daemon", case_daemon},
    {"close_all", case_close_all},
    {"chroot", case_chroot},
    {"namespaces", case_namespaces},
    {"raw_close", case_raw_close},
    {"sockets", case_sockets},
    {"wrong_addresses", case_wrong_addresses},
    {"seccomp", case_seccomp},
    {"no_folder", case_no_folder},
    {"memory_file", case_memory_file},
    {"environment", case_environment},
    {"end", case_end},
    {"own_handler", case_own_handler},
    {"exit_while_allocating", case_exit_while_allocating},
    {"storm", case_storm},
    {"jump", case_jump},
    {"timed_jump", case_timed_jump},
};

int main(int argc, char **argv)
{
    static char path[4096];
    MUST(argc >= 2 && readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    self = path;
    arguments = argv;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 96;
}
