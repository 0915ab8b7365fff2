/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in bursts: freeing them, and initialising buffers from the pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <rte_mempool.h>
#include <string.h>

#include "roce/frame.h"
#include "tests/support/eal.h"

#define FRAMES 511
#define BURST  64

static struct rte_mempool *pool[2];

static uint32_t draw(uint64_t *rng)
{
    *rng = *rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*rng >> 33);
}

static struct rte_mbuf *frame(struct rte_mempool *p, uint16_t n)
{
    struct rte_mbuf *m = frame_alloc(p);

    assert_non_null(m);
    memset(rte_pktmbuf_append(m, n), 1, n);
    return m;
}

/* A frame of one of many kinds; *kept: another reference to it, or NULL. */
static struct rte_mbuf *any_frame(struct rte_mempool *p, uint32_t kind, struct rte_mbuf **kept)
{
    struct rte_mbuf *m = frame(p, 200), *c;

    *kept = NULL;
    switch (kind) {
    case 1: /* of two segments */
        assert_int_equal(rte_pktmbuf_chain(m, frame(p, 100)), 0);
        return m;
    case 2: /* held twice */
        rte_pktmbuf_refcnt_update(m, 1);
        *kept = m;
        return m;
    case 3: /* a clone, whose data another mbuf shares, or shared until now */
    case 4:
        c = frame_clone(m, p);
        assert_non_null(c);
        if (kind == 3)
            *kept = m;
        else
            rte_pktmbuf_free(m);
        return c;
    default:
        return m;
    }
}

/* Independent of its use before it was freed. */
static void assert_as_new(struct rte_mempool *p)
{
    struct rte_mbuf *m[FRAMES];

    assert_int_equal(rte_mempool_avail_count(p), FRAMES);
    assert_int_equal(rte_mempool_get_bulk(p, (void **)m, FRAMES), 0);
    for (unsigned i = 0; i < FRAMES; i++) {
        assert_int_equal(rte_mbuf_refcnt_read(m[i]), 1);
        assert_int_equal(m[i]->nb_segs, 1);
        assert_null(m[i]->next);
        assert_true(RTE_MBUF_DIRECT(m[i]) && m[i]->pool == p);
        assert_ptr_equal(m[i]->buf_addr, rte_mbuf_to_priv(m[i]) + FRAME_PRIV_BYTES);
    }
    rte_mempool_put_bulk(p, (void **)m, FRAMES);
}

static void a_burst_is_given_back_whatever_is_in_it(void **state)
{
    uint64_t rng = 1;

    (void)state;
    for (unsigned turn = 0; turn < 2000; turn++) {
        unsigned n = draw(&rng) % (BURST + 1), kinds = draw(&rng) % 4 ? 1 : 5, held = 0;
        unsigned pools = draw(&rng) % 4 ? 1 : 2, first = draw(&rng) % 2;
        struct rte_mbuf *m[BURST], *kept[BURST];

        for (unsigned i = 0; i < n; i++) {
            struct rte_mempool *p = pool[(first + draw(&rng) % pools) % 2];

            m[i] = any_frame(p, draw(&rng) % kinds, &kept[held]);
            held += kept[held] != NULL;
        }
        frame_free_burst(m, n);
        for (unsigned i = 0; i < held; i++)
            rte_pktmbuf_free(kept[i]);
        assert_int_equal(rte_mempool_avail_count(pool[0]), FRAMES);
        assert_int_equal(rte_mempool_avail_count(pool[1]), FRAMES);
    }
    assert_as_new(pool[0]);
    assert_as_new(pool[1]);
}

static void a_buffer_of_any_past_becomes_a_frame(void **state)
{
    struct rte_mbuf *m[FRAMES], *fresh = frame_alloc(pool[1]);
    uint64_t rng = 2;

    (void)state;
    assert_int_equal(rte_mempool_get_bulk(pool[0], (void **)m, FRAMES), 0);
    for (unsigned i = 0; i < FRAMES; i++) {
        memset(frame_meta(m[i]), (int)draw(&rng), sizeof(struct frame_meta));
        m[i]->ol_flags = RTE_MBUF_F_RX_VLAN;
        m[i]->data_off = (uint16_t)draw(&rng);
        m[i]->pkt_len = draw(&rng);
        m[i]->data_len = (uint16_t)draw(&rng);
        m[i]->vlan_tci = m[i]->port = 7;
        m[i]->packet_type = 7;
        frame_begin(m[i], i + 1);
        assert_int_equal(m[i]->pkt_len, i + 1);
        assert_int_equal(m[i]->data_len, i + 1);
        assert_int_equal(m[i]->data_off, fresh->data_off);
        assert_int_equal(m[i]->ol_flags, fresh->ol_flags);
        assert_int_equal(m[i]->vlan_tci, fresh->vlan_tci);
        assert_int_equal(m[i]->packet_type, fresh->packet_type);
        assert_memory_equal(frame_meta(m[i]), frame_meta(fresh), sizeof(struct frame_meta));
    }
    frame_free_burst(m, FRAMES);
    frame_free_burst(&fresh, 1);
    assert_as_new(pool[0]);
    assert_as_new(pool[1]);
}

