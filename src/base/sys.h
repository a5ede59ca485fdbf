/* sys.h - system calls and small helpers for code inside the profiled process.
 *
 * No libc: nothing here touches errno, takes a lock, allocates from the program's heap or is a cancellation point.
 * All of it is safe in signal handlers. Results are the kernel's: -errno on failure. */
#ifndef HW_BASE_SYS_H
#define HW_BASE_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/arch/x86_64/arch.h"

#define hw_likely(x)      __builtin_expect(!!(x), 1)
#define hw_unlikely(x)    __builtin_expect(!!(x), 0)
/* Data that a recording leaves behind for the next one: core/attach.c. It has an initial value. */
#define HW_KEPT           __attribute__((section("hw_kept")))
#define HW_ALIGN_UP(x, a) (((x) + ((a)-1)) & ~((a)-1))
#define HW_PAGE           4096ul

/* Set when the program has given up system calls: only those are made any more that its own malloc needs as well. */
extern bool hw_quiet;

/* The one way by which the runtime makes system calls of its own. */
#define hw_sys(number, ...)                                                                                            \
    (hw_unlikely(hw_quiet) && !hw_sys_allowed(number) ? hw_sys_refuse(number) : hw_sys_program(number, ##__VA_ARGS__))
/* Calls that are the program's, which it makes by way of the runtime. */
#define hw_sys_program(number, ...) HW_SYS_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define HW_SYS_(number, a, b, c, d, e, f, ...)                                                                         \
    hw_syscall6((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* What a program needs to allocate, to wait for locks and to end. */
static inline bool hw_sys_allowed(long number)
{
    return number == SYS_mmap || number == SYS_munmap || number == SYS_futex || number == SYS_exit_group;
}
/* -EPERM; in builds for development the end. */
long hw_sys_refuse(long number);

/* By name; the others are called by hw_sys and their number's name. */
#define hw_mmap(at, bytes, protection, flags, fd, offset) hw_sys(SYS_mmap, at, bytes, protection, flags, fd, offset)
#define hw_munmap(at, bytes)                              hw_sys(SYS_munmap, at, bytes)
#define hw_mprotect(at, bytes, protection)                hw_sys(SYS_mprotect, at, bytes, protection)
#define hw_madvise(at, bytes, advice)                     hw_sys(SYS_madvise, at, bytes, advice)
#define hw_mincore(at, bytes, there)                      hw_sys(SYS_mincore, at, bytes, there)
#define hw_prlimit(pid, resource, fresh, old)             hw_sys(SYS_prlimit64, pid, resource, fresh, old)
#define hw_futex_wait(word, value, time)                  hw_sys(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, time)
#define hw_futex_wake(word, count)                        hw_sys(SYS_futex, word, FUTEX_WAKE_PRIVATE, count)
#define hw_getpid()                                       ((uint32_t)hw_sys(SYS_getpid))
#define hw_gettid()                                       ((uint32_t)hw_sys(SYS_gettid))

/* Zeroed private memory, NULL when there is none. Lazily touched and not counted against overcommit (mode 0 and 1). */
static inline void *hw_pages(size_t bytes)
{
    long result = hw_mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

static inline bool hw_sys_failed(long result)
{
    return result < 0 && result > -4096;
}

static inline int hw_open(const char *path, int flags, int mode)
{
    return (int)hw_sys(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static inline void hw_close(int fd)
{
    hw_sys(SYS_close, fd);
}

/* Moves FD out of the way of the program's own: the number that it has then, at least HW_FD_HIGH where the limit
 * allows. Errors (-errno) stay what they are. */
#define HW_FD_HIGH 600
int hw_fd_out_of_the_way(int fd);

/* Reads up to SIZE bytes, restarting after signals; less at the end of the file. -errno on failure. */
long hw_read_full(int fd, void *buffer, size_t size);
long hw_pwrite_full(int fd, const void *buffer, size_t size, uint64_t offset);

/* Where a symbolic link leads, terminated with NUL; its length, or -errno with an empty text. */
long hw_read_link(const char *path, char *buffer, size_t size);

/* A limit of the process, RLIMIT_…; ~0 when there is none. */
uint64_t hw_soft_limit(int resource);

/* A clock of the kernel, CLOCK_…, in nanoseconds; 0 when it is not there, or system calls were given up. */
uint64_t hw_clock_read(int clock);

/* Reads a small file (of /proc) into BUFFER and terminates it with NUL; the length, or -errno. */
long hw_read_file(const char *path, char *buffer, size_t size);
/* Calls EACH for the lines of a file of /proc, without their ends, until it says false. Lines that do not fit into BUFFER
 * are left out. */
void hw_lines_in(const char *path, char *buffer, size_t size, bool (*each)(void *closure, const char *line),
                 void *closure);

/* A text under construction in a buffer of fixed size; what does not fit is cut, the text is always terminated. */
struct hw_text {
    char *buffer;
    size_t size, used;
};
void hw_text_init(struct hw_text *text, char *buffer, size_t size);
void hw_text_char(struct hw_text *text, char c);
void hw_text_string(struct hw_text *text, const char *string);
void hw_text_u64(struct hw_text *text, uint64_t value);
/* The strings that follow, up to a NULL, one after the other in BUFFER. */
#define hw_text_join(buffer, size, ...) hw_text_join_all(buffer, size, (const char *const[]){__VA_ARGS__, NULL})
void hw_text_join_all(char *buffer, size_t size, const char *const *strings);

/* Behind COUNT fields of a line of /proc, and the blanks after them. */
const char *hw_skip_fields(const char *text, int count);
/* Field NUMBER (above 2) of a stat file of /proc: the second one, a name in parentheses, may hold anything. */
const char *hw_stat_field(const char *stat, int number);

/* Parses an unsigned decimal or hexadecimal number and advances *CURSOR; 0 when there is none. */
uint64_t hw_parse_u64(const char **cursor, unsigned base);

size_t hw_strlen(const char *string);
bool hw_streq(const char *a, const char *b);
bool hw_starts_with(const char *string, const char *prefix);
bool hw_contains(const char *text, const char *part);

/* "heapwise: TEXT DETAIL" and a newline on standard error, in one write. Both may be NULL. */
void hw_message(const char *text, const char *detail);
/* The name of the usual errors, a number for others. ERROR is positive. */
const char *hw_error_name(int error);

/* A lock of the runtime: futex-based, taken with all signals blocked, so that a signal handler never meets it held by
 * its own thread. Never held while program code or libc runs. A forked child sets it to zero. */
struct hw_lock {
    uint32_t state; /* 0 free, 1 held, 2 held and waited for */
};
typedef uint64_t hw_sigset; /* the kernel's 64 signals */
/* All signals, in the calling thread: what was open before. */
hw_sigset hw_signals_block(void);
void hw_signals_restore(hw_sigset old);
hw_sigset hw_lock_take(struct hw_lock *lock);
/* Takes it if it is free. Not while system calls are given up. */
bool hw_lock_try(struct hw_lock *lock, hw_sigset *old);
void hw_lock_drop(struct hw_lock *lock, hw_sigset old);
/* Whether the calling thread may hold one, in which a signal handler has interrupted it: only where the program has
 * given up system calls, so that signals are open meanwhile. */
bool hw_lock_in_the_way(void);
/* Lets others go first, in a loop that waits for them. */
void hw_yield(void);

#endif
