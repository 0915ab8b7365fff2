/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are handled in a burst have the same times and fates as one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#include "switch/classify.h"
#include "switch/queue/egress.h"
#include "tests/support/eal.h"
#include "tests/support/egress_fixture.h"
#include "tests/support/switch_fixture.h"

#define EVENTS 100000

static struct rte_mempool *pool;

/* Events in order; two histories are compared. */
struct history {
    unsigned n;
    struct seen {
        uint32_t what, tag;
        int64_t at_ps;
    } ev[EVENTS];
};

static void note(struct history *h, uint32_t what, uint32_t tag, int64_t at_ps)
{
    assert_true(h->n < EVENTS);
    h->ev[h->n++] = (struct seen){what, tag, at_ps};
}

static void assert_same(const struct history *a, const struct history *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        if (memcmp(&a->ev[i], &b->ev[i], sizeof(a->ev[i])))
            fail_msg("event %u: %u of frame %u at %lld ps, one by one %u of %u at %lld", i,
                     a->ev[i].what, a->ev[i].tag, (long long)a->ev[i].at_ps, b->ev[i].what,
                     b->ev[i].tag, (long long)b->ev[i].at_ps);
    assert_int_equal(a->n, b->n);
}

static uint32_t draw(uint64_t *rng)
{
    *rng = *rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*rng >> 33);
}

/* ---- one queue ---- */

struct side {
    struct egress *e;
    struct history arrived, started;
    uint64_t dropped, together;
};

static void started(void *ctx, struct rte_mbuf *const *m, const int64_t *at_ps, uint32_t n,
                    uint32_t bytes)
{
    struct side *s = ctx;

    for (uint32_t i = 0; i < n; i++)
        note(&s->started, 0, egress_fixture_tag(m[i]), at_ps[i]), bytes -= frame_bytes(m[i]);
    assert_int_equal(bytes, 0);
}

/* once: a late poll; otherwise a poll at every deadline of the queue. */
static void poll_until(struct side *s, int64_t now, bool once)
{
    struct rte_mbuf *m[7];
    int64_t t = now;
    uint16_t n;

    do {
        if (!once)
            t = RTE_MIN(egress_next(s->e), now);
        n = egress_pop(s->e, m, 7, t);
        for (uint16_t i = 0; i < n; i++) {
            if (!once)
                assert_int_equal(frame_meta(m[i])->due_ps, t);
            note(&s->arrived, (uint32_t)rte_pktmbuf_pkt_len(m[i]), egress_fixture_tag(m[i]),
                 frame_meta(m[i])->due_ps);
            rte_pktmbuf_free(m[i]);
        }
    } while (n || t < now);
}

