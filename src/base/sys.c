/* sys.c - the parts of sys.h that are not inline. Inside the profiled process: no libc. */
#include "base/sys.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

int hw_fd_out_of_the_way(int fd)
{
    if (fd < 0 || fd >= HW_FD_HIGH)
        return fd;
    const int high = (int)hw_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HW_FD_HIGH);
    if (high < 0)
        return fd;
    hw_close(fd);
    return high;
}

long hw_read_full(int fd, void *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        long n = hw_sys(SYS_read, fd, (char *)buffer + done, size - done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (long)done;
}

long hw_pwrite_full(int fd, const void *buffer, size_t size, uint64_t offset)
{
    size_t done = 0;
    while (done < size) {
        long n = hw_sys(SYS_pwrite64, fd, (const char *)buffer + done, size - done, offset + done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            return -ENOSPC;
        done += (size_t)n;
    }
    return (long)done;
}

long hw_read_link(const char *path, char *buffer, size_t size)
{
    long length = hw_sys(SYS_readlink, path, buffer, size - 1);
    buffer[length > 0 ? length : 0] = 0;
    return length;
}

uint64_t hw_soft_limit(int resource)
{
    uint64_t limit[2] = {~0ull, ~0ull};
    hw_prlimit(0, resource, 0, limit);
    return limit[0];
}

uint64_t hw_clock_read(int clock)
{
    uint64_t time[2] = {0, 0};
    if (!hw_quiet)
        hw_sys(SYS_clock_gettime, clock, time);
    return time[0] * 1000000000 + time[1];
}

long hw_read_file(const char *path, char *buffer, size_t size)
{
    int fd = hw_open(path, O_RDONLY, 0);
    if (fd < 0) {
        buffer[0] = 0;
        return fd;
    }
    long n = hw_read_full(fd, buffer, size - 1);
    hw_close(fd);
    buffer[n > 0 ? n : 0] = 0;
    return n;
}

void hw_lines_in(const char *path, char *buffer, size_t size, bool (*each)(void *closure, const char *line),
                 void *closure)
{
    int fd = hw_open(path, O_RDONLY, 0);
    bool goes_on = fd >= 0;
    size_t kept = 0;
    for (long n; goes_on && (n = hw_sys(SYS_read, fd, buffer + kept, size - 1 - kept)) > 0;) {
        size_t filled = kept + (size_t)n, line = 0;
        for (size_t i = kept; i < filled && goes_on; i++)
            if (buffer[i] == '\n') {
                buffer[i] = 0;
                goes_on = each(closure, buffer + line);
                line = i + 1;
            }
        kept = filled - line;
        if (kept >= size - 1)
            kept = 0; /* a line longer than the buffer: nothing that is needed */
        for (size_t i = 0; i < kept; i++)
            buffer[i] = buffer[line + i];
    }
    if (fd >= 0)
        hw_close(fd);
}

void hw_text_init(struct hw_text *text, char *buffer, size_t size)
{
    *text = (struct hw_text){buffer, size, 0};
    buffer[0] = 0;
}

void hw_text_char(struct hw_text *text, char c)
{
    if (text->used + 1 < text->size) {
        text->buffer[text->used++] = c;
        text->buffer[text->used] = 0;
    }
}

void hw_text_string(struct hw_text *text, const char *string)
{
    while (*string)
        hw_text_char(text, *string++);
}

void hw_text_u64(struct hw_text *text, uint64_t value)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        hw_text_char(text, digits[--n]);
}

void hw_text_join_all(char *buffer, size_t size, const char *const *strings)
{
    struct hw_text text;
    hw_text_init(&text, buffer, size);
    while (*strings)
        hw_text_string(&text, *strings++);
}

const char *hw_skip_fields(const char *text, int count)
{
    for (; count >= 0; count--) {
        while (*text == ' ')
            text++;
        while (count && *text && *text != ' ')
            text++;
    }
    return text;
}

const char *hw_stat_field(const char *stat, int number)
{
    const char *name_end = stat;
    for (const char *c = stat; *c; c++)
        if (*c == ')')
            name_end = c;
    return hw_skip_fields(name_end, number - 2);
}

uint64_t hw_parse_u64(const char **cursor, unsigned base)
{
    uint64_t value = 0;
    for (;; (*cursor)++) {
        char c = **cursor;
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (base == 16 && c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a' + 10);
        else if (base == 16 && c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A' + 10);
        else
            return value;
        value = value * base + digit;
    }
}

size_t hw_strlen(const char *string)
{
    size_t n = 0;
    while (string[n])
        n++;
    return n;
}

bool hw_streq(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

bool hw_starts_with(const char *string, const char *prefix)
{
    while (*prefix)
        if (*string++ != *prefix++)
            return false;
    return true;
}

bool hw_contains(const char *text, const char *part)
{
    for (; *text; text++)
        if (hw_starts_with(text, part))
            return true;
    return false;
}

/* Whether BYTES more in the file FD would be too many for RLIMIT_FSIZE: that raises SIGXFSZ, which kills. */
static bool beyond_file_limit(int fd, size_t bytes)
{
    const uint64_t limit = hw_soft_limit(RLIMIT_FSIZE);
    struct stat status;
    if (limit == ~0ull || hw_sys(SYS_fstat, fd, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    const bool appends = hw_sys(SYS_fcntl, fd, F_GETFL) & O_APPEND;
    const long at = appends ? status.st_size : hw_sys(SYS_lseek, fd, 0, SEEK_CUR);
    return at < 0 || (uint64_t)at + bytes > limit;
}

void hw_message(const char *message, const char *detail)
{
    char buffer[1024];
    struct hw_text text;
    hw_text_init(&text, buffer, sizeof buffer - 1);
    hw_text_string(&text, "heapwise: ");
    if (message)
        hw_text_string(&text, message);
    if (detail)
        hw_text_string(&text, detail);
    text.size++; /* room for the newline that was kept back */
    hw_text_char(&text, '\n');
    if (!beyond_file_limit(2, text.used))
        hw_sys(SYS_write, 2, text.buffer, text.used);
}

const char *hw_error_name(int error)
{
    static const struct {
        int error;
        const char *name;
    } names[] = {
        {ENOENT, "no such file or directory"},
        {EACCES, "permission denied"},
        {EPERM, "operation not permitted"},
        {ENOSPC, "no space left on device"},
        {EDQUOT, "disk quota exceeded"},
        {EROFS, "read-only file system"},
        {ENOMEM, "out of memory"},
        {EMFILE, "too many open files"},
        {ENFILE, "too many open files in the system"},
        {EEXIST, "file exists"},
        {ENOTDIR, "not a directory"},
        {EFBIG, "file size limit"},
        {ENAMETOOLONG, "file name too long"},
        {EOPNOTSUPP, "not supported by the file system"},
        {EIO, "input/output error"},
        {ENODEV, "the file system cannot map files"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return "unexpected error";
}

/* ---- programs that have given up system calls ---- */

bool hw_quiet;

long hw_sys_refuse(long number)
{
#ifdef HW_ASSERT_QUIET
    char text[32];
    struct hw_text to;
    hw_text_init(&to, text, sizeof text);
    hw_text_u64(&to, (uint64_t)number);
    hw_quiet = false;
    hw_message("a system call after the program has given them up: ", text);
    __builtin_trap();
#endif
    (void)number;
    return -EPERM;
}

/* ---- signals, and the lock ---- */

hw_sigset hw_signals_block(void)
{
    hw_sigset all = ~0ull, old = 0;
    hw_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof old);
    return old;
}

void hw_signals_restore(hw_sigset old)
{
    hw_sys(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, sizeof old);
}

#define TAKEN_QUIETLY (~0ull) /* no mask of the kernel's: SIGKILL cannot be blocked */
static __thread uint32_t held_quietly;

bool hw_lock_in_the_way(void)
{
    return held_quietly != 0;
}

hw_sigset hw_lock_take(struct hw_lock *lock)
{
    uint32_t expected = 0;
    if (hw_unlikely(hw_quiet)) {
        held_quietly++; /* before: a handler that comes as soon as it is taken must not wait for it */
        while (!__atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            expected = 0; /* that somebody waits in the kernel, from before, has to stay written there */
            hw_arch_pause();
        }
        return TAKEN_QUIETLY;
    }
    hw_sigset all = ~0ull, old = 0;
    hw_sys_program(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof old); /* which is put back in any case */
    if (__atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return old;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        hw_futex_wait(&lock->state, 2, 0);
    return old;
}

bool hw_lock_try(struct hw_lock *lock, hw_sigset *old)
{
    uint32_t expected = 0;
    *old = hw_signals_block();
    if (__atomic_compare_exchange_n(&lock->state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return true;
    hw_signals_restore(*old);
    return false;
}

void hw_lock_drop(struct hw_lock *lock, hw_sigset old)
{
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
        hw_futex_wake(&lock->state, 1);
    if (hw_unlikely(old == TAKEN_QUIETLY))
        held_quietly--;
    else /* also when the program has become quiet meanwhile */
        hw_sys_program(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, sizeof old);
}

void hw_yield(void)
{
    if (hw_quiet)
        hw_arch_pause();
    else
        hw_sys(SYS_sched_yield);
}
