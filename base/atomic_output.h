/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results on their way out: JSON files, which are either whole or as they were before, and standard
 * output, of which somebody is to hear when it takes no more.
 */
#ifndef TRIB_BASE_ATOMIC_OUTPUT_H
#define TRIB_BASE_ATOMIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

/* Would atomic_output_json() make a file of its own, rather than write to a pipe, a device or /dev/stdout? */
bool atomic_output_is_file(const char *path);
/* Could atomic_output_json() write there? Makes and removes what that would make. 0 or -errno. */
int atomic_output_can_write(const char *path);
/*
 * Writes j with jansson's flags. A file is written under a temporary name beside it, which then
 * takes its place, so that a reader never sees half of it (where path is a link, that is its
 * target); what is none is written at its end. 0 or -errno.
 */
int atomic_output_json(const char *path, const struct json_t *j, size_t flags);
/* Did standard output take everything? If not, says so on stderr, as `program`, and is not 0. */
int atomic_output_end(const char *program);

#endif
