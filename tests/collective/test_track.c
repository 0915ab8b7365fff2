/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for whom, against a table of every piece of the buffer. */
#include "collective/track.h"

#include "tests/support/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#define PIECES 512u
#define LANES  12u

/* The last step of each lane that wrote a piece, or has read it since; 0: none. */
static struct {
    struct dep writer;
    uint32_t reader[LANES];
} table[PIECES];
static uint32_t step[LANES];

/* Steps that somebody was told to wait for: of each lane the last one, and how many in all. */
struct told {
    uint32_t last[LANES];
    unsigned calls;
};

static void hear(void *arg, struct dep d)
{
    struct told *t = arg;

    assert_true(d.lane < LANES && d.count);
    t->calls++;
    if (d.count > t->last[d.lane])
        t->last[d.lane] = d.count;
}

static void expect(unsigned from, unsigned n, bool write, uint32_t *last)
{
    memset(last, 0, LANES * sizeof(*last));
    for (unsigned i = from; i < from + n; i++) {
        if (table[i].writer.count > last[table[i].writer.lane])
            last[table[i].writer.lane] = table[i].writer.count;
        for (unsigned l = 0; write && l < LANES; l++)
            if (table[i].reader[l] > last[l])
                last[l] = table[i].reader[l];
    }
}

static void note(struct track *t, unsigned from, unsigned n, bool write, uint64_t piece)
{
    struct dep d = {.lane = draw(LANES)};

    d.count = ++step[d.lane];
    assert_int_equal(track_note(t, from * piece, n * piece, write, d), 0);
    for (unsigned i = from; i < from + n; i++) {
        if (write) {
            table[i].writer = d;
            memset(table[i].reader, 0, sizeof(table[i].reader));
        } else {
            table[i].reader[d.lane] = d.count;
        }
    }
}

/* Buffers of the smallest parts up to those of a thousandth and less each. */
static void steps_wait_for_those_that_touched_their_bytes(void **state)
{
    static const uint64_t piece[] = {1, 3, 8, 255, 256, 257, 4096, 70001, 1u << 20};

    (void)state;
    for (unsigned p = 0; p < sizeof(piece) / sizeof(piece[0]); p++)
        for (draw_seed = 1; draw_seed < 9; draw_seed++) {
            uint64_t seed = draw_seed;
            struct track *t = track_new(PIECES * piece[p]);

            assert_non_null(t);
            memset(table, 0, sizeof(table));
            memset(step, 0, sizeof(step));
            for (unsigned k = 0; k < 200; k++) {
                unsigned from = draw(PIECES), n = 1 + draw(draw(4) ? 5 : PIECES);
                bool write = !draw(3);
                struct told told = {0};
                uint32_t last[LANES];

                n = n < PIECES - from ? n : PIECES - from;
                assert_int_equal(track_ask(t, from * piece[p], n * piece[p], write, hear, &told),
                                 0);
                expect(from, n, write, last);
                assert_memory_equal(told.last, last, sizeof(last));
                note(t, from, n, write, piece[p]);
            }
            track_free(t);
            draw_seed = seed;
        }
}

/* Nobody has used a buffer that is new, and nothing is of no bytes. */
static void what_nobody_used_waits_for_nothing(void **state)
{
    struct track *t = track_new(1000);
    struct told told = {0};

    (void)state;
    assert_int_equal(track_ask(t, 0, 1000, true, hear, &told), 0);
    assert_int_equal(track_note(t, 100, 0, true, (struct dep){1, 1}), 0);
    assert_int_equal(track_ask(t, 0, 1000, true, hear, &told), 0);
    assert_int_equal(track_note(t, 100, 100, true, (struct dep){1, 1}), 0);
    assert_int_equal(track_ask(t, 0, 100, true, hear, &told), 0);
    assert_int_equal(track_ask(t, 200, 800, true, hear, &told), 0);
    assert_int_equal(track_ask(t, 150, 0, true, hear, &told), 0);
    assert_int_equal(told.calls, 0);
    assert_int_equal(track_ask(t, 199, 1, false, hear, &told), 0);
    assert_int_equal(told.calls, 1);
    track_free(t);
    track_free(NULL);
}

/* A lane that reads again is one reader: a writer is told of its last step alone. */
static void a_lane_is_one_reader(void **state)
{
    struct track *t = track_new(1000);
    struct told told = {0};

    (void)state;
    for (uint32_t k = 1; k <= 100; k++)
        for (uint32_t lane = 0; lane < 8; lane++)
            assert_int_equal(track_note(t, 0, 10, false, (struct dep){lane, k}), 0);
    assert_int_equal(track_ask(t, 0, 10, true, hear, &told), 0);
    assert_int_equal(told.calls, 8);
    for (unsigned lane = 0; lane < 8; lane++)
        assert_int_equal(told.last[lane], 100);
    told.calls = 0;
    assert_int_equal(track_ask(t, 0, 10, false, hear, &told), 0); /* readers wait for no readers */
    assert_int_equal(told.calls, 0);
    assert_int_equal(track_note(t, 0, 10, true, (struct dep){9, 1}), 0);
    assert_int_equal(track_ask(t, 0, 10, true, hear, &told), 0);
    assert_int_equal(told.calls, 1); /* nor does anybody for those before the last writer */
    track_free(t);
}

/* Parts of 256 bytes at least, and 4096 of them at most; steps are found by the part that they begin in. */
static void buffers_of_any_length_can_be_used_to_their_last_byte(void **state)
{
    static const uint64_t bytes[] = {
        1, 255, 256, 257, 8191, 8192, 131072, 1u << 24, (1u << 24) + 1, (1u << 30) - 1, 1u << 30};

    (void)state;
    for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        struct track *t = track_new(bytes[i]);
        struct told told = {0};

        assert_int_equal(track_note(t, bytes[i] - 1, 1, true, (struct dep){2, 7}), 0);
        assert_int_equal(track_note(t, 0, 1, false, (struct dep){3, 5}), 0);
        assert_int_equal(track_ask(t, 0, bytes[i], true, hear, &told), 0);
        assert_int_equal(told.calls, 2);
        assert_int_equal(told.last[2], 7);
        assert_int_equal(told.last[3], 5);
        track_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_wait_for_those_that_touched_their_bytes),
        cmocka_unit_test(what_nobody_used_waits_for_nothing),
        cmocka_unit_test(a_lane_is_one_reader),
        cmocka_unit_test(buffers_of_any_length_can_be_used_to_their_last_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
