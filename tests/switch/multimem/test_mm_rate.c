/* SPDX-License-Identifier: BSD-3-Clause */
/* Multimem saturates a plane, and every link carries the bytes that theory predicts. */
#include "tests/support/mm_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MS PS_PER_MS

/* A plane of 5 links: 125 GB/s. */
static const char *plane(unsigned hosts, unsigned mtu, const char *more)
{
    static char text[512];

    snprintf(text, sizeof(text),
             "mtu = %u; slots_per_host = 1; single_switch = { hosts = %u; host_link = { rate = "
             "\"125GB/s\"; latency = \"100ns\"; %s }; };\n",
             mtu, hosts, more);
    return text;
}

static void run(struct mm_fixture *b, int64_t ps)
{
    if (!mm_fixture_run(b, ps))
        fail_msg("requests do not end");
    for (unsigned i = 0; i < b->cfg.n; i++)
        if (b->m[i].n_bad)
            fail_msg("member %u: a request ended with status %u", i,
                     b->m[i].cqe[b->m[i].n_cqes - 1].status);
}

/* Each member reduces its share of B bytes and stores it to all, as NVLS does. */
static void reduce_own_share_and_store(struct mm_fixture *b, uint64_t bytes, bool others,
                                       uint32_t slice)
{
    uint64_t share = bytes / b->cfg.n;

    for (unsigned i = 0; i < b->cfg.n; i++)
        for (uint64_t o = 0; o < share; o += slice)
            mm_fixture_load(
                &b->m[i],
                (struct mm_what){.off = i * share + o, .others = others, .dtype = DT_FP32},
                (uint32_t)RTE_MIN(slice, share - o));
    if (!mm_fixture_run(b, 1000 * MS))
        fail_msg("loads do not end");
    for (unsigned i = 0; i < b->cfg.n; i++)
        for (uint64_t o = 0; o < share; o += slice)
            mm_fixture_store(&b->m[i], (struct mm_what){.off = i * share + o, .others = others},
                             (uint32_t)RTE_MIN(slice, share - o));
    if (!mm_fixture_run(b, 1000 * MS))
        fail_msg("stores do not end");
}

static void bytes_on_every_link_are_those_of_f27_and_f26(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 8; n++)
        for (unsigned others = 0; others < 2; others++) {
            uint64_t bytes = 65536ull * n, share = 65536, part = others ? bytes - share : bytes;
            uint64_t in = 0, out = 0;
            struct mm_fixture b;

            mm_fixture_open(&b,
                            &(struct mm_fixture_cfg){
                                .conf = plane(n, 4096, ""), .n = n, .length = bytes, .seed = 1});
            mm_fixture_bind_all(&b);
            reduce_own_share_and_store(&b, bytes, others, 16384);
            for (unsigned i = 0; i < n; i++) {
                /* out: what the others (and itself) read of it, and its share of the result */
                assert_int_equal(mm_fixture_up(&b, i), part + share);
                assert_int_equal(mm_fixture_down(&b, i), share + part);
                in += mm_fixture_up(&b, i);
                out += mm_fixture_down(&b, i);
            }
            assert_int_equal(in, others ? bytes * n : bytes * (n + 1));
            assert_int_equal(out, in);
            mm_fixture_close(&b);
        }
}

/* All at once, 16 READs of 16 KiB each: the plane is full. */
static void eight_members_reading_and_writing_fill_the_plane(void **state)
{
    const double link = (4096.0 * 4) / (4096 * 4 + 4 * (58 + 24) + 8); /* AETH on first and last */
    uint64_t bytes = 32ull << 20, done;
    struct mm_fixture b;
    int64_t t0, t1, t2;
    double load, store;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){.conf = plane(8, 4096, ""),
                                                 .n = 8,
                                                 .length = bytes,
                                                 .seed = 1,
                                                 .unbacked = true,
                                                 .window = MM_STORES * 4});
    mm_fixture_bind_all(&b);
    t0 = net_now(b.fx.net);
    for (unsigned i = 0; i < 8; i++)
        for (uint64_t o = 0; o < bytes / 8; o += 16384)
            mm_fixture_load(&b.m[i], (struct mm_what){.off = i * bytes / 8 + o, .dtype = DT_BF16},
                            16384);
    run(&b, 100 * MS);
    t1 = net_now(b.fx.net);
    for (unsigned i = 0; i < 8; i++)
        for (uint64_t o = 0; o < bytes / 8; o += 16384)
            mm_fixture_store(&b.m[i], (struct mm_what){.off = i * bytes / 8 + o}, 16384);
    run(&b, 100 * MS);
    t2 = net_now(b.fx.net);
    /* Every member gives B while all read, and gets B while all write. */
    load = (double)bytes / 125e9 / ((double)(t1 - t0) * 1e-12);
    store = (double)bytes / 125e9 / ((double)(t2 - t1) * 1e-12);
    print_message("of a 125 GB/s plane: loads %.4f, stores %.4f (headers allow %.4f)\n", load,
                  store, link);
    done = mm_fixture_counters(&b)->mm_loads;
    assert_int_equal(done, bytes / 16384);
    assert_true(load > 0.98 * link && load <= link + 0.001);
    assert_true(store > 0.97 * link && store <= link + 0.001);
    assert_int_equal(switch_fixture_all_drops(&b.fx), 0);
    assert_int_equal(an_roce_counters(b.an)->retransmits + an_roce_counters(b.an)->rnr_naks_sent,
                     0);
    assert_true(mm_fixture_counters(&b)->mm_loads_peak <= MM_LOADS);
    mm_fixture_close(&b);
}

static void one_member_alone_reads_and_writes_at_the_planes_rate(void **state)
{
    uint64_t bytes = 16ull << 20;
    struct mm_fixture b;
    int64_t t0, t1, t2;

    (void)state;
    mm_fixture_open(
        &b, &(struct mm_fixture_cfg){
                .conf = plane(8, 4096, ""), .n = 8, .length = bytes, .seed = 1, .unbacked = true});
    mm_fixture_bind_all(&b);
    t0 = net_now(b.fx.net);
    for (uint64_t o = 0; o < bytes; o += 16384)
        mm_fixture_load(&b.m[3], (struct mm_what){.off = o, .dtype = DT_FP32}, 16384);
    run(&b, 100 * MS);
    t1 = net_now(b.fx.net);
    for (uint64_t o = 0; o < bytes; o += 65536)
        mm_fixture_store(&b.m[3], (struct mm_what){.off = o}, 65536);
    run(&b, 100 * MS);
    t2 = net_now(b.fx.net);
    print_message("alone: loads %.4f, stores %.4f\n",
                  (double)bytes / 125e9 / ((double)(t1 - t0) * 1e-12),
                  (double)bytes / 125e9 / ((double)(t2 - t1) * 1e-12));
    assert_true((double)bytes / 125e9 / ((double)(t1 - t0) * 1e-12) > 0.95);
    assert_true((double)bytes / 125e9 / ((double)(t2 - t1) * 1e-12) > 0.95);
    mm_fixture_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_on_every_link_are_those_of_f27_and_f26),
        cmocka_unit_test(eight_members_reading_and_writing_fill_the_plane),
        cmocka_unit_test(one_member_alone_reads_and_writes_at_the_planes_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
