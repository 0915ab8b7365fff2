/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of an aggregation node: one list gives the struct and the names in telemetry. */
#ifndef TRIB_SWITCH_REDUCE_AN_COUNTERS_H
#define TRIB_SWITCH_REDUCE_AN_COUNTERS_H

#include <stdint.h>

/* X(name) */
#define AN_COUNTERS(X)                                                                             \
    X(groups) /* current value */                                                                  \
    X(groups_peak)                                                                                 \
    X(groups_ended)  /* by the last LEAVE */                                                       \
    X(slots_granted) /* current value: windows of all groups */                                    \
    X(slots_used)    /* current value: waiting for a child */                                      \
    X(slots_peak)                                                                                  \
    X(mbufs_promised) /* current value: reserved by grants */                                      \
    X(joins_granted)                                                                               \
    X(joins_refused)                                                                               \
    X(joins_over_share)  /* refused: its host alone holds its share (among joins_refused) */       \
    X(groups_gave_way)   /* aborted, incomplete, for a group that found no room */                 \
    X(groups_incomplete) /* aborted because some member did not join in time */                    \
    X(windows_smaller)   /* of idle groups, for one that found less room than it asked for */      \
    X(windows_larger)    /* of those, again, after others had ended */                             \
    X(beyond_window)     /* refused for now: sent before their window was made smaller */          \
    X(joins_stale)       /* repeated after their group had ended */                                \
    X(leaves)                                                                                      \
    X(aborts) /* groups aborted */                                                                 \
    X(aborts_unanswered)                                                                           \
    X(peers_down)                                                                                  \
    X(probes)                                                                                      \
    X(keepalives)      /* sent on idle edges */                                                    \
    X(edges_silent)    /* of these edges, ended because no answer came */                          \
    X(control_bad)     /* invalid control messages */                                              \
    X(control_forged)  /* sent by a process or node that may not send them */                      \
    X(control_dropped) /* send queue full; the requester repeats */                                \
    X(control_repeated)                                                                            \
    X(operations) /* whole vectors reduced */                                                      \
    X(messages)                                                                                    \
    X(slots)          /* reduced */                                                                \
    X(results)        /* relayed from the parent */                                                \
    X(bytes_in)       /* of elements, from children */                                             \
    X(bytes_out)      /* of elements, reduced */                                                   \
    X(results_copied) /* no child's frame could be reused for the result */

struct an_counters {
#define X(n) uint64_t n;
    AN_COUNTERS(X)
#undef X
};

#endif
