/* SPDX-License-Identifier: BSD-3-Clause */
/* Multimem: READ of a region is ld_reduce, WRITE to it a multicast store; exact,
 * whatever is lost. */
#include "tests/support/mm_fixture.h"
#include "tests/support/reduce_ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void fill(struct mm_fixture *b, enum dtype t, uint64_t off, size_t count)
{
    for (unsigned i = 0; i < b->cfg.n; i++)
        ref_fill(t, b->m[i].mem + off, count, &b->rng);
}

/* The data that member i must read, by an independent reference. */
static void expect_load(struct mm_fixture *b, unsigned i, const struct mm_what *w, size_t count,
                        void *want)
{
    const void *in[MM_FIXTURE_MEMBERS];
    unsigned n = 0, size = dtype_size(w->dtype);
    uint8_t *acc = want;

    for (unsigned k = 0; k < b->cfg.n; k++)
        if (!w->others || k != i)
            in[n++] = b->m[k].mem + w->off;
    if (!w->own) {
        ref_reduce(w->op, w->dtype, in, n, count, want);
        return;
    }
    ref_reduce(w->op, w->dtype, in, 1, count, want);
    for (unsigned k = 1; k < n; k++) { /* one rounding a member */
        uint8_t *next = malloc(count * size);
        const void *two[2] = {acc, in[k]};

        ref_reduce(w->op, w->dtype, two, 2, count, next);
        memcpy(acc, next, count * size);
        free(next);
    }
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

static void check_load(struct mm_fixture *b, unsigned i, const struct mm_what *w, size_t count)
{
    size_t bytes = count * dtype_size(w->dtype);
    uint8_t *want = malloc(bytes);

    expect_load(b, i, w, count, want);
    if (memcmp(b->m[i].local + w->off, want, bytes))
        fail_msg("%s %s of %zu, %s, %s: member %u of %u differs", dtype_name(w->dtype),
                 redop_name(w->op), count, w->others ? "others" : "all", w->own ? "own" : "fp32", i,
                 b->cfg.n);
    free(want);
}

static void loads_of_every_type_and_operation_are_exact_in_both_windows(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 8; n++) {
        struct mm_fixture b;

        mm_fixture_open(&b, &(struct mm_fixture_cfg){.conf = plane(n, n % 2 ? 1024 : 4096, ""),
                                                     .n = n,
                                                     .length = 1 << 20,
                                                     .seed = n});
        mm_fixture_bind_all(&b);
        for (unsigned t = 0; t < DT_COUNT; t++)
            for (unsigned op = 0; op < OP_COUNT; op++) {
                if (!arith_valid(op, t))
                    continue;
                size_t count = 1 + random_next(&b.rng) % 9000;
                struct mm_what w = {.off = 8 * (random_next(&b.rng) % 1000),
                                    .others = (t + op) % 2,
                                    .dtype = (uint8_t)t,
                                    .op = (uint8_t)op,
                                    .own = random_next(&b.rng) % 2};

                fill(&b, t, w.off, count);
                for (unsigned i = 0; i < n; i++)
                    mm_fixture_load(&b.m[i], w, (uint32_t)(count * dtype_size(t)));
                run(&b, 10 * MS);
                for (unsigned i = 0; i < n; i++)
                    check_load(&b, i, &w, count);
            }
        mm_fixture_close(&b);
    }
}

static void own_accumulation_rounds_at_every_member(void **state)
{
    struct mm_fixture b;
    /* 2048 + 1 + 1: in fp16 each 1 is lost to the rounding, in fp32 they are 2050. */
    const uint16_t value[3] = {fp32_to_fp16(2048), fp32_to_fp16(1), fp32_to_fp16(1)};
    struct mm_what w = {.dtype = DT_FP16, .op = OP_SUM};

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){
                            .conf = plane(3, 4096, ""), .n = 3, .length = 4096, .seed = 1});
    mm_fixture_bind_all(&b);
    for (unsigned i = 0; i < 3; i++)
        memcpy(b.m[i].mem, &value[i], 2);
    mm_fixture_load(&b.m[0], w, 2);
    run(&b, MS);
    assert_int_equal(*(uint16_t *)b.m[0].local, fp32_to_fp16(2050));
    w.own = true;
    mm_fixture_load(&b.m[0], w, 2);
    run(&b, MS);
    assert_int_equal(*(uint16_t *)b.m[0].local, fp32_to_fp16(2048));
    mm_fixture_close(&b);
}

