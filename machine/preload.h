/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the emulated HCA into programs that are started later. */
#ifndef TRIB_MACHINE_PRELOAD_H
#define TRIB_MACHINE_PRELOAD_H

/*
 * Prepends the library to LD_PRELOAD, but behind sanitizer runtimes that the user has put first. Does
 * nothing if it is there already, as in a shell started by trib. The loader splits that variable at
 * spaces, so the folder of a path with spaces goes to LD_LIBRARY_PATH instead. 0, or -errno; -EINVAL:
 * neither variable can hold the path (a colon); -EPERM, with a message on stderr: an untrusted user can
 * change the library.
 */
int preload_set(const char *lib);
#endif
