/* descriptors.c - keeps the runtime's descriptors open in programs that close every descriptor they find.
 *
 * Daemons do so at their start, and may then change their root or user: the file could not be opened again to grow. To
 * the program the number looks as if it were not open: close fails with EBADF, dup2 onto it moves it away first. */
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/hooks/hooks.h"

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
    if (fd < 0 || hw_runtime.state != HW_STATE_ON)
        return false;
    return (fd == hw_launcher_descriptor_number() && fd == hw_launcher_descriptor()) ||
           (fd == hw_file_descriptor_number() && !hw_fork_pending() && fd == hw_file_descriptor());
}

static void move_away(int fd)
{
    if (fd == hw_launcher_descriptor_number())
        hw_launcher_move_descriptor(fd);
    else
        hw_file_move_descriptor(fd);
}

HW_EXPORTED(int, close, (int fd))
{
    HW_REAL(int, close, (int));
    if (hw_unlikely(is_ours(fd)))
        return fail(EBADF);
    return real(fd);
}

HW_EXPORTED(int, dup2, (int old, int fd))
{
    HW_REAL(int, dup2, (int, int));
    if (is_ours(fd))
        move_away(fd);
    return real(old, fd);
}

HW_EXPORTED(int, dup3, (int old, int fd, int flags))
{
    HW_REAL(int, dup3, (int, int, int));
    if (is_ours(fd))
        move_away(fd);
    return real(old, fd, flags);
}

/* The lowest of ours in [first, last]; -1: none. */
static int lowest_of_ours(unsigned first, unsigned last)
{
    const int ours[] = {hw_file_descriptor_number(), hw_launcher_descriptor_number()};
    int lowest = -1;
    for (int i = 0; i < 2; i++)
        if (ours[i] >= 0 && (unsigned)ours[i] >= first && (unsigned)ours[i] <= last && is_ours(ours[i]) &&
            (lowest < 0 || ours[i] < lowest))
            lowest = ours[i];
    return lowest;
}

/* [first, last] but for ours. The system call itself: an old libc has no function for it. */
static int close_around(unsigned first, unsigned last, unsigned flags)
{
    long result = 0;
    for (int own; result >= 0 && first <= last && (own = lowest_of_ours(first, last)) >= 0; first = (unsigned)own + 1)
        if ((unsigned)own > first)
            result = hw_sys_program(SYS_close_range, first, own - 1, flags);
    if (result >= 0 && first <= last)
        result = hw_sys_program(SYS_close_range, first, last, flags);
    return result < 0 ? fail((int)-result) : 0;
}

HW_EXPORTED(int, close_range, (unsigned first, unsigned last, int flags))
{
    HW_REAL(int, close_range, (unsigned, unsigned, int));
    if (first <= last && !((unsigned)flags & 4 /* CLOEXEC: no harm */) && lowest_of_ours(first, last) >= 0)
        return close_around(first, last, (unsigned)flags);
    if (real)
        return real(first, last, flags);
    long result = hw_sys_program(SYS_close_range, first, last, flags);
    return result < 0 ? fail((int)-result) : 0;
}

HW_EXPORTED(void, closefrom, (int low))
{
    HW_REAL(void, closefrom, (int));
    unsigned first = low < 0 ? 0 : (unsigned)low;
    if (lowest_of_ours(first, ~0u) >= 0 && close_around(first, ~0u, 0) == 0)
        return;
    if (real)
        real(low);
}
