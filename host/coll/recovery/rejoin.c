/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees of all ranks that return after they were given up.
 *
 * When a tree fails, a round of failover.c stops all trees: the operation under way is cut, and
 * switches hold messages of it on every tree. The ranks leave every tree. At once they join those
 * again whose failure no rank has seen, under the next attempt's number (agg_ctl.attempt), in a
 * round of PART_BACK for which operations wait. A tree that has failed, or that a switch refuses
 * again, is lost.
 *
 * Operations run on the trees that are left. At the start of an operation, at most once in
 * REJOIN_PS of fabric time, a rank asks for its lost trees again. A rank that is granted some tells
 * rank 0 (READY), which begins a round of PART_BACK for the trees that every rank has. All ranks
 * use them from the operation of its verdict on, which no rank has begun.
 */
#include "host/coll/recovery/failover_priv.h"

#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define REJOIN_PS (1 * PS_PER_MS)
/* How long ranks wait for the answer to a JOIN in a round: a switch answers, or has lost its
 * links. */
#define ANSWER_NS (2 * RETRY_NS)
/* Rounds that are left for failures. */
#define ROUNDS_KEPT (4 * PARTS)

static int64_t fabric_now(const struct comm *c)
{
    struct timespec t;

    if (c->cfg.now_ps)
        return c->cfg.now_ps(c->cfg.now_ctx);
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * PS_PER_S + t.tv_nsec * PS_PER_NS;
}

bool comm_lacks_trees(const struct comm *c, enum coll_algo a)
{
    if (coll_is_protocol(a))
        return c->protocols && c->protocols->lost[a - ALGO_PROTOCOL];
    return a == ALGO_SHARP && c->failover.missing;
}

static bool may_return(const struct comm *c)
{
    return c->failover.n_rounds + ROUNDS_KEPT < FAILOVER_ROUNDS;
}

/* Trees that this rank has joined again. */
static unsigned trees_granted(const struct comm *c)
{
    unsigned trees = 0;

    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].lost && c->agg[i].state == JOIN_GRANTED)
            trees |= agg_bit(&c->agg[i]);
    return trees;
}

/* Before the first operation ranks may still wait for answers to their first JOINs. */
unsigned rejoin_survivors(const struct comm *c, const struct failover_round *f)
{
    if (!(f->parts & PART_TREES) || (f->whole && !f->seq) || !may_return(c))
        return 0;
    return c->failover.trees & ~f->trees;
}

void rejoin_give_up(struct comm *c, const struct failover_round *f)
{
    if (!(f->parts & PART_TREES))
        return;
    c->failover.back = rejoin_survivors(c, f);
    c->failover.trees = 0;
    c->failover.look_ps = fabric_now(c) + REJOIN_PS;
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].kind == GROUP_ALL && !c->agg[i].out) {
            c->agg[i].next += !c->agg[i].lost;
            c->agg[i].lost = c->failover.missing = true;
            c->agg[i].wanted = false;
        }
}

/* Joins a lost tree, at once or when its last group has been left. */
static void tree_join(struct comm *c, struct agg *a)
{
    if (a->state == JOIN_LEAVING)
        a->wanted = true;
    else if (a->state != JOIN_ASKED && a->state != JOIN_GRANTED)
        join_again(c, a);
}

void rejoin_start(struct comm *c)
{
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].lost && agg_bit(&c->agg[i]) & c->failover.back)
            tree_join(c, &c->agg[i]);
}

bool rejoin_known(const struct comm *c)
{
    if (c->now_ns - c->failover.since_ns > ANSWER_NS)
        return true;
    for (unsigned i = 0; i < c->n_aggs; i++) {
        const struct agg *a = &c->agg[i];

        if (a->lost && agg_bit(a) & c->failover.back && (a->wanted || a->state == JOIN_ASKED))
            return false;
    }
    return true;
}

/* Rank 0: begins a round for the trees that every rank has joined. */
static void begin_if_all(struct comm *c)
{
    unsigned trees = trees_granted(c);

    for (unsigned r = 1; r < c->cfg.nranks; r++)
        trees &= c->failover.report[r].ready;
    if (!trees || !may_return(c) || c->failover.state == FAILOVER_ASKING)
        return;
    c->failover.back = trees;
    failover_begin(c, PART_BACK, "%s", c->failover.why);
}

void rejoin_ready(struct comm *c, unsigned rank, unsigned trees)
{
    if (c->failover.state == FAILOVER_ASKING || !c->failover.report)
        return;
    c->failover.report[rank].ready = (uint8_t)trees;
    begin_if_all(c);
}

static void ready_tell(struct comm *c)
{
    if (c->failover.state == FAILOVER_ASKING || c->state != COMM_READY || c->closing)
        return;
    if (c->cfg.rank)
        failover_send_ready(c, trees_granted(c));
    else if (c->failover.report)
        begin_if_all(c);
}

void rejoin_answered(struct comm *c)
{
    if (c->failover.state == FAILOVER_ASKING)
        failover_fit_known(c);
    else if (trees_granted(c))
        ready_tell(c);
}

void rejoin_left(struct comm *c, struct agg *a)
{
    if (!a->lost || c->closing || a->state != JOIN_LEFT)
        return;
    if (a->wanted)
        join_again(c, a);
    rejoin_answered(c);
}

void rejoin_look(struct comm *c)
{
    int64_t now;

    if (c->failover.state == FAILOVER_ASKING || c->closing || !may_return(c))
        return;
    now = fabric_now(c);
    if (now < c->failover.look_ps)
        return;
    c->failover.look_ps = now + REJOIN_PS;
    for (unsigned i = 0; i < c->n_aggs; i++)
        if (c->agg[i].lost)
            tree_join(c, &c->agg[i]);
    if (trees_granted(c))
        ready_tell(c);
}

/* "; 2 of 4 trees from operation 7 on" */
static void text_append(struct comm *c, const struct failover_round *f)
{
    size_t len = strlen(c->failover.text);
    unsigned n = (unsigned)__builtin_popcount(f->trees);

    snprintf(c->failover.text + len, sizeof(c->failover.text) - len,
             "; %u of %d trees from operation %u on", n, __builtin_popcount(c->failover.first),
             f->seq + 1);
}

/* Fails the trees that a switch has aborted since this rank reported that they are granted. */
static void check_granted(struct comm *c, unsigned back)
{
    for (unsigned i = 0; i < c->n_aggs; i++) {
        const struct agg *a = &c->agg[i];

        if (!a->lost && agg_bit(a) & back && a->state != JOIN_GRANTED)
            agg_fails(c, a);
    }
}

int rejoin_apply(struct comm *c, const struct failover_round *f, char *err)
{
    const unsigned back = c->failover.back;

    c->failover.back = 0;
    c->failover.missing = false;
    for (unsigned i = 0; i < c->n_aggs; i++) {
        struct agg *a = &c->agg[i];

        if (!a->lost)
            continue;
        if (f->trees & agg_bit(a)) {
            a->lost = false;
            a->window = f->fit[a->chan] < a->window ? f->fit[a->chan] : a->window;
        } else {
            c->failover.missing = true;
            if (back & agg_bit(a))
                join_leave_one(c, a);
        }
    }
    c->failover.trees = f->trees;
    if (f->trees) {
        c->failover.stopped &= ~PART_TREES;
        text_append(c, f);
    } else if (!policy_goes_on(c, c->failover.stopped)) {
        snprintf(err, COMM_TEXT, "no other tree is left");
        return -ENOTSUP;
    }
    check_granted(c, back & f->trees);
    return op_replan(c, err);
}