static void stores_reach_all_members_or_all_but_the_caller(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 8; n++)
        for (unsigned others = 0; others < 2; others++) {
            uint32_t share = 40000 + 4 * n;
            struct mm_fixture b;

            mm_fixture_open(&b, &(struct mm_fixture_cfg){.conf = plane(n, n % 2 ? 256 : 2048, ""),
                                                         .n = n,
                                                         .length = (uint64_t)n * share,
                                                         .seed = n});
            mm_fixture_bind_all(&b);
            for (unsigned i = 0; i < n; i++) {
                struct mm_what w = {.off = (uint64_t)i * share, .others = others};

                ref_fill(DT_UINT8, b.m[i].local + w.off, share, &b.rng);
                mm_fixture_store(&b.m[i], w, share);
            }
            run(&b, 10 * MS);
            for (unsigned to = 0; to < n; to++)
                for (unsigned i = 0; i < n; i++) {
                    const uint8_t *got = b.m[to].mem + (size_t)i * share;
                    bool same = !memcmp(got, b.m[i].local + (size_t)i * share, share);

                    assert_int_equal(same, !(others && to == i));
                }
            mm_fixture_close(&b);
        }
}

/* A WRITE is acknowledged when every member has it. */
static void a_store_is_complete_only_when_every_member_has_it(void **state)
{
    struct mm_fixture b;
    unsigned seen = 0;

    (void)state;
    mm_fixture_open(
        &b, &(struct mm_fixture_cfg){
                .conf = plane(4, 1024, "loss = 0.05;"), .n = 4, .length = 1 << 18, .seed = 5});
    mm_fixture_bind_all(&b);
    memset(b.m[1].local, 0x5a, 1 << 18);
    for (unsigned i = 0; i < 16; i++)
        mm_fixture_store(&b.m[1], (struct mm_what){.off = i * 16384}, 16384);
    while (!mm_fixture_settled(&b)) {
        net_advance(b.fx.net, net_next(b.fx.net));
        for (; seen < b.m[1].n_cqes; seen++)
            for (unsigned k = 0; k < 4; k++)
                assert_memory_equal(b.m[k].mem + (size_t)seen * 16384, b.m[1].local, 16384);
    }
    assert_int_equal(b.m[1].n_bad, 0);
    assert_int_equal(seen, 16);
    mm_fixture_close(&b);
}

static void lost_and_doubled_frames_change_no_bit(void **state)
{
    uint64_t again = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct mm_what w = {.dtype = DT_FP32, .op = OP_SUM, .others = seed % 2};
        const size_t count = 24000;
        struct mm_fixture b;

        mm_fixture_open(
            &b, &(struct mm_fixture_cfg){.conf = plane(5, seed % 2 ? 1024 : 4096,
                                                       "loss = 0.01; dup = 0.01; reorder = 0.01;"),
                                         .n = 5,
                                         .length = 5 * count * 4,
                                         .seed = seed});
        mm_fixture_bind_all(&b);
        fill(&b, DT_FP32, 0, 5 * count);
        for (unsigned i = 0; i < 5; i++) {
            w.off = i * count * 4;
            for (unsigned k = 0; k < 6; k++) {
                struct mm_what part = w;

                part.off += k * count * 4 / 6;
                mm_fixture_load(&b.m[i], part, count * 4 / 6);
            }
        }
        run(&b, 2000 * MS);
        for (unsigned i = 0; i < 5; i++) {
            w.off = i * count * 4;
            check_load(&b, i, &w, count);
        }
        for (unsigned i = 0; i < 5; i++)
            mm_fixture_store(&b.m[i], (struct mm_what){.off = i * count * 4}, count * 4);
        run(&b, 2000 * MS);
        for (unsigned to = 0; to < 5; to++)
            for (unsigned i = 0; i < 5; i++)
                assert_memory_equal(b.m[to].mem + i * count * 4, b.m[i].local + i * count * 4,
                                    count * 4);
        again += mm_fixture_counters(&b)->mm_loads_again;
        mm_fixture_close(&b);
    }
    assert_true(again > 0);
}

/* The caller's port is paused until it reads again: slices are reduced and not sent. */
static void slices_that_are_read_again_give_their_buffers_back(void **state)
{
    struct mm_what w = {.dtype = DT_FP32, .op = OP_SUM, .others = true};
    struct mm_fixture b;
    struct egress *q;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){.conf = plane(3, 1024, "buffer = \"32KiB\";"),
                                                 .n = 3,
                                                 .length = 1 << 18,
                                                 .seed = 3});
    mm_fixture_bind_all(&b);
    fill(&b, DT_FP32, 0, 1 << 16);
    q = net_egress(b.fx.net, b.sw, 0);
    for (unsigned k = 0; k < 4; k++) {
        uint64_t again = mm_fixture_counters(&b)->mm_loads_again;

        egress_pause(q, FRAME_LOSSLESS, net_now(b.fx.net) + 20 * MS, net_now(b.fx.net));
        mm_fixture_load(&b.m[0], w, 1 << 18);
        mm_fixture_pass(&b, 19 * MS);
        assert_true(mm_fixture_counters(&b)->mm_loads_again > again);
        assert_true(mm_fixture_counters(&b)->mm_loads_used > 0);
        run(&b, 200 * MS);
        check_load(&b, 0, &w, 1 << 16);
        mm_fixture_pass(&b, MS);
        assert_int_equal(mm_fixture_counters(&b)->mm_loads_used, 0);
    }
    mm_fixture_close(&b);
}

