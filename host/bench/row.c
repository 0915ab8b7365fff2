/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/bench/row.h"

#include "collective/file/sched_file.h"
#include "host/bench/perf_options.h"
#include "host/bench/verify/layout.h"

struct coll_args row_args(const struct row *r)
{
    return (struct coll_args){.kind = r->coll,
                              .algo = r->algo,
                              .count = r->count,
                              .type = r->type,
                              .op = r->op,
                              .root = r->root,
                              .sparse = r->sparse,
                              .mm_self = r->mm_self,
                              .file = r->file};
}

enum coll_algo row_asked(const struct row *r)
{
    return r->chosen ? ALGO_AUTO : r->algo;
}

const char *row_algo_name(const struct row *r)
{
    return r->algo == ALGO_SCHEDULE && r->file ? r->file->name : perf_algo_name(r->algo);
}

const char *row_asked_name(const struct row *r)
{
    return r->chosen ? perf_algo_name(ALGO_AUTO) : row_algo_name(r);
}

bool row_can_be_in_place(const struct row *r)
{
    return coll_can_be_in_place(r->coll) && !(r->file && !r->file->place[IN_PLACE]);
}

const char *row_type(const struct row *r)
{
    return r->coll == COLL_BARRIER ? "none" : dtype_name(r->type);
}

const char *row_op(const struct row *r)
{
    return coll_reduces(r->coll) ? redop_name(r->op) : "none";
}

int row_root(const struct row *r)
{
    return coll_rooted(r->coll) ? (int)r->root : -1;
}

double row_ulp_mean(const struct row *r)
{
    return r->ulp.n ? r->ulp.sum / (double)r->ulp.n : 0;
}

double row_algbw(const struct row *r, double time_us)
{
    return time_us > 0 ? (double)r->bytes / time_us * 1e-3 : 0;
}

/* Bytes that the busiest rank must send or receive, relative to the size: for an all-reduce those
 * on each link of a ring; for collectives on blocks all blocks but its own. */
static double bus_factor(const struct row *r)
{
    double blocks = layout_blocks(r->coll, r->nranks, r->sparse);

    if (r->coll == COLL_ALLREDUCE)
        return row_asymptote(r->nranks);
    return layout_blocks(r->coll, 2, 0) == 1 ? 1 : (blocks - 1) / blocks;
}

double row_busbw(const struct row *r, double time_us)
{
    return row_algbw(r, time_us) * bus_factor(r);
}

/* Operations of a run; 1: none has run. */
static unsigned iters_of(const struct row *r)
{
    for (int p = 0; p < PLACES; p++)
        if (r->run[p].valid && r->run[p].iters)
            return r->run[p].iters;
    return 1;
}

double row_predicted_us(const struct row *r)
{
    const struct coll_prediction *p = &r->pred;
    double n = iters_of(r), all = (double)p->time_ps;

    if (p->time_ps <= 1 || p->guessed)
        return 0;
    if (p->next_ps)
        all = (all + (n - 1) * (double)p->next_ps) / n;
    return all * 1e-6;
}

static struct link_use predicted_link(const struct row *r)
{
    return (struct link_use){.bytes = r->pred.busiest_link_bytes, .rate_bps = r->link_bps};
}

double row_predicted_utilisation(const struct row *r)
{
    struct link_use u = predicted_link(r);

    return link_use_share(&u, 1, row_predicted_us(r));
}

double row_link_ratio(const struct row *r, const struct run_result *run)
{
    struct link_use u = predicted_link(r);
    double model_us = link_use_share(&u, 1, 1);

    if (!run->valid || !run->link.known || !(model_us > 0))
        return 0;
    return link_use_share(&run->link, run->iters, 1) / model_us;
}

double row_asymptote(unsigned nranks)
{
    return 2.0 * (nranks - 1) / nranks;
}

bool row_is_rough(const struct row *r)
{
    return row_predicted_us(r) > 0 && r->pred.within_percent > 5;
}

bool row_is_beyond(const struct row *r)
{
    return r->until && r->bytes > r->until;
}
