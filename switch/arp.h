/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP (RFC 826) for a node's own IPv4 address. The switch floods other requests. Hosts of the
 * fabric send none: their MACs follow from their addresses.
 */
#ifndef TRIB_SWITCH_ARP_H
#define TRIB_SWITCH_ARP_H

#include "switch/classify.h"

/* Builds the answer if m is a request for ip, else returns NULL (also when the pool is empty). The
 * caller keeps m, which is PACKET_ARP. */
struct rte_mbuf *arp_answer(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip,
                            const uint8_t mac[6], struct rte_mempool *pool);
/* Whether m is a request for ip. */
bool arp_asks_for(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip);
/* Whether a request or reply names mac and ip as its sender's. */
bool arp_is_from(struct rte_mbuf *m, const struct packet_class *k, uint32_t ip,
                 const uint8_t mac[6]);
/* The address that the sender gives for itself, in host order. */
uint32_t arp_sender(struct rte_mbuf *m, const struct packet_class *k);

#endif
