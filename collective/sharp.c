/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the switches: the vector goes up once and comes down once (F25), cut as the aggregation
 * protocol says. The transport bounds the messages in flight. Several trees
 * carry shares in proportion to the rates of their links, so that all of them end at once.
 */
#include "aggregation/proto.h"
#include "collective/alg.h"

#include <errno.h>

static unsigned trees(const struct alg *a, unsigned group)
{
    const struct sched_topo *t = a->s->in.topo;

    return !t ? 0 : group == GROUP_RAIL ? t->rail_trees : t->trees;
}

static void agg_share(struct alg *a, unsigned group, unsigned tree, struct step st, uint64_t off,
                      uint64_t len)
{
    uint64_t msg = AGG_MSG_BYTES(a->s->in.mtu);
    struct ref src = st.a, dst = st.dst;

    st.total = len;
    for (uint64_t at = 0; at < len; at += msg) {
        st.off = at;
        st.len = len - at < msg ? len - at : msg;
        st.a = src.buf == BUF_NONE ? src : alg_plus(src, off + at);
        st.dst = dst.buf == BUF_NONE ? dst : alg_plus(dst, off + at);
        st.n_deps = 0;
        alg_put(a, LANE_AGG, group, tree, &st);
    }
}

void agg_vector(struct alg *a, unsigned group, unsigned coll, unsigned root, struct ref src,
                struct ref dst, uint64_t len, bool last)
{
    struct step st = {.op = STEP_AGG,
                      .agg = (uint8_t)coll,
                      .root = root,
                      .last = last && dst.buf != BUF_NONE,
                      .a = src,
                      .dst = dst};

    for (unsigned k = 0; k < trees(a, group); k++) {
        uint64_t off, bytes;

        if (group == GROUP_ALL)
            sched_share(len, a->s->esize, a->s->in.topo->tree_bps, trees(a, group), k, &off,
                        &bytes);
        else
            sched_part(len, a->s->esize, trees(a, group), k, &off, &bytes);
        agg_share(a, group, k, st, off, bytes);
    }
}

int alg_sharp_allreduce(struct alg *a)
{
    agg_vector(a, GROUP_ALL, AGG_ALLREDUCE, 0, alg_ref(BUF_IN, 0), alg_ref(BUF_OUT, 0),
               a->s->in_bytes, true);
    return trees(a, GROUP_ALL) ? 0 : -ENOTSUP;
}

int alg_sharp_reduce(struct alg *a)
{
    bool root = a->s->in.rank == a->s->in.root;

    agg_vector(a, GROUP_ALL, AGG_REDUCE, a->s->in.root, alg_ref(BUF_IN, 0),
               alg_ref(root ? BUF_OUT : BUF_NONE, 0), a->s->in_bytes, true);
    return trees(a, GROUP_ALL) ? 0 : -ENOTSUP;
}

int alg_sharp_broadcast(struct alg *a)
{
    bool root = a->s->in.rank == a->s->in.root;
    struct ref in = alg_ref(BUF_IN, 0), out = alg_ref(BUF_OUT, 0), none = {0};

    if (root && !a->s->in.in_place)
        alg_copy(a, out, in, a->s->out_bytes, false);
    agg_vector(a, GROUP_ALL, AGG_BROADCAST, a->s->in.root, root ? in : none, root ? none : out,
               a->s->out_bytes, false);
    return trees(a, GROUP_ALL) ? 0 : -ENOTSUP;
}

/* A broadcast of each rank's block in turn. */
int alg_sharp_allgather(struct alg *a)
{
    struct ref in = alg_ref(BUF_IN, 0), none = {0};
    uint64_t each = a->s->in_bytes;

    for (unsigned r = 0; r < a->s->in.nranks; r++) {
        bool own = r == a->s->in.rank;
        struct ref at = alg_ref(BUF_OUT, r * each);

        if (own && !a->s->in.in_place)
            alg_copy(a, at, in, each, false);
        agg_vector(a, GROUP_ALL, AGG_BROADCAST, r, own ? in : none, own ? none : at, each, false);
    }
    return trees(a, GROUP_ALL) ? 0 : -ENOTSUP;
}

/* A reduction of each rank's block in turn. */
int alg_sharp_reduce_scatter(struct alg *a)
{
    struct ref out = alg_ref(BUF_OUT, 0), none = {0};
    uint64_t each = a->s->out_bytes;

    for (unsigned r = 0; r < a->s->in.nranks; r++)
        agg_vector(a, GROUP_ALL, AGG_REDUCE, r, alg_ref(BUF_IN, r * each),
                   r == a->s->in.rank ? out : none, each, true);
    return trees(a, GROUP_ALL) ? 0 : -ENOTSUP;
}

int alg_sharp_barrier(struct alg *a)
{
    struct step st = {.op = STEP_AGG, .agg = AGG_BARRIER};
    unsigned tree = 0, n = trees(a, GROUP_ALL);

    if (!n)
        return -ENOTSUP;
    while (tree + 1 < n && !a->s->in.topo->tree_bps[tree] && a->s->in.topo->tree_bps[n - 1])
        tree++; /* skip trees that carry nothing */
    alg_put(a, LANE_AGG, GROUP_ALL, tree, &st);
    return 0;
}
