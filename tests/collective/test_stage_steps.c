/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules of collectives, and what becomes of them for GPU memory: buffers, lanes and each field of each step, as one number for
 * each algorithm. They are a function of their arguments alone. A line that differs is printed as it is now.
 */
#include "collective/sched.h"
#include "collective/stage.h"
#include "tests/collective/stage_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define RANKS 5u

enum place { PLAIN, STAGED, REACHED, PLACES };

static uint64_t note(uint64_t noted, const uint64_t *what, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < 8; k++)
            noted = (noted ^ (what[i] >> 8 * k & 0xff)) * 0x100000001b3u;
    return noted;
}

static uint64_t note_step(uint64_t noted, const struct sched *s, const struct step *st)
{
    const uint64_t what[] = {st->op,     st->last,   st->self,    st->agg,      st->region,
                             st->n_deps, st->root,   st->dst.buf, st->dst.lane, st->dst.off,
                             st->a.buf,  st->a.lane, st->a.off,   st->b.buf,    st->b.lane,
                             st->b.off,  st->len,    st->off};
    struct stage_hint h = {0};

    noted = note(noted, what, sizeof(what) / sizeof(what[0]));
    for (unsigned i = 0; i < st->n_deps; i++)
        noted = note(noted, (const uint64_t[]){st->dep[i].lane, st->dep[i].count}, 2);
    if (stage_hint(s, st, &h))
        noted = note(noted, (const uint64_t[]){h.up, h.step, h.send, h.free_from, h.off}, 5);
    return noted;
}

/* One rank's; 0: there is none. */
static uint64_t note_rank(uint64_t noted, const struct sched_in *in, enum place place,
                          uint32_t *steps)
{
    struct sched s;

    if (sched_init(&s, in))
        return 0;
    if (place != PLAIN)
        assert_int_equal(sched_stage(&s, place == REACHED), 0);
    *steps += s.n_steps;
    noted =
        note(noted,
             (const uint64_t[]){s.in_bytes, s.out_bytes, s.tmp_bytes, s.stage_bytes, s.n_lanes}, 5);
    for (unsigned l = 0; l < s.n_lanes; l++) {
        const struct lane *t = &s.lane[l];

        noted = note(noted, (const uint64_t[]){t->kind, t->peer, t->chan, t->n}, 4);
        for (uint32_t i = 0; i < t->n; i++)
            noted = note_step(noted, &s, lane_step(t, i));
    }
    sched_free(&s);
    return noted;
}

static bool line_of(enum coll_kind kind, enum coll_algo algo, char *text, size_t room)
{
    static const uint64_t counts[] = {1, 3001, 250007};
    size_t n = (size_t)snprintf(text, room, "%s %s:", coll_name(kind), sched_algo_name(algo));

    for (enum place p = PLAIN; p < PLACES; p++) {
        uint64_t noted = 1;
        uint32_t steps = 0;

        for (unsigned i = 0; i < 3 * RANKS; i++) {
            struct sched_in in = {.kind = kind,
                                  .algo = algo,
                                  .nranks = RANKS,
                                  .rank = i % RANKS,
                                  .root = 2,
                                  .count = kind == COLL_BARRIER ? 0 : counts[i / RANKS],
                                  .type = DT_FP32,
                                  .op = i / RANKS == 1 ? OP_AVG : OP_SUM,
                                  .mtu = 1024};

            noted = note_rank(noted, &in, p, &steps);
            if (!noted)
                return false;
        }
        n += (size_t)snprintf(text + n, room - n, " %u %lx", steps, noted);
    }
    return true;
}

static void schedules_are_what_they_were(void **state)
{
    unsigned at = 0, wrong = 0;

    (void)state;
    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (enum coll_algo a = 0; a < ALGO_USUAL; a++) {
            char now[300];

            if (!sched_has(k, a) || a == ALGO_NVLS || a == ALGO_NVLS_SHARP ||
                !line_of(k, a, now, sizeof(now)))
                continue;
            if (at >= STEPS || strcmp(steps_of[at], now)) {
                wrong++;
                printf("    \"%s\",\n", now);
            }
            at++;
        }
    assert_int_equal(wrong, 0);
    assert_int_equal(at, STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(schedules_are_what_they_were)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
