/* SPDX-License-Identifier: BSD-3-Clause */
/* Aggregation nodes that refuse, or die at any moment: every rank still gets the right elements,
 * even if a rank had finished before and its user has reused the buffers. */
#include "base/random.h"
#include "host/coll/recovery/failover_priv.h"
#include "switch/reduce/an_counters.h"
#include "tests/host/coll/coll_fixture.h"

#define OPS   4
#define ALGOS (1u << ALGO_RING | 1u << ALGO_SHARP)

static uint64_t rng;

static uint64_t below(uint64_t n)
{
    return random_next(&rng) % n;
}

struct op {
    enum coll_kind kind;
    unsigned root;
    size_t count, n_in, n_out; /* elements */
    bool in_place;
    struct coll_req *req[FIXTURE_RANKS];
    float *in[FIXTURE_RANKS], *out[FIXTURE_RANKS], *mem[FIXTURE_RANKS], *got[FIXTURE_RANKS];
    bool over[FIXTURE_RANKS];
};

static struct op ops[OPS];
static unsigned n_ops;
static bool
    late; /* the last one starts when the others are over, or the rank knows of the failure */

/* Small whole numbers: every sum is exact in fp32, whatever the order. */
static float value(unsigned k, unsigned rank, size_t i)
{
    return (float)((int)((i * 13 + rank * 7 + k * 3 + i / 97) % 29) - 11);
}

static float sum(const struct fixture *g, unsigned k, size_t i)
{
    float s = 0;

    for (unsigned r = 0; r < g->n; r++)
        s += value(k, r, i);
    return s;
}

static void check(const struct fixture *g, unsigned k, unsigned r)
{
    const struct op *o = &ops[k];

    for (size_t i = 0; i < o->n_out; i++) {
        float want = 0;

        switch (o->kind) {
        case COLL_ALLREDUCE:
            want = sum(g, k, i);
            break;
        case COLL_REDUCE:
            if (r != o->root)
                continue;
            want = sum(g, k, i);
            break;
        case COLL_REDUCE_SCATTER:
            want = sum(g, k, r * o->count + i);
            break;
        case COLL_BROADCAST:
            want = value(k, o->root, i);
            break;
        default:
            want = value(k, (unsigned)(i / o->count), i % o->count);
        }
        if (o->got[r][i] != want)
            fail_msg("operation %u (%d%s), rank %u of %u, element %zu of %zu: %g, not %g", k,
                     o->kind, o->in_place ? ", in place" : "", r, g->n, i, o->n_out,
                     (double)o->got[r][i], (double)want);
    }
}

/* Copies the result of an operation that is over and overwrites its buffers. */
static void collect(const struct fixture *g)
{
    for (unsigned k = 0; k < n_ops; k++)
        for (unsigned r = 0; r < g->n; r++) {
            struct op *o = &ops[k];
            int rc = o->over[r] || !o->req[r] ? 0 : coll_test(o->req[r]);

            if (!rc)
                continue;
            if (rc < 0)
                fail_msg("operation %u, rank %u: %s", k, r, comm_error(g->comm[r]));
            o->over[r] = true;
            memcpy(o->got[r], o->out[r], o->n_out * sizeof(float));
            memset(o->mem[r], 0xee, 2 * (o->n_in + o->n_out) * sizeof(float));
            coll_free(o->req[r]);
        }
}

static void start_late(struct fixture *g);

static bool all_over(struct fixture *g)
{
    bool all = true;

    collect(g);
    if (late)
        start_late(g);
    for (unsigned k = 0; k < n_ops; k++)
        for (unsigned r = 0; r < g->n; r++)
            all = all && ops[k].over[r];
    return all;
}

static void choose(const struct fixture *g, struct op *o)
{
    static const enum coll_kind kinds[] = {COLL_ALLREDUCE,      COLL_ALLREDUCE, COLL_REDUCE,
                                           COLL_REDUCE_SCATTER, COLL_ALLGATHER, COLL_BROADCAST};
    unsigned n = g->n;

    *o =
        (struct op){.kind = kinds[below(6)], .root = (unsigned)below(n), .in_place = below(4) != 0};
    o->count = below(4) ? 1 + below(60000) : 1 + below(200);
    o->n_in = o->n_out = o->count;
    if (o->kind == COLL_ALLGATHER)
        o->n_out = n * (o->count = o->n_in = 1 + o->count / n);
    if (o->kind == COLL_REDUCE_SCATTER)
        o->n_in = n * (o->count = o->n_out = 1 + o->count / n);
}

