/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends frames drawn from a seed: frames of a capture with bytes changed, cut and made longer, and
 * well-formed frames of every kind with fields that no process should send.
 *
 *     storm SEED FRAMES SECONDS [CAPTURE [deep]]
 *
 * Half of the changed frames carry the own addresses, and half a right ICRC. deep: all frames are
 * changed ones, from the BTH on, and carry what the NIC asks for, so that queue pairs and aggregation
 * nodes see every one. Ends after FRAMES or SECONDS; a NIC that takes no more frames has shut the
 * slot. Prints the number of frames sent and how it ended.
 */
#include "base/random.h"
#include "roce/icrc.h"
#include "tests/hostile/raw.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAPTURED   512
#define FRAME_MOST 4608
#define HEADERS    80 /* most changes fall there */
#define ETH_BYTES  14
#define IP_BYTES   20
#define UP_TO_BTH  (IP_BYTES + 8 + 12)
#define BATCH      64   /* frames between looks at the ring, which holds more */
#define SHUT_MS    1000 /* a NIC that has taken none for so long takes no more */
#define SLOW_MS    8000 /* unless others keep its link busy */

struct storm {
    struct raw raw;
    uint64_t rnd;
    bool deep;
    unsigned n_captured;
    struct captured {
        uint32_t len;
        uint8_t at[FRAME_MOST];
    } * captured;
};

static uint32_t below(struct storm *s, uint32_t n)
{
    return (uint32_t)(random_next(&s->rnd) % n);
}

static bool often(struct storm *s)
{
    return below(s, 2);
}

static bool is_roce(const uint8_t *f, uint32_t len)
{
    return len > HEADERS - 1 && f[12] == 8 && !f[13] && f[ETH_BYTES] == 0x45 &&
           f[ETH_BYTES + 9] == 17 && f[ETH_BYTES + IP_BYTES + 2] == ROCE_UDP_PORT >> 8 &&
           f[ETH_BYTES + IP_BYTES + 3] == (ROCE_UDP_PORT & 0xff);
}

static void load_capture(struct storm *s, const char *path)
{
    char err[PCAP_ERRBUF_SIZE];
    const unsigned char *data;
    struct pcap_pkthdr *hdr;
    pcap_t *in = pcap_open_offline(path, err);

    s->captured = calloc(CAPTURED, sizeof(*s->captured));
    if (!in || !s->captured)
        raw_die("%s: %s", path, in ? "no memory" : err);
    while (s->n_captured < CAPTURED && pcap_next_ex(in, &hdr, &data) == 1)
        if (hdr->caplen == hdr->len && hdr->len <= FRAME_MOST && hdr->len >= FRAME_MIN_BYTES &&
            (!s->deep || is_roce(data, hdr->len))) {
            struct captured *c = &s->captured[s->n_captured++];

            c->len = hdr->len;
            memcpy(c->at, data, hdr->len);
        }
    pcap_close(in);
    if (!s->n_captured)
        raw_die("%s: found no frame", path);
}

/* ---- changes ---- */

static void put_own_addresses(struct storm *s, uint8_t *f, uint32_t len)
{
    uint32_t ip = rte_cpu_to_be_32(s->raw.ip);

    roce_mac_of_ip(s->raw.ip, f + 6);
    if (len >= ETH_BYTES + IP_BYTES && f[12] == 8 && f[13] == 0)
        memcpy(f + ETH_BYTES + 12, &ip, sizeof(ip));
}

