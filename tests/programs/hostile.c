/* hostile.c - programs that do what nobody expects of them, each of which has been too much for the runtime once;
 * test_hostile.c says what must come of it. The first argument is the case. */
#include "program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static char **arguments;

static void wait_for(pid_t pid)
{
    int status;
    MUST(pid > 0);
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* COUNT blocks of 100 bytes, each freed at once. */
static inline __attribute__((always_inline)) void allocate_some(long count)
{
    for (long i = 0; i < count; i++) {
        void *block = malloc(100);
        KEEP(block);
        free(block);
    }
    HERE();
}

/* Ends as a program does that could not be tried here. */
static _Noreturn void not_possible(const char *what)
{
    say("not possible: %s: %s\n", what, strerror(errno));
    _exit(77);
}

/* ---- stacks ---- */

enum { STACK_SIZE = 65536, GUARD_SIZE = 4096 };

/* Runs FUNCTION on the stack that ends at TOP, as a coroutine library does: without a word about it to unwinders, and
 * with a frame pointer that points past the end. */
void run_on_stack(char *top, void (*function)(void));
__asm__(".text\n"
        ".globl run_on_stack\n"
        ".type run_on_stack, @function\n"
        "run_on_stack:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    mov %rsp, %rbx\n"
        "    mov %rdi, %rsp\n"
        "    mov %rdi, %rbp\n"
        "    call *%rsi\n"
        "    mov %rbx, %rsp\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size run_on_stack, . - run_on_stack\n");

NOINLINE static void coroutine_work(void)
{
    allocate_some(10);
}

/* Two stacks, the guard page of the upper one right behind the end of the lower one: nothing may be read there. */
static void *run_coroutines(void *argument)
{
    enum { ROOM = GUARD_SIZE + STACK_SIZE };
    char *lower = mmap(NULL, ROOM * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(lower != MAP_FAILED);
    char *upper = lower + ROOM;
    MUST(mprotect(lower, GUARD_SIZE, PROT_NONE) == 0 && mprotect(upper, GUARD_SIZE, PROT_NONE) == 0);
    run_on_stack(lower + ROOM, coroutine_work);
    run_on_stack(upper + ROOM, coroutine_work);
    return NULL;
}

static void case_guard(void)
{
    run_coroutines(NULL);
}

static void case_guard_thread(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, run_coroutines, NULL) == 0);
    pthread_join(thread, NULL);
}

/* ---- limits that a program sets on itself ---- */

enum { LIMITED_BLOCKS = 1200 };

NOINLINE static void limited_work(void)
{
    for (int i = 0; i < LIMITED_BLOCKS; i++) {
        char *block = malloc(1 << 20);
        MUST(block);
        *block = 1;
        KEEP(block);
    }
    HERE();
}

/* 1200 MiB of 2 GiB: what the runtime has reserved must not count, nor be seen in the limit. */
static void limit_itself(__typeof__(RLIMIT_AS) resource)
{
    const struct rlimit limit = {(rlim_t)2 << 30, (rlim_t)2 << 30};
    MUST(setrlimit(resource, &limit) == 0);
    struct rlimit found;
    MUST(getrlimit(resource, &found) == 0 && found.rlim_cur == limit.rlim_cur && found.rlim_max == limit.rlim_max);
    MUST(prlimit(0, resource, NULL, &found) == 0 && found.rlim_cur == limit.rlim_cur);
    limited_work();
}

static void case_limit_address_space(void)
{
    limit_itself(RLIMIT_AS);
}

static void case_limit_data(void)
{
    limit_itself(RLIMIT_DATA);
}

enum { LIMIT_WAYS = 5 };

/* The ways by which a process may come to a limit. Where nobody sees that it was set, there must be a way to raise it.
 */
static void limit_by(int way, __typeof__(RLIMIT_AS) resource, rlim_t bytes)
{
    struct rlimit limit, found;
    MUST(getrlimit(resource, &limit) == 0);
    limit.rlim_cur = bytes;
    if (way < 3)
        limit.rlim_max = bytes;
    const pid_t self = getpid();
    if (way == 0)
        MUST(setrlimit(resource, &limit) == 0);
    else if (way == 1)
        MUST(prlimit(self, resource, &limit, NULL) == 0);
    else if (way == 2)
        MUST(syscall(SYS_prlimit64, 0, resource, &limit, NULL) == 0);
    else if (way == 3) {
        pid_t child = fork();
        if (child == 0)
            _exit(prlimit(self, resource, &limit, NULL) != 0);
        wait_for(child);
    } else {
        long result;
        register const void *old __asm__("r10") = NULL;
        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "0"(SYS_prlimit64), "D"(0), "S"(resource), "d"(&limit), "r"(old)
                         : "rcx", "r11", "memory");
        MUST(result == 0);
    }
    MUST(getrlimit(resource, &found) == 0 && found.rlim_cur == bytes && found.rlim_max == limit.rlim_max);
    MUST(syscall(SYS_prlimit64, 0, resource, NULL, &found) == 0 && found.rlim_cur == bytes);
}

