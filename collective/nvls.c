/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Within a node by its switches' multimem: a GPU reads the sum of its share from the switches
 * (STEP_MM_LOAD), and writes it through them to all members (STEP_MM_STORE). Shares are striped
 * over the planes in proportion to their links.
 *
 * F26: the switch sums the other members' data and the GPU adds its own, so every GPU sends B (N -
 * 1) / N and gets B / N back, then sends B / N and gets B (N - 1) / N. F27 (mm_self): its own data
 * cross the switch too, and (1 + 1 / N) B leave every GPU.
 *
 * The switches access members' memory without the members' doing. So there is a barrier before
 * (every member has begun the operation, and its buffers are valid) and one after (no member
 * accesses this memory any more).
 */
#include "base/assert.h"
#include "aggregation/mm_proto.h"
#include "collective/alg.h"

#include <errno.h>

/*
 * Number of loads before the first store: as many as the planes carry while a load goes to the
 * switch, on to the members and back, with a whole slice each way; and a quarter more, because
 * members that load at the same time wait for each other. All members load, so each gets its share.
 * Fewer loads would leave links idle all the time; more would leave them idle at the end, when only
 * stores remain. It is below MM_READS, the limit of loads in flight, so that stores do not wait
 * behind loads.
 */
static unsigned ahead_of(const struct alg *a, const struct stripes *p, unsigned members)
{
    unsigned widest = 0;
    uint64_t bytes, slice;

    for (unsigned i = 1; i < p->n; i++)
        widest = p->weight[i] > p->weight[widest] ? i : widest;
    slice = p->slice[widest];
    T_ASSERT(slice && members, "planes without a slice, or a team without members");
    bytes = p->weight[widest] / 8 / 1000000 * 4 * (uint64_t)a->s->in.topo->plane_ps / 1000000;
    bytes += 2 * slice;
    bytes = (bytes + bytes / 4) / (members * slice) + 1;
    return bytes >= MM_READS ? MM_READS - 1 : (unsigned)bytes;
}

int mm_planes(const struct alg *a, const struct team *t, struct stripes *p)
{
    const struct sched_topo *topo = a->s->in.topo;

    if (!topo || !topo->multimem || !topo->domain || t->n < 2)
        return -ENOTSUP;
    for (unsigned i = 1; i < t->n; i++)
        if (topo->domain[t->rank[i]] != topo->domain[t->rank[0]])
            return -ENOTSUP;
    alg_stripes(a, t->rank[0], t->rank[1], p);
    for (unsigned i = 0; i < p->n; i++)
        p->slice[i] = mm_slice(t->n, p->weight[i], topo->plane_ps);
    return 0;
}

void mm_barrier(struct alg *a, const struct team *t, const struct stripes *p)
{
    struct dep d[FAB_MAX_MEMBERS];
    unsigned n = 0;

    T_ASSERT(t->n > 1 && t->me < t->n && p->n <= SCHED_MAX_CHANS, "a barrier of nobody");
    for (unsigned c = 0; c < p->n; c++)
        d[n++] = alg_so_far(a, LANE_MM, 0, c);
    for (unsigned i = 1; i < t->n; i++)
        alg_signal(a, t->rank[(t->me + i) % t->n], d, n);
    for (unsigned i = 1; i < t->n; i++)
        d[i - 1] = alg_wait_signal(a, t->rank[(t->me + t->n - i) % t->n]);
    a->fence[0] = alg_join(a, d, t->n - 1);
    a->n_fence = 1;
}

/* Cuts into multiples of the switch's slice: shorter loads cost the switch as much as whole slices,
 * and of longer ones fewer are in flight. */
static struct cut mm_cut(const struct alg *a, const struct stripes *p, uint64_t len)
{
    struct cut c = alg_cut(a, p, len, 1);

    for (unsigned i = 0; i < p->n; i++)
        c.slice[i] = p->slice[i];
    return c;
}

