/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/alg.h"

#include "base/assert.h"
#include "collective/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COPY_MAX  (1ULL << 20) /* bytes copied in one step: other lanes run in between */
#define JOIN_CHAN 0x10000u     /* CPU lanes of joins, one for each lane that needs them */

/* BUF_IN and BUF_OUT are tracked as one space, because in place they are the same memory; BUF_TMP
 * as another. */
struct tracker {
    struct track *user, *tmp;
    uint64_t in_at, out_at;
    bool in_written; /* a step writes BUF_IN; otherwise no step waits for its readers */
    struct {
        uint32_t *reader; /* [slots] steps of the lane's CPU lane, the last of which read it */
    } * recv;
    unsigned n_recv;
};

int alg_begin(struct alg *a, struct sched *s)
{
    uint64_t own = s->in.rank * s->in.count * s->esize;
    struct tracker *t = calloc(1, sizeof(*t));

    memset(a, 0, sizeof(*a));
    a->s = s;
    a->t = t;
    if (!t)
        return -ENOMEM;
    t->in_written = s->in.in_place;
    if (!s->in.in_place)
        t->in_at = s->out_bytes;
    else if (s->in.kind == COLL_ALLGATHER || s->in.kind == COLL_GATHER)
        t->in_at = s->out_bytes ? own : 0;
    else if (s->in.kind == COLL_REDUCE_SCATTER || s->in.kind == COLL_SCATTER)
        t->out_at = s->in_bytes ? own : 0;
    t->user = track_new(s->in_bytes + s->out_bytes);
    return t->user ? 0 : -ENOMEM;
}

void alg_end(struct alg *a)
{
    if (!a->t)
        return;
    for (unsigned i = 0; i < a->t->n_recv; i++)
        free(a->t->recv[i].reader);
    free(a->t->recv);
    track_free(a->t->user);
    track_free(a->t->tmp);
    free(a->t);
}

void alg_tmp(struct alg *a, uint64_t bytes)
{
    T_ASSERT(!a->t->tmp, "temporary memory is laid out twice");
    a->s->tmp_bytes = bytes;
    a->t->tmp = track_new(bytes);
    if (!a->t->tmp)
        a->s->rc = -ENOMEM;
}

/* ---- dependencies ---- */

/* The tracker of these bytes; *at: their offset in it. NULL: they are not tracked. */
static struct track *space_of(const struct alg *a, struct ref r, uint64_t *at)
{
    const struct tracker *t = a->t;

    *at = r.off;
    switch (r.buf) {
    case BUF_IN:
        *at += t->in_at;
        return t->in_written ? t->user : NULL;
    case BUF_OUT:
        *at += t->out_at;
        return t->user;
    case BUF_TMP:
        return t->tmp;
    default:
        return NULL;
    }
}

struct asker {
    struct alg *a;
    struct step *st;
    unsigned lane;
};

/* Adds a dependency; if the step has no room for it, a join step collects several. */
static void wait_for(void *arg, struct dep d)
{
    struct asker *k = arg;
    struct step join = {.op = STEP_COPY};

    if (step_after(k->st, d))
        return;
    T_ASSERT(k->st->n_deps == SCHED_DEPS, "a step that has room refuses a dependency");
    memcpy(join.dep, k->st->dep, sizeof(join.dep));
    join.n_deps = k->st->n_deps;
    k->st->n_deps = 0;
    step_after(k->st,
               sched_add(k->a->s,
                         sched_lane(k->a->s, LANE_CPU, k->a->s->in.rank, JOIN_CHAN + k->lane),
                         &join));
    step_after(k->st, d);
}

static void track_ask_for(struct asker *k, struct ref r, bool write)
{
    uint64_t at;
    struct track *t = k->st->len ? space_of(k->a, r, &at) : NULL;

    if (t && track_ask(t, at, k->st->len, write, wait_for, k))
        k->a->s->rc = -ENOMEM;
}

static void note(struct alg *a, struct ref r, uint64_t len, bool write, struct dep d)
{
    uint64_t at;
    struct track *t = len ? space_of(a, r, &at) : NULL;

    if (t && track_note(t, at, len, write, d))
        a->s->rc = -ENOMEM;
}