/* A READ behind a WRITE of one member returns the written data. */
static void a_load_after_a_store_of_the_same_member_sees_it(void **state)
{
    struct mm_fixture b;

    (void)state;
    mm_fixture_open(
        &b, &(struct mm_fixture_cfg){
                .conf = plane(4, 1024, "loss = 0.01;"), .n = 4, .length = 1 << 17, .seed = 2});
    mm_fixture_bind_all(&b);
    for (unsigned k = 0; k < 30; k++) {
        uint32_t *src = (uint32_t *)b.m[2].local, len = 60000;

        for (unsigned i = 0; i < len / 4; i++)
            src[i] = k * 1000 + i;
        mm_fixture_store(&b.m[2], (struct mm_what){0}, len);
        {
            struct wqe w = {.wr_id = 99, .op = WR_READ, .frag = WQE_WHOLE, .n_sge = 1};
            struct mm_what what = {.dtype = DT_UINT32, .op = OP_SUM};

            w.raddr = mm_addr(MM_BASE, &what);
            w.rkey = rte_be_to_cpu_32(b.m[2].got[AGG_MM_BIND_REPLY].rkey);
            w.sge[0] = (struct sge){(uintptr_t)(b.m[2].local + 65536), len, MM_FIXTURE_LKEY};
            mm_fixture_post(&b.m[2], &w);
        }
        run(&b, 200 * MS);
        for (unsigned i = 0; i < len / 4; i++)
            assert_int_equal(((uint32_t *)(b.m[2].local + 65536))[i], 4 * (k * 1000 + i));
    }
    mm_fixture_close(&b);
}

static void requests_of_no_bytes_complete(void **state)
{
    struct mm_fixture b;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){
                            .conf = plane(2, 1024, ""), .n = 2, .length = 4096, .seed = 2});
    mm_fixture_bind_all(&b);
    for (unsigned k = 0; k < 40; k++) {
        mm_fixture_load(&b.m[k % 2], (struct mm_what){.dtype = DT_FP32}, 0);
        mm_fixture_store(&b.m[k % 2], (struct mm_what){0}, 0);
        mm_fixture_load(&b.m[k % 2], (struct mm_what){.dtype = DT_FP32}, 4096);
    }
    run(&b, 10 * MS);
    mm_fixture_close(&b);
}

/* READs that come before all members are ready wait for them. */
static void loads_wait_until_all_are_ready(void **state)
{
    struct mm_fixture b;
    struct mm_ctl c;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){
                            .conf = plane(3, 1024, ""), .n = 3, .length = 8192, .seed = 2});
    for (unsigned i = 0; i < 3; i++) {
        c = mm_fixture_bind_of(&b.m[i]);
        mm_fixture_say(&b.m[i], AGG_MM_BIND, &c);
    }
    mm_fixture_pass(&b, MS);
    for (unsigned i = 0; i < 3; i++)
        mm_fixture_connect(&b.m[i]);
    for (unsigned i = 0; i < 2; i++) {
        c = mm_fixture_bind_of(&b.m[i]);
        mm_fixture_say(&b.m[i], AGG_MM_READY, &c);
    }
    mm_fixture_load(&b.m[0], (struct mm_what){.dtype = DT_UINT8}, 8192);
    mm_fixture_store(&b.m[1], (struct mm_what){0}, 8192);
    mm_fixture_pass(&b, 2 * MS);
    assert_int_equal(b.m[0].n_cqes + b.m[1].n_cqes, 0);
    assert_int_equal(b.m[0].n_got[AGG_MM_READY_REPLY], 0);
    assert_true(mm_fixture_counters(&b)->mm_stores_late > 0);
    c = mm_fixture_bind_of(&b.m[2]);
    mm_fixture_say(&b.m[2], AGG_MM_READY, &c);
    run(&b, 10 * MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(b.m[i].n_got[AGG_MM_READY_REPLY], 1);
    mm_fixture_close(&b);
}

