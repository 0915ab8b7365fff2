/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU's lanes when buffers are in GPU memory. Steps that exec.c would execute at once are
 * queued on the GPU's streams, up to LANE_GPU steps of a lane at a time. Reductions read slots in
 * place, in pinned host memory. A stream executes in order: a step is done when its stream reaches
 * the count that it had when the step was queued.
 */
#include "collective/stage.h"
#include "host/coll/comm.h"

#include <errno.h>

static enum device_stream stream_of(const struct lane *l)
{
    return l->peer == STAGE_UP ? DEVICE_UP : l->peer == STAGE_DOWN ? DEVICE_DOWN : DEVICE_REDUCE;
}

/* The stage buffer that a reduction also writes its result to. NULL: there is none, or a send still
 * reads it. */
static void *piece_of(struct coll_req *r, const struct step *st, struct step **up)
{
    struct stage_hint h;

    if (!stage_hint(&r->s, st, &h) || r->lane[h.send].done < h.free_from)
        return NULL;
    *up = lane_step(&r->s.lane[h.up], h.step);
    return r->stage->mem.addr + h.off;
}

/* Queues a step: 0, -EAGAIN or -EIO. `self` on a copy: a reduction has done it. */
static int step_queue(struct comm *c, struct coll_req *r, const struct step *st,
                      enum device_stream s)
{
    const void *in[2] = {exec_addr(r, &st->a), NULL};
    void *dst = exec_addr(r, &st->dst);
    unsigned divide = st->last && r->id.op == OP_AVG ? c->cfg.nranks : 0;
    size_t count = st->len / r->s.esize;

    if (!count || (st->op == STEP_COPY && st->self))
        return 0;
    if (st->op == STEP_REDUCE) {
        struct step *up = NULL;
        void *piece = piece_of(r, st, &up);
        int rc;

        in[1] = exec_addr(r, &st->b);
        rc =
            device_reduce(c->cfg.device, s, r->id.op, r->id.type, divide, dst, piece, in, 2, count);
        if (!rc && up)
            up->self = true;
        return rc;
    }
    if (divide)
        return device_reduce(c->cfg.device, s, r->id.op, r->id.type, divide, dst, NULL, in, 1,
                             count);
    return dst == in[0] ? 0 : device_copy(c->cfg.device, s, dst, in[0], st->len);
}

static void steps_finish(struct comm *c, struct coll_req *r, unsigned lane, uint64_t over)
{
    const struct lane_run *run = &r->lane[lane];
    uint64_t done = r->lane[lane].done;

    for (; done < run->begun && r->given[lane * LANE_GPU + done % LANE_GPU] <= over; done++) {
        const struct step *st = lane_step(&r->s.lane[lane], done);

        exec_release(c, r, &st->a);
    }
    exec_done(c, r, lane, done);
}

static unsigned steps_begin(struct comm *c, struct coll_req *r, unsigned lane, int *rc)
{
    const struct lane *l = &r->s.lane[lane];
    struct lane_run *run = &r->lane[lane];
    unsigned did = 0;

    for (; run->begun < l->n && run->begun - r->lane[lane].done < LANE_GPU; did++) {
        const struct step *st = lane_step(l, run->begun);

        if (!exec_may_start(r, lane, WAIT_START, st))
            break;
        *rc = step_queue(c, r, st, stream_of(l));
        if (*rc)
            break;
        exec_posted(c, r, lane, run->begun);
        r->given[lane * LANE_GPU + run->begun++ % LANE_GPU] =
            device_given(c->cfg.device, stream_of(l));
    }
    return did;
}

unsigned gpu_run(struct comm *c, struct coll_req *r, unsigned lane)
{
    uint64_t over, before;
    unsigned did, total = 0;
    int rc = 0;

    do { /* steps that are done free the queue for others */
        before = r->lane[lane].done;
        did = steps_begin(c, r, lane, &rc);
        if (rc == -EIO || device_done(c->cfg.device, stream_of(&r->s.lane[lane]), &over)) {
            comm_fail(c, "rank %u (%s): %s", c->cfg.rank, comm_host(c, c->cfg.rank),
                      device_error(c->cfg.device));
            return total;
        }
        steps_finish(c, r, lane, over);
        total += did;
    } while (!rc && (did || r->lane[lane].done != before));
    if (r->lane[lane].begun > r->lane[lane].done || rc == -EAGAIN)
        exec_poll(c, lane);
    return total;
}
