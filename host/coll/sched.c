#include "host/coll/sched.h"

#include <errno.h>
#include <string.h>

void sched_step(const struct sched *s, enum lane l, uint64_t i, struct step *st)
{
    memset(st, 0, sizeof(*st));
    s->make(s, l, i, st);
}

bool sched_ready(const struct step *st, const uint64_t done[LANES])
{
    for (unsigned l = 0; l < LANES; l++)
        if (done[l] < st->need[l])
            return false;
    return true;
}

/* One rank alone: its input is the result. */
static void make_copy(const struct sched *s, enum lane l, uint64_t i, struct step *st)
{
    (void)l, (void)i;
    st->op = STEP_COPY;
    st->buf = BUF_IN;
    st->len = s->bytes;
}

static void (*const algorithms[COLL_KINDS][ALGO_COUNT])(struct sched *) = {
    [COLL_ALLREDUCE] = {[ALGO_RING] = alg_ring_allreduce, [ALGO_SHARP] = alg_sharp_allreduce},
};

int sched_init(struct sched *s, const struct sched_in *in)
{
    memset(s, 0, sizeof(*s));
    if ((unsigned)in->kind >= COLL_KINDS || (unsigned)in->algo >= ALGO_COUNT ||
        (unsigned)in->type >= DT_COUNT || in->rank >= in->nranks || in->mtu < 256 ||
        in->mtu > 4096 || (in->mtu & (in->mtu - 1)))
        return -EINVAL;
    if (!algorithms[in->kind][in->algo])
        return -ENOTSUP;
    s->in = *in;
    s->esize = dtype_size(in->type);
    if (in->count > SCHED_MAX_BYTES / s->esize)
        return -E2BIG;
    s->bytes = in->count * s->esize;
    s->make = make_copy;
    if (!s->bytes)
        return 0;
    if (in->nranks == 1)
        s->n[LANE_CPU] = !in->in_place;
    else
        algorithms[in->kind][in->algo](s);
    return 0;
}
