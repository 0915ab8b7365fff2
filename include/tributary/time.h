/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computation in fabric time. On a fabric that runs 1,000 times slower than this machine's clock, a
 * program computes 1,000 times too fast beside its communication. So it says how long its computation
 * takes on the machine that it stands for:
 *
 *   trib_compute_begin();
 *   forward(); backward();           what this machine needs to have a result; may be nothing
 *   trib_compute(850);               850 us of fabric time since the begin
 *   trib_all_reduce(...);
 *
 * Operations proceed meanwhile if another thread is in trib_test() or trib_wait() of them.
 *
 * Needs TRIB_RUN, as trib exec sets it; no communicator. Threads: any, each has a begin of its own.
 */
#ifndef TRIBUTARY_TIME_H
#define TRIBUTARY_TIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Begins a computation of the calling thread. 0; -ENODEV: no fabric is up in TRIB_RUN; a message on stderr
 * says so. */
int trib_compute_begin(void);

/*
 * Waits until `us` microseconds of fabric time have passed since this thread's trib_compute_begin(), or since
 * now if there was none after its last trib_compute(). Returns the lag in ps of fabric time: how much later
 * than declared it returns, because this machine took longer or woke it late. 0: not at all.
 * -EINVAL: us is negative, or more than 1e12; -ENODEV.
 *
 * A process whose lag is more than 2 % of the declared time says so on stderr at its end, with the dilation
 * that would have sufficed.
 */
int64_t trib_compute(double us);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
