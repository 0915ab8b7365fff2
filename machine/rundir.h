/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run directory of a fabric that is up: everything that its processes share on this machine.
 *
 *   $TRIB_RUN, or ${XDG_RUNTIME_DIR:-/tmp}/tributary-$UID/<fabric name>/; a service's is
 *   /run/tributary/<name>/<name>/, and io/access.h says who else may use it
 *     fabric.conf      copy of the conf file, which the processes load
 *     fabric.path      path of the original, for messages
 *     machine          name of this machine, if the conf has several
 *     machines/<name>  exists while that other machine is there and its links can be used
 *     shared           lock for making the fabric's clock (page_server.c)
 *     proc/<name>.pid  one per trib-switch: its pid and its start time in clock ticks since boot;
 *                      locked (fcntl) while the process lives
 *     keeper           locked by the trib-keep that started the processes (host/keep)
 *     proc/<name>.ended  how the process ended, if unexpectedly
 *     proc/<name>.ready  exists once the process serves its ports; lines "key value" (trib_switch.c)
 *     proc/<name>.log    output of the process
 *     proc/<name>.page   socket that passes on the process's clock and pages (page_server.h)
 *     port/<host>/     everything that programs open which run as this host; trib exec --isolate
 *                      hides the directories of other hosts (host/sandbox/isolate.c)
 *     port/<host>/<port>.<slot>.sock  memif listener of a NIC's process slot; the process that uses
 *                      the slot holds the lock on .lock beside it
 *     port/<host>/host.token  the host's secret, which its processes present (token.h)
 *     port/<host>/<port>.counters/    counters of the port as sysfs shows them (port_counters.h); in
 *                      a service's, .counters.UID for each user
 *     port/<host>/<port>.state/       whether the port is up, as sysfs shows it (port_state.h)
 *     link/<link>.sock  memif between two trib-switch processes; the process of end `a` listens
 */
#ifndef TRIB_MACHINE_RUNDIR_H
#define TRIB_MACHINE_RUNDIR_H

#include "fabric/fabric.h"
#include "machine/rundir_default.h"

#define RUN_PATH                                                                                   \
    200 /* unix socket paths are at most 107 bytes: rundir_create refuses longer ones by name */

struct shared; /* shared.h */

struct rundir {
    char path[RUN_PATH];
    struct shared *sh; /* the pages that the fabric's processes share */
};

/* Opens a run directory. dir NULL: the default for this fabric's name. create: creates the directory
 * (0700) if it is missing, and leaves sh NULL until page_server_start(); otherwise joins the processes
 * that run there. Refuses a directory if another user could replace anything in it or above it
 * (system/own_path.h), and for root also one that another user owns. 0 or -errno, with a message on
 * stderr. */
int rundir_open(struct rundir *rd, const char *dir, const char *fabric_name, bool create);
void rundir_close(struct rundir *rd);
/* Copies the conf of f into the directory, once. -EEXIST: the conf of another fabric is there;
 * -ENAMETOOLONG: a socket of this fabric would not fit into a unix socket path. 0 or -errno, with a
 * message on stderr. */
int rundir_install(const struct rundir *rd, const struct fabric *f);
/* Removes the directory, unless a trib-switch runs in it. Keeps logs, and then the directory, too. */
void rundir_remove(const struct rundir *rd);
/* Loads the copied conf. NULL with a message on stderr. */
struct fabric *rundir_fabric(const struct rundir *rd);
/* Records which of the conf's machines this is. 0 or -errno, with a message. */
int rundir_set_machine(const struct rundir *rd, const char *name);
/* Index in f of the recorded machine; FAB_NONE: the conf has no machines, or none is recorded. */
uint16_t rundir_machine(const struct rundir *rd, const struct fabric *f);
/* Records whether the machine of this name is there. */
void rundir_note_machine(const struct rundir *rd, const char *name, bool there);
bool rundir_machine_there(const struct rundir *rd, const char *name);
/* Whether another machine runs the node. */
static inline bool rundir_is_away(uint16_t machine, const struct fab_node *n)
{
    return machine != FAB_NONE && n->machine != machine;
}
/* Claims a free process slot of a host's port: its number below `slots`, or -EBUSY. *fd holds the lock;
 * close it to release the slot. */
int rundir_claim_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slots,
                      int *fd);

/* Claims the name of a trib-switch: proc/<name>.pid names the calling process until it ends or closes
 * *fd. -EBUSY, with a message: another process has the name. */
int rundir_claim_proc(const struct rundir *rd, const char *name, int *fd);
/* Pid of the running trib-switch `name`; PROCESS_AWAY (system/process.h); 0: none; -errno: unknown, as
 * when no descriptor is free. Do not call it for the own name: closing the file would drop its lock. */
int rundir_proc_pid(const struct rundir *rd, const char *name);

/* Opens a file of the run directory like own_file_open(): never a link, FIFO or file that somebody has
 * put in its place. A descriptor or -errno; with a message on stderr, unless the file is missing or
 * exists already. */
int rundir_file(const struct rundir *rd, int flags, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without a message. */
int rundir_file_quiet(const struct rundir *rd, int flags, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Removes a file or a link; does not follow links on the way. 0 or -errno. */
int rundir_unlink(const struct rundir *rd, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Opens a directory made by rundir_own_dir(); follows no link. A descriptor or -errno. */
int rundir_dir(const struct rundir *rd, const char *name);

/* Write a path below the run directory into buf; 0 or -ENAMETOOLONG. */
int rundir_path(const struct rundir *rd, char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Makes the directory of a host's ports, if it is missing. 0 or -errno, with a message. */
int rundir_port_dir(const struct rundir *rd, const char *host);
/* Makes a directory below a host's, if it is missing. Refuses anything that another user of a service's
 * host has put in its place, links included, before writing to it. 0 or -errno, with a message. */
int rundir_own_dir(const struct rundir *rd, const char *name);
int rundir_port_sock(const struct rundir *rd, const char *host, unsigned port, unsigned slot,
                     char *buf, size_t size);
int rundir_link_sock(const struct rundir *rd, const char *link, char *buf, size_t size);

#endif
