/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of reliable connections: two connected QPs, a buffer and a receive queue on
 * each side.
 */
#ifndef TRIB_TESTS_ROCE_RC_FIXTURE_H
#define TRIB_TESTS_ROCE_RC_FIXTURE_H

#include "tests/support/eal.h"
#include "tests/support/roce_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_byteorder.h>
#include <rte_mempool.h>

#define BUF (1u << 20)
#define ALL_ACCESS                                                                                 \
    (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

/* Used by most cases: two connected QPs, a buffer on each side. */
struct fixture {
    struct pair *p;
    struct qp *qp[2];
    struct rq *rq[2];
    uint8_t *buf[2];
    uint32_t key[2];
};

static inline struct fixture fixture_make_cfg(const struct pair_cfg *cfg,
                                              const struct qp_attr *attr, bool unbacked)
{
    struct qp_attr def = {.sq_psn = 100};
    struct fixture e = {.p = pair_create(cfg)};

    for (unsigned i = 0; i < 2; i++) {
        e.rq[i] = rq_create(64);
        e.buf[i] = malloc(BUF);
        for (unsigned b = 0; b < BUF; b++)
            e.buf[i][b] = i ? 0 : (uint8_t)(b * 31 + (b >> 8) * 17 + 5);
        e.key[i] = pair_region(&e.p->s[i], unbacked ? NULL : e.buf[i], BUF, ALL_ACCESS);
    }
    pair_connect(e.p, QP_RC, attr ? attr : &def, 64, e.rq[0], e.rq[1], false, e.qp);
    return e;
}

static inline struct fixture fixture_make(const struct qp_attr *attr, bool unbacked)
{
    struct pair_cfg cfg = {.window = 32, .ack_every = 4, .seed = 1};

    return fixture_make_cfg(&cfg, attr, unbacked);
}

static inline void fixture_free(struct fixture *e)
{
    pair_destroy(e->p);
    for (unsigned i = 0; i < 2; i++) {
        rq_destroy(e->rq[i]);
        free(e->buf[i]);
    }
}

static uint64_t at(const struct fixture *e, unsigned side, uint32_t off)
{
    return e->p->s[side].region[e->key[side] - 1].addr + off;
}

static inline struct wqe request(const struct fixture *e, enum wr_op op, uint64_t id, uint32_t len)
{
    struct wqe w = {.wr_id = id,
                    .op = op,
                    .flags = WR_F_SIGNALED,
                    .frag = WQE_WHOLE,
                    .n_sge = 2,
                    .imm = rte_cpu_to_be_32(0xabcd),
                    .rkey = e->key[1],
                    .raddr = at(e, 1, 0)};

    w.sge[0] = (struct sge){at(e, 0, 0), len / 3, e->key[0]};
    w.sge[1] = (struct sge){at(e, 0, len / 3), len - len / 3, e->key[0]};
    return w;
}

static inline void post_recv(const struct fixture *e, unsigned side, uint64_t id, uint32_t off,
                             uint32_t len)
{
    struct rwqe r = {.wr_id = id, .n_sge = 2};

    r.sge[0] = (struct sge){at(e, side, off), len / 2, e->key[side]};
    r.sge[1] = (struct sge){at(e, side, off + len / 2), len - len / 2, e->key[side]};
    assert_int_equal(rq_post(e->rq[side], &r), 0);
}

static inline void assert_clean(const struct fixture *e)
{
    for (unsigned i = 0; i < 2; i++) {
        const struct roce_counters *c = rnic_counters(e->p->s[i].r);

        assert_int_equal(c->retransmits, 0);
        assert_int_equal(c->timeouts, 0);
        assert_int_equal(c->rnr_naks_sent + c->seq_naks_sent + c->error_naks_sent, 0);
        for (unsigned r = 1; r < ROCE_REASON_COUNT; r++)
            assert_int_equal(c->drops[r], 0);
    }
}

#endif