/* A member that writes more slices than its window gets RNR NAKs, and all its bytes arrive. */
static void stores_beyond_the_window_come_again(void **state)
{
    struct mm_fixture b;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){.conf = plane(2, 4096, ""),
                                                 .n = 2,
                                                 .length = 2 << 20,
                                                 .seed = 2,
                                                 .window = 512,
                                                 .write_slices = 2});
    mm_fixture_bind_all(&b);
    ref_fill(DT_UINT8, b.m[0].local, 2 << 20, &b.rng);
    mm_fixture_store(&b.m[0], (struct mm_what){0}, 2 << 20);
    run(&b, 100 * MS);
    assert_memory_equal(b.m[1].mem, b.m[0].local, 2 << 20);
    assert_int_equal(mm_fixture_counters(&b)->mm_stores_peak, 2);
    assert_true(mm_fixture_counters(&b)->mm_stores_late > 0);
    mm_fixture_close(&b);
}

/* Binds the member's memory at `va` of `length` bytes to area `area`. */
static void move(struct mm_fixture *b, unsigned i, uint8_t area, uint32_t xid, uint64_t at,
                 uint64_t length)
{
    struct mm_ctl c = mm_fixture_bind_of(&b->m[i]);

    c.xid = rte_cpu_to_be_32(xid);
    c.area = area;
    c.va = rte_cpu_to_be_64((1ULL << 40) + at);
    c.length = rte_cpu_to_be_64(length);
    mm_fixture_say(&b->m[i], AGG_MM_MOVE, &c);
    mm_fixture_pass(b, 100 * PS_PER_US);
    assert_int_equal(b->m[i].got[AGG_MM_MOVE_REPLY].xid, rte_cpu_to_be_32(xid));
    assert_int_equal(b->m[i].got[AGG_MM_MOVE_REPLY].status, 0);
}

/* Every member may have its own place for an area, and another one for each operation. */
static void memory_that_is_moved_is_what_is_read_and_written(void **state)
{
    struct mm_fixture b;

    (void)state;
    mm_fixture_open(&b, &(struct mm_fixture_cfg){
                            .conf = plane(3, 1024, ""), .n = 3, .length = 1 << 18, .seed = 2});
    mm_fixture_bind_all(&b);
    for (unsigned round = 0; round < 3; round++) {
        uint8_t area = 1 + round % 2;

        for (unsigned i = 0; i < 3; i++) {
            uint64_t place = 65536 + 8 * i + 4096 * round;

            for (unsigned k = 0; k < 1000; k++)
                ((uint32_t *)(b.m[i].mem + place))[k] = (i + 1) * 1000000 + round * 10000 + k;
            move(&b, i, area, 500 + round, place, 4000 + i);
            move(&b, i, area, 400, 0, 4000); /* an old one that comes late changes nothing */
        }
        mm_fixture_load(&b.m[1], (struct mm_what){.dtype = DT_UINT32, .area = area}, 4000);
        run(&b, 10 * MS);
        for (unsigned k = 0; k < 1000; k++)
            assert_int_equal(((uint32_t *)b.m[1].local)[k], 6000000 + 3 * (round * 10000 + k));
        memset(b.m[2].local, (int)(0x40 + round), 4000);
        mm_fixture_store(&b.m[2], (struct mm_what){.area = area}, 4000);
        run(&b, 10 * MS);
        for (unsigned i = 0; i < 3; i++)
            assert_memory_equal(b.m[i].mem + 65536 + 8 * i + 4096 * round, b.m[2].local, 4000);
    }
    mm_fixture_load(&b.m[0], (struct mm_what){.dtype = DT_UINT8, .area = 1},
                    4001); /* member 0 has 4000 */
    assert_true(mm_fixture_run(&b, 10 * MS));
    assert_int_equal(b.m[0].cqe[b.m[0].n_cqes - 1].status, WC_REM_ACCESS_ERR);
    mm_fixture_close(&b);
}

#define TEST(f) cmocka_unit_test(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(loads_of_every_type_and_operation_are_exact_in_both_windows),
        TEST(own_accumulation_rounds_at_every_member),
        TEST(stores_reach_all_members_or_all_but_the_caller),
        TEST(a_store_is_complete_only_when_every_member_has_it),
        TEST(lost_and_doubled_frames_change_no_bit),
        TEST(slices_that_are_read_again_give_their_buffers_back),
        TEST(a_load_after_a_store_of_the_same_member_sees_it),
        TEST(requests_of_no_bytes_complete),
        TEST(loads_wait_until_all_are_ready),
        TEST(stores_beyond_the_window_come_again),
        TEST(memory_that_is_moved_is_what_is_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
