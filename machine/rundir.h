/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The run directory of a fabric that is up: all that its processes share on this machine.
 *
 *   $TRIB_RUN, or ${XDG_RUNTIME_DIR:-/tmp}/tributary-$UID/<fabric name>/; a service's is
 *   /run/tributary/<name>/<name>/, and io/access.h says who else may use it
 *     fabric.conf      copy of the conf file; processes load this one
 *     fabric.path      path of the original, for messages
 *     machine          name of the machine that this is, of a conf with machines
 *     machines/<name>  exists while that other machine is there, and its links can be used
 *     shared           lock for making the fabric's clock (page_server.c)
 *     proc/<name>.pid  one per trib-switch, locked (fcntl) for as long as the process lives: its pid
 *                      and its start time, in clock ticks since boot
 *     keeper           locked by the trib-keep that started the processes (host/keep)
 *     proc/<name>.ended  how it ended, if that was unexpected
 * proc/<name>.ready  exists once the process serves its ports; lines "key value" (trib_switch.c)
 *     proc/<name>.log    its output
 *     proc/<name>.page   socket: hands out its clock and pages (page_server.h)
 *     port/<host>/     all that programs which run as this host open; trib exec --isolate shows a
 *                      program no other host's (host/sandbox/isolate.c)
 *     port/<host>/<port>.<slot>.sock  memif listener of a NIC's process slot; the process that uses
 *                      the slot holds .lock beside it
 *     port/<host>/host.token  the secret of the host, which its processes present (token.h)
 *     port/<host>/<port>.counters/    counters of the port as sysfs shows them (port_counters.h);
 *                      of each user, .counters.UID, in a service's
 *     port/<host>/<port>.state/       whether it is up, as sysfs shows it (port_state.h)
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
    struct shared *sh; /* what the fabric's processes share */
};

/* dir NULL: the default for this fabric's name. create: creates a missing directory (0700), and sh
 * is NULL until page_server_start(); otherwise joins the processes that run there. The directory and
 * those above it must be such that no other user can exchange anything (system/own_path.h); root is
 * refused another user's, too. 0 or -errno, with a message on stderr. */
int rundir_open(struct rundir *rd, const char *dir, const char *fabric_name, bool create);
void rundir_close(struct rundir *rd);
/* Copies the conf of f into the directory, once; -EEXIST when another fabric's conf is there
 * already, -ENAMETOOLONG when sockets of this fabric would not fit into a unix socket path. 0 or
 * -errno, with a message on stderr. */
int rundir_install(const struct rundir *rd, const struct fabric *f);
/* Removes the directory, unless a trib-switch runs in it. Logs stay, and the directory with them.
 * */
void rundir_remove(const struct rundir *rd);
/* The copied conf, loaded. NULL with a message on stderr. */
struct fabric *rundir_fabric(const struct rundir *rd);
/* Notes which of the conf's machines this is. 0 or -errno, with a message. */
int rundir_set_machine(const struct rundir *rd, const char *name);
/* Index of that machine in f; FAB_NONE: the conf has none, or none is noted. */
uint16_t rundir_machine(const struct rundir *rd, const struct fabric *f);
/* Notes that the machine of this name is there, or is not any more. */
void rundir_note_machine(const struct rundir *rd, const char *name, bool there);
bool rundir_machine_there(const struct rundir *rd, const char *name);
/* Whether another machine runs the node. */
static inline bool rundir_is_away(uint16_t machine, const struct fab_node *n)
{
    return machine != FAB_NONE && n->machine != machine;
}
/* Claims a free process slot of a host's port: 0..slots-1, or -EBUSY. *fd holds the lock; close it
 * to give the slot back. */
int rundir_claim_slot(const struct rundir *rd, const char *host, unsigned port, unsigned slots,
                      int *fd);

/* Names the calling process in proc/<name>.pid until it ends or closes *fd. -EBUSY, with a message:
 * another one runs. */
int rundir_claim_proc(const struct rundir *rd, const char *name, int *fd);
/* Pid of the running trib-switch `name`, PROCESS_AWAY (system/process.h), 0: none, -errno: not known, as where no descriptor is left.
 * A process must not pass its own name: closing the file would drop its lock. */
int rundir_proc_pid(const struct rundir *rd, const char *name);

/* Opens a file of the run directory as own_file_open() does, so that nobody's link, FIFO or file is
 * opened in its place. A descriptor or -errno; with a message on stderr, unless the file is missing
 * or exists. */
int rundir_file(const struct rundir *rd, int flags, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without a message. */
int rundir_file_quiet(const struct rundir *rd, int flags, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Removes a file or a link; directories on the way are no links. 0 or -errno. */
int rundir_unlink(const struct rundir *rd, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Opens a directory that rundir_own_dir() has made, through no link. A descriptor or -errno. */
int rundir_dir(const struct rundir *rd, const char *name);

/* Paths below the run directory; 0 or -ENAMETOOLONG. */
int rundir_path(const struct rundir *rd, char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Makes the directory of a host's ports, unless it is there. 0 or -errno, with a message. */
int rundir_port_dir(const struct rundir *rd, const char *host);
/* Makes a directory below a host's, unless it is there. What another user of a service's host has put in
 * its place, a link too, is refused before anything is written there. 0 or -errno, with a message. */
int rundir_own_dir(const struct rundir *rd, const char *name);
int rundir_port_sock(const struct rundir *rd, const char *host, unsigned port, unsigned slot,
                     char *buf, size_t size);
int rundir_link_sock(const struct rundir *rd, const char *link, char *buf, size_t size);

#endif
