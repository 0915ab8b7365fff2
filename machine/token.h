/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token of a host: a secret made by the process of its NIC. Whoever connects to a slot of the host has
 * to present it (the secret of memif's INIT message). `trib exec` and trib-perf pass a sealed copy of
 * the file port/HOST/host.token of the run directory to the program, as a descriptor whose number is in
 * TRIB_TOKEN. A program that has closed the descriptor reads the file, unless the run directory is hidden
 * from it.
 */
#ifndef TRIB_MACHINE_TOKEN_H
#define TRIB_MACHINE_TOKEN_H

#include "machine/rundir.h"

#define TOKEN_BYTES 24 /* text, with its terminating 0 */
#define TOKEN_ENV   "TRIB_TOKEN"

/* Makes the host's token, or reads the one that an earlier process of its NIC has made. 0 or -errno. */
int token_make(const struct rundir *rd, const char *host, char token[TOKEN_BYTES]);
/* Reads the inherited token, or else the file. 0 or -errno. */
int token_find(const struct rundir *rd, const char *host, char token[TOKEN_BYTES]);
/* Opens a sealed copy that programs inherit, at a number that they leave alone, and sets TRIB_TOKEN. 0
 * or -errno. */
int token_hand_over(const struct rundir *rd, const char *host);

#endif
