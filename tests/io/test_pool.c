/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool gets memory as its frames are used, up to its size, and never has a frame twice. */
#include "io/pool.h"
#include "io/port/port.h"
#include "roce/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define MOST 40000u

/* Takes n frames, with a look at the pool before each burst of 32. Returns how many there were. */
static unsigned take(struct rte_mempool *p, struct rte_mbuf **m, unsigned n)
{
    unsigned k = 0;

    for (; k < n; k++) {
        if (k % 32 == 0)
            pool_grow(p);
        m[k] = frame_alloc(p);
        if (!m[k])
            break;
    }
    return k;
}

static int by_address(const void *a, const void *b)
{
    const struct rte_mbuf *const *x = a, *const *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void grows_to_its_size_and_no_further(void **state)
{
    struct rte_mempool *p = pool_create("grows", MOST, 256, false);
    struct rte_mbuf **m = calloc(MOST + 1, sizeof(struct rte_mbuf *));
    unsigned n;

    (void)state;
    assert_non_null(p);
    assert_non_null(m);
    assert_int_equal(p->size, MOST);
    assert_true(p->populated_size < MOST / 4);
    assert_int_equal(take(p, m, 1000), 1000);
    assert_true(p->populated_size < MOST / 4); /* a thousand frames are few */
    n = 1000 + take(p, m + 1000, MOST + 1 - 1000);
    assert_int_equal(n, MOST);
    assert_int_equal(p->populated_size, MOST);
    for (unsigned i = 0; i < n; i++) {
        assert_ptr_equal(m[i]->pool, p);
        assert_int_equal(rte_mbuf_refcnt_read(m[i]), 1);
        assert_int_equal(m[i]->nb_segs, 1);
        assert_int_equal(m[i]->priv_size, FRAME_PRIV_BYTES);
        assert_non_null(rte_pktmbuf_append(m[i], FRAME_ROOM));
        memset(rte_pktmbuf_mtod(m[i], void *), 0xa5, FRAME_ROOM);
    }
    qsort(m, n, sizeof(struct rte_mbuf *), by_address);
    for (unsigned i = 1; i < n; i++)
        assert_true((char *)m[i - 1]->buf_addr + m[i - 1]->buf_len <= (char *)m[i]);
    frame_free_burst(m, n);
    assert_int_equal(rte_mempool_avail_count(p), MOST);
    rte_mempool_free(p);
    free(m);
}

static void has_all_at_once_where_a_nic_needs_it(void **state)
{
    struct rte_mempool *p = pool_create("whole", MOST / 2, 256, true);

    (void)state;
    assert_non_null(p);
    assert_int_equal(p->populated_size, MOST / 2);
    rte_mempool_free(p);
}

/* EAL has 320 MB here, a quarter of which other pools have used up. */
static void without_memory_it_stays_as_it_is(void **state)
{
    struct rte_mempool *p = pool_create("large", 10 * MOST, 0, false);
    struct rte_mbuf **m = calloc(10u * MOST, sizeof(struct rte_mbuf *));
    unsigned n;

    (void)state;
    assert_non_null(p);
    assert_non_null(m);
    n = take(p, m, 10 * MOST);
    assert_in_range(n, MOST, 10 * MOST - 1);
    assert_int_equal(n, p->populated_size);
    frame_free_burst(m, n);
    assert_int_equal(rte_mempool_avail_count(p), n);
    rte_mempool_free(p);
    free(m);
}

static int setup(void **state)
{
    (void)state;
    return io_eal_init("test_pool", NULL, 320, NULL, 0);
}

static int teardown(void **state)
{
    (void)state;
    io_eal_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_its_size_and_no_further),
        cmocka_unit_test(has_all_at_once_where_a_nic_needs_it),
        cmocka_unit_test(without_memory_it_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
