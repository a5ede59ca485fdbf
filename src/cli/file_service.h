/* file_service.h - makes profiles for processes that cannot make them themselves, while record waits for the program.
 *
 * What is said is in base/launcher.h. A thread of its own answers; it does nothing else. */
#ifndef HW_CLI_FILE_SERVICE_H
#define HW_CLI_FILE_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/launcher.h"

struct hw_file_service {
    const char *pattern; /* of output_name.h; the caller's, as the next one */
    uint64_t session;
    uint64_t number; /* of the socket's name; 0: it is not there */
    int sockets[2];  /* in the abstract namespace; in a folder, -1: not there */
    char path[64];   /* of that one */
    pthread_t thread;
    /* The first problem that processes reported. Read after hw_file_service_stop. */
    uint64_t problems;
    struct hw_launcher_request problem;
};

/* Without the service everything works but for such processes: nothing to be said when it cannot be had. */
void hw_file_service_start(struct hw_file_service *service, const char *pattern, uint64_t session);
void hw_file_service_stop(struct hw_file_service *service);
/* The inode of the PID namespace that this process is in; 0: not known. */
uint64_t hw_pid_namespace(void);

#endif
