/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours whose MAC does not follow from their address: hosts outside the fabric. A verbs call
 * that names such a neighbour requests its MAC (RFC 826) and waits for the reply, as a kernel does
 * when a queue pair gets its path; the table then keeps the address. A neighbour that does not
 * reply within WAIT_PS is unreachable.
 *
 * The NIC answers requests for its host, so this file answers none. The NIC passes each ARP reply
 * to every process of the host, so replies that this HCA does not wait for are ignored.
 */
#include "host/hca/hca_priv.h"

#include <endian.h>
#include <string.h>

#define WAIT_PS  (2000 * PS_PER_MS) /* for the first reply */
#define AGAIN_PS (100 * PS_PER_MS)  /* between two requests */
#define AGE_PS                                                                                     \
    (60000 * PS_PER_MS) /* a known MAC is used so long; then the next call requests it again */

#define ETHERTYPE_ARP 0x0806
enum { ARP_REQUEST = 1, ARP_REPLY = 2 };

/* An ARP frame for Ethernet and IPv4. */
struct arp_frame {
    uint8_t dst[6], src[6];
    rte_be16_t type, hw, proto;
    uint8_t hw_len, proto_len;
    rte_be16_t op;
    uint8_t sender_mac[6], sender_ip[4], target_mac[6], target_ip[4];
} __attribute__((packed));
_Static_assert(sizeof(struct arp_frame) == 14 + 28, "RFC 826");

static struct hca_neighbour *arp_find(struct hca *h, uint32_t ip)
{
    for (unsigned i = 0; i < HCA_NEIGHBOURS; i++)
        if (h->neighbour[i].ip == ip)
            return &h->neighbour[i];
    return NULL;
}

/* Reuses a free entry, or the least recently resolved one. An entry that a call waits for is reused
 * only if calls wait for all of them. */
static struct hca_neighbour *find_or_make(struct hca *h, uint32_t ip)
{
    struct hca_neighbour *n = arp_find(h, ip), *oldest = &h->neighbour[0];

    if (n)
        return n;
    for (unsigned i = 0; i < HCA_NEIGHBOURS; i++) {
        n = &h->neighbour[i];
        if (!n->ip) {
            oldest = n;
            break;
        }
        if (!n->waiting && (oldest->waiting || n->known_ps < oldest->known_ps))
            oldest = n;
    }
    T_ASSERT(h->arp_asks >= oldest->ask, "an ARP request waits that is not counted");
    h->arp_asks -= oldest->ask;
    *oldest = (struct hca_neighbour){.ip = ip, .known_ps = -AGE_PS - 1, .asked_ps = -AGAIN_PS - 1};
    return oldest;
}

static bool is_known(const struct hca *h, const struct hca_neighbour *n)
{
    return n->known && h->now_ps - n->known_ps <= AGE_PS;
}

static void arp_ask(struct hca *h, struct hca_neighbour *n)
{
    if (n->ask || h->now_ps - n->asked_ps < AGAIN_PS)
        return;
    n->ask = true;
    n->asked_ps = h->now_ps;
    h->arp_asks++;
    T_ASSERT(h->arp_asks <= HCA_NEIGHBOURS, "more ARP requests wait than there are neighbours");
    hca_kick(h);
}

bool arp_lookup(const struct hca *h, uint32_t ip, uint8_t mac[6])
{
    const struct hca_neighbour *n = arp_find((struct hca *)h, ip);

    if (!n || !n->known)
        return false;
    memcpy(mac, n->mac, 6);
    return true;
}

int arp_resolve(struct hca *h, uint32_t ip)
{
    struct hca_neighbour *n;
    int64_t until;
    int rc = 0;

    hca_lock(h);
    h->arp_waiters++;
    hca_kick(h); /* which also brings h->now_ps up to date */
    until = h->now_ps + WAIT_PS;
    for (;;) {
        n = find_or_make(h, ip); /* hca_wait() drops the lock, and the entry may be reused */
        if (is_known(h, n))
            break;
        if (h->now_ps > until) {
            n->known = false;
            rc = -EHOSTUNREACH;
            break;
        }
        n->waiting = true;
        arp_ask(h, n);
        if (!is_known(h, n) && !hca_wait(h)) {
            rc = -EHOSTUNREACH;
            break;
        }
    }
    n->waiting = false;
    T_ASSERT(h->arp_waiters, "a call ends its wait for ARP that is not counted");
    h->arp_waiters--;
    hca_unlock(h);
    return rc;
}

/* ---- frames ---- */

static void put_ip(uint8_t to[4], uint32_t ip)
{
    ip = htobe32(ip);
    memcpy(to, &ip, 4);
}

static void arp_build(struct rte_mbuf *m, uint32_t own_ip, uint32_t ip)
{
    struct arp_frame *a = rte_pktmbuf_mtod(m, struct arp_frame *);

    m->data_len = m->pkt_len = FRAME_MIN_BYTES;
    memset(rte_pktmbuf_mtod(m, uint8_t *), 0, FRAME_MIN_BYTES);
    *a = (struct arp_frame){.type = RTE_BE16(ETHERTYPE_ARP),
                            .hw = RTE_BE16(1),
                            .proto = RTE_BE16(0x0800),
                            .hw_len = 6,
                            .proto_len = 4,
                            .op = RTE_BE16(ARP_REQUEST)};
    memset(a->dst, 0xff, 6);
    roce_mac_of_ip(own_ip, a->src);
    roce_mac_of_ip(own_ip, a->sender_mac);
    put_ip(a->sender_ip, own_ip);
    put_ip(a->target_ip, ip);
    frame_meta(m)->cls = FRAME_CONTROL;
}

uint16_t arp_output(struct hca *h, struct rte_mbuf **m, uint16_t n)
{
    uint16_t k = 0;

    for (unsigned i = 0; i < HCA_NEIGHBOURS && k < n && h->arp_asks; i++) {
        struct hca_neighbour *b = &h->neighbour[i];

        if (!b->ask)
            continue;
        m[k] = frame_alloc(h->cfg.pool);
        if (!m[k])
            break;
        arp_build(m[k++], h->cfg.ip, b->ip);
        b->ask = false;
        h->arp_asks--;
    }
    return k;
}

static bool arp_take(struct hca *h, struct rte_mbuf *m)
{
    const struct arp_frame *a = rte_pktmbuf_mtod(m, const struct arp_frame *);
    struct hca_neighbour *n;
    uint32_t ip;

    if (m->data_len < sizeof(*a) || a->type != RTE_BE16(ETHERTYPE_ARP) || a->hw != RTE_BE16(1) ||
        a->proto != RTE_BE16(0x0800) || a->hw_len != 6 || a->proto_len != 4 ||
        a->op != RTE_BE16(ARP_REPLY) || (a->sender_mac[0] & 1))
        return false;
    memcpy(&ip, a->sender_ip, 4);
    n = arp_find(h, be32toh(ip));
    if (!n || !n->waiting)
        return false;
    memcpy(n->mac, a->sender_mac, 6);
    n->known = true;
    n->known_ps = h->now_ps;
    return true;
}

uint16_t arp_input(struct hca *h, struct rte_mbuf **m, uint16_t n)
{
    uint16_t k = 0;

    for (uint16_t i = 0; i < n; i++) {
        if (arp_take(h, m[i]))
            rte_pktmbuf_free(m[i]);
        else
            m[k++] = m[i];
    }
    return k;
}
