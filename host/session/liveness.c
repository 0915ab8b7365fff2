/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps no descriptor open: programs close descriptors that they do not know, and reuse numbers. */
#include "host/session/liveness.h"

#include "system/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNKNOWN UINT64_MAX

/* Start time of a process. 0: no such process, or a zombie. UNKNOWN: /proc cannot be read, as when
 * no descriptor is free. */
static uint64_t start_of(int pid)
{
    char stat[PROCESS_STAT];
    ssize_t n = process_file(pid, "stat", stat, sizeof(stat));
    const char *state = process_stat_field(stat, PROCESS_STAT_STATE), *start;

    if (n < 0)
        return n == -ENOENT || n == -ESRCH ? 0 : UNKNOWN;
    if (!state || !*state || strchr("ZXx", *state)) /* an empty file: the process has just ended */
        return 0;
    start = process_stat_field(stat, PROCESS_STAT_START);
    return start ? strtoull(start, NULL, 10) : 0;
}

static uint64_t own_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

struct process_id liveness_self(void)
{
    uint64_t start = start_of(getpid());

    return (struct process_id){own_space(), start == UNKNOWN ? 0 : start, getpid(), 0};
}

bool liveness_sees(const struct process_id *p)
{
    return p->space && p->start && p->space == own_space() && start_of(p->pid) == p->start;
}

bool liveness_ended(const struct process_id *p)
{
    uint64_t start = start_of(p->pid);

    return start != UNKNOWN && start != p->start;
}
