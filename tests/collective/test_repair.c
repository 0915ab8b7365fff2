/* SPDX-License-Identifier: BSD-3-Clause */
/* The rest of an operation whose trees have failed: ranks that have some of its messages give them
 * to the others, and the ranks reduce the other messages again. */
#include "aggregation/proto.h"
#include "tests/collective/sched_row.h"

static struct sched was[INTERP_RANKS];

/* The messages that rank r has of a tree: some number of them from `least` on, all of which rank `from` has. */
static uint64_t done_by(const struct sched_cut *cut, const struct lane *l, unsigned r, unsigned n)
{
    uint64_t most = cut->most < l->n ? cut->most : l->n;
    uint64_t least = cut->least < most ? cut->least : most;

    return least + (most - least) * ((r + n - cut->from) % n ? r % 2 : 1);
}

/* Gives ranks the results that switches had sent. Inputs of messages that are reduced again are
 * restored before (op_recovery.c). */
static void give_results(struct irank *k, unsigned r, unsigned n, const struct sched_repair *how,
                         const uint8_t *want)
{
    for (unsigned i = 0; i < was[r].n_lanes; i++) {
        const struct lane *l = &was[r].lane[i];

        if (l->kind != LANE_AGG)
            continue;
        for (uint64_t m = 0; m < done_by(&how->cut[l->chan], l, r, n); m++) {
            const struct step *st = lane_step(l, m);

            if (st->dst.buf == BUF_OUT && (st->agg != AGG_REDUCE || m < how->cut[l->chan].least))
                memcpy(k->out + st->dst.off, want + st->dst.off, st->len);
        }
    }
}

static void repair(const struct row *w, const struct sched_repair *how, uint64_t seed)
{
    struct sched_topo t = topo_of(w);
    uint8_t *in[INTERP_RANKS], *want[INTERP_RANKS];

    memset(&box, 0, sizeof(box));
    box.n = w->n, box.domain = domains, box.seed = seed;
    for (unsigned r = 0; r < w->n; r++) {
        struct sched_in i = in_of(w, &t, r);

        assert_int_equal(sched_init(&was[r], &i), 0);
        assert_int_equal(sched_repair(&box.r[r].s, &was[r], how), 0);
        in[r] = make_input(w, was[r].in_bytes, r);
        give_memory(w, &box.r[r], r, in[r]);
    }
    for (unsigned r = 0; r < w->n; r++) {
        want[r] = expected(w, in, was[r].out_bytes, r);
        give_results(&box.r[r], r, w->n, how, want[r]);
    }
    interp_run(&box);
    for (unsigned r = 0; r < w->n; r++) {
        if (memcmp(box.r[r].out, want[r], was[r].out_bytes))
            fail_msg("%s: rank %u is wrong", row_name(w), r);
        free(want[r]);
    }
    for (unsigned r = 0; r < w->n; r++) {
        take_memory(w, &box.r[r]);
        sched_free(&was[r]);
        free(in[r]);
    }
}

/* From the first message to the last, at any rank; an average is divided once. */
static void every_rank_gets_the_result(void **state)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE, COLL_BROADCAST};
    static const unsigned ranks[] = {2, 3, 5, 8};

    (void)state;
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (unsigned i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
            for (unsigned c = 0; c < 24; c++) {
                struct row w = {.kind = kinds[k],
                                .algo = ALGO_SHARP,
                                .n = ranks[i],
                                .root = (i + c) % ranks[i],
                                .count = 2000,
                                .type = DT_FP64,
                                .op = c % 3 ? OP_SUM : OP_AVG,
                                .in_place = c % 2,
                                .mtu = 256,
                                .shape = {.trees = 1 + c % 3}};
                struct sched_repair how = {.bare = false};

                assert_int_equal(run_row(&w, c, &box), 0); /* nothing fails */
                for (unsigned tree = 0; tree < 1 + c % 3; tree++) {
                    how.cut[tree].least = c * (tree + 1) % 7;
                    how.cut[tree].most = how.cut[tree].least + c * 3 % (5 + tree);
                    how.cut[tree].from = (c + tree) % ranks[i];
                }
                repair(&w, &how, c);
                how.cut[0] = (struct sched_cut){UINT64_MAX, UINT64_MAX, 0}; /* all have all of it */
                repair(&w, &how, c);
                how.cut[0] = (struct sched_cut){c % 2, UINT64_MAX, c % ranks[i]}; /* one has */
                repair(&w, &how, c);
            }
}

/* A message goes once along the chain where a rank has it, and once each way where none has. */
static void what_a_rank_has_is_not_reduced_again(void **state)
{
    const struct row w = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_SHARP,
                          .n = 4,
                          .count = 10 * AGG_MSG_BYTES(256) / 4,
                          .type = DT_INT32,
                          .mtu = 256,
                          .shape = {.trees = 1}};
    static const struct {
        struct sched_cut cut;
        uint64_t once, twice; /* messages */
    } rows[] = {{{0, 0, 0}, 0, 10},  {{3, 3, 0}, 0, 7},           {{3, 7, 2}, 4, 3},
                {{0, 10, 1}, 10, 0}, {{0, UINT64_MAX, 1}, 10, 0}, {{10, 10, 0}, 0, 0}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct sched_repair how = {.cut = {rows[i].cut}};
        uint64_t sent = 0;

        repair(&w, &how, i);
        for (unsigned r = 0; r < 4; r++)
            sent += box.r[r].sent;
        assert_int_equal(sent, 3 * (rows[i].once + 2 * rows[i].twice) * AGG_MSG_BYTES(256));
    }
}

/* The messages behind the first cut, of all trees before this one, and then its own. */
static void kept_messages_follow_each_other(void **state)
{
    const struct row w = {.kind = COLL_ALLREDUCE,
                          .algo = ALGO_SHARP,
                          .n = 2,
                          .count = 3 * 10 * AGG_MSG_BYTES(256) / 4,
                          .type = DT_INT32,
                          .mtu = 256,
                          .shape = {.trees = 3}};
    struct sched_repair how = {.cut = {{4, 4, 0}, {0, 0, 0}, {UINT64_MAX, UINT64_MAX, 0}}};
    struct sched_topo t = topo_of(&w);
    struct sched_in in = in_of(&w, &t, 0);
    struct sched s;

    (void)state;
    assert_int_equal(sched_init(&s, &in), 0);
    assert_int_equal(sched_repair_tmp(&s, &how, 0, 4), 0);
    assert_int_equal(sched_repair_tmp(&s, &how, 0, 9), 5 * AGG_MSG_BYTES(256));
    assert_int_equal(sched_repair_tmp(&s, &how, 1, 0), 6 * AGG_MSG_BYTES(256));
    assert_int_equal(sched_repair_tmp(&s, &how, 1, 3), 9 * AGG_MSG_BYTES(256));
    assert_int_equal(sched_repair_tmp(&s, &how, 2, 10), 16 * AGG_MSG_BYTES(256));
    assert_int_equal(sched_repair_tmp(&s, &how, ~0u, 0), 16 * AGG_MSG_BYTES(256));
    sched_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_the_result),
        cmocka_unit_test(what_a_rank_has_is_not_reduced_again),
        cmocka_unit_test(kept_messages_follow_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
