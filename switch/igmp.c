/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/mcast.h"

#include "base/assert.h"

#include <errno.h>
#include <string.h>

enum {
    IGMP_T_QUERY = 0x11,
    IGMP_T_V1_REPORT = 0x12,
    IGMP_T_V2_REPORT = 0x16,
    IGMP_T_V2_LEAVE = 0x17,
    IGMP_T_V3_REPORT = 0x22
};
/* Record types of a version 3 report, RFC 3376 4.2.12. */
enum { V3_IS_IN = 1, V3_IS_EX, V3_TO_IN, V3_TO_EX, V3_ALLOW, V3_BLOCK };

#define ALL_HOSTS   0xe0000001u
#define ALL_ROUTERS 0xe0000002u

static bool is_group(uint32_t ip)
{
    return ip >> 28 == 14;
}

static uint16_t igmp_checksum(const uint8_t *p, uint32_t n)
{
    uint32_t sum = 0;

    for (; n > 1; n -= 2, p += 2)
        sum += load_be16(p);
    if (n)
        sum += (uint32_t)*p << 8;
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

/* The meaning of a record for the port, without regard to sources; -1: none. */
static int v3_record(uint8_t type, uint16_t n_src)
{
    switch (type) {
    case V3_IS_EX:
    case V3_TO_EX:
        return IGMP_JOIN;
    case V3_IS_IN:
    case V3_TO_IN:
        return n_src ? IGMP_JOIN : IGMP_LEAVE;
    case V3_ALLOW:
        return n_src ? IGMP_JOIN : -1;
    default:
        return -1;
    }
}

static int parse_v3(const uint8_t *p, uint32_t len,
                    void (*fn)(void *ctx, enum igmp_what what, uint32_t group), void *ctx)
{
    uint32_t n = load_be16(p + 6), off = 8;

    for (; n; n--) {
        uint32_t bytes, group;
        int what;

        if (len - off < 8)
            return -EINVAL;
        bytes = 8 + 4u * load_be16(p + off + 2) + 4u * p[off + 1];
        group = load_be32(p + off + 4);
        if (len - off < bytes || !is_group(group))
            return -EINVAL;
        what = v3_record(p[off], load_be16(p + off + 2));
        if (what >= 0)
            fn(ctx, (enum igmp_what)what, group);
        off += bytes;
    }
    return 0;
}

int igmp_parse(struct rte_mbuf *m, const struct packet_class *k,
               void (*fn)(void *ctx, enum igmp_what what, uint32_t group), void *ctx)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->l3),
                  *p = ip + (k->l4 - k->l3);
    uint32_t len = load_be16(ip + 2) - (uint32_t)(k->l4 - k->l3), group;

    T_ASSERT(k->kind == PACKET_IGMP, "a frame that is not IGMP is read as such");
    if (len < 8 || m->data_len < k->l4 + len || igmp_checksum(p, len) != 0)
        return -EINVAL;
    group = load_be32(p + 4);
    switch (p[0]) {
    case IGMP_T_QUERY:
        fn(ctx, IGMP_QUERY, group);
        return 0;
    case IGMP_T_V1_REPORT:
    case IGMP_T_V2_REPORT:
        if (!is_group(group))
            return -EINVAL;
        fn(ctx, IGMP_JOIN, group);
        return 0;
    case IGMP_T_V2_LEAVE:
        if (!is_group(group))
            return -EINVAL;
        fn(ctx, IGMP_LEAVE, group);
        return 0;
    case IGMP_T_V3_REPORT:
        return parse_v3(p, len, fn, ctx);
    default:
        return -EINVAL;
    }
}

static void be32_put(uint8_t *p, uint32_t v)
{
    p[0] = v >> 24, p[1] = v >> 16, p[2] = v >> 8, p[3] = v;
}

struct rte_mbuf *igmp_build(struct rte_mempool *pool, enum igmp_what what, uint32_t group,
                            uint32_t src_ip, const uint8_t src_mac[6])
{
    /* IPv4 with the router alert option, TTL 1, protocol 2 (RFC 2236). */
    static const uint8_t ip_head[24] = {
        0x46, 0xc0, 0, 32, 0, 0, 0x40, 0, 1, IPPROTO_NUM_IGMP, [20] = 0x94, 4, 0, 0};
    uint32_t dst = what == IGMP_LEAVE ? ALL_ROUTERS : what == IGMP_QUERY ? ALL_HOSTS : group;
    uint8_t type = what == IGMP_LEAVE   ? IGMP_T_V2_LEAVE
                   : what == IGMP_QUERY ? IGMP_T_QUERY
                                        : IGMP_T_V2_REPORT;
    struct rte_mbuf *m = frame_alloc(pool);
    uint8_t *p, *ip, *ig;
    uint16_t sum;

    if (!m)
        return NULL;
    m->data_len = m->pkt_len = FRAME_MIN_BYTES;
    p = rte_pktmbuf_mtod(m, uint8_t *);
    memset(p, 0, FRAME_MIN_BYTES);
    ip = p + 14, ig = ip + sizeof(ip_head);
    be32_put(p + 2, dst & 0x7fffff);
    p[0] = 0x01, p[1] = 0x00, p[2] = 0x5e;
    memcpy(p + 6, src_mac, 6);
    p[12] = 0x08;
    memcpy(ip, ip_head, sizeof(ip_head));
    be32_put(ip + 12, src_ip);
    be32_put(ip + 16, dst);
    sum = igmp_checksum(ip, sizeof(ip_head));
    ip[10] = sum >> 8, ip[11] = (uint8_t)sum;
    ig[0] = type;
    be32_put(ig + 4, group);
    sum = igmp_checksum(ig, 8);
    ig[2] = sum >> 8, ig[3] = (uint8_t)sum;
    frame_meta(m)->cls = FRAME_CONTROL;
    frame_meta(m)->in_port = 0xffff;
    return m;
}
