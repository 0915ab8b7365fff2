/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/outside_guard.h"

static bool of_fabric(const struct fabric *f, uint32_t ip)
{
    return fabric_dest_of_ip(f, ip) >= 0;
}

/* The address of the host behind the port; 0: the conf names none. */
static uint32_t declared(const struct fabric *f, const struct fab_port *port)
{
    return port->link == FAB_NONE ? 0 : f->nodes[port->peer_node].ip_of_port[port->peer_port];
}

/* Whether the host may use an address: its declared one, or one that is not of the fabric. */
static bool may_use(const struct fabric *f, uint32_t own, uint32_t ip)
{
    return ip == own || !of_fabric(f, ip);
}

static bool mac_admitted(const struct fabric *f, uint32_t own, const uint8_t mac[6])
{
    return mac[0] != 0x02 || mac[1] != 0x54 || may_use(f, own, load_be32(mac + 2));
}

static bool ipv4_admitted(const struct fabric *f, uint32_t own, uint32_t ip)
{
    return own ? ip == own || !ip : !of_fabric(f, ip);
}

/* Reads the source address from the frame: k has none if something else than UDP follows the header. */
static bool ipv6_admitted(const struct fabric *f, uint32_t own, const struct rte_mbuf *m,
                          const struct packet_class *k)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->l3);

    return m->data_len < k->l3 + 40u || may_use(f, own, roce_ip_of_link_local(ip + 8));
}

enum drop outside_guard(const struct fabric *f, const struct fab_port *port, struct rte_mbuf *m,
                        const struct packet_class *k)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    const uint32_t own = declared(f, port);

    if (k->kind == PACKET_BAD || k->kind == PACKET_MAC_CONTROL)
        return SOURCE_ADMITTED; /* the switch drops or consumes them */
    if (!mac_admitted(f, own, p + 6))
        return DROP_FOREIGN_MAC;
    if (k->kind == PACKET_ARP)
        return ipv4_admitted(f, own, arp_sender(m, k)) ? SOURCE_ADMITTED : DROP_FOREIGN_ARP;
    if (load_be16(p + k->l3 - 2) == ETHERTYPE_IPV6)
        return ipv6_admitted(f, own, m, k) ? SOURCE_ADMITTED : DROP_FOREIGN_IP;
    if (load_be16(p + k->l3 - 2) == ETHERTYPE_IPV4)
        return ipv4_admitted(f, own, k->src_ip) ? SOURCE_ADMITTED : DROP_FOREIGN_IP;
    return SOURCE_ADMITTED;
}