static void start(struct fixture *g, unsigned k, unsigned r)
{
    struct op *o = &ops[k];
    struct coll_args a = {.kind = o->kind,
                          .algo = ALGO_SHARP,
                          .count = o->count,
                          .type = DT_FP32,
                          .op = OP_SUM,
                          .root = o->root};
    char err[COMM_TEXT] = "";

    o->mem[r] = fixture_buffer(g, r, 2 * (o->n_in + o->n_out) * sizeof(float));
    o->in[r] = o->mem[r];
    o->out[r] = o->mem[r] + o->n_in + o->n_out;
    o->got[r] = calloc(o->n_out, sizeof(float));
    if (o->in_place && o->kind == COLL_ALLGATHER)
        o->in[r] = o->out[r] + r * o->count;
    else if (o->in_place && o->kind == COLL_REDUCE_SCATTER)
        o->out[r] = o->in[r] + r * o->count;
    else if (o->in_place)
        o->in[r] = o->out[r];
    for (size_t i = 0; i < o->n_in; i++)
        o->in[r][i] = value(k, r, i);
    a.send = o->in[r];
    a.recv = o->out[r];
    if (coll_start(g->comm[r], &a, &o->req[r], err))
        fail_msg("%s", err);
}

/* Behind the operations of others that a rank that has finished helps with. */
static void start_late(struct fixture *g)
{
    for (unsigned r = 0; r < g->n; r++) {
        bool may = comm_fell_back(g->comm[r]) != NULL;

        for (unsigned k = 0, all = 1; !may && k + 1 < n_ops; k++) {
            all = all && ops[k].over[r];
            may = all && k + 2 == n_ops;
        }
        if (may && !ops[n_ops - 1].req[r])
            start(g, n_ops - 1, r);
    }
}

static void run(uint64_t seed, unsigned n)
{
    struct fixture *g = fixture_new(n, 1 + (unsigned)below(2), 1024, NULL);

    rng = seed;
    g->failover_back = true;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    n_ops = 1 + (unsigned)below(OPS);
    for (unsigned k = 0; k < n_ops; k++)
        choose(g, &ops[k]);
    late = n_ops > 1 && seed % 2;
    for (unsigned r = 0; r < n; r++) { /* one after the other: some begin late */
        for (unsigned k = 0; k + late < n_ops; k++)
            start(g, k, r);
        fixture_run(g, (int64_t)below(3) * PS_PER_US, false, fixture_never);
    }
    /* The node dies at a random moment; shortly before, its results no longer reach some ranks. */
    for (unsigned i = (unsigned)below(20); i; i--) {
        fixture_run(g, (int64_t)below(2000) * PS_PER_NS, false, fixture_never);
        collect(g);
    }
    g->an_mute = below(3) ? (unsigned)below(1u << n) : 0;
    for (unsigned i = (unsigned)below(8); i; i--) {
        fixture_run(g, (int64_t)below(2000) * PS_PER_NS, false, fixture_never);
        collect(g);
    }
    g->an_dead = true;
    if (!fixture_run(g, 100 * PS_PER_S, true, all_over))
        fail_msg("seed %llu: ranks wait for ever", (unsigned long long)seed);
    for (unsigned k = 0; k < n_ops; k++)
        for (unsigned r = 0; r < n; r++) {
            check(g, k, r);
            free(ops[k].got[r]);
        }
    /* Once more, after the failover. */
    late = false;
    n_ops = 1;
    choose(g, &ops[0]);
    for (unsigned r = 0; r < n; r++)
        start(g, 0, r);
    assert_true(fixture_run(g, 100 * PS_PER_S, true, all_over));
    for (unsigned r = 0; r < n; r++) {
        check(g, 0, r);
        free(ops[0].got[r]);
    }
    for (unsigned r = 0; r < n && comm_fell_back(g->comm[r]); r++)
        assert_non_null(strstr(comm_fell_back(g->comm[r]), "switch0"));
    fixture_free(g, true);
}

static void an_aggregation_node_that_dies_at_any_moment_costs_no_element(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++)
        run(seed, 2 + (unsigned)(seed % 7));
}

/* One operation of all ranks, by what they run SHARP by now. */
static enum coll_algo operate(struct fixture *g)
{
    struct coll_args a = {.algo = ALGO_SHARP, .count = 1, .type = DT_FP32};
    enum coll_algo by;

    late = false;
    n_ops = 1;
    choose(g, &ops[0]);
    a.kind = ops[0].kind;
    by = comm_runs_by(g->comm[0], &a);
    for (unsigned r = 0; r < g->n; r++) {
        start(g, 0, r);
        fixture_run(g, (int64_t)below(3) * PS_PER_US, false, fixture_never);
    }
    assert_true(fixture_run(g, 100 * PS_PER_S, true, all_over));
    for (unsigned r = 0; r < g->n; r++) {
        check(g, 0, r);
        free(ops[0].got[r]);
    }
    return by;
}

