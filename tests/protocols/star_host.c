/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/protocols/star_state.h"
#include "aggregation/arith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sw *sw_of(const struct trib_switch *s)
{
    return (struct sw *)s;
}

static struct rank *rank_of(const struct trib_rank *r)
{
    return (struct rank *)r;
}

/* ---- services of a switch ---- */

static int job_of(struct sw *w, const struct trib_job *job)
{
    for (int j = 0; j < JOBS; j++)
        if (w->jobs[j] == job)
            return j;
    star_fault(w->h.star, "a job that has ended");
    return 0;
}

static struct trib_array *sw_array(struct trib_switch *s, struct trib_job *job, const char *name,
                                   uint32_t n, uint32_t bytes)
{
    struct sw *w = sw_of(s);
    struct trib_array *a;

    (void)name;
    if (!w->setting_up)
        star_fault(w->h.star, "array() outside of open and job_open");
    if (w->h.star->c.memory && w->used + (uint64_t)n * bytes > w->h.star->c.memory)
        return NULL;
    w->used += (uint64_t)n * bytes;
    a = calloc(1, sizeof(*a));
    *a = (struct trib_array){.n = n, .bytes = bytes, .job = job, .next = w->arrays};
    a->own = calloc(n, sizeof(*a->own));
    a->mem = calloc(n, bytes);
    a->scratch = calloc(1, bytes);
    w->arrays = a;
    return a;
}

static void *sw_at(struct trib_switch *s, struct trib_array *a, uint32_t i)
{
    if (i < a->n)
        return a->mem + (size_t)i * a->bytes;
    star_fault(sw_of(s)->h.star, "at() out of range");
    return a->scratch;
}

static void sw_take(struct trib_switch *s, struct trib_job *job, struct trib_array *a, uint32_t i)
{
    if (i >= a->n || a->own[i])
        star_fault(sw_of(s)->h.star, "take() of a slot that is taken");
    else
        a->own[i] = job;
}

static void sw_give(struct trib_switch *s, struct trib_job *job, struct trib_array *a, uint32_t i)
{
    if (i >= a->n || a->own[i] != job)
        star_fault(sw_of(s)->h.star, "give() of a slot that the job has not");
    else
        a->own[i] = NULL;
}

static void sw_to(struct sw *w, int j, int to, const void *head, uint32_t hb, const void *data,
                  uint32_t db)
{
    struct star *s = w->h.star;
    int self = (int)(w - s->sw);
    struct event e = star_packet(s, j, -1 - self, to, head, hb, data, db);

    e.at = self;
    star_onward(s, &e);
}

static void sw_send(struct trib_switch *s, struct trib_job *job, int to, const void *head,
                    uint32_t hb, const void *data, uint32_t db)
{
    struct sw *w = sw_of(s);
    int self = (int)(w - w->h.star->sw), j = job_of(w, job);
    unsigned first = 0;

    if (self != ROOT)
        star_ranks_below(w->h.star, j, self, &first);
    if (to == TRIB_PARENT && !job->root)
        sw_to(w, j, -1 - ROOT, head, hb, data, db);
    else if (to == TRIB_CHILDREN)
        for (unsigned c = 0; c < job->n_children; c++)
            sw_to(w, j, self == ROOT ? -1 - (int)c : (int)(first + c), head, hb, data, db);
    else if (TRIB_IS(to, TRIB_CHILD(0)) && TRIB_INDEX(to) < (int)job->n_children)
        sw_to(w, j, self == ROOT ? -1 - TRIB_INDEX(to) : (int)first + TRIB_INDEX(to), head, hb,
              data, db);
    else if (to >= 0 && to < (int)job->nranks)
        sw_to(w, j, to, head, hb, data, db);
    else
        star_fault(w->h.star, "send() to nobody");
}

static void sw_forward(struct trib_switch *s, struct trib_job *job, const void *head, uint32_t hb,
                       const void *data, uint32_t db)
{
    struct sw *w = sw_of(s);
    struct event *was = w->now, e;
    int j = job_of(w, job);

    if (!was || was->target < 0) {
        star_fault(w->h.star, "forward() of a packet that has no target");
        return;
    }
    e = star_packet(w->h.star, j, was->from, was->target, head ? head : was->head,
                    head ? hb : was->head_bytes, data ? data : was->data,
                    data ? db : was->data_bytes);
    e.at = (int)(w - w->h.star->sw);
    e.marked = was->marked;
    star_onward(w->h.star, &e);
}

static void combine(void *dst, const void *src, uint64_t n, enum trib_type type, enum trib_sum op)
{
    static const enum dtype t[] = {DT_INT8,   DT_UINT8, DT_INT32, DT_UINT32, DT_INT64,
                                   DT_UINT64, DT_FP16,  DT_FP32,  DT_FP64,   DT_BF16};
    static const enum redop o[] = {OP_SUM, OP_PROD, OP_MIN, OP_MAX};
    const void *in[2] = {dst, src};

    arith_kernel(o[op], t[type])(dst, in, 2, n);
}