static void give(struct side *s, struct rte_mbuf **m, uint32_t n, int64_t now, bool together)
{
    uint32_t bytes = 0;

    for (uint32_t i = 0; i < n; i++)
        bytes += frame_bytes(m[i]);
    if (together && egress_push_run(s->e, m, n, bytes, now)) {
        s->together += n;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (egress_push(s->e, m[i], now)) {
            s->dropped++;
            rte_pktmbuf_free(m[i]);
        }
}

/* The same draws for both: bursts of one class, pauses, times. */
static void live(struct side *s, uint64_t seed, bool together)
{
    uint64_t rng = seed;
    uint32_t tag = 0;
    int64_t now = 0;

    for (unsigned turn = 0; turn < 600; turn++) {
        struct rte_mbuf *m[40];
        uint32_t n = 1 + draw(&rng) % 40, len = draw(&rng) % 3 * 700;
        uint32_t cls = draw(&rng) % 8;

        now += draw(&rng) % (30 * DUR);
        poll_until(s, now, draw(&rng) % 3 && together);
        for (uint32_t i = 0; i < n; i++)
            m[i] =
                egress_fixture_frame(pool, cls < 6 ? FRAME_LOSSLESS : cls - 5, len + i % 2, tag++);
        give(s, m, n, now, together);
        if (draw(&rng) % 8 == 0)
            egress_pause(s->e, FRAME_LOSSLESS, now + draw(&rng) % (20 * DUR), now);
    }
    poll_until(s, now + 10000 * DUR, together);
    assert_int_equal(egress_next(s->e), PS_NEVER);
}

static void a_queue_sends_a_burst_as_it_sends_its_frames_one_by_one(void **state)
{
    static struct side s[2];
    static const uint64_t rates[] = {RATE, 333ull * 1000000000, 0};
    uint64_t together = 0, dropped = 0, all = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct egress_stats st[2];

        for (int i = 0; i < 2; i++) {
            struct egress_cfg c = egress_fixture_usual(pool);

            memset(&s[i], 0, sizeof(s[i]));
            c.rate_bps = rates[seed % 3];
            c.departed = started, c.ctx = &s[i];
            c.limit_pkts[FRAME_LOSSLESS] = 100;
            c.limit_bytes[FRAME_LOSSY] = 30000;
            c.ecn_bytes = seed % 2 ? 60000 : 0, c.ecn_max_bytes = 90000, c.ecn_prob = 0.5;
            s[i].e = egress_fixture_make(&c);
            live(&s[i], seed, i == 0);
            st[i] = egress_stats(s[i].e);
            if (!c.rate_bps) { /* frames take no time: a run waits for its first */
                st[i].peak_bytes = 0;
                memset(st[i].class_peak_bytes, 0, sizeof(st[i].class_peak_bytes));
            }
            egress_destroy(s[i].e);
        }
        assert_same(&s[0].arrived, &s[1].arrived);
        assert_same(&s[0].started, &s[1].started);
        assert_memory_equal(&st[0], &st[1], sizeof(st[0]));
        assert_int_equal(s[0].dropped, s[1].dropped);
        together += s[0].together, dropped += s[0].dropped, all += s[0].arrived.n;
    }
    assert_true(together > all / 4 && dropped > 0);
}

/* ---- a switch ---- */

static void arrived(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    note(ctx, dirlink, frame_meta(m)->cls == FRAME_CONTROL ? 0 : egress_fixture_tag(m), now_ps);
}

/* One of many kinds, mostly to one of two hosts. */
static struct rte_mbuf *any_frame(const struct switch_fixture *l, uint64_t *rng, uint32_t tag)
{
    struct frame_spec f = {
        .src_ip = switch_fixture_ip(l, "h0"), .dqpn = tag, .len = draw(rng) % 4 ? 0 : 1800};
    uint32_t kind = draw(rng) % 64;
    struct rte_mbuf *m;
    uint8_t *p;

    f.dst_ip = switch_fixture_ip(l, kind < 24 ? "switch0" : kind < 52 ? "h1" : "h2");
    if (kind == 1)
        f.dst_ip = f.src_ip; /* back to where it came from */
    m = switch_fixture_frame(pool, &f);
    assert_non_null(m);
    p = rte_pktmbuf_mtod(m, uint8_t *);
    if (kind == 2)
        memset(p, 0xff, 6); /* broadcast */
    else if (kind == 3)
        p[17]++; /* longer than it is */
    else if (kind == 4)
        p[3] ^= 0x40; /* an unknown address */
    else if (kind == 5)
        p[42] = ROCE_OP_CNP_PACKET;
    else if (kind == 6 || kind == 7)
        p[37]++; /* not RoCE */
    else if (kind == 8)
        rte_pktmbuf_trim(m, 1 + draw(rng) % 8); /* cut off */
    else if (kind == 9)
        p[13] = 6; /* ethertype ARP */
    else if (kind == 10)
        p[12 + draw(rng) % 32] ^= 1 << draw(rng) % 8;
    return m;
}

/* The endpoint behind the switch records the frames that reach it. */
static uint16_t local_input(void *ctx, struct rte_mbuf **m, uint16_t n, int64_t now_ps)
{
    for (uint16_t i = 0; i < n; i++) {
        const struct frame_meta *meta = frame_meta(m[i]);

        note(ctx, 1000u + meta->in_port * FRAME_CLASSES + meta->cls, egress_fixture_tag(m[i]),
             now_ps);
        rte_pktmbuf_free(m[i]);
    }
    return n;
}

