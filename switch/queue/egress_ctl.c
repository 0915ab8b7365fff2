/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/queue/egress_priv.h"

#include "base/cacheline.h"
#include "fabric/fabric.h"
#include "roce/wire.h"

#include <errno.h>
#include <stdlib.h>

/* Drops the waiting frames of a class, which releases them at their ingress ports. */
static uint32_t flush(struct egress *e, enum frame_class cls, int64_t now_ps)
{
    struct waiting *r = &e->q[cls];
    uint32_t n = 0;

    for (; r->line.n; n++) {
        struct rte_mbuf *m = wait_take(e, cls);

        if (e->departed)
            e->departed(e->ctx, &m, &now_ps, 1, frame_bytes(m));
        rte_pktmbuf_free(m);
    }
    return n;
}

void egress_set_down(struct egress *e, bool down, int64_t now_ps)
{
    e->down = down;
    for (int c = 0; down && c < FRAME_CLASSES; c++)
        e->st.down_drops += flush(e, c, now_ps);
    for (int c = 0; c < FRAME_CLASSES; c++)
        egress_pause(e, c, 0, now_ps);
}

static uint32_t limit_of(const struct egress *e, enum frame_class cls)
{
    return RTE_MIN(e->cfg.limit_pkts[cls], EGRESS_MAX_PKTS);
}

/* Sets the limit to 0, which refuses every frame, so the fast path needs no further check. */
void egress_discard(struct egress *e, bool on, int64_t now_ps)
{
    e->discards = on;
    e->q[FRAME_LOSSLESS].line.limit = on ? 0 : limit_of(e, FRAME_LOSSLESS);
    if (on)
        e->st.discarded += flush(e, FRAME_LOSSLESS, now_ps);
    /* The pause stays as it is; this only plans the next start. */
    egress_pause(e, FRAME_LOSSLESS, e->pause_ps[FRAME_LOSSLESS], now_ps);
}

bool egress_discards(const struct egress *e)
{
    return e->discards;
}

bool egress_stuck(const struct egress *e, uint64_t *taken, int64_t now_ps)
{
    const struct waiting *r = &e->q[FRAME_LOSSLESS];
    bool same = *taken == r->taken;

    *taken = r->taken;
    return same && r->line.n && egress_is_paused(e, now_ps);
}

bool egress_is_paused(const struct egress *e, int64_t now_ps)
{
    return e->pause_ps[FRAME_LOSSLESS] > now_ps;
}

bool egress_is_down(const struct egress *e)
{
    return e->down;
}

int64_t egress_next_start(const struct egress *e)
{
    return e->start_ps;
}

int64_t egress_next_arrival(const struct egress *e)
{
    return e->flight.first_ps;
}

uint64_t egress_occupancy(const struct egress *e, enum frame_class cls)
{
    return e->q[cls].bytes;
}

void egress_restart_peak(struct egress *e)
{
    e->st.peak_bytes = e->waiting_bytes;
    for (int c = 0; c < FRAME_CLASSES; c++)
        e->st.class_peak_bytes[c] = e->q[c].bytes;
}

uint32_t egress_room(const struct egress *e, enum frame_class cls, uint32_t max_bytes,
                     uint32_t most)
{
    const struct waiting *r = &e->q[cls];
    uint64_t left = r->bytes < r->limit_bytes ? r->limit_bytes - r->bytes : 0;

    if (unlikely(e->discards &&
                 cls == FRAME_LOSSLESS)) /* it drops frames, so the sender must not wait for room */
        return RTE_MIN(most, limit_of(e, cls));
    T_ASSERT_HOT(r->line.n <= r->line.limit, "a class holds more frames than its limit");
    most = RTE_MIN(most, r->line.limit - r->line.n);
    return likely(left >= (uint64_t)most * max_bytes) ? most : (uint32_t)(left / max_bytes);
}

struct egress_stats egress_stats(const struct egress *e)
{
    struct egress_stats st = e->st;

    st.peak_bytes = RTE_MAX(st.peak_bytes, e->waiting_bytes);
    for (unsigned c = 0; c < FRAME_CLASSES; c++)
        st.class_peak_bytes[c] = RTE_MAX(st.class_peak_bytes[c], e->q[c].bytes);
    st.link_bytes = st.bytes + st.frames * FRAME_LINK_OVERHEAD;
    return st;
}

