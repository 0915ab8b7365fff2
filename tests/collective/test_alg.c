/* SPDX-License-Identifier: BSD-3-Clause */
/* Building blocks of algorithms: how vectors are cut, and what steps wait for. */
#include "collective/alg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

static unsigned n_chans;
static uint64_t rates[4];

static unsigned channels(void *ctx, unsigned from, unsigned to, uint64_t *bps, unsigned max)
{
    (void)ctx, (void)from, (void)to;
    for (unsigned i = 0; i < n_chans && i < max; i++)
        bps[i] = rates[i];
    return n_chans;
}

static const struct sched_topo topo = {.channels = channels};

/* Rank 1 of 4 with buffers of 64 KiB, of elements of 4 bytes. */
static void begin(struct alg *a, struct sched *s, bool in_place)
{
    *s = (struct sched){.in = {.kind = COLL_ALLREDUCE,
                               .rank = 1,
                               .nranks = 4,
                               .count = 16384,
                               .mtu = 1024,
                               .in_place = in_place,
                               .topo = &topo},
                        .esize = 4,
                        .in_bytes = 65536,
                        .out_bytes = 65536};
    assert_int_equal(alg_begin(a, s), 0);
}

static void end(struct alg *a, struct sched *s)
{
    assert_int_equal(s->rc, 0);
    alg_end(a);
    sched_free(s);
}

/* The only step of a lane that there is. */
static const struct step *step_of(const struct sched *s, enum lane_kind kind, unsigned peer,
                                  unsigned chan, uint32_t i)
{
    unsigned lane;

    assert_true(sched_has_lane(s, kind, peer, chan, &lane));
    assert_true(i < s->lane[lane].n);
    return lane_step(&s->lane[lane], i);
}

static unsigned lane_of(const struct sched *s, enum lane_kind kind, unsigned peer, unsigned chan)
{
    unsigned lane;

    assert_true(sched_has_lane(s, kind, peer, chan, &lane));
    return lane;
}

/* It waits for so many steps of a lane, and for nothing else. */
static void waits_for(const struct step *st, unsigned lane, uint32_t count)
{
    assert_int_equal(st->n_deps, 1);
    assert_int_equal(st->dep[0].lane, lane);
    assert_int_equal(st->dep[0].count, count);
}

static void slices_are_whole_packets(void **state)
{
    static const struct {
        uint64_t bytes;
        unsigned n;
        uint64_t slice;
    } rows[] = {
        {0, 8, 1024},           {1, 8, 1024},          {8191, 8, 1024},
        {8192, 8, 1024},        {8193, 8, 2048},       {16384, 8, 2048},
        {16385, 1, 17408},      {8 * 65536, 8, 65536}, {8 * 65536 + 1, 8, 65536},
        {1ull << 40, 8, 65536}, {7 * 65536, 8, 57344},
    };
    struct sched s;
    struct alg a;

    (void)state;
    begin(&a, &s, false);
    for (unsigned i = 0; i < DIM(rows); i++)
        assert_int_equal(alg_slice(&a, rows[i].bytes, rows[i].n), rows[i].slice);
    end(&a, &s);
}

static void a_vector_is_striped_over_channels_in_turn(void **state)
{
    static const struct {
        struct stripes p;
        uint64_t len;
        unsigned parts;
        struct {
            unsigned chan;
            uint64_t off, len, k;
        } cut[8];
        unsigned n;
    } rows[] = {
        {{.n = 1, .weight = {9}}, 0, 8, {{0}}, 0},
        {{.n = 1, .weight = {9}}, 3000, 1, {{0, 0, 3000, 0}}, 1},
        {{.n = 1, .weight = {9}}, 3000, 2, {{0, 0, 2048, 0}, {0, 2048, 952, 1}}, 2},
        {{.n = 2, .weight = {1, 3}},
         16384,
         2,
         {{0, 0, 2048, 0}, {1, 4096, 6144, 0}, {0, 2048, 2048, 1}, {1, 10240, 6144, 1}},
         4},
        /* one ends before the other */
        {{.n = 2, .weight = {1, 3}},
         8192,
         3,
         {{0, 0, 1024, 0},
          {1, 2048, 2048, 0},
          {0, 1024, 1024, 1},
          {1, 4096, 2048, 1},
          {1, 6144, 2048, 2}},
         5},
        /* nothing for the first */
        {{.n = 2, .weight = {0, 3}}, 1024, 1, {{1, 0, 1024, 0}}, 1},
        {{.n = 3, .weight = {1, 1, 1}}, 8, 1, {{1, 0, 4, 0}, {2, 4, 4, 0}}, 2},
    };
    struct sched s;
    struct alg a;

    (void)state;
    begin(&a, &s, false);
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct cut c = alg_cut(&a, &rows[i].p, rows[i].len, rows[i].parts);

        for (unsigned k = 0; k < rows[i].n; k++) {
            assert_true(alg_next(&c));
            if (c.chan != rows[i].cut[k].chan || c.off != rows[i].cut[k].off ||
                c.len != rows[i].cut[k].len || c.k != rows[i].cut[k].k)
                fail_msg("row %u, slice %u: channel %u, %lu bytes at %lu, the %lu-th", i, k, c.chan,
                         c.len, c.off, c.k);
        }
        assert_false(alg_next(&c));
    }
    end(&a, &s);
}

