/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues: receives of as many pieces as requested, and no memory for unused entries. */
#include "roce/engine.h"
#include "tests/support/eal.h"
#include "tests/support/roce_pair.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define DEPTH 8u

/* Of receive k, piece i. */
static struct sge piece(uint32_t k, uint32_t i)
{
    return (struct sge){0x1000000u * (k + 1) + i, 0x10 * k + i + 1, ~(k * 16 + i)};
}

static void receives_keep_all_their_pieces(void **state)
{
    static const uint32_t most[] = {1, 2, 5, ROCE_MAX_SGE};

    (void)state;
    for (unsigned m = 0; m < RTE_DIM(most); m++) {
        struct rq *rq = rq_create_for(DEPTH, most[m]);
        struct rwqe w = {.n_sge = most[m] + 1};

        assert_non_null(rq);
        if (most[m] < ROCE_MAX_SGE)
            assert_int_equal(rq_post(rq, &w), -EINVAL);
        for (uint32_t k = 0; k < 3 * DEPTH; k++) { /* over the ring's end, twice */
            uint32_t posted = 0, at = k;

            for (; posted < DEPTH; posted++) {
                w = (struct rwqe){.wr_id = k + posted, .n_sge = most[m]};
                for (uint32_t i = 0; i < most[m]; i++)
                    w.sge[i] = piece(k + posted, i);
                assert_int_equal(rq_post(rq, &w), 0);
            }
            assert_int_equal(rq_post(rq, &w), -ENOMEM);
            while (rq_take(rq, &w)) {
                assert_int_equal(w.wr_id, at);
                assert_int_equal(w.n_sge, most[m]);
                for (uint32_t i = 0; i < most[m]; i++) {
                    struct sge s = piece(at, i);

                    assert_memory_equal(&w.sge[i], &s, sizeof(s));
                }
                at++;
            }
            assert_int_equal(at, k + DEPTH);
        }
        rq_destroy(rq);
    }
}

static size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    size_t pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Also where they lie in memory that was taken from the kernel before, which calloc() would clear.
 */
static void places_that_nobody_uses_take_no_memory(void **state)
{
    struct pair_cfg cfg = {.seed = 3, .mbufs = 15};
    struct qp_cfg c = {.type = QP_RC, .sq_depth = 1u << 14, .bounded = true, .max_sge = 4};
    struct pair *p = pair_create(&cfg);
    struct qp *qp[32];
    struct rq *rq[32];
    size_t before;

    (void)state;
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TOP_PAD, 256 << 20);
    free(malloc(1 << 20));
    before = resident();
    for (unsigned i = 0; i < RTE_DIM(qp); i++) {
        assert_int_equal(qp_create(p->s[0].r, &c, &qp[i]), 0);
        rq[i] = rq_create_for(1u << 14, 4);
        assert_non_null(rq[i]);
    }
    assert_in_range(resident() - before, 0, 20 << 20); /* of 96 MiB */
    for (unsigned i = 0; i < RTE_DIM(rq); i++)
        rq_destroy(rq[i]);
    pair_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_keep_all_their_pieces),
        cmocka_unit_test(places_that_nobody_uses_take_no_memory),
    };

    test_eal_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