/* The node dies and lives again, at moments within operations. Its groups are as they were: members
 * leave them as they notice, and join again. */
static void come_back(uint64_t seed, unsigned n)
{
    struct fixture *g = fixture_new(n, 1 + (unsigned)below(2), 1024, NULL);

    rng = seed;
    g->failover_back = true;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    for (unsigned death = 1; death <= 3; death++) {
        char want[48];
        unsigned i = 0;

        assert_int_equal(operate(g), ALGO_SHARP);
        g->an_mute = below(2) ? (unsigned)below(1u << n) : 0;
        g->an_dead = !g->an_mute;
        operate(g);
        g->an_dead = true;
        assert_int_equal(operate(g), ALGO_RING); /* asked in vain */
        fixture_run(g, (int64_t)(1 + below(100)) * PS_PER_MS, true, fixture_never);
        operate(g);
        g->an_dead = false;
        g->an_mute = 0;
        for (; i < 20 && operate(g) != ALGO_SHARP; i++)
            fixture_run(g, 50 * PS_PER_MS, true, fixture_never);
        if (i == 20)
            fail_msg("seed %llu: the tree does not return", (unsigned long long)seed);
        snprintf(want, sizeof(want), "1 of 1 trees from operation");
        assert_non_null(strstr(comm_fell_back(g->comm[n - 1]), want));
    }
    fixture_free(g, true);
}

static void an_aggregation_node_that_lives_again_is_used_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        come_back(seed, 2 + (unsigned)(seed % 7));
}

static void start_small(struct fixture *g, unsigned r, enum coll_kind kind, enum coll_algo algo,
                        struct coll_req **req)
{
    float *mem = fixture_buffer(g, r, 2 * sizeof(float));
    struct coll_args a = {.kind = kind,
                          .algo = algo,
                          .send = mem,
                          .recv = mem + 1,
                          .count = 1,
                          .type = DT_FP32,
                          .op = OP_SUM};
    char err[COMM_TEXT] = "";

    if (coll_start(g->comm[r], &a, req, err))
        fail_msg("%s", err);
}

/* The root of a broadcast by the hosts may be two operations ahead of ranks that lack the switches'
 * result: it has given away what they need, and says so on all. */
static void a_rank_two_operations_ahead_ends_the_job_in_words(void **state)
{
    struct fixture *g = fixture_new(3, 1, 1024, NULL);
    struct coll_req *req[3] = {0}, *ahead[2] = {0};

    (void)state;
    g->failover_back = true;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    g->an_mute = 6; /* ranks 1 and 2 */
    for (unsigned r = 0; r < 3; r++)
        start_small(g, r, COLL_ALLREDUCE, ALGO_SHARP, &req[r]);
    start_small(g, 0, COLL_BROADCAST, ALGO_RING, &ahead[0]);
    fixture_run(g, 100 * PS_PER_US, false, fixture_never);
    assert_int_equal(coll_test(req[0]), 1);
    assert_int_equal(coll_test(ahead[0]), 1);
    start_small(g, 0, COLL_ALLREDUCE, ALGO_SHARP, &ahead[1]);
    g->an_dead = true;
    assert_true(fixture_run(g, 100 * PS_PER_S, true, fixture_failed));
    assert_non_null(strstr(comm_error(g->comm[0]), "an operation before the last"));
    for (unsigned r = 1; r < 3; r++)
        assert_non_null(strstr(comm_error(g->comm[r]), "switch0"));
    for (unsigned r = 0; r < 3; r++)
        coll_free(req[r]);
    coll_free(ahead[0]);
    coll_free(ahead[1]);
    fixture_free(g, true);
}

static void a_refused_group_runs_by_the_hosts_and_says_why(void **state)
{
    struct fixture *g = fixture_new(4, 1, 1024, NULL);
    struct an_cfg cfg = {.fab = g->fab, .pool = g->pool, .mbuf_budget = 10};

    (void)state;
    for (uint16_t i = 0; i < g->fab->n_nodes; i++)
        if (g->fab->nodes[i].kind == FAB_SWITCH)
            cfg.node = i;
    an_destroy(g->an);
    assert_int_equal(an_create(&g->an, &cfg), 0);
    g->ep[g->n] = an_endpoint(g->an);
    g->failover_back = true;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    n_ops = 1;
    choose(g, &ops[0]);
    for (unsigned r = 0; r < g->n; r++)
        start(g, 0, r);
    assert_true(fixture_run(g, 100 * PS_PER_S, true, all_over));
    for (unsigned r = 0; r < g->n; r++) {
        check(g, 0, r);
        free(ops[0].got[r]);
        assert_non_null(comm_fell_back(g->comm[r]));
        assert_non_null(strstr(comm_fell_back(g->comm[r]), "over quota"));
    }
    fixture_free(g, true);
}

