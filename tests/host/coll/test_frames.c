/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks send, when, and what they record, in runs in memory: connecting, collectives by each algorithm, losses, ranks
 * and aggregation nodes that are gone, closing. A run is the same every time and in every build, so it is compared whole; a frame
 * more or less, later, or with another bit is a change of behaviour. A line that differs is printed as it is now.
 */
#include "host/coll/comm.h"
#include "host/coll/transport/conn.h"
#include "tests/host/coll/coll_fixture.h"
#include "tests/host/coll/frames.h"

#define RING  (1u << ALGO_RING)
#define SHARP (1u << ALGO_SHARP)
#define USUAL (ALGO_USUAL == 32 ? ~0u : (1u << ALGO_USUAL) - 1)
#define OPS   3u

enum fault { NONE, LOSS, DEAD, MUTE, BACK, CUT, ABORT };

struct row {
    const char *name;
    unsigned n, per_host, mtu, algos;
    enum coll_kind kind;
    enum coll_algo algo;
    size_t count;
    enum fault fault;
    unsigned at_us; /* after the operations begin */
    enum coll_algo policy[3];
    unsigned n_policy; /* 0: the usual one */
};

static struct {
    struct coll_req *req[FIXTURE_RANKS][OPS];
    float *mem[FIXTURE_RANKS][OPS];
    size_t bytes;
} run;
static unsigned at, wrong;

static bool one_in_seventeen(uint64_t nth)
{
    return nth % 17 == 16;
}

static bool all_over(struct fixture *g)
{
    for (unsigned r = 0; r < g->n; r++)
        for (unsigned k = 0; k < OPS; k++)
            if (!g->cut[r] && run.req[r][k] && !coll_test(run.req[r][k]))
                return false;
    return true;
}

static void start(struct fixture *g, const struct row *w, unsigned r, unsigned k)
{
    struct coll_args a = {.kind = w->kind,
                          .algo = w->algo,
                          .count = w->kind == COLL_BARRIER ? 0 : w->count + k,
                          .type = DT_FP32,
                          .op = OP_SUM,
                          .root = k % w->n};
    size_t room = (w->count + OPS) * w->n;
    char err[COMM_TEXT] = "";
    float *m = fixture_buffer(g, r, 2 * room * sizeof(*m));

    run.mem[r][k] = m;
    run.bytes = 2 * room * sizeof(*m);
    for (size_t i = 0; i < 2 * room; i++)
        m[i] = (float)((int)((i * 13 + r * 7 + k * 3) % 29) - 11);
    a.send = m, a.recv = m + room;
    if (coll_start(g->comm[r], &a, &run.req[r][k], err))
        fail_msg("%s: %s", w->name, err);
}

static void fault(struct fixture *g, const struct row *w)
{
    fixture_run(g, (int64_t)w->at_us * PS_PER_US, true, fixture_never);
    g->an_dead = w->fault == DEAD || w->fault == BACK;
    g->an_mute = w->fault == MUTE ? 2 : 0;
    g->cut[1] = w->fault == CUT;
    if (w->fault == ABORT)
        comm_abort(g->comm[0], "enough");
    if (w->fault != BACK)
        return;
    fixture_run(g, 300 * PS_PER_MS, true, fixture_never);
    g->an_dead = false;
}

/* What a queue pair was set up with. */
static uint64_t note_qp(uint64_t noted, struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    struct ibv_qp_attr q = {.qp_state = IBV_QPS_RESET};

    assert_int_equal(ibv_query_qp(qp, &q, IBV_QP_STATE, &init), 0);
    const uint32_t what[] = {init.cap.max_send_wr,
                             init.cap.max_recv_wr,
                             init.cap.max_send_sge,
                             init.cap.max_recv_sge,
                             init.cap.max_inline_data,
                             q.timeout,
                             q.retry_cnt,
                             q.rnr_retry,
                             q.min_rnr_timer,
                             q.max_rd_atomic,
                             q.max_dest_rd_atomic,
                             q.path_mtu,
                             q.qp_access_flags,
                             q.ah_attr.grh.hop_limit,
                             q.ah_attr.grh.sgid_index,
                             q.port_num};

    return fixture_note(noted, what, sizeof(what));
}

