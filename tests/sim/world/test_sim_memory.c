/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a simulation before it begins: each part counts, what lengths and large pages change, and the
 * sentence for one that no machine has.
 */
#include "sim/world/sim_memory.h"
#include "tests/fabric/load.h"

#include <errno.h>

static const uint16_t hosts[] = {0, 1, 2, 5};

static struct sim_need_cfg need_cfg(const struct fabric *f)
{
    return (struct sim_need_cfg){.coll = {.fab = f,
                                          .nranks = 4,
                                          .host_of_rank = hosts,
                                          .args = {.kind = COLL_ALLREDUCE, .count = 1024},
                                          .algos = 1u << ALGO_RING,
                                          .ops = 1},
                                 .frame_bytes = 5 << 20,
                                 .buffer_bytes = 7 << 20,
                                 .data_bytes = 3 << 20};
}

static void parts_add_up(void **state)
{
    struct fabric *f = load_file("conf/leaf-spine-8.conf");
    struct sim_need_cfg cfg = need_cfg(f);
    struct sim_need n, more;
    uint64_t ranks = 4 * (24576 + 4 * 64 + 106496);
    uint64_t fabric = (8ull << 20) + 12 * 8192ull + 2 * 12 * 16 + 4 * 131072;

    (void)state;
    assert_true(f->n_links == 12 && f->n_nodes == 12 && f->n_trees == 2);
    sim_need(&cfg, &n);
    assert_int_equal(n.frames, 5 << 20);
    assert_int_equal(n.ranks, ranks);
    assert_int_equal(n.fabric, fabric);
    assert_int_equal(n.data, 3 << 20);
    assert_true(n.coll.conns > 0 && n.coll.conn_bytes > 0 && n.coll.sched_bytes > 0);
    assert_int_equal(n.addresses, 2 * 4 * (7ull << 20) - (3 << 20) + n.coll.address_bytes);
    assert_int_equal(sim_need_bytes(&n), n.frames + n.fabric + n.ranks + n.data +
                                             n.coll.conn_bytes + n.coll.sched_bytes +
                                             n.coll.data_bytes);
    cfg.coll.dense = true; /* 12 / 5 of it */
    sim_need(&cfg, &more);
    assert_int_equal(more.ranks, ranks * 12 / 5);
    assert_int_equal(more.fabric, fabric * 12 / 5);
    assert_true(more.frames == n.frames && more.data == n.data);
    cfg.coll.dense = false;
    cfg.coll.lengths = true;
    sim_need(&cfg, &more);
    assert_true(more.data == 0 && more.ranks == ranks && more.fabric == fabric);
    assert_int_equal(more.addresses, 2 * 4 * (7ull << 20) + more.coll.address_bytes);
    cfg.coll.algos = 1u << ALGO_NVLS; /* no schedule here: it counts as nothing */
    sim_need(&cfg, &more);
    assert_true(more.coll.conns == 0 && coll_memory_bytes(&more.coll) == 0);
    fabric_free(f);
}

static void what_no_machine_has_is_refused(void **state)
{
    struct sim_need n = {.frames = 3ull << 20,
                         .fabric = 4ull << 20,
                         .ranks = 5ull << 20,
                         .data = 6ull << 20,
                         .coll = {.conns = 17,
                                  .conn_bytes = 7ull << 20,
                                  .sched_bytes = 8ull << 20,
                                  .data_bytes = 1ull << 20}};
    char err[512] = "";

    (void)state;
    assert_int_equal(sim_need_check(&n, err, sizeof(err)), 0);
    assert_string_equal(err, "");
    n.frames = 1ull << 60;
    assert_int_equal(sim_need_check(&n, err, sizeof(err)), -ENOMEM);
    if (!strstr(err, ": frames 1099511627776, fabric and ranks 9, 17 ends of connections 7, "
                     "schedules 8, data 7 (fewer ranks or --payload none need less)"))
        fail_msg("%s", err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(what_no_machine_has_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
