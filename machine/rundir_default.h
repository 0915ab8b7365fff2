/* SPDX-License-Identifier: BSD-3-Clause */
/* A header of its own, because programs that read larger confs than rundir.h's need this path, too. */
#ifndef TRIB_MACHINE_RUNDIR_DEFAULT_H
#define TRIB_MACHINE_RUNDIR_DEFAULT_H

#include <stddef.h>

/* Default run directory of a fabric, without TRIB_RUN: parent/tributary-UID/fabric. parent NULL:
 * XDG_RUNTIME_DIR, else /tmp; fabric NULL: parent/tributary-UID. 0 or -ENAMETOOLONG. */
int rundir_default(char *buf, size_t size, const char *parent, const char *fabric);

#endif
