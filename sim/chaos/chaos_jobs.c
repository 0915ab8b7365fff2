/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other jobs of a case, which run beside the first one or after it. They collide with it on
 * purpose: they use its group's id with another key, take a switch's last groups and slots, or,
 * after its end, reuse its group's id and key. A launcher ends some of them in the middle of an
 * operation, so that switches abort their groups and other jobs get the slots.
 */
#include "sim/chaos/chaos_priv.h"

#define OTHERS_RANKS 4u

bool chaos_place(struct chaos_case *k, struct chaos_job *j)
{
    for (unsigned r = 0; r < j->nranks; r++) {
        unsigned on_host = 1;

        if (j->shares) {
            T_ASSERT(j->process[r] < k->job[0].nranks, "a rank shares a process that is not there");
            j->host_of_rank[r] = k->host_of_proc[j->process[r]];
            continue;
        }
        for (unsigned p = 0; p < k->nprocs; p++)
            on_host += k->host_of_proc[p] == j->host_of_rank[r];
        if (on_host > k->fab->slots_per_host || k->nprocs == CHAOS_PROCESSES)
            return false;
        k->host_of_proc[k->nprocs] = j->host_of_rank[r];
        j->process[r] = k->nprocs++;
    }
    return true;
}

/* Chooses n of 0 .. of - 1, in order; every choice is equally likely. */
static void chaos_jobs_choose(struct chaos_case *k, unsigned n, unsigned of, unsigned *out)
{
    for (unsigned i = 0, have = 0; have < n; i++)
        if (below(k, DRAW_JOBS, of - i) < n - have)
            out[have++] = i;
}

/* Places one process per host: a process of the first job, or one of its own. */
static void chaos_jobs_place(struct chaos_case *k, struct chaos_job *j)
{
    const struct chaos_job *first = &k->job[0];
    unsigned of = 0, candidate[CHAOS_RANKS], chosen[OTHERS_RANKS];

    j->shares = below(k, DRAW_JOBS, 2);
    for (unsigned r = 0; j->shares && r < first->nranks; r++)
        if (!r || first->host_of_rank[r] != first->host_of_rank[r - 1])
            candidate[of++] = r;
    for (unsigned h = 0; !j->shares && h < k->fab->n_hosts && h < CHAOS_RANKS; h++)
        candidate[of++] = h;
    if (of < 2)
        return;
    j->nranks = 2 + (unsigned)below(k, DRAW_JOBS, RTE_MIN(of, OTHERS_RANKS) - 1);
    chaos_jobs_choose(k, j->nranks, of, chosen);
    for (unsigned r = 0; r < j->nranks; r++) {
        if (j->shares)
            j->process[r] = candidate[chosen[r]];
        else
            j->host_of_rank[r] = (uint16_t)candidate[chosen[r]];
    }
}

/* A job whose group another one may collide with. Jobs that their launcher ends are preferred,
 * because switches remember their groups longest. */
static const struct chaos_job *somebody(struct chaos_case *k)
{
    for (unsigned i = 1; i < k->n_jobs && below(k, DRAW_JOBS, 4); i++)
        if (k->job[i].stops_ps)
            return &k->job[i];
    return &k->job[below(k, DRAW_JOBS, k->n_jobs)];
}

static void choose_group(struct chaos_case *k, struct chaos_job *j)
{
    const struct chaos_job *first = &k->job[0], *other = somebody(k);

    j->tree = first->tree;
    j->n_trees = first->n_trees;
    j->window = below(k, DRAW_JOBS, 2) ? 0 : 8u << below(k, DRAW_JOBS, 6);
    j->key = random_next(&k->rng[DRAW_JOBS]);
    j->group = other->group;
    if (below(k, DRAW_JOBS, 6) >= (j->start == START_AFTER ? 4 : 1))
        j->group += (uint32_t)(k->n_jobs + below(k, DRAW_JOBS, 4));
    else if (j->start == START_AFTER && !below(k, DRAW_JOBS, 3))
        j->key = other->key;
}

/* Chooses among the ring and the switches' algorithms of the first job. Most jobs that their
 * launcher ends use only SHARP, so that an abort ends a group. */
static void choose_algos(struct chaos_case *k, struct chaos_job *j)
{
    static const enum coll_algo some[] = {ALGO_SHARP, ALGO_NVLS, ALGO_RING};

    if (k->cfg->algo) {
        if (chaos_can(k, j, (enum coll_algo)k->cfg->algo))
            j->algos = k->job[0].algos;
        chaos_protocol_policy(k, j, DRAW_JOBS);
        return;
    }
    for (unsigned i = 0; i < RTE_DIM(some); i++)
        if (k->job[0].algos >> some[i] & 1 && chaos_can(k, j, some[i]))
            j->algos |= 1u << some[i];
    j->goes_on = true;
    if (!(j->algos >> ALGO_SHARP & 1) || !below(k, DRAW_JOBS, 3))
        return;
    if (j->stops_ps && below(k, DRAW_JOBS, 3))
        j->algos = 1u << ALGO_SHARP;
    j->policy[j->n_policy++] = ALGO_SHARP;
    if (below(k, DRAW_JOBS, 2) && j->algos >> ALGO_RING & 1)
        j->policy[j->n_policy++] = ALGO_RING;
    else
        j->goes_on = false;
}

static void add_job(struct chaos_case *k, enum chaos_start start)
{
    struct chaos_job *j = &k->job[k->n_jobs];

    *j = (struct chaos_job){.start = start};
    chaos_jobs_place(k, j);
    if (j->nranks < 2 || !chaos_place(k, j))
        return;
    if (start != START_AFTER && !below(k, DRAW_JOBS, 2)) {
        j->stops_ps = (int64_t)(1 + below(k, DRAW_JOBS, 1000)) * PS_PER_NS;
        j->stops_ps <<= below(k, DRAW_JOBS, 5);
    }
    choose_group(k, j);
    choose_algos(k, j);
    j->ops = 1 + (unsigned)below(k, DRAW_JOBS, 2);
    k->n_jobs += j->algos != 0;
}

/* A fifth of all cases have other jobs. */
void chaos_draw_jobs(struct chaos_case *k)
{
    if (below(k, DRAW_JOBS, 5))
        return;
    if (!below(k, DRAW_JOBS, 2))
        add_job(k, START_BEFORE);
    if (!below(k, DRAW_JOBS, 2))
        add_job(k, START_DURING);
    if (k->n_jobs == 1 || k->job[k->n_jobs - 1].stops_ps || !below(k, DRAW_JOBS, 2))
        add_job(k, START_AFTER);
}
