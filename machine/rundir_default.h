/* SPDX-License-Identifier: BSD-3-Clause */
/* Apart from rundir.h, whose fabric is one that runs: programs that read larger confs ask for this path, too. */
#ifndef TRIB_MACHINE_RUNDIR_DEFAULT_H
#define TRIB_MACHINE_RUNDIR_DEFAULT_H

#include <stddef.h>

/* Where a fabric's run directory is unless TRIB_RUN says so: in parent (NULL: XDG_RUNTIME_DIR, else /tmp)
 * below a directory of this user's. fabric NULL: that one. 0 or -ENAMETOOLONG. */
int rundir_default(char *buf, size_t size, const char *parent, const char *fabric);

#endif
