/* SPDX-License-Identifier: BSD-3-Clause */
/* The run of a job: its ranks' communicators between the world's events. */
#include "sim/job/sim_job_priv.h"

#include <string.h>

static const char *const event_names[] = {
    [JOB_CONNECTING] = "%u ranks connect, group %u",
    [JOB_CONNECTED] = "connected up to rank %u, of %u",
    [JOB_OP_BEGUN] = "operation %u begins, %u ranks",
    [JOB_OP_KIND] = "  collective %u by algorithm %u",
    [JOB_RANK_STARTED] = "rank %u starts operation %u",
    [JOB_RANK_ENDED] = "rank %u has finished operation %u",
    [JOB_RANK_FAILED] = "rank %u fails with error %u",
    [JOB_FAILED_OVER] = "rank %u has failed over, operation %u",
    [JOB_OP_ENDED] = "operation %u ends, %u ranks failed",
    [JOB_LOOP_BEGUN] = "loop %u begins, %u operations",
    [JOB_LOOP_ENDED] = "loop ends: %u ranks have not finished, %u failed",
    [JOB_DEATH_NOTIFIED] = "death of rank %u is notified to %u ranks",
    [JOB_CLOSING] = "%u ranks leave, group %u",
    [JOB_CLOSED] = "closed up to rank %u, of %u",
};
_Static_assert(sizeof(event_names) / sizeof(event_names[0]) == JOB_EVENTS, "a name for each");
static const struct event_kinds event_kinds = {"sim", event_names, JOB_EVENTS};

void job_events_init(struct job *j)
{
    char who[EVENTS_NAMED];

    snprintf(who, sizeof(who), "job of group %u", j->cfg.group);
    events_init(&j->events, &event_kinds, who);
}

void job_record_failovers(struct job *j)
{
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (m->failed_over || !m->comm || job_dead(j, r) || !comm_fell_back(m->comm))
            continue;
        m->failed_over = true;
        job_record(j, JOB_FAILED_OVER, r, j->ops);
    }
}

struct comm *job_comm(struct job *j, unsigned rank)
{
    return j->mem[rank].comm;
}

void job_await(struct job *j, unsigned r, bool on)
{
    world_await(j->cfg.w, job_world_rank(j, r), on);
}

bool job_dead(const struct job *j, unsigned r)
{
    return world_dead(j->cfg.w, job_world_rank(j, r));
}

/* The communicators of jobs without protocols have no timers: slices leave this alone. */
void job_progress(struct job *j, unsigned r)
{
    while (comm_progress(j->mem[r].comm) >= COMM_PROGRESS_MAX)
        ;
    if (j->cfg.algos & COLL_PROTOCOLS)
        j->next_timer = RTE_MIN(j->next_timer, comm_deadline(j->mem[r].comm));
}

static void progress_member(struct job *j, unsigned r, int64_t now)
{
    if (!j->mem[r].comm || job_dead(j, r))
        return;
    job_progress(j, r);
    if (j->loop)
        job_loop_test(j, r, now);
    else
        j->failed |= comm_state(j->mem[r].comm) == COMM_FAILED;
}

/* Runs those ranks of the job that are this rank of the world. */
static void sim_job_turn(void *ctx, unsigned world_r, int64_t now)
{
    struct job *j = ctx;

    if (!j->cfg.world_rank && world_r < j->cfg.nranks)
        progress_member(j, world_r, now);
    for (unsigned r = 0; j->cfg.world_rank && r < j->cfg.nranks; r++)
        if (job_world_rank(j, r) == world_r)
            progress_member(j, r, now);
}

static void progress(struct job *first)
{
    struct world *w = first->cfg.w;

    for (unsigned r = world_awake(w, 0); r < world_ranks(w); r = world_awake(w, r + 1)) {
        struct job *j = first;

        do {
            T_ASSERT_HOT(j->cfg.w == w, "jobs of two worlds are in one ring");
            sim_job_turn(j, r, world_now(w));
            j = j->next;
        } while (j != first);
    }
}

static void sim_job_tick(struct job *first)
{
    int64_t now = world_now(first->cfg.w);
    struct job *j = first;

    do {
        j->next_tick = now + JOB_TICK_PS;
        for (unsigned r = 0; r < j->cfg.nranks; r++)
            if (j->mem[r].comm && !job_dead(j, r)) {
                comm_tick(j->mem[r].comm, now / PS_PER_NS);
                progress_member(j, r, now);
            }
        j = j->next;
    } while (j != first);
}

/* Ranks whose protocols have timers that are due; job_progress() finds the next ones. */
static void run_timers(struct job *first)
{
    int64_t now = world_now(first->cfg.w);
    struct job *j = first;

    do {
        if (j->next_timer <= now) {
            j->next_timer = PS_NEVER;
            for (unsigned r = 0; r < j->cfg.nranks; r++)
                progress_member(j, r, now);
        }
        j = j->next;
    } while (j != first);
}

static int64_t limit(const struct job *first, int64_t until_ps)
{
    int64_t t = RTE_MIN(first->next_tick, until_ps);
    const struct job *j = first;

    do {
        t = RTE_MIN(t, j->next_timer);
        j = j->next;
    } while (j != first);
    return t;
}

void job_step(struct job *j, int64_t until_ps)
{
    struct world *w = j->cfg.w;

    world_step(w, limit(j, until_ps));
    if (world_now(w) >= j->next_tick)
        sim_job_tick(j);
    run_timers(j);
    progress(j);
}

void job_drive(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx)
{
    struct world *w = j->cfg.w;

    while (!until(ctx) && world_now(w) < until_ps)
        job_step(j, until_ps);
}

static bool sim_job_never(void *ctx)
{
    (void)ctx;
    return false;
}

/*
 * The time at which a run by slices and a run by steps have done the same. A rank that fails does
 * not end the other ranks' slice, which may be one lookahead longer than the slice of its failure.
 */
static int64_t rest_ps(const struct job *j)
{
    const struct world *w = j->cfg.w;
    int64_t failed = PS_NEVER, end = world_slice_end(w, world_now(w));

    for (unsigned r = 0; r < j->cfg.nranks && j->failures; r++)
        if (j->mem[r].ended && j->mem[r].rc)
            failed = RTE_MIN(failed, j->mem[r].end_ps);
    if (failed != PS_NEVER)
        end = RTE_MAX(end, world_slice_end(w, world_slice_end(w, failed)));
    return end - 1;
}

void job_drive_slices(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx)
{
    const struct world_turn t = {sim_job_turn, j};
    struct world *w = j->cfg.w;

    while (!until(ctx) && world_now(w) < until_ps)
        if (j->loop->by_steps || j->cfg.algos & COLL_PROTOCOLS || j->next != j ||
            !world_slice(w, limit(j, until_ps), &t))
            job_step(j, until_ps);
    world_join(w);
    job_drive(j, rest_ps(j), sim_job_never, NULL);
}

void job_notify_death(struct job *j, unsigned dead)
{
    char why[COMM_TEXT];
    unsigned notified = 0;

    T_ASSERT(dead < j->cfg.nranks, "a death of a rank that the job does not have");

    snprintf(why, sizeof(why), "rank %u (%s) has died", dead,
             j->cfg.fab->nodes[j->cfg.fab->hosts[j->cfg.host_of_rank[dead]]].name);
    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm && !job_dead(j, r)) {
            comm_abort(j->mem[r].comm, why);
            progress_member(j, r, world_now(j->cfg.w));
            notified++;
        }
    job_record(j, JOB_DEATH_NOTIFIED, dead, notified);
}
