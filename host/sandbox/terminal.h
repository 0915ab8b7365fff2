/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A terminal of its own for an isolated program. Standard streams that are the user's terminal are
 * replaced by a pseudo-terminal of the namespace's own /dev/pts, and the process outside copies
 * between the two. So nothing that the program does to its terminal, not even typing into it,
 * affects the user's. Pipes and files stay. A program has the keys (reads what the user types) from
 * the start if its standard input and output are the terminal; else it gets them when it first
 * reads, so that two programs of a pipeline do not both read keys.
 */
#ifndef TRIB_HOST_SANDBOX_TERMINAL_H
#define TRIB_HOST_SANDBOX_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#define TERMINAL_KEYS   4096
#define TERMINAL_OUTPUT 4096

/* Bits of the standard streams that are a terminal. */
unsigned terminal_streams(void);

/* ---- inside: init of the namespace, before the program ---- */

/* Mounts /dev/pts and /dev/ptmx of the mount namespace. 0 or -errno. */
int terminal_mounts(void);
/*
 * Makes the pseudo-terminal with the settings of the user's, makes it the controlling terminal of
 * this session, and replaces these streams by it. Returns its master side, or -errno.
 */
int terminal_make(unsigned streams);
/* Whether a program with these streams has the keys from the start. */
bool terminal_has_keys(unsigned streams);
/* The stream to which terminal output goes. */
int terminal_stream(unsigned streams);
/* Gives the keys to a process group of this session. */
void terminal_set_group(unsigned streams, pid_t group);
/* Closes all other descriptors of terminals. */
void terminal_close_others(void);
/* Refuses TIOCSTI and TIOCLINUX, which type into a terminal, for this process and its children. 0
 * or -errno. */
int terminal_refuse_typing(void);

/* ---- outside ---- */

struct terminal {
    int user, master; /* -1: none */
    bool keys;        /* the program has the keys */
    bool raw;         /* the user's terminal is in raw mode, and `was` has its former settings */
    bool suspended;   /* the user's last key was the suspend character */
    struct termios was;
    size_t n;
    char typed[TERMINAL_KEYS]; /* keys that the program has not read yet */
    int out;                   /* the user's terminal, opened again without blocking; else `user` */
    size_t shown, n_out;       /* output[shown..n_out) is to be written before more is read */
    char output[TERMINAL_OUTPUT];
};

/* Opens the user's terminal for non-blocking writes; call it before the namespaces are made.
 * O_NONBLOCK on the stream itself would also affect the shell. -1: it cannot be opened, as after
 * su, when it is another user's. */
int terminal_open(unsigned streams);
/* master: of terminal_make(); out: of terminal_open(). t owns both. */
void terminal_begin(struct terminal *t, unsigned streams, int master, int out);
/* Gives the keys to the program, or gives them again after it was stopped. */
void terminal_give_keys(struct terminal *t);
/* Restores the settings of the user's terminal while the user's shell has it. */
void terminal_pause(struct terminal *t);
/* Copies the size of the user's window. */
void terminal_resize(const struct terminal *t);
/* Events to poll for, POLLIN and POLLOUT, in *user and *master; 0: none. Returns the ms after which
 * to call it again; -1: no limit. */
int terminal_wants(struct terminal *t, short *user, short *master);
/* Copies after a poll(2) that returned these events. */
void terminal_copy(struct terminal *t, short user, short master);
/* Call after the program's end: writes its remaining output and restores the user's terminal.
 * signals: a signalfd; SIGHUP, SIGINT, SIGQUIT and SIGTERM end the wait for a terminal that accepts
 * no output. */
void terminal_end(struct terminal *t, int signals);

#endif
