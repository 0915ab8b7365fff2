/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tributary/time.h, under `trib exec --clock fabric`, so that CLOCK_MONOTONIC is the fabric time by
 * which it is judged. usage: coll_compute [late]: late declares less than it takes, for what is told
 * at the end.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tributary/time.h>

#define TRIES 10
/* CLOCK_MONOTONIC has whole nanoseconds; the time by which computation is judged, picoseconds. */
#define ROUNDED 0.001

static int failed;

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void busy(double us)
{
    double end = now_us() + us;

    while (now_us() < end)
        ;
}

/* From begin to return: never less than declared or worked, and the lag is what is more. */
static void check(const char *what, double declared, double worked, bool begin)
{
    double want = begin && worked > declared ? worked : begin ? declared : declared + worked;
    double took = 0, lag = 0, sum = 0;

    for (int i = 0; i < TRIES; i++) {
        double from = now_us();

        if (begin)
            trib_compute_begin();
        busy(worked);
        lag = (double)trib_compute(declared) / 1e6;
        took = now_us() - from;
        sum = (begin ? 0 : worked) + declared + lag;
        if (took < want - ROUNDED || took < sum - 2 * ROUNDED ||
            (took < want * 1.1 && took < sum * 1.1))
            break;
    }
    if (took < want - ROUNDED || took > want * 1.1 || lag < 0 || fabs(took - sum) > 0.1 * want) {
        printf("FAILED %s: took %.3f us with a lag of %.3f us, expected %.3f us\n", what, took, lag,
               want);
        failed = 1;
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        for (int i = 0; i < 4; i++) {
            trib_compute_begin();
            busy(100);
            if ((double)trib_compute(50) / 1e6 < 50 - ROUNDED)
                return 1;
        }
        return 0;
    }
    if (trib_compute(0) == -ENODEV)
        return 3;
    check("declared alone", 200, 0, false);
    check("after work", 100, 200, false);
    check("begun", 200, 0, true);
    check("begun, with work in it", 300, 200, true);
    check("begun, with more work than declared", 100, 300, true);
    check("a begin is used up", 200, 0, false);
    if (trib_compute(-1) != -EINVAL || trib_compute(NAN) != -EINVAL ||
        trib_compute(INFINITY) != -EINVAL || trib_compute(0) < 0)
        failed = 1;
    printf("coll_compute: %s\n", failed ? "FAILED" : "ok");
    return failed;
}
