/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive halving and doubling (F22): log2 N exchanges each way with the bytes of the
 * ring. It is for powers of two; of other numbers the first 2r ranks (N = 2^p + r) work in pairs:
 * before the exchanges the even rank sends its data to the odd one, and after them it gets its
 * result, which costs the pair the vector once more each way.
 */
#include "base/assert.h"
#include "collective/alg.h"

struct halves {
    unsigned n, extra; /* exchanging ranks; number of pairs */
    unsigned me;       /* index among the exchanging ranks */
    bool idle, pair;   /* this rank is the even one, the odd one of a pair */
    bool per_rank;     /* blocks are the ranks' own, of `each` bytes; else n parts of `total` */
    uint64_t each, total;
};

static void halves_of(const struct alg *a, struct halves *h)
{
    unsigned rank = a->s->in.rank;

    *h = (struct halves){.n = 1};
    while (2 * h->n <= a->s->in.nranks)
        h->n *= 2;
    h->extra = a->s->in.nranks - h->n;
    h->pair = rank < 2 * h->extra;
    h->idle = h->pair && rank % 2 == 0;
    h->me = h->pair ? rank / 2 : rank - h->extra;
}

static unsigned rank_of(const struct halves *h, unsigned i)
{
    return i < h->extra ? 2 * i + 1 : i + h->extra;
}

/* Offset of the data of the exchanging ranks from i on. */
static uint64_t start_of(const struct alg *a, const struct halves *h, unsigned i)
{
    uint64_t off, len;

    if (h->per_rank)
        return (i < h->extra ? 2 * i : i + h->extra) * h->each;
    sched_part(h->total, a->s->esize, h->n, i < h->n ? i : h->n - 1, &off, &len);
    return i < h->n ? off : h->total;
}

/* Each exchange halves the part that a rank reduces. The last result goes to *final if given. */
static void halve(struct alg *a, const struct halves *h, struct ref in, struct ref work,
                  const struct ref *final)
{
    unsigned lo = 0, hi = h->n, before = rank_of(h, h->me ^ h->n / 2);

    for (unsigned d = h->n / 2; d; d /= 2) {
        unsigned mid = lo + d, peer = rank_of(h, h->me ^ d);
        bool upper = h->me & d;
        uint64_t l = start_of(a, h, lo), m = start_of(a, h, mid), u = start_of(a, h, hi);
        uint64_t keep = upper ? m : l, give = upper ? l : m;

        T_ASSERT(l <= m && m <= u && peer != a->s->in.rank, "halves out of order, or with oneself");
        alg_send_all_behind(a, before, peer, alg_plus(in, give), upper ? m - l : u - m);
        alg_recv_reduce_all(a, peer, d == 1 && final ? *final : alg_plus(work, keep),
                            alg_plus(in, keep), upper ? u - m : m - l, d == 1);
        in = work;
        before = peer;
        if (upper)
            lo = mid;
        else
            hi = mid;
    }
}

/* Each exchange doubles what a rank has. */
static void halves_double(struct alg *a, const struct halves *h, struct ref at, bool caused)
{
    unsigned before = rank_of(h, h->me ^ 1);

    for (unsigned d = 1; d < h->n; d *= 2) {
        unsigned lo = h->me & ~(d - 1), other = lo ^ d, peer = rank_of(h, h->me ^ d);
        uint64_t mine = start_of(a, h, lo), theirs = start_of(a, h, other);

        alg_send_all_behind(a, before, peer, alg_plus(at, mine), start_of(a, h, lo + d) - mine);
        alg_recv_all(a, peer, alg_plus(at, theirs), start_of(a, h, other + d) - theirs, caused);
        before = peer;
    }
}

int alg_halving_allreduce(struct alg *a)
{
    struct halves h;
    struct ref in = alg_ref(BUF_IN, 0), out = alg_ref(BUF_OUT, 0);
    unsigned rank = a->s->in.rank;
    uint64_t bytes = a->s->in_bytes;

    halves_of(a, &h);
    h.total = bytes;
    if (h.idle) {
        alg_send_all(a, rank + 1, in, bytes);
        alg_recv_all(a, rank + 1, out, bytes, true);
        return 0;
    }
    if (h.pair)
        alg_recv_reduce_all(a, rank - 1, out, in, bytes, false);
    halve(a, &h, h.pair ? out : in, out, NULL);
    halves_double(a, &h, out, true);
    if (h.pair)
        alg_send_all(a, rank - 1, out, bytes);
    return 0;
}

int alg_halving_reduce_scatter(struct alg *a)
{
    struct halves h;
    struct ref in = alg_ref(BUF_IN, 0), tmp = alg_ref(BUF_TMP, 0), out = alg_ref(BUF_OUT, 0);
    unsigned rank = a->s->in.rank;
    uint64_t each = a->s->out_bytes;

    halves_of(a, &h);
    h.each = each;
    h.per_rank = true;
    if (h.idle) {
        alg_send_all(a, rank + 1, in, a->s->in_bytes);
        alg_recv_all(a, rank + 1, out, each, true);
        return 0;
    }
    alg_tmp(a, a->s->in_bytes);
    if (h.pair)
        alg_recv_reduce_all(a, rank - 1, tmp, in, a->s->in_bytes, false);
    halve(a, &h, h.pair ? tmp : in, tmp, h.pair ? NULL : &out);
    if (h.pair) {
        alg_send_all(a, rank - 1, alg_plus(tmp, (rank - 1) * each), each);
        alg_copy(a, out, alg_plus(tmp, rank * each), each, false);
    }
    return 0;
}

/* The even rank of a pair has its own block: it gets what lies before and after it. */
int alg_halving_allgather(struct alg *a)
{
    struct halves h;
    struct ref in = alg_ref(BUF_IN, 0), out = alg_ref(BUF_OUT, 0);
    unsigned rank = a->s->in.rank;
    uint64_t each = a->s->in_bytes, before = (rank & ~1u) * each, after = before + each;

    halves_of(a, &h);
    h.each = each;
    h.per_rank = true;
    if (!a->s->in.in_place)
        alg_copy(a, alg_plus(out, rank * each), in, each, false);
    if (h.idle) {
        alg_send_all(a, rank + 1, in, each);
        alg_recv_all(a, rank + 1, out, before, false);
        alg_recv_all(a, rank + 1, alg_plus(out, after), a->s->out_bytes - after, false);
        return 0;
    }
    if (h.pair)
        alg_recv_all(a, rank - 1, alg_plus(out, before), each, false);
    halves_double(a, &h, out, false);
    if (h.pair) {
        alg_send_all(a, rank - 1, out, before);
        alg_send_all(a, rank - 1, alg_plus(out, after), a->s->out_bytes - after);
    }
    return 0;
}
