/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that a name means: a file; all files of a folder, in order of their names, numbers in them by
 * value; or, of a prefix as astra-sim has it, PREFIX.0.et, PREFIX.1.et and so on.
 */
#ifndef TRIB_TRACE_TRACE_FILES_H
#define TRIB_TRACE_TRACE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_files {
    struct trace_name {
        char *path;
        uint32_t rank; /* N of x.N.et, x.N.json; APP_ANY: it has none */
    } * file;
    char *groups; /* comm_group.json beside them; NULL: there is none */
    size_t n, room;
    bool folder;
};

/* 0, or -errno. trace_files_free() in any case. */
int trace_files_find(struct trace_files *f, const char *path);
void trace_files_free(struct trace_files *f);

#endif
