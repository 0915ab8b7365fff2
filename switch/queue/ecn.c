/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/ecn.h"

#include "base/assert.h"

void ecn_init(struct ecn *e, uint64_t min_bytes, uint64_t max_bytes, double prob, uint64_t seed)
{
    T_ASSERT(prob >= 0 && prob <= 1, "marks with a probability that is none");
    e->min_bytes = min_bytes;
    e->max_bytes = RTE_MAX(max_bytes, min_bytes);
    e->prob = (uint64_t)(prob * (double)(1ull << 53));
    fault_seed(&e->rng, seed);
}

bool ecn_hits(struct ecn *e, uint64_t waiting)
{
    uint64_t span = e->max_bytes - e->min_bytes;

    if (!e->min_bytes || waiting <= e->min_bytes)
        return false;
    if (waiting > e->max_bytes)
        return true;
    return (fault_draw(&e->rng) >> 11) <
           (uint64_t)((unsigned __int128)e->prob * (waiting - e->min_bytes) / span);
}

struct rte_mbuf *ecn_mark(struct rte_mbuf *m, struct rte_mempool *pool, uint64_t *marks)
{
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *), ecn;
    uint32_t l3 = 14, sum;
    bool v6;

    if (m->data_len >= 18 && p[12] == 0x81 && p[13] == 0)
        l3 = 18;
    if (m->data_len < l3 + 20)
        return m;
    v6 = p[l3 - 2] == 0x86 && p[l3 - 1] == 0xdd && p[l3] >> 4 == 6;
    if (!v6 && (p[l3 - 2] != 0x08 || p[l3 - 1] != 0 || p[l3] >> 4 != 4))
        return m;
    ecn = (v6 ? p[l3 + 1] >> 4 : p[l3 + 1]) & 3; /* IPv6: the traffic class is shifted by 4 */
    if (ecn == 0 || ecn == 3)
        return m;
    if (pool) {
        struct rte_mbuf *w = frame_writable(m, pool);

        if (!w)
            return m;
        m = w;
    } else if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1) {
        return m;
    }
    p = rte_pktmbuf_mtod(m, uint8_t *) + l3;
    ++*marks;
    if (v6) {
        p[1] |= 3 << 4;
        return m;
    }
    sum = (uint16_t) ~(p[10] << 8 | p[11]) + (uint16_t) ~(p[0] << 8 | p[1]);
    p[1] |= 3;
    sum += (uint32_t)(p[0] << 8 | p[1]);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    p[10] = sum >> 8, p[11] = sum;
    return m;
}
