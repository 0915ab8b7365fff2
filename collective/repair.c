/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finishes an in-network operation after the switches fail: message by message, along a chain of
 * the ranks. A result that some rank has is sent from there; one that no rank has is reduced again.
 * The chain reduces in one direction and returns results in the other, so both directions of the
 * links are used, and messages keep their bounds, so what each rank has of them stays valid.
 */
#include "base/assert.h"
#include "aggregation/proto.h"
#include "collective/alg.h"

struct chain {
    struct alg a;
    unsigned rank, n;
    const struct sched_repair *how;
};

static unsigned step_to(const struct chain *k, unsigned rank, int by)
{
    return (rank + k->n + (unsigned)by) % k->n;
}

/* Passes data from rank `first` to all others, from neighbour to neighbour. */
static void pass_on(struct chain *k, unsigned first, int by, struct ref at, uint64_t len)
{
    if (k->rank != first)
        alg_recv(&k->a, step_to(k, k->rank, -by), 0, at, len);
    if (step_to(k, k->rank, by) != first)
        alg_send(&k->a, step_to(k, k->rank, by), 0, at, len);
}

/* Reduces along the chain towards rank `last`: each rank reduces what it receives and `own` into
 * `acc`, the last one into `dst`. */
static void gather_up(struct chain *k, unsigned last, struct ref own, struct ref acc,
                      struct ref dst, uint64_t len, bool final)
{
    unsigned prev = step_to(k, k->rank, -1), next = step_to(k, k->rank, 1);
    bool first = prev == last;

    T_ASSERT(last < k->n && k->n > 1, "a chain ends at a rank that the job does not have");
    if (k->rank == last) {
        alg_recv_reduce(&k->a, prev, 0, dst, own, len, final);
        return;
    }
    if (!first)
        alg_recv_reduce(&k->a, prev, 0, acc, own, len, false);
    alg_send(&k->a, next, 0, first ? own : acc, len);
}

static void everybody_is_here(struct chain *k)
{
    for (unsigned round = 0; round < 2; round++) {
        struct dep d = {0};

        if (k->rank || round)
            d = alg_wait_signal(&k->a, step_to(k, k->rank, -1));
        if (round == 0 || k->rank + 1 < k->n)
            alg_signal(&k->a, step_to(k, k->rank, 1), &d, d.count != 0);
    }
}

static void op_recovery(struct chain *k, const struct step *st, bool known, unsigned from,
                        struct ref tmp)
{
    bool bare = k->how->bare, mine = k->rank == st->root;
    struct ref own = bare ? tmp : st->a, dst = bare ? tmp : st->dst;

    switch (st->agg) {
    case AGG_ALLREDUCE:
        if (known) {
            pass_on(k, from, 1, dst, st->len);
            return;
        }
        gather_up(k, k->n - 1, own, dst, dst, st->len, st->last);
        pass_on(k, k->n - 1, -1, dst, st->len);
        return;
    case AGG_REDUCE:
        gather_up(k, st->root, own, tmp, dst, st->len, st->last);
        return;
    case AGG_BROADCAST:
        pass_on(k, st->root, 1, mine ? own : dst, st->len);
        return;
    default:
        if (!known)
            everybody_is_here(k);
    }
}

uint64_t sched_repair_tmp(const struct sched *was, const struct sched_repair *how, unsigned tree,
                          uint64_t msg)
{
    uint64_t at = 0;

    for (unsigned l = 0; l < was->n_lanes; l++) {
        const struct lane *lane = &was->lane[l];
        const struct sched_cut *cut = &how->cut[lane->chan];

        if (lane->kind != LANE_AGG || lane->chan > tree)
            continue;
        at +=
            ((lane->chan == tree ? msg : lane->n) - (cut->least < lane->n ? cut->least : lane->n)) *
            AGG_MSG_BYTES(was->in.mtu);
    }
    return at;
}

int sched_repair(struct sched *s, const struct sched *was, const struct sched_repair *how)
{
    struct chain k = {.rank = was->in.rank, .n = was->in.nranks, .how = how};
    uint64_t tmp = sched_repair_tmp(was, how, ~0u, 0);
    int rc;

    *s = (struct sched){
        .in = was->in, .esize = was->esize, .in_bytes = was->in_bytes, .out_bytes = was->out_bytes};
    rc = alg_begin(&k.a, s);
    if (rc)
        return rc;
    alg_tmp(&k.a, tmp);
    for (unsigned l = 0; l < was->n_lanes && !how->bare; l++) {
        const struct lane *lane = &was->lane[l];

        for (uint64_t m = 0; lane->kind == LANE_CPU && m < lane->n; m++)
            alg_copy(&k.a, lane_step(lane, m)->dst, lane_step(lane, m)->a, lane_step(lane, m)->len,
                     false);
    }
    for (unsigned l = 0; l < was->n_lanes; l++) {
        const struct lane *lane = &was->lane[l];
        const struct sched_cut *cut = &how->cut[lane->chan];

        for (uint64_t m = cut->least; lane->kind == LANE_AGG && m < lane->n; m++)
            op_recovery(&k, lane_step(lane, m), m < cut->most, cut->from,
                        alg_ref(BUF_TMP, sched_repair_tmp(was, how, lane->chan, m)));
    }
    alg_end(&k.a);
    rc = s->rc;
    if (rc)
        sched_free(s);
    return rc;
}
