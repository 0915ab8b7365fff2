/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK for tests: the EAL, initialised once without privileges, and pools of frames. */
#ifndef TRIB_TESTS_SUPPORT_EAL_H
#define TRIB_TESTS_SUPPORT_EAL_H

#include "roce/frame.h"

/* Starts the EAL on one core, without huge pages, devices or files that others see. Later calls do
 * nothing. Ends the program where it fails. */
void test_eal_init(void);

/* A pool of n frames without a cache, so that rte_mempool_avail_count() is exact. Exits on
 * failure. */
struct rte_mempool *test_pool(unsigned n);

#endif