static void a_frame_shares_anothers_payload_or_stays_as_it_was(void **state)
{
    struct rte_mempool *parts = frame_parts_create("parts", 7, 0);
    struct rte_mbuf *held = frame(pool[0], 2000), *m[4];
    uint8_t *tail;

    (void)state;
    assert_non_null(parts);
    for (int i = 0; i < 4; i++) {
        m[i] = frame(pool[1], 54);
        tail = frame_share(m[i], held, 100, 1500, FRAME_TAIL, parts);
        if (i == 3) { /* seven are three pairs */
            assert_null(tail);
            assert_true(m[i]->nb_segs == 1 && m[i]->pkt_len == 54 && !m[i]->next);
            break;
        }
        memset(tail, i, FRAME_TAIL);
        assert_int_equal(m[i]->pkt_len, 54 + 1500 + FRAME_TAIL);
        assert_ptr_equal(rte_pktmbuf_mtod(m[i]->next, void *),
                         rte_pktmbuf_mtod_offset(held, void *, 100));
    }
    rte_pktmbuf_free(held); /* those who share it still hold it */
    assert_int_equal(rte_mempool_avail_count(pool[0]), FRAMES - 1);
    for (int i = 0; i < 3; i++) {
        uint8_t last = 0xff;

        assert_int_equal(*(const uint8_t *)rte_pktmbuf_read(m[i], 54 + 1499, 1, &last), 1);
        assert_int_equal(*(const uint8_t *)rte_pktmbuf_read(m[i], 54 + 1500, 1, &last), i);
        rte_mbuf_sanity_check(m[i], 1);
    }
    frame_free_burst(m, 4);
    assert_int_equal(rte_mempool_avail_count(parts), 7);
    assert_as_new(pool[0]);
    assert_as_new(pool[1]);
    rte_mempool_free(parts);
}

/* Each allocation that finds the pool empty is counted once. */
static void who_gets_no_frame_is_counted(void **state)
{
    static _Alignas(RTE_MEMPOOL_ALIGN) uint8_t room[65536];
    struct rte_mempool *p;
    struct rte_mbuf *m[7];

    (void)state;
    assert_true(frame_pool_bytes(7, false) <= sizeof(room));
    p = frame_pool_create_at("few", 7, 0, false, room, frame_pool_bytes(7, false));
    assert_non_null(p);
    for (unsigned i = 0; i < 6; i++)
        m[i] = frame(p, 200);
    m[6] = frame_clone(m[0], p); /* the last one: m[0] is held twice */
    assert_non_null(m[6]);
    assert_int_equal(frame_pool_missed(p), 0);
    assert_null(frame_alloc(p));
    assert_null(frame_clone(m[1], p));
    assert_null(frame_copy(m[1], p));
    assert_int_equal(frame_pool_missed(p), 3);
    assert_null(frame_writable(m[0], p));
    assert_int_equal(frame_pool_missed(p), 4);
    rte_pktmbuf_free(m[5]);
    m[5] = frame_copy(m[1], p);
    assert_non_null(m[5]);
    assert_int_equal(m[5]->pkt_len, 200);
    assert_int_equal(frame_pool_missed(p), 4);
    frame_free_burst(m, 7);
    rte_mempool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_given_back_whatever_is_in_it),
        cmocka_unit_test(a_buffer_of_any_past_becomes_a_frame),
        cmocka_unit_test(a_frame_shares_anothers_payload_or_stays_as_it_was),
        cmocka_unit_test(who_gets_no_frame_is_counted),
    };

    test_eal_init();
    pool[0] = test_pool(FRAMES);
    pool[1] = test_pool(FRAMES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