static uint16_t local_output(void *ctx, enum endpoint_queue q, struct rte_mbuf **m, uint16_t n,
                             int64_t now_ps)
{
    (void)ctx, (void)q, (void)m, (void)n, (void)now_ps;
    return 0;
}

static void local_tick(void *ctx, int64_t now_ps)
{
    (void)ctx, (void)now_ps;
}

static int64_t local_next(void *ctx)
{
    (void)ctx;
    return PS_NEVER;
}

static void run_switch(struct history *h, uint64_t seed, bool together, uint64_t *drops)
{
#define SWITCH(more)                                                                               \
    "mtu = 4096; single_switch = { hosts = 4; host_link = { rate = \"25Gb/s\"; latency = "         \
    "\"300ns\"; buffer = \"64KiB\"; ecn = \"20KiB\"; " more " }; };"
    static const char *const confs[] = {SWITCH(""), SWITCH("pfc = false;")};
    struct endpoint local = {.ctx = h,
                             .input = local_input,
                             .output = local_output,
                             .tick = local_tick,
                             .next = local_next};
    uint64_t rng = seed, frames[4] = {0}, bytes[4] = {0};
    const struct node_port_counters *cnt;
    uint32_t tag = 0;
    int64_t now = 0;
    struct switch_fixture l;

    switch_fixture_open(&l, pool, confs[seed % 2]);
    cnt = net_node(l.net, switch_fixture_node(&l, "switch0"))->cnt;
    net_tap(l.net, arrived, h);
    assert_int_equal(net_attach(l.net, switch_fixture_node(&l, "switch0"), 0, 0, &local), 0);
    for (unsigned turn = 0; turn < 400; turn++) {
        uint16_t n = (uint16_t)(1 + draw(&rng) % NODE_BURST), port = draw(&rng) % 8 ? 0 : 3;
        struct rte_mbuf *m[NODE_BURST];

        for (uint16_t i = 0; i < n; i++)
            m[i] = any_frame(&l, &rng, ++tag), bytes[port] += frame_bytes(m[i]);
        frames[port] += n;
        for (uint16_t i = 0; i < n; i = (uint16_t)(i + (together ? n : 1)))
            net_input(l.net, switch_fixture_node(&l, "switch0"), port, m + i, together ? n : 1,
                      now);
        now += draw(&rng) % PS_PER_US;
        net_advance(l.net, now);
    }
    net_advance(l.net, now + PS_PER_MS);
    for (int d = 0; d < DROP_REASONS; d++)
        drops[d] = switch_fixture_drops(&l, (enum drop)d);
    drops[DROP_REASONS] = switch_fixture_pauses(&l);
    for (unsigned p = 0; p < 4; p++) {
        assert_int_equal(cnt[p].rx_frames, frames[p]);
        assert_int_equal(cnt[p].rx_bytes, bytes[p]);
    }
    switch_fixture_close(&l);
}

static void a_switch_passes_a_burst_on_as_it_does_its_frames_one_by_one(void **state)
{
    static struct history h[2];

    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        uint64_t drops[2][DROP_REASONS + 1] = {0};

        for (int i = 0; i < 2; i++) {
            h[i].n = 0;
            run_switch(&h[i], seed, i == 0, drops[i]);
        }
        assert_same(&h[0], &h[1]);
        assert_memory_equal(drops[0], drops[1], sizeof(drops[0]));
        assert_true(h[0].n > 3000 && drops[0][DROP_REFLECTED] > 0 && drops[0][DROP_BAD_LENGTH] > 0);
        assert_true(drops[0][seed % 2 ? (int)DROP_QUEUE_FULL : DROP_REASONS] > 0);
    }
}

/* ---- the parser ---- */

