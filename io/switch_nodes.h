/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes a trib-switch runs, by its command line. */
#ifndef TRIB_IO_SWITCH_NODES_H
#define TRIB_IO_SWITCH_NODES_H

#include "fabric/fabric.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether it is the process that joins this machine to the others (io/trunk). */
bool switch_is_trunk(const struct fabric *f, const char *proc);
/*
 * Fills mine[fab->n_nodes] with those of `list` (--nodes) or of the process `named` (--proc), or, where
 * both are NULL, with all. *proc: the process whose bell and histogram it uses; name: what it runs under.
 * 0 or -errno, with a message on stderr.
 */
int switch_nodes(const struct fabric *f, const char *list, const char *named, bool *mine,
                 unsigned *proc, char *name, size_t size);

#endif