static void stripes_are_the_channels(void **state)
{
    struct stripes p;
    struct sched s;
    struct alg a;

    (void)state;
    begin(&a, &s, false);
    n_chans = 3, rates[0] = 5, rates[1] = 6, rates[2] = 7;
    alg_stripes(&a, 1, 2, &p);
    assert_true(p.n == 3 && p.weight[0] == 5 && p.weight[1] == 6 && p.weight[2] == 7);
    n_chans = 0; /* then one */
    alg_stripes(&a, 1, 2, &p);
    assert_true(p.n == 1 && p.weight[0] == 1);
    n_chans = 3;
    s.in.topo = NULL;
    alg_stripes(&a, 1, 2, &p);
    assert_true(p.n == 1 && p.weight[0] == 1);
    n_chans = 0;
    end(&a, &s);
}

static void blocks_are_parts_or_of_one_size(void **state)
{
    static const uint16_t at[] = {3, 0};
    static const struct {
        struct blocks b;
        unsigned k;
        uint64_t off, len;
    } rows[] = {
        {{.total = 40, .n = 4}, 0, 0, 12},
        {{.total = 40, .n = 4}, 1, 12, 12},
        {{.total = 40, .n = 4}, 2, 24, 8},
        {{.total = 40, .n = 4}, 3, 32, 8},
        {{.each = 100, .n = 4}, 0, 0, 100},
        {{.each = 100, .n = 4}, 3, 300, 100},
        {{.each = 100, .part = 20, .n = 2, .at = at}, 0, 300, 20},
        {{.each = 100, .part = 20, .n = 2, .at = at}, 1, 0, 20},
    };
    struct sched s;
    struct alg a;

    (void)state;
    begin(&a, &s, false);
    for (unsigned i = 0; i < DIM(rows); i++) {
        uint64_t off, len;

        alg_block(&a, &rows[i].b, rows[i].k, &off, &len);
        assert_int_equal(off, rows[i].off);
        assert_int_equal(len, rows[i].len);
    }
    end(&a, &s);
}

