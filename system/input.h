/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that users name to be read: confs, plans, workloads, jobs, schedules. All are opened here: a
 * FIFO, a device or an endless file in the place of one is refused and never waited for.
 *
 * A pipe is read where somebody writes to it: /dev/stdin, and what a shell makes of <(command). A
 * FIFO that nobody has open for writing, and a writer that is silent for INPUT_SILENT_S, are
 * refused.
 */
#ifndef TRIB_SYSTEM_INPUT_H
#define TRIB_SYSTEM_INPUT_H

#include <stddef.h>
#include <stdio.h>

#define INPUT_WHY      128          /* bytes for what was found */
#define INPUT_MOST     (256u << 20) /* bytes of a file of which nothing else is known */
#define INPUT_SILENT_S 10

/* A plain file, open for reading (close-on-exec); -errno; -EINVAL: it is something else. */
int input_open(const char *path);
/* The same as a stream; NULL: errno. */
FILE *input_stream(const char *path);
/*
 * What is in a plain file, a pipe or a terminal, and a byte of 0 after it, which *len does not count:
 * the caller frees it. NULL: errno, and `why` (INPUT_WHY bytes) says what was found instead;
 * EFBIG: more than `most` bytes.
 */
char *input_text(const char *path, size_t most, size_t *len, char *why);
/* The same of a plain file alone. */
char *input_file(const char *path, size_t most, size_t *len, char *why);

#endif