/* Header checksum of IPv4, and the ICRC where it is a RoCE v2 frame. */
static void put_sums(uint8_t *f, uint32_t len)
{
    uint8_t *ip = f + ETH_BYTES;
    uint32_t total, sum = 0, crc;

    if (len < ETH_BYTES + UP_TO_BTH + ROCE_ICRC_BYTES || f[12] != 8 || f[13] || ip[0] != 0x45)
        return;
    ip[10] = ip[11] = 0;
    for (unsigned i = 0; i < IP_BYTES; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~(sum + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
    total = (uint32_t)ip[2] << 8 | ip[3];
    if (total > len - ETH_BYTES || total < UP_TO_BTH + ROCE_ICRC_BYTES)
        return;
    crc = ~roce_crc(roce_icrc_headers(ip, UP_TO_BTH, 0), ip + UP_TO_BTH,
                    total - UP_TO_BTH - ROCE_ICRC_BYTES);
    memcpy(ip + total - ROCE_ICRC_BYTES, &crc, sizeof(crc));
}

/* What the NIC asks for of a RoCE v2 frame: own addresses, mark and, of a datagram, queue pair. */
static void put_own(struct storm *s, uint8_t *f, uint32_t len)
{
    uint8_t *bth = f + ETH_BYTES + IP_BYTES + 8;

    put_own_addresses(s, f, len);
    f[ETH_BYTES + 4] = 0;
    f[ETH_BYTES + 5] = (uint8_t)(s->raw.slot + 1);
    if ((bth[0] & ROCE_TRANSPORT_MASK) == ROCE_UD)
        bth[12 + 5] = (uint8_t)(s->raw.slot + 1); /* DETH's source QPN, behind the Q_Key */
}

/* From the BTH on. */
static struct rte_mbuf *changed_within(struct storm *s)
{
    const struct captured *c = &s->captured[below(s, s->n_captured)];
    uint32_t first = ETH_BYTES + IP_BYTES + 8, most = RTE_MIN(c->len, (uint32_t)HEADERS + 64);
    uint8_t f[FRAME_MOST];

    memcpy(f, c->at, c->len);
    for (uint32_t n = 1 + below(s, 4); n; n--) {
        uint32_t at = first + below(s, most - first);

        f[at] = (uint8_t)(often(s) ? f[at] ^ 1u << below(s, 8) : below(s, 256));
    }
    put_own(s, f, c->len);
    if (below(s, 4))
        put_sums(f, c->len);
    return raw_bytes(&s->raw, f, c->len);
}

static struct rte_mbuf *changed(struct storm *s)
{
    const struct captured *c = &s->captured[below(s, s->n_captured)];
    uint32_t len = c->len, n = 1 + below(s, 6);
    uint8_t f[FRAME_MOST];

    memcpy(f, c->at, len);
    if (below(s, 8) == 0) {
        uint32_t to = FRAME_MIN_BYTES + below(s, FRAME_MOST - FRAME_MIN_BYTES);

        if (to > len)
            memset(f + len, (int)below(s, 256), to - len);
        len = to;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = below(s, below(s, 4) ? RTE_MIN(len, (uint32_t)HEADERS) : len);

        f[at] = (uint8_t)(often(s) ? f[at] ^ 1u << below(s, 8) : below(s, 256));
    }
    if (often(s))
        put_own_addresses(s, f, len);
    if (often(s))
        put_sums(f, len);
    return raw_bytes(&s->raw, f, len);
}

/* ---- frames of every kind ---- */

static uint32_t any_node(struct storm *s)
{
    const struct fab_node *n = &s->raw.fab->nodes[below(s, s->raw.fab->n_nodes)];

    return n->kind == FAB_HOST ? n->ip_of_port[below(s, n->n_ports)] : n->ip;
}

static uint32_t any_source(struct storm *s)
{
    return below(s, 4) ? 0 : any_node(s);
}

static uint32_t any_qpn(struct storm *s)
{
    switch (below(s, 4)) {
    case 0:
        return AGG_QPN;
    case 1:
        return below(s, 1 << 24);
    default:
        return raw_qpn0(below(s, 4)) | below(s, 32);
    }
}

static struct rte_mbuf *any_control(struct storm *s)
{
    struct agg_ctl c;

    for (size_t i = 0; i < sizeof(c); i++)
        ((uint8_t *)&c)[i] = (uint8_t)(below(s, 3) ? 0 : below(s, 256));
    c.status = rte_cpu_to_be_16((uint16_t)below(s, AGG_STATUS_COUNT + 1));
    c.tree = rte_cpu_to_be_16((uint16_t)below(s, 4));
    c.mtu = rte_cpu_to_be_16((uint16_t)s->raw.fab->mtu);
    c.group = rte_cpu_to_be_32(below(s, 64));
    c.window = rte_cpu_to_be_32(below(s, 4096));
    c.qpn = rte_cpu_to_be_32(often(s) ? any_qpn(s) : raw_qpn0((unsigned)s->raw.slot) | 1);
    c.member = rte_cpu_to_be_32(below(s, 16));
    c.node = rte_cpu_to_be_16(often(s) ? 0xffff : (uint16_t)below(s, s->raw.fab->n_nodes));
    c.ranks_per_host = rte_cpu_to_be_16((uint16_t)(1 + below(s, 2)));
    c.n_spans = rte_cpu_to_be_16((uint16_t)(often(s) ? 0 : below(s, AGG_SPANS + 2)));
    return raw_agg(&s->raw, any_source(s), any_node(s), often(s) ? 0 : any_qpn(s),
                   often(s) ? AGG_QPN : any_qpn(s), (enum agg_type)below(s, AGG_WINDOW + 2), &c);
}

static struct rte_mbuf *any_roce(struct storm *s)
{
    uint8_t payload[4096];
    struct roce_pkt p = {.src_ip = any_source(s),
                         .dst_ip = any_node(s),
                         .dqpn = any_qpn(s),
                         .sqpn = any_qpn(s),
                         .psn = below(s, 1 << 24),
                         .qkey = often(s) ? AGG_QKEY : below(s, 1u << 31),
                         .syndrome = (uint8_t)below(s, 256),
                         .msn = below(s, 1 << 24),
                         .ack_req = often(s),
                         .len = often(s) ? 0 : below(s, s->raw.fab->mtu)};

    do
        p.opcode = (uint8_t)below(s, 256);
    while (!roce_opinfo[p.opcode].name);
    if (roce_opinfo[p.opcode].rule == ROCE_LEN_NONE)
        p.len = 0;
    memset(payload, (int)below(s, 256), p.len);
    return raw_roce(&s->raw, &p, payload);
}

static struct rte_mbuf *any_bytes(struct storm *s)
{
    uint8_t f[FRAME_MOST];
    uint32_t len = often(s) ? 1 + below(s, FRAME_MIN_BYTES) : 1 + below(s, FRAME_MOST);

    for (uint32_t i = 0; i < len; i++)
        f[i] = (uint8_t)random_next(&s->rnd);
    if (len >= ETH_BYTES && often(s)) {
        static const uint16_t types[] = {0x0800, 0x0806, 0x8808, 0x86dd, 0x8100};
        uint16_t type = types[below(s, RTE_DIM(types))];

        f[12] = (uint8_t)(type >> 8), f[13] = (uint8_t)type;
        roce_mac_of_ip(any_node(s), f);
        put_own_addresses(s, f, len);
    }
    return raw_bytes(&s->raw, f, len);
}

static struct rte_mbuf *draw(struct storm *s)
{
    if (s->deep)
        return changed_within(s);
    if (s->n_captured && below(s, 4))
        return changed(s);
    switch (below(s, 8)) {
    case 0:
        return raw_cnp(&s->raw, any_source(s), any_node(s), any_qpn(s));
    case 1:
        return raw_igmp(&s->raw, (enum igmp_what)below(s, 3), 0xe8000000u | below(s, 256),
                        any_source(s));
    case 2:
        return raw_arp(&s->raw, (uint16_t)(1 + below(s, 2)), any_source(s), NULL, any_node(s));
    case 3:
        return any_bytes(s);
    case 4:
    case 5:
        return any_control(s);
    default:
        return any_roce(s);
    }
}

int main(int argc, char **argv)
{
    static struct storm s;
    uint64_t most;
    int64_t end;
    const char *how = "all";

    if (argc < 4)
        raw_die("usage: storm SEED FRAMES SECONDS [CAPTURE [deep]]");
    s.deep = argc > 5;
    raw_open(&s.raw, NULL, 0, -1);
    s.rnd = strtoull(argv[1], NULL, 10);
    most = strtoull(argv[2], NULL, 10);
    end = clock_mono_ns() + atoi(argv[3]) * 1000000000LL;
    if (argc > 4)
        load_capture(&s, argv[4]);
    while (s.raw.sent < most) {
        if (clock_mono_ns() > end) {
            how = "time is over";
            break;
        }
        raw_send(&s.raw, draw(&s));
        if (s.raw.sent % BATCH)
            continue;
        raw_drain(&s.raw);
        if (!raw_flush(&s.raw, s.deep ? SLOW_MS : SHUT_MS)) {
            how = "shut";
            break;
        }
    }
    printf("sent %llu (%s)\n", (unsigned long long)s.raw.sent, how);
    return 0;
}
