/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Baseline of a simulation with data: memcpy of as many payload bytes, from and to buffers of the
 * run's sizes, a packet at a time and the ranks in turn as a ring has it, so that neither end is in
 * a cache. Prints bytes a second of CPU time.
 *
 * usage: bench_sim RANKS BYTES TOTAL: of each buffer, and to be copied
 */
#include "sim/world/stopwatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PACKET 4096u

static unsigned char *buffer(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("bench_sim");
        exit(1);
    }
    return memset(p, 1, bytes);
}

int main(int argc, char **argv)
{
    unsigned n = argc == 4 ? (unsigned)atoi(argv[1]) : 0;
    size_t bytes = argc == 4 ? strtoull(argv[2], NULL, 0) / PACKET * PACKET : 0, at = 0;
    unsigned long long total = argc == 4 ? strtoull(argv[3], NULL, 0) : 0, done = 0;
    unsigned char *in, *out;
    double s;

    if (!n || !bytes || !total) {
        fprintf(stderr, "usage: bench_sim RANKS BYTES TOTAL\n");
        return 2;
    }
    in = buffer(n * bytes);
    out = buffer(n * bytes);
    s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    for (; done < total; at = at + PACKET < bytes ? at + PACKET : 0)
        for (unsigned r = 0; r < n; r++, done += PACKET)
            memcpy(out + (r + 1) % n * bytes + at, in + r * bytes + at, PACKET);
    s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - s;
    printf("%.0f\n", (double)done / s);
    return out[total % bytes] == 1 ? 0 : 1;
}
