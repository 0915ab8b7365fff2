/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of a trib-switch for clients that poll often: many rows in one answer, as an array of numbers.
 *
 *   now, next, columns, then the rows
 *
 *   now      fabric time in ps, the same for all rows
 *   next     row to start from in the next request; 0: there are no more
 *   columns  bit i: the rows have column i of the list below. Column 0 is always there; another is
 *            left out if it is 0 in all rows
 *
 * New columns are appended behind the last of PORT_COLUMNS; the reasons of drops follow, and move. The rows of an answer have at most TELEMETRY_CELLS numbers.
 */
#ifndef TRIB_IO_TELEMETRY_TABLES_H
#define TRIB_IO_TELEMETRY_TABLES_H

#include "switch/queue/drops.h"

#include <stdint.h>

#define TELEMETRY_CELLS   480u /* numbers in the rows of an answer at most */
#define TELEMETRY_COLUMNS 62u

/* A port of this process that has a link. "Sent" means into the link; peaks are since start-up. */
#define PORT_COLUMNS(X)                                                                            \
    X(direction) /* link * 2 + 0 if the port is the link's end a, 1 if b */                        \
    X(down)      /* 1: the link is down */                                                         \
    X(paused)    /* 1: by PFC, now */                                                              \
    X(rx_frames)                                                                                   \
    X(rx_bytes)                                                                                    \
    X(frames)     /* sent, all of them */                                                          \
    X(bytes)      /* of them */                                                                    \
    X(link_bytes) /* with preamble, FCS and gap */                                                 \
    X(busy_ps)                                                                                     \
    X(paused_ps)                                                                                   \
    X(queue_bytes) /* that wait now */                                                             \
    X(queue_lossless_bytes)                                                                        \
    X(queue_peak_bytes)                                                                            \
    X(ecn_marks)                                                                                   \
    X(pauses_sent)                                                                                 \
    X(pauses_received)                                                                             \
    X(watchdog_trips)                                                                              \
    X(watchdog_drops)                                                                              \
    X(lost) /* by the faults of the link */                                                        \
    X(lost_bytes)                                                                                  \
    X(duplicated)                                                                                  \
    X(reordered)                                                                                   \
    X(corrupted)                                                                                   \
    X(down_drops) /* because the link is down */                                                   \
    X(queue_full) /* frames that found no room in this port's queue */
/* Behind them a column for each reason of drops: of frames that came in by this port. */

/* A child of a group at an aggregation node (aggregation/group_view.h). */
#define GROUP_COLUMNS(X)                                                                           \
    X(node) /* its index in the conf */                                                            \
    X(kind) /* index in /trib/table/kinds */                                                       \
    X(tree)                                                                                        \
    X(id)                                                                                          \
    X(job)     /* a number made of the group's key */                                              \
    X(open)    /* 1: all is granted */                                                             \
    X(busy)    /* 1: an operation is under way */                                                  \
    X(founder) /* index of the host that joined first, plus 1; 0: another switch */                \
    X(slots)                                                                                       \
    X(slots_used)                                                                                  \
    X(reduced) /* slots so far */                                                                  \
    X(born_us) /* fabric time of the first JOIN */                                                 \
    X(children)                                                                                    \
    X(child)  /* index of its node, plus 1 */                                                      \
    X(member) /* its number, or the lowest below a switch */                                       \
    X(is_member)                                                                                   \
    X(joined)                                                                                      \
    X(left)

/* A slot of a host's port that some process has used or asked for. */
#define SLOT_COLUMNS(X)                                                                            \
    X(node)                                                                                        \
    X(port)                                                                                        \
    X(slot)                                                                                        \
    X(pid) /* of the process that is connected; 0: none */                                         \
    X(connects)                                                                                    \
    X(refused)                                                                                     \
    X(rx_frames) /* from the process */                                                            \
    X(tx_frames)                                                                                   \
    X(bad_frames)                                                                                  \
    X(no_buffer)                                                                                   \
    X(overflow)                                                                                    \
    X(stalled) /* frames that the process did not take in time */

/* How late the hand-offs to this process's loop, and to the processes in its slots, were. */
#define LAG_COLUMNS(X)                                                                             \
    X(bucket)                                                                                      \
    X(until_ns) /* of wall time; of the bucket before: from */                                     \
    X(handoffs)

#define X(name) PORT_##name,
enum port_column { PORT_COLUMNS(X) PORT_COLUMNS_N, PORT_drops = PORT_COLUMNS_N };
#undef X
#define X(name) GROUP_##name,
enum group_column { GROUP_COLUMNS(X) GROUP_COLUMNS_N };
#undef X
#define X(name) SLOT_##name,
enum slot_column { SLOT_COLUMNS(X) SLOT_COLUMNS_N };
#undef X
#define X(name) LAG_##name,
enum lag_column { LAG_COLUMNS(X) LAG_COLUMNS_N };
#undef X

struct loop;
struct rte_tel_data;

/* Call these in the loop's thread. params: the first row, or NULL. */
void telemetry_ports(struct loop *l, const char *params, struct rte_tel_data *d);
void telemetry_groups(struct loop *l, const char *params, struct rte_tel_data *d);
void telemetry_slots(struct loop *l, const char *params, struct rte_tel_data *d);
void telemetry_lag(struct loop *l, const char *params, struct rte_tel_data *d);
void telemetry_kinds(struct loop *l, const char *params, struct rte_tel_data *d);

#endif