static struct dep step_put(struct alg *a, unsigned lane, struct step *st, bool caused)
{
    struct asker k = {a, st, lane};
    struct dep d;

    if (a->s->rc)
        return (struct dep){0};
    track_ask_for(&k, st->a, false);
    track_ask_for(&k, st->b, false);
    if (!caused)
        track_ask_for(&k, st->dst, true);
    T_ASSERT_HOT(a->n_fence <= ALG_FENCES, "more fences than there is room for");
    for (unsigned i = 0; i < a->n_fence; i++)
        wait_for(&k, a->fence[i]);
    d = sched_add(a->s, lane, st);
    note(a, st->a, st->len, false, d);
    note(a, st->b, st->len, false, d);
    note(a, st->dst, st->len, true, d);
    return d;
}

struct dep alg_put(struct alg *a, enum lane_kind kind, unsigned peer, unsigned chan,
                   struct step *st)
{
    return step_put(a, sched_lane(a->s, kind, peer, chan), st, false);
}

/* ---- steps ---- */

void alg_send_after(struct alg *a, unsigned peer, unsigned chan, struct ref src, uint64_t len,
                    struct dep after)
{
    struct step st = {.op = STEP_SEND, .a = src, .len = len};

    if (!len)
        return;
    T_ASSERT(peer != a->s->in.rank, "a rank sends to itself");
    step_after(&st, after);
    step_put(a, sched_lane(a->s, LANE_SEND, peer, chan), &st, false);
}

void alg_send(struct alg *a, unsigned peer, unsigned chan, struct ref src, uint64_t len)
{
    alg_send_after(a, peer, chan, src, len, (struct dep){0});
}

void alg_recv(struct alg *a, unsigned peer, unsigned chan, struct ref dst, uint64_t len)
{
    struct step st = {.op = STEP_RECV, .dst = dst, .len = len};

    if (len)
        step_put(a, sched_lane(a->s, LANE_RECV, peer, chan), &st, false);
}

void alg_recv_caused(struct alg *a, unsigned peer, unsigned chan, struct ref dst, uint64_t len)
{
    struct step st = {.op = STEP_RECV, .dst = dst, .len = len};

    if (len)
        step_put(a, sched_lane(a->s, LANE_RECV, peer, chan), &st, true);
}

static uint32_t *slot_readers(struct alg *a, unsigned lane)
{
    struct tracker *t = a->t;

    if (lane >= t->n_recv) {
        unsigned n = 2 * lane + 16;
        void *p = realloc(t->recv, n * sizeof(*t->recv));

        if (!p)
            return NULL;
        t->recv = p;
        memset(&t->recv[t->n_recv], 0, (n - t->n_recv) * sizeof(*t->recv));
        t->n_recv = n;
    }
    if (!t->recv[lane].reader)
        t->recv[lane].reader = calloc(sched_slots(a->s->in.topo), sizeof(uint32_t));
    return t->recv[lane].reader;
}

static void dep_found(void *any, struct dep d)
{
    *(bool *)any |= d.count != 0;
}

/* Whether no step has used the bytes so far, and they are not part of BUF_IN. */
static bool is_fresh(struct alg *a, struct ref r, uint64_t len)
{
    bool any = a->s->in.in_place || r.buf != BUF_OUT;

    if (!any && track_ask(a->t->user, a->t->out_at + r.off, len, true, dep_found, &any))
        a->s->rc = -ENOMEM;
    return !any;
}

