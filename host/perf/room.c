#include "host/perf/room.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

size_t room_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    unsigned long long kib = 0;
    struct rlimit lim;
    size_t bytes = SIZE_MAX;
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            bytes = (size_t)kib * 1024;
    if (f)
        fclose(f);
    if (!getrlimit(RLIMIT_AS, &lim) && lim.rlim_cur != RLIM_INFINITY && lim.rlim_cur < bytes)
        bytes = lim.rlim_cur;
    return bytes;
}

unsigned room_cores(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    long long quota, period;
    unsigned n = 1;
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = (unsigned)CPU_COUNT(&set);
    if (f && fscanf(f, "%lld %lld", &quota, &period) == 2 && period > 0 && quota / period < n)
        n = quota > period ? (unsigned)(quota / period) : 1;
    if (f)
        fclose(f);
    return n;
}