/* A reader waits for the writer, a writer for the readers; in place the input is the output. */
static void steps_wait_for_the_bytes_that_they_use(void **state)
{
    (void)state;
    for (unsigned in_place = 0; in_place < 2; in_place++) {
        struct sched s;
        struct alg a;

        begin(&a, &s, in_place);
        alg_recv(&a, 2, 0, alg_ref(BUF_OUT, 100), 50);
        alg_send(&a, 3, 0, alg_ref(BUF_OUT, 149), 1);
        alg_send(&a, 3, 1, alg_ref(BUF_OUT, 150), 1);
        alg_send(&a, 3, 2, alg_ref(BUF_IN, 100), 1);
        alg_recv(&a, 2, 1, alg_ref(BUF_OUT, 149), 1);
        alg_recv_caused(&a, 2, 2, alg_ref(BUF_OUT, 149), 1);
        alg_send(&a, 3, 3, alg_ref(BUF_OUT, 0), 0); /* nothing */
        alg_recv(&a, 2, 3, alg_ref(BUF_OUT, 0), 0);
        alg_recv_caused(&a, 2, 3, alg_ref(BUF_OUT, 0), 0);
        alg_reduce(&a, 0, alg_ref(BUF_OUT, 0), alg_ref(BUF_OUT, 0), alg_ref(BUF_OUT, 0), 0, false);
        assert_int_equal(step_of(&s, LANE_RECV, 2, 0, 0)->n_deps, 0);
        waits_for(step_of(&s, LANE_SEND, 3, 0, 0), lane_of(&s, LANE_RECV, 2, 0), 1);
        assert_int_equal(step_of(&s, LANE_SEND, 3, 1, 0)->n_deps, 0);
        if (in_place)
            waits_for(step_of(&s, LANE_SEND, 3, 2, 0), lane_of(&s, LANE_RECV, 2, 0), 1);
        else
            assert_int_equal(step_of(&s, LANE_SEND, 3, 2, 0)->n_deps, 0);
        assert_int_equal(step_of(&s, LANE_RECV, 2, 1, 0)->n_deps, 2);
        assert_int_equal(step_of(&s, LANE_RECV, 2, 2, 0)->n_deps, 0);
        assert_int_equal(s.n_lanes, 6);
        end(&a, &s);
    }
}

/* One message op another: into a slot, or where the sum goes if that is of no use yet. */
static void a_sum_is_received_where_it_goes_first(void **state)
{
    struct sched s;
    struct alg a;
    const struct step *st;

    (void)state;
    begin(&a, &s, false);
    alg_recv_reduce(&a, 2, 0, alg_ref(BUF_OUT, 8), alg_ref(BUF_IN, 8), 16, false);
    alg_recv_reduce(&a, 2, 0, alg_ref(BUF_OUT, 8), alg_ref(BUF_OUT, 8), 16, true);
    alg_recv_reduce(&a, 2, 0, alg_ref(BUF_OUT, 8), alg_ref(BUF_OUT, 8), 0, true);
    st = step_of(&s, LANE_RECV, 2, 0, 0);
    assert_true(st->dst.buf == BUF_SLOT && st->dst.off == 0 && st->a.buf == BUF_OUT &&
                st->a.off == 8 && st->len == 16);
    st = step_of(&s, LANE_CPU, 2, 0, 0);
    assert_true(st->a.buf == BUF_SLOT && st->b.buf == BUF_IN && st->dst.buf == BUF_OUT &&
                !st->last);
    waits_for(st, lane_of(&s, LANE_RECV, 2, 0), 1);
    st = step_of(&s, LANE_RECV, 2, 0, 1);
    assert_true(st->dst.buf == BUF_SLOT && st->dst.off == 1 && st->a.buf == BUF_NONE);
    st = step_of(&s, LANE_CPU, 2, 0, 1);
    assert_true(st->a.buf == BUF_SLOT && st->a.off == 1 && st->last);
    assert_int_equal(s.n_steps, 4);
    end(&a, &s);
}

/* The message that takes a slot again waits for the step that has read it. */
static void a_slot_is_used_again_when_it_was_read(void **state)
{
    struct sched s;
    struct alg a;

    (void)state;
    begin(&a, &s, true);
    for (unsigned i = 0; i < 2 * SCHED_SLOTS + 1; i++)
        alg_recv_reduce(&a, 2, 0, alg_ref(BUF_OUT, 4ul * i), alg_ref(BUF_OUT, 4ul * i), 4, false);
    for (unsigned i = 0; i < 2 * SCHED_SLOTS + 1; i++)
        if (i < SCHED_SLOTS)
            assert_int_equal(step_of(&s, LANE_RECV, 2, 0, i)->n_deps, 0);
        else
            waits_for(step_of(&s, LANE_RECV, 2, 0, i), lane_of(&s, LANE_CPU, 2, 0),
                      i - SCHED_SLOTS + 1);
    end(&a, &s);
}

