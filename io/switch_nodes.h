/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a trib-switch runs, by its command line. */
#ifndef TRIB_IO_SWITCH_NODES_H
#define TRIB_IO_SWITCH_NODES_H

#include "fabric/fabric.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether `proc` names the process that joins this machine to others (io/trunk). */
bool switch_is_trunk(const struct fabric *f, const char *proc);
/*
 * Fills mine[fab->n_nodes] with the nodes of `list` (--nodes), of the process `named` (--proc), or, if
 * both are NULL, with all. *proc: the process whose bell and lag histogram it uses; name: the name that
 * it runs under. 0 or -errno, with a message on stderr.
 */
int switch_nodes(const struct fabric *f, const char *list, const char *named, bool *mine,
                 unsigned *proc, char *name, size_t size);

#endif
