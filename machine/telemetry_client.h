/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client of DPDK's telemetry sockets, of all processes of a fabric at once.
 */
#ifndef TRIB_MACHINE_TELEMETRY_CLIENT_H
#define TRIB_MACHINE_TELEMETRY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

struct telemetry_whom {
    const char *proc; /* the process of this name alone; NULL: all */
    const char *skip; /* names between commas that are not asked; NULL: none */
    unsigned seconds; /* for those that do not answer, all together; 0: ten */
};
/*
 * Sends a command to processes of the fabric in run directory dir, and sets *answers to an object with
 * the answer of each, which the caller owns. Lists without a name (/trib/ports, /trib/links, /trib/an) are
 * followed into each entry. A process that does not answer is named on stderr, with the reason where it is
 * known. program: for messages; NULL: there are none. Returns 0; 1 with a message if no process executed it; -errno with a
 * message, and no answers, where none was asked.
 */
int telemetry_client_gather(const char *program, const char *dir, const char *cmd,
                            const struct telemetry_whom *whom, struct json_t **answers);
/* Prints that object. 0, or 1 with a message if no process executed it. */
int telemetry_client_query(const char *program, const char *dir, const char *cmd,
                           const struct telemetry_whom *whom);

/* One process at a time. A file of the run directory's proc/ that says that a process is ready:
 * true, and its name. */
bool telemetry_client_names(const char *file, char *name, size_t size);
/* A connection to the process's socket, which waits `seconds` for an answer, or -errno; the caller
 * closes it. */
int telemetry_client_open(const char *dir, const char *proc, unsigned seconds);
/* The value of the answer, whose key is the command; the caller owns it. NULL: no answer. */
struct json_t *telemetry_client_ask(int fd, const char *cmd, const char *params);
/* Fabric time runs n times slower from now on. 0 or -errno, with a message on stderr. */
int telemetry_client_set_dilation(const char *program, const char *dir, unsigned n);
/* Adds the process's answer to an object; a list's entries one by one. */
void telemetry_client_proc(struct json_t *out, int fd, const char *proc, const char *cmd);

#endif
