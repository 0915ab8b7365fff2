/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's NIC: ports towards the fabric, and process slots behind each, with one struct endpoint a
 * slot. The NIC drops no frame of a process: it pulls them when the link is free, acknowledgements
 * of all processes first, then data in turn. Frames that a process cannot take yet wait in its
 * slot, where PFC counts them. Traffic to the port's own address loops back at the link's rate. The
 * NIC announces the group memberships of its processes to the switch as those of one host.
 */
#ifndef TRIB_SWITCH_NIC_H
#define TRIB_SWITCH_NIC_H

#include "switch/node.h"

/* Time for which a process may hold up others before its frames are dropped (nic_stall.c). */
#define NIC_STALL_PS (100 * PS_PER_MS)

int nic_create(struct node **nd, const struct node_cfg *cfg);
/* Attaches a process's endpoint to a slot. 0, -EINVAL (no such port or slot), -EBUSY, -ENOMEM. */
int nic_attach(struct node *nd, uint16_t port, unsigned slot, const struct endpoint *ep);
bool nic_is_used(struct node *nd); /* whether an endpoint is attached */
/* Adds the cache lines that frames for and from the port's first slot read. */
void nic_list_cachelines(struct node *nd, uint16_t port, struct cacheline_list *lines);
/* Frees the frames from and for the slot; sends PEER_DOWN to the aggregation nodes where its ranks
 * may have joined. 0, -EINVAL, -ENOENT. */
int nic_detach(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps);
/* The slot's endpoint has frames to send, room again or a new deadline. */
void nic_kick(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps);
/* Frames that wait for a process to take them. */
uint32_t nic_backlog(struct node *nd, uint16_t port, unsigned slot);
/* Frames dropped because the process did not take them, since it was attached. */
uint64_t nic_stall_drops(struct node *nd, uint16_t port, unsigned slot);
/* Default: NIC_STALL_PS. Measured in wall time. */
void nic_set_stall(struct node *nd, int64_t ps);
/* The NIC did not run for some time before until_ps: processes are not charged for that time. */
void nic_excuse(struct node *nd, int64_t until_ps);

/*
 * Offenders (nic_offence.c). The NIC shuts the slot of a process that sends NIC_OFFENCES frames within
 * the window that it may not send. A defect in a program makes a few such frames, when an address
 * changes or it is killed while it sends; an attack that has any effect makes thousands a second. A
 * refused frame costs the NIC about as much as a forwarded one, so below the limit an offender takes less
 * than a thousandth of a core.
 */
#define NIC_OFFENCES          1000u
#define NIC_OFFENCE_WINDOW_PS PS_PER_S
/* When so many slots have been shut, the whole port is: an offender that starts again in slot after slot
 * cannot be told from the host's other processes. */
#define NIC_SHUT_SLOTS 4u

struct nic_offender {
    uint64_t frames;     /* since the port was opened */
    enum drop why;       /* of the last offence */
    bool shut, was_shut; /* now; at some time since the port was opened */
};
/* False: no process of the slot has sent a frame that it may not send. */
bool nic_offences(struct node *nd, uint16_t port, unsigned slot, struct nic_offender *o);
bool nic_port_is_shut(struct node *nd, uint16_t port);
/* Opens the port and its slots, and forgets their offences. */
void nic_open(struct node *nd, uint16_t port, int64_t now_ps);
/* Default: NIC_OFFENCE_WINDOW_PS. Measured in wall time. */
void nic_set_offence_window(struct node *nd, int64_t ps);
/* Called after every offence; must not change the node. */
void nic_on_offence(struct node *nd,
                    void (*fn)(void *ctx, uint16_t node, uint16_t port, unsigned slot), void *ctx);

#endif