static void load_one(struct alg *a, const struct cut *c, uint64_t off, uint64_t to, uint64_t tmp,
                     bool last)
{
    bool self = a->s->in.mm_self;
    struct ref out = alg_ref(BUF_OUT, to + c->off), others = alg_ref(BUF_TMP, tmp + c->off);
    struct step st = {.op = STEP_MM_LOAD,
                      .region = BUF_IN,
                      .self = self,
                      .last = self && last,
                      .dst = self ? out : others,
                      .off = off + c->off,
                      .len = c->len};

    alg_put(a, LANE_MM, 0, c->chan, &st);
    if (!self)
        alg_reduce(a, 1 + c->chan, out, others, alg_ref(BUF_IN, off + c->off), c->len, last);
}

static void store_one(struct alg *a, const struct cut *c, struct ref src, uint64_t off)
{
    struct step st = {.op = STEP_MM_STORE,
                      .region = BUF_OUT,
                      .self = a->s->in.mm_self,
                      .a = alg_plus(src, c->off),
                      .off = off + c->off,
                      .len = c->len};

    alg_put(a, LANE_MM, 0, c->chan, &st);
}

void mm_load_store(struct alg *a, const struct stripes *p, const struct mm_work *w)
{
    struct cut load = mm_cut(a, p, w->load), store = mm_cut(a, p, w->store);

    for (bool more = true; more;) {
        more = alg_next(&load);
        if (more)
            load_one(a, &load, w->from, w->to, w->tmp, w->last);
        if (alg_next(&store)) {
            store_one(a, &store, w->src, w->store_to);
            more = true;
        }
    }
}

/* Loads and stores of one plane are one lane, so a store does not wait right behind its own
 * load. */
static void load_and_store(struct alg *a, const struct stripes *p, unsigned ahead, uint64_t off,
                           uint64_t len)
{
    struct cut load = mm_cut(a, p, len), store = load;

    for (unsigned i = 0;; i++) {
        if (alg_next(&load))
            load_one(a, &load, off, off, 0, true);
        if (i < ahead * p->n)
            continue;
        if (!alg_next(&store))
            return;
        store_one(a, &store, alg_ref(BUF_OUT, off), off);
    }
}

struct nvls {
    struct nodes g;
    struct stripes p;
};

static int nvls_begin(struct alg *a, struct nvls *v)
{
    int rc = alg_everybody(a, &v->g);

    if (!rc)
        rc = mm_planes(a, &v->g.all, &v->p);
    if (!rc)
        mm_barrier(a, &v->g.all, &v->p);
    return rc;
}

int alg_nvls_allreduce(struct alg *a)
{
    struct nvls v;
    uint64_t off, len;
    int rc = nvls_begin(a, &v);

    if (!rc) {
        sched_part(a->s->in_bytes, a->s->esize, v.g.all.n, v.g.all.me, &off, &len);
        if (!a->s->in.mm_self)
            alg_tmp(a, len);
        load_and_store(a, &v.p, ahead_of(a, &v.p, v.g.all.n), off, len);
        mm_barrier(a, &v.g.all, &v.p);
    }
    alg_nodes_free(&v.g);
    return rc;
}

int alg_nvls_reduce_scatter(struct alg *a)
{
    struct nvls v;
    uint64_t each = a->s->out_bytes;
    int rc = nvls_begin(a, &v);

    if (!rc) {
        if (!a->s->in.mm_self)
            alg_tmp(a, each);
        mm_load_store(a, &v.p,
                      &(struct mm_work){.from = a->s->in.rank * each, .load = each, .last = true});
        mm_barrier(a, &v.g.all, &v.p);
    }
    alg_nodes_free(&v.g);
    return rc;
}

int alg_nvls_allgather(struct alg *a)
{
    struct nvls v;
    uint64_t each = a->s->in_bytes, at = a->s->in.rank * each;
    int rc = nvls_begin(a, &v);

    if (!rc) {
        if (!a->s->in.in_place)
            alg_copy(a, alg_ref(BUF_OUT, at), alg_ref(BUF_IN, 0), each, false);
        mm_load_store(a, &v.p,
                      &(struct mm_work){.src = alg_ref(BUF_IN, 0), .store_to = at, .store = each});
        mm_barrier(a, &v.g.all, &v.p);
    }
    alg_nodes_free(&v.g);
    return rc;
}
