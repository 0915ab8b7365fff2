/* SPDX-License-Identifier: BSD-3-Clause */
/* Without a descriptor that is kept: programs close those that they do not know, and reuse numbers. */
#include "host/session/liveness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_FIELD 22 /* proc(5), /proc/PID/stat */

#define UNKNOWN UINT64_MAX

/* When a process has started; 0: there is none, or only its exit status is left; UNKNOWN, as where
 * no descriptor is left. */
static uint64_t start_of(int pid)
{
    char path[32], text[1024];
    const char *s;
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? 0 : UNKNOWN;
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    s = strrchr(text, ')'); /* a name may contain anything; nothing to read: it is gone by now */
    if (!s || s[1] != ' ' || !s[2] || strchr("ZXx", s[2]))
        return 0;
    for (unsigned field = 2; s && field < START_FIELD; field++)
        s = strchr(s + 1, ' ');
    unsigned long long start = 0;
    return s && sscanf(s, " %llu", &start) == 1 ? start : 0;
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
