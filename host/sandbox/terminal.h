/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A terminal of its own for an isolated program. Standard streams that are the user's terminal become a
 * pseudo-terminal of the namespace's own /dev/pts; the process outside copies between the two, and what
 * the program does to its terminal, typing into it included, ends there. Pipes and files stay what they
 * are. A program has the keys when it starts with standard input and output at the terminal; else once
 * it asks for them, so that two programs of a pipeline do not both read them.
 */
#ifndef TRIB_HOST_SANDBOX_TERMINAL_H
#define TRIB_HOST_SANDBOX_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#define TERMINAL_KEYS   4096
#define TERMINAL_OUTPUT 4096

/* Which of the standard streams are a terminal, as bits. */
unsigned terminal_streams(void);

/* ---- inside: init of the namespace, before the program ---- */

/* /dev/pts and /dev/ptmx of the mount namespace's own. 0 or -errno. */
int terminal_mounts(void);
/*
 * Makes the pseudo-terminal with the settings of the user's, takes it as the controlling one of this
 * session, and puts it in the place of these streams. Its master side, or -errno.
 */
int terminal_make(unsigned streams);
/* Whether a program with these streams has the keys at once. */
bool terminal_has_keys(unsigned streams);
/* The stream that output to the terminal goes to. */
int terminal_stream(unsigned streams);
/* Gives the keys to a process group of this session. */
void terminal_set_group(unsigned streams, pid_t group);
/* Closes all other descriptors of terminals. */
void terminal_close_others(void);
/* Refuses TIOCSTI and TIOCLINUX, which type into a terminal, for this process and all that it starts. 0
 * or -errno. */
int terminal_refuse_typing(void);

/* ---- outside ---- */

struct terminal {
    int user, master; /* -1: none */
    bool keys;        /* the program has them */
    bool raw;         /* the user's terminal is, and `was` how it was before */
    bool suspended;   /* the user's last key was the one that stops a job */
    struct termios was;
    size_t n;
    char typed[TERMINAL_KEYS]; /* and not taken by the program yet */
    int out;             /* the user's terminal, opened anew, which does not block; else `user` */
    size_t shown, n_out; /* output[shown..n_out) is not written yet; nothing is read meanwhile */
    char output[TERMINAL_OUTPUT];
};

/* The user's terminal for writing without waiting, before the namespaces are made: O_NONBLOCK of the stream
 * itself would be the shell's, too. -1: it cannot be opened, as that of another user, after su. */
int terminal_open(unsigned streams);
/* master: as of terminal_make(); out: as of terminal_open(). They are this one's from now on. */
void terminal_begin(struct terminal *t, unsigned streams, int master, int out);
/* The program has the keys from now on, or goes on after it was stopped. */
void terminal_give_keys(struct terminal *t);
/* The user's terminal is as it was, as long as the user's shell has it. */
void terminal_pause(struct terminal *t);
/* The window's size. */
void terminal_resize(const struct terminal *t);
/* What to wait for: POLLIN and POLLOUT at *user and *master, 0: nothing. Ms until it is to be called
 * again, -1: never. */
int terminal_wants(struct terminal *t, short *user, short *master);
/* Copies after a poll(2) that returned this. */
void terminal_copy(struct terminal *t, short user, short master);
/* After the program's end: what it has written still, and the user's terminal as it was. `signals`: a
 * signalfd; one that ends programs ends the wait for a terminal that takes no output. */
void terminal_end(struct terminal *t, int signals);

#endif
