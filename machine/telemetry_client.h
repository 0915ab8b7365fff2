/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client of DPDK's telemetry sockets: of all processes of a fabric at once, or of one.
 */
#ifndef TRIB_MACHINE_TELEMETRY_CLIENT_H
#define TRIB_MACHINE_TELEMETRY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

struct telemetry_whom {
    const char *proc; /* asks only this process; NULL: all */
    const char *skip; /* processes not to ask, comma-separated; NULL: none */
    unsigned seconds; /* timeout of all silent processes together; 0: ten */
};
/*
 * Sends a command to processes of the fabric in run directory dir. *answers: an object with the answer of
 * each, which the caller owns. Asks for each entry of a list without a name (/trib/ports, /trib/links,
 * /trib/an). Names processes that do not answer on stderr, with the reason if it is known. program:
 * prefix of messages; NULL: prints none. Returns 0; 1, with a message, if no process executed the command;
 * -errno, with a message and an empty object, if none could be asked.
 */
int telemetry_client_gather(const char *program, const char *dir, const char *cmd,
                            const struct telemetry_whom *whom, struct json_t **answers);
/* Prints these answers. 0, or 1 with a message if no process executed the command. */
int telemetry_client_query(const char *program, const char *dir, const char *cmd,
                           const struct telemetry_whom *whom);

/* For one process at a time. Whether a file of the run directory's proc/ says that a process is ready;
 * name: that process. */
bool telemetry_client_names(const char *file, char *name, size_t size);
/* Connects to the process's socket, with a timeout of `seconds` for each answer. A descriptor, which the
 * caller closes, or -errno. */
int telemetry_client_open(const char *dir, const char *proc, unsigned seconds);
/* Asks; returns the value of the command's key in the answer, which the caller owns. NULL: no answer. */
struct json_t *telemetry_client_ask(int fd, const char *cmd, const char *params);
/* Sets the dilation to n. 0 or -errno, with a message on stderr. */
int telemetry_client_set_dilation(const char *program, const char *dir, unsigned n);
/* Adds the process's answer to `out`; for a list, that for each entry. */
void telemetry_client_proc(struct json_t *out, int fd, const char *proc, const char *cmd);

#endif
