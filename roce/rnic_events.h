/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that an rnic records in its ring (base/events.h): changes of state of its queue pairs,
 * NAKs, timeouts and deferred responses. Not for other rooms.
 */
#ifndef TRIB_ROCE_RNIC_EVENTS_H
#define TRIB_ROCE_RNIC_EVENTS_H

#include "roce/rnic.h"

/* X(NAME, text): the first %u is the number of the queue pair. The first seven are the states, in
 * the order of enum qp_state. */
#define RNIC_EVENTS(X)                                                                             \
    X(RESET, "QP %u: RESET, from state %u")                                                        \
    X(INIT, "QP %u: INIT, from state %u")                                                          \
    X(RTR, "QP %u: RTR, from state %u")                                                            \
    X(RTS, "QP %u: RTS, from state %u")                                                            \
    X(SQD, "QP %u: SQD, from state %u")                                                            \
    X(SQE, "QP %u: SQE, from state %u")                                                            \
    X(ERR, "QP %u: ERR, from state %u")                                                            \
    X(CREATED, "QP %u: created, type %u")                                                          \
    X(DESTROYED, "QP %u: destroyed, %u requests in its send queue")                                \
    X(FAILED, "QP %u: fails with completion status %u")                                            \
    X(TIMEOUT, "QP %u: acknowledgement overdue, %u retries left")                                  \
    X(PAUSED, "QP %u: timeout postponed, %u of 1024 units of a timeout in all")                    \
    X(RNR_OVER, "QP %u: end of the peer's RNR timer, sends again from PSN %u")                     \
    X(SEQ_NAK_SENT, "QP %u: sends a sequence NAK for PSN %u")                                      \
    X(RNR_NAK_SENT, "QP %u: sends an RNR NAK for PSN %u")                                          \
    X(ERROR_NAK_SENT, "QP %u: sends NAK 0x%x")                                                     \
    X(SEQ_NAK_RECEIVED, "QP %u: received a sequence NAK, sends again from PSN %u")                 \
    X(RNR_NAK_RECEIVED, "QP %u: received an RNR NAK with timer code %u")                           \
    X(ERROR_NAK_RECEIVED, "QP %u: received NAK 0x%x")                                              \
    X(READ_GAP, "QP %u: READ response PSN %u came after a gap, asks again")                        \
    X(HOLD_STARTED, "QP %u: holds acknowledgements of WRITEs from PSN %u on")                      \
    X(HOLD_ENDED, "QP %u: all WRITEs before PSN %u are released")                                  \
    X(READS_WAIT, "QP %u: READ response PSN %u waits for the owner")                               \
    X(READS_RESUMED, "QP %u: READ responses go on, %u READs open")                                 \
    X(RATE_LIMITED, "QP %u: limited by DCQCN to %u Mb/s")                                          \
    X(RATE_FREE, "QP %u: back at line rate after %u cuts")                                         \
    X(PORT_DOWN, "port down, %u QPs of at most %u")

enum rnic_event {
#define X(n, t) RNIC_EV_##n,
    RNIC_EVENTS(X)
#undef X
        RNIC_EV_COUNT
};
_Static_assert((int)RNIC_EV_RESET == QP_RESET && (int)RNIC_EV_ERR == QP_ERR,
               "the event of a state has its number");

/* Named after the rnic's address. */
void rnic_events_init(struct rnic *r);

#endif
