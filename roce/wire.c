/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of opcodes and reasons, the parser, and one line of text for a packet. */
#include "roce/headers.h"

#include <stdio.h>
#include <string.h>

#define EXT_BYTES(x)                                                                               \
    (((x)&ROCE_X_DETH ? 8 : 0) + ((x)&ROCE_X_RETH ? 16 : 0) + ((x)&ROCE_X_ATOMIC ? 28 : 0) +       \
     ((x)&ROCE_X_AETH ? 4 : 0) + ((x)&ROCE_X_ATOMICACK ? 8 : 0) + ((x)&ROCE_X_IMM ? 4 : 0) +       \
     ((x)&ROCE_X_IETH ? 4 : 0) + ((x)&ROCE_X_CNP ? 16 : 0))

const struct roce_opinfo roce_opinfo[256] = {
#define X(t, o, n, x, w, l) [ROCE_OP_##t##_##n] = {#t " " #n, x, w, l, EXT_BYTES(x)},
    ROCE_OPCODES(X)
#undef X
};

static const char *const reason_names[] = {
#define X(n, l, t) #l,
    ROCE_REASONS(X)
#undef X
};

const char *roce_reason_name(enum roce_reason r)
{
    return (unsigned)r < ROCE_REASON_COUNT ? reason_names[r] : "unknown";
}

/* ---- parse ---- */

static bool ip_sum_right(const struct ip4 *ip)
{
    uint64_t w[2];
    uint32_t last;

    memcpy(w, ip, sizeof(w));
    memcpy(&last, &ip->dst, sizeof(last));
    return ip_sum(w[0], w[1], last) == 0xffff;
}

/* Offset of the IP header; 0: neither IPv4 nor IPv6. */
static uint32_t l3_offset(const uint8_t *p, uint32_t len, bool *v6)
{
    const struct eth *eth = (const void *)p;
    uint32_t l3 = sizeof(*eth);
    uint16_t type;

    if (len < sizeof(*eth) + TAG_BYTES)
        return 0;
    if (eth->type == RTE_BE16(ETH_VLAN))
        l3 += TAG_BYTES;
    type = (uint16_t)(p[l3 - 2] << 8 | p[l3 - 1]);
    *v6 = type == ETH_IPV6;
    return *v6 || type == ETH_IPV4 ? l3 : 0;
}

uint32_t roce_header_bytes(const uint8_t *p, uint32_t len)
{
    bool v6 = false;
    uint32_t l3 = l3_offset(p, len, &v6);
    uint32_t n = l3 + (v6 ? ROCE_BASE6_BYTES : ROCE_BASE_BYTES) - (uint32_t)sizeof(struct eth);
    const uint8_t *ip = p + l3;
    const struct bth *bth = (const void *)(p + n - sizeof(*bth));
    const struct udp *udp = (const void *)((const uint8_t *)bth - sizeof(*udp));

    if (l3 == 0 || len < n || (v6 ? ip[0] >> 4 != 6 : ip[0] != 0x45) ||
        (v6 ? ((const struct ip6 *)ip)->next : ((const struct ip4 *)ip)->proto) != IPPROTO_IS_UDP ||
        udp->dst != RTE_BE16(ROCE_UDP_PORT) || !roce_opinfo[bth->opcode].name)
        return 0;
    n += roce_opinfo[bth->opcode].ext_bytes;
    return n <= len ? n : 0;
}

static enum roce_reason parse_ip4(const struct ip4 *ip, uint32_t room, struct roce_pkt *k,
                                  uint32_t *ip_len)
{
    const struct udp *udp = (const void *)(ip + 1);
    uint32_t len = rte_be_to_cpu_16(ip->len);

    if (ip->ver_ihl != 0x45)
        return ROCE_IP_HEADER;
    if (!ip_sum_right(ip))
        return ROCE_IP_CHECKSUM;
    if (len > room || len < sizeof(*ip) + sizeof(*udp))
        return ROCE_IP_LENGTH;
    if (ip->frag & RTE_BE16(IP_MORE_OR_OFFSET))
        return ROCE_IP_FRAGMENT;
    if (ip->proto != IPPROTO_IS_UDP)
        return ROCE_NOT_ROCE;
    k->tos = ip->tos, k->ttl = ip->ttl;
    k->mark = rte_be_to_cpu_16(ip->id);
    k->src_ip = rte_be_to_cpu_32(ip->src), k->dst_ip = rte_be_to_cpu_32(ip->dst);
    *ip_len = len;
    return ROCE_OK;
}

