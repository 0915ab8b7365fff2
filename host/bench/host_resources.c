/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/host_resources.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB 1048576.0

static size_t host_resources_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Reads the value of a line "key 123" or "key: 123 kB"; key "": the file has only a number. False:
 * no such file or line, or "max". */
static bool value_of(const char *path, const char *key, unsigned long long *value)
{
    FILE *f = fopen(path, "re");
    char line[256];
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f)) {
        size_t n = strlen(key);

        found = !strncmp(line, key, n) && strspn(line + n, ": \t0123456789") &&
                sscanf(line + n + strspn(line + n, ": \t"), "%llu", value) == 1;
    }
    if (f)
        fclose(f);
    return found;
}

/* ---- control groups ---- */

/* Memory left to one group: its limit less its unreclaimable use. */
static size_t left_in(const char *dir, bool v2)
{
    unsigned long long limit, used, cache = 0;
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!value_of(path, "", &limit) || limit >= SIZE_MAX / 4) /* v1 says "none" by a large number */
        return SIZE_MAX;
    snprintf(path, sizeof(path), "%s/%s", dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (!value_of(path, "", &used))
        return SIZE_MAX;
    snprintf(path, sizeof(path), "%s/memory.stat", dir);
    if (!value_of(path, v2 ? "inactive_file" : "total_inactive_file", &cache))
        cache = 0;
    used = used > cache ? used - cache : 0;
    return limit > used ? (size_t)(limit - used) : 0;
}

/* The least of what is left to the group and to all groups above it. Skips names that do not exist,
 * since a container may see its own group as the root. */
static size_t left_under(const char *root, char *name, bool v2)
{
    size_t left = SIZE_MAX;
    char dir[PATH_MAX];
    char *end;

    for (;;) {
        snprintf(dir, sizeof(dir), "%s%s", root, name);
        left = host_resources_least(left, left_in(dir, v2));
        end = strrchr(name, '/');
        if (!end)
            return left;
        *end = '\0';
    }
}

/* Lines "4:cpu,memory:/name" of version 1, "0::/name" of version 2. */
size_t host_resources_cgroup(const char *of, const char *root)
{
    FILE *f = fopen(of, "re");
    size_t left = SIZE_MAX;
    char line[PATH_MAX], v1[PATH_MAX];

    snprintf(v1, sizeof(v1), "%s/memory", root);
    while (f && fgets(line, sizeof(line), f)) {
        char *which = strchr(line, ':'), *name = which ? strchr(which + 1, ':') : NULL;

        if (!name)
            continue;
        *name++ = '\0';
        name[strcspn(name, "\n")] = '\0';
        if (!*++which)
            left = host_resources_least(left, left_under(root, name, true));
        else if (!strcmp(which, "memory") || strstr(which, ",memory") || strstr(which, "memory,"))
            left = host_resources_least(left, left_under(v1, name, false));
    }
    if (f)
        fclose(f);
    return left;
}

/* ---- the whole ---- */

void host_resources_find(struct host_resources *r)
{
    unsigned long long n;
    struct rlimit lim;
    size_t group = host_resources_cgroup("/proc/self/cgroup", "/sys/fs/cgroup");

    *r = (struct host_resources){.bytes = SIZE_MAX, .addresses = SIZE_MAX};
    if (value_of("/proc/meminfo", "MemAvailable", &n)) {
        r->bytes = (size_t)n * 1024;
        snprintf(r->by, sizeof(r->by), "MemAvailable");
    }
    if (group < r->bytes) {
        r->bytes = group;
        snprintf(r->by, sizeof(r->by), "the cgroup's limit");
    }
    if (!getrlimit(RLIMIT_AS, &lim) && lim.rlim_cur != RLIM_INFINITY) {
        if (!value_of("/proc/self/status", "VmSize", &n))
            n = 0;
        r->addresses = lim.rlim_cur > n * 1024 ? (size_t)(lim.rlim_cur - n * 1024) : 0;
    }
}

bool host_resources_has(uint64_t bytes, uint64_t addresses, const char *what, char *err,
                        size_t size)
{
    struct host_resources r;

    host_resources_find(&r);
    if (bytes > r.bytes)
        snprintf(err, size, "found %.0f MiB of memory (%s), expected about %.0f%s",
                 (double)r.bytes / MIB, r.by, (double)bytes / MIB, what);
    else if (addresses > r.addresses)
        snprintf(err, size, "found %.0f MiB of addresses (ulimit -v), expected about %.0f%s",
                 (double)r.addresses / MIB, (double)addresses / MIB, what);
    return bytes <= r.bytes && addresses <= r.addresses;
}

unsigned host_resources_cores(void)
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
