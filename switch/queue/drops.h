/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reasons of drops: one list gives the enum, the names in telemetry and the texts for people. A frame
 * counts once, at the port by which it came in; a frame of a NIC's process at the port by which it would
 * have left.
 */
#ifndef TRIB_SWITCH_QUEUE_DROPS_H
#define TRIB_SWITCH_QUEUE_DROPS_H

/* X(NAME, name, text) */
#define DROP_TABLE(X)                                                                              \
    X(RUNT, "runt", "shorter than its headers")                                                    \
    X(BAD_LENGTH, "bad_length", "IP or UDP length disagrees with the frame")                       \
    X(BAD_PAUSE, "bad_pause", "malformed MAC control frame")                                       \
    X(LINK_LOCAL, "link_local", "reserved address that bridges do not forward")                    \
    X(UNKNOWN_DEST, "unknown_dest", "no node has this destination address")                        \
    X(NO_ROUTE, "no_route", "destination cannot be reached from here")                             \
    X(REFLECTED, "reflected", "would leave by the port it came in")                                \
    X(QUEUE_FULL, "queue_full", "egress queue at its limit")                                       \
    X(PFC_WATCHDOG, "pfc_watchdog", "for a queue that the PFC watchdog found stuck")               \
    X(NO_BUFFER, "no_buffer", "no mbuf left for a copy")                                           \
    X(UNKNOWN_GROUP, "unknown_group", "multicast group without members")                           \
    X(NOT_MINE, "not_mine", "arrived at a host whose address it does not carry")                   \
    X(NOT_ROCE, "not_roce", "for this node's address, by a protocol that it does not speak")       \
    X(NO_AN, "no_an", "RoCE for the address of a switch that does not reduce")                     \
    X(AN_REFUSED, "an_refused", "the aggregation node took fewer frames than it was given")        \
    X(NO_SLOT, "no_slot", "no process has this queue pair")                                        \
    X(SLOT_FULL, "slot_full", "receive queue of a process at its limit")                           \
    X(SLOT_STALLED, "slot_stalled", "for a process that does not take its frames")                 \
    X(DETACHED, "detached", "its process has ended")                                               \
    X(FOREIGN_MAC, "foreign_mac", "its source MAC is not its sender's")                            \
    X(FOREIGN_IP, "foreign_ip", "its source address is not its sender's")                          \
    X(FOREIGN_ARP, "foreign_arp", "ARP with addresses that are not its sender's")                  \
    X(FOREIGN_QPN, "foreign_qpn", "from a queue pair that is not its sender's")                    \
    X(FOREIGN_PROTOCOL, "foreign_protocol", "of a process, but neither RoCE nor ARP nor IGMP")     \
    X(PORT_SHUT, "port_shut", "its process's slot is shut for what it has sent")                   \
    X(GROUP_QUOTA, "group_quota", "report of a multicast group beyond the sender's share")         \
    X(RING_FULL, "ring_full", "from outside, when the device's ring had no room left")

enum drop {
#define X(n, s, t) DROP_##n,
    DROP_TABLE(X)
#undef X
        DROP_REASONS
};

const char *drop_name(enum drop d); /* "queue_full" */
const char *drop_text(enum drop d); /* for people */

#endif
