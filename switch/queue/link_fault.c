/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/link_fault.h"

#include "base/random.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "switch/queue/egress.h"

#define MAC_BYTES                                                                                  \
    12u /* flips bits only behind the addresses: a real MAC's FCS protects frames
           from wrong receivers */

static inline uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t fault_draw(struct fault_rng *r)
{
    uint64_t *s = r->s, out = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

static void flip(struct rte_mbuf *m, uint32_t bit)
{
    *rte_pktmbuf_mtod_offset(m, uint8_t *, bit / 8) ^= 1u << (bit & 7);
}

/* A length-only frame has no ICRC: notes whether the flipped bit would have been in its data. */
static void flip_length_only(struct rte_mbuf *m, uint32_t bit)
{
    struct roce_pkt k;
    const uint8_t *ip;
    uint32_t n, was;

    if (roce_parse(m, &k) != ROCE_OK || bit / 8 >= k.hdr_len) {
        frame_meta(m)->flags |= FRAME_F_DAMAGED;
        return;
    }
    ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k.l3);
    n = k.hdr_len - k.l3;
    was = k.v6 ? roce_icrc_headers6(ip, n, 0) : roce_icrc_headers(ip, n, 0);
    flip(m, bit);
    if (was != (k.v6 ? roce_icrc_headers6(ip, n, 0) : roce_icrc_headers(ip, n, 0)))
        frame_meta(m)->flags |= FRAME_F_DAMAGED;
}

struct rte_mbuf *fault_corrupt(struct fault *f, struct rte_mbuf *m, struct rte_mempool *pool)
{
    uint64_t draw = fault_draw(&f->rng);
    struct rte_mbuf *c = NULL;

    if (pool && m->pkt_len > MAC_BYTES)
        c = frame_copy(m, pool);
    if (c && c->nb_segs == 1) {
        uint32_t bytes = m->pkt_len + frame_meta(m)->virt_len - MAC_BYTES,
                 bit = MAC_BYTES * 8 + (uint32_t)((draw >> 32) % (bytes * 8));

        *frame_meta(c) = *frame_meta(m);
        frame_meta(c)->flags &= ~FRAME_F_TRUSTED;
        if (frame_meta(c)->flags & FRAME_F_VIRTUAL)
            flip_length_only(c, bit);
        else
            flip(c, bit);
    } else {
        rte_pktmbuf_free(c);
        c = NULL;
    }
    rte_pktmbuf_free(m);
    return c;
}

void fault_seed(struct fault_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = random_next(&seed);
}

uint64_t fault_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a;

    b ^= random_next(&x);
    return random_next(&b);
}

/* The only floating-point number of a probability; decisions compare integers. */
static uint64_t threshold(double p)
{
    if (!(p > 0))
        return 0;
    return p >= 1 ? 1ull << 53 : (uint64_t)(p * (double)(1ull << 53));
}

void fault_set(struct fault *f, const struct egress_faults *cfg)
{
    f->loss = threshold(cfg->loss);
    f->dup = threshold(cfg->dup);
    f->reorder = threshold(cfg->reorder);
    f->corrupt = threshold(cfg->corrupt);
    f->jitter_ps = cfg->jitter_ps > 0 ? cfg->jitter_ps : 0;
    f->on = f->loss || f->dup || f->reorder || f->corrupt || f->jitter_ps;
    fault_seed(&f->rng, cfg->seed);
}
