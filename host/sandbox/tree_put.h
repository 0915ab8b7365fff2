/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIB_HOST_SANDBOX_TREE_PUT_H
#define TRIB_HOST_SANDBOX_TREE_PUT_H

/* Writes a file with the text and a newline, and makes its directories below dir. 0 or -errno. */
int put(const char *dir, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