/* The last message of the agreement that a rank has sent, in memory that the next call reuses;
 * NULL: none. */
static const struct failover_msg *last_said(struct fixture *g, unsigned rank)
{
    static struct failover_msg m;
    const rte_be32_t magic = RTE_BE32(FAILOVER_MAGIC);
    uint64_t from = g->tail;

    while (fixture_collect(g, rank))
        ;
    while (g->tail > from) {
        const struct rte_mbuf *f = g->wire[(g->tail - 1) % FIXTURE_WIRE].m;
        const void *data = rte_pktmbuf_mtod(f, void *);
        const void *p = memmem(data, f->data_len, &magic, sizeof(magic));

        if (p) {
            memcpy(&m, p, sizeof(m));
            return &m;
        }
        rte_pktmbuf_free(g->wire[--g->tail % FIXTURE_WIRE].m);
    }
    return NULL;
}

/* A report that comes late, when rounds have followed, or again: its rank waits for the verdict of that round. */
static void a_late_report_is_answered_by_the_verdict_of_its_round(void **state)
{
    struct fixture *g = fixture_new(3, 1, 1024, NULL);

    (void)state;
    g->failover_back = true;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    rng = 1;
    g->an_dead = true;
    operate(g);
    g->an_dead = false;
    for (unsigned i = 0; i < 20 && operate(g) != ALGO_SHARP; i++)
        fixture_run(g, 50 * PS_PER_MS, true, fixture_never);
    assert_true(g->comm[0]->failover.n_rounds > 1);
    for (unsigned round = 0; round < g->comm[0]->failover.n_rounds; round++) {
        const struct failover_round *f = &g->comm[0]->failover.round[round];
        const struct failover_msg report = {.head.magic = RTE_BE32(FAILOVER_MAGIC),
                                            .rank = RTE_BE32(2),
                                            .type = FAILOVER_REPORT,
                                            .round = (uint8_t)round,
                                            .parts = rte_cpu_to_be_16((uint16_t)f->parts)};
        const struct failover_msg *m;

        fixture_run(g, PS_PER_MS, false, fixture_never);
        failover_input(g->comm[0], &report, sizeof(report));
        m = last_said(g, 0);
        assert_non_null(m);
        assert_int_equal(m->type, FAILOVER_VERDICT);
        assert_int_equal(rte_be_to_cpu_32(m->to), 2);
        assert_int_equal(m->round, round);
        assert_int_equal(rte_be_to_cpu_16(m->parts), f->parts);
        assert_int_equal(rte_be_to_cpu_32(m->seq), f->seq);
    }
    fixture_free(g, true);
}

/* A rank that lies, or is of another job: each type of message, each seat, alone and beside trees. */
static void a_protocol_that_the_job_does_not_run_is_no_part_of_it(void **state)
{
    struct fixture *g = fixture_new(3, 1, 1024, NULL);

    (void)state;
    fixture_connect(g, ALGOS, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, true, fixture_ready));
    for (unsigned type = FAILOVER_ASK; type <= FAILOVER_READY; type++)
        for (unsigned seat = 0; seat < 2 * PROTO_SEATS; seat++)
            for (unsigned to = 0; to < 2; to++) {
                unsigned parts = PART_PROTOCOL(seat % PROTO_SEATS) |
                                 (seat < PROTO_SEATS ? 0 : (unsigned)PART_TREES);
                const struct failover_msg m = {.head.magic = RTE_BE32(FAILOVER_MAGIC),
                                               .rank = rte_cpu_to_be_32(to ? 0 : 2),
                                               .to = rte_cpu_to_be_32(to),
                                               .type = (uint8_t)type,
                                               .protocol = 1,
                                               .parts = rte_cpu_to_be_16((uint16_t)parts),
                                               .why = "not so"};

                failover_input(g->comm[to], &m, sizeof(m));
                assert_int_equal(g->comm[to]->failover.n_rounds, 0);
                assert_false(g->comm[to]->failover.stopped);
            }
    rng = 1;
    assert_int_equal(operate(g), ALGO_SHARP);
    fixture_free(g, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aggregation_node_that_dies_at_any_moment_costs_no_element),
        cmocka_unit_test(an_aggregation_node_that_lives_again_is_used_again),
        cmocka_unit_test(a_rank_two_operations_ahead_ends_the_job_in_words),
        cmocka_unit_test(a_refused_group_runs_by_the_hosts_and_says_why),
        cmocka_unit_test(a_late_report_is_answered_by_the_verdict_of_its_round),
        cmocka_unit_test(a_protocol_that_the_job_does_not_run_is_no_part_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
