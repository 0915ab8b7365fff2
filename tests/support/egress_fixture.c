/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/support/egress_fixture.h"
#include "tests/support/switch_fixture.h"

struct egress_cfg egress_fixture_usual(struct rte_mempool *pool)
{
    struct egress_cfg c = {.rate_bps = RATE, .latency_ps = LATENCY, .pool = pool};

    for (int i = 0; i < FRAME_CLASSES; i++)
        c.limit_bytes[i] = 64 << 20, c.limit_pkts[i] = 8192;
    return c;
}

struct egress *egress_fixture_make(const struct egress_cfg *c)
{
    struct egress *e;

    assert_int_equal(egress_create(&e, c), 0);
    return e;
}

struct rte_mbuf *egress_fixture_frame(struct rte_mempool *pool, enum frame_class cls, uint32_t len,
                                      uint32_t tag)
{
    struct frame_spec s = {.src_ip = 0x0a000001, .dst_ip = 0x0a000002, .dqpn = tag, .len = len};
    struct rte_mbuf *m = switch_fixture_frame(pool, &s);

    assert_non_null(m);
    frame_meta(m)->cls = cls;
    return m;
}

uint32_t egress_fixture_tag(struct rte_mbuf *m)
{
    const uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, 47);

    return (uint32_t)(p[0] << 16 | p[1] << 8 | p[2]);
}

unsigned egress_fixture_drain(struct egress *e, uint32_t *tag, int64_t *at, unsigned max)
{
    struct rte_mbuf *m[32];
    unsigned n = 0;

    while (egress_next(e) != PS_NEVER) {
        int64_t t = egress_next(e);
        uint16_t k = egress_pop(e, m, 32, t);

        for (uint16_t i = 0; i < k; i++, n++) {
            assert_true(n < max);
            if (tag)
                tag[n] = egress_fixture_tag(m[i]);
            if (at)
                at[n] = frame_meta(m[i])->due_ps;
            rte_pktmbuf_free(m[i]);
        }
    }
    return n;
}

int egress_fixture_no_leak(void **state)
{
    const struct rte_mempool *pool = *state;

    assert_int_equal(rte_mempool_avail_count(pool), pool->size);
    return 0;
}
