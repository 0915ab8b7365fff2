/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of an rnic. One list gives the struct and the names in telemetry; dropped packets are
 * counted by reason.
 */
#ifndef TRIB_ROCE_COUNTERS_H
#define TRIB_ROCE_COUNTERS_H

#include "roce/reasons.h"

#include <stdint.h>

/* X(name), each a number of packets unless it says otherwise:
 *   tx_bytes, rx_bytes        layer 2
 *   retransmits               request packets sent again
 *   timeouts                  an acknowledgement of a QP was overdue
 *   timer_pauses              timeouts extended because a process on the path had not run
 *   error_naks_*              refused requests: invalid, access, operation
 *   read_gaps                 READs requested again because responses were lost
 *   duplicates                requests received again
 *   ce_marks                  received with the congestion mark
 *   cnps_*                    congestion notifications
 *   rate_cuts                 notifications that made a queue pair slower
 *   no_mbufs                  times that sending waited for the pool
 *   qp_errors                 queue pairs that entered the error state by themselves */
#define ROCE_COUNTERS(X)                                                                           \
    X(tx_packets)                                                                                  \
    X(tx_bytes)                                                                                    \
    X(rx_packets)                                                                                  \
    X(rx_bytes)                                                                                    \
    X(retransmits)                                                                                 \
    X(timeouts)                                                                                    \
    X(timer_pauses)                                                                                \
    X(acks_sent)                                                                                   \
    X(acks_received)                                                                               \
    X(seq_naks_sent)                                                                               \
    X(seq_naks_received)                                                                           \
    X(rnr_naks_sent)                                                                               \
    X(rnr_naks_received)                                                                           \
    X(error_naks_sent)                                                                             \
    X(error_naks_received)                                                                         \
    X(read_gaps)                                                                                   \
    X(duplicates)                                                                                  \
    X(icrc_errors)                                                                                 \
    X(ce_marks)                                                                                    \
    X(cnps_sent)                                                                                   \
    X(cnps_received)                                                                               \
    X(rate_cuts)                                                                                   \
    X(no_mbufs)                                                                                    \
    X(qp_errors)

struct roce_counters {
#define X(n) uint64_t n;
    ROCE_COUNTERS(X)
#undef X
    uint64_t drops[ROCE_REASON_COUNT];
};

/* Calls emit for every counter; drops are named "drop_<reason>". */
void roce_counters_print(const struct roce_counters *c,
                         void (*emit)(void *ctx, const char *name, uint64_t v), void *ctx);

#endif
