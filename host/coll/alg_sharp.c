/*
 * All-reduce in the switches: the vector goes up once and comes down once (figures.md F25). Cut as
 * the aggregation protocol says; message k of the operation is step k. How many are under way at a
 * time is the transport's business (agg.c).
 */
#include "host/coll/sched.h"
#include "switch/reduce/proto.h"

static void make_sharp(const struct sched *s, enum lane l, uint64_t i, struct step *st)
{
    uint64_t msg = AGG_MSG_BYTES(s->in.mtu);

    (void)l;
    st->op = STEP_AGGREGATE;
    st->buf = BUF_OUT;
    st->last = true;
    st->off = i * msg;
    st->len = s->bytes - st->off < msg ? s->bytes - st->off : msg;
}

void alg_sharp_allreduce(struct sched *s)
{
    uint64_t msg = AGG_MSG_BYTES(s->in.mtu);

    s->n[LANE_AGG] = (s->bytes + msg - 1) / msg;
    s->make = make_sharp;
}