static void *allocate_in_thread(void *unused);
static char *mapped_before;

/* What a limit of 512 MiB allows and what it forbids. FIRST: what comes first, when nothing has failed yet. */
static void use_limited(__typeof__(RLIMIT_AS) resource, int first)
{
    pthread_t thread;
    char *moved = mapped_before;
    if (first == 1) {
        moved = mremap(moved, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
        MUST(moved != MAP_FAILED);
    } else if (first == 2) {
        MUST(pthread_create(&thread, NULL, allocate_in_thread, NULL) == 0);
        pthread_join(thread, NULL);
    } else if (first == 3)
        MUST(mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    else if (first == 4) {
        void *block;
        MUST(posix_memalign(&block, 4096, 3 << 20) == 0);
        free(block);
    } else if (first == 5) {
        void *block = calloc(1, 100);
        block = realloc(block, 3 << 20);
        MUST(block);
        free(block);
    } else if (first == 6)
        MUST(sbrk(1 << 20) != (void *)-1);
    for (int i = 0; i < 20; i++) {
        char *block = malloc(3 << 20);
        MUST(block);
        *block = 1;
        KEEP(block);
    }
    char *pages = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED && mprotect(pages, 1 << 20, PROT_READ | PROT_WRITE) == 0);
    if (resource == RLIMIT_DATA)
        MUST(mmap(NULL, 600 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    struct rlimit lower = {400 << 20, 512 << 20}, found;
    MUST(setrlimit(resource, &lower) == 0);
    MUST(getrlimit(resource, &found) == 0 && found.rlim_cur == lower.rlim_cur && found.rlim_max == lower.rlim_max);
    MUST(malloc(100));
    if (resource == RLIMIT_AS && strcmp(arguments[2], "on") == 0)
        MUST(mmap(NULL, 600l << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}

/* Children that limit themselves: "on", with a profile, or "off", because none can be made. */
static void case_limited_children(void)
{
    const bool off = strcmp(arguments[2], "off") == 0;
    allocate_some(10);
    mapped_before = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapped_before != MAP_FAILED);
    for (int way = 0; way < 2 * LIMIT_WAYS + 6; way++) {
        pid_t child = fork();
        if (child == 0) {
            const struct rlimit little = {65536, 65536}; /* enough for messages */
            MUST(!off || setrlimit(RLIMIT_FSIZE, &little) == 0);
            allocate_some(10);
            __typeof__(RLIMIT_AS) resource = way < LIMIT_WAYS ? RLIMIT_DATA : RLIMIT_AS;
            limit_by(way < 2 * LIMIT_WAYS ? way % LIMIT_WAYS : 4, resource, 512 << 20);
            use_limited(resource, way - 2 * LIMIT_WAYS + 1);
            _exit(0);
        }
        wait_for(child);
    }
}

/* A program that is run with a limit keeps it, lowers it, and hands on what it has set. */
static void case_limit_lowered(void)
{
    struct rlimit limit, found;
    if (strcmp(arguments[2], "again") != 0) {
        MUST(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == (rlim_t)8 << 30);
        limit.rlim_cur = (rlim_t)2 << 30;
        MUST(setrlimit(RLIMIT_AS, &limit) == 0); /* the hard limit stays, and cannot be raised */
        MUST(execl("/nonexistent", "nonexistent", NULL) == -1);
        MUST(malloc(100 << 20));
        MUST(getrlimit(RLIMIT_AS, &found) == 0 && found.rlim_cur == limit.rlim_cur && found.rlim_max == limit.rlim_max);
        MUST(execl("/proc/self/exe", arguments[0], arguments[1], "again", NULL) == 0);
    }
    MUST(getrlimit(RLIMIT_AS, &found) == 0);
    MUST(found.rlim_cur == (rlim_t)2 << 30 && found.rlim_max == (rlim_t)8 << 30);
    allocate_some(10);
}

/* Runs the test PROGRAM of the shell beside this one: as it is, without the runtime. */
static void case_limit_handed_on(void)
{
    const struct rlimit limit = {(rlim_t)2 << 30, (rlim_t)2 << 30};
    char *const argv[] = {"sh", "-c", "read go; test \"$(ulimit -Sv) $(ulimit -Hv)\" = '2097152 2097152'", NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    int pipes[2];
    pid_t child;
    allocate_some(10);
    MUST(pipe2(pipes, O_CLOEXEC) == 0 && setrlimit(RLIMIT_AS, &limit) == 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[0], 0);
    MUST(posix_spawnp(&child, "sh", &actions, NULL, argv, environment) == 0);
    MUST(write(pipes[1], "\n", 1) == 1);
    wait_for(child);
    MUST(posix_spawn(NULL, "/nonexistent", NULL, NULL, argv, environment) == ENOENT);
}

static long status_kilobytes(const char *key)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    MUST(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key), NULL, 10);
    fclose(file);
    return value;
}

static void *allocate_in_thread(void *unused)
{
    (void)unused;
    allocate_some(10);
    return NULL;
}

/* Everything is locked into memory, as real-time programs and daemons do that give up their rights afterwards. The
 * reservations of the runtime must not be. */
static void case_lock(void)
{
    static char large[1 << 20]; /* nobody has touched it */
    static unsigned char there[sizeof large >> 12];
    char *start = large + (-(uintptr_t)large & 4095);
    long before = status_kilobytes("VmLck:");
    MUST(before == 0);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        not_possible("mlockall");
    allocate_some(10);
    MUST(mincore(start, sizeof large - 4096, there) == 0);
    for (size_t i = 0; i < (sizeof large >> 12) - 1; i++)
        MUST(there[i] & 1);
    MUST(status_kilobytes("VmLck:") >= 1024);
    MUST(status_kilobytes("VmLck:") < 1 << 20);
    struct rlimit limit; /* from here on without rights, if that leaves room for what follows */
    MUST(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (getuid() == 0 && limit.rlim_cur >= 8 << 20)
        MUST(setgid(65534) == 0 && setuid(65534) == 0);
    for (int i = 0; i < 700; i++)
        MUST(malloc(1000));
    pthread_attr_t attributes;
    pthread_t thread;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 65536) == 0);
    MUST(pthread_create(&thread, &attributes, allocate_in_thread, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(status_kilobytes("VmLck:") < 200 << 10);
    MUST(munlockall() == 0);
    MUST(status_kilobytes("VmLck:") == 0);
}

/* ---- forks ---- */

enum { CHILD_DEPTH = 13 };
NOINLINE static void tree_one(unsigned depth, unsigned path);
NOINLINE static void tree_two(unsigned depth, unsigned path);

/* Calls that go by the bits of PATH: 2 to the power of DEPTH call stacks. */
static inline __attribute__((always_inline)) void tree(unsigned depth, unsigned path)
{
    if (depth == 0)
        allocate_some(1);
    else if (path & 1)
        tree_one(depth - 1, path >> 1);
    else
        tree_two(depth - 1, path >> 1);
    HERE();
}

NOINLINE static void tree_one(unsigned depth, unsigned path)
{
    tree(depth, path);
}

NOINLINE static void tree_two(unsigned depth, unsigned path)
{
    tree(depth, path);
}

NOINLINE static void child_tree(void)
{
    for (unsigned path = 0; path < 1u << CHILD_DEPTH; path++)
        tree(CHILD_DEPTH, path);
    HERE();
}

/* The test limits the address space: the child needs as much of it as a process that was not forked. */
static void case_fork_grows(void)
{
    tree(CHILD_DEPTH, 0);
    pid_t pid = fork();
    if (pid == 0) {
        child_tree();
        _exit(0);
    }
    wait_for(pid);
}

NOINLINE static void *take_block(void)
{
    void *block = malloc(100);
    KEEP(block);
    return block;
}

NOINLINE static void give_block(void *block)
{
    free(block);
    HERE();
}

/* Parent and child free at the same places: what is known about a place lies in a file of each of them. */
static void case_fork_frees(void)
{
    static volatile int round, count = 10;
    for (; round < 2; round = round + 1) {
        for (int i = 0; i < count; i++)
            give_block(take_block());
        if (round == 0) {
            pid_t pid = fork();
            if (pid > 0) {
                wait_for(pid);
                _exit(0);
            }
            count = 1000;
        }
    }
    _exit(0);
}

/* ---- signals ---- */

enum { SIGNALLING_SIZE = 54321 /* of signalmalloc.c, too */ };
static sigjmp_buf out_of_allocator;

static void on_signal_in_allocator(int signal)
{
    siglongjmp(out_of_allocator, 1);
}

NOINLINE static void after_jump_work(unsigned depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    if (depth > 0)
        after_jump_work(depth - 1);
    else
        allocate_some(1000);
    frame[1] = frame[0];
}

/* With libsignalmalloc.so preloaded: the handler leaves the allocator for good. Calls from deeper down the stack must
 * not be taken for the allocator's own. */
static void case_jump(void)
{
    static volatile int jumps;
    signal(SIGUSR1, on_signal_in_allocator);
    if (sigsetjmp(out_of_allocator, 1) == 0) {
        KEEP(malloc(SIGNALLING_SIZE));
        MUST(!"a signal");
    }
    jumps = jumps + 1;
    MUST(jumps == 1);
    after_jump_work(10);
}

enum { HANDLER_ROUNDS = 2000 };
static volatile sig_atomic_t handler_rounds;
static atomic_int stop;
static timer_t timer;

static void arm_timer(long after_us)
{
    struct itimerspec once = {{0, 0}, {0, after_us * 1000}};
    MUST(timer_settime(timer, 0, &once, NULL) == 0);
}

NOINLINE static void handler_work(void)
{
    allocate_some(3);
}

static void on_timer(int signal)
{
    handler_work();
    handler_rounds = handler_rounds + 1;
    if (handler_rounds < HANDLER_ROUNDS)
        arm_timer(20 + handler_rounds % 60);
}

static long walk_tree(bool (*done)(void))
{
    long calls = 0;
    for (unsigned path = 0; !done(); path++, calls++)
        tree(4, path);
    return calls;
}

static bool handled_all(void)
{
    return handler_rounds >= HANDLER_ROUNDS;
}

static bool is_stopped(void)
{
    return atomic_load(&stop);
}

static void *walk_until_stopped(void *calls)
{
    *(long *)calls = walk_tree(is_stopped);
    return NULL;
}

/* With libsafemalloc.so preloaded and less room for contexts than there are: handlers that allocate interrupt the
 * runtime while it makes room. Prints how often the program allocated, handlers included. */
static void case_evicting_handlers(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_t thread;
    long of_thread = 0;
    sigprocmask(SIG_BLOCK, &set, NULL); /* the other thread is not interrupted */
    MUST(pthread_create(&thread, NULL, walk_until_stopped, &of_thread) == 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    MUST(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    arm_timer(50);
    long of_main = walk_tree(handled_all);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    say("tree %ld handler %ld\n", of_main + of_thread, (long)handler_rounds * 3);
}

/* ---- code that comes and goes ---- */

/* The constructor of the library waits, within dlopen, for a thread whose first close() must not ask the linker. */
static void case_closer(void)
{
    MUST(dlopen(arguments[2], RTLD_NOW));
}

/* Code of no library that calls malloc(100), put where CODE points. */
static void generate(unsigned char *code)
{
    static const unsigned char before[] = {0x48, 0x83, 0xec, 8, 0xbf, 100, 0, 0, 0, 0x48, 0xb8}, /* sub $8, %rsp; … */
        after[] = {0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};                                       /* call *%rax; … */
    void *(*function)(size_t) = malloc;
    memcpy(code, before, sizeof before);
    memcpy(code + sizeof before, &function, sizeof function);
    memcpy(code + sizeof before + sizeof function, after, sizeof after);
}

NOINLINE static void run_generated(unsigned char *code)
{
    void *(*function)(void);
    memcpy(&function, &code, sizeof function);
    for (int i = 0; i < 10; i++)
        free(function());
    HERE();
}

static void *open_plugin(const char *path, const char *function, void (**run)(void))
{
    void *library = dlopen(path, RTLD_NOW);
    MUST(library);
    void *address = dlsym(library, function);
    MUST(address);
    memcpy(run, &address, sizeof address);
    return library;
}

/* The memory that the library with ADDRESS takes. */
static char *find_library(void *address, size_t *size)
{
    Dl_info info;
    MUST(dladdr(address, &info));
    const ElfW(Ehdr) *header = info.dli_fbase;
    const ElfW(Phdr) *segments = (const void *)((char *)info.dli_fbase + header->e_phoff);
    *size = 0;
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > *size)
            *size = segments[i].p_vaddr + segments[i].p_memsz;
    *size = (*size + 4095) & ~(size_t)4095;
    return info.dli_fbase;
}

/* Fills memory until the next mapping of SIZE bytes comes to PLACE. */
static void lead_to(const char *place, size_t size)
{
    for (int i = 0; i < 1000; i++) {
        char *filler = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(filler != MAP_FAILED);
        if (filler == place) {
            munmap(filler, size);
            return;
        }
    }
}

/* Code in one place, one after the other: a library, closed by a dlclose that the runtime does not see; generated code;
 * another library. What was learned of the place must be forgotten each time. Prints whether it was the same place. */
static void case_same_place(void)
{
    int (*close_library)(void *);
    void *address = dlsym(dlopen("libc.so.6", RTLD_NOW), "dlclose");
    memcpy(&close_library, &address, sizeof address);

    void (*run)(void);
    void *library = open_plugin(arguments[2], "plugin_one_run", &run);
    for (int i = 0; i < 10; i++)
        run();
    memcpy(&address, &run, sizeof address);
    size_t size;
    char *base = find_library(address, &size);
    const uintptr_t place = (uintptr_t)run, within = place - (uintptr_t)base;
    MUST(close_library(library) == 0);

    /* All of it: the runtime's next mapping would have the rest. */
    unsigned char *code =
        mmap(base, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (code != (void *)base)
        not_possible("mapping code where the library was");
    generate(code + within);
    run_generated(code + within);
    munmap(code, size);

    lead_to(base, size);
    open_plugin(arguments[3], "plugin_two_run", &run);
    for (int i = 0; i < 10; i++)
        run();
    say("%s place\n", (uintptr_t)run == place ? "same" : "another");
}

/* ---- operators of its own ---- */

void *operator_new(size_t size) __asm__("_Znwm");
void operator_delete_sized(void *block, size_t size) __asm__("_ZdlPvm");

NOINLINE static void pool_work(void)
{
    enum { BLOCKS = 10000, SIZE = 30 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = operator_new(SIZE);
    for (int i = 0; i < BLOCKS; i++)
        operator_delete_sized(blocks[i], SIZE);
    HERE();
}

/* new and delete of libpool.so never come to the allocator, and blocks are not its. */
static void case_pool(void)
{
    pool_work();
}

/* ---- seccomp ---- */

NOINLINE static void unconfined_work(void)
{
    allocate_some(1);
}

NOINLINE static void confined_work(void)
{
    allocate_some(3000000);
}

/* Only read, write, exit and sigreturn are allowed, any other system call kills. */
static void case_confined(void)
{
    unconfined_work();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        not_possible("seccomp");
    confined_work();
    static const char ok[] = "ok\n";
    syscall(SYS_exit, write(1, ok, 3) == 3 ? 0 : 95);
}

/* Goes on as another program when no file can be made any more, and nobody be asked for one. */
static void case_exec_confined(void)
{
    if (strcmp(arguments[2], "again") == 0) {
        allocate_some(10);
        MUST(open("made", O_CREAT | O_WRONLY, 0600) == -1 && errno == EACCES);
        return;
    }
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 16),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    allocate_some(10);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        not_possible("seccomp");
    if (strcmp(arguments[2], "fork") == 0) {
        pid_t child = fork();
        if (child) {
            wait_for(child);
            return;
        }
    }
    execl("/proc/self/exe", arguments[0], arguments[1], "again", NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"guard", case_guard},
    {"guard_thread", case_guard_thread},
    {"limit_address_space", case_limit_address_space},
    {"limit_data", case_limit_data},
    {"limited_children", case_limited_children},
    {"exec_confined", case_exec_confined},
    {"limit_lowered", case_limit_lowered},
    {"limit_handed_on", case_limit_handed_on},
    {"lock", case_lock},
    {"fork_grows", case_fork_grows},
    {"fork_frees", case_fork_frees},
    {"jump", case_jump},
    {"evicting_handlers", case_evicting_handlers},
    {"closer", case_closer},
    {"same_place", case_same_place},
    {"pool", case_pool},
    {"confined", case_confined},
};

int main(int argc, char **argv)
{
    MUST(argc >= 2);
    arguments = argv;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return 0;
        }
    }
    return 96;
}