/* IPv6 without extension headers. ip_len includes the IPv6 header. */
static enum roce_reason parse_ip6(const struct ip6 *ip, uint32_t room, struct roce_pkt *k,
                                  uint32_t *ip_len)
{
    uint32_t word = rte_be_to_cpu_32(ip->ver_tc_flow), len = rte_be_to_cpu_16(ip->len);

    if (word >> 28 != 6)
        return ROCE_IP_HEADER;
    if (len + sizeof(*ip) > room || len < sizeof(struct udp))
        return ROCE_IP_LENGTH;
    if (ip->next != IPPROTO_IS_UDP)
        return ROCE_NOT_ROCE;
    k->tos = (uint8_t)(word >> 20), k->ttl = ip->hops;
    k->mark = (uint16_t)word;
    k->src_ip = roce_ip_of_link_local(ip->src), k->dst_ip = roce_ip_of_link_local(ip->dst);
    if (!k->src_ip || !k->dst_ip)
        return ROCE_IP_ADDRESS;
    *ip_len = len + (uint32_t)sizeof(*ip);
    return ROCE_OK;
}

/* Extended headers at p, in the order of IBTA figure 40 and following. */
static void parse_ext(const uint8_t *p, uint8_t ext, struct roce_pkt *k)
{
    if (ext & ROCE_X_DETH) {
        const struct deth *h = (const void *)p;

        k->qkey = rte_be_to_cpu_32(h->qkey), k->sqpn = rte_be_to_cpu_32(h->sqpn) & ROCE_PSN_MASK;
        p += sizeof(*h);
    }
    if (ext & ROCE_X_RETH) {
        const struct reth *h = (const void *)p;

        k->va = rte_be_to_cpu_64(h->va), k->rkey = rte_be_to_cpu_32(h->rkey);
        k->dma_len = rte_be_to_cpu_32(h->len);
        p += sizeof(*h);
    }
    if (ext & ROCE_X_ATOMIC) {
        const struct atomiceth *h = (const void *)p;

        k->va = rte_be_to_cpu_64(h->va), k->rkey = rte_be_to_cpu_32(h->rkey), k->dma_len = 8;
        k->swap_add = rte_be_to_cpu_64(h->swap_add), k->compare = rte_be_to_cpu_64(h->compare);
        p += sizeof(*h);
    }
    if (ext & ROCE_X_AETH) {
        uint32_t v = rte_be_to_cpu_32(((const struct aeth *)p)->v);

        k->syndrome = v >> 24, k->msn = v & ROCE_PSN_MASK;
        p += sizeof(struct aeth);
    }
    if (ext & ROCE_X_ATOMICACK) {
        k->orig = rte_be_to_cpu_64(((const struct atomicack *)p)->orig);
        p += sizeof(struct atomicack);
    }
    if (ext & ROCE_X_IMM)
        memcpy(&k->imm, p, 4), p += 4;
    if (ext & ROCE_X_IETH)
        k->rkey = rte_be_to_cpu_32(((const struct aeth *)p)->v);
}

/* Finds the carried bytes of the payload: behind the headers, or the whole second segment. */
static enum roce_reason find_payload(struct rte_mbuf *m, struct roce_pkt *k)
{
    uint32_t bytes = k->len - k->virt;

    k->payload = NULL;
    if (bytes == 0)
        return ROCE_OK;
    if (m->data_len >= k->hdr_len + bytes)
        k->payload = rte_pktmbuf_mtod_offset(m, uint8_t *, k->hdr_len);
    else if (m->data_len == k->hdr_len && m->next && m->next->data_len >= bytes)
        k->payload = rte_pktmbuf_mtod(m->next, uint8_t *);
    else
        return ROCE_SHAPE;
    return ROCE_OK;
}

static enum roce_reason parse_payload(struct rte_mbuf *m, uint32_t ip_len,
                                      const struct roce_opinfo *op, struct roce_pkt *k)
{
    uint32_t head = k->hdr_len - k->l3, tail = k->pad + ROCE_ICRC_BYTES;

    if (ip_len < head + tail)
        return ROCE_PAYLOAD;
    k->len = ip_len - head - tail;
    k->virt = frame_meta(m)->virt_len;
    if (k->len > ROCE_MAX_MTU || k->virt > k->len)
        return ROCE_PAYLOAD;
    if ((op->rule == ROCE_LEN_NONE && k->len + k->pad) ||
        (op->rule == ROCE_LEN_1_MTU && k->len == 0) ||
        (op->rule == ROCE_LEN_MTU && (k->len == 0 || k->pad)) || ((k->len + k->pad) & 3))
        return ROCE_PAYLOAD;
    return find_payload(m, k);
}

