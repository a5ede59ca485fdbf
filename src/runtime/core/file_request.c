/* file_request.c - asks heapwise record for a profile that this process cannot make itself: see base/launcher.h.
 *
 * No directory may be kept open for that: sandboxes look for such descriptors and end the program (Chromium). */
#include "base/launcher.h"
#include "runtime/core/core.h"
#include "runtime/core/file.h"
#include "runtime/hooks/hooks.h"
#include "runtime/stacks/stacks.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define PATIENCE_NS 3000000000ull

/* A socket from which record can be reached where its names are not known; -1: none was needed. */
static int kept = -1;
static uint64_t kept_inode;
static bool kept_connected; /* else it is from before a network namespace was entered */

struct address {
    struct sockaddr_un of;
    uint32_t length;
};

static struct address record_address(bool abstract)
{
    struct address address = {.of.sun_family = AF_UNIX};
    address.length =
        (uint32_t)(offsetof(struct sockaddr_un, sun_path) +
                   hw_launcher_name(address.of.sun_path, sizeof address.of.sun_path, hw_options.launcher, abstract));
    return address;
}

/* The inode of the socket FD; 0: it is none. */
static uint64_t socket_inode(int fd)
{
    struct stat status;
    return hw_sys(SYS_fstat, fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

static void keep(int fd, bool connected)
{
    kept = fd;
    kept_inode = fd >= 0 ? socket_inode(fd) : 0;
    kept_connected = connected;
}

int hw_launcher_descriptor_number(void)
{
    return kept;
}

int hw_launcher_descriptor(void)
{
    return kept >= 0 && kept_inode && socket_inode(kept) == kept_inode ? kept : -1;
}

void hw_launcher_move_descriptor(int away_from)
{
    if (away_from == hw_launcher_descriptor())
        kept = (int)hw_sys(SYS_fcntl, away_from, F_DUPFD_CLOEXEC, away_from + 1);
}

void hw_launcher_let_go(void)
{
    if (hw_launcher_descriptor() >= 0)
        hw_close(kept);
    kept = -1;
}

/* The process is about to leave the network namespace in which record can be found, or has children that will. */
static void leave_network(uint64_t clone_flags)
{
    if (!(clone_flags & CLONE_NEWNET) || kept >= 0 || !hw_options.launcher || hw_quiet ||
        hw_runtime.state != HW_STATE_ON)
        return;
    keep(hw_fd_out_of_the_way((int)hw_sys(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)), false);
}

HW_EXPORTED(int, unshare, (int flags))
{
    HW_REAL(int, unshare, (int));
    leave_network((uint64_t)(unsigned)flags);
    return real(flags);
}

/* In a namespace of its own a process may be about to lose sight of the folder as well. */
static void keep_connected(void)
{
    if (kept >= 0)
        return;
    struct address address = record_address(false);
    int fd = hw_fd_out_of_the_way((int)hw_sys(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd >= 0 && hw_sys(SYS_connect, fd, &address.of, address.length) < 0)
        hw_close(fd);
    else
        keep(fd, true);
}

void hw_launcher_see_call(long number, long first)
{
    if (number == SYS_unshare || number == SYS_clone)
        leave_network((uint64_t)first);
    if (number == SYS_clone3 && !(first & 7) && hw_readable((uintptr_t)first)) /* the flags come first in it */
        leave_network(((const struct clone_args *)first)->flags);
}

/* Whether process ids mean something else here than they do to record. */
bool hw_launcher_other_ids(void)
{
    char link[64];
    if (!hw_options.launcher || !hw_options.pid_namespace)
        return false;
    hw_read_link("/proc/self/ns/pid", link, sizeof link);
    const char *number = link;
    while (*number && *number != '[')
        number++;
    number += *number == '[';
    bool other = hw_parse_u64(&number, 10) != hw_options.pid_namespace;
    if (other)
        keep_connected();
    return other;
}

/* Many may ask at once: then the queue is full for a moment. */
static long send_patiently(int fd, const struct msghdr *message, bool patiently)
{
    long result;
    uint64_t give_up = hw_clock_monotonic_ns() + PATIENCE_NS;
    while ((result = hw_sys(SYS_sendmsg, fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)) == -EAGAIN && patiently &&
           hw_clock_monotonic_ns() < give_up)
        hw_sys(SYS_sched_yield);
    return result;
}

/* One datagram to record, with PASSED (-1: nothing) going along. */
static long send_request(const struct hw_launcher_request *request, int passed)
{
    struct address address = record_address(true);
    struct iovec part = {(void *)(uintptr_t)request, sizeof *request};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_name = &address.of, .msg_namelen = address.length, .msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.room;
        control.header =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        *(int *)CMSG_DATA(&control.header) = passed;
    }
    long result = -EBADF;
    if (hw_launcher_descriptor() >= 0) {
        struct msghdr plain = message;
        if (kept_connected)
            plain.msg_name = NULL, plain.msg_namelen = 0;
        result = send_patiently(kept, &plain, passed >= 0);
    }
    if (result >= 0)
        return result;
    long fd = hw_sys(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    result = send_patiently((int)fd, &message, passed >= 0);
    hw_close((int)fd);
    return result;
}

static struct hw_launcher_request new_request(uint32_t kind)
{
    return (struct hw_launcher_request){.session = hw_options.session, .kind = kind};
}

/* Waits for the reply; the descriptor that came with it, or -errno. */
static int receive(int fd, struct hw_launcher_reply *reply)
{
    struct iovec part = {reply, sizeof *reply};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {0}};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};
    uint64_t give_up = hw_clock_monotonic_ns() + PATIENCE_NS;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (hw_sys(SYS_poll, &wait, 1, 100) <= 0)
        if (hw_clock_monotonic_ns() >= give_up)
            return -ETIMEDOUT;
    long got = hw_sys(SYS_recvmsg, fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got != (long)sizeof *reply)
        return got < 0 ? (int)got : -EPROTO;
    if (reply->error)
        return -reply->error;
    if (message.msg_controllen < CMSG_LEN(sizeof(int)) || control.header.cmsg_type != SCM_RIGHTS)
        return -EPROTO;
    return *(const int *)CMSG_DATA(&control.header);
}

int hw_launcher_file(const char *executable, struct hw_launcher_reply *reply)
{
    if (!hw_options.launcher || hw_quiet)
        return -ENOTCONN;
    int pair[2];
    struct hw_launcher_request request =
        new_request(hw_file_mode() == HW_PRIVATE_MODE ? HW_LAUNCHER_PRIVATE_FILE : HW_LAUNCHER_FILE);
    hw_text_join(request.text, sizeof request.text, executable);
    long result = hw_sys(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair);
    if (result < 0)
        return (int)result;
    result = send_request(&request, pair[1]);
    hw_close(pair[1]);
    int fd = result < 0 ? (int)result : receive(pair[0], reply);
    hw_close(pair[0]);
    return fd;
}

void hw_trouble(const char *what, const char *detail, int error)
{
    if (!hw_attached && (!hw_options.session || hw_options.verbose)) /* heapwise attach says it */
        hw_message(what, detail);
    if (!hw_options.launcher || hw_quiet)
        return;
    struct hw_launcher_request request = new_request(HW_LAUNCHER_PROBLEM);
    request.error = error;
    hw_text_join(request.text, sizeof request.text, what, detail);
    send_request(&request, -1);
}
