/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token of a host: a secret that the process of its NIC makes, and that whoever connects to one of
 * the host's slots has to present (the secret of memif's INIT message). `trib exec` and trib-perf
 * hand a sealed copy of the file port/HOST/host.token of the run directory to the program, as a descriptor
 * whose number is in TRIB_TOKEN. A program that has closed it, and whose run directory is not hidden
 * from it, reads the file by its path.
 */
#ifndef TRIB_MACHINE_TOKEN_H
#define TRIB_MACHINE_TOKEN_H

#include "machine/rundir.h"

#define TOKEN_BYTES 24 /* text, with its terminating 0 */
#define TOKEN_ENV   "TRIB_TOKEN"

/* Makes the host's token, or reads the one that an earlier process of its NIC has made. 0 or
 * -errno. */
int token_make(const struct rundir *rd, const char *host, char token[TOKEN_BYTES]);
/* The one that was inherited, else that of the file. 0 or -errno. */
int token_find(const struct rundir *rd, const char *host, char token[TOKEN_BYTES]);
/* Opens a sealed copy where programs leave descriptors alone, and sets TRIB_TOKEN. The descriptor is
 * inherited. 0 or -errno. */
int token_hand_over(const struct rundir *rd, const char *host);

#endif
