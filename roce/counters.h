/*
 * What an rnic counts. One list gives the struct and the names of telemetry; dropped packets are
 * counted by reason.
 */
#ifndef TRIB_ROCE_COUNTERS_H
#define TRIB_ROCE_COUNTERS_H

#include "roce/reasons.h"

#include <stdint.h>

/* X(name) */
#define ROCE_COUNTERS(X)                                                                           \
    X(tx_packets)                                                                                  \
    X(tx_bytes) /* layer 2 */                                                                      \
    X(rx_packets)                                                                                  \
    X(rx_bytes)                                                                                    \
    X(retransmits) /* request packets sent again */                                                \
    X(timeouts)                                                                                    \
    X(acks_sent)                                                                                   \
    X(acks_received)                                                                               \
    X(seq_naks_sent)                                                                               \
    X(seq_naks_received)                                                                           \
    X(rnr_naks_sent)                                                                               \
    X(rnr_naks_received)                                                                           \
    X(error_naks_sent) /* refused requests: invalid, access, operation */                          \
    X(error_naks_received)                                                                         \
    X(read_gaps)  /* READ responses missed, asked for again */                                     \
    X(duplicates) /* requests received again */                                                    \
    X(icrc_errors)                                                                                 \
    X(ce_marks)  /* frames received with the congestion mark */                                    \
    X(no_mbufs)  /* times that sending waited for the pool */                                      \
    X(qp_errors) /* queue pairs that went to the error state by themselves */

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
