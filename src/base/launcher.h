/* launcher.h - what a profiled process and the heapwise record that launched it say to each other.
 *
 * A process that cannot make its profile itself (another root directory, other rights, a PID namespace in which its
 * number means nothing outside) asks record for the file, by a datagram to a socket in the abstract namespace; record
 * makes it, names it by the process id as record sees it, and passes the descriptor back. A process without a profile
 * sends the reason the same way; record adds them up at the end. */
#ifndef HW_BASE_LAUNCHER_H
#define HW_BASE_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The socket's name: this and option `launcher`, in hexadecimal. Everybody can read that name. Requests must contain
 * the session, which is in the program's environment. There are two sockets: one in the abstract namespace works with
 * another root directory, one in a folder with another network namespace. */
#define HW_LAUNCHER_FOLDER "/tmp/"
#define HW_LAUNCHER_PREFIX "heapwise-"

enum hw_launcher_kind {
    HW_LAUNCHER_FILE = 1,
    HW_LAUNCHER_PROBLEM = 2,
    HW_LAUNCHER_PRIVATE_FILE = 3, /* that only its owner may read */
};

struct hw_launcher_request {
    uint64_t session;
    uint32_t kind;
    int32_t error;  /* of a problem: errno, or 0 */
    char text[256]; /* file: what %e stands for; problem: what could not be done, and why */
};

/* With the descriptor of the file, unless there is an error. */
struct hw_launcher_reply {
    int32_t error;       /* errno, or 0 */
    uint32_t pid;        /* of the process, as record sees it */
    uint64_t start_time; /* field 22 of /proc/PID/stat */
    char path[1024];
};

/* What stands for the sequences of a pattern. */
struct hw_name_parts {
    const char *executable, *host;
    uint64_t pid;
};

/* Expands %p %e %h %n %c %% of PATTERN. ATTEMPT 0 is the name itself; 1 puts the pid before the extension; higher ones
 * the pid and a number. */
void hw_expand_name(char *name, size_t size, const char *pattern, const struct hw_name_parts *parts, unsigned attempt);

/* The last component of the path that /proc/PID/exe leads to, without what the kernel adds to that. */
void hw_executable_name(char *name, size_t size, const char *path);

/* The socket's name in ADDRESS (of a sockaddr_un's sun_path), in the abstract namespace or in the folder; its length.
 */
size_t hw_launcher_name(char *address, size_t size, uint64_t number, bool abstract);

#endif
