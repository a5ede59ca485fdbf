/* file_service.c - see file_service.h. */
#include "cli/file_service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/session.h"

#define ATTEMPTS 1000

/* A datagram with what came along. */
struct received {
    struct hw_launcher_request request;
    pid_t pid; /* as seen from here; 0: not known */
    int reply; /* descriptor to answer to; -1: none */
};

/* False: there is nothing more, since the socket was shut down. */
static bool receive(int file, struct received *received)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part = {&received->request, sizeof received->request};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    received->pid = 0;
    received->reply = -1;
    bool sent = false; /* with a sender: empty messages are none of ours, and not the end */
    ssize_t got;
    while ((got = recvmsg(file, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    for (struct cmsghdr *part_of = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL; part_of;
         part_of = CMSG_NXTHDR(&message, part_of)) {
        sent = true;
        if (part_of->cmsg_level == SOL_SOCKET && part_of->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(part_of), sizeof sender);
            received->pid = sender.pid;
        }
        if (part_of->cmsg_level == SOL_SOCKET && part_of->cmsg_type == SCM_RIGHTS)
            for (size_t at = 0; at + CMSG_LEN(sizeof(int)) <= part_of->cmsg_len; at += sizeof(int)) {
                if (received->reply >= 0)
                    close(received->reply);
                memcpy(&received->reply, CMSG_DATA(part_of) + at, sizeof received->reply);
            }
    }
    if (got <= 0 && !sent)
        return false;
    if (got != (ssize_t)sizeof received->request)
        received->request.kind = 0;
    received->request.text[sizeof received->request.text - 1] = '\0';
    return true;
}

/* A new file for the process PID; its descriptor, or -1 with errno. */
static int make_file(const struct hw_file_service *service, const char *executable, pid_t pid, mode_t mode, char *path,
                     size_t size)
{
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof host - 1);
    const struct hw_name_parts parts = {executable, host, (uint64_t)pid};
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        hw_expand_name(path, size, service->pattern, &parts, attempt);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

static bool send_reply(int to, const struct hw_launcher_reply *reply, int file)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {(void *)(uintptr_t)reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        memcpy(CMSG_DATA(&control.header), &file, sizeof file);
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
    }
    return sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void serve_file(const struct hw_file_service *service, struct received *received)
{
    struct hw_launcher_reply reply;
    memset(&reply, 0, sizeof reply);
    for (char *c = received->request.text; *c; c++) /* it is to be one component of a path */
        if (*c == '/')
            *c = '_';
    const mode_t mode = received->request.kind == HW_LAUNCHER_PRIVATE_FILE ? 0600 : 0666;
    int file = make_file(service, received->request.text, received->pid, mode, reply.path, sizeof reply.path);
    reply.error = file < 0 ? errno : 0;
    reply.pid = (uint32_t)received->pid;
    reply.start_time = hw_process_start_time(reply.pid);
    bool sent = send_reply(received->reply, &reply, file);
    if (file >= 0)
        close(file);
    if (file >= 0 && !sent)
        unlink(reply.path);
}

static void *serve(void *argument)
{
    struct hw_file_service *service = argument;
    struct received received;
    struct pollfd ready[2] = {{.fd = service->sockets[0], .events = POLLIN},
                              {.fd = service->sockets[1], .events = POLLIN}};
    for (;;) {
        if (poll(ready, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        const int which = ready[1].revents ? 1 : 0; /* the other one reports the end */
        if (!receive(service->sockets[which], &received)) {
            if (which == 0)
                break;
            ready[1].fd = -1;
            continue;
        }
        const struct hw_launcher_request *request = &received.request;
        bool known = request->session == service->session;
        const bool wanted = request->kind == HW_LAUNCHER_FILE || request->kind == HW_LAUNCHER_PRIVATE_FILE;
        if (known && wanted && received.pid > 0 && received.reply >= 0)
            serve_file(service, &received);
        if (known && request->kind == HW_LAUNCHER_PROBLEM && service->problems++ == 0)
            service->problem = *request;
        if (received.reply >= 0)
            close(received.reply);
    }
    return NULL;
}

/* Above 2: see launch.c. */
static int open_socket(uint64_t number, bool abstract, char *path, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = hw_launcher_name(address.sun_path, sizeof address.sun_path, number, abstract);
    int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), yes = 1;
    int file = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 3);
    if (low >= 0)
        close(low);
    if (file >= 0 &&
        (setsockopt(file, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
         bind(file, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) != 0)) {
        close(file);
        file = -1;
    }
    if (file >= 0 && !abstract) {
        snprintf(path, size, "%s", address.sun_path);
        chmod(path, 0666); /* the program may become another user; the session is the key */
    }
    return file;
}

static void close_sockets(struct hw_file_service *service)
{
    for (int i = 0; i < 2; i++)
        if (service->sockets[i] >= 0)
            close(service->sockets[i]);
    if (*service->path)
        unlink(service->path);
}

void hw_file_service_start(struct hw_file_service *service, const char *pattern, uint64_t session)
{
    memset(service, 0, sizeof *service);
    service->pattern = pattern;
    service->session = session;
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number || number == 0)
        return;
    for (int i = 0; i < 2; i++)
        service->sockets[i] = open_socket(number, i == 0, service->path, sizeof service->path);
    sigset_t all, old; /* signals are record's main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (service->sockets[0] >= 0 && pthread_create(&service->thread, NULL, serve, service) == 0)
        service->number = number;
    else
        close_sockets(service);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void hw_file_service_stop(struct hw_file_service *service)
{
    if (!service->number)
        return;
    shutdown(service->sockets[0], SHUT_RD); /* what has come is still read */
    pthread_join(service->thread, NULL);
    close_sockets(service);
    service->number = 0;
}

uint64_t hw_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}