/* Parses a packet whose IP header is at l3. have: its bytes in the first segment from there on. */
static inline enum roce_reason parse_at(struct rte_mbuf *m, uint32_t l3, bool v6, uint32_t have,
                                        struct roce_pkt *k)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    const struct eth *eth = (const void *)p;
    const uint32_t ip_bytes = v6 ? sizeof(struct ip6) : sizeof(struct ip4);
    uint32_t qpn, psn, ip_len, room = m->pkt_len - l3 + frame_meta(m)->virt_len;
    const struct roce_opinfo *op;
    const struct bth *bth;
    const struct udp *udp;
    enum roce_reason r;

    if (have < l3 + ip_bytes + sizeof(*udp))
        return ROCE_SHORT;
    r = v6 ? parse_ip6((const void *)(p + l3), room, k, &ip_len)
           : parse_ip4((const void *)(p + l3), room, k, &ip_len);
    if (r != ROCE_OK)
        return r;
    udp = (const void *)(p + l3 + ip_bytes);
    if (udp->dst != RTE_BE16(ROCE_UDP_PORT))
        return ROCE_NOT_ROCE;
    if (rte_be_to_cpu_16(udp->len) != ip_len - ip_bytes)
        return ROCE_UDP_LENGTH;
    memcpy(k->dst_mac, eth->dst, 6);
    memcpy(k->src_mac, eth->src, 6);
    k->udp_src = rte_be_to_cpu_16(udp->src);
    bth = (const void *)(udp + 1);
    k->l3 = l3, k->v6 = v6;
    k->hdr_len = l3 + ip_bytes + (uint32_t)(sizeof(*udp) + sizeof(*bth));
    if (have < k->hdr_len)
        return ROCE_SHORT;
    if (bth->flags & BTH_VERSION)
        return ROCE_BTH_VERSION;
    k->opcode = bth->opcode; /* read once: in shared memory it may change (io/port/port.h) */
    op = &roce_opinfo[k->opcode];
    if (!op->name)
        return ROCE_OPCODE;
    k->hdr_len += op->ext_bytes;
    if (have < k->hdr_len)
        return ROCE_SHORT;
    qpn = rte_be_to_cpu_32(bth->qpn), psn = rte_be_to_cpu_32(bth->psn);
    k->solicited = bth->flags & BTH_SOLICITED, k->pad = bth->flags >> 4 & 3;
    k->pkey = rte_be_to_cpu_16(bth->pkey);
    k->dqpn = qpn & ROCE_PSN_MASK;
    k->ack_req = psn & BTH_ACK_REQ, k->psn = psn & ROCE_PSN_MASK;
    if (op->ext)
        parse_ext((const uint8_t *)(bth + 1), op->ext, k);
    return parse_payload(m, ip_len, op, k);
}

enum roce_reason roce_parse(struct rte_mbuf *m, struct roce_pkt *k)
{
    const struct eth *eth = rte_pktmbuf_mtod(m, const struct eth *);
    uint32_t have = m->data_len, l3;
    bool v6;

    if (likely(have >= ROCE_BASE_BYTES && eth->type == RTE_BE16(ETH_IPV4)))
        return parse_at(m, sizeof(*eth), false, have, k); /* the usual case; lengths are known
                                                             there */
    if (have < sizeof(struct eth) + sizeof(struct ip4))
        return ROCE_SHORT;
    l3 = l3_offset((const uint8_t *)eth, have, &v6);
    return l3 ? parse_at(m, l3, v6, have, k) : ROCE_NOT_IP;
}

/* ---- print ---- */

int roce_print(char *buf, size_t size, const struct roce_pkt *k)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];
    char ext[160];
    int n = 0;

    ext[0] = 0;
    if (op->ext & ROCE_X_DETH)
        n += snprintf(ext + n, sizeof(ext) - n, " from qp 0x%06x", k->sqpn);
    if (op->ext & (ROCE_X_RETH | ROCE_X_ATOMIC))
        n += snprintf(ext + n, sizeof(ext) - n, " va 0x%jx rkey 0x%x dma %u", (uintmax_t)k->va,
                      k->rkey, k->dma_len);
    if (op->ext & ROCE_X_AETH)
        n += snprintf(ext + n, sizeof(ext) - n, " syndrome 0x%02x msn %u", k->syndrome, k->msn);
    if (op->ext & ROCE_X_IMM)
        n += snprintf(ext + n, sizeof(ext) - n, " imm 0x%08x", rte_be_to_cpu_32(k->imm));
    return snprintf(buf, size, "%u.%u.%u.%u > %u.%u.%u.%u%s %s qp 0x%06x psn %u%s%s len %u%s%s",
                    k->src_ip >> 24, k->src_ip >> 16 & 255, k->src_ip >> 8 & 255, k->src_ip & 255,
                    k->dst_ip >> 24, k->dst_ip >> 16 & 255, k->dst_ip >> 8 & 255, k->dst_ip & 255,
                    k->v6 ? " (link-local)" : "", op->name ? op->name : "?", k->dqpn, k->psn,
                    k->ack_req ? " ackreq" : "", k->solicited ? " solicited" : "", k->len,
                    k->virt ? " (length only)" : "", ext);
}
