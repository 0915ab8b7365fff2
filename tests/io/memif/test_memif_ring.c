/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings of a memif, both ends in one process: who owns a frame, and indices that cannot be. */
#include "io/memif/memif.h"
#include "roce/frame.h"
#include "tests/support/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG2 4
#define SIZE (1u << LOG2)

static char sock[64];

struct ends {
    struct rte_mempool *pool[2];
    struct io_port *p[2]; /* the listener, the client */
};

static struct memif_queue *sender(struct ends *e, unsigned end)
{
    return &((struct memif *)e->p[end])->tx[0];
}

/* Where the other end says how far it has come: an S2C ring's buffers, or a C2S ring's frames. */
static uint16_t *index_of_peer(struct ends *e, unsigned end)
{
    struct memif_ring *r = sender(e, end)->ring;

    return end ? &r->tail : &r->head;
}

static void open_both(struct ends *e)
{
    for (unsigned i = 0; i < 2; i++) {
        struct memif_cfg cfg = {.socket = sock,
                                .listener = !i,
                                .id = 7,
                                .queues = 1,
                                .log2_ring = LOG2,
                                .name = "test"};

        cfg.pool = e->pool[i] = test_pool(64);
        assert_int_equal(io_port_memif(&e->p[i], &cfg), 0);
    }
    for (int i = 0; i < 10; i++)
        io_port_up(e->p[i % 2]);
    assert_true(io_port_up(e->p[0]) && io_port_up(e->p[1]));
}

static void close_both(struct ends *e)
{
    for (unsigned i = 2; i--;) {
        io_port_close(e->p[i]);
        assert_int_equal(rte_mempool_avail_count(e->pool[i]), 64);
    }
}

static uint16_t send_some(struct ends *e, unsigned from, uint16_t n)
{
    struct rte_mbuf *m[SIZE];
    uint16_t sent;

    for (uint16_t i = 0; i < n; i++) {
        m[i] = frame_alloc(e->pool[from]);
        assert_non_null(m[i]);
        memset(rte_pktmbuf_append(m[i], 60), i, 60);
    }
    sent = io_port_tx(e->p[from], 0, m, n);
    frame_free_burst(m + sent, (uint16_t)(n - sent));
    return sent;
}

static void a_sender_frees_what_it_has_sent_and_no_more(void **state)
{
    struct rte_mbuf *m[SIZE];
    struct ends e;

    (void)state;
    open_both(&e);
    for (unsigned round = 0; round < 20; round++)
        for (unsigned from = 0; from < 2; from++) {
            assert_int_equal(send_some(&e, from, SIZE), SIZE);
            assert_int_equal(rte_mempool_avail_count(e.pool[from]), 64);
            assert_int_equal(send_some(&e, from, 3), 0); /* the ring is full */
            assert_int_equal(io_port_rx(e.p[!from], 0, m, SIZE), SIZE);
            assert_int_equal(rte_mempool_avail_count(e.pool[!from]), 64 - SIZE);
            frame_free_burst(m, SIZE);
        }
    close_both(&e);
}

/* Buffers that the peer still reads are not overwritten, whatever index it writes. */
static void a_sender_does_not_believe_an_index_that_cannot_be(void **state)
{
    static const uint16_t beyond[] = {1, 5, 1000, 0x7fff, 0xfff0};
    struct rte_mbuf *m[SIZE];
    struct ends e;

    (void)state;
    open_both(&e);
    for (unsigned from = 0; from < 2; from++)
        for (unsigned i = 0; i < sizeof(beyond) / sizeof(*beyond); i++) {
            uint16_t *index = index_of_peer(&e, from), was = *index, next;

            assert_int_equal(send_some(&e, from, 4), 4);
            next = sender(&e, from)->next;
            __atomic_store_n(index, (uint16_t)(next + beyond[i] + (from ? 0 : SIZE)),
                             __ATOMIC_RELEASE);
            assert_int_equal(send_some(&e, from, SIZE), 0);
            assert_int_equal(sender(&e, from)->next, next);
            __atomic_store_n(index, was, __ATOMIC_RELEASE);
            assert_int_equal(send_some(&e, from, SIZE), SIZE - 4); /* it is right again */
            assert_int_equal(io_port_rx(e.p[!from], 0, m, SIZE), SIZE);
            frame_free_burst(m, SIZE);
        }
    close_both(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sender_frees_what_it_has_sent_and_no_more),
        cmocka_unit_test(a_sender_does_not_believe_an_index_that_cannot_be),
    };

    snprintf(sock, sizeof(sock), "/tmp/trib-memif-ring-%d.sock", (int)getpid());
    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
