/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "host/keep/keep.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* /proc/vmstat counts for the whole machine, and includes kills by limits of control groups. */
uint64_t oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    unsigned long long n = 0;
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "oom_kill %llu", &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

void oom_describe(char *text, size_t size, int status, bool out_of_memory)
{
    T_ASSERT(WIFSIGNALED(status) || WIFEXITED(status), "a process is described that has not ended");
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)%s%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "",
                 WTERMSIG(status) != SIGKILL ? ""
                 : out_of_memory ? ", since the machine or its control group ran out of "
                                   "memory"
                                 : "");
    else
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(status));
}
