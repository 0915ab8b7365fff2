/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs operations of the first job in slices, as a simulation without faults does: the nodes of the
 * fabric run apart, each at its own time. Every sum must be exact. Assertions of the net, and
 * retransmissions, show frames that reach a node too late.
 */
#include "sim/chaos/chaos_priv.h"

#include "collective/sched.h"

#include <string.h>

#define MOST 2048u /* elements */
#define OPS  2u    /* back to back, so that some ranks are ahead of others */

struct slices {
    struct job *j;
    unsigned n;
    struct coll_args a;
};

static uint32_t value(unsigned rank, size_t i)
{
    return (uint32_t)(i * 2654435761u) ^ rank * 0x01000193u;
}

static void slices_args(void *ctx, unsigned rank, struct coll_args *a)
{
    const struct slices *s = ctx;

    *a = s->a;
    a->send = job_buffer(s->j, rank, 0);
    a->recv = job_buffer(s->j, rank, 1);
}

/* Chooses an algorithm that the communicator supports: tries all, from a random one on. */
static bool slices_choose(struct slices *s, const struct chaos_job *j, uint64_t *random)
{
    unsigned first = (unsigned)(random_next(random) % ALGO_USUAL);

    s->a = (struct coll_args){.kind = COLL_ALLREDUCE,
                              .count = 1 + random_next(random) % MOST,
                              .type = DT_UINT32,
                              .op = OP_SUM};
    for (unsigned i = 0; i < ALGO_USUAL; i++) {
        s->a.algo = (enum coll_algo)((first + i) % ALGO_USUAL);
        if (j->algos >> s->a.algo & 1 && comm_supports(job_comm(s->j, 0), &s->a))
            return true;
    }
    return false;
}

static void slices_fill(struct slices *s)
{
    for (unsigned r = 0; r < s->n; r++) {
        uint32_t *in = job_buffer(s->j, r, 0);

        for (size_t i = 0; i < s->a.count; i++)
            in[i] = value(r, i);
        memset(job_buffer(s->j, r, 1), 0xee, s->a.count * sizeof(*in));
    }
}

static uint64_t count_wrong(struct slices *s)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < s->a.count; i++) {
        uint32_t sum = 0;

        for (unsigned r = 0; r < s->n; r++)
            sum += value(r, i);
        for (unsigned r = 0; r < s->n; r++)
            wrong += ((uint32_t *)job_buffer(s->j, r, 1))[i] != sum;
    }
    return wrong;
}

void chaos_run_slices(struct chaos_case *k, struct job *j)
{
    struct slices s = {.j = j, .n = k->job[0].nranks};
    struct job_loop l = {.n = OPS, .args = slices_args, .ctx = &s, .limit_ps = PS_PER_S};
    uint64_t random = k->slices;

    if (!slices_choose(&s, &k->job[0], &random))
        return;
    if (job_buffers(j, MOST * sizeof(uint32_t))) {
        chaos_wrong(k, "by slices: no memory for its buffers");
        return;
    }
    slices_fill(&s);
    if (job_loop_run(j, &l))
        chaos_wrong(k, "by slices, %s x%zu: %.300s", sched_algo_name(s.a.algo), s.a.count, l.text);
    else if (count_wrong(&s))
        chaos_wrong(k, "by slices, %s x%zu: elements are wrong", sched_algo_name(s.a.algo),
                    s.a.count);
}
