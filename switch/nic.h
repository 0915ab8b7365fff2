/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's NIC: ports towards the fabric, and process slots behind each, a struct endpoint each. A
 * process is never dropped here: its frames are pulled when the link is due, acknowledgements of
 * all first, then data in turn, and what it cannot take waits in its slot, where PFC counts it.
 * Traffic to the port's own address loops back at the link's rate. The processes' memberships of
 * groups are told to the switch as one host's.
 */
#ifndef TRIB_SWITCH_NIC_H
#define TRIB_SWITCH_NIC_H

#include "switch/node.h"

/* For so long a process may hold up others before frames for it are dropped, as nic_stall.c says.
 */
#define NIC_STALL_PS (100 * PS_PER_MS)

int nic_create(struct node **nd, const struct node_cfg *cfg);
/* 0, -EINVAL (no such port or slot), -EBUSY. */
int nic_attach(struct node *nd, uint16_t port, unsigned slot, const struct endpoint *ep);
bool nic_is_used(struct node *nd); /* somebody is attached */
/* What the endpoint there will look at whenever something comes for it; until it is detached. */
void nic_list_lines(struct node *nd, uint16_t port, unsigned slot,
                    const struct cacheline_list *lines);
/* Frees what waits from and for the slot; tells the aggregation nodes where its ranks may have
 * joined (PEER_DOWN). -EINVAL, -ENOENT. */
int nic_detach(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps);
/* The slot's endpoint has frames to send, room again or a new deadline. */
void nic_kick(struct node *nd, uint16_t port, unsigned slot, int64_t now_ps);
/* Frames that wait for a process to take them. */
uint32_t nic_backlog(struct node *nd, uint16_t port, unsigned slot);
/* Frames dropped because it does not take them, since it was attached. */
uint64_t nic_stall_drops(struct node *nd, uint16_t port, unsigned slot);
/* In place of NIC_STALL_PS, which it begins with: liveness is wall time. */
void nic_set_stall(struct node *nd, int64_t ps);
/* Nobody was asked to take frames for some time before that: it is not charged to processes. */
void nic_excuse(struct node *nd, int64_t until_ps);

#endif
