/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that users name as input: confs, plans, workloads, jobs, schedules. All are opened here: a FIFO, a
 * device or an endless file in place of one is refused and never waited for.
 *
 * A pipe is read if somebody writes to it: /dev/stdin, and what a shell makes of <(command). A FIFO that
 * nobody has open for writing is refused, as is a writer that sends nothing for
 * INPUT_SILENT_S.
 */
#ifndef TRIB_SYSTEM_INPUT_H
#define TRIB_SYSTEM_INPUT_H

#include <stddef.h>
#include <stdio.h>

#define INPUT_WHY      128          /* bytes of a reason */
#define INPUT_MOST     (256u << 20) /* default limit of a file's bytes */
#define INPUT_SILENT_S 10

/* Opens a plain file for reading. A descriptor (close-on-exec) or -errno; -EINVAL: it is not a plain file. */
int input_open(const char *path);
/* The same as a stream; NULL: errno. */
FILE *input_stream(const char *path);
/*
 * Reads a plain file, a pipe or a terminal. Returns its content, allocated, with a 0 byte after it that *len
 * does not count. NULL: errno is set, and `why` (INPUT_WHY bytes) says what was found instead; EFBIG: it has
 * more than `most` bytes.
 */
char *input_text(const char *path, size_t most, size_t *len, char *why);
/* The same for plain files only. */
char *input_file(const char *path, size_t most, size_t *len, char *why);

#endif
