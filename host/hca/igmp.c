/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces membership of multicast groups to the fabric by IGMP version 2 (RFC 2236): a report
 * when the first queue pair of this HCA attaches to a group, a leave when the last one detaches.
 * Switches snoop; there are no queriers. The NIC answers a report with the same report, or with a
 * leave to refuse it: the host, or this process, is then in as many groups as it may be.
 */
#include "base/log.h"
#include "host/hca/hca_priv.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define ALL_ROUTERS 0xe0000002u
#define IP_BYTES    24 /* with the router alert option (RFC 2113) */
#define IGMP_BYTES  8

#define WAIT_PS (2000 * PS_PER_MS) /* for the NIC's answer; without one a join counts as granted */

enum igmp_answer { IGMP_ASKED, IGMP_GRANTED, IGMP_REFUSED };
enum { IGMP_REPORT_V2 = 0x16, IGMP_LEAVE = 0x17 };

static uint16_t report_checksum(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = v >> 8, p[1] = (uint8_t)v;
}

static void word_put(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16), put16(p + 2, (uint16_t)v);
}

static void igmp_build_frame(struct rte_mbuf *m, uint32_t src, uint32_t group, bool leave)
{
    uint8_t *eth = (uint8_t *)rte_pktmbuf_append(m, FRAME_MIN_BYTES), *ip = eth + 14,
            *igmp = ip + IP_BYTES;
    uint32_t dst = leave ? ALL_ROUTERS : group;

    memset(eth, 0, FRAME_MIN_BYTES);
    addr_mac_of_ip(dst, eth);
    addr_mac_of_ip(src, eth + 6);
    put16(eth + 12, 0x0800);
    ip[0] = 0x46, ip[1] = 0xc0;
    put16(ip + 2, IP_BYTES + IGMP_BYTES);
    ip[8] = 1, ip[9] = 2; /* one hop; IGMP */
    word_put(ip + 12, src);
    word_put(ip + 16, dst);
    word_put(ip + 20, 0x94040000);
    put16(ip + 10, report_checksum(ip, IP_BYTES));
    igmp[0] = leave ? IGMP_LEAVE : IGMP_REPORT_V2;
    word_put(igmp + 4, group);
    put16(igmp + 2, report_checksum(igmp, IGMP_BYTES));
    frame_meta(m)->cls = FRAME_CONTROL;
}

/* Builds up to n waiting messages into m. Returns how many. */
uint16_t igmp_output(struct hca *h, struct rte_mbuf **m, uint16_t n)
{
    uint16_t k = 0;

    T_ASSERT_HOT(h->igmp_n <= HCA_IGMP_QUEUE, "more IGMP messages wait than their queue holds");
    while (k < n && h->igmp_n) {
        m[k] = frame_alloc(h->cfg.pool);
        if (!m[k])
            break;
        igmp_build_frame(m[k++], h->cfg.ip, h->igmp[0].group, h->igmp[0].leave);
        memmove(h->igmp, h->igmp + 1, --h->igmp_n * sizeof(h->igmp[0]));
    }
    return k;
}

static void igmp_announce(struct hca *h, uint32_t group, bool leave)
{
    /* A waiting message about the same group is out of date. */
    for (unsigned i = 0; i < h->igmp_n; i++)
        if (h->igmp[i].group == group) {
            memmove(h->igmp + i, h->igmp + i + 1, (--h->igmp_n - i) * sizeof(h->igmp[0]));
            break;
        }
    if (h->igmp_n < HCA_IGMP_QUEUE)
        h->igmp[h->igmp_n++] = (struct hca_igmp){group, leave};
}

static struct hca_group *igmp_find(struct hca *h, uint32_t group)
{
    for (unsigned i = 0; i < ROCE_MAX_MCAST; i++)
        if (h->group[i].refs && h->group[i].ip == group)
            return &h->group[i];
    return NULL;
}

static void drop_ref(struct hca *h, struct hca_group *g)
{
    T_ASSERT(g->refs && h->igmp_groups, "a group is left more often than it was joined");
    if (!--g->refs)
        h->igmp_groups--;
}

/* Waits for the NIC's answer. hca_wait() drops the lock, so the group is looked up again. */
static int await(struct hca *h, uint32_t group)
{
    struct hca_group *g = igmp_find(h, group);
    int64_t until;

    hca_kick(h); /* which also brings h->now_ps up to date */
    until = h->now_ps + WAIT_PS;
    while ((g = igmp_find(h, group)) && g->answer == IGMP_ASKED && h->nic_up && h->now_ps <= until)
        if (!hca_wait(h))
            break;
    return g && g->answer == IGMP_REFUSED ? -ENOSPC : 0;
}

int igmp_join(struct hca *h, uint32_t group)
{
    struct hca_group *g = igmp_find(h, group);
    int rc;

    for (unsigned i = 0; !g && i < ROCE_MAX_MCAST; i++)
        if (!h->group[i].refs) {
            g = &h->group[i];
            *g = (struct hca_group){.ip = group, .answer = IGMP_REFUSED};
            h->igmp_groups++;
        }
    T_ASSERT(g, "the engine allowed more attachments than there are groups");
    g->refs++;
    if (g->answer == IGMP_REFUSED) {
        g->answer = IGMP_ASKED;
        igmp_announce(h, group, false);
    }
    rc = await(h, group);
    g = igmp_find(h, group);
    if (rc && g)
        drop_ref(h, g);
    return rc;
}

void igmp_leave(struct hca *h, uint32_t group)
{
    struct hca_group *g = igmp_find(h, group);

    if (!g)
        return;
    drop_ref(h, g);
    if (!g->refs)
        igmp_announce(h, group, true);
}

/* Called when the port comes up again: the NIC may be a new one, which knows no membership. */
void igmp_repeat(struct hca *h)
{
    for (unsigned i = 0; i < ROCE_MAX_MCAST; i++)
        if (h->group[i].refs)
            igmp_announce(h, h->group[i].ip, false);
}

/* ---- the NIC's answers ---- */

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void igmp_answered(struct hca *h, uint8_t type, uint32_t group)
{
    struct hca_group *g = igmp_find(h, group);

    if (!g || (type != IGMP_REPORT_V2 && type != IGMP_LEAVE))
        return;
    if (type == IGMP_LEAVE && g->answer == IGMP_GRANTED)
        T_LOG("hca", LOG_WARN, "multicast group %u.%u.%u.%u is refused by the fabric", group >> 24,
              group >> 16 & 0xff, group >> 8 & 0xff, group & 0xff);
    g->answer = type == IGMP_LEAVE ? IGMP_REFUSED : IGMP_GRANTED;
}

/* Consumes an IGMP answer of the NIC: from this HCA's address, with one IP option. */
static bool igmp_take(struct hca *h, struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *), *ip = p + 14, *igmp = ip + IP_BYTES;

    if (m->data_len < 14 + IP_BYTES + IGMP_BYTES || p[12] != 0x08 || p[13] || ip[0] != 0x46 ||
        ip[9] != 2)
        return false;
    if (get32(ip + 12) == h->cfg.ip)
        igmp_answered(h, igmp[0], get32(igmp + 4));
    rte_pktmbuf_free(m);
    return true;
}

uint16_t igmp_input(struct hca *h, struct rte_mbuf **m, uint16_t n)
{
    uint16_t k = 0;

    for (uint16_t i = 0; i < n; i++)
        if (!igmp_take(h, m[i]))
            m[k++] = m[i];
    return k;
}
