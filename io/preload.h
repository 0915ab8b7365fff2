/* SPDX-License-Identifier: BSD-3-Clause */
/* Having the emulated HCA loaded into programs that are started later. */
#ifndef TRIB_IO_PRELOAD_H
#define TRIB_IO_PRELOAD_H

/*
 * Puts the library in front of LD_PRELOAD, once: a shell of trib has it when it starts trib exec.
 * The loader takes spaces in that variable for separators: a path with spaces goes to
 * LD_LIBRARY_PATH instead. 0, or -errno; -EINVAL: no program can be told of this path (a colon).
 */
int preload_set(const char *lib);
#endif