/* Receives the message directly into dst if dst has no content yet, which saves a buffer. */
void alg_recv_reduce(struct alg *a, unsigned peer, unsigned chan, struct ref dst, struct ref other,
                     uint64_t len, bool last)
{
    unsigned lane = sched_lane(a->s, LANE_RECV, peer, chan);
    unsigned cpu = sched_lane(a->s, LANE_CPU, peer, chan);
    struct step recv = {.op = STEP_RECV, .len = len}, st = {.op = STEP_REDUCE, .len = len};
    uint32_t *reader = slot_readers(a, lane);
    struct dep d;

    if (!reader)
        a->s->rc = -ENOMEM;
    if (a->s->rc || !len)
        return;
    T_ASSERT(peer != a->s->in.rank, "a rank receives from itself");
    d = (struct dep){.lane = lane, .count = a->s->lane[lane].n + 1};
    recv.dst = slot_of(d);
    reader += recv.dst.off % sched_slots(a->s->in.topo);
    step_after(&recv, (struct dep){.lane = cpu, .count = *reader});
    if (other.buf == BUF_IN && is_fresh(a, dst, len))
        recv.a = dst;
    d = step_put(a, lane, &recv, false);
    step_after(&st, d);
    st.a = recv.dst, st.b = other, st.dst = dst, st.last = last;
    *reader = step_put(a, cpu, &st, false).count;
}

void alg_copy(struct alg *a, struct ref dst, struct ref src, uint64_t len, bool last)
{
    for (uint64_t off = 0; off < len; off += COPY_MAX) {
        struct step st = {.op = STEP_COPY,
                          .a = alg_plus(src, off),
                          .dst = alg_plus(dst, off),
                          .len = len - off < COPY_MAX ? len - off : COPY_MAX,
                          .last = last};

        step_put(a, sched_lane(a->s, LANE_CPU, a->s->in.rank, 0), &st, false);
    }
}

void alg_reduce(struct alg *a, unsigned chan, struct ref dst, struct ref x, struct ref y,
                uint64_t len, bool last)
{
    struct step st = {.op = STEP_REDUCE, .a = x, .b = y, .dst = dst, .len = len, .last = last};

    if (len)
        step_put(a, sched_lane(a->s, LANE_CPU, a->s->in.rank, chan), &st, false);
}

struct dep alg_signal(struct alg *a, unsigned peer, const struct dep *after, unsigned n_after)
{
    struct step st = {.op = STEP_SEND};
    unsigned lane = sched_lane(a->s, LANE_SEND, peer, 0);
    struct asker k = {a, &st, lane};

    for (unsigned i = 0; i < n_after; i++)
        wait_for(&k, after[i]);
    return step_put(a, lane, &st, false);
}

struct dep alg_wait_signal(struct alg *a, unsigned peer)
{
    struct step st = {.op = STEP_RECV};

    return step_put(a, sched_lane(a->s, LANE_RECV, peer, 0), &st, true);
}

struct dep alg_join(struct alg *a, const struct dep *d, unsigned n)
{
    struct step st = {.op = STEP_COPY};
    unsigned lane = sched_lane(a->s, LANE_CPU, a->s->in.rank, JOIN_CHAN - 1);
    struct asker k = {a, &st, lane};

    for (unsigned i = 0; i < n; i++)
        wait_for(&k, d[i]);
    return step_put(a, lane, &st, false);
}

struct dep alg_so_far(struct alg *a, enum lane_kind kind, unsigned peer, unsigned chan)
{
    unsigned lane;

    /* Do not make the lane: one without steps would be a sender without a receiver. */
    if (a->s->rc || !sched_has_lane(a->s, kind, peer, chan, &lane))
        return (struct dep){0};
    return (struct dep){.lane = lane, .count = a->s->lane[lane].n};
}

/* ---- cutting ---- */

void alg_stripes(const struct alg *a, unsigned from, unsigned to, struct stripes *p)
{
    const struct sched_topo *t = a->s->in.topo;

    p->n = 0;
    if (t && t->channels)
        p->n = t->channels(t->ctx, from, to, p->weight, SCHED_MAX_CHANS);
    if (!p->n) {
        p->n = 1;
        p->weight[0] = 1;
    }
}

uint64_t alg_slice(const struct alg *a, uint64_t bytes, unsigned n)
{
    uint64_t mtu = a->s->in.mtu, slice = (bytes + n * mtu - 1) / (n * mtu) * mtu;

    T_ASSERT_HOT(slice % mtu == 0, "a slice of broken packets");
    return slice < mtu ? mtu : slice < SCHED_SLICE_MAX ? slice : SCHED_SLICE_MAX;
}