/* More than a step has room for meet in steps of their own, which wait for the rest. */
static void many_dependencies_are_joined(void **state)
{
    for (unsigned n = 1; n < 40; n++) {
        struct dep d[40], all;
        bool seen[64] = {false};
        unsigned found = 0;
        struct sched s;
        struct alg a;

        (void)state;
        begin(&a, &s, false);
        for (unsigned i = 0; i < n; i++) {
            alg_recv(&a, 2, i, alg_ref(BUF_OUT, 4ul * i), 4);
            d[i] = alg_so_far(&a, LANE_RECV, 2, i);
            assert_int_equal(d[i].count, 1);
        }
        all = alg_join(&a, d, n);
        seen[all.lane] = true;
        for (bool more = true; more;) { /* all that it waits for, by way of others */
            more = false;
            for (unsigned l = 0; l < s.n_lanes; l++)
                for (uint32_t i = 0; seen[l] && i < s.lane[l].n; i++)
                    for (unsigned k = 0; k < lane_step(&s.lane[l], i)->n_deps; k++) {
                        unsigned on = lane_step(&s.lane[l], i)->dep[k].lane;

                        more |= !seen[on];
                        seen[on] = true;
                    }
        }
        for (unsigned l = 0; l < s.n_lanes; l++)
            found += seen[l] && s.lane[l].kind == LANE_RECV;
        assert_int_equal(found, n);
        assert_int_equal(alg_so_far(&a, LANE_RECV, 3, 0).count, 0); /* no such lane */
        end(&a, &s);
    }
}

/* In steps of 1 MiB, so that others run in between. */
static void long_copies_are_cut(void **state)
{
    static const uint64_t lens[] = {0, 1, 1 << 20, (1 << 20) + 1, 3 << 20};

    (void)state;
    for (unsigned k = 0; k < DIM(lens); k++) {
        struct sched s;
        struct alg a;
        uint64_t at = 0;
        unsigned lane;

        begin(&a, &s, false);
        s.in_bytes = s.out_bytes = 4 << 20;
        alg_end(&a);
        assert_int_equal(alg_begin(&a, &s), 0);
        alg_copy(&a, alg_ref(BUF_OUT, 8), alg_ref(BUF_IN, 4), lens[k], true);
        assert_int_equal(s.n_steps, (lens[k] + (1 << 20) - 1) >> 20);
        for (unsigned i = 0; i < s.n_steps; i++) {
            const struct step *st;

            assert_true(sched_has_lane(&s, LANE_CPU, 1, 0, &lane));
            st = lane_step(&s.lane[lane], i);
            assert_true(st->op == STEP_COPY && st->last);
            assert_true(st->dst.off == at + 8 && st->a.off == at + 4);
            at += st->len;
        }
        assert_int_equal(at, lens[k]);
        end(&a, &s);
    }
}

/* The first slice waits until but the last eight messages to the one before are done, where those are sixteen. */
static void a_message_behind_another_leaves_when_most_of_that_has(void **state)
{
    static const struct {
        unsigned before;
        uint32_t waits;
    } rows[] = {{0, 0}, {15, 0}, {16, 8}, {17, 9}, {100, 92}};

    (void)state;
    n_chans = 1, rates[0] = 1;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct sched s;
        struct alg a;
        const struct step *st;

        begin(&a, &s, false);
        for (unsigned k = 0; k < rows[i].before; k++)
            alg_send(&a, 2, 0, alg_ref(BUF_IN, 0), 4);
        alg_send_all_behind(&a, 2, 3, alg_ref(BUF_IN, 0), 4096);
        st = step_of(&s, LANE_SEND, 3, 0, 0);
        assert_int_equal(st->len, 1024);
        if (rows[i].waits)
            waits_for(st, lane_of(&s, LANE_SEND, 2, 0), rows[i].waits);
        else
            assert_int_equal(st->n_deps, 0);
        assert_int_equal(step_of(&s, LANE_SEND, 3, 0, 1)->n_deps, 0);
        end(&a, &s);
    }
    n_chans = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_whole_packets),
        cmocka_unit_test(a_vector_is_striped_over_channels_in_turn),
        cmocka_unit_test(stripes_are_the_channels),
        cmocka_unit_test(blocks_are_parts_or_of_one_size),
        cmocka_unit_test(steps_wait_for_the_bytes_that_they_use),
        cmocka_unit_test(a_sum_is_received_where_it_goes_first),
        cmocka_unit_test(a_slot_is_used_again_when_it_was_read),
        cmocka_unit_test(many_dependencies_are_joined),
        cmocka_unit_test(long_copies_are_cut),
        cmocka_unit_test(a_message_behind_another_leaves_when_most_of_that_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
