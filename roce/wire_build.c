/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets to frames: headers, payload, padding and ICRC. */
#include "base/assert.h"
#include "roce/headers.h"
#include "roce/icrc.h"

#include <string.h>

static uint8_t *build_ext(uint8_t *p, uint8_t ext, const struct roce_pkt *k)
{
    if (ext & ROCE_X_DETH) {
        *(struct deth *)p = (struct deth){rte_cpu_to_be_32(k->qkey), rte_cpu_to_be_32(k->sqpn)};
        p += sizeof(struct deth);
    }
    if (ext & ROCE_X_RETH) {
        *(struct reth *)p = (struct reth){rte_cpu_to_be_64(k->va), rte_cpu_to_be_32(k->rkey),
                                          rte_cpu_to_be_32(k->dma_len)};
        p += sizeof(struct reth);
    }
    if (ext & ROCE_X_ATOMIC) {
        *(struct atomiceth *)p =
            (struct atomiceth){rte_cpu_to_be_64(k->va), rte_cpu_to_be_32(k->rkey),
                               rte_cpu_to_be_64(k->swap_add), rte_cpu_to_be_64(k->compare)};
        p += sizeof(struct atomiceth);
    }
    if (ext & ROCE_X_AETH) {
        ((struct aeth *)p)->v =
            rte_cpu_to_be_32((uint32_t)k->syndrome << 24 | (k->msn & ROCE_PSN_MASK));
        p += sizeof(struct aeth);
    }
    if (ext & ROCE_X_ATOMICACK) {
        ((struct atomicack *)p)->orig = rte_cpu_to_be_64(k->orig);
        p += sizeof(struct atomicack);
    }
    if (ext & ROCE_X_IMM)
        memcpy(p, &k->imm, 4), p += 4;
    if (ext & ROCE_X_IETH)
        ((struct aeth *)p)->v = rte_cpu_to_be_32(k->rkey), p += 4;
    if (ext & ROCE_X_CNP) {
        *(struct cnp *)p = (struct cnp){{0}};
        p += sizeof(struct cnp);
    }
    return p;
}

static inline void put64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, 8);
}

static inline uint64_t bth_flags(const struct roce_pkt *k)
{
    return (k->solicited ? BTH_SOLICITED : 0) | BTH_MIGRATED | (uint64_t)k->pad << 4;
}

static inline uint32_t bth_psn(const struct roce_pkt *k)
{
    return (k->psn & ROCE_PSN_MASK) | (k->ack_req ? BTH_ACK_REQ : 0);
}

/* IPv6, UDP and BTH at p. The checksum of UDP stays 0, as the ICRC covers more (annex A17.4.4). */
static void build_base6(uint8_t *p, const struct roce_pkt *k, uint32_t ip_len, uint32_t becn)
{
    const uint32_t len = ip_len - (uint32_t)sizeof(struct ip6);
    struct ip6 *ip = (void *)p;
    struct udp *udp = (void *)(ip + 1);
    struct bth *bth = (void *)(udp + 1);

    ip->ver_tc_flow = rte_cpu_to_be_32(6u << 28 | (uint32_t)k->tos << 20 | k->mark);
    ip->len = rte_cpu_to_be_16(len);
    ip->next = IPPROTO_IS_UDP, ip->hops = k->ttl;
    roce_link_local_of_ip(k->src_ip, ip->src);
    roce_link_local_of_ip(k->dst_ip, ip->dst);
    *udp = (struct udp){rte_cpu_to_be_16(k->udp_src), RTE_BE16(ROCE_UDP_PORT),
                        rte_cpu_to_be_16(len), 0};
    *bth = (struct bth){k->opcode, (uint8_t)bth_flags(k), rte_cpu_to_be_16(k->pkey),
                        rte_cpu_to_be_32(k->dqpn | becn), rte_cpu_to_be_32(bth_psn(k))};
}

/*
 * IPv4, UDP and BTH at p, in the words in which the ICRC reads them next: the cache lines of a new
 * frame are still being loaded, and until then the CPU forwards a store only to loads that it
 * covers completely.
 */
static void build_base(uint8_t *p, const struct roce_pkt *k, uint32_t ip_len, uint32_t becn)
{
    const uint64_t flags = bth_flags(k);
    const uint64_t src = rte_cpu_to_be_32(k->src_ip), dst = rte_cpu_to_be_32(k->dst_ip);
    const uint64_t pkey = rte_cpu_to_be_16(k->pkey), udp_src = rte_cpu_to_be_16(k->udp_src);
    const uint64_t ip = 0x45 | k->tos << 8 | (uint64_t)rte_cpu_to_be_16(ip_len) << 16 |
                        (uint64_t)rte_cpu_to_be_16(k->mark) << 32 | (uint64_t)RTE_BE16(IP_DF) << 48;
    const uint64_t ttl = k->ttl | IPPROTO_IS_UDP << 8 | src << 32;
    const uint16_t sum = (uint16_t)~ip_sum(ip, ttl, (uint32_t)dst);

    put64(p, ip);
    put64(p + 8, ttl | (uint64_t)sum << 16);
    put64(p + 16, dst | udp_src << 32 | (uint64_t)RTE_BE16(ROCE_UDP_PORT) << 48);
    put64(p + 24, rte_cpu_to_be_16(ip_len - sizeof(struct ip4)) | (uint64_t)k->opcode << 32 |
                      flags << 40 | pkey << 48);
    put64(p + 32, rte_cpu_to_be_32(k->dqpn | becn) | (uint64_t)rte_cpu_to_be_32(bth_psn(k)) << 32);
}