/* The ranks' queue pairs, last events and memory as one number. */
static uint64_t recorded(const struct fixture *g)
{
    uint64_t noted = 1;

    for (unsigned r = 0; r < g->n; r++) {
        const struct events *e = &g->comm[r]->events;

        noted = fixture_note(noted, &e->n, sizeof(e->n));
        for (unsigned i = 0; i < EVENTS_KEPT && i < e->n; i++) {
            const struct event *v = &e->last[i];
            const uint64_t what[] = {(uint64_t)v->ps, v->a, v->b, v->kind};

            noted = fixture_note(noted, what, sizeof(what));
        }
        for (unsigned i = 0; i < g->comm[r]->n_conns; i++)
            noted = note_qp(noted, g->comm[r]->conn[i]->qp);
        for (unsigned i = 0; i < g->comm[r]->n_aggs; i++)
            if (g->comm[r]->agg[i].qp)
                noted = note_qp(noted, g->comm[r]->agg[i].qp);
        noted = note_qp(noted, g->comm[r]->ctl.port[0].qp);
        for (unsigned k = 0; k < OPS; k++)
            noted = fixture_note(noted, run.mem[r][k], run.bytes);
    }
    return noted;
}

static void compare(const struct row *w, const char *now)
{
    if (at >= FRAMES || strcmp(frames[at], now)) {
        wrong++;
        printf("    \"%s\",\n", now);
        printf("    /* in place of %u, %s */\n", at, w->name);
    }
    at++;
}

static void close_all(struct fixture *g)
{
    for (unsigned r = 0; r < g->n; r++)
        comm_close(g->comm[r]);
    assert_true(fixture_run(g, 5 * PS_PER_S, true, fixture_closed));
}

static void run_row(const struct row *w)
{
    struct fixture *g =
        fixture_new(w->n, w->per_host, w->mtu, w->fault == LOSS ? one_in_seventeen : NULL);
    char now[700];
    size_t n;

    memset(&run, 0, sizeof(run));
    g->notes = true;
    g->failover_back = w->fault != NONE;
    g->n_policy = w->n_policy;
    memcpy(g->policy, w->policy, sizeof(w->policy));
    fixture_connect(g, w->algos, FIXTURE_RANKS);
    assert_true(fixture_run(g, 10 * PS_PER_S, true, fixture_ready));
    n = (size_t)snprintf(now, sizeof(now), "%s: %lu frames, %ld ns", w->name, g->frames,
                         g->now / 1000);
    for (unsigned k = 0; k < OPS; k++)
        for (unsigned r = 0; r < g->n; r++)
            start(g, w, r, k);
    fault(g, w);
    if (!fixture_run(g, 100 * PS_PER_S, true, all_over))
        fail_msg("%s hangs: %s", w->name, comm_error(g->comm[0]));
    n += (size_t)snprintf(now + n, sizeof(now) - n, "; %lu, %ld, recorded %lx", g->frames,
                          g->now / 1000, recorded(g));
    if (comm_error(g->comm[0]) && *comm_error(g->comm[0]))
        n += (size_t)snprintf(now + n, sizeof(now) - n, "; %s", comm_error(g->comm[0]));
    if (comm_fell_back(g->comm[0]))
        n += (size_t)snprintf(now + n, sizeof(now) - n, "; %s", comm_fell_back(g->comm[0]));
    for (unsigned r = 0; r < g->n; r++)
        for (unsigned k = 0; k < OPS; k++)
            coll_free(run.req[r][k]);
    g->drop = NULL;
    close_all(g);
    snprintf(now + n, sizeof(now) - n, "; %lu, %ld, %lu bytes, %lx", g->frames, g->now / 1000,
             g->bytes, g->noted);
    compare(w, now);
    fixture_free(g, true);
}

