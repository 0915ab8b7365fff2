/* SPDX-License-Identifier: BSD-3-Clause */
/* What past rounds mean for an operation: the same at every rank, whenever it starts the
 * operation. */
#include "host/coll/comm.h"

/* An operation that is cut keeps its schedule; if it starts over later, then without any part that
 * has failed by then. */
unsigned failover_gone(const struct comm *c, uint32_t seq)
{
    unsigned parts = 0, anew = 0;

    for (unsigned i = 0; i < c->failover.n_rounds; i++)
        if (c->failover.round[i].again && c->failover.round[i].seq == seq)
            anew = i + 1;
    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        bool after = (int32_t)(seq - f->seq) >= 0;

        if (f->parts == PART_BACK)
            parts &= f->trees && after ? ~(unsigned)PART_TREES : ~0u;
        else if ((int32_t)(seq - f->seq) >= !(f->whole || i < anew))
            parts |= f->parts & ~f->fewer;
    }
    if (c->failover.back) /* none runs before the ranks know which of these return */
        parts &= ~PART_TREES;
    return parts & ~PART_FIT;
}

unsigned failover_trees(const struct comm *c, uint32_t seq)
{
    unsigned trees = c->failover.first;

    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        if (f->parts == PART_BACK && f->trees && (int32_t)(seq - f->seq) >= 0)
            trees = f->trees;
    }
    return trees;
}

uint32_t failover_floor(const struct comm *c)
{
    uint32_t floor = 0;
    bool any = false;

    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];
        uint32_t next = f->seq + !(f->whole || f->again); /* what is cut keeps its schedule */

        if (f->parts == PART_BACK)
            continue;
        if (!any || (int32_t)(next - floor) > 0)
            floor = next;
        any = true;
    }
    return floor;
}

bool failover_is_cut(const struct comm *c, uint32_t seq)
{
    bool cut = false;

    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        if (f->parts != PART_BACK && f->seq == seq && !f->whole)
            cut = !f->again;
    }
    return cut;
}

bool failover_was_cut(const struct comm *c, const struct failover_round *f)
{
    for (const struct failover_round *p = c->failover.round; p < f; p++)
        if (p->parts != PART_BACK && p->parts & f->parts && p->seq == f->seq && !p->whole &&
            !p->again)
            return true;
    return false;
}

unsigned comm_cut(const struct comm *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < c->failover.n_rounds; i++) {
        const struct failover_round *f = &c->failover.round[i];

        n += !(f->parts & (PART_BACK | PART_FIT)) && !f->whole && !failover_was_cut(c, f);
    }
    return n;
}