static void sw_work(struct trib_switch *s, uint32_t bytes, uint32_t ops)
{
    struct sw *w = sw_of(s);
    const struct trib_switch_half *half = w->h.star->c.protocol->sw;

    w->bytes += bytes;
    w->ops += ops;
    if (w->bytes > half->max_bytes || w->ops > half->max_ops)
        star_fault(w->h.star, "more work than declared");
}

static void sw_reduce(struct trib_switch *s, void *dst, const void *src, uint32_t n,
                      enum trib_type type, enum trib_sum op)
{
    combine(dst, src, n, type, op);
    sw_work(s, 2 * n * trib_size(type), n);
}

static void sw_timer(struct trib_switch *s, int64_t at)
{
    struct sw *w = sw_of(s);

    w->h.timer_ps = at;
    if (at != TRIB_NEVER)
        star_add(w->h.star, (struct event){.at_ps = at, .what = TIMER, .sw = w});
}

static int64_t sw_now(const struct trib_switch *s)
{
    return sw_of(s)->h.star->now;
}

static void sw_count(struct trib_switch *s, unsigned c, uint64_t n)
{
    sw_of(s)->h.counter[c] += n;
}

static void sw_abort(struct trib_switch *s, struct trib_job *job, const char *why)
{
    (void)job;
    if (!sw_of(s)->h.star->why[0])
        snprintf(sw_of(s)->h.star->why, sizeof(sw_of(s)->h.star->why), "%s", why);
}

const struct trib_switch_api star_switch_api = {
    .array = sw_array,
    .at = sw_at,
    .take = sw_take,
    .give = sw_give,
    .send = sw_send,
    .forward = sw_forward,
    .reduce = sw_reduce,
    .work = sw_work,
    .timer = sw_timer,
    .now = sw_now,
    .count = sw_count,
    .abort = sw_abort,
};

/* ---- services of a rank ---- */

static bool rank_out(struct rank *r, int to, int target, const void *head, uint32_t hb,
                     const void *data, uint32_t db)
{
    struct star *s = r->h.star;
    struct event e;

    if (r->queued == s->c.buffers) {
        r->blocked = true;
        return false;
    }
    e = star_packet(s, (int)r->r.job, (int)r->r.rank, to, head, hb, data, db);
    e.target = target;
    star_hop(s, &e, &r->up, star_leaf(s, (int)r->r.job, r->r.rank));
    r->queued++;
    star_add(s, (struct event){.at_ps = r->up.free_ps, .what = SENT, .rank = r});
    return true;
}

static bool rk_send(struct trib_rank *r, int to, const void *head, uint32_t hb, const void *data,
                    uint32_t db)
{
    struct rank *k = rank_of(r);
    struct star *s = k->h.star;
    bool way = TRIB_IS(to, TRIB_SWITCH_OF(0));
    int leaf = star_leaf(s, (int)r->job, way ? (unsigned)TRIB_INDEX(to) % r->nranks : r->rank);

    if (way || to == TRIB_SWITCH)
        return rank_out(k, -1 - leaf, -1, head, hb, data, db);
    if (to < 0 || to >= (int)r->nranks || to == (int)r->rank) {
        star_fault(s, "send() to nobody");
        return true;
    }
    return rank_out(k, to, -1, head, hb, data, db);
}

static bool rk_through(struct trib_rank *r, unsigned target, const void *head, uint32_t hb,
                       const void *data, uint32_t db)
{
    if (target >= r->nranks)
        star_fault(rank_of(r)->h.star, "send_through() to nobody");
    return rank_out(rank_of(r), -1 - star_leaf(rank_of(r)->h.star, (int)r->job, r->rank),
                    (int)(target % r->nranks), head, hb, data, db);
}

static void rk_done(struct trib_rank *r)
{
    struct rank *k = rank_of(r);
    struct job *j = &k->h.star->job[r->job];

    if (!k->busy)
        star_fault(k->h.star, "done() of nothing");
    k->busy = false;
    j->left--;
    j->to_ps = k->h.star->now;
}

static void rk_fail(struct trib_rank *r, const char *why)
{
    struct star *s = rank_of(r)->h.star;

    if (!s->why[0])
        snprintf(s->why, sizeof(s->why), "%s", why);
}

static void rk_reduce(struct trib_rank *r, void *dst, const void *src, uint64_t n,
                      enum trib_type type, enum trib_sum op)
{
    (void)r;
    combine(dst, src, n, type, op);
}

static void rk_timer(struct trib_rank *r, int64_t at)
{
    struct rank *k = rank_of(r);

    k->h.timer_ps = at;
    if (at != TRIB_NEVER)
        star_add(k->h.star, (struct event){.at_ps = at, .what = TIMER, .rank = k});
}

static int64_t rk_now(const struct trib_rank *r)
{
    return rank_of(r)->h.star->now;
}

static void rk_count(struct trib_rank *r, unsigned c, uint64_t n)
{
    rank_of(r)->h.counter[c] += n;
}

const struct trib_rank_api star_rank_api = {
    .send = rk_send,
    .send_through = rk_through,
    .done = rk_done,
    .fail = rk_fail,
    .reduce = rk_reduce,
    .timer = rk_timer,
    .now = rk_now,
    .count = rk_count,
};
