/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict of a round: rank 0 has the reports of all ranks. */
#include "host/coll/recovery/failover_priv.h"

#include <stdio.h>

/*
 * The smallest grants of all ranks. A tree can be dropped only if no rank may have begun to use it,
 * another tree is left, and the verdict reports no other failure; otherwise the trees have failed.
 */
static void judge_fit(const struct comm *c, struct failover_round *f, char *why)
{
    const struct failover_report *p = c->failover.report;
    uint32_t least = UINT32_MAX;
    bool dropped = false, left = false, alone = f->parts == PART_FIT;

    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        if (p[r].rail && (!f->rail || p[r].rail < f->rail))
            f->rail = p[r].rail;
        if (p[r].rail && p[r].rail < least && *p[r].why) {
            least = p[r].rail;
            snprintf(why, COMM_TEXT, "%s", p[r].why);
        }
    }
    for (unsigned k = 0; k < COLL_TREES; k++) {
        if (!(agg_in_use(c) >> k & 1))
            continue;
        f->fit[k] = UINT32_MAX;
        for (unsigned r = 0; r < c->cfg.nranks; r++) {
            f->fit[k] = p[r].fit[k] < f->fit[k] ? p[r].fit[k] : f->fit[k];
            if (p[r].fit[k] >= least || !*p[r].why)
                continue;
            least = p[r].fit[k];
            snprintf(why, COMM_TEXT, "%s", p[r].why);
        }
        dropped |= !f->fit[k];
        left |= f->fit[k] > 0;
    }
    if (dropped && (!left || !f->whole || f->seq || !alone))
        f->parts |= PART_TREES;
}

/* Where tree k is cut: after the messages that all ranks have. `from` is a rank that has the
 * most. */
static struct sched_cut judge_cut(const struct comm *c, const struct failover_round *f, unsigned k)
{
    const struct failover_report *p = c->failover.report;
    struct sched_cut cut = {.least = FAILOVER_ALL};

    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        uint64_t done = p[r].seq == f->seq ? p[r].done[k] : FAILOVER_ALL;

        cut.least = done < cut.least ? done : cut.least;
        if (done > cut.most || !r) {
            cut.most = done;
            cut.from = r;
        }
    }
    return cut;
}

/*
 * The trees that every rank has joined return, from the first operation on that no rank has begun.
 * Earlier operations keep the trees that they have.
 */
static void judge_back(const struct comm *c, struct failover_round *f)
{
    const struct failover_report *p = c->failover.report;

    f->seq = failover_floor(c);
    f->trees = c->failover.trees;
    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        uint32_t next = p[r].seq + (p[r].flag & BEGUN ? 1 : 0);

        if ((int32_t)(next - f->seq) > 0)
            f->seq = next;
    }
    for (unsigned k = 0; k < COLL_TREES; k++) {
        uint32_t least = UINT32_MAX;

        if (!(c->failover.back >> k & 1))
            continue;
        for (unsigned r = 0; r < c->cfg.nranks; r++)
            least = p[r].fit[k] < least ? p[r].fit[k] : least;
        f->fit[k] = least;
        f->trees |= least ? 1u << k : 0;
    }
}

void failover_judge(struct comm *c, struct failover_round *f)
{
    const struct failover_report *p = c->failover.report;

    *f = (struct failover_round){.parts = c->failover.parts,
                                 .trees = c->failover.lost ? c->failover.lost : c->failover.trees,
                                 .back = c->failover.back,
                                 .seq = p[0].seq,
                                 .whole = true};
    if (f->parts == PART_BACK) {
        judge_back(c, f);
        return;
    }
    f->parts &= ~PART_BACK; /* what has failed goes first */
    f->protocol = c->protocols ? c->protocols->failing : 0;
    f->fewer = protocols_go_on(c, f->parts, f->protocol);
    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        T_ASSERT(p[r].here, "rank 0 judges before every rank has reported");
        if ((int32_t)(p[r].seq - f->seq) < 0)
            f->seq = p[r].seq;
    }
    f->whole = !failover_is_cut(c, f->seq);
    for (unsigned r = 0; r < c->cfg.nranks; r++) {
        f->whole &= p[r].seq == f->seq && !(p[r].flag & BEGUN);
        f->again |= p[r].flag & (p[r].seq == f->seq ? ALONE : LAST);
    }
    for (unsigned k = 0; k < COLL_TREES; k++)
        f->how.cut[k] = judge_cut(c, f, k);
    if (f->parts & PART_FIT && !(f->parts & PART_TREES))
        judge_fit(c, f, c->failover.why);
}