void roce_build(struct rte_mbuf *m, struct roce_pkt *k)
{
    const struct roce_opinfo *op = &roce_opinfo[k->opcode];
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    struct eth *eth = (void *)p;

    const uint32_t base = k->v6 ? ROCE_BASE6_BYTES : ROCE_BASE_BYTES;
    const uint32_t becn = op->ext & ROCE_X_CNP ? BTH_BECN : 0;
    uint32_t ip_len;

    T_ASSERT_HOT(k->virt <= k->len && k->len <= ROCE_MAX_MTU,
                 "a payload is longer than a path MTU, or than what is counted of it");
    T_ASSERT_HOT(m->nb_segs == 1 && !m->next, "a frame is built in a chain of segments");
    k->l3 = sizeof(*eth);
    k->hdr_len = base + op->ext_bytes;
    k->pad = -k->len & 3;
    ip_len = k->hdr_len - (uint32_t)sizeof(*eth) + k->len + k->pad + ROCE_ICRC_BYTES;
    memcpy(eth->dst, k->dst_mac, 6);
    memcpy(eth->src, k->src_mac, 6);
    if (likely(!k->v6)) {
        eth->type = RTE_BE16(ETH_IPV4);
        build_base(p + sizeof(*eth), k, ip_len, becn);
    } else {
        eth->type = RTE_BE16(ETH_IPV6);
        build_base6(p + sizeof(*eth), k, ip_len, becn);
    }
    build_ext(p + base, op->ext, k);
    m->data_len = m->pkt_len = k->hdr_len;
}

static void set_meta(struct rte_mbuf *m, const struct roce_pkt *k)
{
    struct frame_meta *meta = frame_meta(m);

    meta->cls = FRAME_LOSSLESS;
    meta->virt_len = k->virt;
    meta->flags = k->virt ? FRAME_F_VIRTUAL : 0;
}

/* The ICRC, given the register of payload and padding from 0. The CPU computes both in parallel. */
static inline uint32_t icrc_of(const struct rte_mbuf *m, const struct roce_pkt *k, uint32_t crc)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->l3);
    const uint32_t n = k->hdr_len - k->l3, body = k->len + k->pad;

    return ~(crc ^
             (likely(!k->v6) ? roce_icrc_headers(ip, n, body) : roce_icrc_headers6(ip, n, body)));
}

void roce_seal_shared(struct rte_mbuf *m, const struct roce_pkt *k, uint32_t crc, uint8_t *p)
{
    if (k->pad) {
        memset(p, 0, k->pad);
        crc = roce_crc(crc, p, k->pad);
    }
    crc = k->virt ? UINT32_MAX : icrc_of(m, k, crc); /* length only: no receiver checks it */
    memcpy(p + k->pad, &crc, ROCE_ICRC_BYTES);
    set_meta(m, k);
}

void roce_seal_crc(struct rte_mbuf *m, const struct roce_pkt *k, uint32_t crc)
{
    uint32_t n = k->hdr_len + k->len - k->virt;

    T_ASSERT_HOT(m->data_len == k->hdr_len, "a frame is sealed that is not its headers alone");
    T_ASSERT_HOT(m->data_off + n + k->pad + ROCE_ICRC_BYTES <= m->buf_len,
                 "a frame is longer than its buffer");
    roce_seal_shared(m, k, crc, rte_pktmbuf_mtod_offset(m, uint8_t *, n));
    m->data_len = m->pkt_len = n + k->pad + ROCE_ICRC_BYTES;
}

void roce_seal(struct rte_mbuf *m, const struct roce_pkt *k)
{
    const uint8_t *payload = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->hdr_len);

    roce_seal_crc(m, k, k->virt ? 0 : roce_crc(0, payload, k->len));
}

bool roce_icrc_ok(struct rte_mbuf *m, const struct roce_pkt *k)
{
    uint32_t left = k->len + k->pad, off = k->hdr_len, crc = 0, want;
    const uint8_t *p;
    uint8_t buf[4];

    if (likely(m->data_len >= off + left + ROCE_ICRC_BYTES)) {
        p = rte_pktmbuf_mtod_offset(m, const uint8_t *, off);
        memcpy(&want, p + left, sizeof(want));
        return want == icrc_of(m, k, roce_crc(0, p, left));
    }
    for (struct rte_mbuf *s = m; s && left; s = s->next) {
        uint32_t n = s->data_len > off ? s->data_len - off : 0;

        n = RTE_MIN(n, left);
        crc = roce_crc(crc, rte_pktmbuf_mtod_offset(s, uint8_t *, off), n);
        left -= n, off = 0;
    }
    p = rte_pktmbuf_read(m, k->hdr_len + k->len + k->pad, 4, buf);
    if (left || !p)
        return false;
    memcpy(&want, p, 4);
    return want == icrc_of(m, k, crc);
}