struct cut alg_cut(const struct alg *a, const struct stripes *p, uint64_t len, unsigned parts)
{
    struct cut c = {.n = p->n, .chan = p->n};

    T_ASSERT(p->n && p->n <= SCHED_MAX_CHANS, "a message is cut into no stripe, or too many");
    T_ASSERT(parts, "a stripe is cut into no part");
    for (unsigned i = 0; i < p->n; i++) {
        uint64_t off, bytes;

        sched_share(len, a->s->esize, p->weight, p->n, i, &off, &bytes);
        T_ASSERT_HOT(off == (i ? c.end[i - 1] : 0), "stripes overlap, or leave bytes out");
        c.start[i] = off;
        c.end[i] = off + bytes;
        c.slice[i] = alg_slice(a, bytes, parts);
    }
    return c;
}

bool alg_next(struct cut *c)
{
    for (unsigned tried = 0; tried < c->n; tried++) {
        c->chan = c->chan + 1 < c->n ? c->chan + 1 : 0;
        if (c->start[c->chan] < c->end[c->chan]) {
            c->off = c->start[c->chan];
            c->len = c->end[c->chan] - c->off;
            if (c->len > c->slice[c->chan])
                c->len = c->slice[c->chan];
            T_ASSERT_HOT(c->len, "an empty slice");
            c->start[c->chan] += c->len;
            c->k = c->count[c->chan]++;
            return true;
        }
    }
    return false;
}

void alg_send_all(struct alg *a, unsigned peer, struct ref src, uint64_t len)
{
    struct stripes p;

    alg_stripes(a, a->s->in.rank, peer, &p);
    for (struct cut c = alg_cut(a, &p, len, ALG_SLICES); alg_next(&c);)
        alg_send(a, peer, c.chan, alg_plus(src, c.off), c.len);
}

void alg_send_all_behind(struct alg *a, unsigned before, unsigned peer, struct ref src,
                         uint64_t len)
{
    struct stripes p, q;

    alg_stripes(a, a->s->in.rank, peer, &p);
    alg_stripes(a, a->s->in.rank, before, &q);
    for (struct cut c = alg_cut(a, &p, len, ALG_SLICES); alg_next(&c);) {
        struct dep d = {0};

        if (!c.k && p.n == q.n) /* both messages use planes, or both NICs */
            d = alg_so_far(a, LANE_SEND, before, c.chan);
        d.count = d.count < 2 * ALG_SLICES ? 0 : d.count - ALG_SLICES;
        alg_send_after(a, peer, c.chan, alg_plus(src, c.off), c.len, d);
    }
}

void alg_recv_all(struct alg *a, unsigned peer, struct ref dst, uint64_t len, bool caused)
{
    struct stripes p;

    alg_stripes(a, peer, a->s->in.rank, &p);
    for (struct cut c = alg_cut(a, &p, len, ALG_SLICES); alg_next(&c);)
        (caused ? alg_recv_caused : alg_recv)(a, peer, c.chan, alg_plus(dst, c.off), c.len);
}

void alg_recv_reduce_all(struct alg *a, unsigned peer, struct ref dst, struct ref other,
                         uint64_t len, bool last)
{
    struct stripes p;

    alg_stripes(a, peer, a->s->in.rank, &p);
    for (struct cut c = alg_cut(a, &p, len, ALG_SLICES); alg_next(&c);)
        alg_recv_reduce(a, peer, c.chan, alg_plus(dst, c.off), alg_plus(other, c.off), c.len, last);
}

void alg_block(const struct alg *a, const struct blocks *b, unsigned k, uint64_t *off,
               uint64_t *len)
{
    T_ASSERT_HOT(k < b->n && b->part <= b->each, "a block that its layout does not have");
    if (b->each) {
        *off = (b->at ? b->at[k] : k) * b->each;
        *len = b->part ? b->part : b->each;
    } else {
        sched_part(b->total, a->s->esize, b->n, k, off, len);
    }
}