static void the_short_way_reads_every_frame_as_the_long_one_does(void **state)
{
    struct rte_mbuf *good = egress_fixture_frame(pool, FRAME_LOSSLESS, 20, 77),
                    *m = frame_alloc(pool);
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    unsigned plain = 0, bytes = good->pkt_len;
    uint64_t rng = 1;

    (void)state;
    for (unsigned i = 0; i < 300000; i++) {
        struct packet_class k[2] = {0};

        memcpy(p, rte_pktmbuf_mtod(good, void *), bytes);
        m->data_len = (uint16_t)(draw(&rng) % 8 ? bytes : draw(&rng) % (bytes + 1));
        m->pkt_len = m->data_len;
        frame_meta(m)->virt_len = draw(&rng) % 4 ? 0 : draw(&rng) % 64;
        for (unsigned changes = draw(&rng) % 4; changes; changes--) {
            uint8_t *x = p + draw(&rng) % 56;

            *x = (uint8_t)(draw(&rng) % 2 ? *x - 1 + draw(&rng) % 3 : draw(&rng));
        }
        classify_frame(m, &k[0]);
        classify_any(m, &k[1]);
        assert_int_equal(k[0].kind, k[1].kind);
        if (k[0].kind != PACKET_BAD)
            assert_memory_equal(&k[0], &k[1], sizeof(k[0]));
        plain += classify_plain(m) != FRAME_CLASSES;
    }
    assert_in_range(plain, 30000, 270000);
    rte_pktmbuf_free(good);
    rte_pktmbuf_free(m);
}

/* Address, ethertype, version, lengths, fragment, protocol, port: what counts. */
static bool counts(unsigned byte)
{
    return byte < 6 || (byte >= 12 && byte <= 14) || byte == 16 || byte == 17 || byte == 20 ||
           byte == 21 || byte == 23 || (byte >= 36 && byte <= 39);
}

static void a_frame_is_like_another_if_all_that_counts_is_the_same(void **state)
{
    struct rte_mbuf *good = egress_fixture_frame(pool, FRAME_LOSSLESS, 20, 77),
                    *m = frame_alloc(pool);
    uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
    struct packet_likeness like = packet_likeness(good);
    unsigned alike = 0, plain = 0, bytes = good->pkt_len;
    uint64_t rng = 2;

    (void)state;
    assert_int_equal(classify_plain(good), FRAME_LOSSLESS);
    for (unsigned i = 0; i < 300000; i++) {
        bool same = true;

        memcpy(p, rte_pktmbuf_mtod(good, void *), bytes);
        m->data_len = (uint16_t)(bytes - (draw(&rng) % 16 ? 0 : 1 + draw(&rng) % bytes));
        m->pkt_len = m->data_len + (draw(&rng) % 16 ? 0 : draw(&rng) % 100);
        frame_meta(m)->virt_len = draw(&rng) % 16 ? 0 : draw(&rng) % 64;
        for (unsigned changes = draw(&rng) % 4; changes; changes--)
            p[draw(&rng) % 56] ^= (uint8_t)draw(&rng);
        if (draw(&rng) % 16 == 0)
            p[42] = ROCE_OP_CNP_PACKET;
        for (unsigned b = 0; b < 56; b++)
            same &= !counts(b) || p[b] == *rte_pktmbuf_mtod_offset(good, uint8_t *, b);
        same &= p[42] != ROCE_OP_CNP_PACKET; /* a class of its own */
        same &= m->pkt_len == bytes && m->data_len == bytes && !frame_meta(m)->virt_len;
        assert_int_equal(packet_is_like(m, &like), same);
        if (same)
            assert_int_equal(classify_plain(m), FRAME_LOSSLESS);
        alike += same;
        plain += classify_plain(m) != FRAME_CLASSES;
    }
    assert_in_range(alike, 30000, plain - 30000);
    like.lens = PACKET_NO_LENS;
    assert_false(packet_is_like(good, &like));
    rte_pktmbuf_free(good);
    rte_pktmbuf_free(m);
}

#define T(f) cmocka_unit_test_prestate_setup_teardown(f, NULL, egress_fixture_no_leak, pool)

int main(void)
{
    test_eal_init();
    pool = test_pool(16383);
    const struct CMUnitTest tests[] = {
        T(a_queue_sends_a_burst_as_it_sends_its_frames_one_by_one),
        T(a_switch_passes_a_burst_on_as_it_does_its_frames_one_by_one),
        T(the_short_way_reads_every_frame_as_the_long_one_does),
        T(a_frame_is_like_another_if_all_that_counts_is_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
