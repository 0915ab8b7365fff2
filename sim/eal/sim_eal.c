/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/eal/sim_eal.h"

#include "system/own_clear.h"

#include <fcntl.h>
#include <rte_eal.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static int first_core(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        for (int c = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &set))
                return c;
    return 0;
}

int sim_eal_start(unsigned mib)
{
    char prog[] = "trib-sim", no_huge[] = "--no-huge", no_shconf[] = "--no-shconf",
         no_pci[] = "--no-pci", no_telemetry[] = "--no-telemetry", m[] = "-m", mb[16],
         iova[] = "--iova-mode=va", log[] = "--log-level=*:error", prefix[48], l[] = "-l", core[16];
    char *argv[] = {prog, no_huge, no_shconf, no_pci, no_telemetry, m,   mb,
                    iova, log,     prefix,    l,      core,         NULL};

    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof(set), &set) == 0;

    snprintf(mb, sizeof(mb), "%u", mib);
    snprintf(prefix, sizeof(prefix), "--file-prefix=trib%d", (int)getpid());
    snprintf(core, sizeof(core), "%d", first_core());
    if (rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv) < 0)
        return -1;
    if (known) /* undo the EAL's binding, as it would bind every such process to the same core */
        sched_setaffinity(0, sizeof(set), &set);
    return 0;
}

void sim_eal_end(void)
{
    char dir[256];

    /* Remove the runtime directory: the EAL creates it even if nothing is shared, and leaves it. */
    snprintf(dir, sizeof(dir), "%s", rte_eal_get_runtime_dir());
    rte_eal_cleanup();
    (void)own_rmdir(AT_FDCWD, dir);
}
