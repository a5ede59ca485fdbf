/* server.h - one run of a server under a configuration: it is started, a load generator runs against it, it is stopped.
 *
 * The server's cost is that of the whole run, but its wall time is that of the load generator. */
#ifndef HW_TUNING_SERVER_H
#define HW_TUNING_SERVER_H

#include "tuning/load_numbers.h"
#include "tuning/trial.h"

struct hw_server {
    const char *load;  /* for sh: the load generator; it ends by itself */
    const char *ready; /* for sh: exits with 0 once the server can be used; or a TCP port of this machine */
    int stop;          /* the signal that ends the server: SIGTERM, SIGINT, SIGHUP or SIGQUIT */
    struct hw_load_expressions expressions;
    double seconds_most; /* for the load generator; 0: no limit */
    double ready_most;   /* seconds until the server is ready; 0: 60 */
    double grace_s;      /* between the signal that stops the server and SIGKILL; 0: 10 */
    double port_s;       /* in which the port of the run before becomes free; 0: 5 */
};

/* TRIAL: cost and end of the server; its load numbers. PROBLEM: why the run cannot be used: the server did not become
 * ready, ended by itself or crashed, the load generator failed or printed no number that one of the user's own
 * expressions finds; "": it can. False with ERROR when something could not be started, or the port is in use. An
 * interrupted run returns true with trial->cost.interrupted. */
bool hw_server_trial(const struct hw_run_request *server, const struct hw_server *how, struct hw_trial *trial,
                     char *problem, size_t size, struct hw_error *error);

#endif