int64_t egress_paused_ps(const struct egress *e, int64_t now_ps)
{
    int64_t until = e->pause_ps[FRAME_LOSSLESS];

    return e->st.paused_ps - (until != PS_NEVER ? RTE_MAX(until - now_ps, (int64_t)0) : 0);
}

void egress_on_earlier(struct egress *e, void (*fn)(void *ctx), void *ctx)
{
    e->earlier = fn;
    e->watcher = ctx;
}

/* Most frames that can be in flight at once: the shortest ones, back to back. */
static uint32_t flight_size(const struct egress_cfg *cfg)
{
    int64_t span = cfg->latency_ps + RTE_MAX(cfg->faults.jitter_ps, (int64_t)0), n = FLIGHT_MAX;

    if (cfg->rate_bps)
        n = span / link_time_ps(FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD, cfg->rate_bps) + FLIGHT_MIN;
    return rte_align32pow2((uint32_t)RTE_MIN(n, (int64_t)FLIGHT_MAX));
}

bool egress_is_shaped(const struct egress *e)
{
    return e->cfg.rate_bps && e->cfg.latency_ps;
}

/* Frames that a fault has delayed may still be in flight when the faults are over. */
bool egress_is_in_order(const struct egress *e)
{
    return !e->faults && (!e->flight.n || e->flight.last_ps <= e->last_at_ps);
}

void egress_count_faults(struct egress *e, uint32_t *n)
{
    T_ASSERT(!e->n_faulty || *e->n_faulty >= e->faults, "fewer queues with faults than there are");
    if (e->n_faulty)
        *e->n_faulty -= e->faults;
    e->n_faulty = n;
    if (n)
        *n += e->faults;
}

/* While apart the link is never full, because the starting end may be ahead of the other. */
void egress_apart(struct egress *e, void (*first)(void *ctx))
{
    T_ASSERT(!first || (egress_is_shaped(e) && egress_is_in_order(e) && e->earlier),
             "a link runs with its ends apart, but has faults, no latency, or no callback");
    e->first = first;
    e->flight.limit = first ? UINT32_MAX : flight_size(&e->cfg) - 1;
}

void egress_set_faults(struct egress *e, const struct egress_faults *f)
{
    struct egress_cfg wanted = e->cfg;
    uint32_t size;

    T_ASSERT(!e->first, "faults change while the ends of the link are apart");
    wanted.faults = *f;
    size = flight_size(&wanted);
    e->flight.limit = RTE_MAX(e->flight.limit, size - 1);
    e->cfg.faults = *f;
    fault_set(&e->fault, f);
    if (e->n_faulty)
        *e->n_faulty += (uint32_t)e->fault.on - e->faults;
    e->faults = e->fault.on;
}

/* Sets what the fast path reads of rate and latency. */
static void set_pace(struct egress *e)
{
    const struct egress_cfg *cfg = &e->cfg;

    e->latency_ps = cfg->latency_ps;
    e->rate_bps = cfg->rate_bps;
    e->exact = cfg->rate_bps && 8 * PS_PER_S % cfg->rate_bps == 0;
    e->takes_ps = e->exact ? (int64_t)(8 * PS_PER_S / cfg->rate_bps) : 0;
    e->last_bytes = 0;
    e->cuts = cfg->cut_bytes && cfg->rate_bps;
    e->header_ps = e->cuts ? link_time_ps(cfg->cut_bytes, cfg->rate_bps) : 0;
    e->stretches = (cfg->mm_load || cfg->mm_store) && cfg->rate_bps;
}

/* Keeps last_at_ps, and so the order of arrivals: frames that start now arrive after those in flight. */
void egress_set_link(struct egress *e, uint64_t rate_bps, int64_t latency_ps)
{
    int64_t before = watched(e);
    uint32_t size;

    T_ASSERT(!e->first, "rate or latency change while the ends of the link are apart");
    T_ASSERT(rate_bps && latency_ps >= 0, "a link gets no rate, or a negative latency");
    e->cfg.rate_bps = rate_bps;
    e->cfg.latency_ps = latency_ps;
    set_pace(e);
    size = flight_size(&e->cfg);
    e->flight.limit = RTE_MAX(e->flight.limit, size - 1);
    egress_plan(e);
    call_if_earlier(e, before);
}

