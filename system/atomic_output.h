/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of results: a JSON file is replaced as a whole or not at all, and a write error on standard
 * output is reported.
 */
#ifndef TRIB_SYSTEM_ATOMIC_OUTPUT_H
#define TRIB_SYSTEM_ATOMIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_t;

/* True: atomic_output_json() replaces a file at path; false: it appends to a pipe, a device or
 * /dev/stdout. */
bool atomic_output_is_file(const char *path);
/* Whether atomic_output_json() can write there: 0 or -errno. Creates and removes the temporary
 * file. */
int atomic_output_can_write(const char *path);
/*
 * Writes j with jansson's flags. A file is written under a temporary name in the same directory and renamed
 * over path (over the target if path is a link), so a reader never sees half of it. It keeps the permissions
 * of the file that it replaces. Output to anything but a file is appended. 0 or -errno; -EPERM: a link, a
 * FIFO or a file of another user is in the way (system/own_path.h).
 */
int atomic_output_json(const char *path, const struct json_t *j, size_t flags);
/* The same for the content of a file, from its beginning. */
int atomic_output_copy(const char *path, FILE *from);
/* The same for text. */
int atomic_output_text(const char *path, const char *text);
/*
 * The path to write to: path itself, except that "-" is standard output. From then on, whatever else the
 * process prints there goes to standard error, so that a reader gets the results alone; all results written
 * to "-" go into one stream, in order. NULL: no descriptor is left (errno).
 */
const char *atomic_output_path(const char *path);
/* Flushes standard output. 0, or -EIO if not all was written; then it says so on stderr as `program`. */
int atomic_output_end(const char *program);

#endif