static void collectives_send_what_they_sent(void **state)
{
    (void)state;
    for (enum coll_kind k = 0; k < COLL_KINDS; k++)
        for (enum coll_algo a = 0; a < ALGO_USUAL; a++) {
            const unsigned n = k % 2 ? 4 : 3;
            const struct coll_args probe = {
                .kind = k, .algo = a, .count = k == COLL_BARRIER ? 0 : 700, .type = DT_FP32};
            char name[64];
            struct row w = {.name = name,
                            .n = n,
                            .per_host = 1 + a % 2,
                            .mtu = a % 3 ? 1024 : 256,
                            .algos = 1u << a,
                            .kind = k,
                            .algo = a,
                            .count = 700};
            struct fixture *g;
            bool can;

            if (a == ALGO_NVLS || a == ALGO_HIER || a == ALGO_HIER_SHARP || a == ALGO_NVLS_SHARP)
                continue;
            g = fixture_new(n, w.per_host, w.mtu, NULL);
            fixture_connect(g, w.algos, FIXTURE_RANKS);
            assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
            can = comm_supports(g->comm[0], &probe);
            fixture_free(g, true);
            snprintf(name, sizeof(name), "%s %s", coll_name(k), sched_algo_name(a));
            if (can)
                run_row(&w);
        }
}

static const struct row rows[] = {
    {"long ring", 3, 1, 4096, RING, COLL_ALLREDUCE, ALGO_RING, 60000, NONE, 0, {0}, 0},
    {"long SHARP", 3, 1, 4096, SHARP, COLL_ALLREDUCE, ALGO_SHARP, 150000, NONE, 0, {0}, 0},
    {"many ranks", 16, 4, 1024, 1u << ALGO_DIRECT, COLL_ALLTOALL, ALGO_DIRECT, 50, NONE, 0, {0}, 0},
    {"losses of a ring", 4, 1, 1024, RING, COLL_ALLREDUCE, ALGO_RING, 5000, LOSS, 0, {0}, 0},
    {"losses of SHARP", 4, 2, 1024, SHARP, COLL_ALLREDUCE, ALGO_SHARP, 5000, LOSS, 0, {0}, 0},
    {"abort of a ring", 4, 1, 1024, RING, COLL_ALLREDUCE, ALGO_RING, 5000, ABORT, 9, {0}, 0},
    {"abort of SHARP",
     4,
     1,
     1024,
     RING | SHARP,
     COLL_ALLREDUCE,
     ALGO_SHARP,
     5000,
     ABORT,
     3,
     {0},
     0},
    {"a rank gone from a ring", 4, 1, 1024, RING, COLL_ALLREDUCE, ALGO_RING, 5000, CUT, 5, {0}, 0},
    {"a rank gone from SHARP",
     3,
     1,
     1024,
     RING | SHARP,
     COLL_ALLREDUCE,
     ALGO_SHARP,
     5000,
     CUT,
     3,
     {0},
     0},
};

static void runs_with_faults_are_what_they_were(void **state)
{
    (void)state;
    for (const struct row *w = rows; w < rows + sizeof(rows) / sizeof(*rows); w++)
        run_row(w);
}

static void failovers_are_what_they_were(void **state)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE, COLL_REDUCE,         COLL_BROADCAST,
                                           COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_BARRIER};
    static const enum fault faults[] = {DEAD, MUTE, BACK};
    static const unsigned times[] = {0, 3, 6};

    (void)state;
    for (unsigned i = 0; i < 3 * 3 * 6; i++) {
        char name[64];
        struct row w = {.name = name,
                        .n = 3 + i % 2,
                        .per_host = 1 + i / 2 % 2,
                        .mtu = 1024,
                        .algos = USUAL & (RING | SHARP | 1u << ALGO_TREE),
                        .kind = kinds[i / 9],
                        .algo = ALGO_SHARP,
                        .count = 4000,
                        .fault = faults[i / 3 % 3],
                        .at_us = times[i % 3],
                        .policy = {ALGO_SHARP, ALGO_TREE, ALGO_RING},
                        .n_policy = i % 2 ? 3 : 0};

        snprintf(name, sizeof(name), "%s %s at %u us", coll_name(w.kind),
                 w.fault == DEAD   ? "dead"
                 : w.fault == MUTE ? "mute"
                                   : "back",
                 w.at_us);
        run_row(&w);
    }
}

static void nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(wrong, 0);
    assert_int_equal(at, FRAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_send_what_they_sent),
        cmocka_unit_test(runs_with_faults_are_what_they_were),
        cmocka_unit_test(failovers_are_what_they_were),
        cmocka_unit_test(nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
