/* fds.c - keeps the profile's descriptor open in programs that close every descriptor they find.
 *
 * Daemons do so at their start, and may then change their root or user: the file could not be opened again to grow. To
 * the program the number looks as if it were not open: close fails with EBADF, dup2 onto it moves it away first. */
#include "runtime/runtime.h"

#include <errno.h>

extern int *__errno_location(void) __attribute__((weak));

static int fail(int error)
{
    if (__errno_location)
        *__errno_location() = error;
    return -1;
}

static bool is_ours(int fd)
{
    return fd >= 0 && hw_runtime.state == HW_STATE_ON && fd == hw_file_descriptor_number() && !hw_fork_pending() &&
           fd == hw_file_descriptor();
}

HW_EXPORT int close(int fd);
HW_EXPORT int close(int fd)
{
    HW_REAL(int, close, (int));
    if (hw_unlikely(is_ours(fd)))
        return fail(EBADF);
    return real(fd);
}

HW_EXPORT int dup2(int old, int fd);
HW_EXPORT int dup2(int old, int fd)
{
    HW_REAL(int, dup2, (int, int));
    if (is_ours(fd))
        hw_file_move_descriptor(fd);
    return real(old, fd);
}

HW_EXPORT int dup3(int old, int fd, int flags);
HW_EXPORT int dup3(int old, int fd, int flags)
{
    HW_REAL(int, dup3, (int, int, int));
    if (is_ours(fd))
        hw_file_move_descriptor(fd);
    return real(old, fd, flags);
}

/* [first, last] but for the profile's descriptor. The system call itself: an old libc has no function for it. */
static int close_around(unsigned first, unsigned last, unsigned flags)
{
    unsigned own = (unsigned)hw_file_descriptor();
    long result = 0;
    if (own > first)
        result = hw_sys(SYS_close_range, first, own - 1, flags);
    if (result >= 0 && own < last)
        result = hw_sys(SYS_close_range, own + 1, last, flags);
    return result < 0 ? fail((int)-result) : 0;
}

static bool covers_ours(unsigned first, unsigned last)
{
    int own = hw_file_descriptor_number();
    return own >= 0 && (unsigned)own >= first && (unsigned)own <= last && is_ours(own);
}

HW_EXPORT int close_range(unsigned first, unsigned last, int flags);
HW_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    HW_REAL(int, close_range, (unsigned, unsigned, int));
    if (first <= last && !((unsigned)flags & 4 /* CLOEXEC: no harm */) && covers_ours(first, last))
        return close_around(first, last, (unsigned)flags);
    if (real)
        return real(first, last, flags);
    long result = hw_sys(SYS_close_range, first, last, flags);
    return result < 0 ? fail((int)-result) : 0;
}

HW_EXPORT void closefrom(int low);
HW_EXPORT void closefrom(int low)
{
    HW_REAL(void, closefrom, (int));
    unsigned first = low < 0 ? 0 : (unsigned)low;
    if (covers_ours(first, ~0u) && close_around(first, ~0u, 0) == 0)
        return;
    if (real)
        real(low);
}