uint64_t egress_rate_bps(const struct egress *e)
{
    return e->rate_bps;
}

int64_t egress_latency_ps(const struct egress *e)
{
    return e->latency_ps;
}

const struct egress_faults *egress_faults(const struct egress *e)
{
    return &e->cfg.faults;
}

/* The headers that collectives send: IPv4 without options, UDP, BTH. */
#define ETHERTYPE_AT 12u
#define SRC_IP_AT    26u
#define DST_IP_AT    30u
#define OPCODE_AT    42u

int64_t egress_stretched(const struct egress *e, struct rte_mbuf *m, int64_t dur)
{
    const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
    rte_be32_t switch_ip = rte_cpu_to_be_32(e->cfg.mm_ip);
    uint8_t what;

    if (frame_meta(m)->cls != FRAME_LOSSLESS || m->data_len <= OPCODE_AT || p[ETHERTYPE_AT] != 8 ||
        p[ETHERTYPE_AT + 1] ||
        (memcmp(p + SRC_IP_AT, &switch_ip, 4) && memcmp(p + DST_IP_AT, &switch_ip, 4)))
        return dur;
    what = roce_opinfo[p[OPCODE_AT]].what;
    if (what & ROCE_P_WRITE)
        return fab_stretch(dur, e->cfg.mm_store);
    return (what & ROCE_P_READ) && (what & ROCE_P_RESPONSE) ? fab_stretch(dur, e->cfg.mm_load)
                                                            : dur;
}

int egress_create(struct egress **out, const struct egress_cfg *cfg)
{
    struct egress *e = cacheline_alloc(sizeof(*e));

    *out = NULL;
    if (!e)
        return -ENOMEM;
    T_ASSERT(cfg->latency_ps >= 0, "frames arrive before they have started");
    e->cfg = *cfg;
    e->departed = cfg->departed;
    e->pull = cfg->pull;
    e->ctx = cfg->ctx;
    e->start_ps = e->pull_ps = PS_NEVER;
    T_ASSERT(cfg->cut_bytes <= FRAME_MIN_BYTES + FRAME_LINK_OVERHEAD,
             "a switch that cuts through waits for more than the shortest frame");
    set_pace(e);
    fault_set(&e->fault, &cfg->faults);
    e->faults = e->fault.on;
    ecn_init(&e->ecn, cfg->ecn_bytes, cfg->ecn_max_bytes, cfg->ecn_prob, cfg->ecn_seed);
    e->marks = e->ecn.min_bytes;
    e->flight.limit = flight_size(cfg) - 1;
    e->flight.first_ps = PS_NEVER;
    for (int c = 0; c < FRAME_CLASSES; c++) {
        e->q[c].line.first_ps = PS_NEVER;
        e->q[c].limit_bytes = cfg->limit_bytes[c];
        e->q[c].line.limit = limit_of(e, c);
    }
    *out = e;
    return 0;
}

void egress_destroy(struct egress *e)
{
    if (!e)
        return;
    T_ASSERT(classes_agree(e), "the classes of a queue and their sums disagree");
    while (e->flight.n)
        rte_pktmbuf_free(line_take(&e->flight));
    for (int c = 0; c < FRAME_CLASSES; c++) {
        while (e->q[c].line.n)
            rte_pktmbuf_free(wait_take(e, (unsigned)c));
        T_ASSERT(!e->q[c].bytes, "a class counts bytes of frames that it does not have");
    }
    free(e);
}

void egress_prefetch(const struct egress *e, bool starts)
{
    rte_prefetch0(&e->flight);
    if (starts)
        cacheline_prefetch(e, offsetof(struct egress, cfg));
}

struct rte_mbuf *egress_first(const struct egress *e, bool starts)
{
    const struct egress_line *l = starts ? &e->q[FRAME_LOSSLESS].line : &e->flight;

    return l->n ? l->first : NULL;
}
