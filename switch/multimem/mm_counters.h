/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of multimem: one list gives the struct and the names in telemetry. */
#ifndef TRIB_SWITCH_MULTIMEM_MM_COUNTERS_H
#define TRIB_SWITCH_MULTIMEM_MM_COUNTERS_H

#include <stdint.h>

/* X(name) */
#define MM_COUNTERS(X)                                                                             \
    X(mm_groups) /* current value */                                                               \
    X(mm_groups_peak)                                                                              \
    X(mm_bytes) /* current value: reserved buffers */                                              \
    X(mm_mbufs) /* current value: reserved */                                                      \
    X(mm_binds)                                                                                    \
    X(mm_binds_refused)                                                                            \
    X(mm_unbinds)                                                                                  \
    X(mm_aborts)     /* groups that were aborted */                                                \
    X(mm_loads)      /* slices read and reduced */                                                 \
    X(mm_load_bytes) /* of their results */                                                        \
    X(mm_loads_used) /* current value */                                                           \
    X(mm_loads_peak)                                                                               \
    X(mm_loads_again) /* responses restarted from an earlier PSN */                                \
    X(mm_stores)      /* slices written to members */                                              \
    X(mm_store_bytes) /* as received */                                                            \
    X(mm_stores_used) /* current value */                                                          \
    X(mm_stores_peak)                                                                              \
    X(mm_stores_late)   /* RNR NAKs: beyond the window, or before all members were ready */        \
    X(mm_bad_keys)      /* READs and WRITEs refused: wrong rkey */                                 \
    X(mm_bad_addresses) /* outside of the region, or not aligned to elements */                    \
    X(mm_refused)       /* because the group has failed, or has lost a member */

struct mm_counters {
#define X(n) uint64_t n;
    MM_COUNTERS(X)
#undef X
};

#endif
